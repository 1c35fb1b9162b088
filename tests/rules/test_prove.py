"""The law is held to what its clauses ask: proved, or shown by the case that gets through."""

import dataclasses
import random
import shutil

import pytest
from rule_files import change, copy_rules
from wide_mutations import changes_nothing, mutate_widely, rule_mutations

from sacro_deltab.rules import load_ruleset
from sacro_deltab.rules.engine import decide
from sacro_deltab.rules.facts import Fact, Facts, Part
from sacro_deltab.rules.own_tests import faults
from sacro_deltab.rules.prove import decides, gaps, idle, let_through, prove, rule_effect
from sacro_deltab.rules.requirements import Requirements, load_requirements
from sacro_deltab.rules.solve import passing

MP = "30-model-parameters.yaml"
OFF = "    status: deprecated\n    applies_to"


def test_every_requirement_holds(ruleset):
    proof = prove(ruleset)
    assert proof.requirements > 150
    assert not proof.gaps
    assert not proof.unasked


def test_each_rule_switched_off_is_noticed(ruleset):
    asked = load_requirements(ruleset)
    for rule in ruleset.rules:
        off = tuple(dataclasses.replace(r, status="deprecated") if r.id == rule.id else r for r in ruleset.rules)
        mine = tuple(one for one in asked.all if set(one.clauses) & set(rule.source))
        found = gaps(dataclasses.replace(ruleset, rules=off), Requirements(mine))
        assert any(rule.id in str(g) for g in found), rule.id


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (MP, "applies_to: [beta2, beta2sq]", "applies_to: [beta2sq]", "DT-M2.1: beta2:"),
        (MP, "otherwise: block", "otherwise: review", "DT-M1.1: beta1"),
        (MP, "source: [DT-M1]", "source: [DT-M2]", "only rules of other clauses do"),
        ("60-small-cells.yaml", "waivable: never", "waivable: by_dac", "DT-C1"),
        ("65-rounding.yaml", "decimal_places: 1", "decimal_places: 2", "DT-R1"),
        ("ruleset.yaml", "by: ledger, accept: [ledger, attested]", "by: declared", "may be said by"),
        ("ruleset.yaml", "interval_n: {value: 10", "interval_n: {value: 2", "interval_n"),
        ("ruleset.yaml", "beta1: {class: model_weight", "beta1: {class: record", "is of class record"),
    ],
)
def test_what_gets_through_is_shown(tmp_path, file, old, new, says):
    copy = copy_rules(tmp_path)
    change(copy, file, old, new)
    ruleset = load_ruleset(copy)
    found = [str(g) for g in gaps(ruleset, load_requirements(ruleset))]
    assert any(says in g for g in found), found


def test_a_case_that_gets_through_really_does(ruleset):
    """The engine agrees with the solver: for each rule that decides, its case has just that effect without it."""
    rng = random.Random(7)
    for rule in rng.sample([r for r in ruleset.rules if r.verb != "do" and not any(c.named for c in r.conditions)], 40):
        kind = min(rule.outputs)
        found = decides(ruleset, rule, kind)
        if found is None or any(" against " in name for name in found.values):
            continue
        facts = {
            name: Fact(name, value, min(ruleset.facts[name].accept, key=lambda p: p.value))
            for name, value in found.values.items()
        }
        parts = (Part(rule.for_each, "a", facts),) if rule.for_each else ()
        only = dataclasses.replace(ruleset, rules=(rule,))
        assert decide(only, Facts("x", kind, facts, parts)).effect is rule_effect(rule), rule.id


def test_a_rule_that_never_decides_changes_nothing(ruleset):
    one = next(r for r in idle(ruleset) if r.id == "SS-01")
    without = dataclasses.replace(ruleset, rules=tuple(r for r in ruleset.rules if r.id != one.id))
    assert let_through(ruleset, without) == []
    gone = dataclasses.replace(ruleset, rules=tuple(r for r in ruleset.rules if r.id != "SS-09"))
    assert [g.kind for g in let_through(ruleset, gone)] == ["delta_quantiles"]
    assert let_through(gone, ruleset) == []


def test_no_case_is_found_where_there_is_none(ruleset):
    rule = ruleset.rule("MP-09")
    assert passing(ruleset.facts, (), [rule]) is not None
    assert passing(ruleset.facts, (), [rule], rule.require[:1]) is None


def test_a_set_that_fails_its_own_tests_says_why(tmp_path):
    copy = copy_rules(tmp_path)
    assert faults(load_ruleset(copy)) == []
    change(copy, MP, "require: {n: {at_least: feature_minimum}}", "require: {n: {at_least: 40}}")
    assert {f.split(":")[0] for f in faults(load_ruleset(copy))} == {"an example fails", "a requirement does not hold"}


def test_without_requirements_a_switched_off_rule_is_noticed_still(tmp_path):
    copy = copy_rules(tmp_path)
    (copy / "requirements.yaml").unlink()
    change(copy, "40-summaries.yaml", "    applies_to: [delta_quantiles]", OFF + ": [delta_quantiles]")
    found = faults(load_ruleset(copy))
    assert len(found) == 1
    assert "SS-09: delta_quantiles: is switched off, and {n: " in found[0]


def test_a_sample_of_wide_changes_is_noticed(ruleset):
    """Of 200 changes drawn from all of those of rules; `make soak` tries every one."""
    asked = load_requirements(ruleset)
    rng = random.Random(3)
    drawn = rng.sample([(r, what, changed) for r in ruleset.rules for what, changed in rule_mutations(r)], 200)
    unnoticed = []
    for rule, what, changed in drawn:
        other = dataclasses.replace(ruleset, rules=tuple(changed if r.id == rule.id else r for r in ruleset.rules))
        mine = tuple(one for one in asked.all if set(one.clauses) & set(rule.source))
        if not gaps(other, Requirements(mine)) and not changes_nothing(ruleset, rule, changed):
            unnoticed.append(what)
    assert not unnoticed  # a change that is noticed by nothing and changes something


@pytest.mark.soak
def test_all_wide_changes_are_noticed(ruleset):
    report = mutate_widely(ruleset, load_requirements(ruleset))
    assert report.tried > 2000
    assert not report.survivors


@pytest.mark.parametrize("minimum", [10, 15, 30])
def test_the_minimum_changes_in_one_place(tmp_path, minimum):
    copy = copy_rules(tmp_path)
    change(copy, "ruleset.yaml", "minimum: {value: 20", f"minimum: {{value: {minimum}")
    ruleset = load_ruleset(copy)
    assert faults(ruleset) == []
    assert ruleset.parameters["min_n"] == minimum
    told = [r.title for r in ruleset.rules if "minimum" in {c.constant for c in r.conditions} and "20" in r.title]
    assert told == []
    shutil.rmtree(copy)
