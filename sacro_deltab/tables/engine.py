"""One problem and one requirement as a hitting-set problem: patterns in, derivations and cuts out.

Candidates are groups of cells that print the same thing, in the order of their first labels.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .attack import holds
from .boxes import NEVER, Grid
from .circuits import Circuits, Derivation
from .layout import merge_atoms
from .prune import small_groups, withheld
from .relations import relations
from .table import Cell, Problem

FloatArray = NDArray[np.float64]
LISTED = 3_000  # small groups up to which all are listed


@dataclass(frozen=True)
class Limits:
    """How much work, in counts and never in time.

    first_rounds: rounds of the linear master; rounds: of the whole-number master and of the judge's refusals,
    `tie_rounds` for the ties; nodes: branch and bound per master;
    iterations: of the simplex method in all masters of one stage, a quarter of it for ties; columns:
    candidates that the linear bound may leave to a master. provable: classes × rows up to which a proof is sought;
    separated: up to which derivations are also sought by linear programming. repairs: times that a part of the best
    set is given up and mended (fewer from repair_size ÷ (classes × rows), few_repairs
    where the exact master is quick). fresh_rounds: patterns until one holds. judge_calls: patterns the judge is asked
    about per refusal; given_back: orders in which it gives back cells of one that it accepts. large: classes from
    which the pattern is not improved; widenings: patterns added to one that the judge refused there.
    """

    first_rounds: int = 40
    rounds: int = 400
    tie_rounds: int = 10
    nodes: int = 500
    iterations: int = 3_000
    columns: int = 4_000
    provable: int = 8_000_000
    separated: int = 60_000
    repairs: int = 150
    few_repairs: int = 20
    repair_size: int = 120_000_000
    fresh_rounds: int = 20
    judge_calls: int = 40
    given_back: int = 5
    large: int = 2_000
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
        self,
        problem: Problem,
        requirement: str,
        objective: str,
        limits: Limits,
        base: frozenset[str],
        key: bytes | None = None,
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
        self.drawn = key is not None
        self.n_stages = 3 if objective == "cells" and not self.drawn else 2
        self._group_cells()
        self.tie = self.people if key is None else self._draw(key)
        size = k * len(self.groups)
        # Crossed tables stay with boxes however large they are.
        self.large = k > limits.large and self.grid is None
        self.provable, self.small = size <= limits.provable, size <= limits.separated
        self.repairs = min(limits.repairs, limits.repair_size // max(1, size)) if self.grid else 4 * self.provable
        if self.small:
            self.repairs = min(self.repairs, limits.few_repairs)
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

    def _draw(self, key: bytes) -> FloatArray:
        """Weights of candidates by a key: what nobody without it can draw again."""
        seed = hashlib.blake2b("\n".join(self.problem.cells).encode(), key=hashlib.sha256(key).digest()).digest()
        return np.random.default_rng(list(seed)).integers(1, 1000, len(self.candidates)).astype(np.float64)

    @cached_property
    def grid(self) -> Grid | None:
        """The table as a crossed one."""
        return Grid.of(self.circuits.k, self.rows)

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
        return small_groups(self.circuits.weight, self.below, LISTED)

    def small_groups(self) -> list[tuple[int, ...]]:
        """Groups that must not be derivable: all of them, or those found so far where there are too many to list."""
        groups = [] if not self.below else list(self.unions) if self._listed is None else self._listed
        return list(dict.fromkeys([*groups, *self.watched]))

    def labels(self, chosen: frozenset[int]) -> list[str]:
        """Ids of some candidates, sorted."""
        return sorted(name for j in chosen for name in self.groups[self.candidates[j]].cells)

    def boxes(self, exposed: Sequence[Derivation], chosen: frozenset[int], prefer: FloatArray) -> frozenset[int] | None:
        """Candidates withheld when every exposed group gets its cheapest box, the cheapest first, besides `chosen`;
        None where the table is not crossed."""
        grid = self.grid
        if grid is None:
            return None
        weight = (self.count if self.objective == "cells" else self.people) + 0.5 * self.tie / (1.0 + self.tie.max())
        weight = weight * (1.02 - prefer)
        cost = np.zeros(int(np.prod(grid.shape)))
        at = [grid.flat.get(self.rows[group.rows[0]]) for group in self.groups]
        members: dict[int, list[int]] = {}
        for g, place in enumerate(at):
            if place is None:
                continue
            j = self.column.get(g)
            cost[place] += NEVER if j is None else 0.0 if j in chosen else weight[j]
            members.setdefault(place, []).extend([] if j is None else [j])
        out = set(chosen)
        queue = [(0.0, n, d.classes) for n, d in enumerate(exposed)]
        while queue:
            value, n, group = heapq.heappop(queue)
            box = grid.through(cost, group)
            if box is None:
                continue  # elimination withholds something else
            if queue and box.value > max(value, queue[0][0]) + 1e-9:
                heapq.heappush(queue, (box.value, n, group))
                continue
            out.update(j for place in box.cells.tolist() for j in members.get(place, ()))
            cost[box.cells] = 0.0
        return frozenset(out)

    def order(self, prefer: FloatArray, grown: frozenset[int] | None) -> tuple[list[int], int]:
        """In which order an elimination prints, and how many groups it prints in any case: what must be, then what is
        not in `grown`, then low shares first, among equals the largest groups of people."""
        key = np.full(len(self.groups), -2.0)
        tie = np.zeros(len(self.groups))
        key[self.candidates] = np.round(prefer, 6)
        tie[self.candidates] = self.tie
        if grown is not None:
            key[[g for j, g in enumerate(self.candidates) if j not in grown]] = -1.0
        order = sorted(range(len(self.groups)), key=lambda g: (key[g], -len(self.groups[g].cells), -tie[g], g))
        return order, int((key < 0).sum())

    def eliminate(self, order: Sequence[int], sure: int) -> frozenset[int]:
        """Candidates withheld when cells are printed in this order as long as no small group is given away."""
        rows = [self.rows[g.rows[0]] for g in self.groups]
        kept = withheld(rows, order, self.small_groups(), sure)
        if any(g not in self.column for g in kept):
            raise Impossible("what must be published reveals a small group")
        return frozenset(self.column[g] for g in kept)

    def cut(self, derivation: Derivation) -> tuple[int, ...]:
        """Candidates of which one must go. Raises `Impossible` if there is none."""
        cut = tuple(sorted(self.column[g] for g in {self.row_group[i] for i in derivation.rows} if g in self.column))
        if not cut:
            raise Impossible("what must be published reveals a small group")
        return cut

    def holds(self, pattern: frozenset[str]) -> bool:
        """Whether the judge accepts, for the requirement."""
        return holds(self.problem, pattern, self.requirement)
