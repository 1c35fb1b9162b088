"""Decisions about the outputs, brought into one form from a report of `check` or from recorded evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.findings import Effect
from ..base.verdicts import worst
from .layout import ENVELOPES, STATEMENT, STRUCTURE
from .policy import Policy
from .viewer import file_statuses, listed_files

EFFECTS = tuple(effect.value for effect in Effect)  # worst first
_CHECKED_INSIDE = "checked_inside"


@dataclass(frozen=True)
class PreparedOutput:
    """One output with everything a statement says of it.

    rules: result → rule ids, for what may leave; raw_rules: the same for rules on raw-data facts. questions and
    raw_questions: (rule ids, question). facts: provider → names. findings: as reported, inside only.
    """

    name: str
    type: str
    title: str
    files: tuple[str, ...]
    verdict: str
    kept_inside: bool
    rules: Mapping[str, Sequence[str]]
    raw_rules: Mapping[str, Sequence[str]]
    questions: tuple[tuple[tuple[str, ...], str], ...]
    raw_questions: tuple[tuple[tuple[str, ...], str], ...]
    facts: Mapping[str, Sequence[str]]
    said: Mapping[str, str] = field(default_factory=dict)
    cells_marked: bool = False
    privacy: Mapping[str, Any] | None = None
    actions: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()

    def verdict_under(self, cap: Sequence[str]) -> str:
        """The verdict, at most `review` where something forbids a pass."""
        return worst([self.verdict, "review"]) if cap else self.verdict

    def outside_json(self, cap: Sequence[str]) -> dict[str, Any]:
        """What leaves."""
        rules = {result: list(ids) for result, ids in self.rules.items() if ids}
        named = {rule for ids in self.rules.values() for rule in ids}
        hidden = sorted({rule for ids in self.raw_rules.values() for rule in ids} - named)
        if hidden:
            rules[_CHECKED_INSIDE] = hidden
        return {
            "name": self.name,
            "type": self.type,
            "title": self.title,
            "files": list(self.files),
            "verdict": self.verdict_under(cap),
            "kept_inside": self.kept_inside,
            "rules": rules,
            "cells_marked": self.cells_marked,
            "says": dict(sorted(self.said.items())),
            "questions": [{"rules": list(ids), "question": text} for ids, text in self.questions],
            "facts": {by: list(names) for by, names in self.facts.items()},
        }

    def inside_json(self) -> dict[str, Any]:
        """What stays: results of rules on raw-data facts, all questions, findings as reported."""
        return {
            "name": self.name,
            "files": list(self.files),
            "verdict": self.verdict,
            "rules": {result: list(ids) for result, ids in self.raw_rules.items() if ids},
            "questions": [
                {"rules": list(ids), "question": text} for ids, text in (*self.questions, *self.raw_questions)
            ],
            "findings": [dict(f) for f in self.findings],
        }


def prepare_outputs(
    results: Mapping[str, Any],
    report: Mapping[str, Any] | None,
    evidence: Mapping[str, Any] | None,
    policy: Policy,
    present: Sequence[str],
) -> list[PreparedOutput]:
    """One entry an output: every listed file in exactly one, files nobody judged in a failing one of their own.

    A file that is listed, or lies there, without a judgement is a fail: nothing passes by being forgotten. In a
    session's own statement a file of the researcher's plain ACRO calls has ACRO's status, at best `review`.
    """
    groups = _groups(report, evidence)
    out = [_prepare(group, policy) for group in groups]
    judged = {name for o in out for name in o.files}
    skip = STRUCTURE | ENVELOPES | {STATEMENT}
    by_acro = file_statuses(results) if report is None else {}
    for name in dict.fromkeys([*listed_files(results), *present]):
        if name not in judged and name not in skip:
            kept = name.startswith("session_summary") or name in _strings((report or {}).get("kept_inside"))
            out.append(_unjudged(name, kept, worst([by_acro[name], "review"]) if name in by_acro else "fail"))
    return sorted(out, key=lambda o: (o.name, o.files))


def _groups(report: Mapping[str, Any] | None, evidence: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    recorded = [dict(o) for o in _items((evidence or {}).get("outputs"))]
    if report is None:
        return [_from_evidence(o) for o in recorded]
    groups: dict[str, dict[str, Any]] = {}
    for entry in _items(report.get("outputs")):
        file = str(entry.get("file") or entry.get("name"))
        if file in ENVELOPES:
            continue  # made after the statement: they cannot be judged in it
        own = next((o for o in recorded if file in _strings(o.get("files"))), None)
        key = str(own["name"] if own else entry.get("output") or file)
        group = groups.setdefault(key, _from_report(key, own))
        if file not in group["files"]:
            group["files"].append(file)
        _merge(group, entry)
    return list(groups.values())


def _from_report(key: str, own: Mapping[str, Any] | None) -> dict[str, Any]:
    decision = _map((own or {}).get("decision"))
    return {
        "name": key,
        "files": [],
        "verdicts": [],
        "kept": [],
        "type": None,
        "title": None,
        "findings": [],
        "met": [],
        "not_applicable": list(_strings(decision.get("not_applicable"))),
        "facts": [],
        "privacy": (own or {}).get("privacy"),
        "actions": [dict(a) for a in _items(decision.get("actions"))],
    }


def _merge(group: dict[str, Any], entry: Mapping[str, Any]) -> None:
    group["verdicts"].append(str(entry.get("verdict")))
    group["kept"].append(bool(entry.get("kept_inside")))
    group["type"] = group["type"] or entry.get("type")
    group["title"] = group["title"] or entry.get("title")
    group["findings"] += [f for f in _items(entry.get("findings")) if f not in group["findings"]]
    group["met"] += [r for r in _strings(entry.get("met")) if r not in group["met"]]
    group["not_applicable"] += [r for r in _strings(entry.get("not_applicable")) if r not in group["not_applicable"]]
    group["facts"] += [(str(f.get("name")), str(f.get("by"))) for f in _items(entry.get("facts"))]
    if isinstance(entry.get("privacy"), Mapping):
        group["privacy"] = entry["privacy"]


def _from_evidence(own: Mapping[str, Any]) -> dict[str, Any]:
    decision = _map(own.get("decision"))
    facts = _map(own.get("facts"))
    blocks = [_map(facts.get("facts")), *(_map(p.get("facts")) for p in _items(facts.get("parts")))]
    return {
        "name": str(own.get("name")),
        "files": list(_strings(own.get("files"))),
        "verdicts": [str(own.get("status"))],
        "kept": [bool(own.get("kept_inside"))],
        "type": own.get("type"),
        "title": own.get("title"),
        "findings": [dict(f) for f in _items(decision.get("findings"))],
        "met": list(_strings(decision.get("met"))),
        "not_applicable": list(_strings(decision.get("not_applicable"))),
        "facts": [(str(n), str(_map(e).get("by"))) for block in blocks for n, e in block.items()],
        "privacy": own.get("privacy"),
        "actions": [dict(a) for a in _items(decision.get("actions"))],
    }


def _prepare(group: Mapping[str, Any], policy: Policy) -> PreparedOutput:
    results, asked, said = _rule_results(group)
    cells = _cell_results(results, policy)
    raw = policy.raw_rules | policy.cell_rules
    noised = _map(group["privacy"]).get("label") == "formal"
    known = [pair for pair in group["facts"] if not (noised and pair[0] in policy.raw_facts)]
    return PreparedOutput(
        name=group["name"],
        type=str(group["type"] or "unknown"),
        title=str(group["title"] or ""),
        files=tuple(group["files"]),
        verdict=worst(group["verdicts"]) if group["verdicts"] else "fail",
        kept_inside=bool(group["kept"]) and all(group["kept"]),
        rules={e: sorted([*(r for r in ids if r not in raw), *cells.get(e, ())]) for e, ids in results.items()},
        raw_rules={e: sorted(r for r in ids if r in raw) for e, ids in results.items()},
        questions=tuple((ids, q) for ids, q in asked if not raw & set(ids)),
        raw_questions=tuple((ids, q) for ids, q in asked if raw & set(ids)),
        facts=_fact_names(known),
        said={rule: text for rule, text in said.items() if rule not in raw},
        cells_marked=bool(cells),
        privacy=group["privacy"] if isinstance(group["privacy"], Mapping) else None,
        actions=tuple(group["actions"]),
        findings=tuple(group["findings"]),
    )


def _cell_results(results: Mapping[str, Sequence[str]], policy: Policy) -> dict[str, list[str]]:
    """Rules that mark cells: all of them together when cells were marked, and only then."""
    known = {rule for ids in results.values() for rule in ids} & (policy.cell_rules - policy.raw_rules)
    gone = results["block"] or results["withhold"]
    marked = known & set(results["suppress"])
    return {"suppress": sorted(known)} if marked and not gone else {}


def _rule_results(
    group: Mapping[str, Any],
) -> tuple[dict[str, list[str]], list[tuple[tuple[str, ...], str]], dict[str, str]]:
    """Result → rule ids (a rule counts once, at its worst), questions, and what may be said outside of a finding."""
    effect_of: dict[str, str] = dict.fromkeys(group["met"], "met")
    asked: list[tuple[tuple[str, ...], str]] = []
    said: dict[str, str] = {}
    order = (*EFFECTS, "met")
    for finding in group["findings"]:
        ids = tuple(str(r) for r in _strings(finding.get("rules")))
        effect = str(finding.get("effect"))
        effect = effect if effect in EFFECTS else "block"
        for rule in ids:
            before = effect_of.get(rule, "met")
            effect_of[rule] = effect if order.index(effect) < order.index(before) else before
            if isinstance(finding.get("outside"), str):
                said.setdefault(rule, finding["outside"])
        asked += [(ids, q) for q in _strings(finding.get("asks")) if (ids, q) not in asked]
    results: dict[str, list[str]] = {result: [] for result in order}
    for rule, effect in effect_of.items():
        results[effect].append(rule)
    results["not_applicable"] = [r for r in group["not_applicable"] if r not in effect_of]
    return results, asked, said


def _fact_names(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names by who said them; `recorded` are those of `measured` that were not measured again."""
    by: dict[str, set[str]] = {}
    for name, provider in pairs:
        by.setdefault(provider, set()).add(name)
    recorded = by.get("recorded", set())
    return {
        "measured": sorted(by.get("computed", set()) | recorded),
        "recorded": sorted(recorded),
        "declared": sorted(by.get("declared", set())),
        "attested": sorted(by.get("attested", set())),
        "ledger": sorted(by.get("ledger", set())),
    }


def _unjudged(name: str, kept: bool, verdict: str) -> PreparedOutput:
    return PreparedOutput(
        name=name,
        type="unknown",
        title="",
        files=(name,),
        verdict=verdict,
        kept_inside=kept,
        rules={},
        raw_rules={},
        questions=(),
        raw_questions=(),
        facts=_fact_names(()),
    )


def _items(value: object) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, (list, tuple)) else []


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(v) for v in value] if isinstance(value, (list, tuple)) else []


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
