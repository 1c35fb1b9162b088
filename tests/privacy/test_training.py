"""Private training through its front door: order of events, labels, relations, refusals, consistency, utility."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacro_deltab.base.errors import InputError, PrivacyError, SacroDeltabError
from sacro_deltab.cohort.simulate import Simulated, smith_cohort
from sacro_deltab.model import BrainAgeDelta
from sacro_deltab.privacy import Basis, PublicBounds, Receipt, SpendRequest, Totals, sampler, train_private
from sacro_deltab.privacy.blocks import norm_bound
from sacro_deltab.privacy.gradient import Purse, plan_schedule
from sacro_deltab.privacy.mechanisms import mu_of
from sacro_deltab.privacy.moments import NoisyMoments, pool

AGES = (45.0, 75.0)
MODELS = ("simple", "unbiased", "unbiased_quadratic", "alternate", "alternate_quadratic")


def receipt(pinned: bool = True) -> Receipt:
    none = Totals(0, 0, 0, 0, 0, 0)
    return Receipt("ledger", 1, "head", none, none, pinned)


@pytest.fixture(scope="module")
def basis() -> Basis:
    people = smith_cohort(1500, 30, seed=90)
    confounds = np.random.default_rng(3).normal(size=(1500, 2))
    return Basis.from_public(
        people.X, people.age, people.feature_names, n_components=5, made_on="simulated people", age_range=AGES,
        confounds=confounds, confound_names=("motion", "size"), confound_bounds=((-4, 4), (-4, 4)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def cohort() -> Simulated:
    return smith_cohort(1000, 30, seed=5)


def train(cohort: Simulated, basis: Basis | None, **change: Any):  # type: ignore[no-untyped-def]
    call: dict[str, Any] = {"feature_names": cohort.feature_names, "basis": basis, "epsilon": 1.0, "delta_dp": 1e-6}
    call |= {"spend": lambda request: receipt(), "registered": lambda digest: True} | change
    return train_private(cohort.X, cohort.age, **call)


@pytest.mark.parametrize("method", ["moments", "gradient"])
@pytest.mark.parametrize("adjacency", ["zero_out_N_public", "add_remove", "replace_one"])
def test_all_five_models_come_out_and_agree(method: str, adjacency: str, basis: Basis, cohort: Simulated) -> None:
    private = train(cohort, basis, method=method, adjacency=adjacency)
    weights = private.weights
    for model in MODELS:
        assert np.isfinite(weights.delta(cohort.X, cohort.age, model=model)).all()
    b1 = weights.b1
    assert weights.b2[0] == pytest.approx(float(b1 @ weights.gamma[0]) - 1, abs=1e-9)
    assert weights.b2sq[0] == pytest.approx(weights.b2[0], abs=1e-12)
    assert weights.b2sq[1] == pytest.approx(float(b1 @ weights.gammasq[1]), abs=1e-9)
    assert np.array_equal(weights.gammasq[0], weights.gamma[0])
    assert weights.x_mean.tolist() == basis.centre.tolist()
    assert weights.ysq_mean is not None
    assert AGES[0] <= weights.y_mean <= AGES[1]
    assert private.statement.label == "formal"
    by = private.statement.epsilon_by_adjacency
    own = by[adjacency]
    assert own == pytest.approx(1.0, rel=1e-6)
    assert by["replace_one"] > by["zero_out_N_public"]
    assert (by["add_remove"] is None) == (adjacency != "add_remove")
    json.dumps(private.statement.to_json(), allow_nan=False)


def test_useful_at_the_documents_own_size(basis: Basis, cohort: Simulated) -> None:
    test = smith_cohort(2000, 30, seed=6)
    own = BrainAgeDelta(n_components=5).fit(cohort.X, cohort.age)
    best = np.corrcoef(own.delta(test.X, test.age, model="unbiased"), test.true_delta)[0, 1]
    for method, share in (("gradient", 0.85), ("moments", 0.5)):
        private = train(cohort, basis, method=method)
        got = np.corrcoef(private.weights.delta(test.X, test.age, model="unbiased"), test.true_delta)[0, 1]
        assert got > share * best


def test_a_huge_budget_gives_the_non_private_model(basis: Basis) -> None:
    people = smith_cohort(20_000, 30, seed=8)
    test = smith_cohort(1000, 30, seed=6)
    scores = basis.white_scores(basis.standardise(people.X), 5)
    keep = (np.linalg.norm(scores, axis=1) <= basis.radius[-1]) & (np.abs(people.age - 60) < 15)
    people = people.take(keep)  # nobody is clipped, so the two must agree
    private = train(people, basis, method="moments", epsilon=300.0, delta_dp=1e-9, options={"gram": True})
    u = basis.white_scores(basis.standardise(people.X), 5)
    y = people.age - people.age.mean()
    b = np.linalg.lstsq(u - u.mean(0), y, rcond=None)[0]
    q = y**2 - (y**2).mean()
    slope = float(y @ q / (y @ y))
    gap = (u - u.mean(0)) @ b - y
    design = np.column_stack([y, q - slope * y])
    coef = np.linalg.lstsq(design, gap, rcond=None)[0]
    v = basis.white_scores(basis.standardise(test.X), 5)
    t = test.age - people.age.mean()
    expected = (v - u.mean(0)) @ b - t - np.column_stack([t, t**2 - (y**2).mean() - slope * t]) @ coef
    got = private.weights.delta(test.X, test.age, model="unbiased_quadratic")
    inside = np.abs(basis.standardise(test.X)).max(axis=1) < 4
    np.testing.assert_allclose(got[inside], expected[inside], atol=0.05)


def test_the_spend_is_committed_before_any_noise_is_drawn(
    basis: Basis, cohort: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    honest = sampler.discrete_gaussian
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda *a: (events.append("noise"), honest(*a))[1])

    def spend(request: SpendRequest) -> Receipt:
        events.append("spend")
        assert request.epsilon == 1.0
        assert request.mu == pytest.approx(mu_of(1.0, 1e-6))
        return receipt()

    for method in ("moments", "gradient"):
        events.clear()
        train(cohort, basis, method=method, spend=spend)
        assert events[0] == "spend"
        assert events.count("spend") == 1
        assert set(events[1:]) == {"noise"}

    def refuse(request: SpendRequest) -> Receipt:
        raise RuntimeError("the ledger is not there")

    events.clear()
    with pytest.raises(RuntimeError):
        train(cohort, basis, spend=refuse)
    assert events == []


def test_two_releases_differ(basis: Basis, cohort: Simulated) -> None:
    np.random.seed(0)  # noqa: NPY002 (a seed set by anybody must not matter)
    first = train(cohort, basis, method="moments")
    np.random.seed(0)  # noqa: NPY002
    second = train(cohort, basis, method="moments")
    assert not np.array_equal(first.weights.b1, second.weights.b1)


def test_labels_fall_without_a_pinned_ledger_or_public_bounds(basis: Basis, cohort: Simulated) -> None:
    assert train(cohort, basis, spend=lambda request: None).statement.label == "heuristic"
    assert train(cohort, basis, spend=lambda request: receipt(pinned=False)).statement.label == "heuristic"
    loose = train(cohort, basis, bounds=PublicBounds(age=AGES)).statement
    assert loose.label == "heuristic"
    assert loose.proof is None
    claimed = PublicBounds(age=AGES, provenance="ruleset")
    assert train(cohort, basis, bounds=claimed).statement.label == "heuristic"  # no rule set to compare with
    assert train(cohort, basis, bounds=claimed, ruleset_bounds=claimed).statement.label == "formal"
    assert train(cohort, basis, registered=None).statement.label == "heuristic"
    assert train(cohort, basis, registered=lambda digest: digest != basis.digest).statement.label == "heuristic"


def test_add_remove_uses_no_exact_n(basis: Basis, cohort: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noise forced to zero except on N, every parameter follows the noisy N, not the true one."""
    requests = []

    def spend(request: SpendRequest) -> Receipt:
        requests.append(request)
        return receipt()

    def shifted(scale: float, size: int) -> np.ndarray:
        zero = np.zeros(size, dtype=np.int64)
        calls.append(size)
        return zero + (1000 << 20) if len(calls) == 1 else zero  # N is the first block

    monkeypatch.setattr(sampler, "discrete_gaussian", shifted)
    for method in ("moments", "gradient"):
        calls: list[int] = []
        private = train(cohort, basis, method=method, adjacency="add_remove", spend=spend)
        half = cohort.take(slice(0, 1000))
        mean = 60 + float(np.clip(half.age - 60, -15, 15).sum()) / 2000
        assert private.weights.y_mean == pytest.approx(mean, abs=1e-3)
        assert private.statement.n_public is None
        assert "1000" not in json.dumps(private.statement.to_json())
    assert all(request.n_public is None for request in requests)
    with pytest.raises(PrivacyError, match="1e-6"):
        train(cohort, basis, adjacency="add_remove", delta_dp=2e-6)
    tiny = smith_cohort(3, 30, seed=1)
    train(tiny, basis, adjacency="add_remove")  # N is not tested either


