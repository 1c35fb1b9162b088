"""Statistics that would return one person's value, or a small group's mean, in another form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacro_deltab.base.errors import InputError, RefusedError
from sacro_deltab.measure.measure import carriers


@pytest.mark.parametrize("people", [1, 15])
@pytest.mark.parametrize("jitter", [0.0, 1e-6])
def test_an_indicator_of_few_people_rests_on_few(people: int, jitter: float) -> None:
    rng = np.random.default_rng(3)
    column = np.r_[np.ones(people), np.zeros(400)] + jitter * rng.normal(size=400 + people)
    assert carriers(column) == people
    assert carriers(1 - column) == people


@pytest.mark.parametrize("n", [20, 25, 600])
def test_an_ordinary_column_rests_on_everybody(n: int) -> None:
    assert carriers(np.random.default_rng(n).normal(size=n)) == n
    assert carriers(np.full(n, 2.0)) == n


def test_no_correlation_with_an_indicator_of_few(make_session: Any) -> None:
    rng = np.random.default_rng(4)
    delta, mark = rng.normal(size=300), np.zeros(300)
    mark[:15] = 1
    session = make_session(people=[f"P{i}" for i in range(300)])
    assert {e.status for e in session.release_correlation(delta, pd.Series(mark, name="marked"))} == {"fail"}
    assert session.release_regression(mark, pd.DataFrame({"delta": delta})).status == "fail"


def test_values_that_are_no_column_and_quantiles_that_are_the_people(make_session: Any) -> None:
    session = make_session(people=[f"P{i}" for i in range(300)])
    for values in (3.0, None, (x for x in range(300))):
        with pytest.raises(InputError):
            session.release_mean(values)
    with pytest.raises(InputError, match="nearly the people"):
        session.release_quantiles(np.random.default_rng(5).normal(size=300), list(np.linspace(1, 99, 99)))


def test_changed_values_of_a_few_are_no_other_variable(make_session: Any) -> None:
    delta = np.random.default_rng(6).normal(0.4, 4.0, 300)
    session = make_session(people=[f"P{i}" for i in range(300)])
    session.release_mean(delta)
    changed = delta.copy()
    changed[:12] = 0.0
    with pytest.raises(RefusedError):
        session.release_mean(changed)
    assert len(session.entries) == 1


def test_no_two_sds_one_person_apart(make_session: Any) -> None:
    delta = np.random.default_rng(7).normal(0.4, 4.0, 300)
    session = make_session(people=[f"P{i}" for i in range(300)])
    assert session.release_sd(delta).status == "pass"
    without = delta.copy()
    without[0] = np.nan
    again = session.release_sd(without)
    assert again.status == "fail" and again.kept_inside
    assert any("delta_sd and delta_sd_2" in note for note in again.notes_inside)


@pytest.mark.parametrize(("people", "status"), [(12, "fail"), (45, "fail"), (120, "pass")])
@pytest.mark.parametrize("jitter", [0.0, 1e-4])
def test_the_mean_of_an_indicator_is_a_count(make_session: Any, people: int, status: str, jitter: float) -> None:
    rng = np.random.default_rng(8)
    mark = np.r_[np.ones(people), np.zeros(300 - people)] + jitter * rng.normal(size=300)
    session = make_session(people=[f"P{i}" for i in range(300)])
    table = pd.DataFrame({"lesion": mark, "volume": rng.normal(50, 5, 300)})
    assert session.release_feature_summary(table).status == status
