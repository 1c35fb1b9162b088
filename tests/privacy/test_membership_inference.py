"""Membership inference: the attack works where nothing protects, and the promised noise holds where it is promised."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sacro_deltab.base.errors import InputError
from sacro_deltab.cli import attack
from sacro_deltab.cohort.simulate import Simulated, smith_cohort
from sacro_deltab.model import BrainAgeDelta, Weights
from sacro_deltab.privacy import Basis, train_private
from sacro_deltab.privacy.attack.checks import reconstruction, variance_ratio
from sacro_deltab.privacy.attack.membership import attack_report, check_report, not_run, plain_trainer, private_trainer
from sacro_deltab.privacy.attack.shadows import leave_pair_out, membership
from sacro_deltab.privacy.attack.stats import (
    auc,
    auc_interval,
    binomial_interval,
    many_targets,
    max_auc,
    max_tpr,
    one_target,
    tpr_at,
)
from sacro_deltab.privacy.mean_fractions import denominator
from sacro_deltab.privacy.mechanisms import mu_of

CASE = Path(__file__).resolve().parents[2] / "fixtures" / "cases" / "dp" / "mia_bound.json"


def success(report: Any, name: str) -> Any:
    return next(a.success for a in report.attacks if a.name == name)


def test_theory_bound_case() -> None:
    data = json.loads(CASE.read_text())
    mu = mu_of(data["inputs"]["epsilon"], data["inputs"]["delta"])
    assert mu == pytest.approx(data["expected"]["mu"], rel=1e-8)
    assert max_auc(mu) == pytest.approx(data["expected"]["max_auc"], rel=1e-8)
    assert max_tpr(mu) == pytest.approx(data["expected"]["max_tpr_at_1pct_fpr"], rel=1e-8)


@pytest.fixture(scope="module")
def unprotected() -> Any:
    """N = 100, J = 25, no noise: the size that the documents call safe."""
    people = smith_cohort(200, 100, seed=0)
    return attack_report(None, people.X, people.age, trainer=plain_trainer(25))


def test_without_noise_members_are_found(unprotected: Any) -> None:
    assert success(unprotected, "likelihood_ratio").auc >= 0.65
    assert success(unprotected, "likelihood_ratio").auc_ci[0] > 0.62
    assert success(unprotected, "normalisation_statistics").auc > 0.8
    assert 0.53 < success(unprotected, "residual_threshold").auc < 0.65
    assert success(unprotected, "likelihood_ratio").tpr > 0.05
    assert unprotected.verdict == "no_bound"
    check_report(unprotected.to_json())


@pytest.fixture(scope="module")
def basis() -> Basis:
    public = smith_cohort(1500, 60, seed=90)
    return Basis.from_public(
        public.X, public.age, public.feature_names, n_components=25, made_on="simulated people", age_range=(45, 75)
    )


def private_report(basis: Basis, people: Simulated, method: str, *, shadows: int = 32, epsilon: float = 1.0) -> Any:
    private = train_private(
        people.X, people.age, feature_names=people.feature_names, basis=basis, epsilon=epsilon, delta_dp=1e-6,
        method=method, spend=lambda request: None,
    )  # fmt: skip
    trainer = private_trainer(
        feature_names=people.feature_names, basis=basis, epsilon=epsilon, delta_dp=1e-6, method=method
    )
    statement = private.statement.to_json()
    return attack_report(private.weights, people.X, people.age, trainer=trainer, statement=statement, shadows=shadows)


# over 60 runs of unseeded noise: AUC .540 ± .009, lower limit .518 ± .010 (gradient); .509, .489 (moments)
@pytest.mark.parametrize("method", ["gradient", "moments"])
def test_with_noise_no_attack_beats_the_bound(method: str, basis: Basis) -> None:
    report = private_report(basis, smith_cohort(200, 60, seed=3), method, shadows=16)
    best = report.best.success
    assert report.bound["max_auc"] == pytest.approx(0.5664626, rel=1e-6)
    assert best.auc_ci[0] <= report.bound["max_auc"]
    assert best.tpr_ci[0] <= report.bound["max_tpr_replacing"]
    assert best.auc < 0.6
    assert report.verdict == "within_bound"
    assert success(report, "normalisation_statistics") is None
    check_report(report.to_json())


def test_a_false_claim_is_found_out() -> None:
    """Weights without noise under the statement of a private training: the attack contradicts the claim."""
    people = smith_cohort(200, 100, seed=5)
    weights = BrainAgeDelta(n_components=25).fit(people.X, people.age).weights_
    claim = {"label": "formal", "epsilon": 1.0, "delta_dp": 1e-6, "mu": mu_of(1.0, 1e-6), "adjacency": "add_remove"}
    report = attack_report(weights, people.X, people.age, trainer=plain_trainer(25), statement=claim)
    assert report.verdict == "above_bound"
    assert any("NOT TRUE" in line.upper() for line in report.words)


def test_weights_against_held_out_people() -> None:
    people, others = smith_cohort(100, 100, seed=1), smith_cohort(140, 100, seed=51)
    weights = BrainAgeDelta(n_components=25).fit(people.X, people.age).weights_
    report = attack_report(
        weights, people.X, people.age, trainer=plain_trainer(25), held_out=(others.X, others.age), shadows=16
    )
    assert report.subject == "weights"
    assert report.design["non_members"] == 100
    assert success(report, "normalisation_statistics").auc_ci[0] > 0.65
    assert success(report, "likelihood_ratio").auc > 0.55
    few = others.take(slice(0, 40))
    unbalanced = attack_report(
        weights, people.X, people.age, trainer=plain_trainer(25), held_out=(few.X, few.age), shadows=16
    )
    assert unbalanced.design["non_members"] == 40


def test_reconstruction_finds_n_where_there_is_no_noise(basis: Basis) -> None:
    people = smith_cohort(137, 8, seed=1)
    whole = np.round(people.X * 1000)
    weights = BrainAgeDelta(n_components=8).fit(whole, np.round(people.age, 1)).weights_
    found = {c.check: c for c in reconstruction(weights, 137)}
    assert found["b2_identity"].outcome == found["b2sq_identity"].outcome == "holds"
    for name in ("explained_variance_identity", "n_from_spectrum", "n_from_means"):
        assert (found[name].outcome, found[name].value) == ("recovered", 137.0), name
    private = train_private(
        smith_cohort(500, 60, seed=2).X, smith_cohort(500, 60, seed=2).age, feature_names=basis.feature_names,
        basis=basis, epsilon=1.0, spend=lambda request: None,
    ).weights  # fmt: skip
    after = {c.check: c.outcome for c in reconstruction(private, 500, public_scale=True)}
    assert after["b2_identity"] == "holds"
    assert "recovered" not in after.values()
    documents = dataclasses.replace(weights, b1=weights.b1 + 0.3, gamma=weights.gamma - 0.2)
    noised = {c.check: c.outcome for c in reconstruction(documents, 137)}
    assert noised["b2_identity"] == noised["explained_variance_identity"] == "broken"
    assert math.isnan(variance_ratio(documents) or 0.0)
    assert {c.check: c.outcome for c in reconstruction(weights.round(), 137)}["b2_identity"] == "holds"


@given(st.integers(10, 4000), st.integers(100_001, 10_000_000))
@settings(max_examples=60, deadline=None)
def test_continued_fractions_give_the_denominator(n: int, total: int) -> None:
    lowest = n // math.gcd(n, total)
    got = denominator(total / n)
    assert got is None or got == lowest
    rest = lowest
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    assert got == lowest or rest == 1 or lowest < 10  # few digits (or a whole number) fit many fractions


@given(st.lists(st.integers(0, 9), min_size=2, max_size=30), st.lists(st.integers(0, 9), min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_auc_is_the_share_of_pairs(inside: list[int], outside: list[int]) -> None:
    a, b = np.array(inside, float), np.array(outside, float)
    pairs = (a[:, None] > b).mean() + 0.5 * (a[:, None] == b).mean()
    assert auc(a, b) == pytest.approx(pairs)
    low, high = auc_interval(a, b)
    assert 0 <= low <= auc(a, b) + 1e-9
    assert auc(a, b) - 1e-9 <= high <= 1
    assert (b > np.sort(b)[::-1][0]).mean() <= 0.01
    assert 0 <= tpr_at(a, b) <= 1


def test_intervals_hold_what_they_say() -> None:
    rng = np.random.default_rng(0)
    truth, held = max_auc(0.5), 0
    for _ in range(300):
        low, high = auc_interval(rng.normal(0.5, 1, 80), rng.normal(0, 1, 80))
        held += low <= truth <= high
    assert held / 300 > 0.91
    assert binomial_interval(0, 20)[0] == 0.0
    assert binomial_interval(20, 20)[1] == 1.0


def test_coins_are_coins() -> None:
    """Residuals that know nothing of membership: leaving pairs out finds nothing, on average exactly."""
    rng = np.random.default_rng(1)
    values = []
    for seed in range(10):
        inside = membership(60, 30, 16, rng)
        assert (inside.sum(axis=1) == 30).all()
        assert (inside.sum(axis=0) == 8).all()
        gaps = rng.normal(size=(16, 60))
        values.append(many_targets(leave_pair_out(gaps, inside), inside, seed).auc)
    assert abs(np.mean(values) - 0.5) < 0.02


def test_a_perfect_attack_is_certain() -> None:
    result = one_target(np.arange(50) + 100.0, np.arange(50) * 1.0)
    assert result.auc == result.tpr == 1.0
    assert result.auc_ci[1] <= 1.0


def test_weights_are_read_back(tmp_path: Path) -> None:
    people = smith_cohort(120, 6, seed=1)
    weights = BrainAgeDelta(n_components=3).fit(people.X, people.age).weights_
    (tmp_path / "w.json").write_text(json.dumps(weights.to_json()))
    again = Weights.load(tmp_path / "w.json")
    np.testing.assert_array_equal(again.delta(people.X, people.age), weights.delta(people.X, people.age))
    for text in ("{}", "[]", "nonsense", '{"a": 1}', '{"feature_names": ["a"], "x_mean": "b"}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match=r"bad\.json"):
            Weights.load(tmp_path / "bad.json")
    with pytest.raises(InputError, match="folded"):
        Weights.load(tmp_path, parts=True)


def test_weights_of_a_folder_predict_the_same(tmp_path: Path) -> None:
    from sacro_deltab.kinds.weights import documents as documents_of

    people = smith_cohort(120, 6, seed=1)
    conf = np.random.default_rng(0).normal(size=(120, 2))
    weights = BrainAgeDelta(n_components=3).fit(people.X, people.age, confounds=conf).weights_
    documents = documents_of(weights, "t", {})
    for document in [d for d in documents if d.name == "folded_weights"], documents:
        for one in document:
            (tmp_path / f"{one.name}.json").write_text(one.to_json())
        again = Weights.load(tmp_path, parts=True)
        got = again.predict_age(people.X, confounds=conf)
        np.testing.assert_allclose(got, weights.predict_age(people.X, confounds=conf), atol=1e-8)
    assert {c.check: c.outcome for c in reconstruction(again, 120)}["b2_identity"] == "holds"


def test_command(basis: Basis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.callback()(lambda: None)
    attack.register(app)
    for name, seed in (("in", 1), ("out", 2)):
        people = smith_cohort(60, 60, seed=seed)
        pd.DataFrame({"age": people.age}).to_csv(f"ages_{name}.csv", index=False)
        pd.DataFrame(people.X, columns=list(people.feature_names)).to_csv(f"idps_{name}.csv", index=False)
    basis.save("basis.json")
    inputs = ["attack", "--ages", "ages_in.csv", "--features", "idps_in.csv", "--shadows", "8"]
    shown = CliRunner().invoke(app, [*inputs, "--n-components", "10", "--out", "attack.json"])
    assert shown.exit_code == 0, shown.output
    assert "likelihood_ratio: AUC" in shown.output
    check_report(json.loads(Path("attack.json").read_text()))
    private = CliRunner().invoke(
        app, [*inputs, "--basis", "basis.json", "--n-components", "3", "--method", "moments", "--json"]
    )
    assert private.exit_code == 0, private.output
    assert json.loads(private.stdout)["bound"]["max_auc"] == pytest.approx(0.56646, abs=1e-4)
    people = smith_cohort(60, 60, seed=1)
    weights = BrainAgeDelta(n_components=10).fit(people.X, people.age).weights_
    Path("w.json").write_text(json.dumps(weights.to_json()))
    held = ["--held-out-ages", "ages_out.csv", "--held-out-features", "idps_out.csv", "--json"]
    own = CliRunner().invoke(app, [*inputs, "--n-components", "10", "--weights", "w.json", *held])
    assert json.loads(own.stdout)["subject"] == "weights"
    for wrong in (["--out", "attack.json"], held[:2], held, ["--shadows", "3"]):
        assert isinstance(CliRunner().invoke(app, [*inputs, *wrong]).exception, InputError)


@pytest.mark.parametrize(
    "change", [{"shadows": 7}, {"shadows": 4}, {"X": np.zeros((30, 3))}, {"age": np.zeros(5)}, {"rows": 30}]
)
def test_nonsense_is_refused(change: dict[str, Any]) -> None:
    people = smith_cohort(int(change.pop("rows", 60)), 5, seed=1)
    weights = BrainAgeDelta(n_components=2).fit(people.X, people.age).weights_
    call = {"X": people.X, "age": people.age, "trainer": plain_trainer(2), "shadows": 8} | change
    with pytest.raises(InputError):
        attack_report(weights, **call)


def test_a_report_that_is_none_is_refused(unprotected: Any) -> None:
    data = unprotected.to_json()
    for change in ({"stays": "outside"}, {"verdict": "safe"}, {"person": "P0001"}, {"attacks": []}, {"schema": None}):
        with pytest.raises(InputError, match="attack report"):
            check_report(data | change)


def test_a_report_may_say_that_no_attack_could_be_made(basis: Basis) -> None:
    people = smith_cohort(60, 60, seed=1)
    private = train_private(
        people.X, people.age, feature_names=people.feature_names, basis=basis, epsilon=1.0, spend=lambda request: None
    )
    data = not_run(private.weights, private.statement.to_json(), 60, "half of the ages are missing")
    check_report(data)
    assert "NO MEMBERSHIP TEST COULD BE MADE: half of the ages are missing" in data["words"][0]


@pytest.mark.soak
@pytest.mark.parametrize(("method", "n"), [("gradient", 200), ("moments", 200), ("gradient", 1000)])
def test_bound_at_full_size(method: str, n: int, basis: Basis) -> None:
    for seed in range(4):
        report = private_report(basis, smith_cohort(n, 60, seed=100 + seed), method, shadows=64)
        assert report.verdict == "within_bound"