def test_hostile_values_become_public_constants(basis: Basis, cohort: Simulated) -> None:
    X, age = cohort.X.copy(), cohort.age.copy()
    X[0] = np.inf
    X[1] = np.nan
    X[2] = 1e308
    X[3] = 5e-324
    age[:5] = (np.nan, np.inf, -np.inf, 1e300, -5)
    confounds = np.random.default_rng(0).normal(size=(1000, 2))
    confounds[0] = np.nan
    hostile = dataclasses.replace(cohort, X=X, age=age)
    for method in ("moments", "gradient"):
        private = train(hostile, basis, method=method, confounds=confounds, confound_names=("motion", "size"))
        assert np.isfinite(private.weights.b1).all()


@pytest.mark.parametrize("method", ["moments", "gradient"])
def test_confounds_are_taken_out(method: str, basis: Basis) -> None:
    people = smith_cohort(6000, 30, seed=12)
    motion = np.random.default_rng(1).normal(size=(6000, 2))
    X = people.X + np.outer(motion[:, 0], np.linspace(-1, 1, 30) * 0.8)
    dirty = dataclasses.replace(people, X=X)
    table = pd.DataFrame(motion, columns=["motion", "size"])
    private = train(dirty, basis, confounds=table, method=method, epsilon=20.0, delta_dp=None)
    with_c = private.weights.predict_age(X, confounds=motion) - people.age
    plain = train(dirty, basis, method=method, epsilon=20.0, delta_dp=None)
    without = plain.weights.predict_age(X) - people.age
    left, before = (abs(np.corrcoef(gap, motion[:, 0])[0, 1]) for gap in (with_c, without))
    assert before > 0.35
    assert left < 0.18  # 0.06 without noise; 0.08 ± 0.01 with it


