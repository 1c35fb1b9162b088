"""A training in a session attacks its own weights, as `run` does; a resumed session says what it forgot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from declarations import ATTEST, DECLARE

from sacro_deltab.base.errors import InputError, RefusedError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis

PUBLIC, STUDY = smith_cohort(300, 8, seed=1), smith_cohort(400, 8, seed=2)
BASIS = Basis.from_public(PUBLIC.X, PUBLIC.age, PUBLIC.feature_names, n_components=3, made_on="simulated")
FRAME = pd.DataFrame(STUDY.X, columns=list(STUDY.feature_names))


def test_the_membership_test_is_attached(make_session: Any, place: Path) -> None:
    session = make_session(public=[BASIS])
    model = session.train_private(FRAME, STUDY.age, basis=BASIS, epsilon=0.5)
    assert session.attack_report is not None
    assert session.release_weights(model, only=["beta1"])[0].status == "pass"
    folder = session.finalise(place / "outputs")
    assert (folder / "inside" / "attack.json").is_file()
    assert "attack.json" not in (folder / "results.json").read_text(encoding="utf-8")


def test_a_test_that_breaks_costs_no_model(make_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("sacro_deltab.session.attacking.attack_training", broken)
    session = make_session()
    model = session.train_private(FRAME, STUDY.age, basis=BASIS, epsilon=0.5)
    assert session.attack_report is None
    assert any("no membership test" in text for text in session.not_checked)
    assert session.release_weights(model, only=["beta1"])[0].status == "review"


def resumed(session: Any, place: Path, **said: Any) -> Any:
    """The session taken up again as another process would."""
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    return DeltabSession.resume(
        quiet_acro(), session.journal.folder, people=[f"P{i:04d}" for i in range(400)],
        profile=place / "profile.yaml", ledger=place / "budget.db", **{"declare": DECLARE, "attest": ATTEST, **said},
    )  # fmt: skip


def test_a_resumed_session_has_its_paid_models(make_session: Any, place: Path) -> None:
    killed = make_session()
    model = killed.train_private(FRAME, STUDY.age, basis=BASIS, epsilon=0.5, membership_test=False)
    deltas = killed.deltas(model, FRAME, STUDY.age)
    session = resumed(killed, place)
    (again,) = session.private_models
    assert again.statement == model.statement
    assert again.weights.to_json() == model.weights.to_json()
    assert np.array_equal(session.deltas(again, FRAME, STUDY.age), deltas)
    assert session.orders.entries == []
    assert session.train_private(FRAME, STUDY.age, basis=BASIS, epsilon=0.5, membership_test=False).weights is not None
    session.release_weights(again)
    session.finalise(place / "outputs")
    assert session.budget.ledger.totals("test-cohort").epsilon_sum == 0.5


def test_an_interrupt_between_journal_and_record_is_a_drop(make_session: Any, place: Path, monkeypatch: Any) -> None:
    import sacro_deltab.session.recording as recording
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    values = np.random.default_rng(0).normal(0, 4, 400)
    killed = make_session()
    killed.release_sd(values)

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recording, "add_record", interrupted)
        with pytest.raises(KeyboardInterrupt):
            killed.release_mean(values)
    session = DeltabSession.resume(
        quiet_acro(), killed.journal.folder, people=[f"P{i:04d}" for i in range(400)], declare=DECLARE, attest=ATTEST,
        profile=place / "profile.yaml", ledger=place / "budget.db",
    )  # fmt: skip
    assert [entry.name for entry in session.entries] == ["delta_sd"]
    assert session.finalise(place / "outputs").is_dir()


@pytest.mark.parametrize("step", ["_finalise_acro", "_statement", "_sync", "_close_spends"])
def test_a_full_disk_leaves_nothing_and_finalise_can_be_repeated(
    make_session: Any, place: Path, monkeypatch: Any, step: str
) -> None:
    import sacro_deltab.session.folder as folder

    session = make_session()
    values = np.random.default_rng(0).normal(0, 4, 400)
    session.release_sd(values)
    session.release_private_mean(values, epsilon=0.1)

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    records = dict(session.acro.results.results)
    with monkeypatch.context() as patch:
        patch.setattr(folder, step, full)
        with pytest.raises(InputError, match="No space left"):
            session.finalise(place / "outputs")
    assert not [path for path in place.iterdir() if "outputs" in path.name]
    assert session.acro.results.results == records
    assert (session.finalise(place / "outputs") / "certificate.json").is_file()
    with pytest.raises(RefusedError, match="finalised"):
        session.release_mean(values)


def test_no_exact_n_after_add_remove_in_any_later_session(make_session: Any) -> None:
    first = make_session()
    first.train_private(FRAME, STUDY.age, basis=BASIS, epsilon=0.5, adjacency="add_remove", membership_test=False)
    later = make_session()
    with pytest.raises(InputError, match="N is not public"):
        later.release_n()
