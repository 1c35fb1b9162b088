"""Simulation 1 of the paper, cross-validated: statistics of the reference cases, by direct fits and by moments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sacro_deltab.cohort.simulate import smith_cohort, smith_sim1
from sacro_deltab.model import MODELS, BrainAgeDelta, Moments, one_blas_thread

CASES = Path(__file__).parents[2] / "fixtures" / "cases" / "dp"


def load(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def cross_validated(case: dict[str, Any], seed: int, j: int) -> dict[str, dict[str, float]]:
    """Ten folds from one pass: each training set is everybody minus the fold."""
    i = case["inputs"]
    sim = smith_sim1(seed, n=i["N"], n_latent=i["nb"], n_features=i["nm"], noise_x=i["noise"])
    p = sim.people
    blank = Moments(p.feature_names)
    folds = [blank.empty().update(p.X[sim.fold == k], p.age[sim.fold == k]) for k in range(i["folds"])]
    everybody = blank.empty()
    for fold in folds:
        everybody.merge(fold)
    delta = {model: np.empty(i["N"]) for model in MODELS}
    for k, fold in enumerate(folds):
        weights = (everybody - fold).fit(j)
        rows = sim.fold == k
        for model in MODELS:
            delta[model][rows] = weights.delta(p.X[rows], p.age[rows], model=model)
    return {
        model: {
            "corr_true": float(np.corrcoef(d, p.true_delta)[0, 1]),
            "corr_age": float(np.corrcoef(d, p.age)[0, 1]),
            "mean_abs_delta": float(np.abs(d).mean()),
        }
        for model, d in delta.items()
    }


@pytest.mark.parametrize("name", ["smith_sim1_small", pytest.param("smith_sim1_paper_ratio", marks=pytest.mark.soak)])
def test_first_seed_agrees_to_1e_6(name: str) -> None:
    case = load(name)
    for j in case["inputs"]["J_list"]:
        got = cross_validated(case, 0, j)
        for model, statistics in case["expected"][str(j)].items():
            for key, want in statistics.items():
                tol = 1e-6 * max(1.0, abs(want["seed0"]))
                assert got[model][key] == pytest.approx(want["seed0"], abs=tol), (j, model, key)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["smith_sim1_small", "smith_sim1_paper_ratio"])
def test_mean_of_eight_seeds(name: str) -> None:
    case = load(name)
    for j in case["inputs"]["J_list"]:
        runs = [cross_validated(case, seed, j) for seed in case["inputs"]["seeds"]]
        for model, statistics in case["expected"][str(j)].items():
            for key, want in statistics.items():
                mean = float(np.mean([r[model][key] for r in runs]))
                assert abs(mean - want["mean"]) <= 4 * want["sd"] + 1e-9, (j, model, key)
                assert mean == pytest.approx(want["mean"], rel=1e-4, abs=1e-5)


def test_direct_fit_gives_the_same_statistics() -> None:
    case = load("smith_sim1_small")
    sim = smith_sim1(0, n=2000, n_latent=20, n_features=100)
    p, delta = sim.people, np.empty(2000)
    for k in range(10):
        train = sim.fold != k
        model = BrainAgeDelta(n_components=10).fit(p.X[train], p.age[train])
        delta[~train] = model.delta(p.X[~train], p.age[~train], model="unbiased_quadratic")
    want = case["expected"]["10"]["unbiased_quadratic"]["corr_true"]["seed0"]
    assert np.corrcoef(delta, p.true_delta)[0, 1] == pytest.approx(want, abs=1e-6)


def test_populations_and_seeds() -> None:
    a, b, again = smith_cohort(50, 8, seed=1), smith_cohort(50, 8, seed=2), smith_cohort(50, 8, seed=1)
    np.testing.assert_array_equal(a.X, again.X)
    assert not np.array_equal(a.X, b.X)
    other = smith_cohort(50, 8, seed=1, loading_seed=9)
    np.testing.assert_array_equal(a.age, other.age)
    assert not np.array_equal(a.X, other.X)
    assert a.age.min() >= 45 and a.age.max() <= 75
    assert a.take(slice(0, 7)).X.shape == (7, 8)


def test_recovers_delta() -> None:
    train, test = smith_cohort(2000, 100, seed=3), smith_cohort(2000, 100, seed=4)
    with one_blas_thread():
        model = BrainAgeDelta(n_components=5).fit(train.X, train.age)
    found = np.corrcoef(model.delta(test.X, test.age), test.true_delta)[0, 1]
    assert 0.85 < found < 0.97
