"""Rounding as the rule set asks for it: decimal arithmetic, half-even, no negative zero.

Binary floating point rounds the wrong way at ties that only exist in decimal (`round(2.675, 2)` is 2.67), so the
shortest decimal that names a float is what gets rounded. Rounding is the last step before release and is never
counted as protection: the attacker reads a rounded number as an interval.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext

from ..base.errors import InputError

Number = int | float | Decimal


def _decimal(value: Number) -> Decimal:
    if isinstance(value, bool):
        raise InputError("a truth value cannot be rounded", next_step="give a number")
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, int):
        number = Decimal(value)
    else:
        as_float = float(value)
        if not math.isfinite(as_float):
            raise InputError("a number that is not finite cannot be rounded", next_step="remove or impute it first")
        number = Decimal(repr(as_float))
    if not number.is_finite():
        raise InputError("a number that is not finite cannot be rounded", next_step="remove or impute it first")
    return number


_USUAL = Context(prec=80)  # a context for each number costs more than the rounding


def _quantise(number: Decimal, exponent: int) -> Decimal:
    if number.adjusted() - exponent < 60:
        return number.quantize(Decimal((0, (1,), exponent)), rounding=ROUND_HALF_EVEN, context=_USUAL)
    with localcontext() as context:
        context.prec = max(28, number.adjusted() - exponent + 10)
        return number.quantize(Decimal(1).scaleb(exponent), rounding=ROUND_HALF_EVEN)


def _quick(value: float, places: int | None, figures: int | None) -> float | None:
    """The rounding of an ordinary float by the C library, a tenth of the time; None where it may differ.

    `format` rounds the binary value, `Decimal(repr(value))` the shortest text that reads back as it. The two can
    differ only where that text is itself a tie, and it then ends in 5 (below 16 digits no other tie lies so near).
    """
    if not 1e-9 < abs(value) < 1e9:
        return None
    if places is not None:
        text = f"{value:.{places}f}" if 0 <= places <= 6 else None
    else:
        text = f"{value:.{figures - 1}e}" if figures is not None and 1 <= figures <= 15 else None
    if text is None or "5" in repr(value)[-1:] or "5e" in repr(value):
        return None
    return float(text) + 0.0


def round_value(
    value: Number,
    *,
    decimal_places: int | None = None,
    significant_figures: int | None = None,
    to_nearest: int | None = None,
) -> float | int:
    """Round one number, half-even, in decimal.

    Parameters
    ----------
    value
        A finite number; numpy scalars are accepted.
    decimal_places, significant_figures, to_nearest
        Exactly one of them. `to_nearest` is a positive integer step.

    Returns
    -------
    int for `to_nearest`, else float; never −0.0.

    Raises
    ------
    InputError
        Not finite, or not exactly one way of rounding named.
    """
    asked = [x for x in (decimal_places, significant_figures, to_nearest) if x is not None]
    if len(asked) != 1:
        raise InputError("name exactly one of decimal_places, significant_figures and to_nearest")
    if type(value) is float and to_nearest is None:
        quick = _quick(value, decimal_places, significant_figures)
        if quick is not None:
            return quick
    number = _decimal(value if isinstance(value, int | Decimal) else float(value))
    if to_nearest is not None:
        if to_nearest < 1:
            raise InputError("to_nearest must be a positive whole number")
        with localcontext() as context:
            context.prec = max(28, number.adjusted() + 20)
            return int((number / to_nearest).quantize(Decimal(1), rounding=ROUND_HALF_EVEN)) * to_nearest
    if number == 0:
        return 0.0
    if decimal_places is not None:
        rounded = _quantise(number, -decimal_places)
    else:
        assert significant_figures is not None
        if significant_figures < 1:
            raise InputError("significant_figures must be at least 1")
        rounded = _quantise(number, number.adjusted() - significant_figures + 1)
        if rounded.adjusted() > number.adjusted():  # 9.996 → 10.0: one figure more than asked
            rounded = _quantise(number, rounded.adjusted() - significant_figures + 1)
    return float(rounded) if rounded != 0 else 0.0


def shown_n(n: int, *, base: int, below: int | None, ties: str = "even") -> int:
    """How a count is published; parameters as in `rounded_n_interval`."""
    if below is not None and n >= below:
        return n
    if ties == "up":
        return base * ((2 * n + base) // (2 * base))
    return int(round_value(n, to_nearest=base))


def rounded_n_interval(published: int, *, base: int, below: int | None, ties: str = "even") -> tuple[int, int]:
    """Every count that is published as `published`: the attacker's interval (closed).

    Parameters
    ----------
    below
        Counts from here on are exact; `None` when the whole table is rounded.
    ties
        "even" (this module's rule) or "up"; they differ for even bases only.
    """

    near = range(max(0, published - base), published + base + 1)
    ok = [n for n in near if shown_n(n, base=base, below=below, ties=ties) == published]
    if not ok:
        raise InputError(
            "a published N is not one that the rounding rule can print",
            next_step="check n_published against n_round_base and n_round_below",
        )
    return min(ok), max(ok)


def half_width(decimals: int) -> Decimal:
    """How far a published number can be from the truth: half of its last place."""
    return Decimal(5).scaleb(-decimals - 1)


__all__ = [
    "half_width",
    "round_value",
    "rounded_n_interval",
    "shown_n",
]
