"""Differential privacy: mechanisms, accounting, bounds, shared basis and private training.

Public names load on first use, so that ledger and verify commands start without numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .accounting import Composition, Release, compose, compose_nodes
    from .basis import Basis
    from .bounds import PublicBounds
    from .mechanisms import gaussian_epsilon, gaussian_sigma, laplace_scale
    from .spend import BudgetLimits, Receipt, SpendRequest, Totals
    from .statement import PrivacyStatement
    from .training import PrivateModel, train_private

_LAZY = {
    "gaussian_sigma": "mechanisms",
    "gaussian_epsilon": "mechanisms",
    "laplace_scale": "mechanisms",
    "compose": "accounting",
    "compose_nodes": "accounting",
    "Composition": "accounting",
    "Release": "accounting",
    "PublicBounds": "bounds",
    "Basis": "basis",
    "PrivacyStatement": "statement",
    "PrivateModel": "training",
    "train_private": "training",
    "SpendRequest": "spend",
    "BudgetLimits": "spend",
    "Totals": "spend",
    "Receipt": "spend",
}

__all__ = [
    "Basis",
    "BudgetLimits",
    "Composition",
    "PrivacyStatement",
    "PrivateModel",
    "PublicBounds",
    "Receipt",
    "Release",
    "SpendRequest",
    "Totals",
    "compose",
    "compose_nodes",
    "gaussian_epsilon",
    "gaussian_sigma",
    "laplace_scale",
    "train_private",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
