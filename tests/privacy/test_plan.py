"""The plan: from public quantities alone, in seconds, with the trainer's own choice, and plain when it is noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sacro_deltab.base.errors import InputError, PrivacyError
from sacro_deltab.base.resources import schema
from sacro_deltab.cli import plan
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis, sampler
from sacro_deltab.privacy.plan import planning
from sacro_deltab.privacy.plan.planning import n_for, plan_training

app = typer.Typer()
app.callback()(lambda: None)
plan.register(app)


@pytest.fixture(scope="module")
def usual() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "GRID", (100, 400, 1600))
        yield plan_training(500, 40, 5, epsilon=1.0, use_cache=False)


def test_what_one_epsilon_buys(usual: Any) -> None:
    by = {p.path: p for p in usual.paths}
    assert usual.choice == "gradient"
    assert by["gradient"].share > 0.85
    assert by["gradient"].correlation > by["node"].correlation + 0.1
    assert by["gradient"].error_years < usual.without_noise["error_years_of_the_mean_age"]
    assert usual.without_noise["error_years"] <= by["gradient"].error_years + 0.1
    assert by["gradient"].n_90 is not None
    assert by["gradient"].n_90 <= 500
    assert by["node"].n_90 == 1200
    assert by["gradient"].error_years < usual.null_rows["constant"]["error_years"]
    assert by["gradient"].with_no_noise > usual.null_rows["public_only"]["correlation"] - 0.2
    low, high = by["gradient"].with_no_noise_interval
    assert low <= by["gradient"].with_no_noise <= high
    assert by["gradient"].age_slope[0] <= 0.02 and by["gradient"].age_slope[1] >= -0.02
    assert set(by["moments"].noise_sd) == {"t", "q", "tq", "qq", "u", "ut", "uq", "people"}
    assert all(value > 0 for p in usual.paths for value in p.noise_sd.values())
    assert usual.advice.startswith("Useful")
    data = usual.to_json()
    json.dumps(data, allow_nan=False)
    jsonschema.validate(data, schema("plan"))
    assert data["choice"]["path"] == "gradient"
    assert data["do_not"] is False


def test_it_says_plainly_when_the_answer_is_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(planning, "GRID", (100, 1600))
    answer = plan_training(100, 20, 10, epsilon=0.1)
    assert answer.advice.startswith("Do not do this")
    assert answer.to_json()["do_not"] is True


def test_the_choice_is_the_trainers(usual: Any) -> None:
    from sacro_deltab.privacy.training import prepare

    basis = Basis.from_public(
        *(lambda p: (p.X, p.age, p.feature_names))(smith_cohort(300, 8, seed=1)), n_components=3,
        made_on="simulated people", age_range=(45, 75),
    )  # fmt: skip
    for n, adjacency in (
        (500, "zero_out_N_public"),
        (20_000, "zero_out_N_public"),
        (20_000, "add_remove"),
    ):
        people = smith_cohort(n, 8, seed=2)
        price = prepare(
            people.X, people.age, confounds=None, feature_names=people.feature_names, confound_names=None,
            bounds=None, basis=basis, epsilon=1.0, delta_dp=None, adjacency=adjacency, unit="person",  # type: ignore[arg-type]
            n_components=3, method="auto", registered=None, ruleset_bounds=None, outputs=(), options={},
        )[1]  # fmt: skip
        request = {**usual.request, "n": n, "adjacency": adjacency}
        pairs = ("with_no_noise_interval", "error_interval", "age_slope")
        told = {"with_no_noise": 1.0, **{name: [0.0, 1.0] for name in pairs}}
        stored = {
            "null": {},
            "plain": {"correlation": 1.0, "error_years": 1.0}, "trivial": 1.0, "people": "",
            "paths": {name: {"correlation": 1.0, "own": 1.0, "standard_error": 0.0, "error_years": 1.0, "curve": [],
                             "noise_sd": {}, "warnings": [], **told} for name in ("gradient", "moments", "node")},
        }  # fmt: skip
        plan = planning._build(request, stored)
        assert (plan.choice, plan.why) == (price.public["method"], price.public["why"])


def test_asked_again_it_answers_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(planning, "GRID", (100, 400))
    basis = Basis.from_public(
        *(lambda p: (p.X, p.age, p.feature_names))(smith_cohort(300, 12, seed=1)), n_components=3,
        made_on="simulated people", age_range=(45, 75),
    )  # fmt: skip
    first = plan_training(300, epsilon=1.0, basis=basis)
    assert "moments by age band" in first.people
    monkeypatch.setattr(planning, "_simulate", lambda *a, **k: pytest.fail("simulated again"))
    assert plan_training(300, epsilon=1.0, basis=basis).to_json() == first.to_json()
    for broken in ("broken", "[]", '{"plain": 1}', '{"plain": {}, "paths": []}'):
        next(tmp_path.rglob("plan-*.json")).write_text(broken)
        with pytest.raises(BaseException, match="simulated again"):
            plan_training(300, epsilon=1.0, basis=basis)


@pytest.mark.os_randomness
def test_the_answer_is_the_same_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan draws nothing from the operating system: no certified noise, and no other."""
    monkeypatch.setattr(planning, "GRID", (100, 400))
    monkeypatch.setattr(planning, "_DRAWS", 4)
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda *a: pytest.fail("certified noise"))
    answers = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002 (a seed set by anybody must not matter)
        answers.append(plan_training(150, 12, 3, epsilon=1.0, adjacency="add_remove", use_cache=False).to_json())
    assert answers[0] == answers[1]


