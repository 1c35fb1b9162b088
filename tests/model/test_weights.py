"""Weights: formulas, folding, rounding and the bound on changed ages."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.model import MODELS, BrainAgeDelta, ModelInputError, Weights, max_age_change, round_significant


def fitted(seed: int = 0, n: int = 80, f: int = 6, j: int | None = 3, k: int = 0) -> tuple[BrainAgeDelta, tuple]:
    rng = np.random.default_rng(seed)
    age = rng.uniform(45, 75, n)
    x = rng.normal(size=(n, f)) * rng.uniform(0.1, 50, f) + np.outer(age, rng.normal(size=f)) / 10 + 5
    c = rng.normal(2, 1, size=(n, k)) if k else None
    return BrainAgeDelta(j).fit(x, age, c), (x, age, c)


def literal_delta(m: BrainAgeDelta, x: np.ndarray, age: np.ndarray, c: np.ndarray | None, model: str) -> np.ndarray:
    """The formulas of the paper, written out."""
    z = (x - m.x_mean_) / m.x_std_
    if c is not None:
        z = z - c @ m.conf_beta_
    scores = z if m.components_ is None else z @ m.components_.T
    if m.score_mean_ is not None:
        scores = scores - m.score_mean_
    u = age - m.y_mean_
    y2 = np.column_stack([u, u**2 - m.ysq_mean_ - m.ysq_slope_ * u])
    if model == "simple":
        return scores @ m.b1_ - u
    if model == "unbiased":
        return scores @ m.b1_ - u - y2[:, :1] @ m.b2_
    if model == "unbiased_quadratic":
        return scores @ m.b1_ - u - y2 @ m.b2sq_
    if model == "alternate":
        return ((scores - y2[:, :1] @ m.gamma_) @ np.linalg.pinv(m.gamma_)).ravel()
    return ((scores - y2 @ m.gammasq_) @ np.linalg.pinv(m.gammasq_[:1])).ravel()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), j=st.sampled_from([None, 1, 4]), k=st.integers(0, 2))
def test_one_formula_serves_all_models(seed: int, j: int | None, k: int) -> None:
    model, (x, age, c) = fitted(seed, j=j, k=k)
    for kind in MODELS:
        want = literal_delta(model, x, age, c, kind)
        got = model.delta(x, age, c, model=kind)
        np.testing.assert_allclose(got, want, atol=1e-9 * max(1, np.abs(want).max()))
        np.testing.assert_allclose(model.predict_age(x, age, c, model=kind), age + got, rtol=1e-12)
        raw = model.weights_.folded(kind, raw_units=True)
        u = age - raw.y_mean
        value = raw.intercept + x @ raw.coef + raw.poly[0] * u + raw.poly[1] * u**2
        value += 0 if c is None else c @ raw.conf_coef
        np.testing.assert_allclose(
            value, age + got if kind == "simple" else got, atol=1e-8 * max(1, np.abs(want).max())
        )
    assert model.predict(x, c).tolist() == model.predict_age(x, confounds=c).tolist()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.lists(st.integers(0, 79), min_size=1, max_size=8), fortran=st.booleans())
def test_a_person_alone_and_in_any_batch_is_the_same_to_the_last_bit(seed: int, rows: list[int], fortran: bool) -> None:
    model, (x, age, c) = fitted(seed, j=2, k=1)
    for kind in MODELS:
        everybody = model.delta(x, age, c, model=kind)
        xs = np.asfortranarray(x[rows]) if fortran else x[rows]
        assert model.delta(xs, age[rows], c[rows], model=kind).tolist() == everybody[rows].tolist()


def test_delta_is_unbiased_on_the_training_set() -> None:
    model, (x, age, _) = fitted(3)
    assert abs(np.corrcoef(model.delta(x, age, model="unbiased"), age)[0, 1]) < 1e-10
    quadratic = model.delta(x, age)
    assert abs(np.corrcoef(quadratic, age)[0, 1]) < 1e-10
    assert abs(np.corrcoef(quadratic, (age - age.mean()) ** 2)[0, 1]) < 1e-10
    assert abs(model.delta(x, age, model="simple").mean()) < 1e-10


def test_frozen_and_read_only() -> None:
    weights = fitted()[0].weights_
    with pytest.raises(dataclasses.FrozenInstanceError):
        weights.y_mean = 3.0  # type: ignore[misc]
    with pytest.raises(ValueError):
        weights.b1[0] = 3.0
    mine = np.ones(2)
    w = Weights(("a", "b"), np.zeros(2), np.ones(2), mine, 60.0)
    mine[0] = 9
    assert w.b1.tolist() == [1, 1] and w.centre is w.x_mean and w.scale is w.x_std


@pytest.mark.parametrize(
    "change",
    [
        {"b1": [1.0]}, {"x_std": [1.0, 0.0]}, {"x_std": [1.0, -1.0]}, {"x_mean": [np.nan, 0]}, {"y_mean": np.inf},
        {"feature_names": ("a", "a")}, {"components": [[1.0, 0.0, 0.0]]}, {"gammasq": [[1.0, 2.0]]},
        {"score_mean": [1.0]}, {"conf_beta": [[1.0, 1.0, 1.0]]},
    ],
)  # fmt: skip
def test_refuses_weights_that_contradict_themselves(change: dict) -> None:
    good = {"feature_names": ("a", "b"), "x_mean": [0.0, 0], "x_std": [1.0, 1], "b1": [1.0, 2], "y_mean": 60.0}
    Weights(**good)
    with pytest.raises(ModelInputError):
        Weights(**{**good, **change})


def test_models_need_their_weights() -> None:
    w = Weights(("a", "b"), np.zeros(2), np.ones(2), [1.0, 2], 60.0, b2=[-0.3])
    assert w.delta([[1, 1]], [60.0], model="unbiased").tolist() == [3.0]
    for kind, lacks in (("unbiased_quadratic", "b2sq"), ("alternate", "gamma"), ("alternate_quadratic", "gammasq")):
        with pytest.raises(ModelInputError, match=lacks):
            w.delta([[1, 1]], [60.0], model=kind)
    with pytest.raises(ModelInputError, match="Unknown model"):
        w.delta([[1, 1]], [60.0], model="best")
    with pytest.raises(ModelInputError, match="true ages"):
        w.predict_age([[1, 1]], model="unbiased")


def test_refuses_inputs_that_do_not_fit() -> None:
    plain, (x, age, _) = fitted()
    confounded, (_, _, c) = fitted(k=1)
    for bad in (
        lambda: plain.weights_.delta(x[:, :5], age), lambda: plain.weights_.delta(x, age[:7]),
        lambda: plain.weights_.delta(x, age, np.ones((80, 1))), lambda: confounded.weights_.delta(x, age),
        lambda: confounded.weights_.delta(x, age, c[:7]), lambda: plain.weights_.delta(np.where(x > 5, np.nan, x), age),
        lambda: plain.weights_.delta(x, np.where(age > 60, np.nan, age)),
        lambda: plain.weights_.delta([["a"] * 6], [1]),
    ):  # fmt: skip
        with pytest.raises(ModelInputError) as caught:
            bad()
        assert "80" not in str(caught.value) and "7" not in str(caught.value)
    frame = pd.DataFrame(x, columns=[f"other_{i}" for i in range(6)])
    with pytest.raises(ModelInputError, match="'feature_1'"):
        plain.weights_.delta(frame, age)


def test_public_constants_for_confounds() -> None:
    """(c - centre) / scale inside, raw confounds outside."""
    w = Weights(
        ("a",), [0.0], [1.0], [2.0], 60.0, conf_names=("c",), conf_beta=[[0.5]], conf_centre=[10.0], conf_scale=[4.0],
        score_mean=[0.25],
    )  # fmt: skip
    got = w.predict_age([[3.0]], confounds=[[14.0]])
    assert got.tolist() == [60 + 2 * (3 - 0.5 * 1.0 - 0.25)]


@pytest.mark.parametrize(
    ("value", "want"),
    [(0.0, 0.0), (-0.0, 0.0), (1234.0, 1230.0), (0.0012345, 0.00123), (1.245, 1.24), (-2.675, -2.68), (9.996, 10.0)],
)
def test_rounding_is_decimal_half_even(value: float, want: float) -> None:
    got = float(round_significant(value, 3))
    assert got == want and str(got) == str(want)


@settings(max_examples=200, deadline=None)
@given(value=st.floats(-1e300, 1e300), figures=st.integers(1, 15))
def test_rounded_numbers_have_that_many_figures(value: float, figures: int) -> None:
    got = float(round_significant(value, figures))
    assert len(Decimal(repr(got)).normalize().as_tuple().digits) <= figures
    assert got == 0 or abs(got - value) <= abs(value) * 10.0 ** (1 - figures)
    assert float(round_significant(got, figures)) == got


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(MODELS), k=st.integers(0, 1), j=st.sampled_from([None, 3]))
def test_bound_on_changed_ages_holds_and_is_reached(seed: int, kind: str, k: int, j: int | None) -> None:
    model, _ = fitted(seed, k=k, j=j)
    exact = model.weights_
    rounded = exact.round(3)
    centre, scale, box = exact.x_mean.round(1), exact.x_std * 1.1, np.array([[-1.0, 4.0]] * k)
    bound = max_age_change(
        exact, rounded, centre=centre, scale=scale, feature_z=4.0, age=(40, 90), confound_bounds=box, model=kind
    )
    rng = np.random.default_rng(seed)
    one, two = exact.folded(kind, raw_units=True), rounded.folded(kind, raw_units=True)
    corner = np.sign(one.coef - two.coef) * 4.0
    z = np.vstack([rng.uniform(-4, 4, size=(300, 6)), corner, -corner])
    x = centre + scale * z
    c = None if k == 0 else np.full((302, 1), 0.0)
    worst = 0.0
    edges = [-1.0, 4.0] if k else [0.0]
    for age in np.linspace(40, 90, 51):
        for edge in edges:
            cc = None if c is None else c + edge
            a, b = (w.delta(x, np.full(302, age), cc, model=kind) for w in (exact, rounded))
            worst = max(worst, float(np.abs(a - b).max()))
    if kind == "simple":  # predicted age, without the + age of delta: the same difference plus the change of y_mean
        x_age = [w.predict_age(x, confounds=None if c is None else c + edges[0]) for w in (exact, rounded)]
        worst = max(float(np.abs(x_age[0] - x_age[1]).max()), 0.0)
    assert worst <= bound.years * (1 + 1e-9) + 1e-9
    assert worst >= 0.5 * bound.years


def test_bound_is_zero_for_equal_weights() -> None:
    w = fitted(1)[0].weights_
    assert max_age_change(w, w, centre=w.x_mean, scale=w.x_std, feature_z=4, age=(40, 90)).years == 0.0


def test_feature_means_are_rounded_to_the_scale() -> None:
    """3 figures of a mean of 1234.5 would move features by half a unit whatever their spread is."""
    w = Weights(("a", "b"), [1234.567, 2.0], [0.5, 1.0], [1.0, 1.0], 60.0).round(3)
    assert abs(w.x_mean[0] - 1234.567) <= 0.005 * 0.5 + 1e-12
