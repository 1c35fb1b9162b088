"""The judge: decide, protect, decide again, round, verify; the same for a pattern that arrived."""

from __future__ import annotations

from typing import Any

import pytest

from sacro_deltab.base.errors import InputError
from sacro_deltab.judging.judge import judge_output, transform, verify
from sacro_deltab.kinds import documents as build
from sacro_deltab.measure.table_audit import TableAudit
from sacro_deltab.outputs import MARK, OutputDocument
from sacro_deltab.rules import load_ruleset
from sacro_deltab.rules.facts import Fact, Facts, Part, Provider, facts_from_json, facts_to_json
from sacro_deltab.rules.types import Action

COUNTS = {"A": 120, "B": 60, "C": 45, "D": 40, "E": 33, "F": 30, "G": 28, "H": 12}


@pytest.fixture(scope="module")
def ruleset() -> Any:
    return load_ruleset()


def fact(name: str, value: Any, by: Provider = Provider.COMPUTED) -> Fact:
    return Fact(name, value, by)


def site_table(counts: dict[str, int] = COUNTS) -> tuple[Facts, OutputDocument]:
    document = build.group_table(
        "delta_mean_by_site", "t", "T", list(counts), list(counts.values()), [0.123 + i for i in range(len(counts))],
        about={},
    )  # fmt: skip
    whole = {
        "output.declared": (True, Provider.DECLARED),
        "egress.route": ("tre_airlock", Provider.ATTESTED),
        "cohort.unit": ("person", Provider.DECLARED),
        "training.iterative": (False, Provider.DECLARED),
        "ledger.exhausted_before": (False, Provider.LEDGER),
        "ledger.pinned": (True, Provider.LEDGER),
        "cohort.overlap_checked": (True, Provider.LEDGER),
        "cohort.overlap_found": (False, Provider.LEDGER),
        "cohort.registered": (True, Provider.LEDGER),
        "linked_release.any": (False, Provider.LEDGER),
    }
    measured = {
        "output.format": "csv", "output.rows": len(counts), "n": sum(counts.values()), "n.origin": "exact",
        "dp.applied": False, "dp.label": "none", "dp.mechanism": "none", "dp.adjacency": "none",
        "acro.frequency_check": "pass", "acro.dominance_check": "pass", "table.any_n_rounded": True,
        "largest_share": 0.01, "outlier.max_abs_z": 2.0, "site.count": len(counts), "model.origin": "unprotected",
        "dp.end_to_end_claim": False, "evidence.attack_report": False, "n_node": sum(counts.values()),
    }  # fmt: skip
    facts = {n: fact(n, v, by) for n, (v, by) in whole.items()} | {n: fact(n, v) for n, v in measured.items()}
    parts = tuple(
        Part("cell", key, {"cell.n": fact("cell.n", n), "cell.largest_share": fact("cell.largest_share", 0.05),
                           "cell.structural_zero": fact("cell.structural_zero", False, Provider.DECLARED)}, 0.1)
        for key, n in counts.items()
    )  # fmt: skip
    return Facts("t", "delta_mean_by_site", facts, parts), document


class Engine:
    """Marks G besides any primary cell; finds `falls` recoverable cells."""

    def __init__(self, falls: int = 0) -> None:
        self.falls = falls
        self.asked: list[frozenset[str]] = []

    def protect(self, primary: frozenset[str]) -> frozenset[str]:
        self.asked.append(primary)
        return frozenset({"G"}) if primary else frozenset()

    def audit(self, suppressed: frozenset[str]) -> TableAudit:
        return TableAudit(self.falls, self.falls)


def test_the_steps(ruleset: Any) -> None:
    facts, document = site_table()
    engine = Engine()
    judged = judge_output(ruleset, facts, document, table=engine)
    assert engine.asked == [frozenset({"H"})]
    assert (judged.suppressed, judged.complementary) == (frozenset({"G", "H"}), frozenset({"G"}))
    assert judged.status == "pass" and judged.document is not None
    rows = {row[0]: row[1:] for row in judged.document.rows}
    assert rows["G"] == rows["H"] == (MARK, MARK)
    assert rows["E"] == (35, 4.1) and rows["A"] == (120, 0.1)


def test_recoverable_cells_block(ruleset: Any) -> None:
    facts, document = site_table()
    judged = judge_output(ruleset, facts, document, table=Engine(falls=1))
    assert judged.status == "fail" and judged.document is None


def test_more_than_30_percent_withholds(ruleset: Any) -> None:
    facts, document = site_table({"A": 120, "B": 60, "G": 28, "H": 12})
    judged = judge_output(ruleset, facts, document, table=Engine())
    assert judged.withheld and judged.document is None


def test_a_recorded_judgement_comes_out_the_same(ruleset: Any) -> None:
    facts, document = site_table()
    first = judge_output(ruleset, facts, document, table=Engine())
    recorded = facts_from_json(facts_to_json(first.facts))
    again = judge_output(ruleset, recorded, document, pattern={"G", "H"})
    assert again.document == first.document
    assert again.complementary == first.complementary


def test_an_unmarked_small_cell_is_found(ruleset: Any) -> None:
    facts, document = site_table()
    judged = judge_output(ruleset, facts, document, table=Engine(), pattern={"G"})
    assert judged.status == "fail"
    assert any("'H'" in problem for problem in judged.problems)


def test_facts_of_another_output_are_refused(ruleset: Any) -> None:
    facts, document = site_table()
    other = Facts("other", facts.output_type, facts.facts, facts.parts)
    with pytest.raises(InputError):
        judge_output(ruleset, other, document)
    short = Facts("t", facts.output_type, facts.facts, facts.parts[:-1])
    with pytest.raises(InputError, match="no facts"):
        judge_output(ruleset, short, document)


def test_verify_catches_what_transform_did_not_do() -> None:
    _, document = site_table()
    value = Action("round", None, {"part": "value", "decimal_places": 1})
    actions = [value, Action("round", None, {"part": "every_n", "to_nearest": 5})]
    good = transform(document, actions, frozenset({"H"}))
    assert verify(document, good, actions, frozenset({"H"})) == []
    assert any("shows a number" in f for f in verify(document, good, actions, frozenset({"G", "H"})))
    assert any("not rounded" in f for f in verify(document, document, actions, frozenset()))
    assert any("no rounding rule" in f for f in verify(document, document, [], frozenset()))


def test_labels_become_words() -> None:
    p = build.vector("p_value", "p", "P", ["x"], [0.0004], about={})
    made = transform(p, [Action("label", None, {"text": "< 0.001"})], frozenset())
    assert made.rows == (("x", "below 0.001"),)
    band = transform(
        p, [Action("label", None, {"text": "strong privacy", "fact": "ledger.epsilon_total"})], frozenset()
    )
    assert band.about["labels"] == ["strong privacy"] and band.rows == p.rows
