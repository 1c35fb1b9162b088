"""Copies of a column: scaled, shifted, blurred, or with some people's values changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sacro_deltab.measure.kin import copy_of, near, near_copies, two_levels

RNG = np.random.default_rng(1)
DELTAS = RNG.normal(0.5, 4.0, 400)
OTHER = RNG.normal(0.5, 4.0, 400)


def some(count: int, values: Any) -> Any:
    """DELTAS for the first `count` people, `values` for the rest."""
    return np.where(np.arange(400) < count, DELTAS, values)


@pytest.mark.parametrize(
    ("values", "slope", "offset"),
    [(DELTAS * 5, 5.0, 0.0), (DELTAS + 3, 1.0, 3.0), (-DELTAS, -1.0, 0.0), (DELTAS / 7 - 2, 1 / 7, -2.0)],
)
def test_affine_copies_are_found_exactly(values: Any, slope: float, offset: float) -> None:
    found = copy_of(DELTAS, values)
    assert found is not None and found.share == 1.0 and not found.identical
    assert (found.slope, found.offset) == pytest.approx((slope, offset))


@pytest.mark.parametrize("values", [DELTAS, np.round(DELTAS, 1), DELTAS + 1e-3 * OTHER, some(399, np.nan)])
def test_rounded_blurred_and_shortened_copies_are_the_same_values(values: Any) -> None:
    found = copy_of(DELTAS, values)
    assert found is not None and found.identical and near(found, DELTAS, values)


@pytest.mark.parametrize("count", [388, 300, 150, 60, 20])
@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (3.0, -1.0)])
def test_copies_with_people_changed_are_found(count: int, slope: float, offset: float) -> None:
    values = some(count, OTHER) * slope + offset
    found = copy_of(DELTAS, values)
    assert found is not None and int(found.agree.sum()) == count
    assert not near(found, DELTAS, values)


@pytest.mark.parametrize(
    "values",
    [OTHER, np.round(OTHER), DELTAS + 0.1 * OTHER, np.full(400, 1.0), np.full(400, np.nan), DELTAS**2, np.zeros(400)],
)
def test_other_values_are_no_copies(values: Any) -> None:
    assert copy_of(DELTAS, values) is None
    assert copy_of(np.round(DELTAS), np.round(OTHER)) is None


def test_columns_of_a_table_a_few_people_apart() -> None:
    X = RNG.normal(size=(400, 60))
    Y = RNG.normal(size=(400, 60))
    Y[:, 0], Y[:, 1], Y[:, 2], Y[:, 3] = X[:, 0], X[:, 1] * 9 - 4, X[:, 2], X[:, 3]
    Y[7, 2] = np.nan
    Y[:19, 3] = 5.0
    Y[:20, 4] = X[20:40, 4]
    found = {(m.new, m.old): (m.gap, m.shifted) for m in near_copies(Y, X, 19)}
    assert found == {(0, 0): (0, False), (1, 1): (0, True), (2, 2): (1, False), (3, 3): (19, False)}


def test_a_column_of_a_subgroup_is_found_beside_another_of_nearly_the_same() -> None:
    X = np.full((400, 2), np.nan)
    X[:60, 0] = DELTAS[:60]
    X[1:60, 1] = DELTAS[1:60]
    assert [(m.gap, m.shifted) for m in near_copies(X[:, 1:], X[:, :1], 19)] == [(1, False)]
    assert not list(near_copies(DELTAS[:, None], X[:, :1], 19))


def test_two_clusters_are_an_indicator() -> None:
    assert two_levels(np.r_[np.zeros(300), np.ones(20)])
    assert two_levels(np.r_[np.zeros(300), np.full(20, 50.0)] + RNG.normal(0, 0.5, 320))
    assert not two_levels(DELTAS)
    assert not two_levels(np.r_[RNG.normal(-4, 3, 200), RNG.normal(4, 3, 200)])
    assert not two_levels(np.zeros(40))


@pytest.mark.parametrize("blur", [1e-4, 5e-3])
def test_blurred_columns_a_person_apart_are_found_and_correlated_ones_are_not(blur: float) -> None:
    X = RNG.normal(size=(400, 40))
    Y = 0.9 * X + 0.3 * RNG.normal(size=(400, 40))
    Y[:, 3] = X[:, 3] * 7 - 2 + 7 * blur * RNG.normal(size=400)
    Y[11, 3] = np.nan
    Y[:, 4] = X[:, 4] + blur * RNG.normal(size=400)
    Y[5, 4] = 9.0
    assert {(m.new, m.old): m.gap for m in near_copies(Y, X, 19)} == {(3, 3): 1, (4, 4): 1}