def test_node_basis_needs_public_scale_and_warns_below_its_n(basis: Basis, cohort: Simulated) -> None:
    with pytest.raises(PrivacyError, match="centre"):
        train(cohort, None, bounds=PublicBounds(age=AGES))
    with pytest.raises(PrivacyError, match="bounds"):
        train(cohort, None)
    bounds = PublicBounds(age=AGES, centre=basis.centre, scale=basis.scale, provenance="registered_file")
    asked = []

    def spend(request: SpendRequest) -> Receipt:
        asked.append(request)
        return receipt()

    small = train(cohort, None, bounds=bounds, registered=lambda digest: True, spend=spend)
    assert small.warnings
    assert asked[0].detail["warnings"] == list(small.warnings)
    large = smith_cohort(6000, 30, seed=9)
    private = train(large, None, bounds=bounds, registered=lambda digest: True, delta_dp=None)
    assert not private.warnings
    assert private.statement.label == "formal"
    assert private.statement.basis is None
    test = smith_cohort(2000, 30, seed=6)
    delta = private.weights.delta(test.X, test.age, model="unbiased")
    assert np.corrcoef(delta, test.true_delta)[0, 1] > 0.4
    np.testing.assert_allclose(
        private.weights.components @ private.weights.components.T, np.eye(private.weights.n_components), atol=1e-9
    )
    with pytest.raises(PrivacyError, match="shared basis"):
        train(cohort, None, bounds=bounds, method="gradient")


