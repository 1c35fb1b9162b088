"""What the rules say about one output: effects, findings, actions, a decision. Frozen values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

View = Literal["inside", "outside"]


class Effect(Enum):
    """Effects, worst first (rule set: `order_of_effects`)."""

    BLOCK = "block"
    WITHHOLD = "withhold"
    REVIEW = "review"
    SUPPRESS = "suppress"
    ROUND = "round"
    LABEL = "label"
    PASS = "pass"

    @property
    def rank(self) -> int:
        """0 for the worst effect."""
        return list(Effect).index(self)

    @property
    def status(self) -> Literal["pass", "review", "fail"]:
        """The ACRO status it maps to: block, withhold → fail; review → review; the rest → pass."""
        if self in (Effect.BLOCK, Effect.WITHHOLD):
            return "fail"
        return "review" if self is Effect.REVIEW else "pass"


@dataclass(frozen=True)
class Finding:
    """One result on one target; several rules that say the same of one target share one finding (D-82).

    `inside` carries numbers and cell labels; `outside` says "below 20", never "7", and never which of two
    marked cells was small (D-79, D-28).
    """

    rules: tuple[str, ...]
    target: str  # "output", or the key of a part; inside only
    effect: Effect
    inside: str
    outside: str
    clauses: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()  # questions a person must answer
    next_step: str | None = None
    waived_by: str | None = None  # id of the waiver that lowered block to review
    provisional: bool = False

    def text(self, view: View) -> str:
        """The finding's sentence for one view."""
        return self.inside if view == "inside" else self.outside


@dataclass(frozen=True)
class Advice:
    """What a rule on raw data says of an output that the noise protects: for whoever reads inside, and for nobody else.

    It is no `Finding`: it has no sentence for the outside and no place in a verdict, so that nothing that builds what
    leaves can take it.
    """

    rules: tuple[str, ...]
    inside: str
    asks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """A change the rules make for the researcher, in phase order.

    verb: suppress | suppress_complement | withhold | round | label
    part: key of the part, or None for the whole output
    args: e.g. {"decimal_places": 1}, {"significant_figures": 3}, {"to_nearest": 5, "part": "every_n"},
    {"text": "< 0.001"}
    """

    verb: str
    part: str | None
    args: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Everything the rules said about one output."""

    output_name: str
    output_type: str
    effect: Effect
    findings: tuple[Finding, ...]
    actions: tuple[Action, ...]
    met: tuple[str, ...]
    not_applicable: tuple[str, ...]
    missing: tuple[str, ...] = ()  # names of facts nobody supplied
    advice: tuple[Advice, ...] = ()  # of rules on raw data, where the noise protects; inside only

    @property
    def status(self) -> Literal["pass", "review", "fail"]:
        """ACRO's word for the decision."""
        return self.effect.status
