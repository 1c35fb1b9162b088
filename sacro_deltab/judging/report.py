"""The report of a check: what was judged, what was found, what stays inside. It stays in the TRE itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.errors import SacroDeltabError
from ..base.findings import Effect, Finding, note
from ..base.verdicts import exit_code, verdict_on, worst
from ..kinds.papers import CERTIFICATE
from ..rules.facts import Facts
from ..rules.types import Decision

SCHEMA_ID = "sacro_deltab/report/1"
PAPER = CERTIFICATE  # the type of the release's own papers: where they are all that leaves, nothing does


@dataclass
class FileReport:
    """The judgement of one file (or of one output with two files, one entry each)."""

    file: str
    type: str | None = None
    title: str | None = None
    kept_inside: bool = False
    findings: list[Finding] = field(default_factory=list)
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

    def add(self, *findings: Finding) -> None:
        """Add findings once."""
        for finding in findings:
            if finding not in self.findings:
                self.findings.append(finding)

    def add_decision(self, decision: Decision, facts: Facts) -> None:
        """Copy what the rules said."""
        self.add(*(f for f in decision.findings if f.effect is not Effect.PASS))
        if missing := sorted(set(decision.missing) - set(decision.asked)):
            self.add(note("missing-facts", Effect.BLOCK, "not judged: missing " + ", ".join(missing)))
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
            "findings": [finding.to_json() for finding in sorted(self.findings, key=lambda f: f.effect.rank)],
            "met": list(self.met),
            "facts": [{"name": name, "by": by} for name, by in self.facts],
            "inventory": self.inventory,
        }


def attempted(file: str, work: Callable[[], list[FileReport]]) -> list[FileReport]:
    """What `work` reports of a file; where it breaks off, that this file fails. The other files go on."""
    try:
        return work()
    except Exception as error:  # whatever a hostile file leads to: it may not keep the others from being judged
        return [FileReport(file, findings=[broke_off(error)])]


def broke_off(error: Exception) -> Finding:
    """The finding of a step that raised; nothing of the error's own text is repeated unless it is ours."""
    what = error.what if isinstance(error, SacroDeltabError) else f"a check of it broke off ({type(error).__name__})"
    step = "Do not release it; report this to the maintainers."
    return note("not-judged", Effect.BLOCK, f"not judged: {what}.", next_step=step)


@dataclass
class Report:
    """Everything `check` found."""

    rule_set: Mapping[str, Any]
    outputs: list[FileReport] = field(default_factory=list)
    folder_findings: list[Finding] = field(default_factory=list)
    kept_inside: list[str] = field(default_factory=list)
    declared: list[dict[str, Any]] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    tables: dict[str, Any] | None = None
    privacy: dict[str, Any] | None = None
    cohort: dict[str, Any] | None = None
    thresholds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The worst verdict over what is asked to leave and over the folder itself; nothing asked is no pass."""
        asked = [output for output in self.outputs if not output.kept_inside]
        return verdict_on(
            (output.verdict for output in asked if output.type != PAPER),
            [*(o.verdict for o in asked if o.type == PAPER), *(f.verdict for f in self.folder_findings)],
        )

    @property
    def exit_code(self) -> int:
        """0 meets the policy, 1 at least one fail or nothing to release, 3 review needed."""
        return exit_code(self.verdict)

    def extend(self, other: Report, request: str | None = None) -> None:
        """Add the judgement of another path; `request` is the folder that it is about."""
        for output in other.outputs:
            output.request = output.request or request
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
