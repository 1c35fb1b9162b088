"""Loading: errors as file:line:column, all at once, with what was meant; a broken set judges nothing."""

import re

import pytest
from rule_files import change, copy_rules, line_of

from sacro_deltab.base.errors import RuleSetError
from sacro_deltab.rules import load_ruleset
from sacro_deltab.rules.loader import RuleSetProblems

MP = "30-model-parameters.yaml"
PAST = "{given: {n: model_minimum - 1}, expect: block}"
REQUIRE = "require: {n: {at_least: model_minimum}}"
LATE = "when: {dp.delta: {at_most: one_over_n}}\n    " + REQUIRE
COMMA = "source: [DT-M1]\n    note: {means: distinct subjects, unrounded}"


def fails(folder):
    with pytest.raises(RuleSetProblems) as caught:
        load_ruleset(folder)
    return [str(p) for p in caught.value.problems]


def test_the_packaged_set_by_every_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = load_ruleset()
    assert load_ruleset("deltab-disclosure").sha256 == base.sha256
    assert load_ruleset(base.folder).sha256 == base.sha256
    copy = copy_rules(tmp_path)
    assert load_ruleset(copy).sha256 == base.sha256
    assert load_ruleset(copy / "ruleset.yaml").sha256 == base.sha256


def test_no_folder_here_stands_in_for_a_packaged_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = copy_rules(tmp_path).rename(tmp_path / "deltab-disclosure")
    change(mine, "50-age.yaml", "require: {band.width_years: {at_least: band_years}}",
           "require: {band.width_years: {at_least: 10}}")  # fmt: skip
    assert load_ruleset("deltab-disclosure").sha256 == load_ruleset().sha256
    assert load_ruleset("./deltab-disclosure").sha256 == load_ruleset(mine).sha256 != load_ruleset().sha256
    mine.rename(tmp_path / "mine")
    with pytest.raises(RuleSetError, match=r"\./mine"):
        load_ruleset("mine")


@pytest.mark.parametrize("name", ["deltab-disclosur", "nowhere/at/all"])
def test_no_such_rule_set(name):
    with pytest.raises(RuleSetError, match="no rule set"):
        load_ruleset(name)


def test_a_folder_without_a_rule_set(tmp_path):
    with pytest.raises(RuleSetError, match=r"ruleset\.yaml"):
        load_ruleset(tmp_path)


