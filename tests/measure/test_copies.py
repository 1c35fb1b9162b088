"""Copies of a column: scaled, shifted, blurred, or with some people's values changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sacro_deltab.measure.columns import Known, copy_of, holds, near, rest_on, two_levels

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


def apart(new: Any, old: Any) -> dict[tuple[int, int], int]:
    """(new column, old column) → people for whom the one is no copy of the other, or who are in one of them only."""
    known = Known(list(old.T))
    out = {}
    for j, column in enumerate(new.T):
        for i in known.like(column):
            copy = copy_of(old[:, i], column)
            if copy is not None:
                here = np.isfinite(old[:, i]) | np.isfinite(column)
                out[j, i] = int((here & ~holds(copy, old[:, i], column)).sum())
    return out


def test_columns_of_a_table_a_few_people_apart() -> None:
    X = RNG.normal(size=(400, 60))
    Y = RNG.normal(size=(400, 60))
    Y[:, 0], Y[:, 1], Y[:, 2], Y[:, 3] = X[:, 0], X[:, 1] * 9 - 4, X[:, 2], X[:, 3]
    Y[7, 2] = np.nan
    Y[:19, 3] = 5.0
    Y[:20, 4] = X[20:40, 4]
    assert apart(Y, X) == {(0, 0): 0, (1, 1): 0, (2, 2): 1, (3, 3): 19}


def test_a_column_of_a_subgroup_is_found_beside_another_of_nearly_the_same() -> None:
    X = np.full((400, 2), np.nan)
    X[:60, 0] = DELTAS[:60]
    X[1:60, 1] = DELTAS[1:60]
    assert apart(X[:, 1:], X[:, :1]) == {(0, 0): 1}
    assert apart(DELTAS[:, None], X[:, :1]) == {(0, 0): 340}


def test_columns_of_few_values_are_compared_by_people() -> None:
    sex, site = RNG.integers(0, 2, 400).astype(float), RNG.integers(0, 4, 400).astype(float)
    changed = sex.copy()
    changed[:3] = 1 - changed[:3]
    assert apart(np.column_stack([sex + 1, 1 - sex, changed, site]), sex[:, None]) == {(0, 0): 0, (1, 0): 0, (2, 0): 3}


def test_a_sum_tells_of_the_people_who_are_not_like_most() -> None:
    assert rest_on(np.r_[np.zeros(300), np.arange(1.0, 13.0), np.nan]).sum() == 12
    assert rest_on(np.r_[DELTAS, np.nan]).sum() == 400
    assert rest_on(np.zeros(40)).sum() == 40


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
    assert apart(Y, X) == {(3, 3): 1, (4, 4): 1}
