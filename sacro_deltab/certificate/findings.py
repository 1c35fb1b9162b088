"""Decisions about the outputs, brought into one form from a report of `check` or from recorded evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.findings import Effect, Finding
from ..base.verdicts import worst
from ..judging.report import FileReport, Report
from ..outputs.parameters import N_SUBJECTS
from .layout import ENVELOPES, STATEMENT, STRUCTURE
from .policy import Policy
from .viewer import file_statuses, listed_files

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
    public_n: bool = False  # N of everybody: no query on them where a training took it as public (D-23)
    actions: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()

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
            "title": "" if self.kept_inside else self.title,  # what stays inside is not told of outside
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
            "findings": [f.to_json() for f in self.findings],
        }


def prepare_outputs(
    results: Mapping[str, Any],
    report: Report | None,
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
            kept = name.startswith("session_summary") or (report is not None and name in report.kept_inside)
            out.append(_unjudged(name, kept, worst([by_acro[name], "review"]) if name in by_acro else "fail"))
    return sorted(out, key=lambda o: (o.name, o.files))


@dataclass
class _Group:
    """What was found about one output, over all its files."""

    name: str
    files: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    type: str | None = None
    title: str | None = None
    findings: list[Finding] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    not_applicable: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    privacy: Mapping[str, Any] | None = None
    public_n: bool = False
    actions: list[dict[str, Any]] = field(default_factory=list)

    def add(self, entry: FileReport) -> None:
        """One file of it."""
        if entry.file not in self.files:
            self.files.append(entry.file)
        self.verdicts.append(entry.verdict)
        self.kept.append(entry.kept_inside)
        self.type, self.title = self.type or entry.type, self.title or entry.title
        self.findings += [finding for finding in entry.findings if finding not in self.findings]
        self.met += [rule for rule in entry.met if rule not in self.met]
        self.facts += entry.facts


def _groups(report: Report | None, evidence: Mapping[str, Any] | None) -> list[_Group]:
    recorded = _items((evidence or {}).get("outputs"))
    if report is None:
        return [_from_evidence(own) for own in recorded]
    groups: dict[str, _Group] = {}
    for entry in report.outputs:
        if entry.file in ENVELOPES:
            continue  # made after the statement: they cannot be judged in it
        own = next((o for o in recorded if entry.file in _strings(o.get("files"))), {})
        key = str(own["name"] if own else entry.output or entry.file)
        groups.setdefault(key, _recorded(key, own)).add(entry)
    return list(groups.values())


def _recorded(key: str, own: Mapping[str, Any]) -> _Group:
    """What only the session knows of an output: what did not apply, its noise, what was done to it."""
    decision = _map(own.get("decision"))
    privacy = own.get("privacy")
    return _Group(
        key,
        not_applicable=_strings(decision.get("not_applicable")),
        privacy=privacy if isinstance(privacy, Mapping) else None,
        public_n=own.get("type") == N_SUBJECTS and "where" not in _map(_map(own.get("raw")).get("about")),
        actions=[dict(action) for action in _items(decision.get("actions"))],
    )


def _from_evidence(own: Mapping[str, Any]) -> _Group:
    group, decision, facts = _recorded(str(own.get("name")), own), _map(own.get("decision")), _map(own.get("facts"))
    blocks = [_map(facts.get("facts")), *(_map(part.get("facts")) for part in _items(facts.get("parts")))]
    group.files, group.verdicts = _strings(own.get("files")), [str(own.get("status"))]
    group.kept, group.type, group.title = [bool(own.get("kept_inside"))], own.get("type"), own.get("title")
    group.findings = [Finding.from_json(finding) for finding in _items(decision.get("findings"))]
    group.met = _strings(decision.get("met"))
    group.facts = [(str(name), str(_map(fact).get("by"))) for block in blocks for name, fact in block.items()]
    return group


def _prepare(group: _Group, policy: Policy) -> PreparedOutput:
    results, asked, said = _rule_results(group)
    cells = _cell_results(results, policy)
    raw = policy.raw_rules | policy.cell_rules
    noised = _map(group.privacy).get("label") == "formal"
    known = [pair for pair in group.facts if not (noised and pair[0] in policy.raw_facts)]
    return PreparedOutput(
        name=group.name,
        type=group.type or "unknown",
        title=group.title or "",
        files=tuple(group.files),
        verdict=worst(group.verdicts) if group.verdicts else "fail",
        kept_inside=bool(group.kept) and all(group.kept),
        rules={e: sorted([*(r for r in ids if r not in raw), *cells.get(e, ())]) for e, ids in results.items()},
        raw_rules={e: sorted(r for r in ids if r in raw) for e, ids in results.items()},
        questions=tuple((ids, q) for ids, q in asked if not raw & set(ids)),
        raw_questions=tuple((ids, q) for ids, q in asked if raw & set(ids)),
        facts=_fact_names(known),
        said={rule: text for rule, text in said.items() if rule not in raw},
        cells_marked=bool(cells),
        privacy=group.privacy,
        public_n=group.public_n,
        actions=tuple(group.actions),
        findings=tuple(group.findings),
    )


def _cell_results(results: Mapping[str, Sequence[str]], policy: Policy) -> dict[str, list[str]]:
    """Rules that mark cells: all of them together when cells were marked, and only then."""
    known = {rule for ids in results.values() for rule in ids} & (policy.cell_rules - policy.raw_rules)
    gone = results[Effect.BLOCK] or results[Effect.WITHHOLD]
    marked = known & set(results[Effect.SUPPRESS])
    return {Effect.SUPPRESS.value: sorted(known)} if marked and not gone else {}


def _rule_results(
    group: _Group,
) -> tuple[dict[str, list[str]], list[tuple[tuple[str, ...], str]], dict[str, str]]:
    """Result → rule ids (a rule counts once, at its worst), questions, and what may be said outside of a finding."""
    effect_of: dict[str, Effect | None] = dict.fromkeys(group.met)  # None: met
    asked: list[tuple[tuple[str, ...], str]] = []
    said: dict[str, str] = {}
    for finding in group.findings:
        for rule in finding.rules:
            before = effect_of.get(rule)
            effect_of[rule] = finding.effect if before is None or finding.effect.rank < before.rank else before
            if finding.outside:
                said.setdefault(rule, finding.outside)
        asked += [(finding.rules, q) for q in finding.asks if (finding.rules, q) not in asked]
    results: dict[str, list[str]] = {result: [] for result in (*(effect.value for effect in Effect), "met")}
    for rule, effect in effect_of.items():
        results["met" if effect is None else effect.value].append(rule)
    results["not_applicable"] = [rule for rule in group.not_applicable if rule not in effect_of]
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
