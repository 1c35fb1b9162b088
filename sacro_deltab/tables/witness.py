"""Large systems: a second table that fits proves that a reader cannot know.

Where an interval is too expensive to be exact, only a bound that holds it is reported; such a bound must never make a
cell look protected. So the judge, who knows the true table, changes a part of it in every way that everything printed
allows, the rest held fast: a reader knows less, and his interval is at least as wide as what is found here. Sums and
people vary in the rationals; with the hundreds of classes of such systems whole numbers add next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .identities import Identity
from .layout import flatten, merge_atoms
from .reading import Mean
from .released import Released
from .solver import INF, FloatArray, Model
from .table import Atom, Problem

INSIDE, OUTSIDE = 200, 700  # classes that may change, of the group and of everybody else
WORK = 20_000_000  # cells asked about × members of everything printed; beyond, a cell is taken as known
LpRow = tuple[list[int], list[float], float, float]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Room:
    """What a group's N or mean can change to, at least, and the cells whose printed numbers stop it there."""

    low: float
    high: float
    tight: frozenset[str] = frozenset()

    @property
    def width(self) -> float:
        """How far apart two tables that fit can be."""
        return self.high - self.low


class _Groups:
    """Groups of atoms over classes, to find those that touch a few classes without going through all."""

    def __init__(self, groups: Sequence[Sequence[int]], label: IntArray, k: int) -> None:
        atoms, start = flatten(groups)
        key = np.unique(np.repeat(np.arange(len(groups)), np.diff(start)) * k + label[atoms])  # a class once per group
        self.k, self.group, self.classes = k, key // k, key % k
        self.start = np.searchsorted(self.group, np.arange(len(groups) + 1))

    def totals(self, values: FloatArray) -> FloatArray:
        """Sum over the classes of every group."""
        return np.bincount(self.group, values[self.classes], len(self.start) - 1).astype(np.float64)

    def touching(self, place: IntArray) -> Iterator[tuple[int, list[int]]]:
        """Groups with a class in `place` (ascending), and where in it."""
        position = np.full(self.k, -1)
        position[place] = np.arange(len(place))
        here = position[self.classes]
        hits = np.flatnonzero(here >= 0)
        groups, first = np.unique(self.group[hits], return_index=True)
        columns, ends = here[hits].tolist(), [*first.tolist(), len(hits)]
        for n, i in enumerate(groups.tolist()):
            yield i, columns[ends[n] : ends[n + 1]]


