"""What a session releases, refuses, notices and remembers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError, RefusedError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.measure.grouping import AgeBands
from sacro_deltab.privacy import Basis
from sacro_deltab.tables.solver import SolverError


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One live session for tests that only add to it."""
    place = tmp_path_factory.mktemp("shared")
    write_profile(place)
    return new_session(place)


@pytest.fixture
def values() -> Any:
    return np.random.default_rng(5).normal(0.4, 4.0, 400)


def halves(name: str = "sex", first: int = 200) -> pd.Series:
    return pd.Series(["F"] * first + ["M"] * (400 - first), name=name)


def test_rounding_marks_and_words(shared: Any, values: Any) -> None:
    mean = shared.release_mean(values, name="mean_here")
    assert mean.status == "pass"
    assert mean.document.rows[0][1] == round(float(values.mean()), 1)
    n = shared.release_n()
    assert (n.type, n.document.rows) == ("n_subjects", (("N", 400),))
    quantiles = shared.release_quantiles(values, (0, 2.5, 50, 100), name="some_quantiles")
    shown = dict(quantiles.document.rows)
    assert shown["0"] == shown["100"] == "*"
    assert shown["2.5"] != "*" and isinstance(shown["50"], float)
    assert "cells marked * are withheld" in quantiles.summary


def test_contributors_decide_not_rows(shared: Any, values: Any) -> None:
    """Bug log 4: a group of 50 rows with 2 values must not pass by its rows."""
    thin = values.copy()
    thin[2:50] = np.nan
    group = pd.Series(["thin"] * 50 + ["full"] * 350, name="arm")
    entry = shared.release_group_means(thin, group, name="thin_group")
    assert entry.kept_inside and entry.status == "fail"
    part = next(p for p in entry.facts.parts if p.key == "thin")
    assert part.facts["cell.n"].value == 2


def test_missing_labels_are_a_group_and_unobserved_categories_cells(shared: Any, values: Any) -> None:
    group = pd.Series(["a"] * 195 + ["b"] * 200 + [None] * 5, name="site_of_birth")
    entry = shared.preview("group_means", values, by=group)
    assert {p.key: p.facts["cell.n"].value for p in entry.facts.parts} == {"a": 195, "b": 200, "(missing)": 5}
    kinds = pd.Series(pd.Categorical(["a"] * 200 + ["b"] * 200, categories=["a", "b", "c", "d"]), name="kind")
    entry = shared.preview("group_means", values, by=kinds)
    assert [p.facts["cell.n"].value for p in entry.facts.parts] == [200, 200, 0, 0]
    assert entry.kept_inside  # two of four cells are empty: more than 30 %
    declared = shared.preview("group_means", values, by=kinds, structural_zeros=["c", "d"])
    assert not declared.kept_inside


def test_preview_records_nothing(shared: Any, values: Any) -> None:
    before = (len(shared.entries), len(shared.acro.results.results), len(shared.state.linked.cells))
    entry = shared.preview("group_means", values, by=halves("previewed"))
    assert entry.status in ("pass", "review") and entry.table is not None and entry.files == ()
    assert (len(shared.entries), len(shared.acro.results.results), len(shared.state.linked.cells)) == before
    with pytest.raises(InputError):
        shared.preview("private_mean", values, epsilon=1.0)
    with pytest.raises(InputError):
        shared.preview("secrets", values)


