"""The documents' own recipe from the command line: one spend, heuristic, to a person, and never a pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from declarations import ATTEST, DECLARE
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import BudgetError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.ledger import open_ledger

NOISED = {"beta1", "beta2", "beta2sq", "gamma", "gammasq"}


def test_the_recipe_leaves_as_heuristic(cli: Callable[..., Any], place: Path) -> None:
    people = smith_cohort(240, 6, seed=2)
    table = pd.DataFrame(people.X, columns=list(people.feature_names)).assign(
        participant_id=[f"P{i:03d}" for i in range(240)], age=people.age
    )
    table.to_csv("cohort.csv", index=False)
    for name, said in (("declare.json", DECLARE), ("attest.json", ATTEST)):
        Path(name).write_text(json.dumps(said), encoding="utf-8")
    profile = write_profile(place)
    code, out, err = cli(
        "run", "--ages", "cohort.csv", "--features", "cohort.csv", "--id-column", "participant_id", "--recipe",
        "documents", "--epsilon", "1", "--n-components", "3", "--profile", profile, "--cohort", "site-a", "--declare",
        "declare.json", "--attest", "attest.json", "--out", "out",
    )  # fmt: skip
    assert code == 1, err  # what the recipe leaves exact (components, folded weights) stays inside
    assert "no guarantee: the noise scale was read from the data" in out
    records = json.loads((place / "out" / "results.json").read_text(encoding="utf-8"))["results"].values()
    status = {Path(r["files"][0]["name"]).stem: r["status"] for r in records}
    assert {status[name] for name in NOISED} == {"review"}
    assert status["pca_components"] == status["folded_weights"] == "fail"
    assert json.loads((place / "out" / "beta1.json").read_text(encoding="utf-8"))["about"]["privacy"] == "heuristic"
    totals = open_ledger("budget.db").totals("site-a")
    assert (totals.epsilon_sum, totals.releases) == (1.0, 1)


def test_what_the_limits_do_not_cover_spends_nothing(profile: Path) -> None:
    people = smith_cohort(400, 6, seed=2)
    session = new_session(profile.parent)
    with pytest.raises(BudgetError):
        session.train_documents(
            np.asarray(people.X), people.age, feature_names=list(people.feature_names), epsilon=1.5, n_components=3
        )
    assert session.budget.totals_json()["epsilon_sum"] == 0
