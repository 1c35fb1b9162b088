"""A thin layer over HiGHS: one thread, fixed seed, node and iteration limits (never time), no MIP start.

highspy 1.16.0 returns wrong optima when a start is given, so none is ever given, and every objective is checked
against c·x. What HiGHS says is a proposal: callers check points in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import SacroDeltabError

FloatArray = NDArray[np.float64]
INF = float("inf")


class SolverError(SacroDeltabError):
    """The solver contradicts itself; nothing is concluded from it."""


class Contradiction(SolverError):
    """No table fits what is published."""


@dataclass(frozen=True)
class Solution:
    """`status`: optimal | limit | infeasible | unbounded. `bound` is the proved bound of the objective,
    `iterations` the simplex iterations it took."""

    status: str
    x: FloatArray
    value: float
    bound: float
    duals: FloatArray
    iterations: int = 0


class Model:
    """min c·x over lo ≤ A x ≤ hi, l ≤ x ≤ u, some x whole.

    Parameters
    ----------
    max_nodes
        Branch-and-bound nodes, after which the status is "limit".
    gap
        Stop when the best point is this close to the bound (0.999 proves an optimum of whole numbers).
    refute
        Nothing better is expected: no time is spent on finding points and starting again.
    feasibility
        How far a linear program's point may be from a row.
    """

    def __init__(
        self,
        lower: Sequence[float] | FloatArray,
        upper: Sequence[float] | FloatArray,
        integer: Sequence[bool] | NDArray[np.bool_] | None = None,
        *,
        max_nodes: int = 200_000,
        gap: float = 1e-9,
        refute: bool = False,
        feasibility: float = 1e-7,
    ) -> None:
        import highspy  # late: highspy is heavy

        self._hs = highspy
        self.h: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("random_seed", 0),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", gap),
            ("mip_max_nodes", max_nodes),
            ("mip_feasibility_tolerance", 1e-9),
            ("primal_feasibility_tolerance", feasibility),
            *((("mip_allow_restart", False), ("mip_heuristic_effort", 0.0)) if refute else ()),
        ):
            self.h.setOptionValue(name, value)
        self.n = len(lower)
        self.integer = integer is not None and bool(np.any(integer))
        low = np.asarray(lower, dtype=np.float64)
        up = np.asarray(upper, dtype=np.float64)
        self.h.addVars(self.n, low, up)
        if self.integer:
            idx = np.flatnonzero(np.asarray(integer)).astype(np.int32)
            kinds = np.full(len(idx), highspy.HighsVarType.kInteger)
            self.h.changeColsIntegrality(len(idx), idx, kinds)
        self.cost = np.zeros(self.n)
        self.n_rows = 0

    def add_rows(self, rows: Sequence[tuple[Sequence[int], Sequence[float], float, float]]) -> None:
        """Append rows."""
        if not rows:
            return
        starts: list[int] = []
        index: list[int] = []
        value: list[float] = []
        lo: list[float] = []
        hi: list[float] = []
        for columns, coefficients, low, high in rows:
            starts.append(len(index))
            index.extend(columns)
            value.extend(coefficients)
            lo.append(low)
            hi.append(high)
        self.h.addRows(
            len(rows),
            np.asarray(lo, dtype=np.float64),
            np.asarray(hi, dtype=np.float64),
            len(index),
            np.asarray(starts, dtype=np.int32),
            np.asarray(index, dtype=np.int32),
            np.asarray(value, dtype=np.float64),
        )
        self.n_rows += len(rows)

    def set_bounds(self, column: int, low: float, high: float) -> None:
        """Change one variable's bounds."""
        self.h.changeColBounds(int(column), float(low), float(high))

    def set_row_bounds(self, row: int, low: float, high: float) -> None:
        """Change one row's bounds."""
        self.h.changeRowBounds(int(row), float(low), float(high))

    def minimise(self, cost: FloatArray) -> Solution:
        """Solve with the cost vector `cost`."""
        cost = np.asarray(cost, dtype=np.float64)
        changed = np.flatnonzero(cost != self.cost).astype(np.int32)
        if len(changed):
            self.h.changeColsCost(len(changed), changed, cost[changed])
            self.cost = cost.copy()
        self.h.run()
        status = self.h.getModelStatus()
        kinds = self._hs.HighsModelStatus
        if status == (kinds.kSolveError if self.integer else kinds.kInfeasible):
            # Presolve calls some unbounded problems with free variables infeasible, and gives up on some of whole
            # numbers; without it they are settled.
            self.h.setOptionValue("presolve", "off")
            self.h.run()
            status = self.h.getModelStatus()
            self.h.setOptionValue("presolve", "choose")
        empty = np.zeros(0)
        info = self.h.getInfo()
        steps = max(0, int(info.simplex_iteration_count))
        if status == kinds.kInfeasible:
            return Solution("infeasible", empty, INF, INF, empty, steps)
        if status in (kinds.kUnbounded, kinds.kUnboundedOrInfeasible):
            return Solution("unbounded", empty, -INF, -INF, empty, steps)
        found = self.h.getSolution()
        x = np.asarray(found.col_value, dtype=np.float64)
        if status == kinds.kOptimal:
            value = float(cost @ x)
            if abs(value - info.objective_function_value) > 1e-6 * max(1.0, abs(value)):
                raise SolverError("the solver's objective is not c·x", next_step="use another version of highspy")
            bound = float(info.mip_dual_bound) if self.integer else value
            return Solution("optimal", x, value, bound, np.asarray(found.row_dual, dtype=np.float64), steps)
        feasible = info.primal_solution_status == 2 and len(x) == self.n
        bound = float(info.mip_dual_bound) if self.integer else -INF
        return Solution("limit", x if feasible else empty, float(cost @ x) if feasible else INF, bound, empty, steps)
