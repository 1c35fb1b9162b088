"""The numbers of the rule set that the table engine needs. They come from YAML (or from the file asked about)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..base.errors import InputError

_SHARE = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12}|/[0-9]{1,12})?")
_REQUIRED = ("min_n", "withhold_share", "interval_n", "interval_years")


def as_share(value: object, name: str = "withhold_share") -> Fraction:
    """A share as an exact fraction: "3/10", 0.3 and "0.3" are the same; 1 − 0.7 would not be."""
    step = 'write it as "3/10" or 0.3'
    try:
        if isinstance(value, str) and not _SHARE.fullmatch(value):  # nor powers of ten that fill the memory
            raise ValueError
        share = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"{name} is not a share", next_step=step) from error
    if not 0 <= share <= 1:
        raise InputError(f"{name} must lie between 0 and 1", next_step=step)
    return share


@dataclass(frozen=True)
class TablePolicy:
    """What a table must meet.

    Parameters
    ----------
    min_n
        Smallest group of people that may be published or derived.
    withhold_share
        A table with a larger share of suppressed cells is withheld (strictly more).
    interval_n, interval_years
        Protection interval: what a reader may learn of a suppressed N (people) and mean (years) must be at least
        this wide.
    zeros_are_primary
        Whether a group of nobody is suppressed like a small one.
    n_round_base, n_round_below, mean_decimals
        The rounding of what is published.
    value_bounds
        What everybody knows of one person's value, in years; `None` when nothing is known.
    dominance_share
        Largest share of the sum of absolute values one person may hold; `None`: not tested.
    ties
        How an N half-way between two steps is rounded; matters for even bases only.
    marks_small
        Whether the mark of a withheld cell says that fewer than `min_n` people are in it.
    """

    min_n: int
    withhold_share: Fraction
    interval_n: int
    interval_years: float
    zeros_are_primary: bool = False
    n_round_base: int = 1
    n_round_below: int = 0
    mean_decimals: int = 1
    value_bounds: tuple[float, float] | None = None
    dominance_share: Fraction | None = None
    ties: str = "even"
    marks_small: bool = False

    def __post_init__(self) -> None:
        if self.min_n < 1 or self.n_round_base < 1 or self.n_round_below < 0:
            raise InputError("min_n and n_round_base must be at least 1, n_round_below at least 0")
        if self.interval_n < 0 or self.interval_years < 0:
            raise InputError("a protection interval cannot be negative")
        if self.value_bounds is not None and not self.value_bounds[0] < self.value_bounds[1]:
            raise InputError("value_bounds must be a lower and a larger upper bound")

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> TablePolicy:
        """From a rule set's parameters (`RuleSet.parameters`).

        Raises
        ------
        InputError
            A parameter the engine cannot do without is missing: no number is guessed.
        """
        missing = [name for name in _REQUIRED if name not in parameters]
        if missing:
            raise InputError(
                f"the rule set names no {', '.join(missing)}", next_step="add it to the rule set's parameters"
            )
        bounds = parameters.get("value_bounds")
        dominance = parameters.get("dominance_share")
        return cls(
            min_n=int(parameters["min_n"]),
            withhold_share=as_share(parameters["withhold_share"]),
            interval_n=int(parameters["interval_n"]),
            interval_years=float(parameters["interval_years"]),
            zeros_are_primary=bool(parameters.get("zeros_are_primary", True)),
            n_round_base=int(parameters.get("round_n_base", 1)),
            n_round_below=int(parameters.get("round_n_below", 0)),
            mean_decimals=int(parameters.get("mean_decimals", 1)),
            value_bounds=None if not bounds else (float(bounds[0]), float(bounds[1])),
            marks_small=str(parameters.get("suppression_mark", "*")).startswith("below "),
            dominance_share=None if dominance is None else as_share(dominance, "dominance_share"),
        )

    def too_many(self, suppressed: int, cells: int) -> bool:
        """Strictly more than the share, in whole numbers."""
        return suppressed * self.withhold_share.denominator > self.withhold_share.numerator * cells

    def to_json(self) -> dict[str, Any]:
        """The `policy` block of a problem file."""
        share = self.withhold_share
        return {
            "min_n": self.min_n,
            "withhold_share": f"{share.numerator}/{share.denominator}",
            "withhold_op": ">",
            "interval_n": self.interval_n,
            "interval_years": self.interval_years,
            "zeros_are_primary": self.zeros_are_primary,
            "n_round_base": self.n_round_base,
            "n_round_below": self.n_round_below,
            "n_round_ties": self.ties,
            "mean_decimals": self.mean_decimals,
            **({} if self.dominance_share is None else {"dominance_share": str(self.dominance_share)}),
        }


def is_primary_n(n: int, min_n: int, zeros_are_primary: bool) -> bool:
    """Whether a group of `n` people is too small."""
    return n < min_n and (n > 0 or zeros_are_primary)
