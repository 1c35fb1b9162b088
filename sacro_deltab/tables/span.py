"""Exact linear span of what is published, and the smallest group of people in it.

A group is derivable when its 0/1 vector over atoms is a linear combination of published groups; then its N, its sum
of values and its sum of squares all follow. Elimination is modulo a large prime (no tolerance anywhere); a group
found derivable is proved so by whole-number checks where it is reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .layout import IntArray, Layout
from .leverage import possible
from .solver import INF, Model, SolverError

PRIME = 2_147_483_629  # largest prime below 2**31 - 1 that is not Mersenne; products fit in int64
MIXED = 2_000  # classes from which membership is tested on random combinations of columns
TERMS = 2_000  # largest numerator and denominator that are believed
SUBSETS = 100_000  # sets of basis vectors up to which all are tried
LISTED = 300  # classes up to which the smallest group is always found, however large it is


@dataclass(frozen=True)
class Union:
    """A derivable group."""

    n: int
    atoms: tuple[int, ...]


def reduce_rows(matrix: IntArray, prime: int = PRIME) -> tuple[IntArray, list[int]]:
    """Reduced row echelon form modulo `prime`; pivots from the left."""
    m = np.mod(matrix, prime).astype(np.int64)
    n_rows, n_columns = m.shape
    pivots: list[int] = []
    r = 0
    for c in range(n_columns):
        if r == n_rows:
            break
        hit = np.flatnonzero(m[r:, c])
        if not len(hit):
            continue
        p = r + int(hit[0])
        if p != r:
            m[[r, p]] = m[[p, r]]
        m[r] = m[r] * pow(int(m[r, c]), -1, prime) % prime
        rows = np.flatnonzero(m[:, c])
        rows = rows[rows != r]
        if len(rows):
            columns = np.flatnonzero(m[r])
            block = m[np.ix_(rows, columns)] - m[rows, c][:, None] * m[r, columns][None, :] % prime
            m[np.ix_(rows, columns)] = block % prime
        pivots.append(c)
        r += 1
    return m[:r], pivots


def _mixer(n: int, rank: int) -> IntArray:
    """Random columns (fixed seed) that keep the rank of a wide matrix: wrong with a chance of about one in 10⁹."""
    return np.random.default_rng(20).integers(0, PRIME, size=(n, rank + 8), dtype=np.int64)


def _mixed(matrix: IntArray, mixer: IntArray | None) -> IntArray:
    """0/1 matrix times the mixer modulo the prime; halves of 16 bits keep the floating products exact."""
    if mixer is None:
        return matrix
    m = matrix.astype(np.float64)
    high = (m @ (mixer >> 16).astype(np.float64)).astype(np.int64) % PRIME
    low = (m @ (mixer & 0xFFFF).astype(np.float64)).astype(np.int64)
    mixed: IntArray = (high * 65536 + low) % PRIME
    return mixed


class Span:
    """The linear span of groups of atoms.

    Parameters
    ----------
    rows
        Published groups, as atom positions.
    weights
        People per atom. Used only to ask for the smallest group, never to decide what is derivable.
    """

    def __init__(self, n_atoms: int, rows: Sequence[Sequence[int]], weights: Sequence[int]) -> None:
        layout = Layout.of(n_atoms, (tuple(sorted(row)) for row in rows))
        self.label, self.k = layout.label.tolist(), layout.k
        self.members: list[list[int]] = [[] for _ in range(self.k)]
        for atom, c in enumerate(self.label):
            self.members[c].append(atom)
        self.weight = [sum(weights[a] for a in members) for members in self.members]
        self.proved = True
        self._reduced: tuple[IntArray, list[int]] | None = None
        self._mixer: IntArray | None = None
        self._peel(layout)
        self.outside = frozenset(set(range(self.k)) - set(layout.classes.tolist()))

    def _peel(self, layout: Layout) -> None:
        """Take out what is known by itself, again and again: single classes drop out of every other row."""
        known = np.zeros(self.k, dtype=bool)
        known[layout.classes[layout.start[:-1][layout.size == 1]]] = True
        kept = ~known[layout.classes]  # most cells of a table: out at once
        end = np.concatenate([[0], np.cumsum(kept)])[layout.start].tolist()
        classes = layout.classes[kept].tolist()
        live = [set(classes[i:j]) for i, j in itertools.pairwise(end) if i < j]
        of: dict[int, set[int]] = {}
        for i, row in enumerate(live):
            for c in row:
                of.setdefault(c, set()).add(i)
        single = set(np.flatnonzero(known).tolist())
        queue = [i for i, row in enumerate(live) if len(row) == 1]
        while queue:
            i = queue.pop()
            if len(live[i]) != 1:
                continue
            (c,) = live[i]
            single.add(c)
            for j in of.pop(c):
                live[j].discard(c)
                if len(live[j]) == 1:
                    queue.append(j)
        self.single = single
        self.core_rows = [tuple(sorted(row)) for row in dict.fromkeys(frozenset(r) for r in live) if row]
        self.core = sorted({c for row in self.core_rows for c in row})

    def _core_matrix(self, order: Sequence[int]) -> IntArray:
        position = {c: i for i, c in enumerate(order)}
        matrix = np.zeros((len(self.core_rows), len(order)), dtype=np.int64)
        for i, row in enumerate(self.core_rows):
            matrix[i, [position[c] for c in row]] = 1
        return matrix

    def contains(self, group: Sequence[int]) -> bool:
        """Whether the group is derivable."""
        classes = {self.label[a] for a in group}
        if sum(len(self.members[c]) for c in classes) != len(set(group)) or classes & self.outside:
            return False
        rest = sorted(classes - self.single)
        if not rest:
            return True
        if not set(rest) <= set(self.core):
            return False
        vector = np.zeros((1, len(self.core)), dtype=np.int64)
        position = {c: i for i, c in enumerate(self.core)}
        vector[0, [position[c] for c in rest]] = 1
        if self._reduced is None:
            self._mixer = _mixer(len(self.core), len(self.core_rows)) if len(self.core) > MIXED else None
            self._reduced = reduce_rows(_mixed(self._core_matrix(self.core), self._mixer))
        base, pivots = self._reduced
        vector = _mixed(vector, self._mixer)
        for i, p in enumerate(pivots):
            if vector[0, p]:
                vector[0] = (vector[0] - vector[0, p] * base[i]) % PRIME
        return not vector.any()

    def smallest(self, below: int | None = None) -> Union | None:
        """The derivable group with the fewest people, at least one; ties: fewest atoms, then positions.

        With `below` and more than `LISTED` classes that are not printed by themselves, groups of `below` people and
        more are not searched through: the answer is then the smallest if it is below, else the smallest known.
        `proved` says which.
        """
        best: tuple[int, int, tuple[int, ...]] | None = None

        def offer(classes: Sequence[int]) -> None:
            nonlocal best
            atoms = tuple(sorted(a for c in classes for a in self.members[c]))
            key = (sum(self.weight[c] for c in classes), len(atoms), atoms)
            if key[0] > 0 and (best is None or key < best):
                best = key

        least = min((self.weight[c] for c in self.single if self.weight[c]), default=0)
        for c in self.single:
            if self.weight[c] == least:
                offer((c,))
        for row in self.core_rows:
            offer(row)
        small = self._exact_enough(None if best is None else best[0], below)
        for component in self._small_components(small, prune=small is not None and len(self.core) > LISTED):
            for classes in component.unions(small if best is None else min(small or best[0], best[0])):
                offer(classes)
        return None if best is None else Union(best[0], best[2])

    def _exact_enough(self, best: int | None, below: int | None) -> int | None:
        """Largest group to look for: up to the best known; with many classes only those below the minimum."""
        self.proved = below is None or len(self.core) <= LISTED or (best is not None and best < below)
        if self.proved or below is None:
            return best
        return below - 1 if best is None else min(best, below - 1)

    def _small_components(self, limit: int | None, prune: bool = False) -> list[_Block]:
        """Bases, component by component, of the derivable vectors that are zero on classes of more than `limit`."""
        if not self.core_rows:
            return []
        large_set = {c for c in self.core if limit is not None and self.weight[c] > limit}
        if prune and limit is not None:
            position = {c: i for i, c in enumerate(self.core)}
            rows = [[position[c] for c in row] for row in self.core_rows]
            alive = possible(rows, [self.weight[c] for c in self.core], limit)
            large_set |= {c for c, ok in zip(self.core, alive.tolist(), strict=True) if not ok}
        large = [c for c in self.core if c in large_set]
        small = [c for c in self.core if c not in large_set]
        if not small:
            return []
        matrix = self._core_matrix([*large, *small])
        width = len(large)
        if width > max(MIXED, len(self.core_rows) + 8):  # of these only what cancels matters: a few mixtures say it
            mixed = _mixed(matrix[:, :width], _mixer(width, len(self.core_rows)))
            matrix, width = np.hstack([mixed, matrix[:, width:]]), mixed.shape[1]
        base, pivots = reduce_rows(matrix)
        start = sum(p < width for p in pivots)
        block = base[start:, width:]
        if not len(block):
            return []
        return _split(block, [p - width for p in pivots[start:]], small, self.weight)


@dataclass
class _Block:
    """A reduced basis over some classes; rows and columns hang together."""

    basis: IntArray
    pivots: list[int]
    classes: list[int]
    weight: list[int]

    def unions(self, limit: int | None) -> list[list[int]]:
        """0/1 vectors of least positive weight (not above `limit`) in the span of the basis."""
        if len(self.basis) <= 16:
            return self._enumerate(limit)
        if limit is not None and self._subsets(limit) <= SUBSETS:
            return self._walk(limit)
        return self._program(limit)

    def _subsets(self, limit: int) -> int:
        """Sets of basis vectors whose pivots together have at most `limit` people."""
        count = [1] + [0] * limit
        for p in self.pivots:
            weight = self.weight[p]
            for people in range(limit, weight - 1, -1):
                count[people] += count[people - weight]
        return sum(count)

    def _walk(self, limit: int) -> list[list[int]]:
        """Every such set: of a 0/1 vector each basis vector is in it once or not at all."""
        weights = np.asarray(self.weight, dtype=np.int64)
        pivot_weight = weights[self.pivots]
        order = np.argsort(-pivot_weight, kind="stable")
        basis, pivot_weight = self.basis[order], pivot_weight[order]
        best = limit
        found: list[IntArray] = []
        stack = [(0, np.zeros(basis.shape[1], dtype=np.int64), 0)]
        while stack:
            start, vector, people = stack.pop()
            rows = start + np.flatnonzero(people + pivot_weight[start:] <= best)
            vectors = (vector + basis[rows]) % PRIME
            whole = np.flatnonzero((vectors <= 1).all(axis=1))
            for i, size in zip(whole.tolist(), (vectors[whole] @ weights).tolist(), strict=True):
                if 0 < size <= best:
                    found = [f for f in found if size == best] + [vectors[i]]
                    best = size
            stack += [
                (int(row) + 1, vectors[i], people + int(pivot_weight[row])) for i, row in enumerate(rows.tolist())
            ]
        return [[self.classes[j] for j in np.flatnonzero(vector)] for vector in found]

    def _enumerate(self, limit: int | None) -> list[list[int]]:
        d = len(self.basis)
        weights = np.asarray(self.weight, dtype=np.int64)
        best = limit
        found: list[list[int]] = []
        step = 1 << min(d, 12)
        for start in range(0, 1 << d, step):
            picks = np.arange(start, min(1 << d, start + step))
            bits = ((picks[:, None] >> np.arange(d)) & 1).astype(np.int64)
            vectors = np.zeros((len(picks), self.basis.shape[1]), dtype=np.int64)
            for i in range(d):
                vectors += bits[:, i : i + 1] * self.basis[i]
            vectors %= PRIME
            ok = (vectors <= 1).all(axis=1)
            sizes = vectors[ok] @ weights
            for vector, size in zip(vectors[ok], sizes.tolist(), strict=True):
                if size <= 0 or (best is not None and size > best):
                    continue
                if best is None or size < best:
                    best, found = size, []
                found.append([self.classes[j] for j in np.flatnonzero(vector)])
        return found

    def _program(self, limit: int | None) -> list[list[int]]:
        """Many dimensions: a whole-number program over the basis, its answer checked modulo the prime."""
        m = self.basis.shape[1]
        model = Model([0.0] * m, [1.0] * m, [True] * m)
        rows = []
        for j in sorted(set(range(m)) - set(self.pivots)):
            touching = np.flatnonzero(self.basis[:, j])
            columns = [self.pivots[i] for i in touching] + [j]
            shares = [_fraction(int(self.basis[i, j])) for i in touching]
            scale = math.lcm(*(f.denominator for f in shares))
            rows.append((columns, [*(float(f * scale) for f in shares), -float(scale)], 0.0, 0.0))
        weights = np.asarray(self.weight, dtype=np.float64)
        high = INF if limit is None else float(limit)
        rows.append((list(range(m)), weights.tolist(), 1.0, high))
        model.add_rows(rows)
        found = model.minimise(weights)
        if found.status == "infeasible":
            return []
        if found.status != "optimal":
            raise SolverError(
                "whether a small group is derivable could not be settled", next_step="split the session's tables"
            )
        vector = np.rint(found.x).astype(np.int64)
        if not np.array_equal((vector[self.pivots] @ self.basis) % PRIME, vector):
            raise SolverError("the solver's group is not derivable", next_step="split the session's tables")
        return [[self.classes[j] for j in np.flatnonzero(vector)]]


def _fraction(value: int) -> Fraction:
    """The fraction of smallest terms that is `value` modulo the prime (half of Euclid's algorithm)."""
    a, b, previous, current = PRIME, value, 0, 1
    while 2 * b * b > PRIME:
        previous, current = current, previous - a // b * current
        a, b = b, a % b
    if max(b, abs(current)) > TERMS:  # one remainder in a thousand has such a fraction by chance
        raise SolverError("whether a small group is derivable could not be settled", next_step="split the tables")
    return Fraction(b, current)


def _split(block: IntArray, pivots: list[int], classes: list[int], weight: Sequence[int]) -> list[_Block]:
    """Connected pieces of a reduced basis."""
    seen = np.zeros(len(block), dtype=bool)
    out = []
    support = block != 0
    for first in range(len(block)):
        if seen[first]:
            continue
        rows, frontier = {first}, [first]
        columns = support[first].copy()
        seen[first] = True
        while frontier:
            frontier = [int(i) for i in np.flatnonzero((support & columns).any(axis=1) & ~seen)]
            for i in frontier:
                seen[i] = True
                rows.add(i)
                columns |= support[i]
        index = sorted(rows)
        where = np.flatnonzero(columns)
        position = {int(c): i for i, c in enumerate(where)}
        out.append(
            _Block(
                block[index][:, where],
                [position[pivots[i]] for i in index],
                [classes[int(c)] for c in where],
                [weight[classes[int(c)]] for c in where],
            )
        )
    return out
