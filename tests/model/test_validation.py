"""Cross-validation from moments against cross-validation on the people; real data where it is at hand."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacro_deltab.cohort import read_cohort
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.model import BrainAgeDelta, ModelInputError, Moments

DATA = Path(__file__).parents[3] / "shared" / "data"


def test_moments_travel_between_processes() -> None:
    people = smith_cohort(50, 4, seed=2)
    moments = Moments(people.feature_names).update(people.X, people.age)
    raw = pickle.dumps(moments)
    assert len(raw) < 4000
    again = pickle.loads(raw)
    again.update(people.X, people.age)
    assert again.n == 100


def test_confound_names_are_kept_and_enforced() -> None:
    people = smith_cohort(80, 5, seed=3)
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(80, 2)), columns=["motion", "head_size"])
    model = BrainAgeDelta(2).fit(people.X, people.age, frame)
    assert model.weights_.conf_names == ("motion", "head_size")
    with pytest.raises(ModelInputError, match="confound columns"):
        model.predict(people.X, frame[["head_size", "motion"]])
    np.testing.assert_array_equal(model.predict(people.X, frame), model.predict(people.X, frame.to_numpy()))


@pytest.mark.skipif(not (DATA / "ixi_thickness.csv").is_file(), reason="real data are not at hand")
@pytest.mark.parametrize(
    ("file", "options", "people", "r", "mae"),
    [
        ("ixi_thickness.csv", {"group_columns": ["sex", "site"]}, 558, 0.711, 9.27),
        (
            "openneuro_transfer.csv",
            {"group_columns": ["sex", "site"], "ignore_columns": ["sitenum"], "rows_per_person": 1},
            518, 0.856, 5.21,
        ),
    ],
)  # fmt: skip
def test_real_tables_reach_the_known_skill(
    file: str, options: dict[str, Any], people: int, r: float, mae: float
) -> None:
    cohort = read_cohort(table=DATA / file, **options)
    assert cohort.n_people == cohort.n_rows == people
    fold = np.random.default_rng(0).integers(0, 5, people)
    predicted = np.empty(people)
    for k in range(5):
        train = fold != k
        model = BrainAgeDelta(25).fit(cohort.X[train], cohort.age[train])
        predicted[~train] = model.predict(cohort.X[~train])
    assert np.corrcoef(predicted, cohort.age)[0, 1] == pytest.approx(r, abs=0.02)
    assert np.abs(predicted - cohort.age).mean() == pytest.approx(mae, abs=0.3)
    full = BrainAgeDelta().fit(cohort.X, cohort.age)
    assert np.abs(full.b1_).max() < 1e3  # upstream: up to 3e10 where columns are sums of others
