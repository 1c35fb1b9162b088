"""Noised means, and the documents' recipe: what is added, what is said of it, what is spent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from sacro_deltab.base.errors import InputError, PrivacyError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Receipt, SpendRequest, Totals, sampler
from sacro_deltab.privacy.heuristic import PARAMETERS, documents_recipe
from sacro_deltab.privacy.mechanisms import mu_of
from sacro_deltab.privacy.noised import noised_features, noised_quantiles, noised_sd, noised_table
from sacro_deltab.privacy.statistics import Terms, release_mean

VALUES = np.random.default_rng(0).normal(1.0, 4.0, 500)
SPENT: list[SpendRequest] = []


def spend(request: SpendRequest) -> Receipt:
    SPENT.append(request)
    none = Totals(0, 0, 0, 0, 0, 0)
    return Receipt("ledger", 1, "head", none, none, True)


def mean(**change: Any):  # type: ignore[no-untyped-def]
    call = {"epsilon": 1.0, "spend": spend, "model_source": "fixed_beforehand", "bounds_provenance": "ruleset"}
    return release_mean(VALUES, **(call | change))


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("replace_one", 0.08), ("zero_out_N_public", 0.04)])
def test_mean_delta_sensitivity_and_scale(adjacency: str, sensitivity: float) -> None:
    got = mean(adjacency=adjacency)
    assert got.sensitivity == pytest.approx(sensitivity)
    assert got.noise_sd[0] == pytest.approx(math.sqrt(2) * sensitivity, rel=1e-4)
    assert got.statement.label == "formal"
    assert got.statement.delta_dp == 0
    assert abs(got.value[0] - VALUES.mean()) < 15 * got.noise_sd[0]
    by = got.statement.epsilon_by_adjacency
    assert by["replace_one"] == pytest.approx(2 * by["zero_out_N_public"])
    assert by[adjacency] == pytest.approx(1.0)
    assert by["add_remove"] is None


def test_noise_has_the_distribution_it_claims() -> None:
    draws = np.array([mean().value[0] for _ in range(150)])
    assert kstest((draws - VALUES.mean()) / 0.08, laplace.cdf).pvalue > 1e-8
    draws = np.array([mean(mechanism="gaussian").value[0] for _ in range(150)])
    assert kstest((draws - VALUES.mean()) * mu_of(1.0, 1e-6) / 0.08, norm.cdf).pvalue > 1e-8


def test_the_label_depends_on_the_model_the_sampler_and_the_bounds() -> None:
    assert mean(model_source="formally_released").statement.label == "formal"
    other = mean(model_source="other").statement
    assert other.label == "heuristic"
    assert "trained on these people" in other.reason
    assert mean(library="diffprivlib").statement.label == "heuristic"
    assert mean(library="diffprivlib", mechanism="gaussian").statement.label == "heuristic"
    assert mean(bounds_provenance="unregistered").statement.label == "heuristic"
    assert mean(spend=lambda request: None).statement.label == "heuristic"


def test_one_person_cannot_move_the_sum_beyond_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))
    for hostile in (np.inf, -np.inf, np.nan, 1e308, -1e308, 20.0, -20.0, 5e-324):
        moved = VALUES.copy()
        moved[0] = hostile
        for adjacency, sensitivity in (("replace_one", 0.08), ("zero_out_N_public", 0.04)):
            a = release_mean(moved, epsilon=1.0, spend=spend, adjacency=adjacency).value[0]  # type: ignore[arg-type]
            base = VALUES.copy()
            base[0] = -20.0 if adjacency == "replace_one" else 0.0
            b = release_mean(base, epsilon=1.0, spend=spend, adjacency=adjacency).value[0]  # type: ignore[arg-type]
            assert abs(a - b) <= sensitivity * (1 + 1e-5)


def test_add_remove_noises_n_too() -> None:
    for mechanism in ("laplace", "gaussian"):
        got = mean(adjacency="add_remove", mechanism=mechanism)
        assert got.statement.n_public is None
        assert got.statement.epsilon_by_adjacency["add_remove"] == pytest.approx(1.0)
        assert SPENT[-1].n_public is None
        assert abs(got.value[0] - VALUES.mean()) < 15 * got.noise_sd[0]


def terms(**change: Any) -> Terms:
    given = {"epsilon": 1.0, "spend": spend, "adjacency": "zero_out_N_public", "n_public": 500, "outputs": ("x",)}
    return Terms(**(given | {"model_source": "formally_released", "bounds_provenance": "ruleset"} | change))


def test_disjoint_groups_cost_one_epsilon() -> None:
    codes = np.arange(500) % 4 - 1
    before = len(SPENT)
    got = noised_table(VALUES, codes, 3, 20.0, terms())
    assert len(SPENT) == before + 1 and SPENT[-1].epsilon == 1.0
    assert got.value.shape == (3,) and got.counts is not None
    assert got.count_sd == pytest.approx(math.sqrt(2) / 0.2, rel=1e-4)
    assert np.abs(got.counts - 125).max() < 15 * got.count_sd
    assert np.abs(got.value - [VALUES[codes == k].mean() for k in range(3)]).max() < 15 * got.noise_sd.max()
    for wrong in (codes[:-1], codes - 1, codes.astype(float)):
        with pytest.raises(InputError):
            noised_table(VALUES, wrong, 3, 20.0, terms())


def test_noised_statistics_come_near_and_their_noise_is_what_they_say() -> None:
    clipped = np.clip(VALUES, -20, 20)
    with_gaps = np.append(VALUES, [np.nan] * 5)
    halves = np.arange(500) % 2
    features = np.random.default_rng(1).normal(size=(500, 4)) * [1, 2, 3, 4]
    asked = {
        "sd": (lambda: noised_sd(with_gaps, 20.0, terms()), np.array([clipped.std(ddof=1)])),
        "quantiles": (lambda: noised_quantiles(with_gaps, (25, 50), 20.0, terms()), np.percentile(clipped, (25, 50))),
        "means": (lambda: noised_table(VALUES, halves, 2, 20.0, terms()), [VALUES[::2].mean(), VALUES[1::2].mean()]),
        "counts": (lambda: noised_table(None, halves, 2, 1.0, terms()), [250, 250]),
        "features": (
            lambda: noised_features(features, np.zeros(4), np.array([1.0, 2, 3, 4]), 3.0, 4.0, terms()),
            [0, 0, 0, 0, 1, 2, 3, 4],
        ),
    }  # fmt: skip
    for name, (draw, truth) in asked.items():
        found = [draw() for _ in range(60)]
        gaps = np.array([f.value - truth for f in found]) / np.array([f.noise_sd for f in found])
        assert np.abs(gaps).mean() < 1.7, name
        assert gaps.std(axis=0).min() > 0.3, name


@pytest.mark.parametrize("hostile", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -20.0, 3.0])
def test_one_person_adds_at_most_one_to_each_sum(monkeypatch: pytest.MonkeyPatch, hostile: float) -> None:
    """Whatever one person is, against the same people with that record empty: Σ over columns of |change|·share ≤ 1."""
    from sacro_deltab.privacy import noised

    seen: list[Any] = []
    real = noised._sums

    def exact(columns: Any, codes: Any, n_groups: int, epsilon: float, shares: Any) -> Any:
        monkeypatch.setattr(sampler, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))
        sums, sd = real(columns, codes, n_groups, epsilon, shares)
        seen.append((sums, np.array(shares)))
        return sums, sd

    monkeypatch.setattr(noised, "_sums", exact)
    moved, codes = VALUES.copy(), np.arange(500) % 3
    for value, code in ((hostile, 2), (np.nan, -1)):
        moved[0], codes[0] = value, code
        noised_sd(moved, 20.0, terms())
        noised_quantiles(moved, (50,), 20.0, terms())
        noised_table(moved, codes, 3, 20.0, terms())
        noised_table(None, codes, 3, 20.0, terms())
    for (one, shares), (other, _) in zip(seen[:4], seen[4:], strict=True):
        assert (np.abs(one - other).sum(axis=0) @ shares) <= 1 + 1e-9
        assert np.abs(one - other).sum(axis=0).max() <= 1 + 1e-9


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0.0}, {"lower": 20.0, "upper": -20.0}, {"adjacency": "nearby"},
     {"mechanism": "gaussian", "delta_dp": 0.1},
     {"upper": math.inf}],
)  # fmt: skip
def test_bad_requests_spend_nothing(change: dict) -> None:
    before = len(SPENT)
    with pytest.raises(PrivacyError):
        mean(**change)
    assert len(SPENT) == before


@pytest.fixture(scope="module")
def cohort():  # type: ignore[no-untyped-def]
    return smith_cohort(200, 8, seed=1)


def test_documents_recipe_is_heuristic_and_paid_as_one(cohort) -> None:  # type: ignore[no-untyped-def]
    before = len(SPENT)
    got = documents_recipe(
        cohort.X, cohort.age, feature_names=cohort.feature_names, n_components=3, epsilon=1.0, spend=spend
    )
    (paid,) = SPENT[before:]
    assert paid.outputs == ("beta1", "beta2", "beta2sq", "gamma", "gammasq")
    assert (paid.label, paid.epsilon, paid.mu) == ("heuristic", 1.0, None)  # no exact account without a proof
    assert paid.detail["epsilon_each"] == 0.2
    assert "read from the data" in got.statement.reason
    assert {"x_mean", "pca_components"} <= set(got.statement.outside_budget)
    assert set(got.public["noise_sd"]) == set(PARAMETERS)
    declared = documents_recipe(
        cohort.X, cohort.age, feature_names=cohort.feature_names, n_components=3, epsilon=1.0, sensitivity=0.1,
        delta_dp=1e-6, parameters=("b1",), spend=spend,
    )  # fmt: skip
    assert declared.public["noise_sd"]["b1"] == pytest.approx(0.5298802526850474, rel=1e-9)
    assert "word" in declared.statement.reason


def test_a_recipe_whose_spend_is_refused_draws_nothing(cohort, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def refuse(request: Any) -> None:
        raise PrivacyError("no budget")

    monkeypatch.setattr("sacro_deltab.privacy.heuristic._noise", lambda *args: pytest.fail("noise was drawn"))
    with pytest.raises(PrivacyError, match="no budget"):
        documents_recipe(
            cohort.X, cohort.age, feature_names=cohort.feature_names, n_components=3, epsilon=1.0, spend=refuse
        )


def test_documents_recipe_refuses_where_its_formula_does_not_deliver(cohort) -> None:  # type: ignore[no-untyped-def]
    before = len(SPENT)
    with pytest.raises(PrivacyError, match="does not deliver"):
        documents_recipe(cohort.X, cohort.age, feature_names=cohort.feature_names, n_components=3, epsilon=60.0,
                         delta_dp=1e-6, sensitivity=1.0, spend=spend)  # fmt: skip
    with pytest.raises(InputError):
        documents_recipe(
            cohort.X, cohort.age, feature_names=cohort.feature_names, n_components=9, epsilon=1.0, spend=spend
        )
    assert len(SPENT) == before


def diffprivlib_call(cohort, **change: Any):  # type: ignore[no-untyped-def]
    call = {"feature_names": cohort.feature_names[:2], "epsilon": 1.0, "pca": "diffprivlib", "n_components": 1}
    return documents_recipe(cohort.X[:, :2], cohort.age, **(call | {"spend": spend} | change))


def test_diffprivlib_pca_is_stopped_when_it_hangs(cohort) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PrivacyError, match="did not finish"):
        diffprivlib_call(cohort, time_limit=0.01)


@pytest.mark.soak
def test_diffprivlib_pca_is_labelled(cohort) -> None:  # type: ignore[no-untyped-def]
    got = diffprivlib_call(cohort, time_limit=120)
    assert "sampler" in got.statement.reason
    assert got.weights.components is not None
    assert got.weights.components.shape == (1, 2)
