"""The hitting-set master: which cells to withhold so that every known derivation misses one of its cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .solver import INF, Model, Solution

FloatArray = NDArray[np.float64]


class Pool:
    """Cuts Σ x_j ≥ 1 over candidates 0 … k − 1, the LP over them kept warm."""

    def __init__(self, k: int, cost: FloatArray, people: FloatArray) -> None:
        self.k, self.cost, self.people = k, cost, people
        self.cuts: list[tuple[int, ...]] = []
        self._known: set[tuple[int, ...]] = set()
        self._linear: Model | None = None
        self._in_linear = 0

    def add(self, cut: Sequence[int]) -> bool:
        """Keep a new cut; whether it was new."""
        key = tuple(sorted(cut))
        if key in self._known:
            return False
        self._known.add(key)
        self.cuts.append(key)
        return True

    def matrix(self) -> NDArray[np.bool_]:
        """Cuts × candidates."""
        a = np.zeros((len(self.cuts), self.k), dtype=bool)
        for i, cut in enumerate(self.cuts):
            a[i, list(cut)] = True
        return a

    def relaxed(self) -> FloatArray:
        """LP optimum: a share between 0 and 1 per candidate."""
        if self._linear is None:
            self._linear = Model(np.zeros(self.k), np.ones(self.k))
        self._linear.add_rows(_rows(self.cuts[self._in_linear :]))
        self._in_linear = len(self.cuts)
        return self._linear.minimise(self.cost).x

    def relaxed_bound(self) -> float:
        """Value of the last LP optimum: no hitting set costs less."""
        return float(self.cost @ self.relaxed())

    def master(self, cost: FloatArray, fixed: Sequence[tuple[FloatArray, float]], nodes: int) -> Solution:
        """Whole-number optimum of `cost` under the cuts and `fixed` upper limits."""
        if not self.cuts:
            return Solution("optimal", np.zeros(self.k), 0.0, 0.0, np.zeros(0))
        whole = np.ones(self.k, dtype=bool) if nodes else None  # no nodes: the linear relaxation
        model = Model(np.zeros(self.k), np.ones(self.k), whole, max_nodes=nodes, gap=0.999, refute=True)
        everything = list(range(self.k))
        model.add_rows(_rows(self.minimal()) + [(everything, w.tolist(), -INF, bound) for w, bound in fixed])
        return model.minimise(cost)

    def reduced_cost(
        self, cost: FloatArray, fixed: Sequence[tuple[FloatArray, float]], duals: FloatArray
    ) -> FloatArray:
        """What the linear bound of `master` rises by, at least, with a candidate chosen."""
        out = np.array(cost, dtype=np.float64)
        cuts = self.minimal()
        for cut, dual in zip(cuts, duals.tolist(), strict=False):
            out[list(cut)] -= dual
        for (w, _), dual in zip(fixed, duals[len(cuts) :].tolist(), strict=True):
            out -= dual * w
        return out

    def minimal(self) -> list[tuple[int, ...]]:
        """Cuts that hold no other cut (what they ask for is asked for already)."""
        if len(self.cuts) > 1500:
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


def _rows(cuts: Sequence[tuple[int, ...]]) -> list[tuple[Sequence[int], Sequence[float], float, float]]:
    return [(cut, [1.0] * len(cut), 1.0, INF) for cut in cuts]
