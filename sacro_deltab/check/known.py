"""What the checker knows while it reads: numbers of people, ages, deltas, values that leave in other outputs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Released:
    """One value that another output states."""

    name: str
    value: float
    resolution: float  # half of its last digit


@dataclass
class Known:
    """Context of one check.

    ns: numbers of people known from evidence, facts, a cohort, or recovered from a file. ages and columns: the
    cohort's per-subject columns, sorted, when `--cohort` is given (inside the TRE only).
    """

    ns: set[int] = field(default_factory=set)
    columns: dict[str, array[float]] = field(default_factory=dict)
    released: list[Released] = field(default_factory=list)
    noise_word: str | None = None

    def add_ns(self, values: Iterable[int]) -> None:
        """Remember numbers of people; tiny ones say nothing about an array's length."""
        self.ns.update(v for v in values if v >= 5)