@pytest.mark.parametrize("error", [ZeroDivisionError, SolverError])
def test_a_check_that_raises_leaves_a_failed_record(
    shared: Any, values: Any, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    import sacro_deltab.session.recording as recording

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise error("inside detail 7")

    monkeypatch.setattr(recording, "judge_output", broken)
    entry = shared.release_sd(values, name=f"broken_sd_{error.__name__.lower()}")
    assert entry.status == "fail" and entry.kept_inside
    record = shared.acro.results.get(entry.name)
    assert record.status == "fail"
    assert "7" not in record.summary


def test_wrong_lengths_and_types_are_refused_without_a_record(shared: Any, values: Any) -> None:
    before = len(shared.acro.results.results)
    for bad in (values[:399], ["x"] * 400, np.zeros((400, 2))):
        with pytest.raises(InputError):
            shared.release_mean(bad)
    with pytest.raises(InputError, match="rows"):
        shared.release_group_means(values, halves().iloc[:300])
    with pytest.raises(InputError, match="percentiles"):
        shared.release_quantiles(values, (101,))
    with pytest.raises(InputError, match="nobody"):
        shared.release_quantiles(np.full(400, np.nan))
    with pytest.raises(InputError, match="title"):
        shared.release_mean(values, title="<b>")
    assert len(shared.acro.results.results) == before


def test_same_name_twice_gets_a_number(shared: Any, values: Any) -> None:
    first = shared.release_sd(values, name="twice")
    second = shared.release_sd(values, name="twice")
    assert (first.name, second.name) == ("twice", "twice_2")
    assert len({f for e in shared.entries for f in e.files}) == sum(len(e.files) for e in shared.entries)


def test_leverage_of_one_person_fails_a_regression(shared: Any, values: Any) -> None:
    """Bug log 22: a dummy that is 1 for one person returns that person's value."""
    dummy = np.zeros(400)
    dummy[7] = 1
    entry = shared.release_regression(values, pd.DataFrame({"dummy": dummy, "x": np.arange(400.0)}), name="leverage")
    assert entry.kept_inside and entry.n == 1
    fair = shared.release_regression(values, pd.DataFrame({"x": np.arange(400.0)}), name="fair_regression")
    assert fair.status == "review"
    assert {row[0] for row in fair.document.rows} == {"(intercept)", "x", "R squared"}


def test_correlations_and_small_p_values(shared: Any, values: Any) -> None:
    related = pd.DataFrame({"strong": values + np.random.default_rng(1).normal(0, 1, 400)})
    correlation, p = shared.release_correlation(values, related, name="strong")
    assert correlation.document.rows[0][1] == pytest.approx(0.97, abs=0.02)
    assert p.document.rows == (("strong", "below 0.001"),)


def test_plots_have_their_numbers_verdict(shared: Any, values: Any) -> None:
    table = shared.release_group_means(values, halves("plotted"), name="plotted")
    plot = shared.release_plot(table)
    assert plot.status == table.status
    assert plot.files == ("plotted_plot.png",)
    inside = shared.release_group_means(values, halves("tiny", 3), name="tiny")
    with pytest.raises(RefusedError, match="stay inside"):
        shared.release_plot(inside)


def test_unnoised_weights_fail(shared: Any) -> None:
    from sacro_deltab.model import BrainAgeDelta

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    model = BrainAgeDelta(n_components=3).fit(X, 60 + X[:, 0] * 5 + rng.normal(size=400))
    entries = shared.release_weights(model, only=["beta1", "folded_weights"])
    assert [e.status for e in entries] == ["fail", "fail"]
    with pytest.raises(InputError, match="parameter"):
        shared.release_weights(model, only=["everything"])


def test_notebook_forms_and_report(shared: Any, values: Any) -> None:
    shared.release_group_means(values, halves("reported", 5), name="reported")
    html = shared._repr_html_()
    assert "<script" not in html and "reported" in html
    assert "FAIL   reported" in shared.report()
    entry = shared.entries[0]
    assert entry.name in entry._repr_html_() and entry.title in str(entry)


def test_linked_tables_one_person_apart(shared: Any, values: Any, make_session: Any) -> None:
    """Bug log 20: the same table with one person removed gives that person's value."""
    session = make_session()
    assert session.release_group_means(values, halves("group"), name="first").status == "pass"
    without = values.copy()
    without[9] = np.nan
    again = session.release_group_means(without, halves("group"), name="again")
    assert again.kept_inside
    assert any("first" in note for note in again.notes_inside)
    shifted = pd.Series(["F"] * 9 + ["out"] + ["F"] * 190 + ["M"] * 200, name="shifted")
    assert session.release_counts(shifted, name="shifted_counts").kept_inside


def test_config_changes_are_noticed_and_told(make_session: Any, values: Any, place: Path) -> None:
    session = make_session()
    session.acro.config["safe_threshold"] = 1
    session.release_sd(values)
    session.acro.config["safe_threshold"] = 10
    session.release_mean(values)
    assert any("safe_threshold" in change for change in session.config_changes)
    folder = session.finalise(place / "outputs")
    evidence = json.loads((folder / "inside" / "evidence.json").read_text(encoding="utf-8"))
    assert evidence["session"]["acro_config_changes"] == session.config_changes
    records = json.loads((folder / "results.json").read_text(encoding="utf-8"))["results"]
    assert "acro.config was changed" in records["delta_mean"]["properties"]["session"]


def test_federated_sessions_and_strangers_are_refused(make_session: Any) -> None:
    import acro

    with pytest.raises(RefusedError, match="federated"):
        make_session(acro=acro.ACRO(federated=True))
    with pytest.raises(InputError, match=r"acro\.ACRO"):
        make_session(acro=object())
    with pytest.raises(InputError, match="a cohort id"):
        make_session(cohort="a b/c")


def test_two_sessions_do_not_touch_each_other(make_session: Any, values: Any, place: Path) -> None:
    first, second = make_session(cohort="one"), make_session(cohort="two", people=[f"Q{i}" for i in range(400)])
    first.release_sd(values)
    plot = place / "acro_artifacts"
    plot.mkdir()
    (plot / "histogram_0.png").write_bytes(b"\x89PNG\r\n\x1a\nrest")
    second.acro.results.add(status="review", output_type="histogram", properties={"method": "histogram"},
                            summary="review", output=[str(plot / "histogram_0.png")])  # fmt: skip
    second.release_mean(values)
    first.finalise(place / "first")
    folder = second.finalise(place / "second")
    assert (folder / "histogram_0.png").is_file()
    assert "delta_mean.csv" not in {p.name for p in (place / "first").iterdir()}


def test_records_that_would_break_the_viewer_stop_finalise(make_session: Any, values: Any, place: Path) -> None:
    session = make_session()
    session.release_sd(values)
    add = session.acro.results.add
    add(status="pass", output_type="table", output=[pd.DataFrame({"a": [1]})], properties={"x": float("nan")})
    with pytest.raises(InputError, match="NaN"):
        session.finalise(place / "outputs")
    session.acro.remove_output("output_1")
    add(status="pass", output_type="table", output=[pd.DataFrame({"a": [1]})], properties={"x": np.int64(1)})
    with pytest.raises(InputError, match="int64"):
        session.finalise(place / "outputs")
    session.acro.remove_output("output_2")
    add(status="pass", output_type="deltab", output=["nowhere.txt"])
    with pytest.raises(InputError, match="no file"):
        session.finalise(place / "outputs")
    session.acro.remove_output("output_3")
    assert session.finalise(place / "outputs").is_dir()
    assert not [p for p in place.iterdir() if p.name.startswith(".outputs")]


def test_a_killed_session_is_finished_from_its_journal(make_session: Any, values: Any, place: Path) -> None:
    from declarations import ATTEST, DECLARE

    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    killed = make_session()
    killed.release_sd(values)
    killed.release_group_means(values, AgeBands(np.linspace(45, 84.9, 400), 10))
    killed.release_group_means(values, halves("tiny", 4))
    dropped = killed.release_mean(values)
    killed.drop(dropped.name)
    with killed.journal.path.open("a") as handle:
        handle.write('{"step": "output", "entry": {"na')  # died while writing
    again = DeltabSession.resume(
        quiet_acro(), killed.journal.folder, people=[f"P{i:04d}" for i in range(400)], declare=DECLARE, attest=ATTEST,
        profile=place / "profile.yaml", ledger=place / "budget.db",
    )  # fmt: skip
    assert [(e.name, e.status) for e in again.entries] == [(e.name, e.status) for e in killed.entries]
    assert again.id == killed.id
    assert again.state.linked.cells.keys() == killed.state.linked.cells.keys()
    folder = again.finalise(place / "outputs")
    assert (folder / "delta_sd.json").is_file()


def test_differences_with_an_earlier_release_are_judged(make_session: Any, values: Any, place: Path) -> None:
    """A second session on the same people but one: a difference of one person is in reach."""
    first = make_session()
    first.release_group_means(values, halves("group"))
    first.finalise(place / "first")
    people = [f"P{i:04d}" for i in range(400)]
    second = make_session(people=people[1:])
    entry = second.release_group_means(values[1:], halves("group").iloc[1:])
    assert entry.kept_inside or entry.status != "pass"
    facts = entry.facts
    assert facts.facts["linked_release.any"].value is True
    assert facts.facts["linked_release.smallest_gap"].value == 1


def test_a_declaration_file_is_checked(make_session: Any, place: Path) -> None:
    from sacro_deltab.judging.said import read_said

    bad = place / "declare.json"
    for text, match in (
        ("{", "JSON"),
        ('{"schema": "x"}', "schema"),
        ('{"schema":"sacro_deltab/declare/1","role":"tre_staff","by":"me","facts":{}}', "signed as"),
        ('{"schema":"sacro_deltab/declare/1","role":"researcher","by":"me","facts":{"no.such":1}}', "no fact"),
        ('{"schema":"sacro_deltab/declare/1","role":"researcher","role":"researcher","by":"me","facts":{}}', "twice"),
    ):
        bad.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=match) as found:
            read_said(bad, "researcher", make_session().ruleset)
        assert str(found.value).startswith(str(bad))


