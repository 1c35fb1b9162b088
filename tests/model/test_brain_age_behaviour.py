"""What BrainAgeDelta does where upstream deltab goes wrong, and at the edges."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import threadpoolctl

from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.model import MODELS, BrainAgeDelta, ModelInputError


def people(n: int = 120, f: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    people = smith_cohort(n, f, seed=seed)
    return people.X, people.age


def test_fitted_object_holds_no_person() -> None:
    """Upstream keeps ages, features and scores on the model and pickles them."""
    x, age = people(137)
    model = BrainAgeDelta(3).fit(x, age, np.ones((137, 1)) + x[:, :1])
    for name, value in vars(model).items():
        assert 137 not in np.shape(value), name
    raw = pickle.dumps(model)
    assert age[5].tobytes() not in raw and x[5, 3].tobytes() not in raw
    assert len(raw) < 20_000


def test_repeated_fits_are_identical_to_the_last_bit() -> None:
    """Upstream's automatic solver is randomised without a seed at this size."""
    data = smith_cohort(500, 900, seed=1)
    one, two = (BrainAgeDelta(25).fit(data.X, data.age) for _ in range(2))
    for name in ("b1_", "components_", "explained_variance_", "b2sq_", "gammasq_"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


@pytest.mark.parametrize("shape", [(400, 120), (150, 600), (60, 61)])
def test_solvers_agree(shape: tuple[int, int]) -> None:
    data = smith_cohort(*shape, seed=2, n_latent=8)
    svd, eigh = (BrainAgeDelta(6, svd_solver=s).fit(data.X, data.age) for s in ("svd", "eigh"))
    for name in ("b1_", "components_", "explained_variance_", "b2sq_", "gammasq_"):
        np.testing.assert_allclose(getattr(svd, name), getattr(eigh, name), atol=1e-9, err_msg=name)


def test_tiny_components_come_from_the_full_decomposition() -> None:
    """A Gram matrix loses components below 1e-8 of the first; auto then takes the SVD."""
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(600, 4)) * [1, 1, 1e-5, 1e-6]
    x = latent @ rng.normal(size=(4, 700))
    age = 60 + 5 * latent[:, 0] + 3e5 * latent[:, 2] + rng.normal(size=600)
    auto, svd = (BrainAgeDelta(4, svd_solver=s).fit(x, age) for s in ("auto", "svd"))
    np.testing.assert_allclose(auto.components_, svd.components_, atol=1e-12)
    assert auto.condition_number_ > 1e5


def test_more_features_than_people() -> None:
    data = smith_cohort(50, 200, seed=4)
    model = BrainAgeDelta(5).fit(data.X, data.age)
    assert model.components_.shape == (5, 200)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(5), atol=1e-12)
    with pytest.raises(ModelInputError, match="More features than people"):
        BrainAgeDelta().fit(data.X, data.age)
    with pytest.raises(ModelInputError, match="cannot come from"):
        BrainAgeDelta(50).fit(data.X, data.age)


def test_upstream_columns_of_constants_and_sums() -> None:
    """Constant columns and exact sums are normal in FreeSurfer tables; upstream gives NaN or |b1| of 1e10."""
    x, age = people()
    x = np.column_stack([x, np.zeros(120), np.full(120, 0.1), x[:, 0] + x[:, 1], x[:, 2] * 2 + 1])
    for model in (BrainAgeDelta().fit(x, age), BrainAgeDelta(5).fit(x, age)):
        assert np.abs(model.b1_).max() < 100
        assert any("2 constant" in r for r in model.repairs_)
        new = x[:5].copy()
        new[:, 10] = 99.0  # no person of the training set could say anything about this column
        np.testing.assert_allclose(model.predict(new), model.predict(x[:5]), rtol=1e-12)
    full = BrainAgeDelta().fit(x, age)
    assert full.rank_ == 10 and full.conditioning_ == "refuse" and full.condition_number_ > 1e8
    assert full.used_condition_number_ < 1e4 and any("Dependent" in r for r in full.repairs_)
    assert BrainAgeDelta(5).fit(x, age).conditioning_ == "ok"


def test_condition_words() -> None:
    x, age = people()
    for size, word in ((1e-3, "ok"), (3e-7, "review"), (1e-9, "refuse")):
        near = np.column_stack([x, x[:, 0] + size * np.sin(np.arange(120))])
        assert BrainAgeDelta().fit(near, age).conditioning_ == word


def test_choices_of_components() -> None:
    x, age = people()
    ev = BrainAgeDelta(10).fit(x, age).explained_variance_
    share = np.cumsum(ev) / ev.sum()
    for want in (0.5, 0.8, 0.95, 1.0):
        j = BrainAgeDelta(want).fit(x, age).n_components_
        assert share[j - 1] >= want - 1e-9 and (j == 1 or share[j - 2] < want)
    assert BrainAgeDelta("kaiser_guttman").fit(x, age).n_components_ == (ev > 1).sum()


