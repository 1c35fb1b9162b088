"""What every cell of a problem would say if it were published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from .bounds import Count
from .layout import IntArray


@dataclass(frozen=True)
class Mean:
    """`lo` ≤ mean over `atoms` ≤ `hi`."""

    atoms: tuple[int, ...]
    lo: Fraction
    hi: Fraction
    source: str


@dataclass(frozen=True)
class Reading:
    """What every cell of a problem would say if it were published: the same for every pattern."""

    ids: tuple[str, ...]
    counts: tuple[Count, ...]
    means: tuple[Mean | None, ...]
    squares: tuple[Mean | None, ...]
    spans: tuple[bool, ...]  # whether its N, its mean or its SD is printed
    groups: IntArray  # position in the problem's layout
    lo: IntArray  # of N
    hi: IntArray

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Position of every cell."""
        return {name: i for i, name in enumerate(self.ids)}

    def printed(self, suppressed: frozenset[str]) -> list[bool]:
        """For every cell, whether a pattern prints it."""
        out = [True] * len(self.ids)
        for name in suppressed:
            out[self.place[name]] = False
        return out
