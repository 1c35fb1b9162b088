"""What rules can say besides lists of limits: alternatives, one fact against another; and how mistakes are shown."""

from itertools import product

import pytest
from rule_files import change, copy_rules

from sacro_deltab.rules import decide, load_base
from sacro_deltab.rules.describe import rule_sentence
from sacro_deltab.rules.digests import rule_digest
from sacro_deltab.rules.evaluate import Scope, evaluate
from sacro_deltab.rules.examples import run_examples
from sacro_deltab.rules.facts import Fact, Facts, Provider
from sacro_deltab.rules.loader import RuleSetProblems
from sacro_deltab.rules.mutations import mutations
from sacro_deltab.rules.solve import passing
from sacro_deltab.rules.strictness import Direction, overall, rule_changes

ANY = """
  - id: MP-90
    title: Feature means of few people need noise or a shared basis
    applies_to: [x_mean]
    when: {output.declared: {is: true}, any_of: [{site.count: {less_than: 500}}, {shape.length: {more_than: 10}}]}
    require: {any_of: [{n: {at_least: 300}}, {dp.applied: {is: true}, dp.label: {is: formal}}]}
    otherwise: review
    source: [DT-M4]
    examples:
      - {given: {output.declared: true, site.count: 499, shape.length: 1, n: 300}, expect: pass}
      - {given: {output.declared: true, site.count: 499, shape.length: 1, n: 299, dp.applied: false, dp.label: none},
         expect: review}
      - {given: {output.declared: true, site.count: 499, shape.length: 1, n: 299, dp.applied: true, dp.label: formal},
         expect: pass}
      - {given: {output.declared: true, site.count: 500, shape.length: 10}, expect: not_applicable}
      - {given: {output.declared: true, site.count: 500, shape.length: 11, n: 299, dp.applied: true, dp.label: none},
         expect: review}

  - id: MP-91
    title: As many people as at the node
    applies_to: [x_mean]
    require: {n: {at_least: fact n_node}}
    otherwise: review
    source: [DT-M4]
    examples:
      - {given: {n: 60, n_node: 60}, expect: pass}
      - {given: {n: 59, n_node: 60}, expect: review}
"""


@pytest.fixture(scope="module")
def law(tmp_path_factory):
    rules = copy_rules(tmp_path_factory.mktemp("language"))
    path = rules / "30-model-parameters.yaml"
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + "\n" + ANY, encoding="utf-8")
    return load_base(rules)


def test_alternatives_and_facts_hold_their_own_examples(law):
    mine = tuple(law.rule(i) for i in ("MP-90", "MP-91"))
    found = list(run_examples(law, mine))
    assert len(found) == 7
    assert [str(r) for r in found if not r.passed] == []


def test_they_read_as_sentences(law):
    said = rule_sentence(law, law.rule("MP-90"))
    assert "(the number of subjects is at least 300; or noise was added and the word for the noise is formal)" in said
    assert "is at least n_node" in rule_sentence(law, law.rule("MP-91"))


def test_a_missing_fact_never_counts_as_an_alternative_met(law):
    def effect(**facts):
        given = {
            name.replace("__", "."): Fact(name.replace("__", "."), v, Provider.COMPUTED) for name, v in facts.items()
        }
        return evaluate(Scope(law, Facts("x", "x_mean", given)), law.rule("MP-90"))

    known = {"output__declared": True, "site__count": 499, "shape__length": 1}
    assert effect(**known, n=300).met  # one alternative holds: the others are not asked
    lacking = effect(**known, n=299)
    assert [lack.fact for lack in lacking.lacks] == ["dp.applied", "dp.label"]
    assert effect(output__declared=True, shape__length=1).lacks  # nobody knows whether the rule speaks