def test_nobody_can_declare_what_is_measured(make_session: Any, values: Any) -> None:
    from declarations import DECLARE

    from sacro_deltab.judging.said import read_said

    session = make_session()
    session.declared = read_said({**DECLARE, "facts": {**DECLARE["facts"], "n": 5000}}, "researcher", session.ruleset)
    few = values.copy()
    few[12:] = np.nan
    entry = session.release_mean(few)
    assert entry.kept_inside
    assert entry.facts.facts["n"].value == 12


def test_private_training_and_its_weights(make_session: Any, place: Path) -> None:
    from sacro_deltab.cohort.simulate import smith_cohort
    from sacro_deltab.privacy.basis import Basis

    public, study = smith_cohort(300, 20, seed=1), smith_cohort(400, 20, seed=2)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="simulated")
    session = make_session(public=[basis])
    model = session.train_private(
        study.X, study.age, feature_names=study.feature_names, basis=basis, epsilon=1.0, n_components=3,
        membership_test=False,
    )  # fmt: skip
    assert model.statement.label == "formal"
    assert session.preview("weights", model, only=["beta1"])[0].status == "review"  # no membership test was attached
    with pytest.raises(InputError, match="no such file"):
        session.attach_attack_report("nowhere.json")
    (place / "attack.json").write_text('{"auc": 0.51}', encoding="utf-8")
    with pytest.raises(InputError, match="attack report"):
        session.attach_attack_report("attack.json")
    (place / "attack.json").write_text('{"log_id": "1", "attack_experiment_logger": {}}', encoding="utf-8")
    session.attach_attack_report("attack.json")
    entries = {e.type: e for e in session.release_weights(model)}
    assert entries["beta1"].status == "pass"
    assert entries["y_mean"].status == "pass"
    assert set(entries) >= {"beta1", "beta2", "beta2sq", "gamma", "gammasq", "pca_components", "x_mean", "x_std",
                            "y_mean", "ysq_mean", "ysq_slope", "folded_weights", "n_subjects"}  # fmt: skip
    deltas = session.deltas(model, study.X, study.age)
    noisy = session.release_private_mean(deltas, epsilon=0.5, model=model)
    assert noisy.status == "pass"
    assert noisy.privacy["label"] == "formal"
    folder = session.finalise(place / "outputs")
    assert (folder / "inside" / "attack.json").is_file()
    first = json.loads((folder / "beta1.json").read_text(encoding="utf-8"))
    assert first["about"]["privacy"] == "formal" and first["about"]["basis"] == basis.digest
    assert session.budget.ledger.orphans() == []
    folded = {row[0]: row[1:] for row in entries["folded_weights"].document.rows}
    z = (study.X - np.array([folded[f][0] for f in study.feature_names])) / np.array(
        [folded[f][1] for f in study.feature_names]
    )
    predicted = folded["(intercept)"][2] + z @ np.array([folded[f][2] for f in study.feature_names])
    assert np.abs(predicted - model.weights.predict_age(study.X)).max() < 0.5  # three figures


