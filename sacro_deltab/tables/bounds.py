"""What a reader is told of groups, as bounds, and what that says at once of every class of atoms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .layout import IntArray, Layout, take
from .solver import Contradiction, SolverError

OPEN = 2**62  # no upper bound
MOST = 10**13  # larger numbers are no counts of people; sums of a hundred thousand of them fit into 64 bits
WORK = 20_000_000  # entries looked at, after which bounds are left as they are: they still hold


@dataclass(frozen=True)
class Count:
    """`lo` ≤ people in `atoms` ≤ `hi` (`None`: no upper bound)."""

    atoms: tuple[int, ...]
    lo: int
    hi: int | None
    source: str


@dataclass(frozen=True)
class GroupBounds:
    """`lo[i]` ≤ people in group i of the layout ≤ `hi[i]` (`OPEN`: no upper bound), where `told[i]`."""

    layout: Layout
    lo: IntArray
    hi: IntArray
    told: np.ndarray

    @classmethod
    def of(cls, n_atoms: int, counts: Iterable[Count], targets: Iterable[Sequence[int]]) -> GroupBounds:
        """From numbers of groups, with the groups that will be asked about."""
        counts = list(counts)
        out = cls.nothing(Layout.of(n_atoms, [*(c.atoms for c in counts), *targets]))
        out.tell(counts)
        return out

    @classmethod
    def nothing(cls, layout: Layout) -> GroupBounds:
        """Nothing is told yet."""
        size = len(layout.groups)
        return cls(layout, np.zeros(size, np.int64), np.full(size, OPEN), np.zeros(size, dtype=bool))

    def tell(self, counts: Iterable[Count]) -> None:
        """Add numbers of groups of the layout."""
        for count in counts:
            i = self.layout.index[count.atoms]
            self.told[i] = True
            self.lo[i] = max(int(self.lo[i]), _small(count.lo))
            if count.hi is not None:
                self.hi[i] = min(int(self.hi[i]), _small(count.hi))

    def tell_all(self, groups: IntArray, lo: IntArray, hi: IntArray) -> None:
        """Add numbers of many groups, by their positions."""
        self.told[groups] = True
        np.maximum.at(self.lo, groups, lo)
        np.minimum.at(self.hi, groups, hi)


def _small(value: int) -> int:
    if value > MOST:
        raise SolverError("a number is too large to be a count of people", next_step="correct it")
    return value


def limits(lo: Sequence[int], hi: Sequence[int | None]) -> tuple[IntArray, IntArray]:
    """Bounds as arrays."""
    return (
        np.asarray([_small(v) for v in lo], dtype=np.int64),
        np.asarray([OPEN if v is None else _small(v) for v in hi], dtype=np.int64),
    )


def contradiction() -> Contradiction:
    return Contradiction("the published numbers contradict each other", next_step="check the table's totals")


@dataclass(frozen=True)
class FreeRows:
    """What is left when every class known at once is taken out.

    `lo`, `hi`: of every class. `free`: classes not known yet. Row j holds the free classes
    `classes[start[j]:start[j + 1]]` of group `group[j]` of the layout, together `row_lo[j]` to `row_hi[j]` people.
    """

    lo: IntArray
    hi: IntArray
    free: np.ndarray
    classes: IntArray
    start: IntArray
    row_lo: IntArray
    row_hi: IntArray
    group: IntArray


def class_bounds(known: GroupBounds, rounds: int = 50) -> FreeRows:
    """Bounds of every class by propagation: fewer rounds are only looser.

    Raises
    ------
    Contradiction
        No table fits what is told.
    """
    layout = known.layout
    lo, hi = np.zeros(layout.k, np.int64), np.full(layout.k, OPEN)
    alone = np.flatnonzero(known.told & (layout.size == 1))  # most cells of a table: known at once
    one = layout.classes[layout.start[alone]]
    np.maximum.at(lo, one, known.lo[alone])
    np.minimum.at(hi, one, known.hi[alone])
    if (lo > hi).any():
        raise contradiction()
    longer = np.flatnonzero(known.told & (layout.size > 1))
    classes, start = take(layout.classes, layout.start, longer)
    left = _take_out(FreeRows(lo, hi, lo < hi, classes, start, known.lo[longer], known.hi[longer], longer))
    np.minimum.at(hi, left.classes, np.repeat(left.row_hi, np.diff(left.start)))
    if (lo > hi).any():
        raise contradiction()
    for _ in range(max(2, min(rounds, WORK // max(1, len(left.classes))))):
        if not _tighten(left):
            break
    left = _take_out(left)
    single = np.flatnonzero(np.diff(left.start) == 1)  # where the rounds ended early
    np.maximum.at(lo, left.classes[left.start[single]], left.row_lo[single])
    np.minimum.at(hi, left.classes[left.start[single]], left.row_hi[single])
    if (lo > hi).any():
        raise contradiction()
    return left


def _totals(values: IntArray, start: IntArray) -> IntArray:
    total = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=total[1:])
    return total[start[1:]] - total[start[:-1]]


def _take_out(rows: FreeRows) -> FreeRows:
    """Without the classes that are known by now, and without rows that are empty then."""
    free = rows.lo < rows.hi
    kept = free[rows.classes]
    fixed = _totals(np.where(kept, 0, rows.lo[rows.classes]), rows.start)
    size = _totals(kept.astype(np.int64), rows.start)
    row_lo, row_hi = rows.row_lo - fixed, np.where(rows.row_hi == OPEN, OPEN, rows.row_hi - fixed)
    if ((size == 0) & ((row_lo > 0) | (row_hi < 0))).any():
        raise contradiction()
    some = size > 0
    start = np.concatenate([[0], np.cumsum(size[some])])
    return FreeRows(rows.lo, rows.hi, free, rows.classes[kept], start, row_lo[some], row_hi[some], rows.group[some])


def _tighten(rows: FreeRows) -> bool:
    """One round over every row, bounds changed in place; whether any moved."""
    lo, hi, classes, start = rows.lo, rows.hi, rows.classes, rows.start
    size = np.diff(start)
    low, high = lo[classes], hi[classes]
    opened = high == OPEN
    top = np.where(opened, 0, high)
    low_sum, top_sum, open_sum = _totals(low, start), _totals(top, start), _totals(opened.astype(np.int64), start)
    if (low_sum > rows.row_hi).any() or ((open_sum == 0) & (top_sum < rows.row_lo)).any():
        raise contradiction()
    cap = np.repeat(np.where(rows.row_hi == OPEN, OPEN, rows.row_hi - low_sum), size)
    cap = np.where(cap == OPEN, OPEN, cap + low)
    others_open = np.repeat(open_sum, size) - opened
    floor = np.where(others_open == 0, np.repeat(rows.row_lo - top_sum, size) + top, 0)
    moved = bool((cap < high).any() or (floor > low).any())
    if moved:
        np.minimum.at(hi, classes, cap)
        np.maximum.at(lo, classes, floor)
        if (lo > hi).any():
            raise contradiction()
    return moved
