"""Which way to train and pool: what the planner expects of each, from the basis, N a node, J and ε alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..privacy.basis import Basis
from ..privacy.plan import plan_training

POOLED = {"moments": "noised moments are summed", "gradient": "models are averaged by N"}


@dataclass(frozen=True)
class Advice:
    """Expected correlation with the true delta and error of predicted age (years) of one node's model, way by way.

    `rows` holds the two ways to train, and `public_only` and `constant`, which use no private data at all.
    """

    method: str
    n: int
    epsilon: float
    rows: Mapping[str, tuple[float, float]]

    def lines(self, taken: str) -> list[str]:
        """For the terminal and the head of a job file; public numbers."""
        out = [
            f"expected of a node of {self.n} people at ε {self.epsilon:g}, people like the basis's (r, years of error):"
        ]
        for name, (r, error) in self.rows.items():
            what = POOLED.get(name, "no private data")
            mark = "  <- the job's" if name == taken else "  <- advised" if name == self.method else ""
            out.append(f"  {name:<12} {r:.3f}  {error:.2f}  {what}{mark}")
        return out


def advise(basis: Basis, n: int, *, epsilon: float, n_components: int | None = None) -> Advice:
    """The way that the planner chooses; nothing is spent and nobody's data are read.

    Raises
    ------
    InputError, PrivacyError
        For numbers that make no sense.
    """
    plan = plan_training(n, n_components=n_components, epsilon=epsilon, basis=basis, curves=False)
    rows = {path.path: (path.correlation, path.error_years) for path in plan.paths if path.path in POOLED}
    method = plan.choice if plan.choice in rows else next(iter(rows))
    for name, row in plan.null_rows.items():
        r, error = row.values()
        rows[name] = r, error
    return Advice(method, n, epsilon, rows)