def test_budget_is_refused_when_spent(make_session: Any, values: Any) -> None:
    from sacro_deltab.base.errors import BudgetError

    session = make_session()
    for _ in range(4):
        session.release_private_mean(values, epsilon=1.0)
    with pytest.raises(BudgetError):
        session.release_private_mean(values, epsilon=1.0)
    assert session.release_sd(values, name="late").kept_inside  # used up: nothing more leaves


def test_what_was_made_of_an_output_goes_with_it(make_session: Any, place: Path, values: Any) -> None:
    session = make_session()
    table = session.release_group_means(values, halves("drawn"), name="drawn")
    session.release_plot(table)
    session.release_plot("drawn_plot")  # a picture of a picture
    session.release_correlation(values, pd.DataFrame({"f": np.arange(400) % 37 / 9.0}), name="cor")
    session.drop("drawn")
    assert [entry.name for entry in session.entries] == ["cor", "cor_p_f"]
    session.drop("cor")
    session.drop("cor_p_f")  # went along: naming it is no fault
    assert not session.entries
    with pytest.raises(InputError, match="no such output"):
        session.drop("never")


def test_a_picture_of_counts(make_session: Any, place: Path, values: Any) -> None:
    session = make_session()
    assert session.release_plot(session.release_counts(halves("counted"))).status == "pass"
    assert any(path.suffix == ".png" for path in session.finalise(place / "out").iterdir())


def test_the_public_n_is_a_number_that_every_reader_has(make_session: Any) -> None:
    """Under zero_out_N_public a withheld group is not the rest of a told N."""
    few = pd.Series(np.repeat(["a", "b", "c", "d", "e", "f", "g", "few"], [60, 60, 60, 60, 60, 60, 34, 6]), name="ward")
    public, people = smith_cohort(300, 6, seed=1), smith_cohort(400, 6, seed=2)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="simulated")
    for trains in (False, True):
        session = make_session(cohort=f"trains-{trains}", people=[f"{trains}-{i}" for i in range(400)])
        if trains:
            session.train_private(people.X, people.age, feature_names=list(public.feature_names), basis=basis,
                                  epsilon=0.5, membership_test=False)  # fmt: skip
        table = session.release_counts(few)
        assert table.status == "pass" and "few" in table.suppressed and len(table.suppressed) == 1 + trains
