"""Beside an add_remove release nothing that prints or rests on an exact N leaves, in any order of doing things."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from declarations import ATTEST, DECLARE
from session_helpers import new_session

from sacro_deltab import DeltabSession
from sacro_deltab.base.errors import PrivacyError, RefusedError
from sacro_deltab.check import check_paths
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.measure.grouping import AgeBands
from sacro_deltab.privacy import Basis
from sacro_deltab.run.pipeline import quiet_acro

NAMES = list(smith_cohort(2, 6, seed=1).feature_names)
PUBLIC = smith_cohort(600, 6, seed=1)
BASIS = Basis.from_public(PUBLIC.X, PUBLIC.age, NAMES, n_components=3, made_on="public people")
STUDY = smith_cohort(400, 6, seed=2)
SEX = pd.Series(["F", "M"] * 200, name="sex")


def train(session: Any, adjacency: str = "add_remove") -> Any:
    return session.train_private(
        STUDY.X, STUDY.age, feature_names=NAMES, basis=BASIS, epsilon=0.5, delta_dp=4e-7, adjacency=adjacency,
        membership_test=False,
    )  # fmt: skip


def every_exact_output(session: Any, deltas: Any) -> list[Any]:
    frame = pd.DataFrame(STUDY.X, columns=NAMES)
    return [
        session.release_mean(deltas),
        session.release_sd(deltas),
        session.release_quantiles(deltas),
        session.release_group_means(deltas, SEX),
        session.release_group_means(deltas, AgeBands(STUDY.age, 20)),
        session.release_group_sds(deltas, SEX),
        session.release_counts(SEX),
        session.release_feature_summary(frame),
        *session.release_correlation(deltas, frame[NAMES[:1]]),
        session.release_regression(deltas, frame[NAMES[:1]]),
    ]


def all_blocked(entries: list[Any]) -> None:
    for entry in entries:
        assert (entry.status, entry.kept_inside, entry.document) == ("fail", True, None), entry.name
        assert any("add_remove" in reason for reason in entry.reasons), (entry.name, entry.reasons)
        assert any("DP-29" in f["rules"] for f in entry.decision["findings"]), entry.name


def verdicts(folder: Path, **more: Any) -> dict[str, str]:
    return {o.file: o.verdict for o in check_paths([folder], **more).outputs}


def tre(place: Path) -> dict[str, Any]:
    return {"profile": place / "profile.yaml", "ledger": place / "budget.db"}


@pytest.fixture
def noised(profile: Path) -> tuple[Any, Any]:
    """A session with an add_remove model, and that model's deltas."""
    session = new_session(profile.parent, ages=STUDY.age)
    model = train(session)
    session.release_weights(model)
    return session, session.deltas(model, STUDY.X, STUDY.age)


def test_every_exact_output_stays_inside_and_says_why(noised: tuple[Any, Any], place: Path) -> None:
    session, deltas = noised
    weights = list(session.entries)
    assert weights and not any("DP-29" in json.dumps(e.decision["findings"]) for e in weights)
    entries = every_exact_output(session, deltas)
    all_blocked(entries)
    finding = next(f for f in entries[3].decision["findings"] if "DP-29" in f["rules"])
    assert "zero_out_N_public" in finding["next_step"] and "release_private_mean" in finding["next_step"]
    mean = session.release_private_mean(deltas, epsilon=0.5)
    assert not any("DP-29" in json.dumps(f) for f in mean.decision["findings"])
    folder = session.finalise(place / "out")
    stub = (folder / f"{entries[3].name}.csv").read_text(encoding="utf-8")
    assert "add_remove" in stub and "200" not in stub
    for more in ({}, tre(place)):  # from the folder alone, and with what the TRE holds
        found = verdicts(folder, **more)
        assert {found[f"{e.name}.csv"] for e in entries} == {"fail"}
        assert "fail" not in {found[name] for e in weights if not e.kept_inside for name in e.files}


@pytest.mark.parametrize("made", ["counts", "mean"])
def test_no_training_under_add_remove_after_a_table(make_session: Any, deltas: Any, made: str) -> None:
    session = make_session()
    entry = session.release_counts(SEX) if made == "counts" else session.release_mean(deltas)
    assert not entry.kept_inside
    with pytest.raises(PrivacyError, match="exact N"):
        train(session)
    assert session.budget.totals_json()["epsilon_sum"] == 0
    session.drop(entry.name)
    train(session)
    all_blocked([session.release_counts(SEX)])


def test_no_training_under_add_remove_after_a_released_table(make_session: Any, place: Path) -> None:
    session = make_session()
    session.release_counts(SEX)
    session.finalise(place / "first")
    later = make_session()
    with pytest.raises(PrivacyError, match="exact N"):
        train(later)
    assert later.budget.totals_json()["epsilon_sum"] == 0


@pytest.mark.parametrize("order", [("add_remove", "zero_out_N_public"), ("replace_one", "add_remove")])
def test_n_is_public_to_all_trainings_or_to_none(make_session: Any, order: tuple[str, str]) -> None:
    train(make_session(), order[0])
    later = make_session()
    with pytest.raises(PrivacyError, match="N"):
        train(later, order[1])
    assert later.budget.totals_json()["epsilon_sum"] == 0.5


def test_two_add_remove_trainings_go_together(make_session: Any, place: Path) -> None:
    session = make_session()
    session.release_weights(train(session))
    session.finalise(place / "first")
    later = make_session()
    assert later.release_weights(train(later))


