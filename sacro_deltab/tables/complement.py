"""Complementary suppression: the fewest extra cells so that nothing small can be worked out.

An implicit hitting set: every way to derive a small group names the published cells it needs, and a pattern must
withhold one of them. The master (HiGHS) proposes the cheapest set that hits all derivations known so far; the
pattern is attacked; new derivations are added; when none is left the set is optimal. Work is counted in rounds and
nodes, never in time: the same input gives the same pattern everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .circuits import Circuits
from .intervals import merge_atoms
from .judge import SetAudit, audit_pattern
from .solver import INF, Model, Solution
from .table import Cell, Problem

REQUIREMENTS = ("exact", "policy", "interval")


@dataclass(frozen=True)
class Limits:
    """How much work: rounds of the hitting set, branch-and-bound nodes per master, cuts per round."""

    rounds: int = 400
    nodes: int = 20_000
    audit_rounds: int = 200


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


@dataclass
class _State:
    cuts: list[frozenset[int]] = field(default_factory=list)
    known: set[frozenset[int]] = field(default_factory=set)

    def add(self, cut: frozenset[int]) -> bool:
        """Keep a cut unless one inside it is known."""
        if cut in self.known:
            return False
        self.known.add(cut)
        self.cuts.append(cut)
        return True


def _signature(cell: Cell) -> tuple[object, ...]:
    return (cell.atoms, cell.n_rounding, cell.n_published, cell.mean)


class _Engine:
    def __init__(
        self, problem: Problem, requirement: str, objective: str, limits: Limits, base: frozenset[str]
    ) -> None:
        self.problem, self.requirement, self.objective, self.limits = problem, requirement, objective, limits
        self.fixed = base
        self.ids = list(problem.cells)
        label, k = merge_atoms(len(problem.atoms), list(dict.fromkeys(c.atoms for c in problem.cells.values())))
        weight = [0] * k
        for atom, c in enumerate(label):
            weight[c] += problem.atoms[atom].n
        self.rows = [tuple(sorted({label[a] for a in c.atoms})) for c in problem.cells.values()]
        self.circuits = Circuits(self.rows, weight)
        self._groups()

    def _groups(self) -> None:
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
        self.groups = sorted(grouped.values(), key=lambda g: min(g.cells))
        self.group_of = {i: g for g, group in enumerate(self.groups) for i in group.rows}
        self.candidates = [g for g, group in enumerate(self.groups) if group.candidate]

    def cost(self) -> NDArray[np.float64]:
        """Primary objective per candidate."""
        if self.objective == "people":
            return np.asarray([float(self.groups[g].people) for g in self.candidates])
        return np.asarray([float(len(self.groups[g].cells)) for g in self.candidates])

    def pattern(self, chosen: frozenset[int]) -> frozenset[str]:
        return self.fixed.union(*(self.groups[g].cells for g in chosen)) if chosen else self.fixed

    def published(self, chosen: frozenset[int], order: Sequence[int]) -> list[int]:
        return [i for g in order if g not in chosen for i in self.groups[g].rows[:1]]

    def derivations(self, chosen: frozenset[int]) -> list[frozenset[int]]:
        """New cuts that the set `chosen` does not hit."""
        order = sorted(
            range(len(self.groups)), key=lambda g: (self.groups[g].candidate, len(self.rows[self.groups[g].rows[0]]), g)
        )
        published = self.published(chosen, order)
        p = self.problem
        exact_n = p.attacker.n_published == "exact"
        extra = [self.rows[i] for i, name in enumerate(self.ids) if name in self.fixed and name in set(p.primary)]
        below = p.policy.min_n if self.requirement != "exact" else 0
        if not exact_n:
            extra = []
        found = self.circuits.small_unions(published, below, dict.fromkeys(extra))
        return [frozenset(self.group_of[i] for i in d.rows) & frozenset(self.candidates) for d in found]

    def audit_cut(self, chosen: frozenset[int]) -> tuple[SetAudit, frozenset[int] | None]:
        """The judge's word on a pattern without small derivations; if it is not safe, a cut (publishing more never
        makes a pattern safer, so some published candidate must go)."""
        judged = audit_pattern(self.problem, self.pattern(chosen))
        ok = {
            "exact": judged.safe_exact,
            "policy": judged.safe_policy,
            "interval": judged.safe_interval,
        }[self.requirement]
        if ok:
            return judged, None
        return judged, frozenset(self.candidates) - chosen


def _master(
    engine: _Engine,
    cuts: Sequence[frozenset[int]],
    cost: NDArray[np.float64],
    fixed: list[tuple[NDArray[np.float64], float]],
) -> Solution:
    column = {g: j for j, g in enumerate(engine.candidates)}
    k = len(engine.candidates)
    if not cuts or not k:  # nothing to hit
        return Solution("optimal" if not cuts else "infeasible", np.zeros(k), 0.0, 0.0, np.zeros(0))
    model = Model([0.0] * k, [1.0] * k, [True] * k, max_nodes=engine.limits.nodes)
    rows = [([column[g] for g in sorted(cut)], [1.0] * len(cut), 1.0, INF) for cut in cuts]
    rows += [(list(range(k)), weights.tolist(), -INF, bound) for weights, bound in fixed]
    model.add_rows(rows)
    return model.minimise(cost)


def _greedy(engine: _Engine, cuts: Sequence[frozenset[int]]) -> frozenset[int]:
    """A cheap hitting set: most cuts hit per cost, fewest people, then order."""
    left = [set(c) for c in cuts]
    cost = dict(zip(engine.candidates, engine.cost().tolist(), strict=True))
    chosen: set[int] = set()
    while left:
        count: dict[int, int] = {}
        for cut in left:
            for g in cut:
                count[g] = count.get(g, 0) + 1
        best = min(count, key=lambda g: (max(cost[g], 1e-9) / count[g], engine.groups[g].people, g))
        chosen.add(best)
        left = [cut for cut in left if best not in cut]
    for g in sorted(chosen, key=lambda g: (-cost[g], -engine.groups[g].people, g)):
        if all((chosen - {g}) & cut for cut in cuts):
            chosen.discard(g)
    return frozenset(chosen)


def _tighten(engine: _Engine, state: _State, chosen: frozenset[int]) -> bool | None:
    """Add the cuts that `chosen` misses. True: some were added; False: none; None: nothing can hit one of them."""
    new = engine.derivations(chosen)
    if any(not cut for cut in new):
        return None
    added = 0
    for cut in sorted(new, key=lambda c: (len(c), sorted(c))):
        added += state.add(cut)
    return added > 0


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
    if must:
        return _everything(engine, 0, f"{len(must)} cells that must be published are too small")
    return _search(engine)


def _everything(engine: _Engine, rounds: int, why: str) -> Protection:
    chosen = frozenset(engine.candidates)
    pattern = engine.pattern(chosen)
    judged = audit_pattern(engine.problem, pattern)
    return Protection(
        pattern,
        pattern - engine.fixed,
        False,
        None,
        engine.requirement,
        engine.objective,
        False,
        judged,
        rounds,
        (why,),
    )


def _search(engine: _Engine) -> Protection:
    state, limits = _State(), engine.limits
    rounds = 0
    stages = [engine.cost()]
    if engine.objective == "cells":
        stages.append(np.asarray([float(engine.groups[g].people) for g in engine.candidates]))
    stages.append(np.arange(1.0, len(engine.candidates) + 1))
    fixed: list[tuple[NDArray[np.float64], float]] = []
    best: tuple[frozenset[int], SetAudit] | None = None
    bound: int | None = None
    proved = True
    impossible = "what must be published reveals a small group"
    for stage, cost in enumerate(stages):
        while rounds < limits.rounds:
            rounds += 1
            if stage == 0 and best is None:
                chosen = _greedy(engine, state.cuts)
                outcome = _tighten(engine, state, chosen)
                if outcome is None:
                    return _everything(engine, rounds, impossible)
                if outcome:
                    continue
            found = _master(engine, state.cuts, cost, fixed)
            if found.status == "infeasible" or len(found.x) != len(engine.candidates):
                return _everything(engine, rounds, impossible)
            chosen = frozenset(g for g, x in zip(engine.candidates, found.x, strict=True) if x > 0.5)
            if found.status == "limit":
                proved = False
            outcome = _tighten(engine, state, chosen)
            if outcome is None:
                return _everything(engine, rounds, impossible)
            if outcome:
                continue
            judged, cut = engine.audit_cut(chosen)
            if cut is not None:
                if not cut:
                    return _everything(engine, rounds, "withholding everything is still not enough")
                state.add(cut)
                continue
            best = (chosen, judged)
            if stage == 0:
                bound = int(np.ceil(found.bound - 1e-6))
            fixed.append((cost, float(np.rint(found.value)) + 0.5))
            break
        else:
            proved = False
            break
    if best is None:
        return _everything(engine, rounds, "no pattern was found within the limits")
    pattern = engine.pattern(best[0])
    return Protection(
        pattern, pattern - engine.fixed, proved, bound, engine.requirement, engine.objective, True, best[1], rounds
    )
