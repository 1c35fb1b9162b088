"""The vectorised sampler: its decisions are those of exact arithmetic, its output that of OpenDP."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, ks_2samp

from sacro_deltab.base.errors import PrivacyError
from sacro_deltab.privacy import exact, sampler

mpmath = pytest.importorskip("mpmath")


def fits(draws: np.ndarray, sigma: float) -> bool:
    """χ² of draws against the probabilities of the discrete Gaussian, at 1e-9."""
    span = np.arange(-int(12 * sigma) - 2, int(12 * sigma) + 3)
    weight = np.exp(-(span**2) / (2 * sigma**2))
    expected = weight / weight.sum() * draws.size
    seen = np.bincount(np.clip(draws - span[0], 0, span.size - 1), minlength=span.size)
    often = expected >= 8
    seen = np.append(seen[often], seen[~often].sum())
    expected = np.append(expected[often], expected[~often].sum())
    usable = expected > 0.5
    square = float(((seen - expected)[usable] ** 2 / expected[usable]).sum())
    return square < chi2.isf(1e-9, int(usable.sum()) - 1)


@pytest.mark.parametrize("sigma", [1.0, 1.37, 4.0, 11.5])
def test_probabilities(sigma: float) -> None:
    assert fits(exact.discrete_gaussian(sigma, 60_000), sigma)


def test_the_fit_would_notice_another_sigma() -> None:
    assert not fits(exact.discrete_gaussian(4.0, 60_000), 4.2)


@pytest.mark.os_randomness  # OpenDP's own draws
@pytest.mark.parametrize("sigma", [6.5, 1e5, 2.0**42.3])
def test_same_distribution_as_opendp(sigma: float) -> None:
    ours, theirs = exact.discrete_gaussian(sigma, 20_000), sampler.opendp_gaussian(sigma, 2000)
    assert ks_2samp(ours, theirs).pvalue > 1e-8
    assert ours.std() == pytest.approx(sigma, rel=0.03)


def test_probabilities_when_every_decision_takes_the_exact_road(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    honest = exact._decide
    monkeypatch.setattr(exact, "_MARGIN", 1.0)
    monkeypatch.setattr(exact, "_decide", lambda w, g: (calls.append(1), honest(w, g))[1])
    assert fits(exact.discrete_gaussian(2.3, 3000), 2.3)
    assert len(calls) > 3000


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**70), st.integers(1, 2**70), st.integers(20, 80))
def test_bounds_of_exp_hold(top: int, bottom: int, digits: int) -> None:
    gamma = Fraction(top, bottom) if top < 900 * bottom else Fraction(top % (900 * bottom), bottom)
    low, high = exact.exp_bounds(gamma, digits)
    mpmath.mp.dps = 200
    true = mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator)
    assert mpmath.mpf(low.numerator) / low.denominator <= true <= mpmath.mpf(high.numerator) / high.denominator
    assert high - low <= high * Fraction(10) ** (4 - digits) + Fraction(1, 10**600)


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 44), st.integers(-4000, 4000))
def test_double_precision_never_decides_against_exact_arithmetic(gamma: float, offset: int) -> None:
    """First words around the threshold: what doubles decide is right, and what is too close goes to `_decide`."""
    mpmath.mp.dps = 60
    threshold = mpmath.exp(-mpmath.mpf(gamma)) * 2**64
    word = min(max(int(threshold) + offset * max(1, int(threshold) >> 45), 0), 2**64 - 1)
    asked: list[int] = []
    original, decide = exact._words, exact._decide
    try:
        exact._words = lambda size: np.array([word], dtype=np.uint64)  # type: ignore[assignment]
        exact._decide = lambda w, g: (asked.append(w), True)[1]  # type: ignore[assignment]
        decision = bool(exact.bernoulli_exp(np.array([gamma]), lambda i: Fraction(gamma))[0])
    finally:
        exact._words, exact._decide = original, decide
    if not asked:
        assert decision == (word + 1 <= threshold)
        assert decision or word >= threshold
    assert exact._decide(word, Fraction(gamma)) in (True, False)


def test_decide_is_right_on_either_side() -> None:
    half = Fraction(math.log(2)).limit_denominator(10**30)
    mpmath.mp.dps = 60
    at = int(mpmath.exp(-mpmath.mpf(half.numerator) / half.denominator) * 2**64)
    assert exact._decide(at - 1, half) is True
    assert exact._decide(at + 1, half) is False


@pytest.mark.os_randomness
def test_large_blocks_go_to_it_and_small_ones_to_opendp(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(exact, "discrete_gaussian", lambda s, n: (seen.append(n), np.zeros(n, dtype=np.int64))[1])
    sampler.discrete_gaussian(5.0, sampler.LARGE)
    sampler.discrete_gaussian(5.0, 3)
    assert seen == [sampler.LARGE]
    for scale in (0.0, -1.0, math.nan, math.inf, 2.0**61):
        with pytest.raises(PrivacyError):
            sampler.discrete_gaussian(scale, 2)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="range"):
        exact.discrete_gaussian(2.0**48, 1)


def test_draws_are_not_repeated() -> None:
    first, second = exact.discrete_gaussian(2.0**40, 50), exact.discrete_gaussian(2.0**40, 50)
    assert not np.intersect1d(first, second).size
    assert exact.discrete_gaussian(3.0, 0).size == 0
