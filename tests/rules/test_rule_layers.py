"""Profiles tighten only; waivers lower one block to review, for one output, until they end."""

from datetime import date

import pytest
from facts_factory import honest
from rule_files import change, copy_rules

from sacro_deltab.base.errors import RuleSetError
from sacro_deltab.base.findings import Effect
from sacro_deltab.rules import decide, load_ruleset, load_waivers
from sacro_deltab.rules.facts import Fact, Provider
from sacro_deltab.rules.loader import RuleSetProblems
from sacro_deltab.rules.ruleset_diff import diff
from sacro_deltab.rules.strictness import Direction, overall, rule_changes
from sacro_deltab.rules.waivers import states

BASE = load_ruleset()
HEAD = "profile: {id: site, title: A site, ruleset: deltab-disclosure, decided_by: null}\n"


def profile(tmp_path, text, head=HEAD):
    path = tmp_path / "site.yaml"
    path.write_text(head + text, encoding="utf-8")
    return path


def tighten(rule, what):
    return f"tighten:\n  - {{rule: {rule}, {what}, because: why}}\n"


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ("MP-10", "require: {n: {at_least: 30}}"),
        ("DP-04", "require: {dp.sigma: {at_least: gaussian_sigma_classical}}"),
        ("PR-04", "otherwise: block"),
        ("SS-07", "when: {site.count: {less_than: 6}}"),
        ("AG-01", "round: {to_nearest: 2}"),
        ("RD-10", "round: {decimal_places: 0}"),
        ("RD-02", "round: {decimal_places: 0}"),
        ("DP-05", "require: {dp.adjacency: {is_one_of: [replace_one]}}"),
        ("PR-01", "waivable: never"),
        ("DP-01", "require: {dp.epsilon: {at_most: 0.5}}"),
        ("MP-01", "require: {shape.length: {at_most: 20}}"),
    ],
)
def test_tightening_is_accepted(tmp_path, rule, what):
    tightened = load_ruleset(profile=profile(tmp_path, tighten(rule, what)))
    assert overall(rule_changes(BASE.rule(rule), tightened.rule(rule))) is Direction.STRICTER
    assert tightened.sha256 == BASE.sha256
    assert tightened.profile.id == "site"


@pytest.mark.parametrize(
    ("rule", "what", "says"),
    [
        ("MP-10", "require: {n: {at_least: 10}}", "loosens MP-10: n at least 20 → n at least 10"),
        ("MP-10", "require: {n: {at_most: 10}}", "does not only tighten MP-10"),
        ("MP-10", "require: {n: {at_least: 20}}", "changes nothing in MP-10"),
        ("MP-10", "when: {n: {at_least: 1000}}", "loosens MP-10"),
        ("MP-10", "when: {n: {less_than: 1000}}", "loosens MP-10"),
        ("SC-01", "when: {cell.n: {less_than: 10}}", "cell.n belongs to the constant minimum"),
        ("SC-01", "when: {cell.n: {less_than: minimum}, cell.structural_zero: {is: true}}", "SC-01"),
        ("SC-03", "when: {table.suppressed_share: {more_than: 0.2}}", "belongs to the constant withheld_above"),
        ("SS-03", "when: {cell.n: {less_than: 30}}", "cell.n belongs to the constant minimum"),
        ("RD-04", "round: {to_nearest: 10}", "rounds by the constant count_base"),
        ("RD-02", "round: {decimal_places: 2}", "loosens RD-02"),
        ("RD-04", "when: {n: {less_than: 50}}", "does not only tighten RD-04"),
        ("DP-02", "require: {dp.delta: {at_most: one_over_n}}", "loosens DP-02"),
        ("DP-04", "require: {dp.sigma: {at_least: laplace_scale}}", "does not only tighten DP-04"),
        ("DP-05", "require: {dp.adjacency: {is_one_of: [zero_out_N_public, none]}}", "DP-05"),
        ("MP-99", "otherwise: block", "no rule MP-99"),
        ("SC-01", "require: {cell.n: {at_least: 30}}", "requires nothing"),
        ("SC-01", "otherwise: block", "has no 'otherwise'"),
        ("SC-01", "round: {to_nearest: 5}", "rounds nothing"),
        ("MP-10", "require: {m: {at_least: 30}}", "'m' is not a fact"),
        ("MP-10", "otherwise: review", "'otherwise' must be block"),
        ("SS-08", "waivable: by_dac", "'waivable' must be never"),
        ("RD-02", "round: {decimal_places: -1}", "does not round"),
    ],
)
def test_loosening_is_refused_with_its_line(tmp_path, rule, what, says):
    path = profile(tmp_path, tighten(rule, what))
    with pytest.raises(RuleSetProblems) as caught:
        load_ruleset(profile=path)
    found = [str(p) for p in caught.value.problems]
    assert any(says in p for p in found), found
    assert all(p.startswith(f"{path}:3:") for p in found), found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("parameters: {interval_n: 5}\n", "loosens interval_n"),
        ("parameters: {delta_dp_cap: 1.0e-5}\n", "loosens delta_dp_cap"),
        ("parameters: {delta_dp_cap: -1.0}\n", "loosens delta_dp_cap"),
        ("parameters: {min_n: 30}\n", "min_n is the constant minimum: set that under constants"),
        ("constants: {minimum: 10}\n", "loosens the constant minimum: 20 → 10"),
        ("constants: {minimun: 30}\n", "did you mean 'minimum'"),
        ("parameters: {age_min: 50}\n", "no stricter side"),
        ("parameters: {intervaln: 15}\n", "did you mean 'interval_n'"),
        ("attest: {n: 500}\n", "n is computed: nobody can pin it"),
        ("attest: {ledger.pinned: true}\n", "nobody can pin it"),
        ("attest: {egress.route: mail}\n", "must be one of tre_airlock, direct"),
        ("attest: {egress.rout: tre_airlock}\n", "did you mean 'egress.route'"),
        ("ledgers: [{id: x}]\n", "misses 'head_key'"),
        ("waivers: []\n", "unknown key 'waivers'"),
        ("attest: {egress.route: no}\n", "boolean"),
    ],
)
def test_a_profile_with_a_mistake(tmp_path, text, says):
    with pytest.raises(RuleSetProblems, match=r"site\.yaml:2:") as caught:
        load_ruleset(profile=profile(tmp_path, text))
    assert says in str(caught.value)


