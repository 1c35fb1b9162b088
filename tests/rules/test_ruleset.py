"""The packaged rule set: every example, every one-step change, every clause, every output type."""

import pytest
from facts_factory import honest

from sacro_deltab.rules import decide, load_ruleset
from sacro_deltab.rules.coverage import coverage
from sacro_deltab.rules.examples import run_example
from sacro_deltab.rules.mutations import NOTICED_AT_LEAST, mutate

RULESET = load_ruleset()
EXAMPLES = [(rule, example) for rule in RULESET.rules for example in rule.examples]

PROPOSED = [
    "AD-01",
    "AD-02",
    "AD-03",
    "AD-04",
    "AD-05",
    "PR-01",
    "PR-02",
    "PR-03",
    "PR-04",
    "MP-01",
    "MP-02",
    "MP-03",
    "MP-04",
    "MP-05",
    "MP-06",
    "MP-07",
    "MP-08",
    "MP-09",
    "MP-10",
    "MP-11",
    "MP-12",
    "MP-13",
    "MP-14",
    "MP-15",
    "SS-01",
    "SS-02",
    "SS-03",
    "SS-04",
    "SS-05",
    "SS-06",
    "SS-07",
    "SS-08",
    "SS-09",
    "SS-10",
    "SS-11",
    "SS-12",
    "AG-01",
    "AG-02",
    "AG-03",
    "AG-04",
    "AG-05",
    "AG-06",
    "ID-01",
    "ID-02",
    "ID-03",
    "ID-04",
    "ID-05",
    "SC-01",
    "SC-02",
    "SC-03",
    "SC-04",
    "SC-05",
    "RD-01",
    "RD-02",
    "RD-03",
    "RD-04",
    "RD-05",
    "RD-06",
    "RD-07",
    "RD-08",
    "RD-09",
    "RD-10",
    "RD-11",
    "RD-12",
    "RD-13",
    "DP-01",
    "DP-02",
    "DP-03",
    "DP-04",
    "DP-05",
    "DP-06",
    "DP-07",
    "DP-08",
    "DP-09",
    "DP-10",
    "DP-11",
    "DP-12",
    "DP-13",
    "DP-14",
    "DP-15",
    "DP-16",
    "DP-17",
    "FB-01",
    "FB-02",
    "FB-03",
    "FB-04",
    "FB-05",
    "FB-06",
    "FB-07",
    "FB-08",
    "FB-09",
    "FB-10",
    "FB-11",
    "FB-12",
    "FB-13",
    "SX-01",
    "SX-02",
    "SX-03",
]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=[f"{r.id}-{i}" for i, (r, _) in enumerate(EXAMPLES)])
def test_example(rule, example):
    wanted = example.expect if example.expect is not None else f"becomes {example.becomes!r}"
    assert run_example(RULESET, rule, example) == wanted


def test_mutations_are_noticed():
    report = mutate(RULESET)
    assert report.tried > 900
    assert report.share >= NOTICED_AT_LEAST
    assert len(report.survivors) <= 1, [str(s) for s in report.survivors]


def test_nothing_of_the_proposal_is_lost():
    ids = {rule.id for rule in RULESET.rules}
    assert set(PROPOSED) <= ids
    assert len(RULESET.clauses) == 143
    assert {f"D-{i:02d}" for i in range(1, 83)} <= set(RULESET.decisions)


def test_every_clause_has_a_rule_or_a_reason():
    assert coverage(RULESET).gaps == ()


@pytest.mark.parametrize(
    "decision", ["D-23", "D-35", "D-36", "D-37", "D-38", "D-49", "D-50", "D-55", "D-56", "D-57", "D-60", "D-76"]
)
def test_decisions_that_were_changed_are_used(decision):
    assert any(decision in rule.decision for rule in RULESET.rules)


def test_looser_is_said_with_a_reason():
    for decision in RULESET.decisions.values():
        if decision.direction == "LOOSER" and decision.id not in ("D-93", "D-94"):
            assert decision.reason, decision.id
    for rule in RULESET.rules:
        if rule.direction == "LOOSER":
            assert any(RULESET.decisions[d].direction == "LOOSER" for d in rule.decision), rule.id


NEVER = {
    "attack_report",
    "delta_vector",
    "ytrain",
    "y_demean",
    "xtrain",
    "x_norm",
    "x_reduced",
    "other_per_subject",
}
# One change that must fail each type that may go on.
FAILS = {
    "certificate": {"record__small_counts": 1},
    "job_file": {"job__data_free": False},
    "pooled_model": {"pooled__way": "node_components"},
    "pooled_minus_node": {"nodes__every_formal": False},
    "pooled_table": {"nodes__certificates_verified": False},
    "plot": {"plot__per_subject_marks": True},
}


@pytest.mark.parametrize("output_type", sorted(RULESET.output_types - NEVER))
def test_every_output_type_may_go_on_and_may_fail(output_type):
    good = decide(RULESET, honest(RULESET, output_type))
    assert good.status in ("pass", "review"), [f.inside for f in good.findings]
    assert not good.missing
    changes = FAILS.get(output_type, {"n": 19})
    bad = decide(RULESET, honest(RULESET, output_type, **changes))
    assert bad.status == "fail"