def test_the_digest_follows_every_byte(tmp_path):
    copy = copy_rules(tmp_path)
    before = load_ruleset(copy).sha256
    (copy / "layers").mkdir(exist_ok=True)
    (copy / "layers" / "more.yaml").write_text("x: 1\n")
    assert load_ruleset(copy).sha256 == before
    change(copy, MP, "β₁ needs at least", "β₁  needs at least")
    assert load_ruleset(copy).sha256 != before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (REQUIRE, "require: {m: {at_least: 100}}", "MP-01: 'm' is not a fact; did you mean 'n'?"),
        (REQUIRE, "require: {n: {at_lest: 100}}", "unknown key 'at_lest'; did you mean 'at_least'?"),
        (REQUIRE, "requires: {n: {at_least: model_minimum}}", "did you mean 'require'?"),
        (REQUIRE, "require: {n: {at_least: one_over_m}}", "no limit; did you mean 'one_over_n'?"),
        (REQUIRE, "require: {n: {at_least: true}}", "'at_least' must be a number or text"),
        (REQUIRE, "require: {n: {is: many}}", "n must be a whole number"),
        (REQUIRE, "require: {n: {at_least: modelminimum}}", "no limit; did you mean 'model_minimum'?"),
        (REQUIRE, 'require: {n: {at_least: "100"}}', "write 100 without quotes"),
        (REQUIRE, "require: {n: {at_least: 20.5}}", "a whole number"),
        (REQUIRE, "require: {n: {at_least: -20}}", "decides nothing"),
        (REQUIRE, "require: {n: {at_least: 30%}}", "write 0.30"),
        ("β₁ needs at least {model_minimum}", "β₁ needs at least {model_minimun}", "names no constant; did you mean"),
        (REQUIRE, "require: {dp.applied: {at_least: 1}}", "cannot be said of dp.applied"),
        (REQUIRE, "require: {cell.n: {at_least: 100}}", "needs for_each: cell"),
        (REQUIRE, LATE, "a named limit stands only in require"),
        ("otherwise: block", "otherwise: blok", "'otherwise' must be one of block, review; did you mean 'block'?"),
        ("otherwise: block", "otherwise: pass", "'otherwise' must be one of block, review"),
        ("otherwise: block", "forbid: egress", "exactly one verb; this one has require and forbid"),
        ("applies_to: [beta1]", "applies_to: [beta_1]", "'beta_1' is no output or group; did you mean 'beta1'?"),
        ("applies_to: [beta1]", "applies_to: []", "must not be empty"),
        ("source: [DT-M1]", "source: [DT-M0]", "no clause DT-M0"),
        ("source: [DT-M1]", "source: DT-M1", "'source' must be a list, not text"),
        ("source: [DT-M1]", "decision: [D-01]", "misses 'source'"),
        ("source: [DT-M1]", "source: [DT-M1]\n    severity: high", "unknown key 'severity'"),
        ("source: [DT-M1]", COMMA, "must be text, not a mapping"),
        (PAST, "{given: {n: 99}, expect: blocked}", "'expect' must be one of"),
        (PAST, "{given: {n: 99}, expect: suppress}", "is nothing this rule can do"),
        (PAST, "{given: {m: 99}, expect: block}", "'m' is not a fact"),
        (PAST, "{given: {n: many}, expect: block}", "n must be a whole number"),
        (PAST, "{given: {n: 99}}", "has either 'expect' or 'becomes'"),
        ("id: MP-01", "id: MP-1", "is not written as it must be"),
        ("id: MP-01", "id: MP-02", "this id is taken"),
        ("id: MP-01", "id: no", "is a boolean to some readers"),
    ],
)  # fmt: skip
def test_one_mistake(tmp_path, old, new, says):
    copy = copy_rules(tmp_path)
    change(copy, MP, old, new)
    found = fails(copy)
    assert any(says in p for p in found), found
    prefix = str(copy / MP) + ":"
    assert any(p.startswith(prefix) and p[len(prefix) :].split(":")[0].isdigit() for p in found), found


def test_the_line_is_the_right_one(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, MP, "require: {n: {at_least: feature_minimum}}", "require: {n: {at_leat: 50}}")
    line = line_of(copy, MP, "at_leat")
    assert any(p.startswith(f"{copy / MP}:{line}:19: MP-09: ") for p in fails(copy))


def test_many_mistakes_in_many_files_at_once(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, MP, "applies_to: [beta1]", "applies_to: [beta_1]")
    change(copy, MP, "require: {n: {at_least: feature_minimum}}", "require: {m: {at_least: 50}}")
    change(copy, "50-age.yaml", "source: [DT-A1]", "source: [DT-Z9]")
    change(copy, "decisions.yaml", "clauses: [DT-G1]", "clauses: [DT-G9]")
    found = fails(copy)
    assert len(found) == 4
    assert len({p.split(":")[0] for p in found}) == 3


def test_syntax_and_traps_are_told_before_anything_else(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, MP, "at_least: feature_minimum", "at_least: 1e2")
    change(copy, "50-age.yaml", "section:", "section: [")
    found = fails(copy)
    assert any("1.0e-5" in p for p in found)
    assert any("not YAML" in p for p in found)


@pytest.mark.parametrize("name", ["decisions.yaml", "sources.yaml"])
def test_a_missing_file(tmp_path, name):
    copy = copy_rules(tmp_path)
    (copy / name).unlink()
    assert any("the file is missing" in p for p in fails(copy))


