"""ε is spent last, and what it bought is never lost: full disks, failures after the spend, facts given later."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from declarations import ATTEST, DECLARE
from session_helpers import register

from sacro_deltab.base.errors import InputError, LedgerError, SacroDeltabError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.ledger import open_ledger
from sacro_deltab.privacy import Basis
from sacro_deltab.session.paid import Orders

Run = Callable[..., tuple[int, str, str]]
PUBLIC, STUDY = smith_cohort(200, 6, seed=1), smith_cohort(400, 6, seed=2)
BASIS = Basis.from_public(PUBLIC.X, PUBLIC.age, PUBLIC.feature_names, n_components=2, made_on="simulated")
FRAME = pd.DataFrame(STUDY.X, columns=list(STUDY.feature_names))


def trained(session: Any, **more: Any) -> Any:
    return session.train_private(FRAME, STUDY.age, basis=BASIS, epsilon=0.5, membership_test=False, **more)


def spent(place: Path, cohort: str = "test-cohort") -> float:
    return float(open_ledger(place / "budget.db").totals(cohort).epsilon_sum)


def again(session: Any, place: Path, **said: Any) -> Any:
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    kwargs = {"declare": DECLARE, "attest": ATTEST, "profile": place / "profile.yaml", **said}
    people = [f"P{i:04d}" for i in range(400)]
    return DeltabSession.resume(
        quiet_acro(), session.journal.folder, people=people, ledger=place / "budget.db", **kwargs
    )


def full(*args: Any, **kwargs: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_found_before_the_spend(make_session: Any, place: Path, monkeypatch: Any) -> None:
    session = make_session(public=[BASIS])
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(SacroDeltabError):
            trained(session)
    assert spent(place) == 0
    trained(session)
    assert spent(place) == 0.5


def test_a_disk_that_fills_at_the_worst_moment_costs_nothing(make_session: Any, place: Path, monkeypatch: Any) -> None:
    """Between the spend and the sealed result: asked again, the same order draws."""
    session = make_session(public=[BASIS])
    with monkeypatch.context() as patch:
        patch.setattr("sacro_deltab.session.paid.write_file", full)
        with pytest.raises(InputError):
            trained(session)
    assert spent(place) == 0.5
    with pytest.raises(InputError, match="waits to be taken up"):  # nothing else is paid for meanwhile
        session.release_private_mean(np.ones(400), epsilon=0.1)
    trained(session)
    assert spent(place) == 0.5
    assert session.orders.entries == []


def test_what_was_drawn_is_opened_and_nothing_else(make_session: Any, place: Path) -> None:
    killed = make_session(public=[BASIS])
    trained(killed)
    (sealed,) = killed.journal.folder.glob("paid-*.sealed")
    whole = sealed.read_bytes()
    assert b"y_mean" not in whole and sealed.stat().st_mode & 0o077 == 0
    sealed.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(LedgerError, match="not the result that was drawn"):
        again(killed, place)
    sealed.unlink()
    with pytest.raises(LedgerError, match="cannot be read"):
        again(killed, place)
    sealed.write_bytes(whole)
    assert len(again(killed, place).private_models) == 1


def test_an_order_is_asked_again_by_its_terms_and_people(make_session: Any, place: Path, monkeypatch: Any) -> None:
    killed = make_session(public=[BASIS])
    with monkeypatch.context() as patch:
        patch.setattr(Orders, "opened", full)  # dies after the digest is in the ledger
        with pytest.raises(InputError):
            trained(killed)
    session = again(killed, place)
    assert session.private_models == [] and len(session.orders.entries) == 1
    with pytest.raises(InputError, match="waits to be taken up"):
        session.train_private(FRAME + 1, STUDY.age, basis=BASIS, epsilon=0.5, membership_test=False)
    model = trained(session)
    assert spent(place) == 0.5
    assert [e.kind for e in open_ledger(place / "budget.db").history("test-cohort")].count("draw") == 1
    assert model.statement.ledger["entry"] == session.models[id(model)].receipt.entry


def test_facts_given_later_count_without_a_second_spend(profile: Path, place: Path) -> None:
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    people = [f"P{i:04d}" for i in range(400)]
    how = {"people": people, "ledger": place / "budget.db", "profile": profile}
    register(place / "budget.db", BASIS)
    first = DeltabSession(quiet_acro(), cohort="later", journal=place / "j", **how)
    model = trained(first, spend_anyway=True)
    first.release_weights(model, only=["beta1", "y_mean"])
    first.release_group_means(np.random.default_rng(1).normal(0, 4, 400), by=np.repeat(["a", "b"], 200))
    assert first.entries[0].status == "fail"
    first.finalise(place / "first")
    session = DeltabSession.resume(quiet_acro(), first.journal.folder, declare=DECLARE, attest=ATTEST, **how)
    session.rejudge()
    assert {e.name: e.status for e in session.entries}["beta1"] != "fail"
    folder = session.finalise(place / "second")
    assert (folder / "beta1.json").is_file()
    assert spent(place, "later") == 0.5
    history = open_ledger(place / "budget.db").history("later")
    assert [e.kind for e in history].count("spend") == 1
    assert not any("second model export" in reason.lower() for e in session.entries for reason in e.reasons)
    assert open_ledger(place / "budget.db").verify().ok


def write_inputs(place: Path) -> list[str]:
    frame = FRAME.assign(participant_id=[f"R{i}" for i in range(400)], age=STUDY.age, sex=["F", "M"] * 200)
    frame.to_csv(place / "cohort.csv", index=False)
    BASIS.save(place / "basis.json")
    register(place / "budget.db", BASIS)
    (place / "declare.json").write_text(json.dumps(DECLARE), encoding="utf-8")
    return [
        "run", "--ages", "cohort.csv", "--features", "cohort.csv", "--id-column", "participant_id", "--groups",
        "cohort.csv", "--by", "sex", "--ignore", "sex", "--basis", "basis.json", "--epsilon", "1", "--cohort", "run-a",
    ]  # fmt: skip


def test_a_run_is_judged_again_from_what_it_paid_for(cli: Run, profile: Path, place: Path) -> None:
    command = [*write_inputs(place), "--profile", str(profile)]
    code, out, err = cli(*command, "--out", "first", "--spend-anyway")
    assert code in (1, 3) and not (place / "first" / "beta1.json").exists(), err
    kept = re.search(r"--resume (\S+)", err)
    assert kept is not None and spent(place, "run-a") == 1.0
    code, out, err = cli(*command, "--out", "second", "--declare", "declare.json", "--resume", kept.group(1))
    assert code in (0, 3), out + err
    assert spent(place, "run-a") == 1.0
    assert (place / "second" / "beta1.json").is_file()
    assert "second model export" not in out


def test_nothing_raises_after_the_spend(cli: Run, profile: Path, place: Path, monkeypatch: Any) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("sacro_deltab.run.releasing._tables", broken)
    monkeypatch.setattr("sacro_deltab.privacy.attack.membership.attack_report", broken)
    command = [*write_inputs(place), "--profile", str(profile), "--declare", "declare.json"]
    code, out, err = cli(*command, "--out", "out")
    assert code in (0, 1, 3), err
    assert "ZeroDivisionError" in out and (place / "out" / "beta1.json").is_file()
    assert spent(place, "run-a") == 1.0
