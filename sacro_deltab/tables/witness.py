"""Large systems: a second table that fits proves that a reader cannot know.

Where an interval is too expensive to be exact, only a bound that holds it is reported; such a bound must never make a
cell look protected. So the judge, who knows the true table, changes a part of it in every way that everything printed
allows, the rest held fast: a reader knows less, and his interval is at least as wide as what is found here. Sums and
people vary in the rationals; with the hundreds of classes of such systems whole numbers add next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .identities import Identity
from .intervals import merge_atoms
from .released import Count, Mean, Released
from .solver import INF, FloatArray, Model
from .table import Atom, Problem

INSIDE, OUTSIDE = 200, 700  # classes that may change, of the group and of everybody else
WORK = 20_000_000  # cells asked about × members of everything printed; beyond, a cell is taken as known
LpRow = tuple[list[int], list[float], float, float]


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
        label = np.asarray(self.label, dtype=np.intp)
        self.people: FloatArray = np.bincount(label, [a.n for a in atoms], self.k).astype(np.float64)
        self.has_sums = all(a.sum is not None for a in atoms)
        self.has_squares = all(a.sumsq is not None for a in atoms)
        self.sums: FloatArray = np.bincount(label, [a.sum or 0.0 for a in atoms], self.k).astype(np.float64)
        self.squares: FloatArray = np.bincount(label, [a.sumsq or 0.0 for a in atoms], self.k).astype(np.float64)

    def _classes(self, atoms: Sequence[int]) -> list[int]:
        return sorted({self.label[a] for a in atoms})

    @cached_property
    def _counts(self) -> list[tuple[Count, list[int]]]:
        return [(count, self._classes(count.atoms)) for count in self.seen.counts]

    @cached_property
    def _of(self) -> list[list[int]]:
        """The counts that every class is in."""
        of: list[list[int]] = [[] for _ in range(self.k)]
        for i, (_, classes) in enumerate(self._counts):
            for c in classes:
                of[c].append(i)
        return of

    @cached_property
    def _withheld(self) -> list[int]:
        return sorted({self.label[a] for t in self.seen.targets.values() for a in t})

    @cached_property
    def cells(self) -> int:
        """How many cells may be asked about."""
        size = sum(len(c.atoms) for c in self.seen.counts) + sum(len(m.atoms) for m in self.seen.means)
        return max(100, WORK // max(1, size))

    def _columns(self, group: Sequence[int]) -> dict[int, int]:
        """Classes that may change: of the group, of other withheld cells, and of everybody (fixed seed)."""
        rng = np.random.default_rng(7)
        inside = self._classes(group)
        own = set(inside)
        withheld = [c for c in self._withheld if c not in own]
        chosen = _some(rng, inside, INSIDE) + _some(rng, withheld, OUTSIDE // 2)
        rest = sorted(set(range(self.k)) - set(inside) - set(chosen))
        chosen += _some(rng, rest, OUTSIDE - OUTSIDE // 2)
        return {c: i for i, c in enumerate(sorted(chosen))}

    def n_width(self, group: Sequence[int]) -> float:
        """People by which the N of a group of atoms can differ between two tables that fit."""
        place = self._columns(group)
        rows: list[LpRow] = []
        for i in sorted({i for c in place for i in self._of[c]}):
            count, classes = self._counts[i]
            columns = [place[c] for c in classes if c in place]
            if columns:
                true = float(self.people[classes].sum())
                top = INF if count.hi is None else count.hi - true
                rows.append((columns, [1.0] * len(columns), count.lo - true, top))
        lower = [-float(self.people[c]) for c in place]
        low, high = self._ends(group, place, rows, lower, [INF] * len(place))
        return high - low

    def mean_width(self, group: Sequence[int]) -> float:
        """Years by which the mean of a group can differ, everybody's N being as it is; 0 where sums are unknown."""
        people = float(self.people[self._classes(group)].sum())
        if not self.has_sums or people <= 0:
            return 0.0
        if self.seen.squares and not self.has_squares:
            return 0.0
        place = self._columns(group)
        rows = self._rows(self.seen.means, self.sums, place)
        rows += [row for identity in self.identities if (row := self._identity(identity, place)) is not None]
        low, high = self.seen.value_bounds or (-1e6, 1e6)
        n_of, s_of = self.people[list(place)], self.sums[list(place)]
        ends = self._ends(group, place, rows, (low * n_of - s_of).tolist(), (high * n_of - s_of).tolist())
        true = float(self.sums[self._classes(group)].sum())
        least, most = ((true + end) / people for end in ends)
        if self.seen.squares:
            root = self._root(group, place, max(abs(low), abs(high)) ** 2)
            least, most = max(least, -root), min(most, root)
        return max(0.0, most - least)

    def _root(self, group: Sequence[int], place: dict[int, int], largest: float) -> float:
        """Largest |mean| that the printed SDs leave to the group."""
        n_of, q_of = self.people[list(place)], self.squares[list(place)]
        least = self.sums[list(place)] ** 2 / np.maximum(n_of, 1)
        rows = self._rows(self.seen.squares, self.squares, place)
        ends = self._ends(group, place, rows, (least - q_of).tolist(), (largest * n_of - q_of).tolist())
        classes = self._classes(group)
        return float(np.sqrt(max(0.0, (self.squares[classes].sum() + ends[1]) / self.people[classes].sum())))

    def _rows(self, means: Sequence[Mean], true: FloatArray, place: dict[int, int]) -> list[LpRow]:
        """lo·N ≤ Σ ≤ hi·N with what does not change at its true value."""
        rows: list[LpRow] = []
        for mean in means:
            classes = self._classes(mean.atoms)
            columns = [place[c] for c in classes if c in place]
            n, fixed = float(self.people[classes].sum()), float(true[classes].sum())
            if columns:
                rows.append((columns, [1.0] * len(columns), float(mean.lo) * n - fixed, float(mean.hi) * n - fixed))
        return rows

    def _identity(self, identity: Identity, place: dict[int, int]) -> LpRow | None:
        weight = np.zeros(self.k)
        label = [self.label[a] for a in identity.atoms]
        weight[label] = identity.coefficients
        slack = np.zeros(self.k)
        slack[label] = identity.slack
        classes = sorted(set(label))
        columns = [place[c] for c in classes if c in place]
        if not columns:
            return None
        true, room = float(weight[classes] @ self.sums[classes]), float(slack[classes] @ self.people[classes])
        room += 1e-9 * float(np.abs(weight[classes] * self.sums[classes]).sum())
        return columns, [float(weight[c]) for c in classes if c in place], -room - true, room - true

    def _ends(
        self, group: Sequence[int], place: dict[int, int], rows: list[LpRow], lower: list[float], upper: list[float]
    ) -> tuple[float, float]:
        """Least and largest change of the group's total; (0, 0) where the solver has no answer."""
        cost = np.zeros(len(place))
        cost[[place[c] for c in self._classes(group) if c in place]] = 1.0
        model = Model(lower, upper)
        model.add_rows(rows)
        ends = []
        for sign in (1.0, -1.0):
            found = model.minimise(sign * cost)
            if found.status not in ("optimal", "unbounded"):
                return 0.0, 0.0
            ends.append(sign * (-INF if found.status == "unbounded" else found.value))
        return ends[0], ends[1]


def _some(rng: np.random.Generator, items: list[int], most: int) -> list[int]:
    return items if len(items) <= most else [items[i] for i in rng.choice(len(items), most, replace=False)]


@dataclass(frozen=True)
class Widths:
    """How little a reader knows of a withheld cell. A bound too wide proves nothing, a second table does."""

    problem: Problem
    seen: Released
    n: Mapping[str, tuple[int, int | None]]
    relaxed: tuple[str, ...]  # cells whose interval of N is only a bound
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
                ask = self._witness.n_width if people else self._witness.mean_width
                width = ask(self.seen.targets[cell])
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
