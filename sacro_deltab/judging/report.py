"""The report of a check: what was judged, what was found, what stays inside. It stays in the TRE itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.verdicts import exit_code, worst
from ..inert.content import Remark
from ..rules.facts import Facts
from ..rules.types import Decision, Effect, Finding

SCHEMA_ID = "sacro_deltab/report/1"


@dataclass(frozen=True)
class Noted:
    """One finding of the report (inside view)."""

    rules: tuple[str, ...]
    effect: str
    text: str
    target: str = "output"
    asks: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    next_step: str | None = None
    outside: str | None = None
    waived_by: str | None = None

    @property
    def verdict(self) -> str:
        """ACRO's word for its effect."""
        return Effect(self.effect).status

    @classmethod
    def of_finding(cls, finding: Finding) -> Noted:
        """A rule's finding."""
        return cls(
            rules=finding.rules,
            effect=finding.effect.value,
            text=finding.inside,
            target=finding.target,
            asks=finding.asks,
            clauses=finding.clauses,
            next_step=finding.next_step,
            outside=finding.outside,
            waived_by=finding.waived_by,
        )

    @classmethod
    def of_remark(cls, remark: Remark) -> Noted:
        """What a reader noticed."""
        return cls(
            rules=(f"check/{remark.code}",),
            effect=remark.effect,
            text=remark.inside,
            next_step=remark.next_step,
            outside=remark.outside,
        )

    def to_json(self) -> dict[str, Any]:
        """Fields of `schemas/report.schema.json`."""
        return {
            "rules": list(self.rules),
            "effect": self.effect,
            "target": self.target,
            "text": self.text,
            "outside": self.outside,
            "asks": list(self.asks),
            "clauses": list(self.clauses),
            "next_step": self.next_step,
            "waived_by": self.waived_by,
        }


def note(
    code: str,
    effect: str,
    text: str,
    *,
    next_step: str | None = None,
    target: str = "output",
    asks: tuple[str, ...] = (),
    outside: str | None = None,
) -> Noted:
    """A finding of the checker itself, `check/CODE`."""
    return Noted((f"check/{code}",), effect, text, target, asks, (), next_step, outside)


@dataclass
class FileReport:
    """The judgement of one file (or of one output with two files, one entry each)."""

    file: str
    type: str | None = None
    title: str | None = None
    kept_inside: bool = False
    findings: list[Noted] = field(default_factory=list)
    met: tuple[str, ...] = ()
    facts: list[tuple[str, str]] = field(default_factory=list)
    inventory: list[str] = field(default_factory=list)
    output: str | None = None
    sha256: str | None = None
    n_bytes: int | None = None
    kind: str | None = None
    request: str | None = None  # the folder it was found in; None for a file named by itself

    @property
    def verdict(self) -> str:
        """Worst effect over the findings."""
        return worst(finding.verdict for finding in self.findings)

    def add(self, *findings: Noted) -> None:
        """Add findings once."""
        for finding in findings:
            if finding not in self.findings:
                self.findings.append(finding)

    def add_decision(self, decision: Decision, facts: Facts) -> None:
        """Copy what the rules said."""
        self.add(*(Noted.of_finding(finding) for finding in decision.findings if finding.effect.value != "pass"))
        if decision.missing:
            self.add(note("missing-facts", "block", "not judged: missing " + ", ".join(sorted(decision.missing))))
        self.met = decision.met
        self.facts = sorted({(fact.name, fact.by.value) for fact in facts})

    def to_json(self) -> dict[str, Any]:
        """Fields of `schemas/report.schema.json`."""
        return {
            "file": self.file,
            "verdict": self.verdict,
            "type": self.type,
            "title": self.title,
            "kept_inside": self.kept_inside,
            "output": self.output,
            "request": self.request,
            "kind": self.kind,
            "sha256": self.sha256,
            "bytes": self.n_bytes,
            "findings": [finding.to_json() for finding in sorted(self.findings, key=lambda f: Effect(f.effect).rank)],
            "met": list(self.met),
            "facts": [{"name": name, "by": by} for name, by in self.facts],
            "inventory": self.inventory,
        }


@dataclass
class Report:
    """Everything `check` found."""

    rule_set: Mapping[str, Any]
    outputs: list[FileReport] = field(default_factory=list)
    folder_findings: list[Noted] = field(default_factory=list)
    kept_inside: list[str] = field(default_factory=list)
    declared: list[dict[str, Any]] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    tables: dict[str, Any] | None = None
    privacy: dict[str, Any] | None = None
    cohort: dict[str, Any] | None = None
    thresholds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The worst verdict over what is asked to leave and over the folder itself."""
        asked = [output.verdict for output in self.outputs if not output.kept_inside]
        return worst([*asked, *(finding.verdict for finding in self.folder_findings)])

    @property
    def exit_code(self) -> int:
        """0 meets the policy, 1 at least one fail, 3 review needed."""
        return exit_code(self.verdict)

    def extend(self, other: Report, request: str | None = None) -> None:
        """Add the judgement of another path; `request` is the folder that it is about."""
        for output in other.outputs:
            output.request = request
        self.outputs += other.outputs
        about = "output" if request is None else f"folder {request}"
        self.folder_findings += [replace(f, target=about if f.target == "output" else f.target)
                                 for f in other.folder_findings]  # fmt: skip
        self.kept_inside += other.kept_inside
        self.declared += [entry for entry in other.declared if entry not in self.declared]
        self.not_checked += [text for text in other.not_checked if text not in self.not_checked]
        self.thresholds += other.thresholds
        for name in ("tables", "privacy", "cohort"):
            if getattr(other, name) is not None:
                setattr(self, name, getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        """`schemas/report.schema.json`."""
        return {
            "schema": SCHEMA_ID,
            "verdict": self.verdict,
            "rule_set": dict(self.rule_set),
            "outputs": [output.to_json() for output in self.outputs],
            "folder_findings": [finding.to_json() for finding in self.folder_findings],
            "kept_inside": list(self.kept_inside),
            "declared": self.declared,
            "not_checked": self.not_checked,
            "tables": self.tables,
            "privacy": self.privacy,
            "cohort": self.cohort,
            "thresholds": self.thresholds,
        }