def test_noisy_moments_pool_over_nodes(basis: Basis, tmp_path) -> None:  # type: ignore[no-untyped-def]
    parts = [train(smith_cohort(800, 30, seed=s), basis, method="moments").noisy_moments for s in (21, 22)]
    total = pool([p for p in parts if p is not None])
    assert total.n_public == 1600
    np.testing.assert_allclose(total.values["ut"], parts[0].values["ut"] + parts[1].values["ut"])
    assert total.sd["ut"] == pytest.approx(math.sqrt(2) * parts[0].sd["ut"])
    total.save(tmp_path / "moments.json")
    again = NoisyMoments.load(tmp_path / "moments.json")
    assert again.layout == total.layout
    np.testing.assert_array_equal(again.values["uq"], total.values["uq"])
    other = train(smith_cohort(800, 30, seed=23), basis, method="moments", n_components=3).noisy_moments
    with pytest.raises(PrivacyError):
        pool([parts[0], other])


def wrong(**change: Any) -> Callable[[Simulated, Basis], Any]:
    return lambda cohort, basis: train(cohort, basis, **change)


@pytest.mark.parametrize(
    "act",
    [
        wrong(epsilon=0.0), wrong(epsilon=-1.0), wrong(epsilon=float("nan")), wrong(delta_dp=1.1e-6),
        wrong(delta_dp=0.0),
        wrong(adjacency="nearby"), wrong(method="magic"), wrong(n_components=0), wrong(n_components=6),
        wrong(feature_names=[f"f{i}" for i in range(30)]), wrong(feature_names=["a"]),
        wrong(bounds=PublicBounds(age=AGES, centre=(0.0,), scale=(1.0,))),
        wrong(bounds=PublicBounds(age=AGES, centre=(0.0,) * 30, scale=(1.0,) * 30)),
        wrong(confounds=np.zeros((1000, 1)), confound_names=("unknown",)),
        wrong(confounds=np.zeros((999, 2)), confound_names=("motion", "size")),
        wrong(confounds=np.zeros((1000, 2)), confound_names=("motion",)),
    ],
)  # fmt: skip
def test_nonsense_is_refused_before_the_spend(act, basis: Basis, cohort: Simulated) -> None:  # type: ignore[no-untyped-def]
    cohort = cohort.take(slice(0, 1000))
    with pytest.raises(SacroDeltabError) as caught:
        act(cohort, basis)
    assert caught.value.next_step


def test_a_clip_that_is_too_tight_warns_before_the_spend(basis: Basis, cohort: Simulated) -> None:
    seen = []

    def spend(request: SpendRequest) -> Receipt:
        seen.append(list(request.detail["warnings"]))
        return receipt()

    assert train(cohort, basis, spend=spend).warnings == ()
    tight = dataclasses.replace(basis.bounds(), feature_z=1.0)
    narrow = dataclasses.replace(basis.bounds(), age=(70.0, 72.0))
    for bounds, word in ((tight, "feature_z"), (narrow, "age range")):
        assert word in train(cohort, basis, bounds=bounds, spend=spend).warnings[0]
    assert seen[0] == []
    assert all(seen[1:])


def test_delta_default_is_the_smaller_of_one_in_a_million_and_one_over_n_squared(basis: Basis) -> None:
    small = train(smith_cohort(300, 30, seed=2), basis, delta_dp=None)
    large = train(smith_cohort(5000, 30, seed=2), basis, delta_dp=None)
    assert small.statement.delta_dp == 1e-6
    assert large.statement.delta_dp == pytest.approx(1 / 5000**2)


def test_a_basis_made_on_the_cohort_is_refused_before_the_spend(cohort: Simulated) -> None:
    own = Basis.from_public(cohort.X, cohort.age, cohort.feature_names, n_components=5, made_on="certainly public")
    with pytest.raises(PrivacyError, match="made on the cohort"):
        train(cohort, own, spend=lambda request: pytest.fail("spent"))


