"""The letter to the researcher: what to change in each output and what helps, in words that may be said outside.

A sentence is the outside form of a finding, or the law's own title of the rule: no number, no cell, no place, no merge.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base.findings import Finding
from ..judging.report import FileReport, Report
from ..rules import RuleSet
from .text import clean

_VERDICTS = {
    "pass": "Meets the policy as far as was checked; a person decides on its release.",
    "review": "Waits for a person's decision.",
    "fail": "Cannot leave in this form.",
}


def letter(report: Report, ruleset: RuleSet) -> str:
    """The whole letter; outputs of which the same is to be said stand together."""
    asked = [output for output in report.outputs if not output.kept_inside]
    lines = [
        "Reply to your request",
        "",
        f"Judged by rule set {ruleset.id} {ruleset.version}. Numbers are not told here.",
    ]
    about_folder = list(_points(report.folder_findings, ruleset))
    if about_folder:
        lines += ["", "The request as a whole:", *about_folder]
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, files in _outputs(asked).items():
        points = tuple(dict.fromkeys(p for file in files for p in _points(file.findings, ruleset)))
        worst = min((file.verdict for file in files), key=("fail", "review", "pass").index)
        alike.setdefault((worst, points), []).append(name)
    for (worst, points), names in alike.items():
        lines += ["", *names, f"  {_VERDICTS[worst]}", *points]
    if report.kept_inside:
        lines += ["", "Other files stay inside; why, and which groups to merge, is told inside."]
    return "\n".join(lines) + "\n"


def _outputs(files: list[FileReport]) -> dict[str, list[FileReport]]:
    """Outputs by request and title, with all their files, worst first."""
    out: dict[str, list[FileReport]] = {}
    for file in sorted(files, key=lambda f: ("fail", "review", "pass").index(f.verdict)):
        name = file.output or file.file
        out.setdefault(clean(f"{file.title} ({name})" if file.title else name), []).append(file)
    return out


def _points(findings: list[Finding], ruleset: RuleSet) -> Iterator[str]:
    said: set[str] = set()
    for finding in sorted(findings, key=lambda f: f.effect.rank):
        if finding.verdict == "pass":
            continue
        sentence, step = _told(finding, ruleset)
        if sentence not in said:
            said.add(sentence)
            yield f"  - {clean(sentence)}" + (f"\n    What helps: {clean(step)}" if step and step not in said else "")
            said.add(step or "")


def _told(finding: Finding, ruleset: RuleSet) -> tuple[str, str | None]:
    """What may be said of a finding; a step of a finding of form can name a place, so the law's own remedy is said."""
    form = ruleset.form(finding.rules[0]) if finding.code else None
    step = form.remedy if form is not None else finding.next_step
    return finding.outside or f"{ruleset.titles(finding.rules)}.", step
