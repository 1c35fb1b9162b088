"""The report for a terminal: one line a file name, nothing wrapped, colour only where asked for."""

from __future__ import annotations

from collections.abc import Iterator

from ..judging.report import FileReport, Noted, Report

_COLOURS = {"pass": "32", "review": "33", "fail": "31"}
_WORDS = {"pass": "PASS  ", "review": "REVIEW", "fail": "FAIL  "}
_SENTENCES = {
    "pass": "meets the policy as far as was checked; a person releases",
    "review": "a person must answer the questions above",
    "fail": "at least one file cannot leave in this form",
}


def _paint(text: str, verdict: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[verdict]}m{text}\x1b[0m" if colour else text


def clean(text: str) -> str:
    """Text of a checked file as a terminal may show it: no control characters, no escape sequences."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def render(report: Report, *, colour: bool = False) -> str:
    """The whole report as lines."""
    return "\n".join(_lines(report, colour)) + "\n"


def _lines(report: Report, colour: bool) -> Iterator[str]:
    rules = report.rule_set
    profile = rules.get("profile")
    yield (
        f"Rule set {rules['id']} {rules['version']} (sha256 {str(rules['sha256'])[:16]}…)"
        + (f", profile {profile['id']}" if profile else "")
    )
    yield from _declared(report)
    for row in report.thresholds:
        if row["acro"] != row["rule_set"]:
            yield f"Threshold {row['name']}: ACRO {row['acro']}, rule set {row['rule_set']}; {row['from']} decides"
    if report.folder_findings:
        yield ""
        yield "The folder itself"
        for finding in report.folder_findings:
            yield from _finding(finding, colour)
    for output in report.outputs:
        if not output.kept_inside:
            yield ""
            yield from _output(output, colour)
    if report.kept_inside:
        yield ""
        yield f"Kept inside, not asked to leave: {len(report.kept_inside)}"
        for name in report.kept_inside:
            yield f"  {clean(name)}"
    if report.not_checked:
        yield ""
        yield "Not checked"
        yield from (f"  {clean(text)}" for text in report.not_checked)
    yield ""
    yield f"{_paint(report.verdict.upper(), report.verdict, colour)}: {_SENTENCES[report.verdict]}"


def _declared(report: Report) -> Iterator[str]:
    said = [entry for entry in report.declared if "declared" in str(entry["by"]) or "attested" in str(entry["by"])]
    if not said:
        return
    yield "Said, not measured"
    for entry in said:
        simulated = " [simulated]" if entry.get("simulated") else ""
        yield f"  {clean(str(entry['name']))} = {clean(str(entry['value']))}: {clean(str(entry['by']))}{simulated}"


def _output(output: FileReport, colour: bool) -> Iterator[str]:
    kind = f"  {output.type}" if output.type else ""
    yield f"{_paint(_WORDS[output.verdict], output.verdict, colour)}  {clean(output.file)}{kind}"
    for finding in output.findings:
        yield from _finding(finding, colour)
    if output.verdict == "fail" and output.kind in ("pickle", "npz", "npy", "zlib", "skops", "torch", "xlsx"):
        for line in output.inventory[:12]:
            yield f"      holds {clean(line)}"
        if len(output.inventory) > 12:
            yield f"      and {len(output.inventory) - 12} more"


def _finding(finding: Noted, colour: bool) -> Iterator[str]:
    rules = ", ".join(finding.rules)
    target = "" if finding.target == "output" else f" [{clean(finding.target)}]"
    yield f"  {_paint(finding.effect, finding.verdict, colour)}{target} {clean(finding.text)} ({rules})"
    for question in finding.asks:
        yield f"      question: {clean(question)}"
    if finding.next_step and finding.effect in ("block", "withhold", "review"):
        yield f"      next step: {clean(finding.next_step)}"
