"""Noise scales against the reference cases, dp-accounting and their own mathematics."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import PrivacyError
from sacro_deltab.privacy import gaussian_epsilon, gaussian_sigma, laplace_scale
from sacro_deltab.privacy.mechanisms import delta_of_mu, epsilon_of_mu, integer_sigma, mu_of

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases" / "dp"


def cases(pattern: str) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(CASES.glob(pattern))]


@pytest.mark.parametrize("case", cases("sigma_*.json"), ids=lambda c: c["id"])
def test_sigma_cases(case: dict) -> None:
    given_, expected = case["inputs"], case["expected"]
    numbers = given_["sensitivity_l2"], given_["epsilon"], given_["delta"]
    analytic, classical = gaussian_sigma(*numbers), gaussian_sigma(*numbers, method="classical")
    assert analytic == pytest.approx(expected["sigma_analytic"], rel=1e-12)
    assert classical == pytest.approx(expected["sigma_classical"], rel=1e-12)
    assert classical.delta_exact == pytest.approx(expected["delta_exact_of_classical"], rel=1e-9)
    assert classical.valid is expected["classical_actually_private"]
    assert classical.theorem_applies is expected["classical_theorem_applies"]
    assert analytic.valid


@pytest.mark.parametrize("case", cases("eps_of_sigma_*.json"), ids=lambda c: c["id"])
def test_epsilon_cases(case: dict) -> None:
    given_, expected = case["inputs"], case["expected"]
    epsilon = gaussian_epsilon(given_["sigma"], given_["sensitivity_l2"], given_["delta"])
    assert epsilon == pytest.approx(expected["epsilon_exact"], rel=1e-9)
    mu = given_["sensitivity_l2"] / given_["sigma"]
    assert mu == pytest.approx(expected["mu_gdp"], rel=1e-12)
    assert mu**2 / 2 == pytest.approx(expected["rho_zcdp"], rel=1e-12)
    assert delta_of_mu(mu, 1.0) == pytest.approx(expected["delta_at_eps_1"], rel=1e-9)


@pytest.mark.parametrize("case", cases("laplace_*.json"), ids=lambda c: c["id"])
def test_laplace_cases(case: dict) -> None:
    given_, expected = case["inputs"], case["expected"]
    scale = laplace_scale(given_["lower"], given_["upper"], given_["N"], given_["epsilon"], given_["adjacency"])
    assert scale == pytest.approx(expected["scale"], rel=1e-12)
    assert scale.sensitivity == pytest.approx(expected["sensitivity"], rel=1e-12)
    assert scale.sd == pytest.approx(expected["sd"], rel=1e-12)


def test_zeroing_a_person_moves_a_clipped_mean_by_half_of_replacing_one() -> None:
    replaced = laplace_scale(-20, 20, 500, 1.0, "replace_one")
    assert (replaced.sensitivity, laplace_scale(-20, 20, 500, 1.0, "zero_out_N_public").sensitivity) == (0.08, 0.04)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 30), st.floats(1e-10, 0.2))
def test_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    ours = gaussian_sigma(1.0, epsilon, delta)
    assert ours == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-15), rel=1e-12)
    assert gaussian_epsilon(ours, 1.0, delta) == pytest.approx(epsilon, rel=1e-9)


def test_agrees_with_high_precision() -> None:
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 400
    for mu, epsilon in (
        (1e-4, 1e-5), (0.2367, 1.0), (2.0, 8.0), (9.0, 60.0), (20.0, 1.0), (40.0, 3.0), (0.1414, 1e-8), (0.05, 0.3),
        (2.7e-10, 1e-8), (1e-7, 3e-6),
    ):  # fmt: skip
        a, b = mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu, mpmath.mpf(mu) / 2 + mpmath.mpf(epsilon) / mu
        exact = mpmath.ncdf(a) - mpmath.exp(epsilon) * mpmath.ncdf(-b)
        assert delta_of_mu(mu, epsilon) == pytest.approx(float(exact), rel=1e-11)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 20), st.floats(1e-9, 0.1), st.floats(1.01, 3))
def test_more_privacy_means_more_noise(epsilon: float, delta: float, factor: float) -> None:
    assert gaussian_sigma(1, epsilon, delta) > gaussian_sigma(1, epsilon * factor, delta)
    assert gaussian_sigma(1, epsilon, delta / factor) > gaussian_sigma(1, epsilon, delta)
    assert gaussian_sigma(factor, epsilon, delta) == pytest.approx(factor * gaussian_sigma(1, epsilon, delta))
    assert epsilon_of_mu(mu_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian_sigma(1, 0, 1e-6),
        lambda: gaussian_sigma(1, -1, 1e-6),
        lambda: gaussian_sigma(0, 1, 1e-6),
        lambda: gaussian_sigma(1, 1, 0),
        lambda: gaussian_sigma(1, 1, 1),
        lambda: gaussian_sigma(1, math.nan, 1e-6),
        lambda: gaussian_sigma(1, math.inf, 1e-6),
        lambda: gaussian_sigma(1, 1, 1e-6, method="guess"),  # type: ignore[arg-type]
        lambda: gaussian_epsilon(0, 1, 1e-6),
        lambda: laplace_scale(20, -20, 500, 1, "replace_one"),
        lambda: laplace_scale(-20, 20, 0, 1, "replace_one"),
        lambda: laplace_scale(-20, 20, None, 1, "replace_one"),
        lambda: laplace_scale(-20, 20, 500, 1, "nearby"),
        lambda: laplace_scale(-20, math.inf, 500, 1, "replace_one"),
        lambda: gaussian_sigma(1, 1, None),  # type: ignore[arg-type]
        lambda: gaussian_sigma("1", 1, 1e-6),  # type: ignore[arg-type]
        lambda: gaussian_sigma(True, 1, 1e-6),
        lambda: gaussian_sigma(1e308, 1e-8, 1e-300),
        lambda: gaussian_epsilon(1e-300, 1e300, 1e-6),
        lambda: laplace_scale("a", 20, 500, 1, "replace_one"),  # type: ignore[arg-type]
        lambda: laplace_scale(-20, 20, 1.5, 1, "replace_one"),  # type: ignore[arg-type]
        lambda: laplace_scale(-20, 20, math.nan, 1, "replace_one"),  # type: ignore[arg-type]
        lambda: laplace_scale(-20, 20, 500, 1, ["replace_one"]),  # type: ignore[arg-type]
        lambda: laplace_scale(-1e308, 1e308, None, 1e-3, "substitute_one_sum_only"),
    ],
)
def test_nonsense_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PrivacyError):
        call()


def test_integer_noise_is_never_smaller_than_the_continuous_noise_it_stands_for() -> None:
    for sensitivity in (1, 1 << 20, 1 << 40):
        for mu in (0.01, 0.2367, 3.0):
            sigma = integer_sigma(sensitivity, mu)
            assert sigma**2 - 16 >= (sensitivity / mu) ** 2
            assert sigma <= (sensitivity / mu) * 1.00001 + 16 * mu / sensitivity + 4


def test_discrete_gaussian_delta_is_below_the_claim() -> None:
    """The exact δ of the integer mechanism (one dimension, summed over ℤ) against the δ that is claimed for it."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 30
    for shift, epsilon, delta in ((3, 1.0, 1e-6), (40, 2.0, 1e-4), (1, 0.5, 1e-5)):
        sigma = mpmath.mpf(integer_sigma(shift, mu_of(epsilon, delta)))
        span = int(16 * sigma)
        weight = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-span - shift, span + shift + 1)}
        total = mpmath.fsum(weight.values())
        gain = mpmath.exp(epsilon)
        exact = mpmath.fsum(max(0, weight[k - shift] - gain * weight[k]) for k in range(-span, span + 1)) / total
        assert exact <= delta
