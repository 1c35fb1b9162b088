"""What may leave says no number under a threshold and never which of two marked cells was small."""

import json
import re

import pytest
from facts_factory import cell, honest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.findings import Effect
from sacro_deltab.rules import decide, decision_to_json, explain, load_ruleset
from sacro_deltab.rules.facts import Fact, Facts, Part, Provider

RULESET = load_ruleset()
TABLES = sorted(t for t in RULESET.output_types if RULESET.cls(t) in ("subgroup_table", "count_table"))


def outside(facts):
    decision = decide(RULESET, facts)
    return json.dumps(decision_to_json(decision, "outside", ruleset=RULESET)) + explain(
        RULESET, decision, view="outside"
    )


def table(output_type, sizes, complementary=(), **changes):
    base = honest(RULESET, output_type, **changes)
    cells = tuple(
        cell(RULESET, key, n, **({"cell__complementary": True} if key in complementary else {}))
        for key, n in sizes.items()
    )
    return Facts("t", output_type, base.facts, cells)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TABLES), st.integers(0, 19), st.integers(0, 19))
def test_how_small_a_cell_is_cannot_be_told(output_type, one, two):
    assert outside(table(output_type, {"A": 200, "B": 150, "C": one})) == outside(
        table(output_type, {"A": 200, "B": 150, "C": two})
    )


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TABLES), st.integers(0, 19), st.integers(20, 400))
def test_primary_and_complementary_cells_cannot_be_told_apart(output_type, small, large):
    first = table(output_type, {"A": 200, "B": large, "C": small}, complementary={"B"}, table__suppressed_share=0.2)
    second = table(output_type, {"A": 200, "B": small, "C": large}, complementary={"C"}, table__suppressed_share=0.2)
    assert outside(first) == outside(second)
    both = table(output_type, {"A": 200, "B": small, "C": small}, table__suppressed_share=0.2)
    assert outside(first) == outside(both)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(TABLES), st.integers(0, 19))
def test_a_withheld_table_says_nothing_of_its_cells(output_type, small):
    text = outside(table(output_type, {"Rare disease": small, "B": 150}, table__suppressed_share=0.5))
    other = outside(table(output_type, {"Rare disease": 19, "B": 20}, table__suppressed_share=0.5))
    assert "Rare disease" not in text
    assert text == other or "PR-04" in text


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(RULESET.output_types)), st.integers(1, 19))
def test_a_small_n_is_never_said(output_type, n):
    marker = 0.0712345 + n / 1e9
    facts = honest(RULESET, output_type, n=n, largest_share=marker, idp__largest_share=marker, nodes__smallest_n=n)
    assert outside(facts) == outside(honest(RULESET, output_type, n=1, largest_share=0.05, nodes__smallest_n=1))


NUMBERS = [name for name, spec in RULESET.facts.items() if spec.type in ("integer", "number")]


@pytest.mark.parametrize("output_type", sorted(RULESET.output_types))
def test_no_value_of_any_fact_is_printed_outside(output_type):
    """Every number is given a value that stands nowhere in the policy; none of them may appear."""
    marks = {"integer": 7, "number": 0.0719}
    changed = {n.replace(".", "__"): marks[RULESET.facts[n].type] for n in NUMBERS}
    for private in (False, True):
        base = honest(RULESET, output_type, private=private, **changed)
        parts = tuple(Part(p.kind, p.key, _marked(p), 7.77123) for p in base.parts)
        text = outside(Facts("x", output_type, base.facts, parts))
        said = re.sub(r'"(rules|clauses|met|not_applicable|checked_inside)": \[[^]]*\]', "", text)
        assert not re.search(r"(?<![\d.\w-])(7|0\.0719|7\.77123)(?![\d.\w])", _policy_free(said)), said


def _marked(part):
    out = {}
    for name, f in part.facts.items():
        spec = RULESET.facts[name]
        value = {"integer": 7, "number": 0.0719}.get(spec.type, f.value)
        out[name] = Fact(name, value, f.by)
    return out


