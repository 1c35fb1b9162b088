"""Outputs about nearly the same people are linked, whatever their kind, and the pair is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import ATTEST, DECLARE, new_session, write_profile

from sacro_deltab.base.errors import InputError, RefusedError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis

RNG = np.random.default_rng(31)
DELTAS = RNG.normal(0.6, 4.0, 400)
WITHOUT = np.where(np.arange(400) == 7, np.nan, DELTAS)
X = pd.DataFrame(RNG.normal(size=(400, 3)) * [1, 2, 3] + [0.01, 100, 2500], columns=list("abc"))
X_WITHOUT = X.copy()
X_WITHOUT.iloc[7] = np.nan
HALVES = pd.Series(["A"] * 200 + ["B"] * 200, name="half")
SHIFTED = pd.Series(["A"] * 201 + ["B"] * 199, name="shifted_half")

CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], str]] = {
    "features": (lambda s: s.release_feature_summary(X), lambda s: s.release_feature_summary(X_WITHOUT), "fail"),
    "features shifted": (lambda s: s.release_feature_summary(X), lambda s: s.release_feature_summary(X + 1), "review"),
    "feature and mean": (
        lambda s: s.release_mean(DELTAS), lambda s: s.release_feature_summary(pd.DataFrame({"f": WITHOUT})), "fail"
    ),
    "mean and feature": (
        lambda s: s.release_feature_summary(pd.DataFrame({"f": DELTAS * 2})), lambda s: s.release_mean(WITHOUT), "fail"
    ),
    "SDs": (lambda s: s.release_sd(DELTAS), lambda s: s.release_sd(WITHOUT), "fail"),
    "group SDs": (
        lambda s: s.release_group_sds(DELTAS, HALVES), lambda s: s.release_group_sds(DELTAS, SHIFTED), "fail"
    ),
    "SD and group SD": (
        lambda s: s.release_sd(DELTAS),
        lambda s: s.release_group_sds(WITHOUT, pd.Series(["all"] * 400, name="everybody")), "fail",
    ),
    "quantiles": (lambda s: s.release_quantiles(DELTAS), lambda s: s.release_quantiles(WITHOUT), "review"),
    "quantiles spread out": (
        lambda s: s.release_quantiles(DELTAS), lambda s: s.release_quantiles(DELTAS, (6, 26, 51)), "review"
    ),
    "correlations": (
        lambda s: s.release_correlation(DELTAS, X)[0],
        lambda s: s.release_correlation(X["a"], pd.DataFrame({"d": WITHOUT}))[0], "fail",
    ),
    "p-values": (
        lambda s: s.release_correlation(DELTAS, X[["a"]])[0],
        lambda s: s.release_correlation(DELTAS, X_WITHOUT[["a"]])[1], "fail",
    ),
    "regressions": (
        lambda s: s.release_regression(DELTAS, X), lambda s: s.release_regression(WITHOUT, X[["b", "a"]]), "fail"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One session; every test drops what it released."""
    place = tmp_path_factory.mktemp("pairs")
    write_profile(place)
    return new_session(place)


@pytest.fixture
def session(live: Any) -> Any:
    yield live
    for entry in list(live.entries):
        live.drop(entry.name)


@pytest.mark.parametrize("case", CASES)
def test_one_person_apart(session: Any, case: str) -> None:
    first, second, status = CASES[case]
    one = first(session)
    assert one.status == ("review" if one.type == "regression_table" else "pass")
    two = second(session)
    one, two = session.find(one.name), session.find(two.name)
    stays = one if one.kept_inside else two  # of two that tell of one person, the one that prints less
    assert stays.status == status
    assert any(one.name in note and two.name in note for note in stays.notes_inside)


def test_the_same_again_and_other_columns_are_no_pair(session: Any) -> None:
    for release in (
        lambda: session.release_feature_summary(X),
        lambda: session.release_feature_summary(X),
        lambda: session.release_feature_summary(pd.DataFrame(RNG.normal(size=(400, 3)), columns=list("abc"))),
        lambda: session.release_quantiles(DELTAS),
        lambda: session.release_quantiles(DELTAS),
        lambda: session.release_sd(DELTAS),
        lambda: session.release_mean(DELTAS),
        lambda: session.release_group_sds(DELTAS, HALVES),
        lambda: session.release_correlation(DELTAS, X)[0],
        lambda: session.release_correlation(DELTAS, X[["a"]])[0],
    ):
        entry = release()
        assert (entry.status, entry.notes_inside) == ("pass", ())


