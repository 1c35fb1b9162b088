"""What TRE staff alone can say: missing, it is one question for the whole request; their answer settles it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from declarations import ATTEST, DECLARE
from people_register import register_people

from sacro_deltab.base.findings import Effect
from sacro_deltab.check import check_paths
from sacro_deltab.ledger import open_ledger
from sacro_deltab.rules import load_ruleset
from sacro_deltab.rules.judging import judging_ruleset

ASK = load_ruleset().facts["egress.route"].ask


VALUES = np.random.default_rng(1).normal(0, 4, 300)


def session_folder(place: Path, columns: dict[str, Any]) -> Path:
    """A session in which nobody has attested anything, and a profile that only pins its ledger."""
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    pin = open_ledger(place / "budget.db").pin()
    layer = (
        "profile: {id: test-site, title: Test site, ruleset: deltab-disclosure, decided_by: null}\n"
        f'ledgers:\n  - {{id: "{pin.id}", head_key: "{pin.head_key}"}}\n'
    )
    (place / "profile.yaml").write_text(layer, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        ids = [f"P{i}" for i in range(300)]
        register_people("budget.db", "c", ids, columns)
        session = DeltabSession(
            quiet_acro(), cohort="c", people=ids, declare=DECLARE, profile="profile.yaml",
            ledger="budget.db",
        )  # fmt: skip
        entries = [session.release_sd(VALUES), session.release_quantiles(VALUES)]
        assert [entry.status for entry in entries] == ["review", "review"]
        assert all("egress.route" in entry.decision["missing"] for entry in entries)
        return Path(session.finalise(place / "outputs"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session about a registered column."""
    return session_folder(tmp_path_factory.mktemp("asked"), {"delta": VALUES})


def checked(folder: Path, facts: dict[str, Any] | None = None) -> Any:
    said = None
    if facts is not None:
        said = folder.parent / "said.json"
        said.write_text(json.dumps({**ATTEST, "facts": facts}), encoding="utf-8")
    return check_paths(
        [folder], ruleset=judging_ruleset(None, profile=str(folder.parent / "profile.yaml")), facts_file=said,
        ledger=str(folder.parent / "budget.db"),
    )  # fmt: skip


def test_missing_it_is_a_question_and_no_block(folder: Path) -> None:
    report = checked(folder)
    assert report.verdict == "review"
    assert {ask for output in report.outputs for f in output.findings for ask in f.asks} == {ASK}


def test_the_checkers_answer_settles_it(folder: Path) -> None:
    assert checked(folder, {"egress.route": "tre_airlock"}).verdict == "pass"


def test_another_answer_blocks(folder: Path) -> None:
    assert checked(folder, {"egress.route": "direct"}).verdict == "fail"


def test_nobody_else_may_answer(folder: Path) -> None:
    evidence = folder / "inside" / "evidence.json"
    before = evidence.read_text(encoding="utf-8")
    data = json.loads(before)
    for output in data["outputs"]:
        output["facts"]["facts"]["egress.route"] = {"value": "tre_airlock", "by": "declared"}
    try:
        evidence.write_text(json.dumps(data), encoding="utf-8")
        assert checked(folder).verdict == "fail"
    finally:
        evidence.write_text(before, encoding="utf-8")


def test_people_registered_without_columns_are_one_question_of_the_whole_folder(tmp_path: Path) -> None:
    report = checked(session_folder(tmp_path, {}), {"egress.route": "tre_airlock"})
    assert report.verdict == "review"
    assert [f.code for f in report.folder_findings if f.effect is Effect.REVIEW] == ["columns-unknown"]
    assert not any(f.asks for output in report.outputs for f in output.findings)
