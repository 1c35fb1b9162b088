"""What the table engine found about reading suppressed cells back: the result and what it considered, no numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.findings import Effect
from ..judging.report import Report
from .findings import PreparedOutput
from .policy import Policy

_STOPS = (Effect.BLOCK, Effect.WITHHOLD, Effect.REVIEW)


def recoverability_block(
    outputs: Sequence[PreparedOutput],
    report: Report | None,
    evidence: Mapping[str, Any] | None,
    policy: Policy,
) -> dict[str, Any] | None:
    """Result of the attack on the published tables, or None where no output is a table.

    A number of recoverable cells is a query on raw data; only whether the requirement holds is stated, which also
    follows from the results of the rules that test it.
    """
    leaving = [o for o in outputs if not o.kept_inside]
    tables = [o for o in leaving if "table.recoverable_cells" in o.facts["measured"]]
    if not tables:
        return None
    considered = [
        "every published number of every table of this release, rounded as published, totals included",
        "that every count is a whole number and that no published cell is below the policy's minimum",
    ]
    if any("package.recoverable_cells" in o.facts["measured"] for o in leaving):
        considered.append("all tables of this session together, and groups that are differences of published groups")
    if any("linked_release.any" in o.facts["ledger"] for o in leaving):
        considered.append("earlier releases on the same people that the ledger holds")
    by = "by the session that made the tables" if report is None or report.tables is None else "again by check"
    return {
        "result": "a suppressed cell can be worked out"
        if _fallen(leaving, report, policy)
        else "none can be worked out",
        "attacked": by if report is not None or evidence is not None else "not at all",
        "tables": sorted(o.name for o in tables),
        "considered": considered,
        "not_considered": ["what a reader knows from elsewhere", "outputs released outside this ledger"],
    }


def _fallen(leaving: Sequence[PreparedOutput], report: Report | None, policy: Policy) -> bool:
    broken = {rule for o in leaving for e in _STOPS for rule in (*o.rules.get(e, ()), *o.raw_rules.get(e, ()))}
    found = None if report is None else report.tables
    worked_out = found is not None and bool(found.get("package_recoverable") or found.get("recoverable"))
    return worked_out or bool(broken & policy.recovery_rules)
