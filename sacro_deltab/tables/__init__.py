"""Tables that cannot be undone: one model, an attacker, complementary suppression and rounding.

Names are imported when first used, so that `rounding` costs no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attack import audit, audit_pattern, exactly_disclosed
    from .audits import AuditReport, SetAudit
    from .complement import Protection, protect
    from .engine import Limits
    from .identities import Identity, holding
    from .linked import Link, find_links
    from .merges import Merge, suggest_merges
    from .policy import TablePolicy
    from .primary import dominance_share
    from .problem_json import problem_from_json, problem_to_json
    from .shares import withhold
    from .table import Atom, Attacker, Cell, Problem, PublishedSet

_WHERE = {
    "Atom": "table",
    "Attacker": "table",
    "AuditReport": "audits",
    "Cell": "table",
    "Limits": "engine",
    "Problem": "table",
    "Protection": "complement",
    "Identity": "identities",
    "Link": "linked",
    "Merge": "merges",
    "PublishedSet": "table",
    "SetAudit": "audits",
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

__all__ = [  # the keys of `_WHERE`, for those who read types
    "Atom",
    "Attacker",
    "AuditReport",
    "Cell",
    "Identity",
    "Limits",
    "Link",
    "Merge",
    "Problem",
    "Protection",
    "PublishedSet",
    "SetAudit",
    "TablePolicy",
    "audit",
    "audit_pattern",
    "dominance_share",
    "exactly_disclosed",
    "find_links",
    "holding",
    "problem_from_json",
    "problem_to_json",
    "protect",
    "suggest_merges",
    "withhold",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
