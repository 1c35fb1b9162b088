"""Merging groups instead of losing the table: the smallest merges after which it need not be withheld."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..base.errors import InputError
from .complement import protect
from .rounding import round_value, shown_n
from .shares import withhold
from .solver import SolverError
from .table import Cell, Problem

Labels = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Merge:
    """`groups`: labels put together, per new group. `suppressed`, `cells`: interior cells of the table afterwards."""

    table: str
    groups: tuple[tuple[str, ...], ...]
    suppressed: int
    cells: int

    def __str__(self) -> str:
        what = "; ".join(" + ".join(group) for group in self.groups)
        left = f"{self.suppressed} of {self.cells} groups marked" if self.suppressed else "nothing marked"
        return f"merge {what} ({left})"


def suggest_merges(
    problem: Problem,
    table: str,
    *,
    declared: Sequence[Sequence[str]] | None = None,
    labels: Labels | None = None,
    ordered: bool = True,
    requirement: str = "policy",
    most: int = 3,
    tries: int = 120,
) -> tuple[Merge, ...]:
    """The smallest merges that save a table.

    Parameters
    ----------
    table
        Name of the table; its interior cells are the groups.
    declared
        Groups (of labels) that may be merged; default: neighbours in the table's order.
    labels
        For crossed tables: the labels of every interior and margin cell, one per dimension, "*" for a total. Merging
        then joins two categories of one dimension everywhere. Default: one dimension, the cell's id.
    ordered
        Whether only neighbours may be merged; False: any two groups.
    most
        How many suggestions.
    tries
        How many merged tables are protected to find out (a count, not a time).

    Returns
    -------
    Suggestions with the fewest groups joined first, then fewest cells marked; empty when nothing up to three joins
    saves the table, or when the table needs no saving.
    """
    cells = [c for c in problem.cells.values() if c.table == table and c.role == "interior"]
    if not cells:
        raise InputError(f"no table is called {table!r}, or it has no interior cells")
    where = labels or {c.id: (c.id,) for c in cells}
    missing = next((c.id for c in cells if c.id not in where), None)
    if missing is not None:
        raise InputError(f"no labels for cell {missing!r}")
    try:
        if not _withheld(problem, table, requirement)[0]:
            return ()
    except SolverError:  # not even the table as it is can be judged
        return ()
    found: list[Merge] = []
    for joins in (1, 2, 3):
        for plan in _plans(where, [c.id for c in cells], declared, ordered, joins):
            if tries <= 0:
                break
            tries -= 1
            merged = _merged(problem, table, where, plan)
            if merged is None:
                continue
            try:
                withheld, suppressed, total = _withheld(merged, table, requirement)
            except SolverError:  # a suggestion that cannot be judged is none
                continue
            if not withheld:
                names = tuple(tuple(group) for _, group in plan)
                found.append(Merge(table, names, suppressed, total))
        if found:
            break
    found.sort(key=lambda m: (m.suppressed, -m.cells, m.groups))
    return tuple(found[:most])


def _withheld(problem: Problem, table: str, requirement: str) -> tuple[bool, int, int]:
    """Whether the table is withheld after protection, interior cells marked, interior cells."""
    result = protect(problem, policy=requirement)
    share = withhold(problem, result.suppressed)[table]
    lost = share.withhold_interior or not (result.possible and result.safe)
    return lost, share.suppressed_interior, share.cells_interior


Plan = tuple[tuple[int, tuple[str, ...]], ...]


def _plans(
    where: Labels, ids: Sequence[str], declared: Sequence[Sequence[str]] | None, ordered: bool, joins: int
) -> Iterator[Plan]:
    """Ways to lose `joins` categories: (dimension, labels put together)."""
    n_dimensions = len(where[ids[0]])
    units: list[tuple[int, tuple[str, ...]]] = []
    for d in range(n_dimensions):
        names = list(dict.fromkeys(where[i][d] for i in ids))
        if declared is not None:
            units += [(d, tuple(g)) for g in declared if len(g) >= 2 and set(g) <= set(names)]
        elif ordered:
            units += [
                (d, tuple(names[i : i + size])) for size in range(2, joins + 2) for i in range(len(names) - size + 1)
            ]
        else:
            units += [(d, pick) for size in range(2, joins + 2) for pick in itertools.combinations(names, size)]
    for count in range(1, joins + 1):
        for chosen in itertools.combinations(units, count):
            if sum(len(group) - 1 for _, group in chosen) != joins:
                continue
            if all(a[0] != b[0] or not set(a[1]) & set(b[1]) for a, b in itertools.combinations(chosen, 2)):
                yield chosen


def _merged(problem: Problem, table: str, where: Labels, plan: Plan) -> Problem | None:
    """The problem with categories put together; None if a cell that has left already would change."""
    rename = [dict[str, str]() for _ in range(max(d for d, _ in plan) + 1)]
    for d, group in plan:
        rename[d].update({label: " + ".join(group) for label in group})
    kept: dict[str, Cell] = {}
    joined: dict[tuple[str, ...], list[Cell]] = {}
    for cell in problem.cells.values():
        if cell.table != table or cell.id not in where:
            kept[cell.id] = cell
            continue
        old = where[cell.id]
        new = tuple(rename[d].get(x, x) if d < len(rename) else x for d, x in enumerate(old))
        if new == old:
            kept[cell.id] = cell
        else:
            joined.setdefault(new, []).append(cell)
    for new, cells in joined.items():
        if any(c.id in problem.must_publish for c in cells):
            return None
        whole = _join(problem, " | ".join(new), cells)
        kept[whole.id] = whole
    return replace(
        problem,
        cells=kept,
        published_sets=(),
        structural_zero=problem.structural_zero & kept.keys(),
        declared_primary=problem.declared_primary & kept.keys(),
    )


def _join(problem: Problem, name: str, cells: Sequence[Cell]) -> Cell:
    first, policy = cells[0], problem.policy
    atoms = tuple(sorted({a for c in cells for a in c.atoms}))
    n = problem.size(atoms)
    below = {"rule": policy.n_round_below, "all": n + 1}.get(first.n_rounding)
    published = n if below is None else shown_n(n, base=policy.n_round_base, below=below, ties=policy.ties)
    sums = [problem.atoms[a].sum for a in atoms]
    total = None if any(s is None for s in sums) else float(sum(s for s in sums if s is not None))
    mean = None
    if any(c.mean is not None for c in cells) and total is not None and n:
        mean = float(round_value(total / n, decimal_places=policy.mean_decimals))
    return Cell(f"{first.table}: {name}", first.table, first.role, atoms, n, published, first.n_rounding, total, mean)