def test_a_profile_for_another_rule_set(tmp_path):
    head = HEAD.replace("deltab-disclosure", "other")
    with pytest.raises(RuleSetProblems, match="is for the rule set 'other'"):
        load_ruleset(profile=profile(tmp_path, "", head))


def test_no_such_profile():
    with pytest.raises(RuleSetError, match="did you mean 'example-node'"):
        load_ruleset(profile="example-nod")


def test_a_constant_is_set_once_and_everything_follows(tmp_path):
    path = profile(tmp_path, "constants: {minimum: 30}\nparameters: {interval_n: 15}\n")
    tightened = load_ruleset(profile=path)
    assert tightened.parameters["min_n"] == 30
    assert tightened.parameters["interval_n"] == 15
    marked = [r for r in tightened.rules if any(c.fact == "cell.n" for c in r.when)]
    assert len(marked) == 9
    assert {c.limit for r in marked for c in r.when if c.fact == "cell.n"} == {30}
    assert all("30" in r.title and "20" not in r.title for r in marked)
    assert BASE.parameters["min_n"] == 20


def test_pinned_facts_fill_in_and_never_override(tmp_path):
    site = load_ruleset(profile=profile(tmp_path, "attest: {egress.route: tre_airlock}\n"))
    bare = honest(BASE, "n_subjects", egress__route=None)
    assert decide(BASE, bare).status == "review"  # asked of the TRE's staff (D-100)
    assert decide(site, bare).status == "pass"
    other = bare.with_facts(Fact("egress.route", "direct", Provider.ATTESTED))
    decision = decide(site, other)
    assert decision.status == "fail"
    assert any("contradicts" in f.inside for f in decision.findings)
    word = bare.with_facts(Fact("egress.route", "direct", Provider.DECLARED))
    assert decide(site, word).status == "pass"  # a declaration is nothing against what the site pins


def test_the_classical_sigma_may_be_required():
    site = load_ruleset(profile="classical-sigma")
    facts = honest(BASE, "beta1")
    assert decide(BASE, facts).status == "pass"
    assert decide(site, facts).status == "fail"
    assert decide(site, honest(BASE, "beta1", dp__sigma=5.31)).status == "pass"


