"""The mark that says "fewer than the minimum": only where it is true, and the attacker knows what it says."""

import json

import numpy as np
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base import resources
from sacro_deltab.check.check import check_paths
from sacro_deltab.judging.judge import judge_output
from sacro_deltab.measure.linked import LinkedTables
from sacro_deltab.measure.numbers import PrintedCell
from sacro_deltab.outputs import OutputDocument
from sacro_deltab.rules import load_base
from sacro_deltab.rules.facts import facts_from_json
from sacro_deltab.session.folder import build_evidence
from sacro_deltab.session.settling import needs_plan, settle
from sacro_deltab.tables import TablePolicy, audit_pattern

TRUE = {"HC": 200, "AD": 60, "MCI": 50, "VD": 45, "FTD": 35, "LBD": 15, "PSP": 12}  # 27 people are marked
LIES = {"HC": 200, "AD": 60, "MCI": 50, "VD": 45, "FTD": 35, "CBD": 30, "LBD": 12}  # 12 are, and one group more


def law(folder, minimum=20, mark="<minimum"):
    rules = folder / "rules"
    rules.mkdir()
    for file in resources.rules_dir().glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        text = text.replace('suppression_mark: "*"', f'suppression_mark: "{mark}"')
        (rules / file.name).write_text(text.replace("minimum: {value: 20", f"minimum: {{value: {minimum}"), "utf-8")
    return rules


def released(place, sizes, **how):
    rng = np.random.default_rng(5)
    write_profile(place)
    dx = rng.permutation(np.repeat(list(sizes), list(sizes.values())))
    rules = law(place, **how)
    session = new_session(place, people=[f"P{i}" for i in range(len(dx))], rules=str(rules), draft=True)
    session.release_n()
    session.release_counts(by=dx, name="n_by_dx")
    session.release_group_means(np.round(rng.normal(0, 5, len(dx)), 6), by=dx, name="mean_by_dx")
    if needs_plan(session):
        settle(session)
    return session, rules


@pytest.mark.parametrize("minimum", [20, 30])
def test_the_mark_says_what_is_true_of_every_cell_that_bears_it(place, minimum):
    sizes = {**TRUE, "FTD": 55, "VD": 48} if minimum == 30 else TRUE
    sizes = {**sizes, "LBD": 26, "PSP": 22} if minimum == 30 else sizes
    session, rules = released(place, sizes, minimum=minimum)
    out = session.finalise(place / "outputs")
    table = (out / "n_by_dx.csv").read_text()
    assert f"LBD,below {minimum}" in table
    assert f"PSP,below {minimum}" in table
    assert table.count("below") == 2
    record = json.loads((out / "results.json").read_text())["results"]
    (mine,) = [r for r in record.values() if r["files"][0]["name"].startswith("n_by_dx")]
    assert f"cells marked below {minimum} are withheld" in mine["summary"]
    assert "it is the number of people, in every column" in (out / "mean_by_dx.json").read_text()
    report = check_paths([out], ruleset=rules, profile=place / "profile.yaml", ledger=place / "budget.db")
    said = [f.inside for o in report.outputs for f in o.findings if f.effect.value == "block"]
    assert not said


def test_no_cell_is_called_small_that_is_not(place, tmp_path_factory):
    """The star hides a complement; a mark that would lie of it keeps the table inside, so here the total stays."""
    star = tmp_path_factory.mktemp("star")
    session, _ = released(star, LIES, mark="*")
    (table,) = [e for e in build_evidence(session)["outputs"] if e["name"] == "n_by_dx"]
    assert table["complementary"]
    session, rules = released(place, LIES)
    leaving = {e.name: e for e in session.entries if e.status != "fail"}
    assert set(leaving) == {"n_by_dx", "mean_by_dx"}
    assert not any(e.complementary for e in leaving.values())
    judged = judge_output(load_base(rules), facts_from_json(table["facts"]), OutputDocument.from_json(table["raw"]))
    assert judged.withheld
    assert any("SC-06" in f.rules for f in judged.decision.findings)


def test_the_attacker_knows_what_the_mark_says():
    """Of two marked groups with 27 people he knows at most 19 of each, so at least 8."""
    numbers = load_base().parameters
    cells = [PrintedCell("t", k, np.arange(a, b)) for k, a, b in (("big", 0, 200), ("x", 200, 215), ("y", 215, 227))]
    whole = PrintedCell("n", "all", np.arange(227), "grand")
    seen = {}
    for mark in ("*", "below 20"):
        linked = LinkedTables(TablePolicy.from_parameters({**numbers, "suppression_mark": mark}))
        problem = linked.problem(None, (*cells, whole))
        gone = frozenset(c.id for c in cells[1:])
        seen[mark] = audit_pattern(problem, gone).n_interval[cells[1].id]
    assert seen["below 20"] == (8, 19)
    assert seen["*"][1] > 19 or seen["*"][0] < 8
