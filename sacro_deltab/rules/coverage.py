"""Was anything forgotten? Clauses, limits, decisions, outputs, facts, examples: each gap with its line and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .engine import facts_required
from .model import Condition, Rule, RuleSet
from .strictness import admits, samples


@dataclass(frozen=True)
class Gap:
    """Something without a rule, a reason or a use."""

    kind: str
    name: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind} {self.name}: {self.why}"


@dataclass(frozen=True)
class Coverage:
    """`gaps` fail the command; `notes` are for information (unused facts, duplicated limits)."""

    clauses: dict[str, dict[str, int]]
    gaps: tuple[Gap, ...]
    notes: tuple[Gap, ...]
    rules: dict[str, int]
    decisions: dict[str, int]
    outputs: dict[str, int]
    examples: int
    uncovered: tuple[tuple[str, str, int, str, str], ...]  # clause, document, line, kind, reason


def coverage(ruleset: RuleSet) -> Coverage:
    """Measure coverage of one rule set."""
    in_force = [r for r in ruleset.rules if r.in_force]
    cited = {c for r in in_force for c in r.source}
    used = {d for r in in_force for d in r.decision}
    by_kind: dict[str, dict[str, int]] = {d: {} for d in ruleset.documents}
    for clause in ruleset.clauses.values():
        kinds = by_kind[clause.document]
        kinds[clause.kind] = kinds.get(clause.kind, 0) + 1
    status = Counter(r.status for r in ruleset.rules)
    gaps = [*_clause_gaps(ruleset, cited), *_output_gaps(ruleset), *_example_gaps(in_force), *_dead(in_force)]
    notes = [*_decision_notes(ruleset, used), *_fact_notes(ruleset), *_limit_notes(ruleset, in_force)]
    return Coverage(
        clauses=by_kind,
        gaps=tuple(gaps),
        notes=tuple(notes),
        rules={
            "all": len(ruleset.rules),
            **status,
            "never_waivable": sum(r.waivable == "never" for r in in_force),
            "on_a_decision": sum(bool(r.decision) for r in in_force),
            "looser": sum(r.direction == "LOOSER" for r in in_force),
            "stricter": sum(r.direction == "STRICTER" for r in in_force),
        },
        decisions={
            "all": len(ruleset.decisions),
            "used": len(used),
            "unsigned": sum(d.signed is None for d in ruleset.decisions.values()),
            "looser": sum(d.direction == "LOOSER" for d in ruleset.decisions.values()),
            "stricter": sum(d.direction == "STRICTER" for d in ruleset.decisions.values()),
        },
        outputs={name: len(ruleset.rules_for(name)) for name in ruleset.outputs},
        examples=sum(len(r.examples) for r in in_force),
        uncovered=tuple(
            (c.id, c.document, c.line, c.kind, c.reason or "")
            for c in ruleset.clauses.values()
            if c.id not in cited and c.kind != "rule"
        ),
    )


def _clause_gaps(ruleset: RuleSet, cited: set[str]) -> Iterator[Gap]:
    for clause in ruleset.clauses.values():
        if clause.kind == "rule" and clause.id not in cited:
            yield Gap("clause", clause.id, str(clause.place), "asks for a rule and has none")
        elif clause.kind != "rule" and not clause.reason and clause.id not in cited:
            yield Gap("clause", clause.id, str(clause.place), f"is called {clause.kind} without a reason")


def _output_gaps(ruleset: RuleSet) -> Iterator[Gap]:
    for name in ruleset.outputs:
        if not ruleset.rules_for(name):
            yield Gap("output", name, f"{ruleset.folder}/ruleset.yaml", "no rule judges it")


def _example_gaps(rules: list[Rule]) -> Iterator[Gap]:
    for rule in rules:
        words = {e.expect for e in rule.examples}
        if rule.verb == "require" and not {"pass", rule.otherwise.value if rule.otherwise else ""} <= words:
            yield Gap("example", rule.id, str(rule.place), "has no example on each side of its limit")
        elif rule.when and rule.verb != "require" and not words & {"not_applicable", "keep"}:
            yield Gap("example", rule.id, str(rule.place), "has no example in which it does not apply")


def _dead(rules: list[Rule]) -> Iterator[Gap]:
    """A `when` that nothing can meet."""
    for rule in rules:
        by_fact: dict[str, list[Condition]] = {}
        for c in rule.when:
            by_fact.setdefault(c.fact, []).append(c)
        for fact, conditions in by_fact.items():
            if any(c.named for c in conditions):
                continue
            if not any(admits(conditions, v) for v in samples(conditions)):
                yield Gap("rule", rule.id, str(conditions[0].place), f"can never speak: no {fact} meets its when")


def _decision_notes(ruleset: RuleSet, used: set[str]) -> Iterator[Gap]:
    for decision in ruleset.decisions.values():
        if decision.id not in used:
            why = "is about reading the documents or about the tool; no single rule carries it"
            yield Gap("decision", decision.id, str(decision.place), why)


def _fact_notes(ruleset: RuleSet) -> Iterator[Gap]:

    needed: set[str] = {"output.known", "evidence.complete", "cell.complementary"}
    for name in ruleset.outputs:
        needed |= facts_required(ruleset, name)
    for fact in sorted(set(ruleset.facts) - needed):
        yield Gap("fact", fact, f"{ruleset.folder}/ruleset.yaml", "no rule asks for it")


def _limit_notes(ruleset: RuleSet, rules: list[Rule]) -> Iterator[Gap]:
    used = {str(c.limit) for r in rules for c in r.conditions if c.named}
    for limit in ruleset.limits:
        if limit not in used:
            yield Gap("limit", limit, f"{ruleset.folder}/ruleset.yaml", "no rule rests on it; a profile may")
    same: dict[tuple[object, ...], list[str]] = {}
    for rule in rules:
        if rule.verb == "require" and not rule.when:
            key = tuple(sorted(c.key for c in rule.require))
            for output in rule.outputs:
                same.setdefault((output, *key), []).append(rule.id)
    for ids in sorted({tuple(ids) for ids in same.values() if len(ids) > 1}):
        yield Gap("limit", " = ".join(ids), ruleset.folder, "ask the same of one output; shown once in findings (D-82)")


def to_lines(ruleset: RuleSet, report: Coverage, words: Mapping[str, str]) -> list[str]:
    """For people: counts first, then what has no rule and why, then gaps and notes."""
    out = []
    for doc, kinds in report.clauses.items():
        counts = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items(), key=lambda kv: -kv[1]))
        out.append(f"{doc}  {ruleset.documents[doc].title:<30} {sum(kinds.values())} clauses: {counts}")
    r, d = report.rules, report.decisions
    out.append(f"outputs {len(report.outputs)} types, {sum(n > 0 for n in report.outputs.values())} with rules")
    out.append(
        f"decisions {d['all']}, {d['used']} used by a rule, {d['unsigned']} unsigned, "
        f"{d['looser']} LOOSER and {d['stricter']} STRICTER than the documents"
    )
    out.append(
        f"rules {r['all']}: {r.get('provisional', 0)} provisional, {r.get('deprecated', 0)} deprecated, "
        f"{r['never_waivable']} never waivable, {r['on_a_decision']} rest on a decision, "
        f"{r['looser']} LOOSER, {r['stricter']} STRICTER; {report.examples} examples"
    )
    out.append(f"\nClauses without a rule, and why ({len(report.uncovered)}):")
    for clause_id, doc, line, kind, reason in report.uncovered:
        out.append(f"  {clause_id}  {ruleset.documents[doc].title}, line {line}: {kind}: {reason}")
        if clause_id in words:
            out.append(f"      “{words[clause_id]}”")
    out.append(f"\nGaps: {len(report.gaps) or 'none'}")
    out += [f"  {gap}" for gap in report.gaps]
    out.append(f"\nTo know ({len(report.notes)}):")
    out += [f"  {note}" for note in report.notes]
    return out


def to_json(report: Coverage) -> dict[str, Any]:
    """For machines."""

    def gap(g: Gap) -> dict[str, str]:
        return {"kind": g.kind, "name": g.name, "where": g.where, "why": g.why}

    return {
        "ok": not report.gaps,
        "clauses": report.clauses,
        "rules": report.rules,
        "decisions": report.decisions,
        "outputs": report.outputs,
        "examples": report.examples,
        "without_rule": [
            {"clause": c, "document": d, "line": n, "kind": k, "reason": r} for c, d, n, k, r in report.uncovered
        ],
        "gaps": [gap(g) for g in report.gaps],
        "notes": [gap(g) for g in report.notes],
    }
