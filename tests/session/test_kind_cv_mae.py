"""A kind that is one file: cross-validated MAE, from data to a checked folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError
from sacro_deltab.check import check_paths
from sacro_deltab.model import BrainAgeDelta

RNG = np.random.default_rng(5)
N = 400
AGE = RNG.uniform(45, 85, N).round(1)
X = pd.DataFrame({f"thickness_{i}": RNG.normal(0, 1, N) - 0.05 * (i + 1) * AGE for i in range(6)})


@pytest.fixture
def session(tmp_path: Path) -> Any:
    write_profile(tmp_path)
    return new_session(tmp_path)


def test_it_is_the_error_of_models_that_never_saw_the_person(session: Any) -> None:
    (entry,) = session.release("cv_mae", X, AGE, n_components=4, folds=5)
    assert entry.status == "pass", entry
    fold = np.random.default_rng(0).permutation(N) % 5
    errors = np.concatenate([
        np.abs(BrainAgeDelta(n_components=4).fit(X[fold != k], AGE[fold != k]).predict(X[fold == k]) - AGE[fold == k])
        for k in range(5)
    ])  # fmt: skip
    assert entry.document.rows[0][1] == pytest.approx(float(f"{errors.mean():.3g}"))
    assert entry.document.about["validated"] == "5-fold cross-validation"


def test_few_people_stay_inside(session: Any) -> None:
    with pytest.raises(InputError, match="too few people"):
        session.release("cv_mae", X, np.where(np.arange(N) < 8, AGE, np.nan), folds=5)
    (entry,) = session.release("cv_mae", X, np.where(np.arange(N) < 19, AGE, np.nan), n_components=2, folds=5)
    assert entry.status == "fail"


def test_one_person_more_is_seen_by_the_attack(session: Any) -> None:
    first, second = session.plan_outputs(
        [
            ("cv_mae", {"X": X, "age": AGE, "n_components": 2}),
            ("cv_mae", {"X": X, "age": np.where(np.arange(N) < 1, np.nan, AGE), "n_components": 2, "name": "without"}),
        ]
    )
    assert sorted((first.kept_inside, second.kept_inside)) == [False, True]


def test_the_checker_comes_to_the_same(session: Any, tmp_path: Path) -> None:
    session.release("cv_mae", X, AGE)
    folder = session.finalise(tmp_path / "out")
    report = check_paths([folder], profile=tmp_path / "profile.yaml", ledger=tmp_path / "budget.db")
    found = [output for output in report.outputs if output.type == "cv_mae"]
    assert [output.verdict for output in found] == ["pass", "pass"], [f.inside for o in found for f in o.findings]