# --- waivers ---------------------------------------------------------------------------------------------------------
OUT = "a" * 64
GRANTED, END = date(2026, 9, 1), date(2026, 11, 30)


def waiver_file(tmp_path, **changes):
    fields = {
        "id": "W-2026-001",
        "rule": "MP-09",
        "output_sha256": OUT,
        "ruleset_sha256": BASE.sha256,
        "granted_by": "A. Chair, data access committee",
        "reference": "minute 14",
        "reason": "a reason",
        "granted_on": GRANTED.isoformat(),
        "expires_on": END.isoformat(),
        **changes,
    }
    lines = [
        f"  {k}: {str(v).lower() if isinstance(v, bool) else chr(34) + str(v) + chr(34)}" for k, v in fields.items()
    ]
    path = tmp_path / f"{fields['id']}.yaml"
    path.write_text("waiver:\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def judged(tmp_path, today=END, digest=OUT, facts=None, ruleset=BASE, **changes):
    waivers = load_waivers(waiver_file(tmp_path, **changes))
    facts = facts or honest(BASE, "x_mean", n=49)
    return decide(ruleset, facts, waivers=waivers, today=today, output_sha256=digest)


def test_a_waiver_lowers_block_to_review(tmp_path):
    decision = judged(tmp_path)
    assert decision.effect is Effect.REVIEW
    (finding,) = [f for f in decision.findings if f.waived_by]
    assert finding.waived_by == "W-2026-001"
    assert finding.asks


@pytest.mark.parametrize(
    ("today", "effect"),
    [
        (date(2026, 8, 31), Effect.BLOCK),
        (date(2026, 9, 1), Effect.REVIEW),
        (date(2026, 11, 30), Effect.REVIEW),
        (date(2026, 12, 1), Effect.BLOCK),
    ],
)
def test_it_holds_from_its_first_day_through_its_last(tmp_path, today, effect):
    assert judged(tmp_path, today=today).effect is effect


def test_it_is_for_one_output_one_rule_one_rule_set(tmp_path):
    assert judged(tmp_path, digest="b" * 64).effect is Effect.BLOCK
    assert judged(tmp_path, digest=None).effect is Effect.BLOCK
    assert judged(tmp_path, rule="MP-10").effect is Effect.BLOCK
    assert judged(tmp_path, ruleset_sha256="c" * 64).effect is Effect.BLOCK


def test_never_is_never(tmp_path):
    table = honest(BASE, "delta_mean_by_sex", package__recoverable_cells=1)
    assert judged(tmp_path, rule="SC-05", facts=table).effect is Effect.BLOCK
    ages = honest(BASE, "ytrain")
    assert judged(tmp_path, rule="AG-05", facts=ages).effect is Effect.BLOCK
    withheld = honest(BASE, "delta_mean_by_sex", table__suppressed_share=0.5)
    assert judged(tmp_path, rule="SC-03", facts=withheld).effect is Effect.WITHHOLD


def test_single_deltas_need_a_decision_on_that_very_vector(tmp_path):
    vector = honest(BASE, "delta_vector")
    assert judged(tmp_path, rule="SS-08", facts=vector).effect is Effect.BLOCK
    assert judged(tmp_path, rule="SS-08", facts=vector, individual=True).effect is Effect.REVIEW


def test_a_missing_fact_is_never_waived(tmp_path):
    facts = honest(BASE, "x_mean", n=None)
    assert judged(tmp_path, facts=facts).effect is Effect.BLOCK


def test_another_rule_that_says_the_same_still_blocks(tmp_path):
    facts = honest(BASE, "y_mean", n=19)
    decision = judged(tmp_path, rule="MP-10", facts=facts)
    assert decision.effect is Effect.BLOCK
    assert [f.rules for f in decision.findings if f.effect is Effect.BLOCK] == [("PR-01",)]


def test_a_profile_can_end_waiving(tmp_path):
    site = load_ruleset(profile=profile(tmp_path, tighten("MP-09", "waivable: never")))
    assert judged(tmp_path, ruleset=site).effect is Effect.BLOCK


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"expires_on": "2026-02-30"}, "no day of the calendar"),
        ({"expires_on": "2026-08-01"}, "ends before it is granted"),
        ({"expires_on": "soon"}, "is not written as it must be"),
        ({"output_sha256": "abc"}, "is not written as it must be"),
        ({"id": "W-1"}, "is not written as it must be"),
        ({"approver": "me"}, "unknown key 'approver'"),
    ],
)
def test_a_waiver_with_a_mistake(tmp_path, changes, says):
    with pytest.raises(RuleSetProblems) as caught:
        load_waivers(waiver_file(tmp_path, **changes))
    assert says in str(caught.value)


