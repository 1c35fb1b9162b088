"""A better hitting set by weighted local search: one candidate out, one in, cuts that stay missed grow heavier.

The anytime answer of programs that no plain search settles: it proves nothing, but it mostly finds the optimum, and
branch and bound then only has to refute anything better. Steps are counted and the random numbers have a fixed seed,
so the same cuts give the same set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Cuts = Sequence[Sequence[int]]
Settle = Callable[[frozenset[int]], Cuts]
FloatArray = NDArray[np.float64]


class Descent:
    """Local search over candidates 0 … k − 1.

    Parameters
    ----------
    cuts
        Each a non-empty set of candidates, one of which must be chosen.
    cost
        Whole and positive per candidate; a set is better when its total is less.
    """

    def __init__(self, k: int, cuts: Cuts, cost: FloatArray) -> None:
        self.k, self.cost = k, cost
        self.random = np.random.default_rng(11)
        self.holds = np.zeros((0, k), dtype=bool)
        self.weight = np.zeros(0)
        self.inside = np.zeros(k, dtype=bool)
        self.age = np.zeros(k, dtype=np.int64)  # step at which a candidate last moved
        self.stirred = np.ones(k, dtype=bool)  # something near it moved since it left: it may come back
        self._extend(cuts)

    def _extend(self, cuts: Cuts) -> None:
        more = np.zeros((len(cuts), self.k), dtype=bool)
        for i, cut in enumerate(cuts):
            more[i, list(cut)] = True
        self.holds = np.vstack([self.holds, more])
        self.weight = np.concatenate([self.weight, np.ones(len(cuts))])
        self.rows = [np.flatnonzero(self.holds[:, j]) for j in range(self.k)]
        self._count()

    def _count(self) -> None:
        """Per cut how many of its candidates are inside; per candidate the weight it would gain or lose."""
        self.cover = self.holds[:, self.inside].sum(axis=1)
        none, once = self.cover == 0, self.cover == 1
        self.gain: FloatArray = self.weight[none] @ self.holds[none]
        self.loss: FloatArray = (self.weight[once] @ self.holds[once]) * self.inside

    def _put(self, j: int, step: int) -> None:
        rows = self.rows[j]
        self.cover[rows] += 1
        once, twice = rows[self.cover[rows] == 1], rows[self.cover[rows] == 2]
        self.gain -= self.weight[once] @ self.holds[once]
        self.loss -= (self.weight[twice] @ self.holds[twice]) * self.inside
        self.inside[j] = True
        self.loss[j] = self.weight[once].sum()
        self._moved(j, step)

    def _take(self, j: int, step: int) -> None:
        rows = self.rows[j]
        self.inside[j] = False
        self.cover[rows] -= 1
        none, once = rows[self.cover[rows] == 0], rows[self.cover[rows] == 1]
        self.gain += self.weight[none] @ self.holds[none]
        self.loss += (self.weight[once] @ self.holds[once]) * self.inside
        self.loss[j] = 0.0
        self._moved(j, step)
        self.stirred[j] = False

    def _moved(self, j: int, step: int) -> None:
        self.age[j] = step
        self.stirred |= self.holds[self.rows[j]].any(axis=0)

    def _cheapest_inside(self) -> int:
        """The candidate whose leaving loses least weight per cost; of equals the one that moved longest ago."""
        inside = np.flatnonzero(self.inside)
        score = self.loss[inside] / self.cost[inside]
        best = inside[score <= score.min() + 1e-12]
        return int(best[np.argmin(self.age[best])])

    def _best_outside(self, cut: int) -> int:
        """The candidate of a missed cut that gains most weight per cost."""
        members = np.flatnonzero(self.holds[cut] & self.stirred)
        members = members if len(members) else np.flatnonzero(self.holds[cut])
        score = self.gain[members] / self.cost[members]
        best = members[score >= score.max() - 1e-12]
        return int(best[np.argmin(self.age[best])])

    def _total(self) -> float:
        return float(self.cost[self.inside].sum())

    def run(
        self, start: frozenset[int], settle: Settle, *, steps: int, settles: int, least: float = 0.0
    ) -> frozenset[int]:
        """The best set found that `settle` has nothing against, from `start`, which must be such a set.

        Parameters
        ----------
        settle
            Further cuts that a set hitting all known ones misses; empty when there is none.
        steps, settles
            Swaps, and calls of `settle`, at most.
        least
            Proved bound of the total: the search ends when it is reached.
        """
        self.best, self.best_cost = start, float(self.cost[sorted(start)].sum())
        self.inside[:] = False
        self.inside[sorted(start)] = True
        self._count()
        for step in range(1, steps + 1):
            while self.inside.any() and not (self.cover == 0).any():
                if self._total() <= self.best_cost - 0.5:
                    chosen = frozenset(np.flatnonzero(self.inside).tolist())
                    settles -= 1
                    missed = settle(chosen)
                    if missed:
                        self._extend(missed)
                    else:
                        self.best, self.best_cost = chosen, self._total()
                    if settles <= 0:
                        return self.best
                    if missed:
                        break
                self._take(self._cheapest_inside(), step)
            if not self.inside.any() or self.best_cost <= least + 0.5:
                return self.best
            self._swap(step)
        return self.best

    def _swap(self, step: int) -> None:
        """One candidate out; candidates of missed cuts in, the first whatever it costs, as long as the set is better
        than the best."""
        self._take(self._cheapest_inside(), step)
        first = True
        while len(missed := np.flatnonzero(self.cover == 0)):
            fresh = self._best_outside(int(self.random.choice(missed)))
            while first and self.inside.any() and not self._affords(fresh):
                self._take(self._cheapest_inside(), step)
            if not first and not self._affords(fresh):
                break
            self._put(fresh, step)
            first = False
        still = self.cover == 0
        self.weight[still] += 1.0
        self.gain += self.holds[still].sum(axis=0)

    def _affords(self, more: int) -> bool:
        return self._total() + float(self.cost[more]) <= self.best_cost - 0.5
