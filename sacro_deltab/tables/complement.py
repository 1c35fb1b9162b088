"""Complementary suppression: the fewest extra cells so that nothing small can be worked out.

An implicit hitting set: every way to derive a small group names the published cells it needs, and a pattern must
withhold one of them. The master (HiGHS) proposes the cheapest set that hits all derivations known so far; the
pattern is attacked; new derivations are added; when none is left the set is optimal. Work is counted in rounds and
nodes, never in time: the same input gives the same pattern everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .circuits import Circuits, Derivation
from .hitting import Pool
from .intervals import merge_atoms
from .judge import SetAudit, audit_pattern
from .search import smallest_hitting_set
from .separation import Separator
from .table import Cell, Problem

REQUIREMENTS = ("exact", "policy", "interval")


@dataclass(frozen=True)
class Limits:
    """How much work, in counts and never in time.

    linear_rounds, rounds: rounds of the linear and of the whole-number master; nodes: branch and bound per master;
    separation_size: classes × rows up to which derivations are also sought by linear programming; small_program:
    candidates × cuts up to which branch and bound is always tried; beyond, it is
    tried when the linear optimum splits at most `split_columns` of them; search_nodes: nodes of the search that
    comes before branch and bound; large: classes from which a pattern is only built up greedily in `large_rounds`
    rounds, with the linear bound.
    """

    linear_rounds: int = 60
    rounds: int = 400
    nodes: int = 20_000
    separation_size: int = 60_000
    small_program: int = 25_000
    search_nodes: int = 3_000
    large: int = 2_000
    large_rounds: int = 12
    split_columns: int = 40


@dataclass(frozen=True)
class Protection:
    """What to withhold.

    `bound`: no pattern with fewer complementary cells (people, when that is the objective) exists; equal to what is
    found when `proved_optimal`. `possible` is False when cells that must be published reveal a small group by
    themselves: then the pattern is everything that may be withheld, and it is not safe.
    """

    suppressed: frozenset[str]
    complementary: frozenset[str]
    proved_optimal: bool
    bound: int | None
    requirement: str
    objective: str
    possible: bool
    audit: SetAudit
    rounds: int
    notes: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        """What the independent audit says of the pattern, for the requirement."""
        if self.requirement == "exact":
            return self.audit.safe_exact
        return self.audit.safe_interval if self.requirement == "interval" else self.audit.safe_policy

    def to_json(self) -> dict[str, Any]:
        """The `protection` block of `tables protect`."""
        return {
            "requirement": self.requirement,
            "objective": self.objective,
            "possible": self.possible,
            "suppressed": sorted(self.suppressed),
            "complementary": sorted(self.complementary),
            "count": len(self.complementary),
            "proved_optimal": self.proved_optimal,
            "bound": self.bound,
            "gap": None if self.bound is None or self.objective != "cells" else len(self.complementary) - self.bound,
            "safe": self.safe,
            "notes": list(self.notes),
        }


@dataclass
class _Group:
    """Cells that print the same thing: withheld together or not at all."""

    cells: list[str]
    rows: list[int]
    people: int
    candidate: bool


class _Impossible(Exception):
    """What must be published reveals a small group by itself."""


def _signature(cell: Cell) -> tuple[object, ...]:
    return (cell.atoms, cell.n_rounding, cell.n_published, cell.mean)


class _Engine:
    """One problem, one requirement: patterns in, cuts out. Candidates are groups of like cells, by position."""

    def __init__(
        self, problem: Problem, requirement: str, objective: str, limits: Limits, base: frozenset[str]
    ) -> None:
        self.problem, self.requirement, self.objective, self.limits = problem, requirement, objective, limits
        self.fixed = base
        groups = [c.atoms for c in problem.cells.values()] + [i.atoms for i in problem.identities]
        label, k = merge_atoms(len(problem.atoms), list(dict.fromkeys(groups)))
        weight = [0] * k
        for atom, c in enumerate(label):
            weight[c] += problem.atoms[atom].n
        self.rows = [tuple(sorted({label[a] for a in c.atoms})) for c in problem.cells.values()]
        if requirement == "interval":  # sums that are zero by construction are margins that nobody can withhold
            self.rows += [tuple(sorted({label[a] for a in i.atoms})) for i in problem.identities if i.is_margin]
        self.circuits = Circuits(self.rows, weight)
        self.large = k > limits.large
        self._group_cells()
        self.below = 0 if requirement == "exact" else problem.policy.min_n
        # Exact disclosure by algebra alone only follows from exact N; rounded N are left to the judge's intervals.
        primary = set(problem.primary)
        ids = list(problem.cells)
        exact_n = all(c.n_rounding == "exact" for c in problem.cells.values())
        watched = [self.rows[i] for i, name in enumerate(ids) if name in base and name in primary] if exact_n else []
        self.watched = list(dict.fromkeys(watched))
        self.unions: dict[tuple[int, ...], None] = {}
        self.separator: Separator | None = None
        if k * len(self.groups) <= limits.separation_size:
            self.separator = Separator(self.circuits, [g.rows[0] for g in self.groups])

    def _group_cells(self) -> None:
        p = self.problem
        blocked = p.must_publish | p.structural_zero
        grouped: dict[tuple[object, ...], _Group] = {}
        for i, cell in enumerate(p.cells.values()):
            if cell.id in self.fixed and cell.id not in p.structural_zero:
                continue
            group = grouped.setdefault(_signature(cell), _Group([], [], 0, True))
            group.cells.append(cell.id)
            group.rows.append(i)
            group.people += cell.n
            # A group of nobody protects nothing: it is known to be small as soon as its neighbours are.
            if cell.id in blocked or cell.n == 0:
                group.candidate = False
        for i in range(len(p.cells), len(self.rows)):
            grouped[(i,)] = _Group([f"identity {i}"], [i], 0, False)
        self.groups = sorted(grouped.values(), key=lambda g: min(g.cells))
        self.row_group = {i: g for g, group in enumerate(self.groups) for i in group.rows}
        self.candidates = [g for g, group in enumerate(self.groups) if group.candidate]
        self.column = {g: j for j, g in enumerate(self.candidates)}
        self.people = np.asarray([float(self.groups[g].people) for g in self.candidates])
        self.count = np.asarray([float(len(self.groups[g].cells)) for g in self.candidates])

    def pattern(self, chosen: frozenset[int]) -> frozenset[str]:
        """Ids withheld when the candidates `chosen` are."""
        return self.fixed.union(*(self.groups[self.candidates[j]].cells for j in chosen)) if chosen else self.fixed

    def derivations(self, share: NDArray[np.float64], below: float, per_block: int = 64) -> list[Derivation]:
        """Small groups derivable from the cells with a share under `below`, low shares preferred."""
        value = np.zeros(len(self.groups))
        value[self.candidates] = share
        open_groups = [g for g in range(len(self.groups)) if value[g] < below]
        size = [len(self.rows[self.groups[g].rows[0]]) for g in open_groups]
        order = sorted(range(len(open_groups)), key=lambda i: (value[open_groups[i]], size[i], open_groups[i]))
        published = [self.groups[open_groups[i]].rows[0] for i in order]
        return self.circuits.small_unions(published, self.below, self.watched, per_block)

    def cut(self, derivation: Derivation) -> tuple[int, ...]:
        """Candidates of which one must go. Raises `_Impossible` if there is none."""
        cut = tuple(sorted(self.column[g] for g in {self.row_group[i] for i in derivation.rows} if g in self.column))
        if not cut:
            raise _Impossible
        return cut

    def ok(self, judged: SetAudit) -> bool:
        """Whether the judge accepts, for the requirement."""
        if self.requirement == "exact":
            return judged.safe_exact
        return judged.safe_policy if self.requirement == "policy" else judged.safe_interval


def protect(
    problem: Problem,
    *,
    policy: str = "policy",
    objective: str = "cells",
    suppressed: frozenset[str] | None = None,
    limits: Limits | None = None,
) -> Protection:
    """Choose the complementary cells.

    Parameters
    ----------
    policy
        The requirement: "exact" (no primary N exactly known), "policy" (besides, no group of 1 to min_n − 1 people
        derivable), "interval" (besides, every primary protected by the policy's intervals).
    objective
        "cells": fewest cells, then fewest people, then labels. "people": fewest people, then labels.
    suppressed
        Cells withheld in any case, besides the primary ones.
    """
    if policy not in REQUIREMENTS or objective not in ("cells", "people"):
        raise InputError("unknown requirement or objective", next_step=f"use one of {', '.join(REQUIREMENTS)}")
    limits = limits or Limits()
    must = sorted(set(problem.primary) & problem.must_publish)
    base = (frozenset(problem.primary) - problem.must_publish) | problem.pattern(suppressed or ())
    engine = _Engine(problem, policy, objective, limits, base)
    search = _Search(engine)
    if must:
        return search.everything(f"{len(must)} cells that must be published are too small")
    try:
        return search.run()
    except _Impossible:
        return search.everything("what must be published reveals a small group")


class _Search:
    """Linear rounds, then whole-number rounds per stage of the objective, then the judge."""

    def __init__(self, engine: _Engine) -> None:
        self.e = engine
        cells = engine.objective == "cells"
        self.pool = Pool(len(engine.candidates), engine.count if cells else engine.people, engine.people)
        self.rounds = 0
        rank = np.arange(1.0, len(engine.candidates) + 1)
        self.stages = [engine.count, engine.people, rank] if cells else [engine.people, rank]

    def everything(self, why: str) -> Protection:
        """All that may be withheld, said not to be enough."""
        e = self.e
        pattern = e.pattern(frozenset(range(len(e.candidates))))
        judged = audit_pattern(e.problem, pattern)
        return Protection(
            pattern, pattern - e.fixed, False, None, e.requirement, e.objective, False, judged, self.rounds, (why,)
        )

    def add(self, found: Sequence[Derivation]) -> bool:
        """Turn derivations into cuts; whether any is new."""
        new = False
        for derivation in found:
            if derivation.people and self.e.below and len(self.e.unions) < 2000:
                self.e.unions.setdefault(derivation.classes)
            new = self.pool.add(self.e.cut(derivation)) or new
        return new

    def linear(self) -> NDArray[np.float64]:
        """Cuts at fractional points; returns the last of them."""
        share = np.zeros(self.pool.k)
        for _ in range(self.e.limits.linear_rounds):
            self.rounds += 1
            share = self.pool.relaxed()
            new = self.add(self._violated(share, self.e.derivations(share, 0.5)))
            if not new:
                new = self.add(self._violated(share, self.e.derivations(share, 0.2)))
            if not new and self.e.separator is not None:
                new = self._separate(share)
            if not new:
                break
        return share

    def _violated(self, share: NDArray[np.float64], found: Sequence[Derivation]) -> list[Derivation]:
        return [d for d in found if share[list(self.e.cut(d))].sum() < 1 - 1e-6]

    def _separate(self, share: NDArray[np.float64]) -> bool:
        e = self.e
        assert e.separator is not None
        value = np.zeros(len(e.groups))
        value[e.candidates] = share
        targets = list(dict.fromkeys([*e.watched, *e.unions]))
        return self.add(self._violated(share, e.separator.derivations(value, targets)))

    def settle(self, chosen: frozenset[int]) -> bool:
        """Whether a whole pattern leaves no small group derivable; else its derivations are added."""
        share = np.zeros(self.pool.k)
        share[list(chosen)] = 1.0
        return not self.add(self.e.derivations(share, 0.5))

    def heuristic(self, share: NDArray[np.float64], start: frozenset[int] = frozenset()) -> frozenset[int] | None:
        """A feasible pattern by greedy choice (around `start`), cuts added on the way."""
        chosen = start
        for _ in range(self.e.limits.rounds):
            self.rounds += 1
            chosen = self.pool.greedy(share, start=chosen if start else frozenset())
            if self.settle(chosen):
                return chosen
        return None

    def run(self) -> Protection:
        """See `protect`."""
        e = self.e
        if e.large:  # an attack costs less than a search for derivations: perhaps nothing needs doing
            judged = audit_pattern(e.problem, e.fixed)
            if e.ok(judged):
                return Protection(e.fixed, frozenset(), True, 0, e.requirement, e.objective, True, judged, 0)
        for _ in range(e.limits.large_rounds if e.large else e.limits.rounds):
            found = self.optimum()
            if found is None:
                return self.everything("no pattern was found within the limits")
            chosen, bound, proved = found
            pattern = self.e.pattern(chosen)
            judged = audit_pattern(self.e.problem, pattern)
            if e.ok(judged):
                return Protection(
                    pattern, pattern - e.fixed, proved, bound, e.requirement, e.objective, True, judged, self.rounds
                )
            # Publishing more never makes a pattern safer: one of the cells published here must go.
            rest = [j for j in range(self.pool.k) if j not in chosen]
            if not rest:
                return self.everything("withholding everything is still not enough")
            self.pool.add(rest)
        return self.everything("no pattern was found within the limits")

    def optimum(self) -> tuple[frozenset[int], int | None, bool] | None:
        """Best pattern by algebra: chosen, proved bound of the first objective, whether every stage is proved."""
        if self.e.large:
            return self.build_up()
        share = self.linear()
        found = self.small()
        if found is not None:
            return found, int(self._value(self.stages[0], found)), True
        bound = int(np.ceil(self.pool.relaxed_bound() - 1e-6))
        best = self.heuristic(share)
        if best is None:
            return None
        limits: list[tuple[NDArray[np.float64], float]] = []
        proved = False
        for stage, cost in enumerate(self.stages):
            best, done, low = self._stage(cost, limits, best, share, bound if stage == 0 else None)
            if stage == 0:
                bound, proved = max(bound, low), done
            if not done:
                break
            limits.append((cost, self._value(cost, best) + 0.25))
        return best, bound, proved

    def build_up(self) -> tuple[frozenset[int], int | None, bool] | None:
        """Large systems: what hits the derivations found so far stays withheld, so that few rounds are enough."""
        chosen: frozenset[int] = frozenset()
        for _ in range(self.e.limits.large_rounds):
            self.rounds += 1
            if self.settle(chosen):
                bound = int(np.ceil(self.pool.relaxed_bound() - 1e-6)) if self.pool.cuts else 0
                return chosen, bound, not chosen
            chosen = self.pool.greedy(start=chosen) if chosen else self.pool.greedy()
        return None

    def small(self) -> frozenset[int] | None:
        """The optimum of every stage at once by plain search, if its budget settles it."""
        if self.pool.k * len(self.pool.cuts) > 40 * self.e.limits.small_program:
            return None
        cost = [0] * self.pool.k
        for stage in self.stages:  # one whole number per candidate: the stages one after the other
            scale = int(np.rint(stage.sum())) + 1
            cost = [c * scale + int(w) for c, w in zip(cost, np.rint(stage), strict=True)]
        for _ in range(self.e.limits.rounds):
            self.rounds += 1
            chosen = smallest_hitting_set(self.pool.cuts, cost, self.e.limits.search_nodes)
            if chosen is None or self.settle(chosen):
                return chosen
        return None

    def _worth_it(
        self, cost: NDArray[np.float64], limits: list[tuple[NDArray[np.float64], float]], value: float
    ) -> bool:
        """Whether branch and bound is likely to end soon: a small program, or a linear bound close to the best."""
        size = self.pool.k * len(self.pool.cuts)
        if size <= self.e.limits.small_program:
            return True
        linear = self.pool.master(cost, limits, 0)
        split = int(((linear.x > 0.01) & (linear.x < 0.99)).sum())
        return value - linear.value < 1 or split <= self.e.limits.split_columns

    @staticmethod
    def _value(cost: NDArray[np.float64], chosen: frozenset[int]) -> float:
        return float(np.rint(cost[sorted(chosen)].sum()))

    def _stage(
        self,
        cost: NDArray[np.float64],
        limits: list[tuple[NDArray[np.float64], float]],
        best: frozenset[int],
        share: NDArray[np.float64],
        known: int | None,
    ) -> tuple[frozenset[int], bool, int]:
        """Ask for something better than the best until there is nothing: (best, proved, bound)."""
        bound = known or 0
        for _ in range(self.e.limits.rounds):
            value = self._value(cost, best)
            if value <= bound:
                return best, True, bound
            self.rounds += 1
            if not self._worth_it(cost, limits, value):
                return best, False, bound
            found = self.pool.master(cost, [*limits, (cost, value - 0.75)], self.e.limits.nodes)
            if found.status == "infeasible":
                return best, True, int(value)
            if found.status != "optimal":
                return best, False, bound
            if known is not None:
                bound = max(bound, int(np.ceil(found.bound - 1e-6)))
            chosen = frozenset(int(j) for j in np.flatnonzero(found.x > 0.5))
            if self.settle(chosen):
                return chosen, True, int(np.rint(found.value))
            repaired = self.heuristic(share, chosen)
            if repaired is not None and self._fits(repaired, limits) and self._value(cost, repaired) < value:
                best = repaired
        return best, False, bound

    def _fits(self, chosen: frozenset[int], limits: list[tuple[NDArray[np.float64], float]]) -> bool:
        return all(self._value(cost, chosen) <= bound for cost, bound in limits)
