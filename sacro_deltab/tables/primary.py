"""Primary cells: too few people, nobody, or one person too large a part of the whole."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from ..base.errors import InputError

if TYPE_CHECKING:
    from .table import Problem


def is_primary_n(n: int, min_n: int, zeros_are_primary: bool) -> bool:
    """Whether a group of `n` people is too small."""
    return n < min_n and (n > 0 or zeros_are_primary)


def primary_cells(problem: Problem) -> tuple[str, ...]:
    """Sorted ids: every cell below the minimum, zeros if the policy says so, and those declared (dominance)."""
    policy = problem.policy
    found = {cell.id for cell in problem.cells.values() if is_primary_n(cell.n, policy.min_n, policy.zeros_are_primary)}
    return tuple(sorted((found | problem.declared_primary) - problem.structural_zero))


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


def dominance_violated(values: Iterable[float], limit: Fraction) -> bool:
    """Strictly more than the limit, in exact arithmetic."""
    return dominance_share(values) > limit
