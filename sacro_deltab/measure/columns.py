"""Which columns are copies of one another: the same people's values in other units, shifted, or with a few changed.

Two statistics of a column and its copy differ by what is different between the copies. Where that is a few people,
subtracting the two tells of them; where it is only the unit or an offset, the second statistic adds digits that
rounding had taken away. Everything here sees per-subject values and stays on the facts side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from .people import Floats

_EXACT = 1e-7  # of the spread: the same number after arithmetic in floats
_BLUR = 2e-2  # of the spread: a rounded or blurred copy, closer than another model's deltas
_NEAR = 1e-1
_MOST = 0.9  # share of people whom a blurred copy must hold for
_PAIRS = 20_000
_TRIPLES = 32
_LEVELS = 10  # values up to which a column is coarse
_COARSE = 400  # people looked at to see it
_CHANCE = 8  # equal slopes among `_PAIRS` that no two unrelated columns have

Mask = npt.NDArray[np.bool_]
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Copy:
    """`values` is slope · known + offset for the people in `agree` (of those with both values)."""

    slope: float
    offset: float
    agree: Mask
    both: Mask

    @property
    def share(self) -> float:
        """Share of the people with both values for whom it holds."""
        return float(self.agree.sum()) / max(int(self.both.sum()), 1)

    @property
    def identical(self) -> bool:
        """Same unit, no offset."""
        return self.slope == 1.0 and self.offset == 0.0


def copy_of(known: Floats, values: Floats) -> Copy | None:
    """How `values` is a copy of `known`, for at least a part of the people with both; None where it is none.

    Every slope and offset is considered, and copies of a minority are found: slopes between many pairs of people are
    compared, and unrelated columns have no two alike. A copy rounded or blurred by less than a fiftieth of its spread
    counts when it is one for nearly everybody.
    """
    both = np.isfinite(known) & np.isfinite(values)
    n = int(both.sum())
    if n == 0:
        return None
    same = both & (known == values)
    if same.sum() == n or (n < 5 and same.any()):
        return Copy(1.0, 0.0, same, both)
    k, v = known[both], values[both]
    if n < 5 or np.ptp(k) == 0 or np.ptp(v) == 0:
        return None
    slopes = _slopes(k, v)
    distinct = min(np.unique(k).size, np.unique(v).size) > 0.9 * n
    least = max(5.0, 0.02 * n) if distinct else 0.5 * n  # coarse values agree by chance
    best: Copy | None = None
    for slope, offset, tolerance in [(1.0, 0.0, _EXACT), *_fits(k, v, slopes)]:
        agree = np.zeros_like(both)
        scale = max(float(np.std(v)), abs(slope) * float(np.std(k)))
        agree[both] = np.abs(v - slope * k - offset) <= tolerance * scale
        found = Copy(slope, offset, agree, both)
        enough = int(agree.sum()) > least if tolerance == _EXACT else found.share >= _MOST
        if enough and (best is None or found.share > best.share):
            best = found
    return best


def near(copy: Copy, known: Floats, values: Floats) -> bool:
    """Whether the people for whom a copy does not hold exactly are close to it all the same (a blurred copy)."""
    rest = copy.both & ~copy.agree
    if not rest.any():
        return True
    scale = float(np.std(values[copy.both]))
    return bool((np.abs(values[rest] - copy.slope * known[rest] - copy.offset) <= _NEAR * scale).all())


def _slopes(k: Floats, v: Floats) -> Floats:
    rng = np.random.default_rng(k.size)
    first, second = rng.integers(0, k.size, (2, _PAIRS))
    run = k[first] - k[second]
    far = np.abs(run) > 1e-3 * float(np.ptp(k))
    return np.sort((v[first] - v[second])[far] / run[far])


def _fits(k: Floats, v: Floats, slopes: Floats) -> Iterator[tuple[float, float, float]]:
    """(slope, offset, tolerance): the commonest exact line, and the robust one through most people."""
    if not slopes.size:
        return
    common, times = _commonest(slopes, 1e-7)
    if times >= _CHANCE and abs(common) > 1e-9:
        slope = 1.0 if abs(common - 1) < 1e-7 else common
        offset, _ = _commonest(np.sort(v - slope * k), _EXACT * float(np.std(v)), absolute=True)
        yield slope, 0.0 if abs(offset) < 1e-7 * float(np.std(v)) else offset, _EXACT
    slope = float(np.median(slopes))
    offset = float(np.median(v - slope * k))
    if abs(slope - 1) < _BLUR and abs(offset) < _BLUR * float(np.std(v)):
        slope, offset = 1.0, 0.0
    if slope:
        yield slope, offset, _BLUR


def _commonest(ordered: Floats, width: float, *, absolute: bool = False) -> tuple[float, int]:
    """Middle and size of the fullest window of sorted numbers."""
    ends = ordered + (width if absolute else width * np.maximum(np.abs(ordered), 1e-3))
    counts = np.searchsorted(ordered, ends, side="right") - np.arange(ordered.size)
    start = int(np.argmax(counts))
    times = int(counts[start])
    return float(np.median(ordered[start : start + times])), times


def holds(copy: Copy, known: Floats, values: Floats) -> Mask:
    """The people for whom a copy holds; of one that holds for nearly everybody, those it nearly holds for as well."""
    if copy.share < _MOST:
        return copy.agree
    scale = float(np.std(values[copy.both]))
    with np.errstate(invalid="ignore"):
        close: Mask = np.abs(values - copy.slope * known - copy.offset) <= _NEAR * scale
    return copy.agree | (copy.both & close)


class Known:
    """Some columns, laid out to be compared with many others."""

    def __init__(self, columns: Sequence[Floats]) -> None:
        self.columns: list[Floats] = []
        self._groups: dict[bytes, list[int]] = {}  # by who has a value
        self._seen: dict[bytes, npt.NDArray[np.float64]] = {}  # ratios of a group's columns, over all its people
        for column in columns:
            self.add(column)

    def add(self, column: Floats) -> None:
        """One more."""
        self._groups.setdefault(np.packbits(np.isfinite(column)).tobytes(), []).append(len(self.columns))
        self.columns.append(column)

    def replace(self, j: int, column: Floats) -> None:
        """Another column in the place of one."""
        self.columns[j] = column
        self._seen.clear()

    def _theirs(self, key: bytes, triples: npt.NDArray[np.int64], *, whole: bool) -> npt.NDArray[np.float64]:
        """(triples, columns) of a group; where they are of all its people they are the same for every column."""
        indices = self._groups[key]
        seen = self._seen.get(key) if whole else None
        done = 0 if seen is None else seen.shape[1]
        if done < len(indices):
            new = _ratios(np.stack([self.columns[j][triples] for j in indices[done:]], axis=2))
            seen = new if seen is None else np.concatenate([seen, new], axis=1)
            if whole:
                self._seen[key] = seen
        assert seen is not None
        return seen

    def like(self, column: Floats) -> list[int]:
        """Which of the columns may be copies of one, at least for a good part of the people: all others are none.

        Three people's positions to one another are blind to unit and offset. A copy of a minority who are not marked
        as missing elsewhere (another column for the rest) may be overlooked here.
        """
        if np.unique(column[np.isfinite(column)][:_COARSE]).size <= _LEVELS:
            return _coarse_alike(column, self.columns)
        out: list[int] = []
        for key, indices in self._groups.items():
            both = np.isfinite(column) & np.isfinite(self.columns[indices[0]])
            people = np.flatnonzero(both)
            if people.size < 4:
                continue
            triples = people[_some_triples(people.size)]
            theirs = self._theirs(key, triples, whole=np.packbits(both).tobytes() == key)
            mine = _ratios(column[triples][:, :, None])
            with np.errstate(invalid="ignore"):
                apart = np.abs(theirs - mine) / (1 + np.abs(mine))
            hit = ((apart <= 1e-6).sum(axis=0) >= 2) | ((apart <= 5e-2).sum(axis=0) >= _TRIPLES // 3)
            out += [indices[k] for k in np.flatnonzero(hit)]
        return sorted(out)


@lru_cache(maxsize=64)
def _some_triples(people: int) -> npt.NDArray[np.int64]:
    """(triples, 3) positions, the same for everybody who asks for as many people."""
    rng = np.random.default_rng(people)
    return np.stack([rng.permutation(people)[:3] for _ in range(_TRIPLES)])


def _coarse_alike(column: Floats, known: Sequence[Floats]) -> list[int]:
    """Columns of few values: those with as few, and as many people at each but for some."""
    out = []
    mine = np.unique(column[np.isfinite(column)], return_inverse=True)[1]
    at = np.flatnonzero(np.isfinite(column))
    for j, other in enumerate(known):
        here = np.isfinite(other[at])
        levels, theirs = np.unique(other[at][here], return_inverse=True)
        if levels.size > 2 * _LEVELS or not here.any():
            continue
        same = max(float((theirs == mine[here]).mean()), float((theirs == mine.max() - mine[here]).mean()))
        if same > 0.5:
            out.append(j)
    return out


def _ratios(three: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(triples, 3, columns) → position of the first of three people between the other two, blind to unit and offset."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        out: npt.NDArray[np.float64] = (three[:, 0] - three[:, 1]) / (three[:, 2] - three[:, 1])
    return out


def rest_on(values: Floats) -> Mask:
    """The people whose values a sum of the column tells of: where most people have the same value, the others."""
    known: Mask = np.isfinite(values)
    levels, counts = np.unique(values[known], return_counts=True)
    if levels.size < 2 or 2 * counts.max() <= counts.sum():
        return known
    apart: Mask = values != levels[int(np.argmax(counts))]
    return np.logical_and(known, apart)


def two_levels(values: Floats) -> bool:
    """Whether values are an indicator: two levels, or two tight clusters far from one another."""
    known = np.sort(values[np.isfinite(values)])
    if known.size < 3 or known[0] == known[-1]:
        return False
    if np.unique(known).size == 2:
        return True
    n = np.arange(1, known.size)
    left, squares = np.cumsum(known)[:-1], np.cumsum(known**2)[:-1]
    total, total_squares = known.sum(), (known**2).sum()
    within = squares - left**2 / n + (total_squares - squares) - (total - left) ** 2 / (known.size - n)
    return bool(within.min() < 0.01 * float(((known - known.mean()) ** 2).sum()))