def test_a_feature_twice_in_one_table_without_a_person(session: Any) -> None:
    twice = pd.DataFrame({"a": X["a"], "again": X_WITHOUT["a"]})
    assert session.release_feature_summary(twice).status == "fail"


@pytest.mark.parametrize("copy", [DELTAS * 5, DELTAS + 1, -DELTAS, np.where(np.arange(400) < 12, 0.0, DELTAS * 3)])
def test_copies_of_printed_deltas_are_refused(session: Any, copy: Any) -> None:
    session.release_quantiles(DELTAS)
    for release in (session.release_mean, session.release_sd, session.release_quantiles):
        with pytest.raises(RefusedError, match=r"another unit|changed"):
            release(copy)


def test_what_was_blocked_or_dropped_counts_no_more(session: Any) -> None:
    session.release_mean(DELTAS, name="first")
    session.drop("first")
    assert session.release_mean(DELTAS * 2).status == "pass"


def test_close_quantiles_of_one_output_go_to_a_person(session: Any) -> None:
    assert session.release_quantiles(DELTAS, (50, 51)).status == "review"
    assert session.release_quantiles(DELTAS, (20, 80), name="far").status == "review"  # three together with the first


def test_deltas_wider_than_ages_are_refused(tmp_path: Path) -> None:
    write_profile(tmp_path)
    session = new_session(tmp_path, ages=np.linspace(45, 75, 400))
    assert session.release_mean(DELTAS).status == "pass"
    session.drop("delta_mean")
    with pytest.raises(RefusedError, match="spread wider"):
        session.release_mean(DELTAS * 5)


def test_a_later_session_knows_whose_numbers_left(make_session: Any, place: Path) -> None:
    first = make_session()
    first.release_mean(DELTAS)
    first.release_quantiles(DELTAS)
    first.release_feature_summary(X)
    first.finalise(place / "first")
    same = make_session()
    assert [same.release_mean(DELTAS).status, same.release_quantiles(DELTAS).status] == ["pass", "pass"]
    changed = np.where(np.arange(400) == 7, 90.0, DELTAS)
    second, third = make_session(), make_session()
    for entry in (second.release_mean(changed), third.release_quantiles(DELTAS * 3)):
        assert entry.status == "review"
        assert any("release" in note and entry.name in note for note in entry.notes_inside)
    entry = second.release_feature_summary(X_WITHOUT)
    assert entry.status == "fail" and entry.facts.facts["linked_release.smallest_gap"].value == 1
    other = second.release_feature_summary(X_WITHOUT**2)  # of another column: a person looks
    assert other.status == "review" and other.facts.facts["linked_release.smallest_gap"].value == 1


def test_pairs_are_known_after_a_kill(make_session: Any, place: Path) -> None:
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    killed = make_session()
    killed.release_feature_summary(X)
    killed.release_quantiles(DELTAS, name="again")
    killed.drop("again")
    killed.release_quantiles(DELTAS, name="again")
    people = [f"P{i:04d}" for i in range(400)]
    session = DeltabSession.resume(
        quiet_acro(), killed.journal.folder, people=people, declare=DECLARE, attest=ATTEST,
        profile=place / "profile.yaml", ledger=place / "budget.db",
    )  # fmt: skip
    assert [entry.name for entry in session.entries] == ["idp_summary", "again"]
    assert session.release_feature_summary(X_WITHOUT).status == "fail"
    assert session.release_quantiles(WITHOUT).status == "review"


def test_a_training_cannot_carry_values_out_as_its_own_deltas(tmp_path: Path) -> None:
    """Deltas of a private model's own people may be large for its noise, not for what was written into the ages."""
    public, study = smith_cohort(300, 6, seed=1), smith_cohort(400, 6, seed=2)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="simulated")
    write_profile(tmp_path)
    secret = np.where(np.arange(400) < 12, 1000.0, 0.0)
    names, features = list(public.feature_names), study.X + 1e6 * secret[:, None]
    session = new_session(tmp_path, people=[f"P{i}" for i in range(400)])
    with pytest.raises(InputError, match="outside 0 to 120 years"):
        session.train_private(study.X, study.age + secret, feature_names=names, basis=basis, epsilon=0.5)
    model = session.train_private(features, study.age, feature_names=names, basis=basis, epsilon=0.5)
    with pytest.raises(RefusedError):
        session.release_mean(session.deltas(model, features, study.age))
    honest = session.deltas(model, study.X, study.age)
    assert not session.models[id(model)].training.plain
    with pytest.raises(RefusedError):
        session.release_mean(honest * 1.5)


