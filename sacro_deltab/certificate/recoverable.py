"""What the table engine found about reading suppressed cells back: the result and what it considered, no numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .findings import PreparedOutput

_TABLE_FACTS = ("table.recoverable_cells", "package.recoverable_cells")


def recoverability_block(
    outputs: Sequence[PreparedOutput], report: Mapping[str, Any] | None, evidence: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Result of the attack on the published tables, or None where no output is a table.

    A number of recoverable cells is a query on raw data; only whether the requirement holds is stated, and that
    follows from the verdicts of the rules that test it.
    """
    tested = [o for o in outputs if any(name in o.facts["measured"] for name in _TABLE_FACTS)]
    if not tested:
        return None
    problem = (report or {}).get("tables") or (evidence or {}).get("tables")
    considered = [
        "every published number of every table of this release, rounded as published, totals included",
        "that every count is a whole number and that no published cell is below the policy's minimum",
    ]
    if isinstance(problem, Mapping) and problem.get("releases"):
        considered.append("earlier releases on the same people that the ledger or the session recorded")
    measured = {name for o in tested for name in o.facts["measured"]}
    if "package.recoverable_cells" in measured:
        considered.append("all tables of this session together, and groups that are differences of published groups")
    failed = any(o.verdict == "fail" and not o.kept_inside for o in tested)
    return {
        "result": "not met for at least one table" if failed else "no suppressed cell can be worked out",
        "tables": sorted(o.name for o in tested),
        "considered": considered,
        "not_considered": ["what a reader knows from elsewhere", "outputs released outside this ledger"],
    }
