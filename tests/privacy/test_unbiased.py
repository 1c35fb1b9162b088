"""The unbiased delta has no slope on age, whatever ages and tails the cohort has; an interval says how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sacro_deltab.privacy import Basis, PublicBounds, train_private

NAMES = [f"f{i}" for i in range(20)]


def people(seed: int, n: int, low: float, high: float, *, tails: int = 0, slope: float = 1.0) -> tuple[Any, Any]:
    """Features that fall with age; heavy tails, other ages and a weaker relation on demand."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(7)
    loads, axes = fixed.normal(size=20), fixed.normal(size=(4, 20))
    age = rng.uniform(low, high, n)
    noise = (lambda *size: rng.standard_t(tails, size)) if tails else (lambda *size: rng.normal(size=size))
    true = slope * (age - 50) / 12 + 0.5 * noise(n)
    return np.outer(true, loads) + 0.7 * rng.normal(size=(n, 4)) @ axes + noise(n, 20), age


@pytest.fixture(scope="module")
def basis() -> Basis:
    X, age = people(1, 800, 20, 60)
    return Basis.from_public(X, age, NAMES, n_components=6, made_on="simulated people", age_range=(5, 95))


def trained(basis: Basis, X: Any, age: Any, epsilon: float, method: str = "gradient") -> Any:
    return train_private(
        X,
        age,
        feature_names=NAMES,
        basis=basis,
        epsilon=epsilon,
        method=method,
        spend=lambda request: None,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "how",
    [
        {"low": 20, "high": 60},
        {"low": 25, "high": 90, "tails": 3, "slope": 0.6},
        {"low": 60, "high": 90},
        {"low": 20, "high": 60, "slope": 1.5, "tails": 4},
    ],
)
def test_no_slope_on_age_where_noise_plays_no_part(basis: Basis, how: dict[str, Any]) -> None:
    X, age = people(5, 3000, **how)
    weights = trained(basis, X, age, 30.0).weights
    assert abs(np.polyfit(age, weights.delta(X, age, model="unbiased"), 1)[0]) < 0.01


def test_the_interval_of_the_slope_holds(basis: Basis) -> None:
    X, age = people(6, 600, 25, 80)
    held, wide = 0, []
    for _ in range(40):
        model = trained(basis, X, age, 1.0)
        slope = float(np.polyfit(age, model.weights.delta(X, age, model="unbiased"), 1)[0])
        interval = model.intervals["age_slope"]
        held += interval["low"] <= slope <= interval["high"]
        wide.append(interval["high"])
    assert held >= 32  # 95 % of 40 is 38; fewer than 32 is less likely than 1 in 10,000
    assert 0.005 < np.median(wide) < 0.3
    assert interval["covers"].startswith("noise of this release, and what its clip leaves")


@pytest.mark.soak
@pytest.mark.parametrize("how", [{"low": 25, "high": 80}, {"low": 25, "high": 90, "tails": 3, "slope": 0.6}])
def test_the_interval_covers_95_percent(basis: Basis, how: dict[str, Any]) -> None:
    X, age = people(6, 600, **how)
    held = 0
    for _ in range(1000):
        model = trained(basis, X, age, 1.0)
        slope = float(np.polyfit(age, model.weights.delta(X, age, model="unbiased"), 1)[0])
        held += abs(slope) <= model.intervals["age_slope"]["high"]
    assert 0.92 <= held / 1000 <= 0.98


def test_more_noise_means_wider_intervals_and_a_release_of_moments_says_what_it_leaves_out(basis: Basis) -> None:
    X, age = people(6, 2000, 25, 80)
    strong, weak = (trained(basis, X, age, epsilon).intervals for epsilon in (0.1, 3.0))
    for name in ("age_slope", "y_mean_error", "predicted_age_error", "b1_error"):
        assert strong[name]["high"] > weak[name]["high"] > 0
    moments = trained(basis, X, age, 1.0, "moments").intervals["age_slope"]
    assert moments["covers"].endswith("not what it takes from unlike people")


def test_a_node_basis_has_its_interval_too() -> None:
    X, age = people(3, 2500, 25, 80)
    bounds = PublicBounds(age=(5, 95), centre=tuple(X.mean(axis=0)), scale=tuple(X.std(axis=0)))
    model = train_private(
        X, age, feature_names=NAMES, bounds=bounds, n_components=3, epsilon=3.0,
        spend=lambda request: None,  # type: ignore[arg-type]
    )  # fmt: skip
    slope = float(np.polyfit(age, model.weights.delta(X, age, model="unbiased"), 1)[0])
    assert abs(slope) <= model.intervals["age_slope"]["high"] < 0.3


def test_with_next_to_no_budget_the_prediction_is_the_public_one(basis: Basis) -> None:
    X, age = people(8, 800, 20, 60)
    models = [trained(basis, X, age, 0.01).weights for _ in range(8)]
    errors = [np.abs(weights.delta(X, age, model="simple")).mean() for weights in models]
    scores = ((X - basis.centre) / basis.scale) @ basis.components.T / basis.score_sd
    public = basis.age_mean + scores @ basis.age_b1
    assert np.mean(errors) < 1.03 * np.abs(public - age).mean()
