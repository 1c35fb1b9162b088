"""Federation: node files in, one pooled model out; job files; planning by simulation; streaming moments.

No live link exists between nodes. Files leave each TRE through its airlock with a certificate, and `aggregate` pools
them wherever they meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aggregate import aggregate
    from .order import Order, Pooling
    from .simulation import simulate_federation
    from .verify import verify_pooled

_WHERE = {
    "Order": "order",
    "Pooling": "order",
    "aggregate": "aggregate",
    "simulate_federation": "simulation",
    "verify_pooled": "verify",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_WHERE[name]}", __name__), name)


__all__ = ["Order", "Pooling", "aggregate", "simulate_federation", "verify_pooled"]
