"""The hitting-set master: which cells to withhold so that every known derivation misses one of its cells.

Besides the derivations it knows `sums`: sets of candidates of which a smallest pattern withholds none or at least two
(see `relations.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .solver import INF, Model, Solution

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Row = tuple[Sequence[int], Sequence[float], float, float]
DENSE = 300_000  # entries of the rows of sums, beyond which the master holds only those the linear bound needed


@dataclass(frozen=True)
class Point:
    """A linear optimum. `reduced`: what the value rises by, at least, with a candidate chosen."""

    value: float
    x: FloatArray
    reduced: FloatArray


class Pool:
    """Cuts Σ x_j ≥ 1 over candidates 0 … k − 1, and sums."""

    def __init__(self, k: int, cost: FloatArray, people: FloatArray, sums: Sequence[Sequence[int]] = ()) -> None:
        self.k, self.cost, self.people = k, cost, people
        self.cuts: list[tuple[int, ...]] = []
        self._known: set[tuple[int, ...]] = set()
        self.rows: list[Row] = []  # every cut, and the parts of the sums that a linear optimum did not meet
        self._join(sums)

    def _join(self, sums: Sequence[Sequence[int]]) -> None:
        """Forget the linear program; `sums` from now on."""
        self.sums = [list(s) for s in sums if len(s)]
        self._member = np.asarray([j for s in self.sums for j in s], dtype=np.int64)
        self._start = np.cumsum([0, *(len(s) for s in self.sums)])[:-1]
        self._sum_of = np.repeat(np.arange(len(self.sums)), [len(s) for s in self.sums])
        self._linked: set[int] = set()
        self.rows = _rows(self.cuts)
        self._linear: Linear | None = None

    def forget_sums(self) -> None:
        """Where a judge refuses what the algebra accepts, a cell may have to go that algebra gives away."""
        if self.sums:
            self._join([])

    def add(self, cut: Sequence[int]) -> bool:
        """Keep a new cut; whether it was new."""
        key = tuple(sorted(cut))
        if key in self._known:
            return False
        self._known.add(key)
        self.cuts.append(key)
        self.rows += _rows([key])
        return True

    def link(self, x: FloatArray) -> bool:
        """Add what a point does not meet of the sums; whether there was any."""
        if not self.sums:
            return False
        total = np.add.reduceat(x[self._member], self._start)
        missed = np.flatnonzero(2.0 * x[self._member] - total[self._sum_of] > 1e-6)
        fresh = [i for i in missed.tolist() if i not in self._linked]
        self._linked.update(fresh)
        self.rows += [_company(int(self._member[i]), self.sums[int(self._sum_of[i])]) for i in fresh]
        return bool(fresh)

    def matrix(self) -> BoolArray:
        """Cuts × candidates."""
        a = np.zeros((len(self.cuts), self.k), dtype=bool)
        for i, cut in enumerate(self.cuts):
            a[i, list(cut)] = True
        return a

    def relaxed(self) -> Point:
        """Linear optimum of the first objective."""
        if self._linear is None:
            self._linear = Linear(self, self.cost)
        return self._linear.solve()

    def master(
        self,
        cost: FloatArray,
        fixed: Sequence[tuple[FloatArray, float]],
        nodes: int,
        top: float,
        keep: BoolArray,
    ) -> Solution:
        """Whole-number optimum of `cost` under the cuts, the sums and `fixed` upper limits, among the candidates `keep`
        and only if it is at most `top`: "infeasible" says there is none."""
        kept = np.flatnonzero(keep)
        place = np.full(self.k, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        cuts = dict.fromkeys(tuple(place[j] for j in cut if keep[j]) for cut in self.minimal())
        if () in cuts:
            return Solution("infeasible", np.zeros(0), INF, INF, np.zeros(0))
        rows = _rows(list(cuts)) + self._company_rows(place, keep)
        rows += [(list(range(len(kept))), w[kept].tolist(), -INF, bound) for w, bound in fixed]
        most = np.ones(len(kept))
        model = Model(np.zeros(len(kept)), most, most > 0, max_nodes=nodes, gap=0.999, refute=True)
        model.h.setOptionValue("objective_bound", top + 0.25)
        model.add_rows(rows)
        found = model.minimise(cost[kept])
        x = np.zeros(self.k)
        if len(found.x):
            x[kept] = np.rint(found.x)
        if found.status == "optimal" and cost @ x > top + 0.25:  # what lies above the limit was not looked through
            return Solution("infeasible", np.zeros(0), INF, INF, np.zeros(0), found.iterations)
        return Solution(found.status, x, float(cost @ x), min(found.bound, top), found.duals, found.iterations)

    def _company_rows(self, place: NDArray[np.int64], keep: BoolArray) -> list[Row]:
        inside = [[int(place[j]) for j in s if keep[j]] for s in self.sums]
        inside = [s for s in inside if s]
        if sum(len(s) ** 2 for s in inside) > DENSE:
            number = {i: n for n, i in enumerate(sorted(self._linked))}
            chosen = [(int(self._member[i]), self.sums[int(self._sum_of[i])]) for i in number]
            return [_company(int(place[j]), [int(place[i]) for i in s if keep[i]]) for j, s in chosen if keep[j]]
        return [_company(j, s) for s in inside for j in s]

    def minimal(self) -> list[tuple[int, ...]]:
        """Cuts that hold no other cut (what they ask for is asked for already)."""
        if len(self.cuts) > 1500 or not self.cuts:
            return self.cuts
        a = self.matrix().astype(np.float32)
        size = a.sum(axis=1)
        inside = a @ a.T >= size[None, :] - 0.5  # [i, j]: cut j lies in cut i
        dominated = (inside & (size[None, :] < size[:, None])).any(axis=1)
        return [cut for cut, drop in zip(self.cuts, dominated.tolist(), strict=True) if not drop]

    def greedy(self, guide: FloatArray | None = None, start: frozenset[int] = frozenset()) -> frozenset[int]:
        """A cheap hitting set: most cuts per cost (larger `guide`, then fewer people, then order), then pruned.

        With `start` its members are kept and only what they miss is hit.
        """
        a = self.matrix()
        alive = ~a[:, sorted(start)].any(axis=1)
        count = a[alive].sum(axis=0).astype(np.float64)
        guide = np.zeros(self.k) if guide is None else guide
        price = np.maximum(self.cost, 1e-9) / (1.0 + 4.0 * guide)
        order = np.lexsort((np.arange(self.k), self.people))
        chosen: list[int] = []
        while alive.any():
            score = count[order] / price[order]
            j = int(order[int(np.argmax(score))])
            chosen.append(j)
            hit = alive & a[:, j]
            count -= a[hit].sum(axis=0)
            alive &= ~hit
        if start:
            return start.union(chosen)
        cover = a[:, chosen].sum(axis=1)
        keep = set(chosen)
        for j in sorted(chosen, key=lambda j: (guide[j], -self.cost[j], -self.people[j], j)):
            if (cover[a[:, j]] >= 2).all():
                cover -= a[:, j]
                keep.discard(j)
        return frozenset(keep)


class Linear:
    """The linear relaxation of a pool for one cost vector, kept warm while the pool grows."""

    def __init__(self, pool: Pool, cost: FloatArray, fixed: Sequence[tuple[FloatArray, float]] = ()) -> None:
        self.pool, self.cost = pool, cost
        self.model = Model(np.zeros(pool.k), np.ones(pool.k))
        self.rows: list[Row] = [(list(range(pool.k)), w.tolist(), -INF, bound) for w, bound in fixed]
        self.model.add_rows(self.rows)
        self.seen = 0

    def solve(self) -> Point:
        """The optimum; of the sums only what it needs becomes rows."""
        while True:
            more = self.pool.rows[self.seen :]
            self.model.add_rows(more)
            self.rows += more
            self.seen = len(self.pool.rows)
            found = self.model.minimise(self.cost)
            if found.status != "optimal":
                return Point(INF, np.zeros(self.pool.k), np.zeros(self.pool.k))
            if not self.pool.link(found.x):
                return Point(found.value, found.x, self._reduced(found.duals))

    def _reduced(self, duals: FloatArray) -> FloatArray:
        out = np.array(self.cost, dtype=np.float64)
        for i in np.flatnonzero(duals).tolist():
            columns, values, _, _ = self.rows[i]
            out[list(columns)] -= duals[i] * np.asarray(values)
        return out


def _rows(cuts: Sequence[tuple[int, ...]]) -> list[Row]:
    return [(cut, [1.0] * len(cut), 1.0, INF) for cut in cuts]


def _company(j: int, members: Sequence[int]) -> Row:
    """A withheld candidate of a sum is never the only one."""
    return (members, [-1.0 if i == j else 1.0 for i in members], 0.0, INF)
