"""The exact master: the cheapest set of cells that every derivation known so far misses one of.

Besides the derivations it knows `sums`: sets of candidates of which a smallest pattern withholds none or at least two
(see `relations.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuits import Circuits, Derivation
from .solver import INF, Model, Solution

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Row = tuple[Sequence[int], Sequence[float], float, float]
Limit = tuple[FloatArray, float]  # a cost that may not exceed a value
DENSE = 300_000  # entries of the rows of sums, beyond which the master holds only those the linear bound needed


@dataclass(frozen=True)
class Point:
    """A linear optimum. `reduced`: what the value rises by, at least, with a candidate chosen."""

    value: float
    x: FloatArray
    reduced: FloatArray


class Pool:
    """Cuts Σ x_j ≥ 1 over candidates 0 … k − 1, and sums. `judged`: the cuts that algebra does not know."""

    def __init__(self, k: int, sums: Sequence[Sequence[int]] = ()) -> None:
        self.k = k
        self.cuts: list[tuple[int, ...]] = []
        self.judged: list[tuple[int, ...]] = []
        self._known: set[tuple[int, ...]] = set()
        self._join(sums)

    def _join(self, sums: Sequence[Sequence[int]]) -> None:
        self.sums = [list(s) for s in sums if len(s)]
        self._member = np.asarray([j for s in self.sums for j in s], dtype=np.int64)
        self._start = np.cumsum([0, *(len(s) for s in self.sums)])[:-1]
        self._sum_of = np.repeat(np.arange(len(self.sums)), [len(s) for s in self.sums])
        self._linked: set[int] = set()
        self.rows: list[Row] = _rows(self.cuts)  # cuts, and the parts of the sums that a linear optimum did not meet

    def forget_sums(self) -> None:
        """Where a judge refuses what the algebra accepts, a cell may have to go that algebra gives away."""
        if self.sums:
            self._join([])

    def add(self, cut: Sequence[int], judged: bool = False) -> bool:
        """Keep a new cut; whether it was new."""
        key = tuple(sorted(cut))
        if key in self._known:
            return False
        self._known.add(key)
        self.cuts.append(key)
        self.judged += [key] * judged
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

    def hit(self, chosen: frozenset[int], cost: FloatArray) -> frozenset[int]:
        """The same set, and of every cut of the judge that it misses the cheapest candidate."""
        for cut in self.judged:
            if not chosen.intersection(cut):
                chosen = chosen | {min(cut, key=lambda j: (cost[j], j))}
        return chosen

    def master(
        self,
        cost: FloatArray,
        fixed: Sequence[Limit],
        nodes: int,
        top: float,
        keep: BoolArray,
        never: Sequence[frozenset[int]] = (),
    ) -> tuple[Solution, frozenset[int]]:
        """Whole-number optimum of `cost` under the cuts, the sums and `fixed` upper limits, among the candidates
        `keep`, other than `never`, and only if it is at most `top`: "infeasible" says there is none."""
        kept = np.flatnonzero(keep)
        place = np.full(self.k, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        cuts = dict.fromkeys(tuple(place[j] for j in cut if keep[j]) for cut in self._minimal())
        none = Solution("infeasible", np.zeros(0), INF, INF, np.zeros(0))
        if () in cuts:
            return none, frozenset()
        rows = _rows(list(cuts)) + self._company_rows(place, keep)
        rows += [(list(range(len(kept))), w[kept].tolist(), -INF, bound) for w, bound in fixed]
        for known in never:
            inside = np.isin(kept, sorted(known))
            rows.append((list(range(len(kept))), np.where(inside, -1.0, 1.0).tolist(), 1.0 - float(inside.sum()), INF))
        most = np.ones(len(kept))
        model = Model(np.zeros(len(kept)), most, most > 0, max_nodes=nodes, gap=0.999, refute=True)
        model.h.setOptionValue("objective_bound", top + 0.25)
        model.add_rows(rows)
        found = model.minimise(cost[kept])
        chosen = frozenset(kept[found.x > 0.5].tolist()) if len(found.x) else frozenset()
        value = float(cost[sorted(chosen)].sum())
        if found.status == "optimal" and value > top + 0.25:  # what lies above the limit was not looked through
            return none, frozenset()
        return Solution(found.status, found.x, value, min(found.bound, top), found.duals, found.iterations), chosen

    def _company_rows(self, place: NDArray[np.int64], keep: BoolArray) -> list[Row]:
        inside = [[int(place[j]) for j in s if keep[j]] for s in self.sums]
        inside = [s for s in inside if s]
        if sum(len(s) ** 2 for s in inside) > DENSE:
            chosen = [(int(self._member[i]), self.sums[int(self._sum_of[i])]) for i in sorted(self._linked)]
            return [_company(int(place[j]), [int(place[i]) for i in s if keep[i]]) for j, s in chosen if keep[j]]
        return [_company(j, s) for s in inside for j in s]

    def _minimal(self) -> list[tuple[int, ...]]:
        """Cuts that hold no other cut (what they ask for is asked for already)."""
        if len(self.cuts) > 1500 or not self.cuts:
            return self.cuts
        a = np.zeros((len(self.cuts), self.k), dtype=np.float32)
        for i, cut in enumerate(self.cuts):
            a[i, list(cut)] = 1.0
        size = a.sum(axis=1)
        inside = a @ a.T >= size[None, :] - 0.5  # [i, j]: cut j lies in cut i
        dominated = (inside & (size[None, :] < size[:, None])).any(axis=1)
        return [cut for cut, drop in zip(self.cuts, dominated.tolist(), strict=True) if not drop]


class Linear:
    """The linear relaxation of a pool for one cost vector, kept warm while the pool grows."""

    def __init__(self, pool: Pool, cost: FloatArray, fixed: Sequence[Limit] = ()) -> None:
        self.pool, self.cost = pool, cost
        self.model = Model(np.zeros(pool.k), np.ones(pool.k))
        self.rows: list[Row] = [(list(range(pool.k)), w.tolist(), -INF, bound) for w, bound in fixed]
        self.model.add_rows(self.rows)
        self.seen = 0

    def solve(self) -> Point | None:
        """The optimum; of the sums only what it needs becomes rows. None: no set meets what is known."""
        while True:
            more = self.pool.rows[self.seen :]
            self.model.add_rows(more)
            self.rows += more
            self.seen = len(self.pool.rows)
            found = self.model.minimise(self.cost)
            if found.status != "optimal":
                return None
            if not self.pool.link(found.x):
                return Point(found.value, found.x, self._reduced(found.duals))

    def _reduced(self, duals: FloatArray) -> FloatArray:
        out = np.array(self.cost, dtype=np.float64)
        for i in np.flatnonzero(duals).tolist():
            columns, values, _, _ = self.rows[i]
            out[list(columns)] -= duals[i] * np.asarray(values)
        return out


class Separator:
    """Derivations at a fractional point: the strongest cut for a target. One program over classes, re-used.

    max z(target) over |z(cell)| ≤ share(cell): below 1 the optimal multipliers name a cheap derivation of the target.
    They are floats, so every derivation is worked out again by exact elimination over the cells they name.

    Parameters
    ----------
    rows
        One row of `circuits` per group of cells that may be published.
    """

    def __init__(self, circuits: Circuits, rows: Sequence[int]) -> None:
        self.c, self.rows = circuits, list(rows)
        self.model = Model(np.full(circuits.k, -1e3), np.full(circuits.k, 1e3))
        self.model.add_rows([(circuits.rows[r], [1.0] * len(circuits.rows[r]), -INF, INF) for r in self.rows])

    def derivations(self, share: FloatArray, targets: Sequence[tuple[int, ...]]) -> list[Derivation]:
        """Derivations of `targets` whose shares add up to less than 1."""
        for i in range(len(self.rows)):
            self.model.set_row_bounds(i, -float(share[i]), float(share[i]))
        found: list[Derivation] = []
        for target in targets:
            cost = np.zeros(self.c.k)
            cost[list(target)] = -1.0
            solution = self.model.minimise(cost)
            if solution.status != "optimal" or -solution.value >= 1 - 1e-6:
                continue
            support = np.flatnonzero(np.abs(solution.duals[: len(self.rows)]) > 1e-7)
            order = sorted((int(i) for i in support), key=lambda i: (share[i], i))
            published = [self.rows[i] for i in order]
            found += [d for d in self.c.small_unions(published, 0, [target]) if d.classes == target]
        return found


def _rows(cuts: Sequence[tuple[int, ...]]) -> list[Row]:
    return [(cut, [1.0] * len(cut), 1.0, INF) for cut in cuts]


def _company(j: int, members: Sequence[int]) -> Row:
    """A withheld candidate of a sum is never the only one."""
    return (members, [-1.0 if i == j else 1.0 for i in members], 0.0, INF)
