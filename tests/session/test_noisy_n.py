"""Under add_remove only the noisy N is used; a changed private model is refused; rows taken as people are told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session

from sacro_deltab.base.errors import InputError, PrivacyError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.model import BrainAgeDelta
from sacro_deltab.privacy import Basis

N_FACTS = ("n", "n_node", "residual_dof")


@pytest.fixture(scope="module")
def basis() -> Basis:
    public = smith_cohort(600, 8, seed=1)
    return Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="public people")


def trained(session: Any, basis: Basis, n: int, **more: Any) -> tuple[Any, Any]:
    people = smith_cohort(n, 8, seed=2)
    names = list(people.feature_names)
    return session.train_private(people.X, people.age, feature_names=names, basis=basis, epsilon=0.5, **more), people


def n_facts(entries: list[Any]) -> dict[str, tuple[Any, ...]]:
    return {e.type: tuple(e.facts.get(name).value for name in N_FACTS) for e in entries}


@pytest.mark.parametrize("method", ["gradient", "moments"])
def test_facts_follow_the_noisy_count_alone(
    profile: Path, basis: Basis, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Two neighbouring cohorts on either side of a limit, with the noise that gives both the same noisy count."""
    from sacro_deltab.privacy import blocks, sampler

    exact = sampler.discrete_gaussian
    seen = []
    for n in (99, 101):
        noise = np.int64((100 - n) << blocks.GRID_BITS)

        def to_hundred(sigma: float, size: int, noise: np.int64 = noise) -> Any:
            drawn = exact(sigma, size)
            return np.full(size, noise, dtype=np.int64) if size == 1 else drawn

        monkeypatch.setattr(sampler, "discrete_gaussian", to_hundred)
        ids = [f"P{i:04d}" for i in range(n)]
        session = new_session(profile.parent, people=ids, cohort=f"cohort-{n}", ledger=profile.parent / f"{n}.db")
        model, _ = trained(session, basis, n, adjacency="add_remove", method=method)
        assert model.n_noisy == 100
        seen.append(n_facts(session.release_weights(model)))
    assert seen[0] == seen[1]
    assert seen[0]["beta1"] == (0, 0, 0)  # an N of 100 with this noise shows no minimum at all


@pytest.mark.parametrize("method", ["gradient", "moments"])
def test_the_minimum_of_a_public_n_is_decided_on_the_noised_count(
    profile: Path, basis: Basis, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """900 on the roster; whether 99, 101 or 60 of them have values is seen through the noise alone, or by a person."""
    from sacro_deltab.privacy import blocks, sampler

    exact, outside = sampler.discrete_gaussian, {}
    for n, noisy in ((99, 100), (101, 100), (60, 60), (900, 900), (60, 0)):
        noise = np.int64((noisy - n) << blocks.GRID_BITS)
        session = new_session(
            profile.parent, public=[basis], people=[f"P{i:04d}" for i in range(900)], cohort=f"c-{n}-{noisy}",
            ledger=profile.parent / f"{n}-{noisy}.db",
        )  # fmt: skip
        people, there = smith_cohort(900, 8, seed=2), np.arange(900) < n
        monkeypatch.setattr(
            sampler,
            "discrete_gaussian",
            lambda sigma, size, noise=noise: (
                np.full(1, noise) if size == 1 and sigma > 1e7 else np.zeros(size, dtype=np.int64)
            ),
        )
        model = session.train_private(
            np.where(there[:, None], people.X, np.nan), people.age, feature_names=list(people.feature_names),
            basis=basis, epsilon=1.0, method=method,
        )  # fmt: skip
        monkeypatch.setattr(sampler, "discrete_gaussian", exact)
        assert model.n_noisy == max(noisy, 1)
        entries = session.release_weights(model)
        beta1 = next(entry for entry in entries if entry.type == "beta1")
        asked = any("noised count cannot show" in reason for reason in beta1.reasons)
        assert noisy == 900 or not any(entry.status == "pass" for entry in entries)
        outside[n, noisy] = beta1.status, asked, any(e.type == "n_subjects" for e in entries)
        note = f"{n} of the 900 people of this training have an age and enough features"
        assert note in json.dumps(beta1.to_evidence()) and not any(note in reason for reason in beta1.reasons)
    assert outside == {
        (99, 100): ("review", True, False), (101, 100): ("review", True, False), (60, 60): ("review", True, False),
        (900, 900): ("review", False, True), (60, 0): ("fail", True, False),
    }  # fmt: skip


def test_exact_n_is_in_no_listed_file(profile: Path, basis: Basis, monkeypatch: pytest.MonkeyPatch) -> None:
    from sacro_deltab.privacy import blocks, sampler

    exact, n = sampler.discrete_gaussian, 4177
    noise = np.int64(50 << blocks.GRID_BITS)
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda s, size: exact(s, size) if size > 1 else np.array([noise]))
    session = new_session(profile.parent, people=[f"P{i:04d}" for i in range(n)])
    model, _ = trained(session, basis, n, adjacency="add_remove", method="moments")
    assert model.n_noisy == n + 50
    entries = [*session.release_weights(model), session.release_moments(model)]
    least = {e.facts.get("n_node").value for e in entries}
    assert least == {session.models[id(model)].n_least} and max(least) < model.n_noisy - 3 * 80
    with pytest.raises(InputError, match="N is not public"):
        session.release_n()
    folder = session.finalise(profile.parent / "out")
    listed = [folder / f["name"] for r in json.loads((folder / "results.json").read_text())["results"].values()
              for f in r["files"]]  # fmt: skip
    assert len(listed) > 10
    for path in [*listed, folder / "results.json"]:
        assert not re.search(rf"(?<![\w.]){n}(?![\w])", path.read_text(encoding="utf-8")), path.name


