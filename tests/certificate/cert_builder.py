"""A session-like folder made by hand: what `finalise` leaves, small enough to attack byte by byte."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sacro_deltab.base.findings import Effect, Finding
from sacro_deltab.certificate.policy import Policy
from sacro_deltab.certificate.seal import new_certificate_id, seal_folder
from sacro_deltab.outputs.document import Column, OutputDocument

NOW = datetime(2026, 11, 30, 2, 30, tzinfo=UTC)
POLICY = Policy(
    id="deltab-disclosure",
    version="2026.1",
    sha256="ab" * 32,
    language="1",
    parameters={"min_n": 20, "feature_z": 4.0, "coefficient_figures": 3},
    raw_rules=frozenset({"PR-04"}),
    cell_rules=frozenset({"SC-01", "SC-02"}),
)
WEIGHTS = OutputDocument(
    name="folded_weights",
    type="folded_weights",
    title="Folded weights",
    columns=(Column("feature", "label"), Column("weight", "value", "years")),
    rows=(("thickness_a", 0.123), ("thickness_b", -1.45), ("volume_c", 12.3)),
)
TABLE = OutputDocument(
    name="delta_by_diagnosis",
    type="delta_mean_by_diagnosis",
    title="Mean delta by diagnosis, β₁ < 1 & > 0",
    columns=(Column("group", "label"), Column("n", "n", "people"), Column("mean", "value", "years")),
    rows=(("AD", 120, 2.1), ("HC", 155, -0.3), ("rare", "*", "*"), ("MCI", "*", "*")),
)
PRIVACY = {
    "label": "formal",
    "reason": "age range and feature clip are the rule set's",
    "mechanism": "discrete Gaussian",
    "epsilon": 1.0,
    "delta_dp": 1e-6,
    "mu": 0.25,
    "sigma_unit": 4.0,
    "adjacency": "zero_out_N_public",
    "unit": "person",
    "epsilon_by_adjacency": {"zero_out_N_public": 1.0, "add_remove": None},
    "bounds": {"digest": "cd" * 32, "provenance": "ruleset"},
    "basis": {"digest": "ef" * 32, "origin": "shared"},
    "sampler": "OpenDP",
    "blocks": {"moments": 4.0},
    "ledger": {"id": "ledger-1", "entry": 3, "head": "11" * 32, "pinned": False},
    "outside_budget": [],
    "n_public": 423,
}


def finding(rules: list[str], effect: str, asks: list[str] | None = None) -> dict[str, Any]:
    """A finding as a decision has it; `inside` must never be seen outside."""
    return {
        "rules": rules,
        "target": "rare",
        "effect": effect,
        "inside": "7 people in rare",
        "outside": f"{rules[0]} says so",
        "asks": asks or [],
        "clauses": ["DT-C1"],
        "next_step": None,
    }


def found(rule: str, effect: Effect, *asks: str) -> Finding:
    """The same as a report has it."""
    return Finding((rule,), "rare", effect, "7 people in rare", f"{rule} says so", ("DT-C1",), asks)


def output(document: OutputDocument, status: str, findings: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """One output of the evidence."""
    return {
        "name": document.name,
        "type": document.type,
        "title": document.title,
        "files": [f"{document.name}.csv", f"{document.name}.json"],
        "told": [],
        "status": status,
        "kept_inside": False,
        "facts": {
            "output_name": document.name,
            "output_type": document.type,
            "facts": {
                "n": {"value": 423, "by": "computed"},
                "pca.origin": {"value": "shared", "by": "declared"},
                "ledger.entry": {"value": True, "by": "ledger"},
            },
            "parts": [
                {"kind": "cell", "key": "rare", "value": 7.25, "facts": {"cell.n": {"value": 7, "by": "computed"}}}
            ],
        },
        "decision": {
            "findings": findings,
            "met": ["MP-01", "SC-02"],
            "not_applicable": ["AG-01"],
            "actions": [{"verb": "round", "part": None, "args": {"significant_figures": 3}, "rules": ["RD-08"]}],
        },
        "privacy": None,
        "raw": None,
        **more,
    }


def evidence_of(*outputs: dict[str, Any]) -> dict[str, Any]:
    """Evidence with recognisable secrets."""
    return {
        "schema": "sacro_deltab/evidence/1",
        "session": {
            "id": "00000000-0000-4000-8000-000000000001",
            "cohort": "secret-cohort-name",
            "unit": "person",
            "rule_set": {"id": POLICY.id, "version": POLICY.version, "sha256": POLICY.sha256},
            "profile": None,
            "tool": {"acro": "1.0.2", "sacro_deltab": "0.2.0"},
            "started": "2026-11-30T02:00:00+00:00",
            "finished": "2026-11-30T02:30:00+00:00",
            "declared": {"by": "A. Researcher", "facts": {"n_sites": 7, "pca.origin": "shared"}},
            "attested": {"by": "TRE staff", "facts": {"dp.noise_inside_tre": True}},
            "salt": "99" * 32,
        },
        "outputs": list(outputs),
        "tables": None,
        "n_known": [423, 7],
        "privacy": {},
        "not_checked": ["whether the cohort is the one named"],
    }


def default_evidence() -> dict[str, Any]:
    """One noised set of weights and one table that needs a person."""
    return evidence_of(
        output(WEIGHTS, "pass", [finding(["RD-08"], "round")], privacy=PRIVACY),
        output(
            TABLE,
            "review",
            [
                finding(["SC-01"], "suppress"),
                finding(["PR-04"], "review", ["Does one person carry this cell?"]),
                finding(["ST-02"], "review", ["Is the site name sensitive?"]),
            ],
        ),
    )


def write_session(folder: Path, evidence: dict[str, Any] | None = None) -> Path:
    """Write the folder up to the point where `finalise` seals it."""
    folder.mkdir(parents=True)
    evidence = default_evidence() if evidence is None else evidence
    for document in (WEIGHTS, TABLE):
        (folder / f"{document.name}.csv").write_bytes(document.to_csv().encode())
        (folder / f"{document.name}.json").write_bytes(document.to_json().encode())
    (folder / "session_summary.csv").write_bytes(b"do not release\n7\n")
    certificate_id = new_certificate_id()
    (folder / "config.json").write_bytes(json.dumps({"safe_threshold": 20}, indent=4).encode())
    names = [[f"{d.name}.csv", f"{d.name}.json"] for d in (WEIGHTS, TABLE)]
    names += [["session_summary.csv"], ["certificate.dsse.txt"]]
    (folder / "results.json").write_bytes(json.dumps(results(names, certificate_id), indent=4).encode())
    (folder / "checksums").mkdir()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != "config.json":
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            (folder / "checksums" / f"{path.name}.txt").write_text(digest)
    inside = folder / "inside"
    inside.mkdir()
    (inside / "evidence.json").write_text(json.dumps(evidence, indent=1) + "\n")
    (inside / "attack.json").write_text('{"auc": 0.51}\n')
    return folder


def make_session(folder: Path, evidence: dict[str, Any] | None = None, **options: Any) -> Path:
    """A finished, sealed, unsigned folder."""
    evidence = default_evidence() if evidence is None else evidence
    write_session(folder, evidence)
    results_json = json.loads((folder / "results.json").read_text())
    identity = results_json["results"]["output_0"]["properties"]["certificate_id"]
    seal_folder(folder, evidence=evidence, **{"ruleset": POLICY, "certificate_id": identity, **options})
    return folder


def results(names: list[list[str]], certificate_id: str) -> dict[str, Any]:
    """results.json as ACRO writes it."""
    return {
        "version": "1.0.2",
        "tool": {"@type": "SoftwareApplication", "name": "ACRO", "version": "1.0.2"},
        "results": {
            f"output_{i}": {
                "uid": f"output_{i}",
                "status": "review" if i == 1 else "pass",
                "type": "custom",
                "properties": {"method": "deltab", "certificate_id": certificate_id, "share": 1.0},
                "files": [{"name": name, "sdc": {"cells": {"x": [[2, 1]]}}} for name in files],
                "outcome": {},
                "command": "sacro_deltab",
                "summary": "review; look" if i == 1 else "pass; meets",
                "timestamp": "2026-11-30T02:29:00",
                "comments": ["made by a session"],
                "exception": None,
                "fair": {},
            }
            for i, files in enumerate(names)
        },
    }
