"""Comparators: one function each, in one dictionary. Strict or not is visible in the word.

`slack` is 1e-9 for named limits, which are worked out in floating point (D-66), and 0 for written numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .model import Limit

NAMED_SLACK = 1e-9


@dataclass(frozen=True)
class Comparator:
    """A word of the language: its test, how it reads, and which kinds of fact it may be said of."""

    word: str
    test: Callable[[Any, Any, float], bool]
    reads: str
    kinds: frozenset[str]
    takes: str  # "number" | "value" | "values" | "pair"


def _at_least(value: float, limit: float, slack: float) -> bool:
    return value >= limit - abs(limit) * slack


def _at_most(value: float, limit: float, slack: float) -> bool:
    return value <= limit + abs(limit) * slack


def _more_than(value: float, limit: float, _slack: float) -> bool:
    return value > limit


def _less_than(value: float, limit: float, _slack: float) -> bool:
    return value < limit


def _is(value: Any, limit: Any, _slack: float) -> bool:
    # True == 1 in Python; a boolean fact must never equal a number.
    return isinstance(value, bool) == isinstance(limit, bool) and value == limit


def _is_one_of(value: Any, limit: tuple[Any, ...], slack: float) -> bool:
    return any(_is(value, one, slack) for one in limit)


def _outside(value: float, limit: tuple[float, float], _slack: float) -> bool:
    low, high = limit
    return value < low or value > high


_NUMBERS = frozenset({"integer", "number"})
_ANY = frozenset({"integer", "number", "boolean", "text"})

COMPARATORS: dict[str, Comparator] = {
    c.word: c
    for c in (
        Comparator("at_least", _at_least, "at least", _NUMBERS, "number"),
        Comparator("at_most", _at_most, "at most", _NUMBERS, "number"),
        Comparator("more_than", _more_than, "more than", _NUMBERS, "number"),
        Comparator("less_than", _less_than, "less than", _NUMBERS, "number"),
        Comparator("is", _is, "", _ANY, "value"),
        Comparator("is_one_of", _is_one_of, "one of", _ANY, "values"),
        Comparator("outside", _outside, "outside", _NUMBERS, "pair"),
    )
}


def compare(word: str, value: Any, limit: Limit, *, named: bool = False) -> bool:
    """Whether `value word limit` holds. Total for the types a loaded rule set allows."""
    return COMPARATORS[word].test(value, limit, NAMED_SLACK if named else 0.0)