def test_no_add_remove_after_the_exact_n(make_session: Any, basis: Basis) -> None:
    session = make_session()
    session.release_n()
    with pytest.raises(PrivacyError, match="exact N"):
        trained(session, basis, 400, adjacency="add_remove")
    assert session.budget.totals_json()["epsilon_sum"] == 0


def test_a_changed_model_is_refused(make_session: Any, basis: Basis) -> None:
    session = make_session()
    model, people = trained(session, basis, 400)
    whole = session.deltas(model, people.X, people.age)
    assert session.model_origin(whole)["model.origin"].value in ("formal_release", "unprotected")
    raw = BrainAgeDelta(n_components=3).fit(people.X, people.age)
    kept = model.weights
    for name, value in (("weights", raw.weights_), ("weights", object()), ("statement", None)):
        before = getattr(model, name)
        object.__setattr__(model, name, value)
        with pytest.raises(PrivacyError, match="not those its training gave"):
            session.release_weights(model)
        with pytest.raises(PrivacyError, match="not those its training gave"):
            session.deltas(model, people.X, people.age)
        object.__setattr__(model, name, before)
    assert model.weights is kept
    assert session.release_weights(model, only=["beta1"])


def test_deltas_of_other_rows_are_no_formal_release(make_session: Any, basis: Basis) -> None:
    session = make_session(public=[basis])
    model, people = trained(session, basis, 400)
    assert model.statement.label == "formal"
    own = session.deltas(model, people.X, people.age)
    other = session.deltas(model, people.X - people.X.mean(axis=0), people.age)
    assert session.model_origin(own)["model.origin"].value == "formal_release"
    assert session.model_origin(other)["model.origin"].value == "unprotected"
    assert any("not those of the training" in text for text in session.not_checked)
    frame = pd.DataFrame(people.X, columns=list(people.feature_names))
    assert np.array_equal(session.deltas(model, frame.iloc[:, ::-1], people.age), own)
    with pytest.raises(InputError, match="not those of the model"):
        session.deltas(model, frame.rename(columns={frame.columns[0]: "other"}), people.age)


def test_rows_taken_as_people_are_told(profile: Path, basis: Basis) -> None:
    words = "rows taken as people (declared)"
    session = new_session(profile.parent, people=None)
    model, _ = trained(session, basis, 400)
    assert any(words in text for text in model.statement.not_covered)
    entry = session.release_weights(model, only=["beta1"])[0]
    assert words in json.dumps(entry.raw.to_data())
    folder = session.finalise(profile.parent / "out")
    assert words in (folder / "certificate.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("wrong", [3.7, "3", True, 2.0])
def test_components_are_whole_numbers(make_session: Any, basis: Basis, wrong: Any) -> None:
    session = make_session()
    with pytest.raises(InputError, match="whole number"):
        trained(session, basis, 400, n_components=wrong)
    assert session.budget.totals_json()["epsilon_sum"] == 0


def test_a_private_mean_beside_add_remove_noises_n_too(profile: Path, basis: Basis) -> None:
    session = new_session(profile.parent, public=[basis])
    model, people = trained(session, basis, 400, adjacency="add_remove")
    deltas = session.deltas(model, people.X, people.age)
    entry = session.release_private_mean(deltas, epsilon=0.5, model=model)
    assert entry.privacy is not None and entry.privacy["label"] == "formal"
    assert (entry.privacy["adjacency"], entry.privacy["n_public"]) == ("add_remove", None)
    assert entry.facts.get("n").value == entry.facts.get("n_node").value == session.models[id(model)].n_least
    assert entry.raw.about["noise_scale_years"] == pytest.approx(20 / (0.5 * 0.8))
    assert not any("scale" in reason for reason in entry.reasons)


def test_a_private_mean_is_that_of_the_privacy_module(make_session: Any, basis: Basis) -> None:
    session = make_session()
    model, people = trained(session, basis, 400)
    deltas = session.deltas(model, people.X, people.age)
    entry = session.release_private_mean(deltas, epsilon=1.0, model=model)
    assert entry.privacy is not None and entry.privacy["adjacency"] == "zero_out_N_public"
    assert entry.raw.about["noise_scale_years"] == pytest.approx(20 / 400 / 1.0)
    assert abs(entry.raw.rows[0][1] - float(np.clip(deltas, -20, 20).mean())) < 20 * 20 / 400 / 1.0


def test_a_training_that_cannot_show_the_minimum_is_refused_before_the_spend(make_session: Any, basis: Basis) -> None:
    session = make_session()
    with pytest.raises(PrivacyError, match=r"about 3\d\d people are needed to show that there are at least 100"):
        trained(session, basis, 400, adjacency="add_remove", expected_n=300)
    assert session.budget.totals_json()["epsilon_sum"] == 0
    trained(session, basis, 400, adjacency="add_remove", expected_n=400)
