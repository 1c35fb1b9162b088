"""One problem and one requirement as a hitting-set problem: patterns in, derivations and cuts out.

Candidates are groups of cells that print the same thing, in the order of their first labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .attack import SetAudit, audit_pattern, holds
from .circuits import Circuits, Derivation
from .elimination import small_groups, withheld
from .layout import merge_atoms
from .relations import relations
from .separation import Separator
from .table import Cell, Problem

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Limits:
    """How much work, in counts and never in time.

    first_rounds: rounds of the linear master; rounds: of the whole-number master, `tie_rounds` for the ties; nodes:
    branch and bound per master; iterations, tie_iterations: of the simplex method in all masters, for the first
    objective and for the ties; columns: candidates that the linear bound may leave to a master. separation_size:
    classes × rows up to which derivations are also sought by linear programming. search_size: candidates × cuts up to
    which a plain search comes before, of search_nodes in each of search_rounds. polishes: searches for a better set
    among the members of polish_sets good ones (fewer from elimination_size ÷ (classes × rows)), each of polish_rounds
    masters of polish_nodes, in all of polish_iterations; core: candidates of least reduced cost that take part for the
    ties. fresh_rounds: eliminations until one holds; listed_groups: small groups up to which all are listed.
    judge_calls: patterns the judge is asked about per refusal. large: classes from which a pattern is only built up
    greedily in `large_rounds` rounds, with the linear bound; widenings: eliminations added to one that the
    judge refused.
    """

    first_rounds: int = 40
    rounds: int = 400
    nodes: int = 500
    iterations: int = 12_000
    tie_rounds: int = 10
    tie_iterations: int = 300
    columns: int = 4_000
    separation_size: int = 60_000
    search_size: int = 1_000_000
    search_nodes: int = 3_000
    search_rounds: int = 12
    polishes: int = 4
    polish_sets: int = 4
    polish_rounds: int = 10
    polish_nodes: int = 20
    polish_iterations: int = 8_000
    elimination_size: int = 8_000_000
    core: int = 60
    fresh_rounds: int = 20
    listed_groups: int = 3_000
    judge_calls: int = 40
    large: int = 2_000
    large_rounds: int = 12
    widenings: int = 5


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
        self.label = label
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
        self._watched = frozenset(self.watched)
        # With exact N alone a cell that follows from printed ones tells nothing more, whoever judges.
        self.algebraic = exact_n and all(
            c.mean is None and c.sd is None and not c.percent for c in problem.cells.values()
        )
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

    def sums(self) -> tuple[list[list[int]], list[tuple[int, ...]]]:
        """Sets of candidates of which a smallest pattern withholds none or at least two, and cuts: the other cells of a
        sum that holds one withheld small group."""
        state: dict[tuple[int, ...], int] = {}  # by classes: -2 printed, a candidate's column, -1 withheld
        for i, row in enumerate(self.rows):
            group = self.row_group.get(i)
            now = -1 if group is None else self.column.get(group, -2)
            before = state.setdefault(row, now)
            if before != now:  # printed twice, in ways that differ
                state[row] = -2 if -2 in (before, now) else max(before, now)
        rows = [row for row in state if row]
        table = [c.table for c in self.problem.cells.values()] + [""] * len(self.rows)
        first = {row: table[i] for i, row in reversed(list(enumerate(self.rows)))}
        sums, cuts = [], []
        for cells in relations(self.circuits.k, rows, [first[row] for row in rows]):
            states = [state[rows[i]] for i in cells]
            members = [j for j in states if j >= 0]
            gone = [rows[i] for i, j in zip(cells, states, strict=True) if j == -1]
            if not gone and members:
                sums.append(members)
            elif len(gone) == 1 and members and self._must_hold(gone[0]):
                cuts.append(tuple(sorted(members)))
        return sums, cuts

    def _must_hold(self, row: tuple[int, ...]) -> bool:
        return row in self._watched or 0 < sum(self.circuits.weight[c] for c in row) < self.below

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

    def audit(self, pattern: frozenset[str]) -> SetAudit:
        """What the requirement needs of an audit: intervals of primary cells, means only where they decide."""
        return audit_pattern(
            self.problem, pattern, means=self.requirement == "interval", about=frozenset(self.problem.primary)
        )

    def holds(self, pattern: frozenset[str]) -> bool:
        """Whether the judge accepts, for the requirement."""
        return holds(self.problem, pattern, self.requirement)
