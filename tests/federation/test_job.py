"""Job files: read with line marks, forecast clause by clause, refused at a node before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from declarations import ATTEST
from federation_nodes import job_content, make_basis, people

from sacro_deltab.base.errors import InputError, RefusedError, SacroDeltabError
from sacro_deltab.federation.job import load_job
from sacro_deltab.federation.job_check import forecast
from sacro_deltab.ledger import open_ledger
from sacro_deltab.privacy.basis import Basis
from sacro_deltab.privacy.mechanisms import mu_of
from sacro_deltab.privacy.spend import BudgetLimits, SpendRequest
from sacro_deltab.rules import load_ruleset
from sacro_deltab.run.job_run import run_job
from sacro_deltab.run.plan import Plan


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    make_basis(folder / "basis.json")
    people("site-a").to_csv(folder / "people.csv", index=False)
    (folder / "attest.json").write_text(json.dumps(ATTEST))
    return folder


def content(home: Path) -> dict[str, Any]:
    found = job_content(Basis.load(home / "basis.json"))
    return {**found, "outputs": ["noised_moments", "folded_weights", "n_subjects"]}


def write(home: Path, data: dict[str, Any], name: str = "job.yaml") -> Path:
    path = home / name
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


def plan(home: Path, out: Path, **more: Any) -> Plan:
    base: dict[str, Any] = {
        "ages": home / "people.csv", "features": home / "people.csv", "basis": home / "basis.json",
        "ledger": str(out.parent / "budget.db"), "attest": home / "attest.json", "cohort": "site-a",
    }  # fmt: skip
    return Plan(out=out, **{**base, **more})


def say(_: str) -> None:
    """Progress is not looked at here."""


def test_a_job_is_forecast_clause_by_clause(home: Path) -> None:
    job = load_job(write(home, content(home)))
    found = {f.output: f for f in forecast(job, load_ruleset())}
    assert set(found) == {"job file", "noised_moments", "folded_weights", "n_subjects", "mean of delta by group"}
    assert all(f.verdict == "pass" for f in found.values())
    assert "DP-01" in found["noised_moments"].met
    assert found["noised_moments"].open_facts["ledger.epsilon_total"] == ("FB-02",)
    assert "cell.largest_share" in found["mean of delta by group"].open_facts


def test_what_will_be_blocked_is_said(home: Path) -> None:
    data = content(home)
    data["privacy"]["epsilon"] = 2.0
    found = {f.output: f for f in forecast(load_job(write(home, data)), load_ruleset())}
    assert found["noised_moments"].verdict == "fail"
    assert any("DP-01" in rules for rules, _, _ in found["noised_moments"].says)


def test_exact_tables_beside_an_add_remove_model_are_forecast_as_blocked(home: Path) -> None:
    data = content(home)
    data["privacy"]["adjacency"] = "add_remove"
    found = {f.output: f for f in forecast(load_job(write(home, data)), load_ruleset())}
    assert any("DP-29" in rules for rules, _, _ in found["mean of delta by group"].says)
    assert found["mean of delta by group"].verdict == "fail" and found["noised_moments"].verdict != "fail"


def test_shared_noise_costs_each_node_more(home: Path) -> None:
    data = content(home)
    data["privacy"] |= {"noise_model": "distributed", "delta_dp": 1e-6}
    job = load_job(write(home, data))
    assert job.node_epsilon == pytest.approx(1.45, abs=0.005)
    found = {f.output: f for f in forecast(job, load_ruleset())}
    assert found["noised_moments"].verdict == "fail", "more than the rules let one release spend"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(outputs=[]), "'outputs' must not be empty"),
        (lambda d: d["inputs"]["age"].update(unit="months"), "'unit' must be years"),
        (lambda d: d["model"].update(bounds_digest="ab" * 32), "either a basis_digest"),
        (lambda d: d["model"].update(method="gradient"), "releases no moments"),
        (lambda d: d["tables"].append({"by": "ward", "statistic": "mean"}), "no group of inputs"),
        (lambda d: d["tables"].append({"by": "age_band", "statistic": "mean"}), "needs width_years"),
        (lambda d: d["inputs"]["features"].append(dict(d["inputs"]["features"][0])), "stands twice"),
        (lambda d: d.update(epsilonn=1), "unknown key 'epsilonn'"),
        (lambda d: d.pop("expect"), "misses 'expect'"),
    ],
)
def test_faults_have_a_line(home: Path, change: Any, words: str) -> None:
    data = json.loads(json.dumps(content(home)))
    change(data)
    path = write(home, data, "bad.yaml")
    with pytest.raises(InputError) as caught:
        load_job(path)
    assert words in str(caught.value)
    assert "bad.yaml:" in str(caught.value)


def _spend(ledger: Path, epsilon: float) -> None:
    limits = BudgetLimits(epsilon_per_release=4.0, epsilon_total=4.0, delta_per_release=1e-6, delta_total=1e-3)
    mu = mu_of(epsilon, 1e-6)
    request = SpendRequest(
        mechanism="gaussian", epsilon=epsilon, delta_dp=1e-6, mu=mu, sigma=1 / mu, adjacency="zero_out_N_public",
        unit="person", outputs=("x",), kind="model", label="formal", n_public=500,
    )  # fmt: skip
    open_ledger(ledger).spend(request, partition="site-a", limits=limits, who="me", ruleset_sha256="0" * 64)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["rule_set"].update(sha256="ab" * 32), "asks for rule set"),
        (lambda d: d["inputs"]["features"].pop(), "not those of its basis"),
        (lambda d: d["inputs"]["features"][2].update(unit="cm"), "unit of feature"),
        (lambda d: d["inputs"].update(minimum_n=5000), "fewer than the 5000 people"),
        (lambda d: d["model"].update(basis_digest="ab" * 32), "digest differs"),
        (lambda d: d["inputs"].update(groups=["ward"], id_column="participant_id") or d.pop("tables"), "cannot honour"),
    ],
)
def test_a_node_that_cannot_honour_it_leaves_nothing(home: Path, tmp_path: Path, change: Any, words: str) -> None:
    data = json.loads(json.dumps(content(home)))
    change(data)
    with pytest.raises(SacroDeltabError) as caught:
        run_job(write(home, data, "other.yaml"), plan(home, tmp_path / "outputs"), say)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_feature(home: Path, tmp_path: Path) -> None:
    table = people("site-a").drop(columns="feature_3")
    table.to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(SacroDeltabError, match="feature_3"):
        run_job(
            write(home, content(home)),
            plan(home, tmp_path / "outputs", ages=tmp_path / "less.csv", features=tmp_path / "less.csv"),
            say,
        )
    assert {p.name for p in tmp_path.iterdir()} == {"less.csv"}


def test_a_spent_budget(home: Path, tmp_path: Path) -> None:
    _spend(tmp_path / "budget.db", 3.5)
    with pytest.raises(RefusedError, match="budget is spent"):
        run_job(write(home, content(home)), plan(home, tmp_path / "outputs"), say)
    assert not [p for p in tmp_path.iterdir() if not p.name.startswith("budget.db")]
    assert open_ledger(tmp_path / "budget.db").totals("site-a").epsilon_sum == 3.5


def test_what_the_job_fixes_cannot_be_said_again(home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fixes 'epsilon'"):
        run_job(write(home, content(home)), plan(home, tmp_path / "outputs", epsilon=0.5), say)


def test_a_node_releases_exactly_what_was_asked(home: Path, tmp_path: Path) -> None:
    done = run_job(write(home, content(home)), plan(home, tmp_path / "outputs"), say)
    types = {e.type for e in done.session.entries}
    assert types == {"noised_moments", "folded_weights", "n_subjects", "delta_mean_by_other"}
    assert (tmp_path / "outputs" / "noised_moments.csv").exists()
    assert any("sha256" in text for text in done.session.not_checked)
