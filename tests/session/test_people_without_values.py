"""A few people of the roster have no scan: honest packages are judged alike now and later, and by a checker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.check import check_paths
from sacro_deltab.cli import main
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis
from sacro_deltab.run.starting import write_trial

DELTAS = np.random.default_rng(1).normal(0, 4, 400)


def test_what_leaves_beside_n_is_no_leak_in_the_next_session(tmp_path: Path) -> None:
    """N and an SD of all but three were let out together, and then stood against every later session for ever."""
    write_profile(tmp_path)
    some = np.where(np.arange(400) < 3, np.nan, DELTAS)
    first = new_session(tmp_path)
    entries = [first.release_n(), first.release_mean(some), first.release_sd(some)]
    assert not all(not first.find(entry.name).kept_inside for entry in entries)
    first.finalise(tmp_path / "first")
    second = new_session(tmp_path)
    second.release_counts(["a", "b"] * 200)
    assert (second.finalise(tmp_path / "second") / "results.json").is_file()


def test_a_checker_counts_people_without_features_as_the_session_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trial(tmp_path)
    table = pd.read_csv("other.csv")
    idps = [name for name in table if name.startswith("idp_")]
    table.loc[table["age"].nlargest(3).index, idps] = np.nan
    table.loc[table["age"].nsmallest(2).index, idps[3:]] = np.nan
    table.to_csv("gaps.csv", index=False)
    words = (
        "run --ages gaps.csv --features gaps.csv --ignore sex --ignore diagnosis --id-column participant_id "
        "--basis basis.json --epsilon 1 --cohort site-c --trust trust.json --declare declare.json "
        "--attest attest.json --out outputs"
    )
    with pytest.raises(SystemExit) as stopped:
        main(words.split())
    assert stopped.value.code in (0, 1, 3)
    report = check_paths(
        ["outputs"], trust="trust.json", ledger="budget.db", cohort="gaps.csv", facts_file="attest.json"
    )
    assert not [f.inside for output in report.outputs for f in output.findings if f.code == "cohort-differs"]


def test_whoever_has_few_of_the_features_has_no_delta_and_counts_nowhere(tmp_path: Path) -> None:
    """One feature of eight, the others imputed: the delta is the model's, and hides others without adding anybody."""
    write_profile(tmp_path)
    people = smith_cohort(400, 8, seed=2)
    few, X = np.arange(400) < 30, people.X.copy()
    X[few, 3:] = np.nan
    X[30:60, 4:] = np.nan  # half of them is enough
    public = smith_cohort(600, 8, seed=1)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="public people")
    session = new_session(tmp_path, public=[basis])
    names = list(people.feature_names)
    model = session.train_private(X, people.age, feature_names=names, basis=basis, epsilon=1.0, membership_test=False)
    assert session.models[id(model)].training.with_values == 370
    deltas = session.deltas(model, pd.DataFrame(X, columns=names), people.age)
    assert np.isnan(np.asarray(deltas)[few]).all() and np.isfinite(np.asarray(deltas)[~few]).all()
    assert session.release_mean(deltas).facts.get("n").value == 370
