"""Dominance: one person too large a part of the whole, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ..base.errors import InputError


def exact(value: float | int) -> Fraction:
    """The decimal a person reads, as an exact fraction."""
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(int(value))


def dominance_share(values: Iterable[float]) -> Fraction:
    """Largest |value| of one person ÷ sum of all |values|; 0 when the sum is 0.

    The signed sum is never used: deltas cancel and the quotient would mean nothing.

    Parameters
    ----------
    values
        One value per person.
    """
    sizes = []
    for value in values:
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            raise InputError("a value is not finite", next_step="remove or impute it first")
        sizes.append(abs(exact(number)))
    total = sum(sizes, Fraction(0))
    return max(sizes) / total if total else Fraction(0)