def test_the_proof_knows_alternatives(law):
    """The solver against trying everything, for cases with and without a way through."""
    rule = law.rule("MP-90")
    grid = {
        "output.declared": (True, False), "site.count": (499, 500), "shape.length": (10, 11), "n": (299, 300),
        "dp.applied": (True, False), "dp.label": ("formal", "none"),
    }  # fmt: skip
    for fixed in product((True, False), (499, 500), (10, 11), (299, 300)):
        given = dict(zip(("output.declared", "site.count", "shape.length", "n"), fixed, strict=True))
        through = False
        for rest in product(grid["dp.applied"], grid["dp.label"]):
            facts = given | dict(zip(("dp.applied", "dp.label"), rest, strict=True))
            scope = Scope(law, Facts("x", "x_mean", {k: Fact(k, v, Provider.COMPUTED) for k, v in facts.items()}))
            found = evaluate(scope, rule)
            through = through or not found.applies or found.met
        label = Fact("dp.label", "none", Provider.COMPUTED)
        bound = _is(law, given | {"dp.label": label.value})
        assert (passing(law.facts, [c for c in bound if c.fact != "dp.label"], [rule]) is not None) == through
        hidden = passing(law.facts, bound, [rule])
        assert (hidden is None) == (given["output.declared"] and given["n"] == 299 and fixed[1:3] != (500, 10))


def _is(law, given):
    from sacro_deltab.rules.model import Condition

    place = law.rule("MP-90").place
    return [Condition(fact, "is", value, False, place) for fact, value in given.items()]


def test_one_alternative_more_is_looser(law):
    from dataclasses import replace

    rule = law.rule("MP-90")
    fewer = replace(rule, any_require=rule.any_require[:1])
    assert overall(rule_changes(rule, fewer)) is Direction.STRICTER
    third = replace(rule, any_require=(*rule.any_require, rule.any_when[0]))
    assert overall(rule_changes(rule, third)) is Direction.LOOSER
    assert overall(rule_changes(third, rule)) is Direction.STRICTER
    assert rule_digest(law, third) != rule_digest(law, rule)
    assert any("alternative 1 dropped" in m.what for m in mutations(law, rule))


def test_an_unknown_type_of_comparison_is_refused(law, tmp_path):
    rules = copy_rules(tmp_path)
    for limit, says in (
        ("fact nn", "'nn' is not a fact; did you mean 'n'?"),
        ("fact y.range_years", "cannot be compared: integer subjects and number years"),
        ("fact dp.label", "cannot be compared"),
    ):
        other = tmp_path / "other"
        other.mkdir(exist_ok=True)
        text = (rules / "30-model-parameters.yaml").read_text(encoding="utf-8")
        changed = text.replace("require: {n: {at_least: feature_minimum}}", f"require: {{n: {{at_least: {limit}}}}}", 1)
        assert changed != text
        (rules / "30-model-parameters.yaml").write_text(changed, encoding="utf-8")
        with pytest.raises(RuleSetProblems) as caught:
            load_base(rules)
        assert says in str(caught.value)
        (rules / "30-model-parameters.yaml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("wrong", "says", "caret"),
    [
        ("{n: {at_least: 30%}}", ": write 0.30", "30%"),
        ("{N: {at_least: 20}}", "no fact 'N'; did you mean 'n'?", "N: {"),
        ('{n: ">= 20"}', "write {at_least: 20}", '">= 20"'),
        ('{n: {at_least: "20"}}', ": write 20 without quotes", '"20"'),
    ],
)
def test_a_message_shows_the_line_with_a_caret_and_a_proposal(tmp_path, wrong, says, caret):
    rules = copy_rules(tmp_path)
    change(rules, "30-model-parameters.yaml", "require: {n: {at_least: feature_minimum}}", f"require: {wrong}")
    with pytest.raises(RuleSetProblems) as caught:
        load_base(rules)
    said = str(caught.value)
    assert says in said
    shown = said.splitlines()
    line = next(i for i, text in enumerate(shown) if text.rstrip().endswith("^"))
    assert shown[line - 1].index(caret, shown[line - 1].index("require")) == shown[line].index("^")


def test_a_rule_with_alternatives_judges(law):
    facts = Facts(
        "x", "x_mean", {"n": Fact("n", 59, Provider.COMPUTED), "n_node": Fact("n_node", 60, Provider.COMPUTED)}
    )
    found = [f for f in decide(law, facts).findings if "MP-91" in f.rules]
    assert [f.effect.value for f in found] == ["review"]
    assert "60" not in found[0].outside
