"""Deltas of an unprotected model cannot be passed off as those of a formally private one."""

from __future__ import annotations

from typing import Any

import acro
import numpy as np
import pytest
from people_register import register_people

from sacro_deltab import DeltabSession
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.ledger import open_ledger
from sacro_deltab.privacy import Basis


def test_only_the_deltas_that_the_private_model_gave_are_formal(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = open_ledger("budget.db", create=True)
    pins = [{"id": ledger.id, "head_key": ledger.head_key}]
    monkeypatch.setattr("sacro_deltab.session.core.pins_of", lambda trust, ruleset: pins)
    public, people = smith_cohort(600, 10, seed=1), smith_cohort(400, 10, seed=2)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="public people")
    ledger.register_bounds(basis.digest, "TRE staff")
    ids = [f"P{i:03d}" for i in range(400)]
    register_people("budget.db", "site-a", ids)
    session = DeltabSession(acro.ACRO(), cohort="site-a", people=ids, ages=people.age, ledger="budget.db")
    model = session.train_private(
        people.X,
        people.age,
        feature_names=list(people.feature_names),
        basis=basis,
        epsilon=0.5,
        spend_anyway=True,
    )
    assert model.statement.label == "formal"
    own = session.deltas(model, people.X, people.age, kind="simple")
    other = people.age - people.age.mean() + np.random.default_rng(0).normal(size=400)
    changed = session.deltas(model, people.X, people.age, kind="simple")
    changed[:] = other

    def label(values: Any, **more: Any) -> str:
        return str(session.release_private_mean(values, epsilon=0.1, **more).privacy["label"])

    assert label(own, name="own") == "formal"
    assert label(own.copy(), name="own_named", model=model) == "formal"
    assert label(other, name="another_models", model=model) == "heuristic"
    assert label(changed, name="changed_in_place", model=model) == "heuristic"
    assert label(own * 1e6, name="scaled", model=model) == "heuristic"
