"""The rounds of the implicit hitting set: linear, plain search, few candidates, all of them, then the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuits import Derivation
from .engine import Engine, Impossible
from .hitting import Linear, Point, Pool
from .judge_cut import Judge
from .search import smallest_hitting_set
from .solver import Solution

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Limit = tuple[FloatArray, float]  # a cost that may not exceed a value


@dataclass(frozen=True)
class Choice:
    """A pattern, the proved bound of the first objective, and how many stages of the objective are proved."""

    pattern: frozenset[str]
    bound: int | None
    stages: int
    notes: tuple[str, ...] = ()


@dataclass
class _Best:
    """The best set of candidates by algebra."""

    chosen: frozenset[int]
    bound: int
    stages: int = 0


class Rounds:
    """One run of `protect`; `count` is the number of masters asked."""

    def __init__(self, engine: Engine) -> None:
        self.e = engine
        cells = engine.objective == "cells"
        sums, cuts = engine.sums() if not engine.large else ([], [])
        self.pool = Pool(len(engine.candidates), engine.count if cells else engine.people, engine.people, sums)
        for cut in cuts:
            self.pool.add(cut)
        self.count = 0
        self.work = 0  # simplex iterations of branch and bound
        self.stages = [engine.count, engine.people] if cells else [engine.people]

    def run(self) -> Choice:
        """See `protect`. Raises `Impossible` when nothing that may be withheld is enough."""
        e, judge = self.e, Judge(self.e)
        if e.large:  # an attack costs less than a search for derivations: perhaps nothing needs doing
            judged = judge.audit(e.fixed)
            if judged.meets(e.requirement):
                return Choice(e.fixed, 0, e.n_stages)
        sure: int | None = None
        for _ in range(e.limits.large_rounds if e.large else e.limits.rounds):
            best = self.build_up() if e.large else self.optimum()
            if best is None:
                break
            if e.large:  # that no second table was found refutes nothing: bounds rest on derivations alone
                sure = best.bound = best.bound if sure is None else sure
                best.stages = max(best.stages, int(self._value(self.stages[0], best.chosen) == sure))
            pattern = e.pattern(best.chosen)
            judged = judge.audit(pattern)
            if judged.meets(e.requirement):
                return Choice(pattern, best.bound, best.stages)
            if not judge.cut(self.pool, best.chosen, judged):
                return self.widen(judge, best)
            if not e.algebraic:
                self.pool.forget_sums()
        raise Impossible("no pattern was found within the limits")

    def widen(self, judge: Judge, best: _Best) -> Choice:
        """Large systems of which only the judge knows what is missing: the cells of one more elimination, until it
        accepts. Withholding more never makes a pattern less safe."""
        e, chosen = self.e, best.chosen
        for run in range(e.limits.widenings):
            self.count += 1
            share = np.random.default_rng(run).random(self.pool.k) if run > 1 else np.zeros(self.pool.k)
            chosen = chosen | e.eliminate(e.order(share, None, np.random.default_rng(7), run), e.small_groups())
            pattern = e.pattern(chosen)
            judged = judge.audit(pattern)
            if judged.meets(e.requirement):
                return Choice(pattern, best.bound, 0)
            union = judged.smallest_derivable_union
            if union is not None and 0 < union.n < e.below:
                e.unions.setdefault(tuple(sorted({e.label[a] for a in union.atoms})))
        raise Impossible("no pattern was found within the limits")

    def add(self, found: Sequence[Derivation]) -> bool:
        """Turn derivations into cuts; whether any is new."""
        new = False
        for derivation in found:
            if derivation.people and self.e.below and len(self.e.unions) < 2000:
                self.e.unions.setdefault(derivation.classes)
            new = self.pool.add(self.e.cut(derivation)) or new
        return new

    def settle(self, chosen: frozenset[int], sharp: bool = False) -> list[tuple[int, ...]]:
        """Cuts that a set misses which hits all known ones; none when it leaves no small group derivable. `sharp`:
        derivations of few cells as well."""
        share = np.zeros(self.pool.k)
        share[list(chosen)] = 1.0
        known = len(self.pool.cuts)
        found = self.e.derivations(share, 0.5)
        self.add(found)
        if found and sharp and self.e.separator is not None:
            value = np.full(len(self.e.groups), 1e-6)
            value[self.e.candidates] = np.maximum(share, 0.02)
            self.add(self.e.separator.derivations(value, list(dict.fromkeys(d.classes for d in found))))
        return self.pool.cuts[known:]

    def linear(self, rounds: int) -> Point:
        """Cuts at fractional points until there are none or the bound hardly moves; returns the last point."""
        values: list[float] = []
        while True:
            point = self.pool.relaxed()
            self.count += 1
            values.append(point.value)
            stuck = len(values) > 15 and values[-1] - values[-16] < 2e-3 * values[-1]
            if len(values) > rounds or stuck:
                return point
            new = self.add(self._violated(point.x, self.e.derivations(point.x, 0.5)))
            if not new:
                new = self.add(self._violated(point.x, self.e.derivations(point.x, 0.2)))
            if not new and self.e.separator is not None:
                new = self._separate(point.x)
            if not new:
                return point

    def _violated(self, share: FloatArray, found: Sequence[Derivation]) -> list[Derivation]:
        return [d for d in found if share[list(self.e.cut(d))].sum() < 1 - 1e-6]

    def _separate(self, share: FloatArray) -> bool:
        e = self.e
        assert e.separator is not None
        value = np.zeros(len(e.groups))
        value[e.candidates] = share
        targets = list(dict.fromkeys([*e.watched, *e.unions]))
        return self.add(self._violated(share, e.separator.derivations(value, targets)))

    def optimum(self) -> _Best | None:
        """The best set by algebra."""
        point = self.linear(self.e.limits.first_rounds)
        found = self.small()
        if found is not None:
            return _Best(found, self._value(self.stages[0], found), self.e.n_stages)
        start = self._near(point.x)
        if start is None:
            return None
        best = _Best(start, _ceil(point.value))
        fixed: list[Limit] = []
        for cost in self.stages:
            if not self._stage(cost, fixed, best):
                return best
            best.stages += 1
            fixed.append((cost, self._value(cost, best.chosen) + 0.25))
        labels = self._labels(fixed)
        if labels is not None:
            best.chosen, best.stages = labels, self.e.n_stages
        return best

    def _labels(self, fixed: list[tuple[FloatArray, float]]) -> frozenset[int] | None:
        """Of the sets that are best in every other stage the one with the first labels, by plain search among the
        candidates that the linear bound leaves; None when that takes too long."""
        cost, top = fixed[-1]
        point = Linear(self.pool, cost, fixed[:-1]).solve()
        return self.small({int(j) for j in np.flatnonzero(point.value + point.reduced > top)})

    def build_up(self) -> _Best | None:
        """Large systems: eliminations that keep the small groups found so far apart, until no other is derivable."""
        chosen = self.pool.greedy() if self.pool.cuts else frozenset()
        order = self.e.order(np.zeros(self.pool.k), None, np.random.default_rng(7), 2)
        for _ in range(self.e.limits.large_rounds):
            self.count += 1
            missed = self.settle(chosen)
            if not missed:
                bound = _ceil(self.pool.relaxed().value) if self.pool.cuts else 0
                return _Best(chosen, bound, 0 if chosen else self.e.n_stages)
            chosen = self.e.eliminate(order, self.e.small_groups())
            if not all(chosen & set(cut) for cut in self.pool.cuts):  # cuts of the judge, which names no group
                chosen = self.pool.greedy(start=chosen)
        return None

    def small(self, never: set[int] | None = None) -> frozenset[int] | None:
        """The optimum of every stage at once by plain search, if its budget settles it; without those in `never`."""
        if self.pool.k * len(self.pool.cuts) > self.e.limits.search_size:
            return None
        never = never or set()
        # Of sets with equal counts the one with the first labels has the largest Σ 2^(k − 1 − rank).
        cost = [(int(c) << self.pool.k) - (1 << (self.pool.k - 1 - j)) for j, c in enumerate(self.e.count)]
        for stage in reversed(self.stages):  # one whole number per candidate: the stages one after the other
            scale = sum(cost) + 1
            cost = [int(w) * scale + c for w, c in zip(np.rint(stage), cost, strict=True)]
        for _ in range(self.e.limits.search_rounds):
            self.count += 1
            cuts = [[j for j in cut if j not in never] for cut in self.pool.cuts]
            chosen = smallest_hitting_set(cuts, cost, self.e.limits.search_nodes) if all(cuts) else None
            if chosen is None or not self.settle(chosen):
                return chosen
        return None

    @staticmethod
    def _value(cost: FloatArray, chosen: frozenset[int]) -> int:
        return int(np.rint(cost[sorted(chosen)].sum()))

    def _stage(self, cost: FloatArray, fixed: list[Limit], best: _Best) -> bool:
        """The best set in `cost` within the `fixed` limits, and whether that is proved.

        First a good set is looked for among few candidates. Then all are asked for one of the linear bound, of a
        little more, and so on: a limit on the cost rules out most candidates by their reduced cost.
        """
        limits, first = self.e.limits, not fixed
        self.work, low, step = 0, 0, 0
        linear = Linear(self.pool, cost, fixed)
        for i in range(limits.rounds if first else limits.tie_rounds):
            point = linear.solve()
            low = max(low, _ceil(point.value))
            if i == (0 if fixed else 1) and self._value(cost, best.chosen) > low:
                self._polish(point, cost, fixed, best, low)
                self.work = 0
            high = self._value(cost, best.chosen)
            step = step or max(1, low // 25)
            if first:
                best.bound = max(best.bound, low)
            if low >= high:
                return True
            top = min(low + step, high) - 1
            keep = point.value + point.reduced <= top + 1e-3
            if self.work > (limits.iterations if first else limits.tie_iterations) or keep.sum() > limits.columns:
                break
            found, chosen = self._master(cost, fixed, top, keep, limits.nodes if first else limits.polish_nodes)
            if found.status == "infeasible":
                low, step = top + 1, 2 * step if step > 1 else 1
            elif found.status != "optimal":
                break
            else:
                low, step = max(low, _ceil(found.value)), 0
                self._take(chosen, cost, fixed, best)
        if first:
            best.bound = max(best.bound, low)
            self.work = 0
            self._polish(linear.solve(), cost, fixed, best, low)
        return low >= self._value(cost, best.chosen)

    def _polish(self, point: Point, cost: FloatArray, fixed: list[Limit], best: _Best, low: int) -> None:
        """A better set made of members of several good ones and of candidates of low reduced cost."""
        e, limits = self.e, self.e.limits
        random = np.random.default_rng(13)
        runs = min(limits.polish_sets, limits.elimination_size // max(1, e.circuits.k * len(e.groups)))
        keep = np.zeros(self.pool.k, dtype=bool)
        keep[sorted(best.chosen)] = True
        if fixed:  # members of sets that are good in another objective are of little use
            keep[np.argsort(point.reduced, kind="stable")[: limits.core]] = True
        for _ in range(1 if fixed else limits.polishes):
            for run in range(0 if fixed else runs):
                near = self._near(point.x, best.chosen if run else None, random, run)
                if near is not None:
                    keep[sorted(near)] = True
                    self._offer(near, cost, fixed, best)
            before = self._value(cost, best.chosen)
            for _ in range(limits.polish_rounds):
                top = self._value(cost, best.chosen) - 1
                if top < low or self.work > (limits.tie_iterations if fixed else limits.polish_iterations):
                    return
                found, chosen = self._master(cost, fixed, top, keep, limits.polish_nodes)
                if found.status != "optimal":
                    break
                near = self._take(chosen, cost, fixed, best)
                if near is not None:
                    keep[sorted(near)] = True
            value = self._value(cost, best.chosen)
            if value == before or value <= low + max(1, low // 200):
                return

    def _master(
        self, cost: FloatArray, fixed: list[Limit], top: int, keep: BoolArray, nodes: int
    ) -> tuple[Solution, frozenset[int]]:
        self.count += 1
        found = self.pool.master(cost, fixed, nodes, top, keep)
        self.work += found.iterations
        return found, frozenset(np.flatnonzero(found.x > 0.5).tolist())

    def _take(self, chosen: frozenset[int], cost: FloatArray, fixed: list[Limit], best: _Best) -> frozenset[int] | None:
        """Keep the master's set if it holds, else learn from it and keep one near it that holds, if that is better."""
        if not self.settle(chosen, sharp=True):
            self._offer(chosen, cost, fixed, best)
            return chosen
        share = np.zeros(self.pool.k)
        share[sorted(chosen)] = 1.0
        near = self._near(share)
        if near is not None:
            self._offer(near, cost, fixed, best)
        return near

    def _near(
        self,
        share: FloatArray,
        around: frozenset[int] | None = None,
        random: np.random.Generator | None = None,
        run: int = 2,
    ) -> frozenset[int] | None:
        """A set that holds, by elimination in the order of `share` (see `Engine.order`)."""
        order = self.e.order(share, around, random or np.random.default_rng(7), run)
        for _ in range(self.e.limits.fresh_rounds):
            self.count += 1
            near = self.e.eliminate(order, self.e.small_groups())
            if not all(near & set(cut) for cut in self.pool.cuts):  # cuts of the judge, which names no group
                near = self.pool.greedy(start=near)
            if not self.settle(near):
                return near
        return None

    def _offer(self, chosen: frozenset[int], cost: FloatArray, fixed: list[Limit], best: _Best) -> None:
        if self._value(cost, chosen) < self._value(cost, best.chosen) and all(
            self._value(c, chosen) <= top for c, top in fixed
        ):
            best.chosen = chosen


def _ceil(value: float) -> int:
    return int(np.ceil(value - 1e-6))
