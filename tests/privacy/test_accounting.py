"""Composition against the reference cases and dp-accounting."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import PrivacyError
from sacro_deltab.privacy import Release, SpendRequest, compose, compose_nodes
from sacro_deltab.privacy.accounting import (
    epsilon_by_adjacency,
    epsilon_of_rho,
    epsilon_pld,
    group_epsilon,
)
from sacro_deltab.privacy.mechanisms import epsilon_of_mu, gaussian_sigma, mu_of

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases" / "dp"
ALL = [json.loads(path.read_text()) for path in sorted(CASES.glob("compose_*.json"))]


@pytest.mark.parametrize("case", ALL, ids=lambda c: c["id"])
def test_compose_cases(case: dict) -> None:
    given_, expected = case["inputs"], case["expected"]
    got = compose(given_["releases"], given_["target_delta"], advanced_slack=given_["advanced_slack"])
    for name in ("basic", "advanced_kov"):
        assert got.__getattribute__(name).epsilon == pytest.approx(expected[name]["epsilon"], rel=1e-9)
        assert got.__getattribute__(name)["delta"] == pytest.approx(expected[name]["delta"], rel=1e-9)
    for name, rel in (
        ("mu_gdp_total", 1e-9),
        ("rho_zcdp_total", 1e-9),
        ("epsilon_exact_gdp", 1e-9),
        ("epsilon_zcdp_cks", 1e-6),
    ):
        if name in expected:
            assert getattr(got, name) == pytest.approx(expected[name], rel=rel)
    if "epsilon_pld_upper" in expected:
        assert got.epsilon_exact_gdp is None


@pytest.mark.parametrize("case", ALL, ids=lambda c: c["id"])
def test_privacy_loss_distributions_agree(case: dict) -> None:
    pytest.importorskip("dp_accounting")
    given_, expected = case["inputs"], case["expected"]
    bound = epsilon_pld(given_["releases"], given_["target_delta"])
    low = expected.get("epsilon_pld_lower", expected.get("epsilon_exact_gdp"))
    high = expected.get("epsilon_pld_upper", expected.get("epsilon_exact_gdp"))
    assert low - 2e-3 <= bound <= high + 2e-3


def test_parallel_only_on_declared_disjointness() -> None:
    case = json.loads((CASES / "parallel_vs_sequential.json").read_text())
    nodes, expected = case["inputs"]["nodes"], case["expected"]
    disjoint = compose_nodes(nodes, disjoint_declared=True, delta=1e-6)
    overlap = compose_nodes(nodes, disjoint_declared=False, delta=1e-6)
    assert (disjoint.basic.epsilon, disjoint.basic.delta) == (1.0, 1e-6)
    assert (overlap.basic.epsilon, overlap.basic.delta) == (2.0, 2e-6)
    assert expected["possible_overlap_basic"] == {"epsilon": 2.0, "delta": 2e-6}
    assert overlap.epsilon_exact_gdp == pytest.approx(expected["possible_overlap_exact_gdp"], rel=1e-8)


def test_objects_and_dictionaries_cost_the_same() -> None:
    mu = mu_of(1.0, 1e-6)
    request = SpendRequest(
        "gaussian", 1.0, 1e-6, mu, 1 / mu, "zero_out_N_public", "person", ("beta1",), "model", "formal"
    )
    release = Release("gaussian", 1.0, 1e-6, sigma=1 / mu)
    as_dict = {
        "mechanism": "gaussian",
        "sensitivity_l2": 2.0,
        "sigma": 2 / mu,
        "epsilon_claimed": 1.0,
        "delta_claimed": 1e-6,
    }
    totals = {compose([item] * 4, 1e-6).epsilon_exact_gdp for item in (request, release, as_dict)}
    assert max(totals) - min(totals) < 1e-12
    assert min(totals) == pytest.approx(2.1228571322818626, rel=1e-9)


def test_an_unknown_mechanism_is_never_free() -> None:
    with pytest.raises(PrivacyError):
        compose([{"mechanism": "rounding"}], 1e-6)
    with pytest.raises(PrivacyError):
        compose([{"sigma": 2.0}], 1e-6)
    for wrong in (
        {"sigma": 0.0}, {"sigma": -1}, {"sigma": math.nan}, {"sensitivity_l2": 0}, {"count": 1.5}, {"count": -1},
        {"epsilon": "1"}, {"delta": 1.0}, {"mechanism": 3}, {"mu": math.inf}, {"sensitivity_l2": 1e308},
    ):  # fmt: skip
        with pytest.raises(PrivacyError):
            compose([{"mechanism": "gaussian", "sigma": 4.0, "sensitivity_l2": 1.0, "epsilon": 1.1} | wrong], 1e-6)
    for delta in (0, 1, math.nan, None, "x"):
        with pytest.raises(PrivacyError):
            compose([], delta)
    for releases in (None, 5, {"mechanism": "gaussian"}, "gaussian", [5]):
        with pytest.raises(PrivacyError):
            compose(releases, 1e-6)
    mixed = compose([{"mechanism": "gaussian", "sigma": 4.0, "epsilon": 1.1, "delta": 1e-6},
                     {"mechanism": "exponential", "epsilon": 0.5}], 1e-6)  # fmt: skip
    assert mixed.epsilon_exact_gdp is None
    assert mixed.basic.epsilon == pytest.approx(1.6)
    assert compose([], 1e-6).basic.epsilon == 0


def test_a_claim_below_what_the_noise_gives_is_not_believed() -> None:
    honest = compose([{"mechanism": "gaussian", "sigma": 2.0, "epsilon": 1.9931, "delta": 1e-5}], 1e-5)
    cheap = compose([{"mechanism": "gaussian", "sigma": 2.0, "epsilon": 0.1, "delta": 1e-5}], 1e-5)
    silent = compose([{"mechanism": "gaussian", "sigma": 2.0}], 1e-5)
    for got in (honest, cheap, silent):
        assert tuple(got.basic) == pytest.approx((1.9930914, 1e-5), rel=1e-5)
    assert compose([{"mechanism": "laplace", "scale": 0.5, "epsilon": 0.1}], 1e-6).basic.epsilon == 2.0
    contradicted = compose([{"mechanism": "Gaussian", "mu": 0.01, "sigma": 2.0, "epsilon": 0.1, "delta": 1e-5}], 1e-5)
    assert contradicted.basic.epsilon == pytest.approx(1.9930914, rel=1e-5)
    many = compose([{"mechanism": "gaussian", "sigma": 1e6, "count": 10**9}], 1e-6)
    assert many.mu_gdp_total == pytest.approx(math.sqrt(1e9) / 1e6)


def test_visits_of_one_person_multiply_mu() -> None:
    mu = mu_of(1.0, 1e-6)
    assert group_epsilon(mu, 2, 1e-6) == pytest.approx(2.1228571322818626, rel=1e-9)
    assert group_epsilon(mu, 1, 1e-6) == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(PrivacyError):
        group_epsilon(mu, 0, 1e-6)


def test_epsilon_under_all_three_relations() -> None:
    mu = mu_of(1.0, 1e-6)
    exact = epsilon_by_adjacency(mu, 1e-6, exact_n=True)
    assert exact["zero_out_N_public"] == pytest.approx(1.0)
    assert exact["replace_one"] == pytest.approx(2.1228571322818626)
    assert exact["add_remove"] is None  # an exact N is released: presence shows in it
    assert epsilon_by_adjacency(mu, 1e-6, exact_n=False)["add_remove"] == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.05, 2.0), min_size=1, max_size=6), st.floats(1e-8, 1e-4))
def test_totals_are_ordered(epsilons: list[float], delta: float) -> None:
    releases = [Release("gaussian", e, delta, sigma=gaussian_sigma(1, e, delta)) for e in epsilons]
    got = compose(releases, delta)
    assert got.epsilon_exact_gdp is not None
    assert got.epsilon_zcdp_cks is not None
    assert got.epsilon_exact_gdp <= got.epsilon_zcdp_cks + 1e-9
    assert got.epsilon_exact_gdp <= got.basic.epsilon + 1e-9
    assert got.mu_gdp_total == pytest.approx(math.sqrt(sum(r.strength**2 for r in releases)))
    assert epsilon_of_mu(got.mu_gdp_total, delta) == pytest.approx(got.epsilon_exact_gdp, rel=1e-9)


def test_zcdp_conversion_is_the_minimum() -> None:
    rho, delta = 0.028, 1e-6
    grid = [
        rho * a + math.log(1 / (a * delta)) / (a - 1) + math.log1p(-1 / a)
        for a in (1 + 10 ** (k / 200) for k in range(-200, 800))
    ]
    assert epsilon_of_rho(rho, delta) <= min(grid) + 1e-9
    assert epsilon_of_rho(rho, delta) == pytest.approx(min(grid), rel=1e-4)