def test_an_unquoted_date_is_refused(tmp_path):
    path = waiver_file(tmp_path)
    path.write_text(path.read_text().replace('"2026-11-30"', "2026-11-30"))
    with pytest.raises(RuleSetProblems, match="is a date to some readers"):
        load_waivers(path)


@pytest.mark.parametrize(
    ("today", "state"),
    [
        (date(2026, 8, 1), "not yet"),
        (date(2026, 9, 2), "in force"),
        (date(2026, 11, 1), "ends soon"),
        (date(2026, 12, 1), "lapsed"),
    ],
)
def test_states_for_governance(tmp_path, today, state):
    (found,) = states(BASE, load_waivers(waiver_file(tmp_path)), today)
    assert found.state == state


def test_a_waiver_that_can_hold_for_nothing_is_void(tmp_path):
    (found,) = states(BASE, load_waivers(waiver_file(tmp_path, rule="SC-05")), END)
    assert (found.state, found.reason) == ("void", "SC-05 can never be waived")


# --- differences -----------------------------------------------------------------------------------------------------
def test_three_changed_numbers(tmp_path):
    from sacro_deltab.rules.replay import replay
    from sacro_deltab.rules.ruleset_diff import diff

    copy = copy_rules(tmp_path)
    change(
        copy,
        "50-age.yaml",
        "require: {band.width_years: {at_least: band_years}}",
        "require: {band.width_years: {at_least: 10}}",
    )
    change(
        copy, "30-model-parameters.yaml", "require: {n: {at_least: feature_minimum}}", "require: {n: {at_least: 40}}"
    )
    change(copy, "65-rounding.yaml", "significant_figures: figures", "significant_figures: 2")
    found = {d.id: d.direction for d in diff(BASE, load_ruleset(copy)) if d.what == "rule"}
    assert found == {"AG-03": Direction.STRICTER, "MP-09": Direction.LOOSER, "RD-08": Direction.STRICTER}
    import json

    from sacro_deltab.rules.facts import facts_to_json

    stored = tmp_path / "stored"
    stored.mkdir()
    for name, facts in (("a", honest(BASE, "x_mean", n=45)), ("b", honest(BASE, "x_mean", n=500))):
        (stored / f"{name}.json").write_text(json.dumps(facts_to_json(facts)))
    flips = replay(BASE, load_ruleset(copy), [stored])
    assert [f.changed for f in flips] == [True, False]
    assert flips[0].before == "block"


def test_a_removed_rule_is_looser_and_an_equal_set_is_equal(tmp_path):
    from sacro_deltab.rules.ruleset_diff import diff

    copy = copy_rules(tmp_path)
    assert diff(BASE, load_ruleset(copy)) == []
    change(copy, "30-model-parameters.yaml", "  - id: MP-09\n", "  - id: MP-09\n    status: deprecated\n")
    (one,) = diff(BASE, load_ruleset(copy))
    assert one.direction is Direction.LOOSER


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("decisions.yaml", "block; scrutiny enters", "block; a look enters", ("decision", "D-02", "EDITORIAL")),
        ("sources.yaml", "Mean delta: one decimal place.", "Mean delta: one place.", ("clause", "DT-R1", "EDITORIAL")),
        ("ruleset.yaml", "reads: the privacy unit", "reads: the unit", ("fact", "cohort.unit", "EDITORIAL")),
        ("ruleset.yaml", "ledger.entry: {type: boolean, by: ledger", "ledger.entry: {type: boolean, by: declared",
         ("fact", "ledger.entry", "CHANGED")),
        ("ruleset.yaml", "class: projection, label: PCA components", "class: projection, label: Components",
         ("output", "pca_components", "EDITORIAL")),
    ],
)  # fmt: skip
def test_no_change_of_a_file_goes_unseen(tmp_path, file, old, new, says):
    copy = copy_rules(tmp_path)
    change(copy, file, old, new)
    found = diff(load_ruleset(), load_ruleset(copy))
    assert [(d.what, d.id, d.direction.value) for d in found] == [says]