def test_a_function_of_the_deltas_without_a_person(session: Any) -> None:
    assert session.release_mean(DELTAS).status == "pass"
    assert session.release_mean(WITHOUT**2 / 10, name="squares").status == "review"
    assert session.release_mean(DELTAS**2 / 10, name="all_squares").status in ("fail", "review")


def test_a_blurred_feature_without_a_person(session: Any) -> None:
    session.release_feature_summary(X)
    blurred = X_WITHOUT + 1e-3 * RNG.normal(size=(400, 3))
    assert session.release_feature_summary(blurred - blurred.mean()).status == "fail"


def test_a_correlation_twice_in_one_output(session: Any) -> None:
    changed = X["a"].copy()
    changed[3] = 9.0
    for again in (X_WITHOUT["a"], changed):
        entry = session.release_correlation(DELTAS, pd.DataFrame({"a": X["a"], "again": again}), p_values=False)[0]
        assert entry.status == "fail" and entry.notes_inside
        session.drop(entry.name)


SITES = np.repeat([*"abcdefghij", "small"], [60, 50, 40, 40, 40, 40, 30, 30, 30, 26, 14])
SITE = pd.Series(SITES, name="ward")


@pytest.mark.parametrize("low", [0.0, 1.0])
@pytest.mark.parametrize("how", ["correlation", "p-value", "regression", "feature", "feature of zeros"])
def test_a_group_and_a_small_one_together_in_another_form(session: Any, how: str, low: float) -> None:
    """A table of means marks one site alone; another output is about that site with a printed one."""
    table = session.release_group_means(DELTAS, SITE)
    assert table.suppressed == ("small",) and not table.kept_inside
    both = np.isin(SITES, ["a", "small"])
    column = pd.DataFrame({"both": np.where(both, 1 - low, low), "age": RNG.uniform(45, 85, 400)})
    masked = pd.DataFrame({"f": np.where(both, DELTAS, 0.0 if how == "feature of zeros" else np.nan)})
    entry = {
        "correlation": lambda: session.release_correlation(DELTAS, column[["both"]])[0],
        "p-value": lambda: session.release_correlation(DELTAS, column[["both"]])[1],
        "regression": lambda: session.release_regression(DELTAS, column),
        "feature": lambda: session.release_feature_summary(masked),
        "feature of zeros": lambda: session.release_feature_summary(masked),
    }[how]()
    now = session.find(table.name)
    if how.startswith("feature"):  # in both forms: the table marks both sites, or only one of the two leaves
        assert entry.kept_inside or now.kept_inside or {"a", "small"} <= set(now.suppressed)
    else:
        assert entry.status != "pass" or now.status != "pass"
        assert entry.kept_inside or now.kept_inside or {"a", "small"} <= set(now.suppressed)


def test_honest_statistics_beside_the_same_table_leave(session: Any) -> None:
    assert session.release_group_means(DELTAS, SITE).suppressed == ("small",)
    holes = X.mask(RNG.uniform(size=X.shape) < 0.02)  # a few people miss a feature
    for entry in (*session.release_correlation(DELTAS, holes), session.release_feature_summary(holes)):
        assert entry.status == "pass" and entry.notes_inside == ()


def test_three_feature_summaries(session: Any) -> None:
    """Everybody, two sites, and all the rest but the small one: no two are close, the three are."""
    one, small = np.isin(SITES, ["a", "c"]), SITES == "small"
    for name, keep in (("all", ~small | small), ("two", one), ("rest", ~one & ~small)):
        session.release_feature_summary(X.where(pd.Series(keep), other=np.nan), name=name)
    inside = [entry for entry in session.entries if entry.kept_inside]
    assert len(inside) == 1 and session.find("all").status == "pass"
    assert any("all" in note and "two" in note and "rest" in note for note in inside[0].notes_inside)


def test_numbers_of_earlier_sessions_are_rows_too(make_session: Any, place: Path) -> None:
    both = pd.DataFrame({"both": np.isin(SITES, ["a", "small"]).astype(float)})
    first = make_session()
    first.release_correlation(DELTAS, both)
    first.release_feature_summary(X, name="everybody")
    first.release_feature_summary(X.where(pd.Series(np.isin(SITES, ["a", "c"])), other=np.nan), name="two")
    first.finalise(place / "first")
    second = make_session()
    assert second.release_feature_summary(X.where(pd.Series(~np.isin(SITES, ["a", "c", "small"])))).status == "fail"
    table = second.release_group_means(DELTAS, SITE)
    assert {"a", "small"} <= set(table.suppressed) or table.kept_inside
