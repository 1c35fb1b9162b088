"""Hostile input to a private training: no crash once budget is spent, no exact N beside an add_remove model."""

from __future__ import annotations

from typing import Any

import acro
import numpy as np
import pytest

from sacro_deltab import DeltabSession
from sacro_deltab.base.errors import InputError, PrivacyError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis


@pytest.fixture(scope="module")
def study() -> tuple[Any, Basis]:
    public = smith_cohort(600, 10, seed=1)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="public people")
    return smith_cohort(417, 10, seed=2), basis


@pytest.fixture
def session(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, study: tuple[Any, Basis]) -> DeltabSession:
    monkeypatch.chdir(tmp_path)
    ids = [f"P{i:03d}" for i in range(417)]
    return DeltabSession(acro.ACRO(), cohort="site-a", people=ids, ages=study[0].age, ledger="budget.db")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_extreme_features_do_not_lose_a_paid_model(session: DeltabSession, study: tuple[Any, Basis]) -> None:
    people, basis = study
    X = people.X.copy()
    X[:6] = np.array([np.inf, -np.inf, 1e308, np.nan, -1e308, 1e-320])[:, None]
    model = session.train_private(
        X,
        people.age,
        feature_names=list(people.feature_names),
        basis=basis,
        epsilon=0.5,
        spend_anyway=True,
    )
    assert np.isfinite(model.weights.b1).all()
    assert session.release_weights(model, only=["beta1"])[0].decision is not None


def test_no_exact_n_beside_an_add_remove_model(session: DeltabSession, study: tuple[Any, Basis]) -> None:
    people, basis = study
    model = session.train_private(
        people.X,
        people.age,
        feature_names=list(people.feature_names),
        basis=basis,
        epsilon=0.5,
        adjacency="add_remove",
        spend_anyway=True,
    )
    assert "n_subjects" not in {entry.type for entry in session.release_weights(model)}
    with pytest.raises(InputError, match="N is not public"):
        session.release_weights(model, only=["n_subjects"])


@pytest.mark.parametrize("epsilon", ["x", None, -1, float("nan"), float("inf"), 0])
def test_a_price_that_is_none_is_refused(session: DeltabSession, study: tuple[Any, Basis], epsilon: Any) -> None:
    people, basis = study
    with pytest.raises(PrivacyError):
        session.train_private(
            people.X, people.age, feature_names=list(people.feature_names), basis=basis, epsilon=epsilon
        )
    assert session.budget.totals_json()["epsilon_sum"] == 0