class Witness:
    """The true table and everything a reader knows, by classes of people that no cell tells apart."""

    def __init__(self, seen: Released, atoms: Sequence[Atom], identities: Sequence[Identity] = ()) -> None:
        self.seen, self.identities = seen, identities
        groups = [c.atoms for c in seen.counts] + [m.atoms for m in seen.means] + list(seen.targets.values())
        for identity in identities:
            parts: dict[float, list[int]] = {}
            for atom, c in zip(identity.atoms, identity.coefficients, strict=True):
                parts.setdefault(c, []).append(atom)
            groups += [tuple(part) for part in parts.values()]
        self.label, self.k = merge_atoms(len(atoms), list(dict.fromkeys(groups)))
        label = self._label = np.asarray(self.label, dtype=np.intp)
        self.people: FloatArray = np.bincount(label, [a.n for a in atoms], self.k).astype(np.float64)
        self.has_sums = all(a.sum is not None for a in atoms)
        self.has_squares = all(a.sumsq is not None for a in atoms)
        self.sums: FloatArray = np.bincount(label, [a.sum or 0.0 for a in atoms], self.k).astype(np.float64)
        self.squares: FloatArray = np.bincount(label, [a.sumsq or 0.0 for a in atoms], self.k).astype(np.float64)

    def _classes(self, atoms: Sequence[int]) -> list[int]:
        return sorted({self.label[a] for a in atoms})

    def _array(self, atoms: Sequence[int]) -> IntArray:
        return np.unique(self._label[list(atoms)])

    @cached_property
    def _counts(self) -> tuple[_Groups, FloatArray]:
        """Groups whose N is told, and their people."""
        groups = _Groups([count.atoms for count in self.seen.counts], self._label, self.k)
        return groups, groups.totals(self.people)

    @cached_property
    def _printed(self) -> set[int]:
        """Classes printed exactly and by themselves: they never change."""
        groups, _ = self._counts
        first, size = groups.classes[groups.start[:-1]].tolist(), np.diff(groups.start).tolist()
        return {c for c, n, count in zip(first, size, self.seen.counts, strict=True) if n == 1 and count.lo == count.hi}

    @cached_property
    def _means(self) -> _Groups:
        return _Groups([mean.atoms for mean in self.seen.means], self._label, self.k)

    @cached_property
    def _squares(self) -> _Groups:
        return _Groups([mean.atoms for mean in self.seen.squares], self._label, self.k)

    @cached_property
    def _withheld(self) -> list[list[int]]:
        """Classes of every withheld cell, the smallest first."""
        return sorted((self._classes(atoms) for atoms in self.seen.targets.values()), key=len)

    @cached_property
    def cells(self) -> int:
        """How many cells may be asked about."""
        size = sum(len(c.atoms) for c in self.seen.counts) + sum(len(m.atoms) for m in self.seen.means)
        return max(100, WORK // max(1, size))

    def _place(self, group: Sequence[int]) -> IntArray:
        """Classes that may change: of the group, of other withheld cells, the smallest first (what is withheld beside a
        small cell can only move with it), and of everybody (fixed seed)."""
        rng = np.random.default_rng(7)
        inside = self._classes(group)
        taken, room = set(inside), OUTSIDE // 2
        chosen = _some(rng, inside, INSIDE)
        for i, classes in enumerate(self._withheld):
            new = [c for c in classes if c not in taken]
            some = _some(rng, new, max(1, room // (len(self._withheld) - i)) if len(new) > room // 4 else room)
            chosen += some
            room -= len(some)
            taken.update(new)
        rest = sorted(set(range(self.k)) - set(inside) - set(chosen) - self._printed)
        chosen += _some(rng, rest, OUTSIDE - OUTSIDE // 2)
        return np.asarray(sorted(chosen), dtype=np.intp)

    def people_of(self, group: Sequence[int]) -> float:
        """True N of a group of atoms."""
        return float(self.people[self._array(group)].sum())

    def n_room(self, group: Sequence[int], enough: float = INF) -> Room:
        """People by which the N of a group of atoms can differ between two tables that fit.

        Parameters
        ----------
        enough
            A width from which nothing more is asked.
        """
        place = self._place(group)
        rows: list[tuple[str, LpRow]] = []
        groups, people = self._counts
        for i, columns in groups.touching(place):
            count, true = self.seen.counts[i], float(people[i])
            top = INF if count.hi is None else count.hi - true
            rows.append((count.source, (columns, [1.0] * len(columns), count.lo - true, top)))
        return self._room(group, place, rows, -self.people[place], np.full(len(place), INF), enough)

    def mean_room(self, group: Sequence[int], enough: float = INF) -> Room:
        """Years by which the mean of a group can differ, everybody's N being as it is; 0 where sums are unknown."""
        classes = self._array(group)
        people = float(self.people[classes].sum())
        if not self.has_sums or people <= 0 or (self.seen.squares and not self.has_squares):
            return Room(0.0, 0.0)
        place = self._place(group)
        rows = self._rows(self.seen.means, self._means, self.sums, place)
        rows += [("", row) for identity in self.identities if (row := self._identity(identity, place)) is not None]
        low, high = self.seen.value_bounds or (-1e6, 1e6)
        n_of, s_of = self.people[place], self.sums[place]
        wanted = INF if self.seen.squares else enough * people  # squares cut both ends
        sums = self._room(group, place, rows, low * n_of - s_of, high * n_of - s_of, wanted)
        true = float(self.sums[classes].sum())
        least, most, tight = (true + sums.low) / people, (true + sums.high) / people, sums.tight
        if self.seen.squares:
            root, more = self._root(group, place, max(abs(low), abs(high)) ** 2)
            least, most, tight = max(least, -root), min(most, root), tight | more
        return Room(least, max(least, most), tight)

    def _root(self, group: Sequence[int], place: IntArray, largest: float) -> tuple[float, frozenset[str]]:
        """Largest |mean| that the printed SDs leave to the group, and the cells that say so."""
        n_of, q_of = self.people[place], self.squares[place]
        least = self.sums[place] ** 2 / np.maximum(n_of, 1)
        rows = self._rows(self.seen.squares, self._squares, self.squares, place)
        found = self._room(group, place, rows, least - q_of, largest * n_of - q_of)
        classes = self._array(group)
        top = (self.squares[classes].sum() + found.high) / self.people[classes].sum()
        return float(np.sqrt(max(0.0, top))), found.tight

    def _columns(self, place: IntArray, classes: IntArray) -> list[int]:
        """Positions in `place` of these classes."""
        at = np.minimum(np.searchsorted(place, classes), len(place) - 1)
        hits: list[int] = at[place[at] == classes].tolist()
        return hits

    def _rows(
        self, means: Sequence[Mean], groups: _Groups, true: FloatArray, place: IntArray
    ) -> list[tuple[str, LpRow]]:
        """lo·N ≤ Σ ≤ hi·N with what does not change at its true value."""
        rows: list[tuple[str, LpRow]] = []
        people, sums = groups.totals(self.people), groups.totals(true)
        for i, columns in groups.touching(place):
            mean, n, fixed = means[i], float(people[i]), float(sums[i])
            ends = float(mean.lo) * n - fixed, float(mean.hi) * n - fixed
            rows.append((mean.source, (columns, [1.0] * len(columns), *ends)))
        return rows

    def _identity(self, identity: Identity, place: IntArray) -> LpRow | None:
        weight = np.zeros(self.k)
        label = self._label[list(identity.atoms)]
        weight[label] = identity.coefficients
        slack = np.zeros(self.k)
        slack[label] = identity.slack
        classes = np.unique(label)
        columns = self._columns(place, classes)
        if not columns:
            return None
        true, room = float(weight[classes] @ self.sums[classes]), float(slack[classes] @ self.people[classes])
        room += 1e-9 * float(np.abs(weight[classes] * self.sums[classes]).sum())
        return columns, weight[place[columns]].tolist(), -room - true, room - true

    def _room(
        self,
        group: Sequence[int],
        place: IntArray,
        rows: list[tuple[str, LpRow]],
        lower: FloatArray,
        upper: FloatArray,
        enough: float = INF,
    ) -> Room:
        """Least and largest change of the group's total; none where the solver has no answer."""
        cost = np.zeros(len(place))
        cost[self._columns(place, self._array(group))] = 1.0
        model = Model(lower, upper)
        model.add_rows([row for _, row in rows])
        fits = bool((lower <= 0).all() and (upper >= 0).all()) and all(low <= 0 <= high for _, (*_, low, high) in rows)
        ends = [0.0, 0.0]
        tight: set[str] = set()
        for i, sign in enumerate((1.0, -1.0)):
            found = model.minimise(sign * cost)
            if found.status not in ("optimal", "unbounded"):
                return Room(0.0, 0.0)
            ends[i] = sign * (-INF if found.status == "unbounded" else found.value)
            tight.update(rows[r][0] for r in np.flatnonzero(np.abs(found.duals) > 1e-7))
            if fits and abs(ends[i]) >= enough:  # the true table is the other one
                break
        return Room(ends[0], ends[1], frozenset(tight))


def _some(rng: np.random.Generator, items: list[int], most: int) -> list[int]:
    return items if len(items) <= most else [items[i] for i in rng.choice(len(items), most, replace=False)]


@dataclass(frozen=True)
class Widths:
    """How little a reader knows of a withheld cell. A bound too wide proves nothing, a second table does."""

    problem: Problem
    seen: Released
    n: Mapping[str, tuple[int, int | None]]
    relaxed: tuple[str, ...]  # cells whose interval of N is only a bound
    width: Mapping[str, float]  # of these, widths in fractions of people that everything printed allows
    mean: Mapping[str, tuple[float | None, float | None]]
    outer: tuple[str, ...]  # the same of the mean

    @cached_property
    def _witness(self) -> Witness:
        return Witness(self.seen, self.problem.atoms, self.problem.identities)

    @cached_property
    def _found(self) -> dict[tuple[str, bool], float]:
        return {}

    def _second_table(self, cell: str, people: bool) -> float:
        """Width by a second table; 0 (nothing shown) where too many cells of a large system were asked about."""
        if (cell, people) not in self._found:
            width = 0.0
            if len(self._found) < self._witness.cells:
                policy, group = self.problem.policy, self.seen.targets[cell]
                if people:
                    width = self._witness.n_room(group, max(1.0, policy.interval_n)).width
                else:
                    width = self._witness.mean_room(group, policy.interval_years).width
            self._found[cell, people] = width
        return self._found[cell, people]

    @cached_property
    def _relaxed(self) -> frozenset[str]:
        return frozenset(self.relaxed)

    @cached_property
    def _outer(self) -> frozenset[str]:
        return frozenset(self.outer)

    def people(self, cell: str) -> float:
        """Width of the interval of N, at least."""
        if cell in self._relaxed and cell in self.width:
            return self.width[cell] + 1e-6
        if cell in self._relaxed:
            return self._second_table(cell, people=True)
        low, high = self.n[cell]
        return INF if high is None else high - low

    def years(self, cell: str) -> float:
        """Width of the interval of the mean, at least; unbounded where no mean is to be known."""
        if cell not in self.mean:
            return INF
        if cell in self._outer:
            return self._second_table(cell, people=False)
        low, high = self.mean[cell]
        return INF if low is None or high is None else high - low

    def enough(self, cell: str) -> bool:
        """Whether both are as wide as the protection interval."""
        policy = self.problem.policy
        return self.people(cell) >= policy.interval_n and self.years(cell) >= policy.interval_years - 1e-9