def test_simulated_noise_is_as_large_as_the_trainers() -> None:
    """White box: (simulated release − truth)/σ, and that the trainer itself knows no other source."""
    from sacro_deltab.privacy import blocks
    from sacro_deltab.privacy.plan import paths as plan_paths

    layout = blocks.Layout(25, gram=True, count=True)
    people = smith_cohort(60, 30, seed=4)
    basis = Basis.from_public(people.X, people.age, people.feature_names, n_components=25, made_on="simulated people")
    other = smith_cohort(60, 30, seed=5)
    request = {"epsilon": 1.0, "delta_dp": 1e-6, "adjacency": "add_remove", "n_components": 25}
    job, price = plan_paths.priced(other.X, other.age, basis.feature_names, basis, None, "moments", request)
    scaling = plan_paths.scaling_of(job, float(basis.radius[-1]))
    scores = [job.scores(basis, 25)]
    truth = plan_paths.exact_sums(layout, scaling, scores, job.ages(), None)
    got = plan_paths._released(job, layout, scaling, scores, np.random.default_rng(3))
    parts = []
    for name in layout.names:
        unit = layout.unit(name) * scaling.factor(name)
        gap = (np.asarray(got.values[name]) - np.asarray(truth[name], dtype=float) * unit) / got.sd[name]
        parts.append(np.ravel(blocks.svec(gap) if name in blocks.SYMMETRIC else gap))
    square = np.concatenate(parts)
    assert abs((square**2).sum() / square.size - 1) < 0.35
    purse = plan_paths._SimulatedPurse(job.mu, job.reach, rng=np.random.default_rng(0))
    draws = purse.sum("x", np.zeros((1, 4000)), 1.0, 0.5)
    assert draws.std() == pytest.approx(purse.sd["x"], rel=0.05)
    assert price.public["method"] == "moments"


@given(st.lists(st.floats(0, 1.2), min_size=3, max_size=9), st.floats(0.3, 0.95))
@settings(max_examples=80, deadline=None)
def test_the_n_found_keeps_its_promise(shares: list[float], wanted: float) -> None:
    curve = [(100 * 2**k, share) for k, share in enumerate(shares)]
    found = n_for(curve, wanted)
    if shares[-1] < wanted:
        assert found is None
    else:
        assert found is not None
        assert all(share >= wanted for n, share in curve if n >= found)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"n": 5}, InputError), ({"n_features": None}, InputError), ({"n_components": 41}, InputError),
        ({"n_components": 0}, InputError), ({"epsilon": 0.0}, PrivacyError), ({"epsilon": float("nan")}, PrivacyError),
        ({"delta_dp": 0.5}, PrivacyError), ({"adjacency": "nearby"}, PrivacyError),
    ],
)  # fmt: skip
def test_nonsense_is_refused(call: dict[str, Any], error: type[Exception]) -> None:
    given_ = {"n": 500, "n_features": 40, "n_components": 5, "epsilon": 1.0} | call
    with pytest.raises(error):
        plan_training(**given_)


def test_command(usual: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "plan_training", lambda *a, **k: usual)
    arguments = ["plan", "--n", "500", "--features", "40", "--n-components", "5", "--epsilon", "1"]
    shown = CliRunner().invoke(app, [*arguments, "--plot", str(tmp_path / "plan.png")])
    assert shown.exit_code == 0, shown.output
    assert "<- chosen" in shown.output
    assert "σ per block" in shown.output
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    data = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert data["schema"] == "sacro_deltab/plan/1"
    again = CliRunner().invoke(app, [*arguments, "--plot", str(tmp_path / "plan.png")])
    assert isinstance(again.exception, InputError)


def test_with_a_basis_it_answers_for_the_trainers_components_and_people() -> None:
    """All paths on the same people, with the null rows: nothing has more than the model without noise."""
    people = smith_cohort(600, 12, seed=1)
    basis = Basis.from_public(
        people.X, people.age, people.feature_names, n_components=6, made_on="simulated people", age_range=(45, 75)
    )
    assert all(band.people >= 20 for band in basis.bands) and len(basis.bands) > 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "GRID", (400,))
        patch.setattr(planning, "_DRAWS", 4)
        patch.setattr(planning, "_SEARCH_DRAWS", 2)
        answer = plan_training(500, epsilon=1.0, basis=basis, use_cache=False)
    assert answer.request["n_components"] == 6
    assert {p.path for p in answer.paths} == {"gradient", "moments"}  # a basis tells nothing of what a node basis needs
    assert all(p.share <= 1.05 for p in answer.paths)
    assert set(answer.null_rows) == {"public_only", "constant"}
