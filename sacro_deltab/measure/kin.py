"""Which columns are copies of one another: the same people's values in other units, shifted, or with a few changed.

Two statistics of a column and its copy differ by what is different between the copies. Where that is a few people,
subtracting the two tells of them; where it is only the unit or an offset, the second statistic adds digits that
rounding had taken away. Everything here sees per-subject values and stays on the facts side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .people import Floats

_EXACT = 1e-7  # of the spread: the same number after arithmetic in floats
_BLUR = 2e-2  # of the spread: a rounded or blurred copy, closer than another model's deltas
_NEAR = 1e-1
_MOST = 0.9  # share of people whom a blurred copy must hold for
_PAIRS = 20_000
_TRIPLES = 32
_CHANCE = 8  # equal slopes among `_PAIRS` that no two unrelated columns have
_BLOCK = 400

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


@dataclass(frozen=True)
class Match:
    """Column `new` is a copy of column `old`, but for `gap` people (changed, or in one of the two only)."""

    new: int
    old: int
    gap: int
    shifted: bool  # another unit or offset


def near_copies(new: Matrix, old: Matrix, most: int) -> Iterator[Match]:
    """Columns of `new` that are copies of columns of `old` for all but `most` people, blurred copies included.

    Parameters
    ----------
    new, old
        (people, columns); NaN where a person is not behind the column's statistic. Where both are the same table each
        pair of columns is looked at once.
    most
        Largest `gap` reported.
    """
    rng = np.random.default_rng(new.shape[0])
    for columns in _alike(np.isfinite(new)):
        people = np.flatnonzero(np.isfinite(new[:, columns[0]]))
        if people.size < 4:
            continue
        triples = people[np.stack([rng.permutation(people.size)[:3] for _ in range(_TRIPLES)])]
        for start in range(0, len(columns), _BLOCK):
            block = columns[start : start + _BLOCK]
            for later in range(0, old.shape[1], _BLOCK):
                ends = range(later, min(later + _BLOCK, old.shape[1]))
                yield from _block(new, old, block, list(ends), triples, most)


def _alike(finite: Mask) -> list[list[int]]:
    """Columns by who has a value."""
    groups: dict[bytes, list[int]] = {}
    for j in range(finite.shape[1]):
        groups.setdefault(np.packbits(finite[:, j]).tobytes(), []).append(j)
    return list(groups.values())


def _block(
    new: Matrix, old: Matrix, mine: list[int], theirs: list[int], triples: npt.NDArray[np.int64], most: int
) -> Iterator[Match]:
    ours, known = _ratios(new[:, mine], triples), _ratios(old[:, theirs], triples)
    for at, j in enumerate(mine):
        ratio = ours[:, at : at + 1]
        with np.errstate(invalid="ignore"):
            apart = np.abs(known - ratio) / (1 + np.abs(ratio))
        exact, blurred = (apart <= 1e-6).sum(axis=0), (apart <= 5e-2).sum(axis=0)
        for where in np.flatnonzero((exact >= 2) | (blurred >= _TRIPLES // 3)):
            if new is old and theirs[where] >= j:  # itself, or a pair that comes the other way round
                continue
            found = _gap(new[:, j], old[:, theirs[where]], triples, most)
            if found is not None:
                yield Match(j, theirs[where], *found)


def _ratios(columns: Matrix, triples: npt.NDArray[np.int64]) -> Matrix:
    """(triples, columns) position of the first of three people between the other two: blind to unit and offset."""
    i, j, k = triples.T
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        out: Matrix = (columns[i] - columns[j]) / (columns[k] - columns[j])
    out[~np.isfinite(out)] = np.nan
    return out


def _gap(new: Floats, old: Floats, triples: npt.NDArray[np.int64], most: int) -> tuple[int, bool] | None:
    """(people in whom the two differ, whether unit or offset differ), the smallest over the lines through a few."""
    if np.array_equal(new, old, equal_nan=True):
        return 0, False
    both = np.isfinite(new) & np.isfinite(old)
    only = int((np.isfinite(new) ^ np.isfinite(old)).sum())
    if only > most or not both.any():
        return None
    scale = float(np.std(new[both])) or 1.0
    best: tuple[int, bool] | None = None
    for slope, offset, exact in _lines(new, old, both, triples):
        with np.errstate(invalid="ignore", over="ignore"):
            away = np.abs(new - slope * old - offset)[both] / scale
        if exact:
            changed = int((away > 1e-6).sum())
        elif (away <= _BLUR).sum() >= _MOST * away.size:
            changed = int((away > _NEAR).sum())
        else:
            continue
        if only + changed <= most and 2 * changed < away.size and (best is None or only + changed < best[0]):
            best = (only + changed, (slope, offset) != (1.0, 0.0))
    return best


def _lines(new: Floats, old: Floats, both: Mask, triples: npt.NDArray[np.int64]) -> Iterator[tuple[float, float, bool]]:
    """(slope, offset, whether the copy is exact): the identity, lines through two people, and the robust line."""
    yield 1.0, 0.0, True
    for i, _, k in triples[:8]:
        run = old[k] - old[i]
        if np.isfinite(run) and run != 0 and np.isfinite(new[k] - new[i]) and new[k] != new[i]:
            slope = float((new[k] - new[i]) / run)
            yield slope, float(new[i] - slope * old[i]), True
    x, y = old[both], new[both]
    half = x.size // 2
    order = np.argsort(x)
    run = x[order[half:]] - x[order[: x.size - half]]
    far = run > 0
    if far.any():
        slope = float(np.median((y[order[half:]] - y[order[: x.size - half]])[far] / run[far]))
        offset = float(np.median(y - slope * x))
        same = abs(slope - 1) < _BLUR and abs(offset) < _BLUR * float(np.std(y))
        yield (1.0, 0.0, False) if same else (slope, offset, False)


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
