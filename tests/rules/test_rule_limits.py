"""Named limits against closed forms, scipy and the privacy layer."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sacro_deltab.rules.comparators import compare
from sacro_deltab.rules.limits import LIMITS, MissingFactError, analytic_sigma, classical_sigma

PARAMETERS = {"delta_dp_cap": 1e-6}


def work_out(name, **facts):
    values = {k.replace("__", "."): v for k, v in facts.items()}

    def need(fact):
        if fact not in values:
            raise MissingFactError(fact)
        return values[fact]

    return LIMITS[name].work_out(need, PARAMETERS)


@settings(max_examples=200, deadline=None)
@given(st.floats(0.01, 8), st.floats(1e-9, 1e-2), st.floats(1e-3, 1e3))
def test_analytic_sigma_gives_exactly_its_delta(epsilon, delta, sensitivity):
    sigma = analytic_sigma(sensitivity, epsilon, delta)
    mu = sensitivity / sigma
    given_delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert given_delta == pytest.approx(delta, rel=1e-6)


def test_analytic_sigma_agrees_with_the_privacy_layer():
    from sacro_deltab.privacy import gaussian_sigma

    for epsilon in (0.1, 0.5, 1.0, 4.0):
        for delta in (1e-8, 1e-6, 4e-6, 1e-4):
            mine = analytic_sigma(1.0, epsilon, delta)
            theirs = float(gaussian_sigma(1.0, epsilon, delta, method="analytic"))
            assert mine == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize(("delta", "ratio"), [(1e-4, 4.344 / 3.186), (4e-6, 5.030 / 3.933), (1e-6, 5.299 / 4.225)])
def test_the_ratio_that_the_decision_names(delta, ratio):
    assert classical_sigma(1, 1, delta) / analytic_sigma(1, 1, delta) == pytest.approx(ratio, rel=1e-3)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-3, 1.0), st.floats(1e-12, 0.05))
def test_the_classical_sigma_is_never_below_the_analytic_one_where_a_release_may_be(epsilon, delta):
    assert classical_sigma(1.0, epsilon, delta) >= analytic_sigma(1.0, epsilon, delta)


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_no_sigma_where_there_is_none(delta):
    assert analytic_sigma(1.0, 1.0, delta) is None
    assert analytic_sigma(1.0, 1e6, 1e-6) is None
    assert classical_sigma(1.0, 1.0, 0.0) is None


def test_the_small_ones():
    assert work_out("one_over_n_squared", n=500) == 1 / 250000
    assert work_out("one_over_n", n=500) == 0.002
    assert work_out("certified_delta", n=500) == 1e-6
    assert work_out("certified_delta", n=2000) == 2.5e-7
    assert work_out("laplace_scale", dp__sensitivity=0.08, dp__epsilon=0.5) == 0.16
    for name in ("one_over_n_squared", "one_over_n", "certified_delta"):
        assert work_out(name, n=0) is None


@pytest.mark.parametrize(
    ("relation", "mean", "clip"),
    [("replace_one", 0.08, 0.004), ("zero_out_N_public", 0.04, 0.002), ("add_remove", 20, 1)],
)
def test_sensitivities_follow_the_relation(relation, mean, clip):
    facts = {"dp__adjacency": relation, "n": 500, "dp__value_range": 40, "dp__value_max_abs": 20, "dp__clip_norm": 1.0}
    assert work_out("mean_sensitivity", **facts) == pytest.approx(mean)
    assert work_out("two_clip_over_n", **facts) == pytest.approx(clip)
    facts["dp__adjacency"] = "none"
    assert work_out("mean_sensitivity", **facts) is None


def test_a_limit_names_the_fact_it_misses():
    for limit in LIMITS.values():
        with pytest.raises(MissingFactError):
            limit.work_out(lambda f: (_ for _ in ()).throw(MissingFactError(f)), PARAMETERS)


def test_floating_point_slack_is_for_named_limits_only():
    assert compare("at_most", 4e-6 * (1 + 1e-12), 4e-6, named=True)
    assert not compare("at_most", 4e-6 * (1 + 1e-12), 4e-6)
    assert not compare("at_most", 4e-6 * (1 + 1e-6), 4e-6, named=True)
    assert not compare("at_least", 0.1 * (1 - 1e-6), 0.1, named=True)


@pytest.mark.parametrize(
    ("word", "value", "limit", "holds"),
    [
        ("at_least", 20, 20, True),
        ("at_least", 19, 20, False),
        ("more_than", 0.3, 0.3, False),
        ("more_than", 0.3001, 0.3, True),
        ("less_than", 20, 20, False),
        ("at_most", 0, 0, True),
        ("is", True, True, True),
        ("is", 1, True, False),
        ("is", True, 1, False),
        ("is_one_of", 0, (0, 100), True),
        ("is_one_of", False, (0, 100), False),
        ("outside", 5, (5, 95), False),
        ("outside", 4.9, (5, 95), True),
        ("outside", 95, (5, 95), False),
        ("outside", 95.1, (5, 95), True),
    ],
)
def test_comparators(word, value, limit, holds):
    assert compare(word, value, limit) is holds
