"""The engine's own algebra: small derivable groups of a pattern, each with the published cells it is derived from.

Separate from the judge's (`span.py`): another prime, another elimination, and it keeps track of which published
cells a group is made of. With the others left out such a derivation is impossible, so every pattern must withhold
at least one of them: that is a cut of the hitting-set master.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .leverage import possible

PRIME = 2_147_483_587
PRUNED = 300  # small classes of one component from which the projection bound pays
MANY = 2_000  # classes that cannot be in a small group, from which random mixtures stand in for them
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Derivation:
    """`classes` is derivable from exactly the rows in `rows`."""

    classes: tuple[int, ...]
    people: int
    rows: frozenset[int]


@dataclass
class Component:
    """Published aggregates restricted to classes that are not printed by themselves."""

    rows: list[int]
    classes: list[int]


class Circuits:
    """Rows (groups of classes) of one problem; patterns come and go.

    Parameters
    ----------
    rows
        Classes of every row, ascending.
    weight
        People per class.
    """

    def __init__(self, rows: Sequence[tuple[int, ...]], weight: Sequence[int]) -> None:
        self.rows, self.weight = rows, list(weight)
        self.k = len(weight)
        self._ever: list[tuple[frozenset[int], set[int]]] = []  # published rows: classes a small group of them can hold
        self.by_class: dict[int, list[int]] = {}
        for i, row in enumerate(rows):
            if len(row) == 1:
                self.by_class.setdefault(row[0], []).append(i)

    def components(self, published: Sequence[int]) -> tuple[list[Component], dict[int, int]]:
        """Components of what is published, and the row that prints each single class."""
        single: dict[int, int] = {}
        for i in published:
            if len(self.rows[i]) == 1:
                single.setdefault(self.rows[i][0], i)
        parent: dict[int, int] = {}

        def find(a: int) -> int:
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            return a

        live: list[tuple[int, list[int]]] = []
        for i in published:
            left = [c for c in self.rows[i] if c not in single]
            if not left:
                continue
            live.append((i, left))
            for c in left:
                parent.setdefault(c, c)
            root = find(left[0])
            for c in left[1:]:
                parent[find(c)] = root
        grouped: dict[int, Component] = {}
        for i, left in live:
            part = grouped.setdefault(find(left[0]), Component([], []))
            part.rows.append(i)
        for c in parent:
            grouped[find(c)].classes.append(c)
        for part in grouped.values():
            part.classes.sort()
        return list(grouped.values()), single

    def small_unions(
        self, published: Sequence[int], below: int, extra: Iterable[tuple[int, ...]] = (), per_block: int = 64
    ) -> list[Derivation]:
        """Derivable groups of 1 to `below` − 1 people (some of them, at least one if there is one), and those of the
        groups `extra` that are derivable, each with its derivation. Rows earlier in `published` are preferred."""
        parts, single = self.components(published)
        found: list[Derivation] = []
        for c, i in single.items():
            if 0 < self.weight[c] < below:
                found.append(Derivation((c,), self.weight[c], frozenset({i})))
        wanted: dict[int, list[tuple[int, ...]]] = {}
        where = {c: n for n, part in enumerate(parts) for c in part.classes}
        for group in extra:
            left = tuple(c for c in group if c not in single)
            if not left:
                found.append(Derivation(group, 0, frozenset(single[c] for c in group)))
            elif all(c in where for c in left) and len({where[c] for c in left}) == 1:
                wanted.setdefault(where[left[0]], []).append(group)
        known = next((left for more, left in self._ever if more.issuperset(published)), None)
        allowed: set[int] = set(single)
        for n, part in enumerate(parts):
            small = [c for c in part.classes if self.weight[c] < below]
            if len(small) > PRUNED and below > 0:
                small = self._possible(part, single, below) if known is None else [c for c in small if c in known]
            allowed.update(small)
            if not wanted.get(n) and not any(self.weight[c] for c in small):
                continue
            elimination = _Elimination(self, part, single, small)
            found += elimination.unions(below, per_block)
            found += elimination.derive(wanted.get(n, ()))
        if known is None and below > 0 and self.k > MANY:  # what is derivable from less is derivable from this
            self._ever.append((frozenset(published), allowed))
        return found

    def _possible(self, part: Component, single: dict[int, int], below: int) -> list[int]:
        """Classes that a small group can hold (`leverage.py`); with many linked tables almost none."""
        position = {c: j for j, c in enumerate(part.classes)}
        rows = [[position[c] for c in self.rows[i] if c not in single] for i in part.rows]
        alive = possible(rows, [self.weight[c] for c in part.classes], below - 1)
        return [c for c, ok in zip(part.classes, alive.tolist(), strict=True) if ok]


class _Elimination:
    """[M | I] of one component, reduced with classes of `below` people and more first."""

    def __init__(self, circuits: Circuits, part: Component, single: dict[int, int], small: list[int]) -> None:
        self.c, self.part, self.single = circuits, part, single
        small_set = set(small)
        large = [c for c in part.classes if c not in small_set]
        n = len(part.rows)
        m = np.zeros((n, len(large) + len(small)), dtype=np.int64)
        self.position = {c: j for j, c in enumerate([*large, *small])}
        for i, row in enumerate(part.rows):
            m[i, [self.position[c] for c in circuits.rows[row] if c in self.position]] = 1
        self.n_large = len(large)
        self.mixer: IntArray | None = None
        if self.n_large > max(MANY, n + 8):  # of these only what cancels matters: a few random mixtures say it
            self.mixer = np.random.default_rng(19).integers(0, PRIME, size=(self.n_large, n + 8), dtype=np.int64)
            m = np.hstack([product(m[:, : self.n_large], self.mixer), m[:, self.n_large :]])
            large = [-1] * (n + 8)
        self.n_front = len(large)
        self.order = [*large, *small]
        self.width = len(self.order)
        m = np.hstack([m, np.eye(n, dtype=np.int64)])
        self.pivots = self._reduce(m)
        self.m = m

    def _vector(self, group: Sequence[int]) -> IntArray:
        """A group as a row of the matrix."""
        out = np.zeros(self.m.shape[1], dtype=np.int64)
        places = [self.position[c] for c in group if c in self.position]
        if self.mixer is None:
            out[places] = 1
            return out
        for place in places:
            if place < self.n_large:
                out[: self.n_front] = (out[: self.n_front] + self.mixer[place]) % PRIME
            else:
                out[place - self.n_large + self.n_front] = 1
        return out

    def _reduce(self, m: IntArray) -> list[int]:
        pivots: list[int] = []
        r = 0
        for c in range(self.width):
            hit = np.flatnonzero(m[r:, c])
            if not len(hit):
                continue
            p = r + int(hit[0])  # the earliest row: preferred cells make the basis
            if p != r:
                m[[r, p]] = m[[p, r]]
            m[r] = m[r] * pow(int(m[r, c]), -1, PRIME) % PRIME
            rows = np.flatnonzero(m[:, c])
            rows = rows[rows != r]
            if len(rows):
                columns = np.flatnonzero(m[r])
                m[np.ix_(rows, columns)] = (m[np.ix_(rows, columns)] - m[rows, c][:, None] * m[r, columns]) % PRIME
            pivots.append(c)
            r += 1
            if r == len(m):
                break
        return pivots

    def unions(self, below: int, limit: int) -> list[Derivation]:
        """Small 0/1 vectors of the span (see `Circuits.small_unions`)."""
        n_large = self.n_front
        start = sum(p < n_large for p in self.pivots)
        basis = self.m[start : len(self.pivots), : self.width]
        if not len(basis):
            return []
        weight = np.asarray([self.c.weight[c] for c in self.order], dtype=np.int64)
        out = []
        for rows in _pieces(basis[:, n_large:] != 0):
            block = basis[rows][:, n_large:]
            for picks in zero_one(block, weight[n_large:], below, limit):
                vector = np.zeros(self.m.shape[1], dtype=np.int64)
                for i in picks:
                    vector = (vector + self.m[start + rows[i]]) % PRIME
                out.append(self._derivation(vector))
        return out

    def derive(self, groups: Sequence[tuple[int, ...]]) -> list[Derivation]:
        """Which of `groups` are in the span."""
        out = []
        for group in groups:
            left = self._vector(group)
            vector = np.zeros(self.m.shape[1], dtype=np.int64)
            for r, p in enumerate(self.pivots):
                factor = int(left[p])
                if factor:
                    left = (left - factor * self.m[r]) % PRIME
                    vector = (vector + factor * self.m[r]) % PRIME
            if not left[: self.width].any():
                done = self._derivation(vector)
                extra = {self.single[c] for c in group if c in self.single}
                people = sum(self.c.weight[c] for c in group if c in self.position)
                out.append(Derivation(group, people, done.rows | extra))
        return out

    def _derivation(self, vector: IntArray) -> Derivation:
        classes = tuple(self.order[int(j)] for j in np.flatnonzero(vector[: self.width]))
        factors = vector[self.width :]
        used = [self.part.rows[int(i)] for i in np.flatnonzero(factors)]
        rest: dict[int, int] = {}
        for i in np.flatnonzero(factors):
            for c in self.c.rows[self.part.rows[int(i)]]:
                if c in self.single:
                    rest[c] = (rest.get(c, 0) + int(factors[i])) % PRIME
        rows = set(used) | {self.single[c] for c, factor in rest.items() if factor}
        return Derivation(classes, sum(self.c.weight[c] for c in classes), frozenset(rows))


def product(m: IntArray, mixer: IntArray) -> IntArray:
    """0/1 matrix times the mixer modulo the prime; halves of 16 bits keep the floating products exact."""
    a = m.astype(np.float64)
    high = (a @ (mixer >> 16).astype(np.float64)).astype(np.int64) % PRIME
    low = (a @ (mixer & 0xFFFF).astype(np.float64)).astype(np.int64)
    out: IntArray = (high * 65536 + low) % PRIME
    return out


def _pieces(support: NDArray[np.bool_]) -> list[list[int]]:
    """Connected sets of rows."""
    seen = np.zeros(len(support), dtype=bool)
    out = []
    for first in range(len(support)):
        if seen[first]:
            continue
        seen[first] = True
        rows, frontier, columns = [first], [first], support[first].copy()
        while frontier:
            frontier = [int(i) for i in np.flatnonzero(support[:, columns].any(axis=1) & ~seen)]
            for i in frontier:
                seen[i] = True
                rows.append(i)
                columns |= support[i]
        out.append(sorted(rows))
    return out


def zero_one(basis: IntArray, weight: IntArray, below: int, limit: int, budget: int = 20_000) -> list[list[int]]:
    """Sets of basis rows whose sum is a 0/1 vector of weight 1 to `below` − 1; the basis is reduced.

    Each set by its rows in order, with the weight of the pivots as bound; at most `limit` answers and `budget` sets.
    """
    last = _last_touch(basis)
    pivot_weight = np.asarray([int(weight[np.flatnonzero(row)[0]]) for row in basis])
    out: list[list[int]] = []
    stack: list[tuple[int, IntArray, list[int], int]] = [(0, np.zeros(basis.shape[1], dtype=np.int64), [], 0)]
    while stack and len(out) < limit and budget > 0:
        start, vector, picks, people = stack.pop()
        rows = start + np.flatnonzero(people + pivot_weight[start:] < below)
        budget -= max(1, len(rows))
        vectors = (vector + basis[rows]) % PRIME
        fine = vectors <= 1
        for i in np.flatnonzero(fine.all(axis=1)).tolist():
            if 0 < int(vectors[i] @ weight) < below:
                out.append([*picks, int(rows[i])])
        # rows that come later can mend a column only if they touch it
        hopeful = np.flatnonzero((fine | (last[None, :] > rows[:, None])).all(axis=1))
        for i in reversed(hopeful.tolist()):
            row = int(rows[i])
            stack.append((row + 1, vectors[i], [*picks, row], people + int(pivot_weight[row])))
    return out[:limit]


def _last_touch(basis: IntArray) -> IntArray:
    """For each column the last basis row that touches it."""
    touched = basis != 0
    index = np.where(touched, np.arange(len(basis))[:, None], -1)
    last: IntArray = index.max(axis=0)
    return last
