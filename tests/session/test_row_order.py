"""Rows of a session: pandas objects are put together by index, rows without values are nobody, ages are no deltas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacro_deltab.base.errors import InputError, RefusedError
from sacro_deltab.cohort.order import RowOrder
from sacro_deltab.rules import load_base
from sacro_deltab.session.plausible import refuse_ages

NUMBERS = load_base().parameters
IDS = ["c", "a", "b"]


def by_name(values: list[float], index: list[Any]) -> pd.Series:
    return pd.Series(values, index=index)


def test_a_series_in_another_order_is_put_in_the_sessions_order() -> None:
    rows = RowOrder(by_name([0, 0, 0], [7, 5, 6]))
    assert rows.placed(by_name([5, 6, 7], [5, 6, 7])).tolist() == [7, 5, 6]
    frame = pd.DataFrame({"x": [5, 6, 7]}, index=[5, 6, 7])
    assert rows.placed(frame)["x"].tolist() == [7, 5, 6]
    assert [s.tolist() for s in rows.placed([frame["x"], frame["x"]])] == [[7, 5, 6]] * 2
    assert rows.placed({"x": frame["x"]})["x"].tolist() == [7, 5, 6]


def test_an_index_of_ids_is_the_people() -> None:
    rows = RowOrder(ids=IDS)
    assert rows.placed(by_name([1, 2, 3], ["a", "b", "c"])).tolist() == [3, 1, 2]
    numbered = RowOrder(pd.Series(IDS), ids=pd.Series(IDS))
    assert numbered.placed(by_name([1, 2, 3], ["a", "b", "c"])).tolist() == [3, 1, 2]


@pytest.mark.parametrize("value", [[1, 2, 3], np.arange(3), (1, 2, 3), ["x", "y", "z"]])
def test_what_has_no_index_goes_by_position(value: Any) -> None:
    assert RowOrder(pd.Series(IDS)).placed(value) is value


@pytest.mark.parametrize("index", [[0, 1, 3], [0, 0, 1], [2, 1, 1]])
def test_other_rows_are_refused(index: list[int]) -> None:
    with pytest.raises(InputError, match="index"):
        RowOrder(pd.Series(IDS)).placed(by_name([1, 2, 3], index))


def test_a_repeated_index_orders_rows_only_where_it_holds_the_ids() -> None:
    ids = ["P0", "P0", "P1"]
    twice = by_name([1, 2, 3], ids)
    assert RowOrder(ids=ids).placed(twice) is twice
    with pytest.raises(InputError, match="holds an entry twice"):
        RowOrder(by_name([1, 2, 3], [0, 0, 1]))


@pytest.mark.parametrize(
    "made", [lambda a: a, lambda a: a - 60, lambda a: -2 * a, lambda a: np.exp(a / 9), lambda a: a.round()]
)
def test_ages_are_no_deltas(made: Callable[[Any], Any]) -> None:
    ages = np.random.default_rng(1).uniform(45, 82, 300)
    with pytest.raises(RefusedError, match="ages"):
        refuse_ages(made(ages), ages, NUMBERS)


def test_deltas_that_fall_with_age_are_deltas() -> None:
    rng = np.random.default_rng(1)
    ages = rng.uniform(45, 82, 300)
    refuse_ages(-0.7 * (ages - 60) + rng.normal(0, 3, 300), ages, NUMBERS)
    refuse_ages(rng.normal(0, 3, 300), ages, NUMBERS)