def test_an_output_without_rules_of_its_own(tmp_path):
    copy = copy_rules(tmp_path)
    change(
        copy, "ruleset.yaml", "    beta1: {", "    beta9: {class: new_class, label: x, statbarn: none}\n    beta1: {"
    )
    assert any("'beta9' has no rule of its own" in p for p in fails(copy))


def test_a_parameter_whose_rule_says_no_number(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, "ruleset.yaml", "min_n: {constant: minimum", "min_n: {rule: SC-01, fact: n")
    assert any("SC-01 sets no number for it" in p for p in fails(copy))


def test_a_deprecated_rule_judges_nothing(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, MP, "  - id: MP-01\n", "  - id: MP-01\n    status: deprecated\n    replaced_by: MP-02\n")
    ruleset = load_ruleset(copy)
    assert "MP-01" not in [r.id for r in ruleset.rules_for("beta1")]


def test_a_new_rule_touches_yaml_only(tmp_path):
    from facts_factory import honest

    from sacro_deltab.rules import decide

    copy = copy_rules(tmp_path)
    with (copy / MP).open("a", encoding="utf-8") as file:
        file.write(
            "\n  - id: MP-24\n    title: A new rule\n    applies_to: [n_subjects]\n    require: {n: {at_least: 1000}}\n"
            "    otherwise: block\n    source: [DT-P1]\n    examples:\n      - {given: {n: 1000}, expect: pass}\n"
            "      - {given: {n: 999}, expect: block}\n"
        )
    ruleset = load_ruleset(copy)
    decision = decide(ruleset, honest(ruleset, "n_subjects"))
    assert any("MP-24" in f.rules for f in decision.findings)


def test_mistakes_of_every_kind_are_listed_in_one_run(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, MP, REQUIRE, "require: {m: {at_least: 100}}")  # a name
    change(copy, MP, "require: {n: {at_least: feature_minimum}}", "require: {n: {at_leat: 50}}")  # a shape
    change(
        copy, MP, "require: {residual_dof: {at_least: residual_minimum}}", "require: {residual_dof: {at_least: 1e1}}"
    )  # a value
    change(copy, "50-age.yaml", "section:", "section: [")  # no YAML at all
    found = fails(copy)
    assert len(found) == 4, found


def test_mistakes_of_the_text_name_their_rule_and_hide_no_other(tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, MP, REQUIRE, "require: {n: &x {at_least: 1e2}}")  # in MP-01
    change(copy, MP, "require: {n: {at_least: feature_minimum}}", "require: {m: {at_least: 50}}")  # in MP-09
    change(copy, "50-age.yaml", "    forbid: egress\n", "    forbid: *x\n    forbid: egress\n    waivabel: never\n")
    change(copy, "decisions.yaml", "  D-02:\n", '  D-02:\n    ask: "once more"\n')
    found = [p.removeprefix(f"{copy}/") for p in fails(copy)]
    said = {tuple(p.split(": ", 2)[1:]) for p in found}
    assert {rule for rule, _ in said} == {"MP-01", "MP-09", "AG-05", "D-02"}, found
    for what in ("anchors", "'1e2' is text", "'m' is not a fact", "aliases", "stands twice", "did you mean 'waivable'"):
        assert any(what in text for _, text in said), (what, found)
    assert all(re.match(r"[\w-]+\.yaml:\d+:\d+: ", p) for p in found)


def test_a_byte_order_mark_and_a_file_that_would_not_be_read_are_told(tmp_path):
    copy = copy_rules(tmp_path)
    path = copy / MP
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (copy / "99-more.yml").write_text("section: x\nrules: []\n")
    found = fails(copy)
    assert any("byte-order mark" in p and f"{MP}:1:1" in p for p in found)
    assert any("99-more.yml:1:1: is not read" in p for p in found)
