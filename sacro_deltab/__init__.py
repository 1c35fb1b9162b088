"""Judge, produce and certify brain-age outputs that are asked to leave a Trusted Research Environment."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base.version import __version__

if TYPE_CHECKING:
    from .base.errors import SacroDeltabError
    from .check import check_paths
    from .cohort import Cohort, read_cohort
    from .ledger import open_ledger
    from .measure.grouping import AgeBands
    from .model import BrainAgeDelta, Moments, Weights
    from .privacy import PublicBounds
    from .privacy.basis import Basis
    from .rules import load_ruleset
    from .session.acro_session import DeltabSession

_LAZY = {
    "DeltabSession": "session.acro_session",
    "AgeBands": "measure.grouping",
    "BrainAgeDelta": "model",
    "Moments": "model",
    "Weights": "model",
    "PublicBounds": "privacy",
    "Basis": "privacy.basis",
    "Cohort": "cohort",
    "read_cohort": "cohort",
    "load_ruleset": "rules",
    "open_ledger": "ledger",
    "check_paths": "check",
    "SacroDeltabError": "base.errors",
}

__all__ = [
    "AgeBands",
    "Basis",
    "BrainAgeDelta",
    "Cohort",
    "DeltabSession",
    "Moments",
    "PublicBounds",
    "SacroDeltabError",
    "Weights",
    "__version__",
    "check_paths",
    "load_ruleset",
    "open_ledger",
    "read_cohort",
]


def __getattr__(name: str) -> Any:
    """Import public names on first use: `rules`, `verify` and `ledger` commands start without numpy or acro."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