def test_column_order_of_a_table_is_enforced(basis: Basis, cohort: Simulated) -> None:
    table = pd.DataFrame(cohort.X, columns=list(cohort.feature_names))
    with pytest.raises(InputError):
        train_private(
            table[table.columns[::-1]],
            cohort.age,
            feature_names=cohort.feature_names,
            basis=basis,
            epsilon=1.0,
            spend=lambda request: receipt(),
        )


@pytest.mark.parametrize("adjacency", ["zero_out_N_public", "add_remove", "replace_one"])
@pytest.mark.parametrize("method", ["moments", "gradient"])
def test_every_noise_drawn_adds_up_to_the_claimed_mu(
    method: str, adjacency: str, basis: Basis, cohort: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """White box, end to end: Σ (bound/σ)² over all noise really drawn is at most μ², and nearly all of it is used."""
    drawn: list[tuple[float, int]] = []
    honest = sampler.discrete_gaussian
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda s, n: (drawn.append((s, n)), honest(s, n))[1])
    confounds = np.random.default_rng(0).normal(size=(1000, 2))
    private = train(cohort, basis, method=method, adjacency=adjacency, confounds=confounds,
                    confound_names=("motion", "size"))  # fmt: skip
    reach, mu = (2 if adjacency == "replace_one" else 1), mu_of(1.0, 1e-6)
    if method == "gradient":
        total = sum((reach * norm_bound(size) / sigma) ** 2 for sigma, size in drawn)
    else:
        layout = private.noisy_moments.layout
        rest, total = list(drawn), 0.0
        for name in layout.names:
            sigma, _ = rest.pop(0)
            if name == "cc":  # off-diagonal first: iid noise on svec means σ/√2 there
                sigma, other = rest.pop(0)[0], sigma
                assert other == pytest.approx(sigma / math.sqrt(2), rel=1e-9)
            total += (reach * layout.bound(name) / sigma) ** 2
        assert not rest
    assert total <= mu**2
    assert total == pytest.approx(mu**2, rel=1e-6)
    names = set(private.public["noise_sd"])
    assert ("n" in names) == (adjacency == "add_remove")


