"""One problem and one requirement as a hitting-set problem: patterns in, derivations and cuts out.

Candidates are groups of cells that print the same thing, in the order of their first labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .circuits import Circuits, Derivation
from .elimination import small_groups, withheld
from .intervals import merge_atoms
from .judge import SetAudit
from .separation import Separator
from .table import Cell, Problem

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Limits:
    """How much work, in counts and never in time.

    first_rounds, linear_rounds: rounds of the linear master before and after there is a first set; rounds: of the
    whole-number master, `tie_rounds` for the ties; nodes: branch and bound per master; iterations, tie_iterations: of
    the simplex method in all masters, for the first objective and for the ties. separation_size: classes × rows up to
    which derivations are also sought by linear programming. small_program: candidates × cuts up to which branch and
    bound is always tried; beyond (for ties up to `tie_program`), it is tried when the linear bound is close or splits
    at most `split_columns` candidates. search_nodes: nodes of the plain search that comes before. descent_steps,
    descent_settles: swaps and attacks of the local search; fewer attacks from descent_size ÷ (classes × rows).
    eliminations: patterns built by elimination, fewer from elimination_size ÷ (classes × rows); fresh_rounds: until
    one holds; listed_groups: small groups up to which all are listed. judge_calls: patterns the judge is asked about
    per refusal. large: classes from which a pattern is only built up greedily in `large_rounds` rounds, with the
    linear bound.
    """

    first_rounds: int = 40
    linear_rounds: int = 60
    rounds: int = 400
    nodes: int = 20_000
    iterations: int = 20_000
    tie_iterations: int = 1_500
    tie_rounds: int = 3
    tie_program: int = 75_000
    separation_size: int = 60_000
    small_program: int = 25_000
    split_columns: int = 40
    search_nodes: int = 3_000
    eliminations: int = 40
    elimination_size: int = 4_000_000
    fresh_rounds: int = 20
    listed_groups: int = 3_000
    descent_steps: int = 3_000
    descent_settles: int = 200
    descent_size: int = 6_000_000
    judge_calls: int = 40
    large: int = 2_000
    large_rounds: int = 12


@dataclass
class Group:
    """Cells that print the same thing: withheld together or not at all."""

    cells: list[str]
    rows: list[int]
    people: int
    candidate: bool


class Impossible(Exception):
    """What must be published reveals a small group by itself."""


def _signature(cell: Cell) -> tuple[object, ...]:
    return (cell.atoms, cell.n_rounding, cell.n_published, cell.mean)


class Engine:
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
        self.n_stages = 3 if objective == "cells" else 2
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
        grouped: dict[tuple[object, ...], Group] = {}
        for i, cell in enumerate(p.cells.values()):
            if cell.id in self.fixed and cell.id not in p.structural_zero:
                continue
            group = grouped.setdefault(_signature(cell), Group([], [], 0, True))
            group.cells.append(cell.id)
            group.rows.append(i)
            group.people += cell.n
            # A group of nobody protects nothing: it is known to be small as soon as its neighbours are.
            if cell.id in blocked or cell.n == 0:
                group.candidate = False
        for i in range(len(p.cells), len(self.rows)):
            grouped[(i,)] = Group([f"identity {i}"], [i], 0, False)
        self.groups = sorted(grouped.values(), key=lambda g: min(g.cells))
        self.row_group = {i: g for g, group in enumerate(self.groups) for i in group.rows}
        self.candidates = [g for g, group in enumerate(self.groups) if group.candidate]
        self.column = {g: j for j, g in enumerate(self.candidates)}
        self.people = np.asarray([float(self.groups[g].people) for g in self.candidates])
        self.count = np.asarray([float(len(self.groups[g].cells)) for g in self.candidates])

    def pattern(self, chosen: frozenset[int]) -> frozenset[str]:
        """Ids withheld when the candidates `chosen` are."""
        return self.fixed.union(*(self.groups[self.candidates[j]].cells for j in chosen)) if chosen else self.fixed

    def derivations(self, share: FloatArray, below: float, per_block: int = 64) -> list[Derivation]:
        """Small groups derivable from the cells with a share under `below`, low shares preferred."""
        value = np.zeros(len(self.groups))
        value[self.candidates] = share
        open_groups = [g for g in range(len(self.groups)) if value[g] < below]
        size = [len(self.rows[self.groups[g].rows[0]]) for g in open_groups]
        order = sorted(range(len(open_groups)), key=lambda i: (value[open_groups[i]], size[i], open_groups[i]))
        published = [self.groups[open_groups[i]].rows[0] for i in order]
        return self.circuits.small_unions(published, self.below, self.watched, per_block)

    @cached_property
    def _listed(self) -> list[tuple[int, ...]] | None:
        return small_groups(self.circuits.weight, self.below, self.limits.listed_groups)

    def small_groups(self) -> list[tuple[int, ...]]:
        """Groups that must not be derivable: all of them, or those found so far where there are too many to list."""
        groups = [] if not self.below else list(self.unions) if self._listed is None else self._listed
        return list(dict.fromkeys([*groups, *self.watched]))

    def order(
        self, share: FloatArray, around: frozenset[int] | None, random: np.random.Generator, run: int
    ) -> list[int]:
        """In which order an elimination publishes: what must be, then low shares first. `around` a set: some of its
        members are published after all, the others last."""
        key = np.full(len(self.groups), -2.0)
        key[self.candidates] = np.round(share, 6)
        tie = [len(self.rows[g.rows[0]]) * (1, -1, 0)[run % 3] - g.people * (run % 3 == 2) for g in self.groups]
        if around is not None:
            inside = [self.candidates[j] for j in sorted(around)]
            key[self.candidates] += 0.3 * random.random(len(self.candidates))
            key[inside] = 2.0 + random.random(len(inside))
            if inside:
                spared = random.choice(inside, size=min(len(inside), int(random.integers(1, 5))), replace=False)
                key[spared] = -1.0
        return sorted(range(len(self.groups)), key=lambda g: (key[g], -len(self.groups[g].cells), tie[g], g))

    def eliminate(self, order: Sequence[int], groups: Sequence[tuple[int, ...]]) -> frozenset[int]:
        """Candidates withheld when cells are published in this order as long as none of `groups` is given away."""
        rows = [self.rows[g.rows[0]] for g in self.groups]
        kept = withheld(self.circuits.k, rows, order, groups)
        if any(g not in self.column for g in kept):
            raise Impossible("what must be published reveals a small group")
        return frozenset(self.column[g] for g in kept)

    def cut(self, derivation: Derivation) -> tuple[int, ...]:
        """Candidates of which one must go. Raises `Impossible` if there is none."""
        cut = tuple(sorted(self.column[g] for g in {self.row_group[i] for i in derivation.rows} if g in self.column))
        if not cut:
            raise Impossible("what must be published reveals a small group")
        return cut

    def ok(self, judged: SetAudit) -> bool:
        """Whether the judge accepts, for the requirement."""
        if self.requirement == "exact":
            return judged.safe_exact
        return judged.safe_policy if self.requirement == "policy" else judged.safe_interval