@pytest.mark.parametrize("output_type", sorted(NEVER))
def test_what_never_leaves(output_type):
    assert decide(RULESET, honest(RULESET, output_type)).status == "fail"


@pytest.mark.parametrize(
    "output_type",
    ["beta1", "beta2", "beta2sq", "folded_weights", "ysq_mean", "ysq_slope", "conf_beta", "noised_moments"],
)
def test_formal_weights_pass_without_a_person(output_type):
    decision = decide(RULESET, honest(RULESET, output_type))
    assert decision.status == "pass", [f.inside for f in decision.findings]


@pytest.mark.parametrize("output_type", ["n_subjects", "delta_mean", "delta_sd", "delta_mean_by_sex", "count_table"])
def test_plain_statistics_pass_without_a_person(output_type):
    assert decide(RULESET, honest(RULESET, output_type)).status == "pass"


@pytest.mark.parametrize(
    ("output_type", "changes", "status"),
    [
        ("beta1", {"dp__label": "heuristic"}, "review"),
        ("beta1", {"dp__label": "heuristic", "dp__sensitivity_basis": "data_dependent"}, "review"),
        ("beta1", {"dp__sensitivity_basis": "data_dependent"}, "fail"),  # formal and data-dependent: untrue
        ("beta1", {"bounds__provenance": "unregistered"}, "fail"),
        ("beta1", {"bounds__provenance": "registered_file"}, "pass"),
        ("beta1", {"ledger__pinned": False}, "fail"),  # formal on an unpinned ledger: untrue
        ("beta1", {"ledger__pinned": False, "dp__label": "heuristic"}, "review"),
        ("n_subjects", {"ledger__pinned": False}, "review"),
        ("n_subjects", {"dp__adjacency": "add_remove"}, "fail"),
        ("n_subjects", {"dp__adjacency": "add_remove", "n__origin": "noisy"}, "pass"),
        ("delta_mean", {"cohort__overlap_checked": False}, "review"),
        ("delta_mean", {"cohort__overlap_found": True}, "review"),
        ("delta_mean", {"cohort__registered": False}, "review"),
        ("beta1", {"dp__delta": 1.1e-6}, "fail"),
        ("beta1", {"dp__delta": 3.9e-6, "dp__label": "heuristic", "dp__sigma": 5.0}, "review"),
        ("beta1", {"dp__delta": 4.1e-6, "dp__label": "heuristic", "dp__sigma": 5.0}, "fail"),
        ("beta1", {"ledger__epsilon_total": 4.0}, "pass"),
        ("beta1", {"ledger__epsilon_total": 4.1}, "fail"),
        ("beta1", {"ledger__earlier_model_exports": 1}, "review"),
        ("beta1", {"dp__mechanism": "laplace", "dp__scale": 1.0}, "fail"),
        ("ysq_mean", {"dp__post_processing": False}, "fail"),
        ("noised_moments", {"moments__on_grid": False}, "fail"),
        ("folded_weights", {"pca__origin": "node_specific", "n": 150}, "fail"),
        ("folded_weights", {"pca__origin": "node_specific"}, "review"),
        ("x_mean", {"n": 49}, "fail"),
        ("certificate", {"dp__end_to_end_claim": True, "dp__outside_budget": 1}, "fail"),
        ("certificate", {"dp__end_to_end_claim": True}, "pass"),
        ("plot", {"output__format": "svg"}, "fail"),
        ("plot", {"plot__source_status": "review"}, "review"),
        ("pooled_table", {"pooled__suppressed_as_missing": False}, "fail"),
        ("pooled_model", {"pooled__noise_model": "central"}, "fail"),
        ("pooled_model", {"nodes__every_formal": False}, "review"),
    ],
)
def test_what_the_decisions_changed(output_type, changes, status):
    decision = decide(RULESET, honest(RULESET, output_type, **changes))
    assert decision.status == status, [f.inside for f in decision.findings]


def test_a_noised_mean_follows_the_relation():
    noise = {
        "private": True,
        "dp__mechanism": "discrete_laplace",
        "dp__delta": 0.0,
        "dp__value_range": 40.0,
        "dp__value_max_abs": 20.0,
        "dp__epsilon": 0.5,
    }
    zero = honest(RULESET, "delta_mean", **noise, dp__sensitivity=0.04, dp__scale=0.08)
    assert decide(RULESET, zero).status == "pass"
    swap = honest(RULESET, "delta_mean", **noise, dp__sensitivity=0.04, dp__scale=0.08, dp__adjacency="replace_one")
    assert decide(RULESET, swap).status == "fail"
    unprotected = honest(
        RULESET, "delta_mean", **noise, dp__sensitivity=0.04, dp__scale=0.08, model__origin="unprotected"
    )
    assert decide(RULESET, unprotected).status == "fail"
