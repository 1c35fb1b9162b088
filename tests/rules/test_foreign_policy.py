"""Another policy, on the base layer: loads, is proved, and judges an ACRO folder."""

import json
from pathlib import Path

import pytest
from rule_files import change, copy_rules

from sacro_deltab.base.errors import RuleSetError
from sacro_deltab.check.check import check_paths
from sacro_deltab.rules import load_ruleset
from sacro_deltab.rules.checking import check_all
from sacro_deltab.rules.judging import judging_ruleset
from sacro_deltab.rules.own_tests import faults
from sacro_deltab.rules.own_tests import test_ruleset as own_tests
from sacro_deltab.rules.prove import prove

FOREIGN = Path(__file__).resolve().parents[2] / "fixtures" / "rules" / "small-counts"


def test_it_is_short_loads_and_is_proved():
    assert sum(len(p.read_text(encoding="utf-8").splitlines()) for p in FOREIGN.glob("*.yaml")) <= 120
    ruleset = load_ruleset(FOREIGN)
    assert own_tests(ruleset).ok
    assert not prove(ruleset).gaps
    assert check_all(FOREIGN, documents=FOREIGN).ok
    assert ruleset.parameters["min_n"] == 8
    assert ruleset.form("check/small-cells") is not None


def _folder(root, cells):
    import hashlib

    rows = "\n".join(f"{name},{n}" for name, n in cells.items())
    (root / "t.csv").write_text(f"group,n\n{rows}\n", encoding="utf-8")
    record = {
        "uid": "output_0", "status": "pass", "type": "table", "properties": {"method": "crosstab"},
        "files": [{"name": "t.csv", "sdc": {"summary": {"suppressed": False, "negative": 0, "missing": 0,
                   "threshold": 0, "p-ratio": 0, "nk-rule": 0, "all-values-are-same": 0}, "cells": {}}}],
        "outcome": {"n": dict.fromkeys(cells, "ok")}, "command": "crosstab()", "summary": "pass",
        "timestamp": "2026-01-01T00:00:00", "comments": [], "exception": "", "fair": {"statbarn": "Frequencies"},
    }  # fmt: skip
    results = {"version": "1.0.2", "results": {"output_0": record}}
    (root / "results.json").write_text(json.dumps(results), encoding="utf-8")
    (root / "config.json").write_text(json.dumps({"safe_threshold": 8}), encoding="utf-8")
    sums = root / "checksums"
    sums.mkdir()
    digest = hashlib.sha256((root / "t.csv").read_bytes()).hexdigest()
    (sums / "t.csv.txt").write_text(digest, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("cells", "small", "unrounded"),
    [({"a": 40, "b": 10}, False, False), ({"a": 40, "b": 7}, True, True), ({"a": 42, "b": 10}, False, True)],
)
def test_it_judges_an_acro_folder(tmp_path, cells, small, unrounded):
    report = check_paths([_folder(tmp_path, cells)], ruleset=FOREIGN)
    codes = {r for o in report.outputs for f in o.findings for r in f.rules}
    assert ("check/small-cells" in codes) is small
    assert ("check/not-rounded" in codes) is unrounded


def test_what_nobody_supplies_is_said(tmp_path):
    copy = copy_rules(tmp_path)
    fact = "    cell.p_ratio: {type: number, by: computed, minimum: 0, means: p-ratio, reads: the p-ratio}\n"
    change(copy, "ruleset.yaml", "    cell.n: {type", fact + "    cell.n: {type")
    assert "no part of the package supplies: cell.p_ratio" in "\n".join(check_all(copy).lines())


def test_a_parameter_that_the_package_reads_is_asked_for(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, "ruleset.yaml", "  interval_n: {", "  interval_m: {")
    with pytest.raises(RuleSetError, match="misses the parameter interval_n: the table engine protects"):
        load_ruleset(copy)


def test_a_set_that_fails_its_own_tests_judges_as_a_draft_only(tmp_path):
    copy = copy_rules(tmp_path)
    assert judging_ruleset(copy).status == "proposed"
    change(
        copy, "30-model-parameters.yaml", "require: {n: {at_least: feature_minimum}}", "require: {n: {at_least: 40}}"
    )
    assert faults(load_ruleset(copy))
    with pytest.raises(RuleSetError, match="fails its own tests: an example fails"):
        judging_ruleset(copy)
    assert judging_ruleset(copy, draft=True).name.endswith("DRAFT")


def test_a_retired_set_judges_nothing(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, "ruleset.yaml", "  status: proposed", "  status: retired")
    with pytest.raises(RuleSetError, match="is retired: it serves `verify`"):
        judging_ruleset(copy)
    assert load_ruleset(copy).status == "retired"