def _policy_free(text):
    # "line 7" of a document and gists are the policy's, not the output's.
    return "\n".join(line for line in text.split("\n") if ", line " not in line)


def test_results_of_raw_queries_are_one_finding_outside():
    facts = honest(RULESET, "delta_mean", largest_share=0.5, acro__dominance_check="fail")
    decision = decide(RULESET, facts)
    data = decision_to_json(decision, "outside", ruleset=RULESET)
    raw = [f for f in data["findings"] if "PR-03" in f["rules"]]
    assert len(raw) == 1
    assert "SX-02" in raw[0]["rules"]
    assert not {"PR-03", "SX-02"} & set(data["met"])
    one = outside(honest(RULESET, "delta_mean", largest_share=0.5))
    two = outside(honest(RULESET, "delta_mean", acro__dominance_check="fail"))
    assert one == two


def test_the_checker_sees_the_numbers():
    facts = table("delta_mean_by_sex", {"F": 200, "M": 150, "X": 7})
    decision = decide(RULESET, facts)
    inside = explain(RULESET, decision, facts=facts)
    assert "7" in inside
    assert "X" in inside
    assert decision.effect is Effect.SUPPRESS


def test_labels_of_cells_are_not_in_missing_fact_messages_outside():
    part = Part("cell", "Rare disease", {}, 1.0)
    base = honest(RULESET, "delta_mean_by_sex")
    text = outside(Facts("t", "delta_mean_by_sex", base.facts, (part,)))
    assert "Rare disease" not in text


def test_a_fact_by_the_wrong_person_is_named_without_its_value():
    facts = honest(RULESET, "n_subjects").with_facts(Fact("n", 7, Provider.DECLARED))
    assert "7" not in _policy_free(re.sub(r'"\w+": \[[^]]*\]', "", outside(facts))).replace("FD-", "")


def test_the_booklet_has_the_documents_tables_with_live_numbers(tmp_path):
    import re

    from rule_files import change, copy_rules

    from sacro_deltab.rules import load_ruleset
    from sacro_deltab.rules.booklet import booklet_data, ranked_decisions, render_booklet

    ruleset = load_ruleset()
    page = render_booklet(ruleset)
    assert "<script" not in page
    assert len(re.sub(r"<[^>]+>", " ", page).split()) < 4800  # about twelve pages
    rows = {row["label"]: row for row in booklet_data(ruleset)["table"]}
    assert rows["β₁ regression coefficients"]["minimum"] == "100"
    assert rows["Mean delta by sex"]["minimum"] == "20; 20 in each cell"
    assert len(booklet_data(ruleset)["decisions"]) == 10
    moved = [d["moved"] for d in ranked_decisions(ruleset)]
    assert moved[0] > 0
    assert moved == sorted(moved, reverse=True)
    copy = copy_rules(tmp_path)
    change(copy, "ruleset.yaml", "minimum: {value: 20", "minimum: {value: 30")
    rows = {row["label"]: row for row in booklet_data(load_ruleset(copy))["table"]}
    assert rows["Mean delta by sex"]["minimum"] == "30; 30 in each cell"
    (copy / "readings.json").unlink(missing_ok=True)
    weights = [d["weight"] for d in ranked_decisions(load_ruleset(copy))]  # no stored verdicts beside a copy
    assert weights == sorted(weights, reverse=True)


def test_pins_of_declared_facts_list_what_they_silence(tmp_path):
    from sacro_deltab.rules.checking import check_all

    path = tmp_path / "pins.yaml"
    path.write_text(
        "profile: {id: pins, title: x, ruleset: deltab-disclosure}\nattest: {output.declared: true}\n", encoding="utf-8"
    )
    said = "\n".join(check_all(None, layers=[str(path)]).lines())
    assert "pins output.declared, which is declared otherwise: silences AD-03" in said
