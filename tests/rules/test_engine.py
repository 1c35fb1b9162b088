"""The engine: default deny, missing facts, suppressed cells, merging, determinism, and attempts to talk it round."""

import json

import pytest
from facts_factory import cell, fact, honest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.findings import Effect
from sacro_deltab.rules import decide, decision_to_json, facts_required, load_ruleset
from sacro_deltab.rules.facts import Fact, Facts, Part, Provider

RULESET = load_ruleset()
TABLE = "delta_mean_by_diagnosis"


def table(*cells, **changes):
    base = honest(RULESET, TABLE, **changes)
    return Facts(base.output_name, TABLE, base.facts, tuple(cells))


def test_unknown_type_blocks():
    decision = decide(RULESET, Facts("x", "model_pickle"))
    assert decision.effect is Effect.BLOCK
    assert decision.findings[0].rules == ("AD-01",)


def test_no_facts_at_all_blocks_and_names_them():
    decision = decide(RULESET, Facts("x", "n_subjects"))
    assert decision.effect is Effect.BLOCK
    assert {"n", "egress.route", "output.declared"} <= set(decision.missing)
    told = [f for f in decision.findings if "is missing" in f.inside]
    assert all(("AD-02" in f.rules) == (f.effect is Effect.BLOCK) for f in told)
    (asked,) = [f for f in told if f.effect is Effect.REVIEW]
    assert asked.rules == ("AD-05",) and asked.asks == (RULESET.facts["egress.route"].ask,)


@pytest.mark.parametrize("output_type", sorted(RULESET.output_types))
def test_every_single_fact_is_missed(output_type):
    """No fact of an otherwise good output can be left out unnoticed, unless its rule did not apply."""
    full = honest(RULESET, output_type)
    for name in full.facts:
        less = Facts(full.output_name, output_type, {k: v for k, v in full.facts.items() if k != name}, full.parts)
        decision = decide(RULESET, less)
        if name in decision.missing:  # what TRE staff alone can say is asked of them; anything else blocks
            asked = bool(RULESET.facts[name].ask)
            least = Effect.REVIEW if asked else Effect.BLOCK
            assert decision.effect is min(decide(RULESET, full).effect, least, key=lambda e: e.rank)
        else:
            assert decision_to_json(decision) == decision_to_json(decide(RULESET, full))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", True),
        ("n", 500.0),
        ("n", "500"),
        ("n", -500),
        ("output.declared", 1),
        ("output.declared", "true"),
        ("largest_share", "0.01"),
        ("largest_share", -0.5),
        ("largest_share", 1.5),
        ("rounding.done", "yes"),
        ("output.format", "JSON"),
        ("acro.dominance_check", "Pass"),
        ("cohort.unit", "persons"),
        ("package.recoverable_cells", -1),
    ],
)
def test_a_value_of_the_wrong_kind_is_a_missing_fact(name, value):
    facts = honest(RULESET, "delta_mean").with_facts(Fact(name, value, Provider.COMPUTED))
    decision = decide(RULESET, facts)
    assert decision.effect is Effect.BLOCK
    assert name in decision.missing


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_epsilon_cannot_be_zero_or_negative(value):
    decision = decide(RULESET, honest(RULESET, "beta1", dp__epsilon=value))
    assert decision.effect is Effect.BLOCK


def test_not_a_number_never_becomes_a_fact():
    with pytest.raises(ValueError, match="finite"):
        Fact("n", float("nan"), Provider.COMPUTED)
    with pytest.raises(TypeError):
        Fact("n", [1, 2, 3], Provider.COMPUTED)  # type: ignore[arg-type]


def test_who_may_say_what():
    good = honest(RULESET, "delta_mean")
    for name, by in (
        ("n", Provider.DECLARED),
        ("largest_share", Provider.DECLARED),
        ("egress.route", Provider.DECLARED),
        ("egress.route", Provider.COMPUTED),
        ("ledger.pinned", Provider.DECLARED),
        ("ledger.pinned", Provider.COMPUTED),
        ("ledger.pinned", Provider.RECORDED),
    ):
        decision = decide(RULESET, good.with_facts(Fact(name, good.facts[name].value, by)))
        assert decision.effect is Effect.BLOCK, (name, by)
        assert name in decision.missing
    for name, by in (("n", Provider.RECORDED), ("n", Provider.ATTESTED), ("output.declared", Provider.ATTESTED)):
        assert decide(RULESET, good.with_facts(Fact(name, good.facts[name].value, by))).status == "pass"


def test_a_fact_filed_under_another_name_is_missing():
    good = honest(RULESET, "delta_mean")
    facts = Facts("x", "delta_mean", {**good.facts, "n": Fact("n_node", 500, Provider.COMPUTED)})
    assert "n" in decide(RULESET, facts).missing


def test_the_engine_works_out_completeness_itself():
    lie = honest(RULESET, "n_subjects", n=None).with_facts(
        Fact("evidence.complete", True, Provider.COMPUTED), Fact("output.known", True, Provider.COMPUTED)
    )
    assert decide(RULESET, lie).effect is Effect.BLOCK
    honest_one = honest(RULESET, "n_subjects").with_facts(Fact("evidence.complete", False, Provider.COMPUTED))
    decision = decide(RULESET, honest_one)
    assert decision.status == "pass"
    assert "AD-02" in decision.met