def test_neighbours_differ_by_no_more_than_the_claim(
    basis: Basis, cohort: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Black box, noise off: whole trainings on neighbouring cohorts, distance in units of the noise."""
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda s, n: np.zeros(n, dtype=np.int64))
    rng = np.random.default_rng(11)
    small, mu = cohort.take(slice(0, 60)), mu_of(1.0, 1e-6)

    def moved(X: np.ndarray, age: np.ndarray, adjacency: str) -> dict[str, np.ndarray]:
        people = dataclasses.replace(small, X=X, age=age)
        got = train(people, basis, method="moments", adjacency=adjacency, options={"gram": True}).noisy_moments
        return {k: np.asarray(v) / got.sd[k] for k, v in got.values.items()}

    def distance(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
        return math.sqrt(sum(float(((a[k] - b[k]) ** 2).sum()) for k in a))

    worst = 0.0
    with np.errstate(all="ignore"):
        for _ in range(40):
            rows = [rng.normal(size=30) * 10.0 ** rng.uniform(-3, 3) for _ in range(2)]
            rows[0][rng.integers(30)] = rng.choice([np.inf, np.nan, 1e308, 0.0])
            ages = rng.choice([45.0, 75.0, 60.0, np.nan, 1e9, -1e9], 2)
            versions = []
            for row, age in zip(rows, ages, strict=True):
                X, y = small.X.copy(), small.age.copy()
                X[7], y[7] = row, age
                versions.append((X, y))
            with_it = moved(*versions[0], "add_remove")
            without = moved(np.delete(versions[0][0], 7, 0), np.delete(versions[0][1], 7), "add_remove")
            one = distance(with_it, without)
            two = distance(moved(*versions[0], "replace_one"), moved(*versions[1], "replace_one"))
            assert one <= mu * (1 + 1e-9)
            assert two <= mu * (1 + 1e-9)
            worst = max(worst, one)
    assert worst > 0.5 * mu


def test_the_neighbour_check_fails_when_a_bound_is_read_from_the_data(
    basis: Basis, cohort: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda s, n: np.zeros(n, dtype=np.int64))
    small = cohort.take(slice(0, 200))
    parts = []
    for age in (60.0, 120.0):  # one person's age, and the range that somebody read off the data
        y = small.age.copy()
        y[0] = age
        bounds = PublicBounds(age=(float(y.min()), float(y.max())))
        got = train(dataclasses.replace(small, age=y), basis, method="moments", bounds=bounds).noisy_moments
        parts.append({k: np.asarray(v) / got.sd[k] for k, v in got.values.items()})
    gap = math.sqrt(sum(float(((parts[0][k] - parts[1][k]) ** 2).sum()) for k in parts[0]))
    assert gap > 2 * mu_of(1.0, 1e-6)


def test_the_path_says_why_it_was_chosen(basis: Basis, cohort: Simulated) -> None:
    assert "least noise" in train(cohort, basis).public["why"]
    assert train(cohort, basis, method="moments").public["why"] == "asked for"
    with pytest.raises(PrivacyError, match="unknown option"):
        train(cohort, basis, options={"seed": 1})


def test_a_public_start_is_said(basis: Basis, cohort: Simulated) -> None:
    private = train(cohort, basis, method="gradient", options={"start": "public"})
    assert private.statement.basis["start"] == "public"
    assert private.statement.label == "formal"
    assert train(cohort, basis, method="gradient").statement.basis["start"] == "zero"
    with pytest.raises(PrivacyError):
        train(cohort, basis, method="gradient", options={"start": "mine"})


def test_tiny_cohorts_do_not_crash_after_the_spend(basis: Basis, cohort: Simulated) -> None:
    for method in ("moments", "gradient"):
        for people in (0, 1, 2):
            few = cohort.take(slice(0, people))
            weights = train(few, basis, method=method, adjacency="add_remove").weights
            assert np.isfinite(weights.b1).all()
        assert np.isfinite(train(cohort.take(slice(0, 2)), basis, method=method).weights.b1).all()
        with pytest.raises(InputError):
            train(cohort.take(slice(0, 1)), basis, method=method, spend=lambda request: pytest.fail("spent"))


def test_bounds_equal_to_the_extremes_are_told_inside_only(basis: Basis, cohort: Simulated) -> None:
    bounds = PublicBounds(age=(float(cohort.age.min()), float(cohort.age.max())))
    private = train(cohort, basis, bounds=bounds)
    assert private.inside["bounds_warning"]
    assert "extremes" not in json.dumps(private.statement.to_json())
    assert private.statement.label == "heuristic"


def test_the_purse_cannot_be_overdrawn() -> None:
    purse = Purse(1.0, 1)
    purse.sum("a", np.ones((10, 2)), 1.0, 0.7)
    with pytest.raises(PrivacyError):
        purse.sum("b", np.ones((10, 2)), 1.0, 0.4)


def test_the_gradient_account_adds_up_to_one() -> None:
    for conf in (0, 3):
        for count in (False, True):
            plan = plan_schedule(10, score_radius=4.0, age_sd=0.6, residual_sd=0.2, conf=conf, count=count)
            assert sum(plan.rounds) + sum(plan.scalars.values()) == pytest.approx(1.0)
            assert min(plan.rounds) > 0
            table = plan.noise_sd(10, conf, 0.2, 1)
            assert len(table) == len(plan.rounds) + len(plan.scalars)


def test_gradient_contributions_never_exceed_their_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of one hostile person, noise off: the norm is at most the radius the noise was scaled to."""
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda scale, size: np.zeros(size, dtype=np.int64))
    rng = np.random.default_rng(4)
    with np.errstate(all="ignore"):
        for _ in range(500):
            width, radius = int(rng.integers(1, 30)), float(10 ** rng.uniform(-3, 3))
            row = rng.normal(size=width) * 10.0 ** rng.uniform(-320, 308)
            row[rng.integers(width)] = rng.choice([np.nan, np.inf, -np.inf, 1e308, 0.0, 1.0])
            total = Purse(1.0, 1).sum("x", row[None, :], radius, 0.5)
            assert np.linalg.norm(total) <= radius * (1 + (math.sqrt(width) / 2 + 1) * 2.0**-20)
