"""Declarations and attestations that are given when a folder is checked or certified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sessions import Made, make

from sacro_deltab.base.errors import InputError
from sacro_deltab.cli.check import _attested


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("session"))


def said(path: Path, role: str, **facts: Any) -> Path:
    data = {"schema": "sacro_deltab/declare/1", "role": role, "by": "A. Person", "facts": facts}
    path.write_text(json.dumps(data))
    return path


def by_file(report: Any) -> dict[str, str]:
    return {output.file: output.verdict for output in report.outputs}


def test_a_declaration_that_says_the_same_changes_nothing(made: Made, tmp_path: Path) -> None:
    same = said(tmp_path / "d.json", "researcher", **{"output.declared": True, "dp.trust_model": "central_at_node"})
    told = json.loads(same.read_text()) | {"outputs": {"asked": {"output.declared": False}}}
    same.write_text(json.dumps(told))
    assert by_file(made.check(declare=same)) == by_file(made.check())


def test_another_declaration_than_the_sessions_fails(made: Made, tmp_path: Path) -> None:
    other = said(tmp_path / "d.json", "researcher", **{"output.declared": False})
    report = made.check(declare=other)
    mean = next(o for o in report.outputs if o.file == "delta_mean.csv")
    assert mean.verdict == "fail"
    assert any("declared now otherwise" in f.inside for f in mean.findings)


def test_what_the_session_was_not_told_can_be_declared(made: Made, tmp_path: Path) -> None:
    folder = made.copy(tmp_path)

    def forget(evidence: dict[str, Any]) -> None:
        evidence["session"]["declared"]["facts"] = {}
        for output in evidence["outputs"]:
            output["facts"]["facts"].pop("output.declared", None)

    folder.evidence(forget)
    assert by_file(folder.check())["delta_mean.csv"] == "fail"
    told = said(tmp_path / "d.json", "researcher", **{"output.declared": True})
    assert by_file(folder.check(declare=told))["delta_mean.csv"] == by_file(made.check())["delta_mean.csv"]


def test_roles_are_kept_apart(made: Made, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="signed as"):
        made.check(declare=said(tmp_path / "a.json", "tre_staff", **{"egress.route": "tre_airlock"}))
    with pytest.raises(InputError, match="only TRE staff attest"):
        made.check(facts_file=said(tmp_path / "b.json", "researcher", **{"egress.route": "tre_airlock"}))
    with pytest.raises(InputError, match="exclude each other"):
        _attested(tmp_path / "a.json", tmp_path / "b.json")
