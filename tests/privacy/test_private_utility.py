"""What ε = 1 buys, measured as the privacy page says (`make soak`)."""

from __future__ import annotations

import numpy as np
import pytest

from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.model import BrainAgeDelta
from sacro_deltab.privacy import Basis, train_private

# J, N, and the least correlation with the true delta, mean over F = 20, 100, 500, 2000
TARGETS = [(5, 500, 0.76), (10, 500, 0.78), (25, 500, 0.70), (5, 2000, 0.86), (10, 2000, 0.86)]


def correlations(n_components: int, n: int) -> tuple[float, float]:
    """(private, not private), mean over feature numbers."""
    pairs = []
    for features in (20, 100, 500, 2000):
        size = min(n_components, features)
        public = smith_cohort(2000, features, seed=90)
        test = smith_cohort(3000, features, seed=80)
        basis = Basis.from_public(
            public.X, public.age, public.feature_names, n_components=size, made_on="simulated", age_range=(45, 75)
        )
        for seed in range(3):
            people = smith_cohort(n, features, seed=seed)
            private = train_private(
                people.X, people.age, feature_names=people.feature_names, basis=basis, epsilon=1.0, delta_dp=1 / n**2,
                spend=lambda request: None,
            )  # fmt: skip
            own = BrainAgeDelta(n_components=size).fit(people.X, people.age)
            pairs.append([
                np.corrcoef(model.delta(test.X, test.age, model="unbiased"), test.true_delta)[0, 1]
                for model in (private.weights, own)
            ])  # fmt: skip
    private, plain = np.mean(pairs, axis=0)
    return float(private), float(plain)


@pytest.mark.soak
@pytest.mark.parametrize(("n_components", "n", "least"), TARGETS)
def test_targets(n_components: int, n: int, least: float) -> None:
    assert correlations(n_components, n)[0] >= least


@pytest.mark.soak
@pytest.mark.parametrize(("n_components", "n"), [(5, 400), (10, 550), (25, 850), (25, 2000)])
def test_nine_tenths_of_the_non_private_model(n_components: int, n: int) -> None:
    private, plain = correlations(n_components, n)
    assert private >= 0.9 * plain
