"""The rounds of the implicit hitting set: linear, plain search, local search, branch and bound, then the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .circuits import Derivation
from .descent import Descent
from .engine import Engine, Impossible
from .hitting import Pool
from .judge import SetAudit
from .judge_cut import Judge
from .search import smallest_hitting_set

FloatArray = NDArray[np.float64]


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
        self.pool = Pool(len(engine.candidates), engine.count if cells else engine.people, engine.people)
        self.count = 0
        self.work = 0  # simplex iterations of branch and bound
        self.stages = [engine.count, engine.people] if cells else [engine.people]

    def run(self) -> tuple[Choice, SetAudit]:
        """See `protect`. Raises `Impossible` when nothing that may be withheld is enough."""
        e, judge = self.e, Judge(self.e)
        if e.large:  # an attack costs less than a search for derivations: perhaps nothing needs doing
            judged = judge.audit(e.fixed)
            if e.ok(judged):
                return Choice(e.fixed, 0, e.n_stages), judged
        sure: int | None = None
        for _ in range(e.limits.large_rounds if e.large else e.limits.rounds):
            best = self.build_up() if e.large else self.optimum()
            if best is None:
                break
            if e.large:  # that no second table was found refutes nothing: bounds rest on derivations alone
                sure = best.bound = best.bound if sure is None else sure
            pattern = e.pattern(best.chosen)
            judged = judge.audit(pattern)
            if e.ok(judged):
                return Choice(pattern, best.bound, best.stages), judged
            judge.cut(self.pool, best.chosen, judged)
        raise Impossible("no pattern was found within the limits")

    def add(self, found: Sequence[Derivation]) -> bool:
        """Turn derivations into cuts; whether any is new."""
        new = False
        for derivation in found:
            if derivation.people and self.e.below and len(self.e.unions) < 2000:
                self.e.unions.setdefault(derivation.classes)
            new = self.pool.add(self.e.cut(derivation)) or new
        return new

    def settle(self, chosen: frozenset[int]) -> list[tuple[int, ...]]:
        """Cuts that a set misses which hits all known ones; none when it leaves no small group derivable."""
        share = np.zeros(self.pool.k)
        share[list(chosen)] = 1.0
        known = len(self.pool.cuts)
        self.add(self.e.derivations(share, 0.5))
        return self.pool.cuts[known:]

    def linear(self, rounds: int, enough: float) -> FloatArray:
        """Cuts at fractional points until the bound reaches `enough` or hardly moves; returns the last point."""
        share = np.zeros(self.pool.k)
        values: list[float] = []
        for _ in range(rounds):
            self.count += 1
            share = self.pool.relaxed()
            values.append(float(self.pool.cost @ share))
            if values[-1] > enough or (len(values) > 15 and values[-1] - values[-16] < 2e-3 * values[-1]):
                break
            new = self.add(self._violated(share, self.e.derivations(share, 0.5)))
            if not new:
                new = self.add(self._violated(share, self.e.derivations(share, 0.2)))
            if not new and self.e.separator is not None:
                new = self._separate(share)
            if not new:
                break
        return share

    def _violated(self, share: FloatArray, found: Sequence[Derivation]) -> list[Derivation]:
        return [d for d in found if share[list(self.e.cut(d))].sum() < 1 - 1e-6]

    def _separate(self, share: FloatArray) -> bool:
        e = self.e
        assert e.separator is not None
        value = np.zeros(len(e.groups))
        value[e.candidates] = share
        targets = list(dict.fromkeys([*e.watched, *e.unions]))
        return self.add(self._violated(share, e.separator.derivations(value, targets)))

    def heuristic(self, share: FloatArray, least: int) -> frozenset[int] | None:
        """A feasible set: the best of a greedy one and of several eliminations, guided by `share`, until one costs no
        more than `least`."""
        e = self.e
        runs = max(1, min(e.limits.eliminations, e.limits.elimination_size // max(1, e.circuits.k * len(e.groups))))
        groups = e.small_groups()
        random = np.random.default_rng(7)
        best = self._greedy(share)
        if best is not None and self._key(best)[0] <= least:
            return best
        near: frozenset[int] | None = None  # where the walk stands: equals are accepted
        for run in range(runs):
            order = e.order(share, near if run > 2 else None, random, run)
            for _ in range(e.limits.fresh_rounds):
                self.count += 1
                chosen = e.eliminate(order, groups)
                missed = self.settle(chosen)
                if not missed:
                    break
                groups = e.small_groups()  # too many to list: those found so far
            if missed:
                continue
            if best is None or self._key(chosen) < self._key(best):
                best = chosen
            if near is None or self._key(chosen)[0] <= self._key(near)[0]:
                near = chosen
            if self._key(near)[0] <= least:
                break
        return best

    def _key(self, chosen: frozenset[int]) -> tuple[int, ...]:
        return tuple(self._value(stage, chosen) for stage in self.stages)

    def _greedy(self, share: FloatArray) -> frozenset[int] | None:
        """A feasible set by greedy choice, cuts added on the way, if it comes to an end soon."""
        for _ in range(self.e.limits.fresh_rounds):
            self.count += 1
            chosen = self.pool.greedy(share)
            if not self.settle(chosen):
                return chosen
        return None

    def repair(self, chosen: frozenset[int], share: FloatArray) -> frozenset[int] | None:
        """A feasible set around `chosen`, which misses something; cuts are added on the way."""
        for _ in range(self.e.limits.rounds):
            self.count += 1
            chosen = self.pool.greedy(share, start=chosen)
            if not self.settle(chosen):
                return chosen
        return None

    def improve(self, start: frozenset[int], least: int) -> frozenset[int]:
        """A cheaper set in the first objective by local search."""
        limits, size = self.e.limits, self.e.circuits.k * len(self.e.groups)
        settles = max(20, min(limits.descent_settles, limits.descent_size // max(1, size)))
        search = Descent(self.pool.k, self.pool.minimal(), self.pool.cost)
        return search.run(start, self.settle, steps=limits.descent_steps, settles=settles, least=least)

    def optimum(self) -> _Best | None:
        """The best set by algebra."""
        limits = self.e.limits
        share = self.linear(limits.first_rounds, np.inf)
        found = self.small()
        if found is not None:
            return _Best(found, self._value(self.stages[0], found), self.e.n_stages)
        bound = self._linear_bound()
        start = self.heuristic(share, bound)
        if start is None:
            return None
        best = _Best(start, bound)
        if self._value(self.stages[0], start) > bound:
            best.chosen = self.improve(start, bound)
        fixed: list[tuple[FloatArray, float]] = []
        for stage, cost in enumerate(self.stages):
            if not self._stage(cost, fixed, best, share, first=stage == 0):
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
        linear = self.pool.master(cost, fixed[:-1], 0)
        if linear.status != "optimal":
            return None
        reduced = self.pool.reduced_cost(cost, fixed[:-1], linear.duals)
        return self.small({int(j) for j in np.flatnonzero(linear.value + reduced > top + 0.25)})

    def _linear_bound(self) -> int:
        return int(np.ceil(self.pool.relaxed_bound() - 1e-6))

    def build_up(self) -> _Best | None:
        """Large systems: eliminations that keep the small groups found so far apart, until no other is derivable."""
        chosen = self.pool.greedy() if self.pool.cuts else frozenset()
        order = self.e.order(np.zeros(self.pool.k), None, np.random.default_rng(7), 2)
        for _ in range(self.e.limits.large_rounds):
            self.count += 1
            missed = self.settle(chosen)
            if not missed:
                bound = self._linear_bound() if self.pool.cuts else 0
                return _Best(chosen, bound, 0 if chosen else self.e.n_stages)
            chosen = self.e.eliminate(order, self.e.small_groups())
            if not all(chosen & set(cut) for cut in self.pool.cuts):  # cuts of the judge, which names no group
                chosen = self.pool.greedy(start=chosen)
        return None

    def small(self, never: set[int] | None = None) -> frozenset[int] | None:
        """The optimum of every stage at once by plain search, if its budget settles it; without those in `never`."""
        if self.pool.k * len(self.pool.cuts) > 40 * self.e.limits.small_program:
            return None
        never = never or set()
        # Of sets with equal counts the one with the first labels has the largest Σ 2^(k − 1 − rank).
        cost = [(int(c) << self.pool.k) - (1 << (self.pool.k - 1 - j)) for j, c in enumerate(self.e.count)]
        for stage in reversed(self.stages):  # one whole number per candidate: the stages one after the other
            scale = sum(cost) + 1
            cost = [int(w) * scale + c for w, c in zip(np.rint(stage), cost, strict=True)]
        for _ in range(self.e.limits.rounds):
            self.count += 1
            cuts = [[j for j in cut if j not in never] for cut in self.pool.cuts]
            chosen = smallest_hitting_set(cuts, cost, self.e.limits.search_nodes) if all(cuts) else None
            if chosen is None or not self.settle(chosen):
                return chosen
        return None

    def _worth_it(self, cost: FloatArray, fixed: list[tuple[FloatArray, float]], best: _Best, first: bool) -> bool:
        """Whether branch and bound is likely to end soon: a small program, or a linear bound close to the best."""
        limits = self.e.limits
        size = self.pool.k * len(self.pool.cuts)
        if self.work > (limits.iterations if first else limits.tie_iterations):
            return False
        if size <= limits.small_program:
            return True
        linear = self.pool.master(cost, fixed, 0)
        split = int(((linear.x > 0.01) & (linear.x < 0.99)).sum())
        value = self._value(cost, best.chosen)
        close = value - linear.value <= 1.3 * value / len(best.chosen)  # about one candidate too many
        return close or (split <= limits.split_columns and (first or size <= limits.tie_program or self._tight(best)))

    def _tight(self, best: _Best) -> bool:
        """Whether the linear master alone proves the first objective: such systems stay easy for the ties."""
        return self._value(self.stages[0], best.chosen) <= self.pool.relaxed_bound() + 1e-6

    @staticmethod
    def _value(cost: FloatArray, chosen: frozenset[int]) -> int:
        return int(np.rint(cost[sorted(chosen)].sum()))

    def _stage(
        self,
        cost: FloatArray,
        fixed: list[tuple[FloatArray, float]],
        best: _Best,
        share: FloatArray,
        *,
        first: bool,
    ) -> bool:
        """Ask for something better than the best until there is nothing; whether that is proved."""
        more = first
        for i in range(self.e.limits.rounds if first else self.e.limits.tie_rounds):
            value = self._value(cost, best.chosen)
            if first and value <= best.bound:
                return True
            if not self._worth_it(cost, fixed, best, first):
                if not more:
                    return False
                more = False
                self._more_linear(best)
                continue
            self.count += 1
            found = self.pool.master(cost, [*fixed, (cost, value - 0.75)], self.e.limits.nodes)
            self.work += found.iterations
            if found.status == "infeasible":
                if first:
                    best.bound = value
                return True
            if found.status != "optimal":
                return False
            if first:
                best.bound = max(best.bound, int(np.ceil(found.bound - 1e-6)))
            chosen = frozenset(int(j) for j in np.flatnonzero(found.x > 0.5))
            if not self.settle(chosen):
                best.chosen = chosen
                if first:
                    best.bound = self._value(cost, chosen)
                return True
            repaired = self.repair(chosen, share)
            if repaired is not None and self._better(repaired, cost, fixed, value):
                best.chosen = repaired
            elif first and i % 4 == 3:
                best.chosen = self.improve(best.chosen, best.bound)
        return False

    def _more_linear(self, best: _Best) -> None:
        self.linear(self.e.limits.linear_rounds, self._value(self.stages[0], best.chosen) - 1)
        best.bound = max(best.bound, self._linear_bound())

    def _better(
        self, chosen: frozenset[int], cost: FloatArray, fixed: list[tuple[FloatArray, float]], value: int
    ) -> bool:
        return self._value(cost, chosen) < value and all(self._value(c, chosen) <= top for c, top in fixed)
