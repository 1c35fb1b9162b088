"""Predicted ages by bands of true age: judged as a table of means, drawn, attacked with all that leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from declarations import ATTEST, DECLARE
from people_register import register_people
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import RefusedError, SacroDeltabError
from sacro_deltab.check import check_paths
from sacro_deltab.run.pipeline import quiet_acro
from sacro_deltab.session.acro_session import DeltabSession

N = 400
RNG = np.random.default_rng(8)
AGE = np.r_[RNG.uniform(50, 80, N - 7), RNG.uniform(80, 89, 7)].round(1)
PREDICTED = 65 + 0.7 * (AGE - 65) + RNG.normal(0, 4, N)
PEOPLE = [f"P{i:04d}" for i in range(N)]


@pytest.fixture
def session(tmp_path: Path) -> Any:
    write_profile(tmp_path)
    return new_session(tmp_path, ages=AGE)


def test_it_is_the_mean_predicted_age_of_each_band_and_is_drawn(session: Any, tmp_path: Path) -> None:
    (entry,) = session.release("calibration", PREDICTED, AGE, validated="10-fold cross-validation")
    rows = {row[0]: row[1:] for row in entry.document.rows} if entry.document else {}
    assert entry.kept_inside or rows["80 to under 90"] == ("*", "*"), "seven people are too few"
    kept = np.where(AGE < 80, PREDICTED, np.nan), np.where(AGE < 80, AGE, np.nan)
    (entry,) = session.release("calibration", *kept, name="under_80")
    assert not entry.kept_inside and entry.document.columns[2].name == "mean_predicted_age", entry.explain()
    for low in (50, 60, 70):
        mine = (low <= AGE) & (low + 10 > AGE)
        n, mean = next(row[1:] for row in entry.document.rows if row[0] == f"{low} to under {low + 10}")
        assert mean == pytest.approx(PREDICTED[mine].mean(), abs=0.051) and abs(n - mine.sum()) <= 2
    session.release_plot(entry)
    folder = session.finalise(tmp_path / "out")
    report = check_paths([folder], profile=tmp_path / "profile.yaml", ledger=tmp_path / "budget.db")
    assert all(one.verdict != "fail" for one in report.outputs if one.type == "calibration"), report


def test_what_is_no_prediction_or_too_fine_does_not_leave(tmp_path: Path) -> None:
    write_profile(tmp_path)
    session = new_session(tmp_path, ages=AGE, registered=False)
    with pytest.raises(RefusedError, match="ages of these people"):
        session.release("calibration", AGE + RNG.normal(0, 0.01, N), AGE)
    with pytest.raises(SacroDeltabError):
        session.release("calibration", AGE * 1000, AGE)
    (narrow,) = session.release("calibration", PREDICTED, AGE, width=2)
    assert narrow.status == "fail" and "years wide" in narrow.explain()


def test_one_person_more_is_seen_beside_the_other_outputs(session: Any) -> None:
    """A band with and without one person, and the count table that goes with it."""
    young = AGE < 80
    everybody = np.where(young, PREDICTED, np.nan)
    without = everybody.copy()
    without[np.flatnonzero(young)[0]] = np.nan
    one, two = session.plan_outputs(
        [
            ("calibration", {"predicted": values, "age": np.where(young, AGE, np.nan), "name": name})
            for values, name in ((everybody, "all"), (without, "less"))
        ]
    )
    marked = any("*" in row for e in (one, two) if e.document is not None for row in e.document.rows)
    assert one.kept_inside or two.kept_inside or marked


@pytest.mark.parametrize("kind", ["calibration", "prediction_error", "cv_mae"])
def test_values_of_ones_own_making_go_to_a_person(tmp_path: Path, kind: str) -> None:
    """On a cohort whose columns the TRE registered, ages and predictions that are not theirs are asked about."""
    profile = write_profile(tmp_path)
    features = pd.DataFrame({f"f{i}": RNG.normal(0, 1, N) - 0.05 * AGE for i in range(3)})
    register_people(tmp_path / "budget.db", "co", PEOPLE, {"age": AGE, **{c: features[c].to_numpy() for c in features}})
    session = DeltabSession(
        quiet_acro(), cohort="co", people=PEOPLE, ages=AGE, ledger=tmp_path / "budget.db", profile=profile,
        journal=tmp_path / "j", declare=DECLARE, attest=ATTEST,
    )  # fmt: skip
    shifted = np.clip(AGE + RNG.normal(0, 3, N), 50, 79.9)
    mine = (features, shifted) if kind == "cv_mae" else (PREDICTED, shifted)
    (entry,) = session.release(kind, *mine)
    assert entry.status == "review" and "FB-20" in entry.explain(), entry.explain()
    if kind == "cv_mae":
        (entry,) = session.release(kind, features, AGE, name="theirs")
        assert "FB-20" not in entry.explain()
