"""Printed cells over people as a table problem: people with the same memberships become one atom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..tables import TablePolicy
from ..tables.policy import is_primary_n
from ..tables.rounding import round_value, shown_n
from ..tables.table import LARGEST, Atom, Attacker, Cell, Problem, PublishedSet
from .margins import Margin, identity_of
from .numbers import PrintedCell
from .people import Floats, Ints


def table_problem(
    cells: Sequence[PrintedCell],
    values: Floats | None,
    variable: str | None,
    policy: TablePolicy,
    known: Sequence[Margin] = (),
    *,
    must_publish: frozenset[str] = frozenset(),
    primary: frozenset[str] = frozenset(),
    suppressed: frozenset[str] = frozenset(),
) -> Problem:
    """The problem of some cells.

    Parameters
    ----------
    values
        One per person of the register; None: only people are counted.
    known
        What everybody knows values to add up to without its being printed.
    must_publish, primary, suppressed
        Ids of cells that are outside already, that are withheld for another reason than N, and that are withheld.

    Raises
    ------
    InputError
        A cell that is empty by definition has somebody in it, or sums are too large.
    """

    people = [cell.members for cell in cells] + [margin.people for margin in known]
    atoms, members, someone = grouped(people, values)
    names = [f"a{i}" for i in range(len(atoms))]
    built: dict[str, Cell] = {}
    for index, cell in enumerate(cells):
        if not members[index].size:
            atoms.append(_nobody(values is not None))
            names.append(f"empty{index}")
            members[index] = np.asarray([len(atoms) - 1])
        built[cell.id] = _cell(cell, members[index], atoms, values, variable, policy)
    zero = frozenset(cell.id for cell in cells if cell.structural)
    if any(built[name].n for name in zero):
        raise InputError("declared empty by definition, but somebody is in it", next_step="Take the declaration back.")
    bounds = policy.value_bounds
    largest = None if bounds is None else max(abs(b) for b in bounds)
    identities = tuple(
        identity_of(margin, own.tolist(), np.searchsorted(margin.people, someone[own]).tolist(), largest)
        for margin, own in zip(known, members[len(cells) :], strict=True)
    )
    return Problem(
        kind="counts" if values is None else "means",
        policy=policy,
        attacker=Attacker("rounded", True, flags_primary=policy.marks_small, value_bounds=bounds),
        atom_names=tuple(names),
        atoms=tuple(atoms),
        cells=built,
        structural_zero=zero,
        must_publish=must_publish,
        declared_primary=frozenset(
            name for name in primary if not is_primary_n(built[name].n, policy.min_n, policy.zeros_are_primary)
        ),
        published_sets=(PublishedSet("as released", suppressed),),
        identities=identities,
    )


def _nobody(means: bool) -> Atom:

    return Atom(0, 0.0, 0.0) if means else Atom(0)


def grouped(people: Sequence[Ints], values: Floats | None) -> tuple[list[Atom], list[Ints], Ints]:
    """(atoms, the atoms of every group of people, one person of every atom)."""

    size = 1 + max((int(p.max()) for p in people if p.size), default=-1)
    bits = np.zeros((size, (len(people) + 7) // 8), dtype=np.uint8)
    for index, group in enumerate(people):
        bits[group, index // 8] |= np.uint8(1 << (index % 8))
    used = np.flatnonzero(bits.any(axis=1))
    if not used.size:
        return [], [np.zeros(0, dtype=np.int64) for _ in people], used
    rows, first, inverse = np.unique(bits[used], axis=0, return_index=True, return_inverse=True)
    inverse = np.asarray(inverse).reshape(-1)
    inside = np.unpackbits(rows, axis=1, count=len(people), bitorder="little").astype(bool)
    counts = np.bincount(inverse, minlength=len(rows)).tolist()
    groups = [np.flatnonzero(inside[:, index]) for index in range(len(people))]
    if values is None:
        return [Atom(n) for n in counts], groups, used[first]
    whole = np.zeros(size)
    told = min(size, values.size)
    whole[:told] = np.where(np.isfinite(values[:told]), values[:told], 0.0)
    sums = np.bincount(inverse, weights=whole[used], minlength=len(rows))
    squares = np.bincount(inverse, weights=whole[used] ** 2, minlength=len(rows))
    if not (np.abs(sums) <= LARGEST).all() or not (squares <= LARGEST).all():
        raise InputError("not a number a table can hold", next_step="Check the units of the values.")
    return [Atom(*row) for row in zip(counts, sums.tolist(), squares.tolist(), strict=True)], groups, used[first]


def _cell(
    cell: PrintedCell,
    members: Ints,
    atoms: Sequence[Atom],
    values: Floats | None,
    variable: str | None,
    policy: TablePolicy,
) -> Cell:

    people, own = cell.members, tuple(members.tolist())
    n = int(people.size)
    if n != sum(atoms[a].n for a in own):
        raise InputError("the table does not add up: a person stands twice in one cell")
    if not cell.shows_n:
        rounding = "hidden"
    elif cell.role == "interior":
        rounding = "all" if cell.any_rounded else "exact"
    else:
        rounding = "rule"
    published = n
    if rounding in ("rule", "all"):
        below = policy.n_round_below if rounding == "rule" else None
        published = shown_n(n, base=policy.n_round_base, below=below, ties=policy.ties)
    numbers: dict[str, Any] = {}
    if values is not None:
        numbers = {
            "sum": float(sum(atoms[a].sum or 0.0 for a in own)),
            "sumsq": float(sum(atoms[a].sumsq or 0.0 for a in own)),
            **_statistics(cell, values, variable, policy),
        }
    return Cell(cell.id, cell.output, cell.role, own, n, published, rounding, **numbers)


def _statistics(cell: PrintedCell, values: Floats, variable: str | None, policy: TablePolicy) -> dict[str, float]:
    people = cell.members
    if not people.size or int(people.max()) >= values.size:
        return {}
    mine = values[people]
    if cell.variable == variable and cell.statistic == "mean":
        return {"mean": _shown(float(mine.mean()), policy)}
    if cell.variable == variable and cell.statistic == "sd" and people.size > 1:
        return {"sd": _shown(float(mine.std(ddof=1)), policy)}
    if cell.printed is not None and np.isfinite(mine).all() and cell.printed == _shown(float(mine.mean()), policy):
        return {"mean": cell.printed}
    return {}


def _shown(value: float, policy: TablePolicy) -> float:

    return float(round_value(value, decimal_places=policy.mean_decimals))
