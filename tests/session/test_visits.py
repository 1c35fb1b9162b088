"""Repeated visits: one person, several rows; every number is one of people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session

from sacro_deltab.base.errors import InputError
from sacro_deltab.check import check_paths
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.measure.grouping import AgeBands
from sacro_deltab.measure.people import Roster
from sacro_deltab.privacy import Basis

N, BACK = 400, 250  # people at the first visit, of whom some come back


def study() -> pd.DataFrame:
    """People who come back, in no order: the second visit is two years later."""
    people = smith_cohort(N, 8, seed=2)
    names = [f"P{i:04d}" for i in range(N)]
    first = pd.DataFrame(people.X, columns=list(people.feature_names)).assign(id=names, age=people.age, visit="first")
    second = first.head(BACK).assign(age=first.age + 2, visit="second")
    second[list(people.feature_names)] += 0.1
    table = pd.concat([first, second]).sample(frac=1, random_state=3).reset_index(drop=True)
    return table.assign(delta=np.random.default_rng(4).normal(0, 4, N + BACK).round(3), sex=table.id.str[-1] < "5")


def opened(folder: Path, table: pd.DataFrame, **more: Any) -> Any:
    return new_session(folder, people=table.id, ages=table.age, visit=table.visit, **more)


def test_a_table_of_one_visit_is_one_of_its_people(profile: Path) -> None:
    table = study()
    session = opened(profile.parent, table)
    entry = session.release_group_means(table.delta, by=table.sex, where=(table.visit, "second"))
    there = table[table.visit == "second"]
    assert entry.document is not None
    got = {str(row[0]).lower(): (row[2], row[1]) for row in entry.document.rows}
    for sex, rows in there.groupby("sex"):
        mean, n = got[str(sex).lower()]
        assert n == len(rows) and mean == pytest.approx(rows.delta.mean(), abs=0.06)
    assert entry.document.about["where"] == ["visit", "second"]
    assert session.release_n(where=(table.visit, "second")).document.rows[0][1] == BACK


def test_what_stands_beside_it_is_that_of_the_visit(profile: Path) -> None:
    table = study()
    session = opened(profile.parent, table)
    r = session.release_correlation(table.delta, table.age.rename("age"), where=(table.visit, "second"))[0]
    there = table[table.visit == "second"]
    assert r.document.rows[0][1] == pytest.approx(np.corrcoef(there.delta, there.age)[0, 1], abs=0.006)
    fitted = session.release_regression(formula="delta ~ age + sex", data=table, where=(table.visit, "second"))
    slope = next(row for row in fitted.document.rows if row[0] == "age")[3]
    design = np.column_stack([np.ones(BACK), there.age, there.sex])
    assert slope == pytest.approx(np.linalg.lstsq(design, there.delta, rcond=None)[0][1], rel=0.02)
    bands = session.release_group_means(table.delta, by=AgeBands(table.age, width=10), where=(table.visit, "second"))
    assert sum(row[1] for row in bands.raw.rows) == BACK


def test_every_statistic_names_a_visit(profile: Path) -> None:
    """Where all but five people come back, the two visits' means and the mean of each person's would tell the five."""
    table = study()
    session = opened(profile.parent, table)
    for asked in (
        lambda: session.release_mean(table.delta),
        lambda: session.release_group_means(table.delta, by=table.sex),
        lambda: session.release_mean(table.delta, where=(table.sex, True)),
        lambda: session.release_mean(table.delta, where=(table.visit, ["first", "second"])),
        lambda: session.plan_outputs([("mean", {"values": table.delta})]),
    ):
        with pytest.raises(InputError, match="visit"):
            asked()
    assert session.release_counts(by=table.sex).status == "pass"


def test_a_private_training_averages_the_rows_of_a_person(profile: Path) -> None:
    table = study()
    public = smith_cohort(600, 8, seed=1)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="public people")
    session = opened(profile.parent, table, public=[basis])
    features = table[list(public.feature_names)]
    model = session.train_private(features, table.age, basis=basis, epsilon=1.0, membership_test=False)
    assert model.statement.label == "formal" and model.statement.n_public == N
    mean = table.groupby("id")[[*public.feature_names, "age"]].mean()
    record = session.models[id(model)]
    from sacro_deltab.session.training import people_digest

    order = list(dict.fromkeys(table.id))
    assert record.training.people == people_digest(
        mean.loc[order, list(public.feature_names)].to_numpy(), mean.loc[order, "age"].to_numpy(), None
    )
    deltas = session.deltas(model, features, table.age)
    assert len(deltas) == len(table)
    assert session.model_origin(deltas)["model.origin"].value == "formal_release"
    one = session.train_private(
        features, table.age, basis=basis, epsilon=1.0, membership_test=False, where=(table.visit, "second")
    )
    assert one.statement.n_public == BACK and one.statement.label == "heuristic"  # nobody registered who came back


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.__setitem__("visit", "first"), "two rows at one visit"),
        (lambda t: t.loc.__setitem__((3, "visit"), None), "a row has no visit"),
    ],
)
def test_rows_that_are_no_visits_are_refused(profile: Path, change: Any, says: str) -> None:
    table = study()
    change(table)
    with pytest.raises(InputError, match=says):
        opened(profile.parent, table)


def test_without_visits_several_rows_train_nothing(profile: Path) -> None:
    table = study()
    session = new_session(profile.parent, people=table.id)
    public = smith_cohort(600, 8, seed=1)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="public people")
    with pytest.raises(InputError, match="several rows"):
        session.train_private(table[list(public.feature_names)], table.age, basis=basis, epsilon=1.0)


def test_the_checker_asks_a_person_and_accuses_nobody(profile: Path) -> None:
    table = study()
    session = opened(profile.parent, table)
    session.release_mean(table.delta, where=(table.visit, "first"))
    session.release_sd(table.delta, where=(table.visit, "second"))
    folder = session.finalise(profile.parent / "out")
    path = profile.parent / "cohort.csv"
    table.rename(columns={"id": "participant_id"}).to_csv(path, index=False)
    report = check_paths([str(folder)], cohort=str(path))
    assert all(o.verdict == "review" for o in report.outputs if o.output and o.output.startswith("delta"))
    assert "P0001" not in json.dumps([str(output) for output in report.outputs])


def test_one_row_each_is_the_mean_of_a_persons_rows() -> None:
    roster = Roster.of(5, ["a", "b", "a", "c", "b"])
    values = np.array([[1.0, 10], [2, np.nan], [3, 30], [4, 40], [6, 60]])
    assert np.allclose(roster.one_row_each(values), [[2, 20], [4, 60], [4, 40]])
    rows = np.array([False, True, False, True, True])
    assert np.allclose(roster.one_row_each(values, rows), [[4, 60], [4, 40]])
    assert np.allclose(roster.one_row_each(values[:, 0]), [2, 4, 4])