def test_kaiser_guttman_counts_eigenvalues_above_one_after_the_confounds_went() -> None:
    """Upstream's rule, on data with and without confounds; a number beside it wins and is said."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, f = int(rng.integers(60, 200)), int(rng.integers(5, 20))
        age = rng.uniform(48, 82, n)
        x = rng.normal(size=(n, f)) + np.outer(age, rng.normal(size=f)) * 0.04
        conf = np.column_stack([np.ones(n), age + 4 * rng.normal(size=n)]) if seed % 2 else None
        z = (x - x.mean(0)) / x.std(0)
        z = z if conf is None else z - conf @ (np.linalg.pinv(conf) @ z)
        ev = np.linalg.svd(z - z.mean(0), compute_uv=False) ** 2 / (n - 1)
        assert BrainAgeDelta(kaiser_guttman=True).fit(x, age, conf).n_components_ == max(1, (ev > 1).sum())
    both = BrainAgeDelta(2, kaiser_guttman=True).fit(x, age)
    assert both.n_components_ == 2 and any("criterion" in sentence for sentence in both.repairs_)


@pytest.mark.parametrize(
    "params",
    [
        {"n_components": 0}, {"n_components": 2.5}, {"n_components": True}, {"n_components": 11},
        {"n_components": 0.0}, {"n_components": -0.5}, {"n_components": "mle"}, {"kaiser_guttman": "two"},
        {"n_components": 2, "svd_solver": "randomized"},
    ],
)  # fmt: skip
def test_choices_that_make_no_sense(params: dict) -> None:
    x, age = people(400, 10)
    with pytest.raises(ModelInputError):
        BrainAgeDelta(**params).fit(x, age)


def test_bad_training_data() -> None:
    x, age = people()
    for a, b in ((x, np.full(120, 61.0)), (x, age[:50]), (np.where(x > 3, np.inf, x), age), (x[:1], age[:1])):
        with pytest.raises(ValueError):
            BrainAgeDelta(2).fit(a, b)
    with pytest.raises(ModelInputError, match="different numbers"):
        BrainAgeDelta(2).fit(x, age, np.ones((5, 1)))


def test_ages_of_two_values_have_no_quadratic_term() -> None:
    x, age = people()
    model = BrainAgeDelta(2).fit(x, np.where(age > 60, 65.0, 55.0))
    assert model.b2sq_[1] == 0 and not model.gammasq_[1].any() and any("two values" in r for r in model.repairs_)
    assert np.isfinite(model.delta(x, age)).all()


def test_confounds_are_removed() -> None:
    x, age = people(300)
    rng = np.random.default_rng(6)
    c = np.column_stack([rng.normal(1, 1, 300), rng.normal(0, 2, 300)])
    shifted = x + c @ rng.normal(size=(2, 10)) * 3
    model = BrainAgeDelta(4).fit(shifted, age, c)
    assert model.conf_beta_.shape == (2, 10)
    z = (shifted - model.x_mean_) / model.x_std_ - c @ model.conf_beta_
    np.testing.assert_allclose(c.T @ z, 0, atol=1e-8)
    doubled = BrainAgeDelta(4).fit(shifted, age, np.column_stack([c, c[:, 0] * 2]))
    np.testing.assert_allclose(
        doubled.delta(shifted, age, np.column_stack([c, c[:, 0] * 2])), model.delta(shifted, age, c), atol=1e-8
    )
    assert any("Dependent confounds" in r for r in doubled.repairs_)
    with pytest.raises(ModelInputError, match="fitted with confounds"):
        model.predict(shifted)


def test_units_do_not_matter() -> None:
    x, age = people()
    units = np.logspace(-3, 5, 10)
    one, two = BrainAgeDelta(4).fit(x, age), BrainAgeDelta(4).fit(x * units + 7 * units, age)
    for kind in MODELS:
        np.testing.assert_allclose(
            one.delta(x, age, model=kind), two.delta(x * units + 7 * units, age, model=kind), atol=1e-7
        )


def test_order_of_people_does_not_matter() -> None:
    x, age = people()
    order = np.random.default_rng(7).permutation(120)
    one, two = BrainAgeDelta(3).fit(x, age), BrainAgeDelta(3).fit(x[order], age[order])
    np.testing.assert_allclose(one.components_, two.components_, atol=1e-10)
    np.testing.assert_allclose(one.b1_, two.b1_, atol=1e-10)


def test_feature_order_travels_with_the_weights() -> None:
    """Upstream drops names; permuted columns then gave errors of millions of years, silently."""
    x, age = people()
    frame = pd.DataFrame(x, columns=[f"idp {i}" for i in range(10)])
    weights = BrainAgeDelta(3).fit(frame, age).weights_
    assert weights.feature_names == tuple(frame.columns)
    with pytest.raises(ModelInputError, match="another order"):
        weights.predict_age(frame[frame.columns[::-1]])


def test_identities_a_checker_uses_to_see_missing_noise() -> None:
    x, age = people()
    model = BrainAgeDelta(4).fit(x, age)
    assert model.b2_[0] == pytest.approx(-(1 - float(model.b1_ @ model.gamma_[0])), abs=1e-12)


def test_fit_does_not_depend_on_the_number_of_threads() -> None:
    data = smith_cohort(300, 400, seed=8)
    results = []
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads, user_api="blas"):
            results.append(BrainAgeDelta(10).fit(data.X, data.age).b1_.tobytes())
    assert results[0] == results[1]
