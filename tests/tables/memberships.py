"""Problems from who is in which cell, as a session builds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sacro_deltab.measure.atoms import table_problem
from sacro_deltab.measure.linked import PrintedCell
from sacro_deltab.tables import Problem, TablePolicy
from sacro_deltab.tables.identities import Identity
from sacro_deltab.tables.rounding import shown_n


@dataclass(frozen=True)
class Column:
    """One cell: its id, its table, its role, how its N is rounded, whether its mean is printed."""

    id: str
    table: str
    role: str = "interior"
    n_rounding: str = "rule"
    mean: bool = False
    released: bool = False
    structural_zero: bool = False


def problem_of(
    membership: np.ndarray, columns: Sequence[Column], values: np.ndarray | None = None, *, policy: TablePolicy
) -> Problem:
    """Persons × cells as a problem; cells keep their ids and roundings."""
    cells = [
        PrintedCell(
            c.table, c.id, np.flatnonzero(membership[:, j]), c.role, "v", "mean" if c.mean else None,
            structural=c.structural_zero,
        )
        for j, c in enumerate(columns)
    ]  # fmt: skip
    built = table_problem(cells, values, "v", policy)
    named = {}
    for cell, column in zip(built.cells.values(), columns, strict=True):
        published = cell.n
        if column.n_rounding == "rule" and cell.n < policy.n_round_below:
            published = shown_n(cell.n, base=policy.n_round_base, below=policy.n_round_below, ties=policy.ties)
        named[column.id] = replace(cell, id=column.id, n_rounding=column.n_rounding, n_published=published)
    zero = frozenset(c.id for c in columns if c.structural_zero)
    return replace(
        built,
        cells=named,
        structural_zero=zero,
        must_publish=frozenset(c.id for c in columns if c.released),
        published_sets=(),
    )


def knowing(problem: Problem, *identities: Identity) -> Problem:
    """The same problem whose reader also knows these."""
    return replace(problem, identities=(*problem.identities, *identities))


def zero_sum(problem: Problem) -> Identity:
    """Values of everybody add up to nothing."""
    k = len(problem.atoms)
    return Identity("sum", tuple(range(k)), (1.0,) * k, (0.0,) * k)
