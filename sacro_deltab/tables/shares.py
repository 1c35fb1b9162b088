"""The share of suppressed cells, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .table import Problem


@dataclass(frozen=True)
class Withhold:
    """One table's counts and the decision on both denominators (all cells; interior cells only)."""

    suppressed_all: int
    cells_all: int
    withhold_all: bool
    suppressed_interior: int
    cells_interior: int
    withhold_interior: bool

    def to_json(self) -> dict[str, Any]:
        """As in the case files."""
        return dict(self.__dict__)


def withhold(problem: Problem, suppressed: frozenset[str]) -> dict[str, Withhold]:
    """Per table. Cells that are empty by definition are not counted; a table without interior cells counts all."""
    out = {}
    for table in problem.tables:
        cells = [c for c in problem.cells.values() if c.table == table and c.id not in problem.structural_zero]
        interior = [c for c in cells if c.role == "interior"]
        gone_all = sum(c.id in suppressed for c in cells)
        gone_interior = sum(c.id in suppressed for c in interior)
        over_all = problem.policy.too_many(gone_all, len(cells))
        over_interior = problem.policy.too_many(gone_interior, len(interior)) if interior else over_all
        out[table] = Withhold(gone_all, len(cells), over_all, gone_interior, len(interior), over_interior)
    return out