def test_one_count_for_the_whole_output_does_not_speak_for_its_cells():
    bare = [Part("cell", key, {}, 1.0) for key in ("AD", "HC")]
    facts = table(*bare).with_facts(
        *(
            fact(RULESET, n, v)
            for n, v in (("cell.n", 100), ("cell.largest_share", 0.01), ("cell.structural_zero", False))
        )
    )
    decision = decide(RULESET, facts)
    assert decision.effect is Effect.BLOCK
    assert "cell.n" in decision.missing


def test_a_table_without_cells_blocks():
    assert decide(RULESET, table()).effect is Effect.BLOCK


def test_two_cells_of_one_label_block():
    decision = decide(RULESET, table(cell(RULESET, "AD", 100), cell(RULESET, "AD", 100)))
    assert decision.effect is Effect.BLOCK


def test_parts_of_an_unknown_kind_block():
    strange = Part("subject", "1007", {}, 14.2)
    base = honest(RULESET, "delta_mean")
    decision = decide(RULESET, Facts("x", "delta_mean", base.facts, (strange,)))
    assert decision.effect is Effect.BLOCK


def test_a_suppressed_cell_is_out_of_reach():
    small = cell(RULESET, "HC", 3, cell__largest_share=0.9)
    decision = decide(RULESET, table(cell(RULESET, "AD", 100), cell(RULESET, "MCI", 90), small))
    assert decision.effect is Effect.SUPPRESS
    assert [f.target for f in decision.findings] == ["HC"]
    big = cell(RULESET, "HC", 30, cell__largest_share=0.9)
    decision = decide(RULESET, table(cell(RULESET, "AD", 100), cell(RULESET, "MCI", 90), big))
    assert decision.effect is Effect.REVIEW


def test_one_finding_a_cell_with_all_clauses():
    decision = decide(RULESET, table(cell(RULESET, "AD", 100), cell(RULESET, "HC", 3)))
    (finding,) = [f for f in decision.findings if f.target == "HC"]
    assert finding.rules == ("PR-02", "SS-03", "SC-01")
    assert finding.clauses == ("DT-G2", "DT-S3", "DT-C1")


def test_equal_requirements_on_an_output_are_one_finding():
    decision = decide(RULESET, honest(RULESET, "delta_mean", n=19))
    (finding,) = [f for f in decision.findings if "PR-01" in f.rules]
    assert finding.rules == ("PR-01", "SS-01")


def test_complementary_cells_are_suppressed_and_marked_as_such_inside():
    other = cell(RULESET, "MCI", 90, cell__complementary=True)
    decision = decide(RULESET, table(cell(RULESET, "AD", 100), other, cell(RULESET, "HC", 3)))
    marked = {a.part: a.rules for a in decision.actions if a.verb == "suppress"}
    assert marked == {"MCI": ("SC-02",), "HC": ("PR-02", "SS-03", "SC-01")}


def test_empty_by_definition_is_kept():
    none = cell(RULESET, "HC", 0, cell__structural_zero=True)
    decision = decide(RULESET, table(cell(RULESET, "AD", 100), cell(RULESET, "MCI", 90), none))
    assert decision.status == "pass"
    assert not [a for a in decision.actions if a.verb == "suppress"]


@pytest.mark.parametrize(("share", "effect"), [(0.3, Effect.ROUND), (0.3001, Effect.WITHHOLD)])
def test_withhold_is_strict(share, effect):
    decision = decide(RULESET, table(cell(RULESET, "AD", 100), table__suppressed_share=share))
    assert decision.effect is effect


def test_the_worst_effect_decides():
    facts = table(cell(RULESET, "AD", 100), cell(RULESET, "HC", 3), table__suppressed_share=0.5, egress__route="direct")
    decision = decide(RULESET, facts)
    assert decision.effect is Effect.BLOCK
    assert [f.effect.rank for f in decision.findings] == sorted(f.effect.rank for f in decision.findings)


def test_actions_come_in_phase_order():
    facts = honest(RULESET, "y_mean", n=60)
    verbs = [a.verb for a in decide(RULESET, facts).actions]
    assert verbs == ["round", "label"]


def test_p_values_are_said_to_be_below():
    actions = decide(RULESET, honest(RULESET, "p_value", value=0.0004)).actions
    assert [a.args["text"] for a in actions if a.verb == "label"] == ["< 0.001"]


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(RULESET.output_types)))
def test_same_facts_same_bytes_in_any_order(random, output_type):
    facts = honest(RULESET, output_type)
    names = list(facts.facts)
    random.shuffle(names)
    shuffled = Facts(facts.output_name, output_type, {k: facts.facts[k] for k in names}, facts.parts)
    one, two = (json.dumps(decision_to_json(decide(RULESET, f))) for f in (facts, shuffled))
    assert one == two


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(RULESET.output_types)),
    st.dictionaries(
        st.sampled_from(sorted(RULESET.facts)),
        st.one_of(st.booleans(), st.integers(-5, 600), st.floats(-2, 2, allow_nan=False), st.text(max_size=6)),
        max_size=12,
    ),
)
def test_random_facts_never_pass_and_never_raise(output_type, given_facts):
    facts = Facts("x", output_type, {k: Fact(k, v, Provider.COMPUTED) for k, v in given_facts.items()})
    decision = decide(RULESET, facts)
    assert decision.status != "pass"


def test_facts_required_is_an_upper_bound():
    for output_type in RULESET.output_types:
        missing = decide(RULESET, Facts("x", output_type)).missing
        assert set(missing) <= facts_required(RULESET, output_type)
