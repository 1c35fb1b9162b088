"""Builders shared by the tests of `check`: attested facts, documents, the rule set."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from sacro_deltab.check import check_paths
from sacro_deltab.judging.report import FileReport, Report
from sacro_deltab.outputs import Column, OutputDocument
from sacro_deltab.rules import RuleSet, load_ruleset

PLAIN: dict[str, Any] = {
    "n": 412,
    "n.origin": "exact",
    "largest_share": 0.02,
    "outlier.max_abs_z": 3.1,
    "dp.applied": False,
    "output.declared": True,
    "egress.route": "tre_airlock",
    "cohort.unit": "person",
    "cohort.overlap_checked": True,
    "cohort.overlap_found": False,
    "cohort.registered": True,
    "acro.dominance_check": "pass",
    "acro.frequency_check": "pass",
    "ledger.pinned": True,
    "ledger.exhausted_before": False,
    "linked_release.any": False,
    "package.recoverable_cells": 0,
}


@cache
def ruleset() -> RuleSet:
    """The packaged rule set."""
    return load_ruleset()


def mean_document(value: float = 0.3, **more: Any) -> OutputDocument:
    """A whole-cohort mean delta."""
    columns = (Column("statistic", "label"), Column("value", "value", "years"))
    fields = {"name": "delta_mean", "title": "Mean brain-age delta", "rows": (("mean", value),), **more}
    return OutputDocument(type="delta_mean", columns=columns, **fields)


def group_document(rows: dict[str, tuple[Any, Any]], **more: Any) -> OutputDocument:
    """Mean delta by sex: label → (n, mean)."""
    columns = (Column("sex", "label"), Column("n", "n", "people"), Column("mean_delta", "value", "years"))
    fields = {"name": "by_sex", "title": "Mean delta by sex", **more}
    return OutputDocument(
        type="delta_mean_by_sex", columns=columns, rows=tuple((k, n, v) for k, (n, v) in rows.items()), **fields
    )


def group_facts(counts: dict[str, int], **more: Any) -> dict[str, Any]:
    """Attested facts of a group table."""
    facts = {**PLAIN, "n": sum(counts.values()), "table.recoverable_cells": 0, "table.any_n_rounded": False, **more}
    facts["site.count"] = 3
    parts = {key: {"cell.n": n, "cell.structural_zero": False, "cell.largest_share": 0.03} for key, n in counts.items()}
    return {"output_type": "delta_mean_by_sex", "facts": facts, "parts": parts}


def write(path: Path, data: Any) -> Path:
    """Write bytes, text, a document or JSON."""
    if isinstance(data, bytes):
        path.write_bytes(data)
    elif isinstance(data, OutputDocument):
        path.write_text(data.to_json() if path.suffix == ".json" else data.to_csv(), encoding="utf-8", newline="")
    else:
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8", newline="")
    return path


def check(*paths: Path, facts: Any = None, **more: Any) -> Report:
    """`check_paths` with facts as data."""
    if facts is not None:
        file = paths[0].parent / "facts-of-the-test.json"
        more["facts_file"] = write(file, facts)
    return check_paths(paths, ruleset=more.pop("ruleset", None) or ruleset(), **more)


def only(report: Report) -> FileReport:
    """The single judged file."""
    assert len(report.outputs) == 1, [o.file for o in report.outputs]
    return report.outputs[0]


def codes(report: FileReport | Report) -> set[str]:
    """Rules of everything that is not a pass."""
    if isinstance(report, Report):
        found = {rule for f in report.folder_findings for rule in f.rules}
        return found.union(*(codes(output) for output in report.outputs))
    return {rule for finding in report.findings for rule in finding.rules}


def texts(report: FileReport | Report) -> str:
    """Every sentence of a report."""
    if isinstance(report, Report):
        return "\n".join([*(f.inside for f in report.folder_findings), *(texts(o) for o in report.outputs)])
    return "\n".join(finding.inside for finding in report.findings)
