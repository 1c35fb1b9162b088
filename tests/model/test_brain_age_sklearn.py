"""BrainAgeDelta as a scikit-learn citizen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sacro_deltab.model import BrainAgeDelta


@pytest.mark.filterwarnings("ignore")  # the checks provoke scikit-learn's own warnings on purpose
@pytest.mark.parametrize(
    "estimator",
    [
        BrainAgeDelta(), BrainAgeDelta(2), BrainAgeDelta(0.9), BrainAgeDelta("kaiser_guttman"),
        BrainAgeDelta(kaiser_guttman=True, svd_solver="eigh"),
    ],
    ids=["none", "number", "variance", "criterion", "flag"],
)  # fmt: skip
def test_check_estimator(estimator: BrainAgeDelta) -> None:
    check_estimator(estimator)


def _people(n: int = 120, f: int = 8, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.uniform(45, 75, n)
    x = rng.normal(size=(n, f)) + np.outer(age, rng.normal(size=f)) / 10
    return pd.DataFrame(x, columns=[f"idp_{i}" for i in range(f)]), age


def test_pipeline_and_cross_validation() -> None:
    x, age = _people()
    score = cross_val_score(make_pipeline(StandardScaler(), BrainAgeDelta(n_components=4)), x, age, cv=5)
    assert score.mean() > 0.5


def test_feature_names_and_order_are_kept_and_enforced() -> None:
    x, age = _people()
    model = BrainAgeDelta(n_components=3).fit(x, age)
    assert list(model.feature_names_in_) == list(x.columns) == list(model.weights_.feature_names)
    shuffled = x[list(x.columns[::-1])]
    for use in (model.predict, lambda d: model.delta(d, age), lambda d: model.weights_.predict_age(d)):
        with pytest.raises(ValueError):
            use(shuffled)
        with pytest.raises(ValueError):
            use(x.iloc[:, 1:])


def test_clone_keeps_parameters() -> None:
    model = clone(BrainAgeDelta(0.9, svd_solver="eigh"))
    assert (model.n_components, model.svd_solver) == (0.9, "eigh")


def test_confounds_are_routed_through_cross_validation_and_grid_search() -> None:
    x, age = _people()
    confounds = np.column_stack([np.ones(len(age)), np.sin(age)])
    with config_context(enable_metadata_routing=True):
        model = BrainAgeDelta(4).set_fit_request(confounds=True).set_score_request(confounds=True)
        score = cross_val_score(model, x, age, cv=5, params={"confounds": confounds})
        search = GridSearchCV(model, {"n_components": [2, 4, 0.9]}, cv=3).fit(x, age, confounds=confounds)
    assert np.isfinite(score).all() and score.mean() > 0.5
    assert search.best_estimator_.conf_beta_ is not None


def test_two_features_of_one_name_are_refused() -> None:
    people = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="same name"):
        BrainAgeDelta().fit(people, np.arange(20.0))
