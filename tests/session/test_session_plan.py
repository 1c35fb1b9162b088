"""What came first does not decide; and an attacker that shares no code with the package finds nothing."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.linalg

from sacro_deltab.base.errors import InputError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis
from sacro_deltab.session.planning import Planner
from sacro_deltab.session.settling import settle

IDS = np.arange(400)
DELTAS = np.random.default_rng(12).normal(0.5, 4.0, 400)
SIZES = [70, 60, 50, 45, 40, 35, 30, 30, 29, 11]
WARD = pd.Series(np.repeat([*"abcdefghi", "few"], SIZES), name="ward")
ASK: dict[str, tuple[str, dict[str, Any]]] = {
    "table": ("group_means", {"values": DELTAS, "by": WARD, "name": "table"}),
    "n": ("n", {}),
    "mean": ("mean", {"values": DELTAS, "name": "mean"}),
}


def leaves(session: Any) -> dict[str, tuple[str, ...]]:
    """What leaves, with what is marked in it."""
    return {e.name: e.suppressed for e in session.entries if not e.kept_inside}


def test_the_same_outputs_in_any_order_end_alike(make_session: Any, place: Path) -> None:
    found = set()
    for number, order in enumerate(itertools.permutations(ASK)):
        session = make_session(cohort=f"order-{number}", people=[f"{number}-{i}" for i in IDS])
        for name in order:
            method, arguments = ASK[name]
            getattr(session, f"release_{method}")(**arguments)
        out = session.finalise(place / f"o{number}")
        assert len(pd.read_csv(out / "table.csv")) == len(SIZES)
        found.add(json.dumps(leaves(session), sort_keys=True))
    assert len(found) == 1
    assert {name: len(marked) for name, marked in json.loads(found.pop()).items()} == {
        "table": 2, "n_subjects": 0, "mean": 0,
    }  # fmt: skip


def test_everything_asked_for_at_once(make_session: Any) -> None:
    session = make_session()
    table, plot, number, mean = session.plan_outputs([ASK["table"], ("plot", {"of": "table"}), ASK["n"], ASK["mean"]])
    assert [e.status for e in (table, plot, number, mean)] == ["pass"] * 4
    assert [row[1] == "*" for row in plot.document.rows] == [row[1] == "*" for row in table.document.rows]
    with pytest.raises(InputError, match="no such output can be planned"):
        session.plan_outputs([("private_mean", {})])


def test_a_plot_follows_its_table(make_session: Any) -> None:
    """Drawn when one cell was marked; another has to go, so it is drawn again."""
    session = make_session()
    table = session.release_group_means(DELTAS, WARD, name="table")
    session.release_plot(table)
    assert table.suppressed == ("few",)
    assert session.release_n().status == "pass"
    now, plot = session.find("table"), session.find("table_plot")
    assert len(now.suppressed) == 2
    assert [r[0] for r in plot.document.rows if r[1] == "*"] == list(now.suppressed)
    assert {e.name for e in session.entries} == set(session.live.results.results)


def test_preview_says_what_a_plan_would_do(make_session: Any) -> None:
    session = make_session()
    session.release_group_means(DELTAS, WARD, name="table")
    assert session.preview("n").status == "pass"
    assert session.find("table").suppressed == ("few",)


def test_an_output_that_cannot_leave_says_what_stands_against_it(make_session: Any, place: Path) -> None:
    first = make_session()
    first.release_group_means(DELTAS, WARD, name="table")
    first.finalise(place / "first")
    second = make_session()
    entry = second.release_mean(DELTAS, name="mean")
    second.release_n()
    assert entry.kept_inside
    second.plan_outputs([("quantiles", {"values": DELTAS})])
    planner = Planner.of(second, second.state.wanted)
    (note,) = planner.against("mean", planner.best())
    assert "release" in note and "table left before and stands against mean" in note
    assert "asked for in one session, both would have left with" in note


# -- an attacker of numpy and scipy alone --------------------------------------------------------------------------


def small_group(groups: list[np.ndarray], below: int = 20) -> int | None:
    """The smallest 0/1 vector with 1 to `below` − 1 people in the span of some groups, by a null space in floats."""
    rows = np.array(groups, dtype=float)
    patterns, counts = np.unique(rows.T, axis=0, return_counts=True)
    patterns, counts = patterns[patterns.any(axis=1)], counts[patterns.any(axis=1)]
    small = np.flatnonzero(counts < below)
    null = scipy.linalg.null_space(patterns.T)  # what no told sum changes along
    best = None
    for size in range(1, 4):
        for chosen in itertools.combinations(small.tolist(), size):
            n = int(counts[list(chosen)].sum())
            if n < below and (not null.size or np.abs(null[list(chosen)].sum(axis=0)).max() < 1e-9):
                best = n if best is None else min(best, n)
    return best


def told(session: Any, asked: dict[str, dict[tuple[str, ...], list[tuple[str | None, np.ndarray]]]]) -> dict[Any, Any]:
    """Groups whose sums a reader has, by what is summed, from what the session prints now."""
    out: dict[Any, list[np.ndarray]] = {}
    for entry in session.entries:
        if entry.kept_inside or entry.name not in asked:
            continue
        for variables, groups in asked[entry.name].items():
            for key, people in groups:
                if key is None or key not in entry.suppressed:
                    out.setdefault(variables, []).append(people)
    return out


def mixed(rng: np.random.Generator, session: Any, outputs: int) -> dict[str, Any]:
    """Ask for random outputs; what each tells, by output, as the attacker reads it."""
    labels = np.repeat([*"abcdefghijk"], [50, 45, 40, 40, 35, 35, 30, 30, 30, 40, 25])[rng.permutation(400)]
    labels[rng.permutation(400)[: int(rng.integers(5, 19))]] = "few"
    site = pd.Series(labels, name="ward")
    delta, x = rng.normal(0.4, 4.0, 400), rng.normal(10.0, 2.0, 400)
    asked: dict[str, Any] = {}
    for number in range(outputs):
        kind, name = rng.choice(["table", "counts", "mean", "features", "cor", "two", "masked", "sd"]), f"o{number}"
        some = np.isin(labels, rng.permutation([*"abcdefghijk", "few"])[: int(rng.integers(2, 11))])
        everybody = np.ones(400, bool)
        people = some if rng.random() < 0.5 else everybody
        cells = [(label, labels == label) for label in dict.fromkeys(labels)]
        if kind == "table":
            session.release_group_means(delta, site, name=name)
            asked[name] = {("d",): cells}
        elif kind == "counts":
            session.release_counts(site, name=name)
            asked[name] = {("d",): cells}  # beside a table of means an N is as good
        elif kind in ("mean", "sd"):
            getattr(session, f"release_{kind}")(np.where(people, delta, np.nan), name=name)
            asked[name] = {("d",) if kind == "mean" else ("d", "d"): [(None, people)]}
        elif kind == "features":
            session.release_feature_summary(pd.DataFrame({"x": np.where(people, x, np.nan)}), name=name)
            asked[name] = {("x",): [(None, people)]}
        elif kind == "masked":
            session.release_feature_summary(pd.DataFrame({"f": np.where(some, 3 * delta, np.nan)}), name=name)
            asked[name] = {("d",): [(None, some)]}
        elif kind == "cor":
            session.release_correlation(delta, pd.DataFrame({"x": np.where(people, x, np.nan)}), name=name)
            asked[name] = {("d", "x"): [(None, people)]}
        else:
            session.release_correlation(delta, pd.DataFrame({"in": some.astype(float)}), name=name)
            asked[name] = {("d",): [(None, some)]}
    return asked


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(s, marks=pytest.mark.soak) for s in range(6, 60))])
def test_random_sessions_against_an_attacker_of_scipy_alone(make_session: Any, seed: int) -> None:
    rng = np.random.default_rng([seed, 17])
    session = make_session(cohort=f"mixed-{seed}", people=[f"{seed}-{i}" for i in IDS])
    asked = mixed(rng, session, int(rng.integers(3, 7)))
    for variables, groups in told(session, asked).items():
        assert small_group(groups) is None, (variables, {e.name: e.status for e in session.entries})
    before = leaves(session)
    if session.state.wanted:
        settle(session)  # what `finalise` does: never fewer than were said to leave
        assert len(leaves(session)) >= len(before)
        for groups in told(session, asked).values():
            assert small_group(groups) is None


def test_mean_features_are_mean_deltas_once_the_weights_are_out(make_session: Any) -> None:
    """Withheld: two diagnoses. Published: the weights, and the mean features and ages of a printed and a small one."""
    public, people = smith_cohort(300, 6, seed=1), smith_cohort(400, 6, seed=2)
    names = list(public.feature_names)
    basis = Basis.from_public(public.X, public.age, names, n_components=3, made_on="simulated")
    ages = pd.DataFrame({**{n: people.X[:, j] for j, n in enumerate(names)}, "age": people.age})
    some = ages.where(pd.Series(np.isin(WARD, ["a", "few"])), other=np.nan)
    found = {}
    for weights in (False, True):
        session = make_session(cohort=f"w-{weights}", people=[f"{weights}-{i}" for i in IDS], ages=people.age)
        model = session.train_private(people.X, people.age, feature_names=names, basis=basis, epsilon=0.5,
                                      adjacency="replace_one", membership_test=False)  # fmt: skip
        session.release_feature_summary(some, name="some")
        table = session.release_group_means(session.deltas(model, people.X, people.age), WARD, name="table")
        if weights:
            session.release_weights(model, only=["folded_weights"])
            assert any(e.type == "folded_weights" and not e.kept_inside for e in session.entries)
            settle(session)
        found[weights] = leaves(session)
        assert not table.kept_inside
    assert found[False]["table"] == ("few",)
    assert "some" not in found[True] or {"few", "a"} <= set(found[True].get("table", ("few", "a")))
