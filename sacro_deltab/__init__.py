"""Judge, produce and certify brain-age outputs that are asked to leave a Trusted Research Environment."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .cohort import Cohort, read_cohort
    from .model import BrainAgeDelta, Moments
    from .privacy import PublicBounds
    from .privacy.basis import Basis
    from .rules import load_ruleset
    from .session.acro_session import DeltabSession

_LAZY = {
    "DeltabSession": "session.acro_session",
    "BrainAgeDelta": "model",
    "Moments": "model",
    "PublicBounds": "privacy",
    "Basis": "privacy.basis",
    "Cohort": "cohort",
    "read_cohort": "cohort",
    "load_ruleset": "rules",
}

__all__ = [
    "Basis",
    "BrainAgeDelta",
    "Cohort",
    "DeltabSession",
    "Moments",
    "PublicBounds",
    "__version__",
    "load_ruleset",
    "read_cohort",
]


def __getattr__(name: str) -> Any:
    """Import public names on first use: `rules`, `verify` and `ledger` commands start without numpy or acro."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
