"""Boxes or elimination find a good pattern, one exact master starts from it, the judge has the last word."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .audits import SetAudit
from .circuits import Derivation
from .engine import Engine, Impossible
from .judge_cut import REFUSALS, Judge
from .master import Limit, Linear, Point, Pool, Separator

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Choice:
    """A pattern, the proved bound of the first objective, and how many stages of the objective are proved."""

    pattern: frozenset[str]
    bound: int | None
    stages: int
    notes: tuple[str, ...] = ()
    audit: SetAudit | None = None  # of the whole pattern, where it was made on the way


@dataclass
class _Best:
    """The best set of candidates so far."""

    chosen: frozenset[int]
    bound: int
    stages: int = 0


class Chooser:
    """One run of `protect`; `count` is the number of masters and patterns asked."""

    def __init__(self, engine: Engine) -> None:
        self.e = engine
        sums, cuts = engine.sums() if not engine.large else ([], [])
        self.pool = Pool(len(engine.candidates), sums)
        for cut in cuts:
            self.pool.add(cut)
        self.separator = Separator(engine.circuits, [g.rows[0] for g in engine.groups]) if engine.small else None
        self.count = 0
        self.work = 0  # simplex iterations of branch and bound
        self.accepted: frozenset[int] | None = None  # the best set that the judge accepted on the way
        self.judge: Judge | None = None  # asked about every set of the master once one is accepted
        self.refusals = 0  # of such sets
        cells = engine.objective == "cells"
        self.stages = [engine.count, engine.tie] if cells else [engine.people, *[engine.tie] * engine.drawn]

    def run(self) -> Choice:
        """See `protect`. Raises `Impossible` when nothing that may be withheld is enough."""
        e, judge = self.e, Judge(self.e)
        if e.large:  # an attack costs less than a search for derivations: perhaps nothing needs doing
            verdict = judge.ask(e.fixed)
            if verdict.holds:
                return Choice(e.fixed, 0, e.n_stages, (), verdict.audit)
        sure: int | None = None
        for _ in range(e.limits.rounds):
            best = self.optimum()
            if best is None:
                break
            if e.large:  # that no second table was found refutes nothing: bounds rest on derivations alone
                sure = best.bound = best.bound if sure is None else sure
                best.stages = max(best.stages, int(self._value(self.stages[0], best.chosen) == sure))
            verdict = judge.ask(e.pattern(best.chosen))
            if verdict.holds and not e.large:
                self.accepted = best.chosen
                self._ties(best)
                verdict = judge.ask(e.pattern(best.chosen))
            if verdict.holds:
                return Choice(e.pattern(best.chosen), best.bound, best.stages, (), verdict.audit)
            if not judge.cut(self.pool, best.chosen):
                return self._widen(judge, best)
            if not e.algebraic:
                self.pool.forget_sums()
            if not e.large:
                if self.accepted is None and (e.below or not e.small):
                    self._refused(judge, best.chosen)
                if self.accepted is not None:
                    return self._cheaper(judge, self.accepted)
        raise Impossible("no pattern was found within the limits")

    def _cheaper(self, judge: Judge, accepted: frozenset[int]) -> Choice:
        """From a set that the judge accepted on: the master is asked for something cheaper, and what algebra or the
        judge says against it becomes a cut, until there is nothing."""
        self.judge, best = judge, _Best(accepted, 0)
        best.stages = int(self._stage(self.stages[0], [], best))
        self._ties(best)
        return Choice(self.e.pattern(best.chosen), best.bound, best.stages)

    def _refused(self, judge: Judge, chosen: frozenset[int]) -> None:
        """What the judge says of patterns near a refused one, until it accepts one: cuts at the price of a repair each,
        where an optimum between two refusals would cost a hundred. Of the accepted one the judge then gives back what
        is not needed."""
        prefer = np.zeros(self.pool.k)
        prefer[sorted(chosen)] = 0.8
        for _ in range(self.e.limits.judge_calls):
            near = self.near(prefer)
            if near is None:
                return
            if judge.ask(self.e.pattern(near)).holds:
                self._give_back(near)
                return
            judge.cut(self.pool, near)

    def _give_back(self, accepted: frozenset[int]) -> None:
        """The best of what is left of an accepted set when the judge gives back what is not needed, in a few orders."""
        cost, random, self.accepted = self.stages[0], np.random.default_rng(7), accepted
        for run in range(self.e.limits.given_back if self.e.small else 0):
            draw = random.random(self.pool.k) if run else np.ones(self.pool.k)
            kept = accepted
            for j in sorted(accepted, key=lambda j: (-cost[j] * draw[j], j)):
                if not self.settle(kept - {j}) and self.e.holds(self.e.pattern(kept - {j})):
                    kept = kept - {j}
            if self._value(cost, kept) < self._value(cost, self.accepted):
                self.accepted = kept

    def _widen(self, judge: Judge, best: _Best) -> Choice:
        """Large systems of which only the judge knows what is missing: the cells of one more pattern, until it
        accepts. Withholding more never makes a pattern less safe."""
        e, chosen = self.e, best.chosen
        for run in range(e.limits.widenings):
            more = self.near(np.random.default_rng(run).random(self.pool.k))
            chosen = chosen | (more or frozenset())
            verdict = judge.ask(e.pattern(chosen))
            if verdict.holds:
                return Choice(e.pattern(chosen), best.bound, 0, (), verdict.audit)
            union = None if verdict.audit is None else verdict.audit.smallest_derivable_union
            if union is not None and 0 < union.n < e.below:
                e.unions.setdefault(tuple(sorted({e.label[a] for a in union.atoms})))
        raise Impossible("no pattern was found within the limits")

    def optimum(self) -> _Best | None:
        """The best set by algebra that meets the cuts of the judge."""
        point = self._linear() if not self.e.large else None
        start = self.near(np.zeros(self.pool.k) if point is None else point.x)
        if start is None:
            return None
        best = _Best(start, 0 if point is None else _ceil(point.value), 0 if start else self.e.n_stages)
        if not start:
            return best
        if self.e.large:
            found = Linear(self.pool, self.stages[0]).solve()
            best.bound = 0 if found is None else _ceil(found.value)
            return best
        best.stages = int(self._stage(self.stages[0], [], best))
        return best

    def _ties(self, best: _Best) -> None:
        """Of the sets as good as one that the judge accepts the best in the stages after."""
        if best.stages in (0, self.e.n_stages):
            return
        fixed = [(self.stages[0], self._value(self.stages[0], best.chosen) + 0.25)]
        for cost in self.stages[1:]:
            if not self._stage(cost, fixed, best):
                return
            fixed.append((cost, self._value(cost, best.chosen) + 0.25))
            best.stages = max(best.stages, len(fixed))
        if best.stages < self.e.n_stages and not self.e.drawn and self._first_labels(fixed, best):
            best.stages = self.e.n_stages

    def _stage(self, cost: FloatArray, fixed: list[Limit], best: _Best) -> bool:
        """The best set in `cost` within the `fixed` limits, and whether that is proved: the master is asked for
        something cheaper than the best until there is nothing."""
        limits, first, low = self.e.limits, not fixed, 0
        self.work = 0
        linear = Linear(self.pool, cost, fixed)
        for turn in range(limits.rounds if first else limits.tie_rounds):
            point = linear.solve()
            if point is None:
                return False
            low = max(low, _ceil(point.value))
            if first and turn == 0 and self._value(cost, best.chosen) > low:
                self._repair(point, best, low)
            high = self._value(cost, best.chosen)
            if first:
                best.bound = max(best.bound, low)
            if low >= high:
                return True
            keep = point.value + point.reduced <= high - 1 + 1e-3
            if self.work > limits.iterations // (1 if first else 4) or keep.sum() > limits.columns:
                return False
            if not self.e.provable or (first and self._hopeless(low, high)):
                return False
            status, bound = self._ask(cost, fixed, best, high - 1, keep)
            low = max(low, bound)
            if first:
                best.bound = max(best.bound, min(low, high))
            if status == "infeasible":
                return True
            if status != "optimal":
                return False
        return False

    def _ask(self, cost: FloatArray, fixed: list[Limit], best: _Best, top: int, keep: BoolArray) -> tuple[str, int]:
        """One master under `top`, what it says and its bound; its set, or one near it, is kept where it is better."""
        self.count += 1
        found, chosen = self.pool.master(cost, fixed, self.e.limits.nodes, top, keep)
        self.work += found.iterations
        if found.status == "infeasible":
            return "infeasible", top + 1
        bound = _ceil(found.bound) if np.isfinite(found.bound) else 0
        refused = found.status == "optimal" and bool(self.settle(chosen, sharp=True))
        if found.status == "optimal" and (refused or not self._offer(chosen, cost, fixed, best)):
            share = np.zeros(self.pool.k)
            share[sorted(chosen)] = 1.0
            self._offer(self.near(share), cost, fixed, best)
        return found.status, bound

    def _judged(self, chosen: frozenset[int]) -> bool:
        """Whether the judge, once it is asked, accepts a set; if not, there are new cuts."""
        if self.judge is None:
            return True
        if not self.e.small and self.refusals >= REFUSALS:
            return False
        if self.judge.ask(self.e.pattern(chosen)).holds:
            return True
        self.refusals += 1
        if self.e.small:  # elsewhere a cut costs more than another set
            self.judge.cut(self.pool, chosen)
        return False

    def _repair(self, point: Point, best: _Best, low: int) -> None:
        """Better sets: parts of the best are given up and what is exposed then is mended another way."""
        e, cost = self.e, self.stages[0]
        random = np.random.default_rng(13)
        plain = self.near(np.zeros(self.pool.k))
        self._offer(plain, cost, [], best)
        now = best.chosen
        for run in range(e.repairs):
            if self._value(cost, best.chosen) <= low:
                return
            prefer = 0.15 * random.random(self.pool.k) + (0.3 * point.x if run % 2 else 0.0)
            inside = np.asarray(sorted(now))
            prefer[inside] += 0.8
            spared = random.random(len(inside)) < (0.05, 0.2)[run % 2]
            prefer[inside[spared]] = 0.0
            near = self.near(prefer)
            self._offer(near, cost, [], best)
            if near is not None and self._value(cost, near) <= self._value(cost, now):  # as good is another start
                now = near

    def _hopeless(self, low: int, high: int) -> bool:
        """Whether branch and bound would be asked in vain: a large table whose bound is far from the best."""
        return not self.e.provable or (not self.e.small and high - low > max(6, low // 8))

    def _first_labels(self, fixed: list[Limit], best: _Best) -> bool:
        """Of the sets that are as good in every stage the one with the first labels; False where there are too many."""
        cost, top = fixed[-1]
        known = [best.chosen]
        point = Linear(self.pool, cost, fixed[:-1]).solve()
        if point is None:
            return False
        keep = point.value + point.reduced <= top + 1e-3
        for _ in range(self.e.limits.tie_rounds):
            self.count += 1
            found, chosen = self.pool.master(cost, fixed[:-1], self.e.limits.nodes, top - 0.25, keep, known)
            if found.status == "infeasible":
                best.chosen = min(known, key=lambda s: self.e.labels(s))
                return True
            if found.status != "optimal":
                return False
            if not self.settle(chosen, sharp=True) and self._judged(chosen):
                known.append(chosen)
        return False

    def _offer(self, chosen: frozenset[int] | None, cost: FloatArray, fixed: list[Limit], best: _Best) -> bool:
        """Keep a set that algebra accepts if it is better and the judge, once asked, has nothing against it."""
        if chosen is None:
            return False
        better = self._value(cost, chosen) < self._value(cost, best.chosen)
        if better and all(self._value(c, chosen) <= top for c, top in fixed) and self._judged(chosen):
            best.chosen = chosen
            return True
        return False

    @staticmethod
    def _value(cost: FloatArray, chosen: frozenset[int]) -> int:
        return int(np.rint(cost[sorted(chosen)].sum()))

    def near(self, prefer: FloatArray) -> frozenset[int] | None:
        """A set that holds by algebra and meets the judge's cuts; candidates with a large `prefer` rather than others.

        Boxes through what is exposed where the table is crossed, then whatever of them is not needed is printed again;
        otherwise everything is printed that gives nothing away.
        """
        e, chosen = self.e, self.pool.hit(frozenset(), self.e.count)
        for _ in range(e.limits.fresh_rounds):
            self.count += 1
            exposed = self._first if not chosen else self.settle(chosen)
            if not exposed:
                return chosen
            order, sure = e.order(prefer, e.boxes(exposed, chosen, prefer))
            chosen = self.pool.hit(e.eliminate(order, sure), e.count)
            if not e.below:  # what may not be known was all named beforehand
                return chosen
        return None

    @cached_property
    def _first(self) -> list[Derivation]:
        """What is derivable when nothing else is withheld."""
        return self.settle(frozenset())

    def settle(self, chosen: frozenset[int], sharp: bool = False) -> list[Derivation]:
        """What a set leaves derivable, each a cut from now on. `sharp`: derivations of few cells as well."""
        share = np.zeros(self.pool.k)
        share[list(chosen)] = 1.0
        found = self.e.derivations(share, 0.5)
        self._learn(found)
        if found and sharp and self.separator is not None:
            value = np.full(len(self.e.groups), 1e-6)
            value[self.e.candidates] = np.maximum(share, 0.02)
            self._learn(self.separator.derivations(value, list(dict.fromkeys(d.classes for d in found))))
        return found

    def _learn(self, found: list[Derivation]) -> bool:
        """Turn derivations into cuts; whether any is new."""
        new = False
        for derivation in found:
            if derivation.people and self.e.below and len(self.e.unions) < 2000:
                self.e.unions.setdefault(derivation.classes)
            new = self.pool.add(self.e.cut(derivation)) or new
        return new

    def _linear(self) -> Point | None:
        """Cuts at fractional points until there are none or the bound hardly moves; the last point."""
        linear, values = Linear(self.pool, self.stages[0]), list[float]()
        while True:
            point = linear.solve()
            self.count += 1
            if point is None or not self.e.provable:
                return point
            values.append(point.value)
            stuck = len(values) > 15 and values[-1] - values[-16] < 2e-3 * values[-1]
            if len(values) > self.e.limits.first_rounds or stuck:
                return point
            new = self._learn(self._violated(point.x, self.e.derivations(point.x, 0.5)))
            if not new:
                new = self._learn(self._violated(point.x, self.e.derivations(point.x, 0.2)))
            if not new and self.separator is not None:
                value = np.zeros(len(self.e.groups))
                value[self.e.candidates] = point.x
                targets = list(dict.fromkeys([*self.e.watched, *self.e.unions]))
                new = self._learn(self._violated(point.x, self.separator.derivations(value, targets)))
            if not new:
                return point

    def _violated(self, share: FloatArray, found: list[Derivation]) -> list[Derivation]:
        return [d for d in found if share[list(self.e.cut(d))].sum() < 1 - 1e-6]


def _ceil(value: float) -> int:
    return int(np.ceil(value - 1e-6))
