"""The shared basis and bounds files: made, saved, checked, refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import InputError, PrivacyError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis, PublicBounds
from sacro_deltab.privacy.basis_check import refuse_own
from sacro_deltab.privacy.statement import label_of


@pytest.fixture(scope="module")
def public():  # type: ignore[no-untyped-def]
    return smith_cohort(400, 12, seed=91)


@pytest.fixture(scope="module")
def basis(public) -> Basis:  # type: ignore[no-untyped-def]
    return Basis.from_public(public.X, public.age, public.feature_names, n_components=4, made_on="simulated people")


def test_scores_are_white_in_the_public_people(public, basis) -> None:  # type: ignore[no-untyped-def]
    scores = basis.white_scores(basis.standardise(public.X), 4)
    np.testing.assert_allclose(np.cov(scores.T, ddof=0), np.eye(4), atol=1e-9)
    norms = np.sqrt((scores**2).sum(axis=1))
    assert (norms <= basis.radius[-1]).mean() == pytest.approx(0.95, abs=0.005)
    fit = np.linalg.lstsq(scores - scores.mean(0), public.age - public.age.mean(), rcond=None)[0]
    np.testing.assert_allclose(basis.age_b1, fit, atol=1e-9)


def test_round_trip_keeps_every_bit(basis, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "basis.json"
    basis.save(path)
    again = Basis.load(path)
    assert again.digest == basis.digest
    assert again.components.tobytes() == basis.components.tobytes()
    assert again.bounds() == basis.bounds()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda d: d.update(centre=d["centre"][:-1]), None),
        (lambda d: d["centre"].__setitem__(0, 99.0), "digest"),
        (lambda d: d["components"][0].__setitem__(0, 2.0), "components"),
        (lambda d: d["components"].__setitem__(0, [1.0]), None),
        (lambda d: d.pop("made_on"), None),
        (lambda d: d.update(extra=1), None),
        (lambda d: d["scale"].__setitem__(0, 0.0), "scale"),
        (lambda d: d["scale"].__setitem__(0, "1"), "scale"),
        (lambda d: d.update(feature_names=d["feature_names"][:-1] + d["feature_names"][:1]), None),
    ],
)
def test_a_changed_file_is_refused(change, place, basis, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    data = basis.to_json()
    data = json.loads(json.dumps(data))
    change(data)
    path = tmp_path / "basis.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        Basis.load(path)
    if place:
        assert place in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "nonsense", '{"schema": NaN}', "\x00"])
def test_an_unreadable_file_is_an_error_with_a_next_step(text: str, tmp_path: Path) -> None:
    path = tmp_path / "basis.json"
    path.write_text(text)
    for load in (Basis.load, PublicBounds.load):
        with pytest.raises(InputError) as caught:
            load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(InputError):
        Basis.load(tmp_path / "absent.json")


def test_features_must_match_in_name_and_order(basis) -> None:  # type: ignore[no-untyped-def]
    names = list(basis.feature_names)
    basis.check_features(names)
    for wrong in (names[::-1], names[:-1], [*names[:-1], "other"]):
        with pytest.raises(PrivacyError):
            basis.check_features(wrong)


def test_a_basis_made_on_the_cohort_is_refused(public, basis) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PrivacyError, match="made on the cohort"):
        refuse_own(basis, public.X)
    shuffled = np.random.default_rng(0).permutation(public.X)
    with pytest.raises(PrivacyError):
        refuse_own(basis, shuffled)
    refuse_own(basis, smith_cohort(400, 12, seed=92).X)
    with pytest.raises(PrivacyError, match="agrees with the cohort"):
        refuse_own(basis, public.X[:-1])
    with pytest.raises(PrivacyError, match="one person's row"):
        refuse_own(replace(basis, centre=public.X[17]), public.X)


@pytest.mark.parametrize("size", [5, 10])
def test_disturbed_copies_and_bases_from_most_of_the_cohort_are_refused(size: int) -> None:
    people = smith_cohort(500, 40, seed=7)
    kept = np.random.default_rng(0).permutation(500)[: 475 if size == 5 else 425]

    def made(rows: Any) -> Basis:
        return Basis.from_public(
            people.X[rows], people.age[rows], people.feature_names, n_components=size, made_on="public volunteers"
        )

    whole = made(np.arange(500))
    disturbed = replace(whole, centre=whole.centre + 1e-3 * whole.scale * np.random.default_rng(1).normal(size=40))
    for basis in (disturbed, replace(disturbed, n_people=10**6), made(kept)):
        with pytest.raises(PrivacyError, match="agrees with the cohort"):
            refuse_own(basis, people.X)


def test_bases_from_other_people_are_not_refused() -> None:
    for size, seed in ((5, 8), (25, 9)):
        public = smith_cohort(500, 40, seed=seed)
        basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=size, made_on="others")
        for other in range(20):
            for people in (100, 2000):
                refuse_own(basis, smith_cohort(people, 40, seed=1000 + other).X)


def test_missing_constant_and_dependent_columns(public) -> None:  # type: ignore[no-untyped-def]
    X = np.column_stack([public.X, np.full(400, 7.0), public.X[:, 0] + public.X[:, 1]])
    X[3, 2] = np.nan
    names = [*public.feature_names, "constant", "sum"]
    made = Basis.from_public(X, public.age, names, n_components=5, made_on="simulated people")
    assert np.all(made.components[:, -2] == 0)
    with pytest.raises(InputError, match="independent components"):
        Basis.from_public(X, public.age, names, n_components=14, made_on="simulated people")


def test_more_features_than_people() -> None:
    people = smith_cohort(40, 200, seed=1)
    made = Basis.from_public(people.X, people.age, people.feature_names, n_components=6, made_on="simulated people")
    np.testing.assert_allclose(made.components @ made.components.T, np.eye(6), atol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"age": np.full(400, 50.0)}, {"made_on": " "}, {"feature_names": ["a"]}, {"age": np.full(399, 50.0)},
        {"X": np.full((400, 12), "x")},
    ],
)  # fmt: skip
def test_bad_public_people_are_refused(change: dict, public) -> None:  # type: ignore[no-untyped-def]
    call = {"X": public.X, "age": public.age, "feature_names": public.feature_names, "made_on": "people"} | change
    with pytest.raises(InputError):
        Basis.from_public(**call)


@pytest.mark.parametrize(
    "change",
    [
        {"age": (90, 40)}, {"age": (40,)}, {"age": (40, float("nan"))}, {"feature_z": 0}, {"feature_z": float("inf")},
        {"centre": (1.0,)}, {"centre": (1.0,), "scale": (0.0,)}, {"centre": (1.0, 2.0), "scale": (1.0,)},
        {"provenance": "trust me"}, {"confound_bounds": ((1.0, 0.0),)}, {"radius": -1.0},
        {"centre": (1.0,), "scale": (1.0,), "feature_names": ("a", "b")},
    ],
)  # fmt: skip
def test_nonsense_bounds_are_refused(change: dict) -> None:
    with pytest.raises(PrivacyError):
        PublicBounds(**change)


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 60), st.floats(61, 120), st.floats(0.1, 20))
def test_bounds_file_round_trip(tmp_path_factory, low: float, high: float, z: float) -> None:  # type: ignore[no-untyped-def]
    bounds = PublicBounds(age=(low, high), feature_z=z, centre=(0.1, 0.2), scale=(1.0, 3.0), confound_bounds=((0, 1),))
    path = tmp_path_factory.mktemp("bounds") / "bounds.json"
    bounds.save(path)
    assert PublicBounds.load(path).digest == bounds.digest
    assert PublicBounds.load(path).provenance == "unregistered"
    data = json.loads(path.read_text())
    data["feature_z"] = z + 1
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="digest"):
        PublicBounds.load(path)


def test_the_digest_is_of_the_numbers_not_of_the_claim() -> None:
    assert PublicBounds().digest == PublicBounds(provenance="ruleset").digest
    assert PublicBounds(age=(40, 91)).digest != PublicBounds().digest


def test_bounds_equal_to_the_extremes_warn_inside_only() -> None:
    bounds = PublicBounds(age=(41.5, 88.25))
    assert bounds.warn_if_data_extremes([41.5, 60, 88.25]) is not None
    assert bounds.warn_if_data_extremes([41.5, 60, 80]) is None
    assert bounds.digest == PublicBounds(age=(41.5, 88.25), provenance="ruleset").digest


def test_the_label_follows_provenance(basis) -> None:  # type: ignore[no-untyped-def]
    own = basis.bounds()
    plain = PublicBounds(age=(40, 90), feature_z=4.0)

    def label(bounds, registered=None, ruleset=None, digest=None):  # type: ignore[no-untyped-def]
        return label_of(bounds, own, registered=registered, ruleset_bounds=ruleset, basis_digest=digest)[0]

    assert label(own, lambda digest: digest == basis.digest, digest=basis.digest) == "formal"
    assert label(own, digest=basis.digest) == "heuristic"  # a basis that nobody registered is somebody's word
    assert label(own, lambda digest: digest == own.digest, digest=basis.digest) == "heuristic"
    assert label(plain) == "heuristic"
    assert label(plain.with_provenance("basis")) == "heuristic"  # said to be the basis's, but is not
    assert label(plain.with_provenance("ruleset")) == "heuristic"
    assert label(plain.with_provenance("ruleset"), ruleset=plain) == "formal"
    assert label(plain.with_provenance("ruleset"), ruleset=PublicBounds(age=(18, 100))) == "heuristic"
    assert label(own.with_provenance("ruleset")) == "heuristic"  # a rule set knows no feature
    registered = plain.with_provenance("registered_file")
    assert label(registered) == "heuristic"
    assert label(registered, registered=lambda digest: False) == "heuristic"
    assert label(registered, registered=lambda digest: digest == plain.digest) == "formal"
