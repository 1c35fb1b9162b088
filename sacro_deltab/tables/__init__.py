"""Tables that cannot be undone: one model, an attacker, complementary suppression and rounding.

Names are imported when first used, so that `rounding` costs no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    "Atom": "table",
    "Attacker": "table",
    "AuditReport": "attack",
    "Cell": "table",
    "Limits": "engine",
    "Problem": "table",
    "Protection": "complement",
    "Identity": "identities",
    "Link": "linked",
    "Merge": "merges",
    "PublishedSet": "table",
    "SetAudit": "attack",
    "TablePolicy": "policy",
    "audit": "attack",
    "audit_pattern": "attack",
    "dominance_share": "primary",
    "exactly_disclosed": "attack",
    "find_links": "linked",
    "holding": "identities",
    "problem_from_json": "problem_json",
    "problem_to_json": "problem_json",
    "protect": "complement",
    "suggest_merges": "merges",
    "withhold": "shares",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
