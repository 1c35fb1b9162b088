"""What a release costs and what is left: the values that pass between trainer, session and ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Drawn = TypeVar("Drawn")

Adjacency = Literal["zero_out_N_public", "add_remove", "replace_one"]


@dataclass(frozen=True)
class SpendRequest:
    """One release, priced before any noise is drawn.

    epsilon > 0; 0 < delta_dp < 1, or 0 for pure ε (Laplace). `mu` is the Gaussian-DP parameter
    (sensitivity / σ), None for mechanisms that have none. `sigma` is for unit sensitivity.
    """

    mechanism: str
    epsilon: float
    delta_dp: float
    mu: float | None
    sigma: float | None
    adjacency: Adjacency
    unit: Literal["person", "row"]
    outputs: tuple[str, ...]
    kind: Literal["model", "statistic"]
    label: Literal["formal", "heuristic"]
    n_public: int | None = None  # None under add_remove, where no exact N may be used
    detail: Mapping[str, Any] = field(default_factory=dict)  # digests, versions: nothing per-subject


@dataclass(frozen=True)
class BudgetLimits:
    """Limits of one partition, from the rule set only (DP-T1, DP-B4, D-57, D-61). All inclusive."""

    epsilon_per_release: float
    epsilon_total: float
    delta_per_release: float
    delta_total: float


@dataclass(frozen=True)
class Totals:
    """What a partition has spent. The plain sum decides (D-60); the exact composition is printed beside it."""

    epsilon_sum: float
    delta_sum: float
    mu: float  # √Σμ², Gaussian releases only
    epsilon_exact: float | None  # exact Gaussian composition at the δ of the limits; None when a mix prevents it
    releases: int
    model_exports: int


@dataclass(frozen=True)
class Receipt:
    """Proof that a spend was committed before noise was drawn."""

    ledger_id: str
    entry: int
    head: str
    before: Totals
    after: Totals
    pinned: bool


def just_drawn(draw: Callable[[], Drawn]) -> Drawn:
    """For who keeps nothing: the result of a paid draw as it comes."""
    return draw()