def test_a_resumed_and_a_later_session_know_it(make_session: Any, place: Path, deltas: Any) -> None:
    session = make_session()
    session.release_weights(train(session), only=["beta1"])
    resumed = DeltabSession.resume(
        quiet_acro(), session.journal.folder, people=[f"P{i:04d}" for i in range(400)], ledger=place / "budget.db",
        profile=place / "profile.yaml",
    )  # fmt: skip
    all_blocked([resumed.release_counts(SEX), resumed.release_group_means(deltas, SEX)])
    later = make_session()
    all_blocked([later.release_counts(SEX), later.release_group_means(deltas, SEX), later.release_mean(deltas)])
    mean = later.release_private_mean(deltas, epsilon=0.5)
    assert mean.privacy is not None and (mean.privacy["adjacency"], mean.privacy["n_public"]) == ("add_remove", None)
    assert mean.facts.get("n").value == mean.facts.get("n_node").value
    folder = later.finalise(place / "out")
    assert {v for name, v in verdicts(folder).items() if name.startswith("count_by_sex")} == {"fail"}


def test_a_table_judged_before_another_session_paid_does_not_leave(make_session: Any, place: Path) -> None:
    session = make_session()
    entry = session.release_counts(SEX)
    train(make_session())
    with pytest.raises(RefusedError, match="protects N"):
        session.finalise(place / "out")
    session.drop(entry.name)
    all_blocked([session.release_counts(SEX)])
    session.finalise(place / "out")


def test_tables_of_acro_itself_do_not_leave(noised: tuple[Any, Any], place: Path) -> None:
    session, _ = noised
    session.acro.crosstab(SEX, pd.Series(np.repeat(["a", "b"], 200), name="site"))
    uid = list(session.acro.results.results)[-1]
    with pytest.raises(RefusedError, match="remove_output"):
        session.finalise(place / "out")
    session.acro.remove_output(uid)
    session.finalise(place / "out")


def test_the_checker_needs_no_word_of_the_session(make_session: Any, place: Path) -> None:
    """A table in the folder, the fact taken out of the evidence or said to be otherwise: the checker finds it."""
    session = make_session()
    entry = session.release_counts(SEX)
    folder = session.finalise(place / "out")
    name = f"{entry.name}.csv"
    assert verdicts(folder, **tre(place))[name] != "fail"
    from sacro_deltab.ledger import open_ledger
    from sacro_deltab.privacy.spend import BudgetLimits, SpendRequest

    open_ledger(place / "budget.db").spend(
        SpendRequest(
            mechanism="gaussian", epsilon=0.5, delta_dp=1e-6, mu=0.1, sigma=10.0, adjacency="add_remove",
            unit="person", outputs=("beta1",), kind="model", label="formal",
        ),
        partition="test-cohort", limits=BudgetLimits(1.0, 4.0, 1e-6, 1e-6), who="another",
        ruleset_sha256=session.ruleset.sha256,
    )  # fmt: skip
    assert verdicts(folder, **tre(place))[name] == "fail"
    path = folder / "inside" / "evidence.json"
    evidence = json.loads(path.read_text(encoding="utf-8"))
    kept = shutil.copytree(folder, place / "copy")
    for origin in ("exact", "noisy"):
        facts = evidence["outputs"][0]["facts"]["facts"]
        facts["n.origin"]["value"] = origin
        facts["dp.adjacency"]["value"] = "add_remove"  # from the folder alone
        (kept / "inside" / "evidence.json").write_text(json.dumps(evidence), encoding="utf-8")
        report = check_paths([kept])
        mine = next(o for o in report.outputs if o.file == name)
        assert any("DP-29" in f.rules for f in mine.findings)


def run_command(*more: str) -> int:
    from sacro_deltab.cli import main

    with pytest.raises(SystemExit) as stopped:
        main(["run", "--ages", "ages.csv", "--features", "idps.csv", "--groups", "groups.csv", "--by", "sex", *more])
    return int(stopped.value.code or 0)


def test_run_releases_the_weights_and_says_why_the_tables_stay(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sacro_deltab.session.attacking as attacking

    monkeypatch.setattr(attacking, "attack_training", lambda *a, **k: None)  # takes seconds, and is tested elsewhere
    pd.DataFrame({"age": STUDY.age}).to_csv("ages.csv", index=False)
    pd.DataFrame(STUDY.X, columns=NAMES).to_csv("idps.csv", index=False)
    SEX.to_frame().to_csv("groups.csv", index=False)
    BASIS.save(place / "basis.json")
    (place / "declare.json").write_text(json.dumps(DECLARE), encoding="utf-8")
    (place / "attest.json").write_text(json.dumps(ATTEST), encoding="utf-8")
    noise = ["--basis", "basis.json", "--epsilon", "0.5", "--declare", "declare.json", "--attest", "attest.json"]
    code = run_command(*noise, "--adjacency", "add_remove", "--out", "out")
    text = capsys.readouterr().out
    assert code == 3, text  # weights go to a person: the ledger is not pinned
    assert "no exact statistics or tables" in text and "--epsilon-mean" in text
    found = verdicts(place / "out")
    assert not {"mean_delta_by_sex.csv", "delta_mean.csv"} & set(found) and found["beta1.csv"] == "review"
    assert run_command("--out", "again") == 1  # tables alone, later: nothing may leave
    code = run_command(*noise, "--adjacency", "zero_out_N_public", "--out", "third")
    assert code in (1, 2) and "add_remove" in capsys.readouterr().err and not (place / "third").exists()
