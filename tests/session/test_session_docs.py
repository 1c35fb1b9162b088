"""The examples of the manual run as written."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.S)


def test_the_session_example_runs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, *others = (text for text in blocks("session.md", "python") if "where=" not in text)
    planned, results = sorted(others, key=lambda text: "plan_outputs" not in text)
    exec(compile(results, "docs/session.md", "exec"), {})
    said = capsys.readouterr().out.split()
    assert said[0].startswith("[") and said[1] in ("fail", "review") and said[2] == "p_fdr"
    names: dict[str, Any] = {}
    exec(compile(code, "docs/session.md", "exec"), names)
    out = capsys.readouterr().out
    assert (place / "outputs" / "results.json").is_file()
    assert "to get it out: merge" in out
    people = [f"Q{i}" for i in range(300)]
    acro = names["acro"].ACRO()
    names["session"] = names["DeltabSession"](acro, cohort="doc-plan", people=people, ledger="budget.db")
    exec(compile(planned, "docs/session.md", "exec"), names)
    assert [names[name].name for name in ("table", "n", "mean")] == ["mean_delta_by_site", "n_subjects", "all"]


def test_a_part_of_the_cohort(place: Path) -> None:
    import acro
    import pandas as pd

    from sacro_deltab import Basis, DeltabSession
    from sacro_deltab.run.starting import write_trial

    write_trial(place)
    table = pd.read_csv("cohort.csv")
    session = DeltabSession(
        acro.ACRO(), cohort="site-a", people=table["participant_id"], ledger="budget.db", trust="trust.json",
        declare="declare.json", attest="attest.json",
    )  # fmt: skip
    names = {"table": table, "X": table.filter(like="idp_"), "basis": Basis.load("basis.json"), "session": session}
    part, visits = (text for text in blocks("session.md", "python") if "session = " not in text and "where=(" in text)
    exec(compile(part, "docs/session.md", "exec"), names)
    assert [entry.status for entry in session.entries] == ["pass", "pass"]
    table = names["table"].drop(columns="delta").assign(visit="baseline", delta=names["table"]["delta"].to_numpy())
    names["session"] = DeltabSession(
        acro.ACRO(), cohort="site-b", people=table["participant_id"], visit=table["visit"], ledger="budget.db",
        trust="trust.json", declare="declare.json", attest="attest.json",
    )  # fmt: skip
    exec(compile(visits, "docs/session.md", "exec"), {**names, "table": table})
    assert [entry.status for entry in names["session"].entries] == ["review", "review"]


def test_what_happens_to_epsilon(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sacro_deltab.run.starting import write_trial

    write_trial(place)
    (code,) = blocks("paid.md", "python")
    exec(compile(code, "docs/paid.md", "exec"), {})
    said = capsys.readouterr().out
    assert "wait for: dp.trust_model, declared by the researcher" in said
    assert "Entry(beta1: fail)" not in said and "beta1" in said
    assert said.splitlines()[-1].split()[-1] == "1.0"
    assert (place / "outputs" / "beta1.json").is_file() and (place / "outputs" / "folded_weights.json").is_file()


def test_the_declaration_example_is_valid() -> None:
    from sacro_deltab.judging.said import read_said
    from sacro_deltab.rules import load_ruleset

    (text,) = blocks("session.md", "json")
    said = read_said(json.loads(text), "researcher", load_ruleset())
    assert said.about("correlation", "correlation")["output.declared"].value is False
    assert said.about("delta_sd", "delta_sd")["output.declared"].value is True


def test_every_option_of_the_manual_exists() -> None:
    import typer

    from sacro_deltab.cli import _register, app

    if not app.registered_commands:
        _register()
    group: Any = typer.main.get_command(app)
    for text in blocks("run.md", "console"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "))
            command = group.commands[words[1]]
            known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
            assert {w for w in words[2:] if w.startswith("--")} <= known
