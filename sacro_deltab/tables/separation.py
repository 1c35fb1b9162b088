"""Derivations at a fractional point, by linear programming: the strongest cut for a target.

max z(target) over |z(cell)| ≤ share(cell): when it is below 1 the optimal multipliers name a cheap derivation of the
target. They are floats, so every derivation is worked out again by exact elimination over the cells they name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .circuits import Circuits, Derivation
from .solver import INF, Model


class Separator:
    """One LP over classes, re-used: only bounds and objective change.

    Parameters
    ----------
    rows
        One row of `circuits` per group of cells that may be published.
    """

    def __init__(self, circuits: Circuits, rows: Sequence[int]) -> None:
        self.c, self.rows = circuits, list(rows)
        self.model = Model(np.full(circuits.k, -1e3), np.full(circuits.k, 1e3))
        self.model.add_rows([(circuits.rows[r], [1.0] * len(circuits.rows[r]), -INF, INF) for r in self.rows])
        self.n_rows = len(self.rows)

    def derivations(
        self, share: NDArray[np.float64], targets: Sequence[tuple[int, ...]], enough: float = 1 - 1e-6
    ) -> list[Derivation]:
        """Derivations of `targets` whose shares add up to less than `enough`."""
        for i in range(self.n_rows):
            self.model.set_row_bounds(i, -float(share[i]), float(share[i]))
        found: list[Derivation] = []
        for target in targets:
            cost = np.zeros(self.c.k)
            cost[list(target)] = -1.0
            solution = self.model.minimise(cost)
            if solution.status != "optimal" or -solution.value >= enough:
                continue
            support = np.flatnonzero(np.abs(solution.duals[: self.n_rows]) > 1e-7)
            order = sorted((int(i) for i in support), key=lambda i: (share[i], i))
            published = [self.rows[i] for i in order]
            found += [d for d in self.c.small_unions(published, 0, [target]) if d.classes == target]
        return found
