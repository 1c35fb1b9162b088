"""Both paths lean on the public people's relation of age and features as far as the cohort does not contradict it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis, gradient
from sacro_deltab.privacy.plan import paths as plan_paths

REQUEST = {"epsilon": 1.0, "delta_dp": 1e-6, "adjacency": "zero_out_N_public", "n_components": 10}


def correlation(public_ages: Any, n: int, method: str = "gradient") -> float:
    """Mean correlation of the unbiased delta with the true one, simulated noise."""
    public, test = smith_cohort(1500, 40, seed=90), smith_cohort(1500, 40, seed=80)
    basis = Basis.from_public(
        public.X, public_ages(public.age), public.feature_names, n_components=10, made_on="simulated people",
        age_range=(45, 75),
    )  # fmt: skip
    found = []
    for k in range(8):
        people = smith_cohort(n, 40, seed=k)
        job = plan_paths.priced(people.X, people.age, basis.feature_names, basis, None, method, REQUEST)[0]
        weights = plan_paths.trained(job, method, np.random.default_rng(k))
        found.append(np.corrcoef(weights.delta(test.X, test.age, model="unbiased"), test.true_delta)[0, 1])
    return float(np.mean(found))


@pytest.mark.parametrize(("n", "gain"), [(200, 0.05), (500, 0.005)])
def test_people_like_the_public_ones_gain(n: int, gain: float, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = correlation(lambda age: age, n)
    monkeypatch.setattr(gradient, "_kept", lambda gap, tau, sigma, width: np.ones(gap.size))
    assert drawn > correlation(lambda age: age, n) + gain


def test_people_of_another_relation_lose_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The public people age backwards: the worst that a basis can say."""
    drawn = correlation(lambda age: 120 - age, 500)
    monkeypatch.setattr(gradient, "_kept", lambda gap, tau, sigma, width: np.ones(gap.size))
    assert drawn > correlation(lambda age: 120 - age, 500) - 0.04


@pytest.mark.parametrize(("turned", "gain"), [(False, 0.2), (True, 0.1)])
def test_one_release_leans_on_them_too(turned: bool, gain: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even people whose age runs backwards help: what age leaves of their scores is the cohort's."""

    def ages(age: Any) -> Any:
        return 120 - age if turned else age

    drawn = correlation(ages, 200, "moments")
    monkeypatch.setattr(plan_paths, "public_axes", lambda job, scaling, size: job.axes(
        job.basis.components[:size], job.basis.score_sd[:size]))  # fmt: skip
    assert drawn > correlation(ages, 200, "moments") + gain
