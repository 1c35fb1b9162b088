"""The report for a terminal: one line a file name, nothing wrapped, colour only where asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..base.findings import Effect, Finding
from ..base.verdicts import NOTHING
from ..judging.report import FileReport, Report

_COLOURS = {"pass": "32", "review": "33", "fail": "31", NOTHING: "31"}
_WORDS = {"pass": "PASS  ", "review": "REVIEW", "fail": "FAIL  "}
_SENTENCES = {
    "pass": "meets the policy as far as was checked; a person releases",
    "review": "a person must answer the questions above",
    "fail": "at least one file cannot leave in this form",
    NOTHING: "no output is asked to leave, or every one stays inside",
}


def _paint(text: str, verdict: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[verdict]}m{text}\x1b[0m" if colour else text


def clean(text: str) -> str:
    """Text of a checked file as a terminal may show it: no control characters, no escape sequences."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _state(rules: Mapping[str, Any]) -> str:
    """DRAFT where the committee has not approved the rules."""
    return "" if rules.get("state", "approved") == "approved" else f" {str(rules['state']).upper()}"


def render(report: Report, *, colour: bool = False, full: bool = False) -> str:
    """The report as lines: by cause, the worst first; with `full` file by file."""
    return "\n".join(_lines(report, colour, full)) + "\n"


def _lines(report: Report, colour: bool, full: bool) -> Iterator[str]:
    rules = report.rule_set
    profile = rules.get("profile")
    yield (
        f"Rule set {rules['id']} {rules['version']}{_state(rules)} (sha256 {str(rules['sha256'])[:16]}…)"
        + (f", layer {profile['id']}" if profile else "")
    )
    yield from _declared(report)
    others = [row for row in report.thresholds if row["acro"] != row["rule_set"]]
    if others:
        told = (f"{r['name']}: ACRO {r['acro']}, rule set {r['rule_set']}, {r['from']} decides" for r in others)
        yield f"Threshold {'; '.join(told)}"
    if report.folder_findings:
        yield ""
        yield "The folder itself"
        for finding in report.folder_findings:
            yield from _finding(finding, colour)
    asked = [output for output in report.outputs if not output.kept_inside]
    yield from _each(asked, colour) if full else _by_cause(asked, colour)
    if report.kept_inside:
        yield ""
        kept = _together([clean(name) for name in report.kept_inside])
        yield f"Kept inside, not asked to leave: {len(report.kept_inside)}: {kept}"
    if report.privacy is not None:
        yield ""
        yield from _rests_on(report)
    if report.not_checked:
        yield ""
        yield "Not checked"
        yield from (f"  {clean(text)}" for text in report.not_checked)
    yield ""
    yield f"{_paint(report.verdict.upper(), report.verdict, colour)}: {_SENTENCES[report.verdict]}"


def _rests_on(report: Report) -> Iterator[str]:
    """What making a folder again proves, and what the cohort and a pinned ledger add or would add."""
    counts = ((report.privacy or {}).get("ledger") or {}).get("counts")
    yield "What this rests on"
    yield "  The folder was made again from its own evidence, which nobody signed: that proves consistency only."
    measured = "facts were measured again from it" if report.cohort is not None else "facts are the session's own word"
    noise = "what was paid for is proved by it" if counts else "noise counts as somebody's word"
    yield (
        f"  {'--cohort' if report.cohort is not None else 'No --cohort'}: {measured}; "
        f"{'a pinned ledger' if counts else 'no pinned ledger that holds'}: {noise}."
    )


def _each(outputs: Sequence[FileReport], colour: bool) -> Iterator[str]:
    for output in outputs:
        yield ""
        yield from _output(output, colour)


def _by_cause(outputs: Sequence[FileReport], colour: bool) -> Iterator[str]:
    """Every cause once, with the files it is about; then the files that meet every rule."""
    causes: dict[tuple[tuple[str, ...], Effect, str | None], list[str]] = {}
    first: dict[tuple[tuple[str, ...], Effect, str | None], Finding] = {}
    asked: set[str] = set()
    for output in outputs:
        for finding in output.findings:
            if finding.verdict != "pass":
                key = (finding.rules, finding.effect, finding.next_step)
                first.setdefault(key, finding)
                files = causes.setdefault(key, [])
                if _file(output) not in files:
                    files.append(_file(output))
    for key in sorted(causes, key=lambda k: Effect(first[k].effect).rank):
        finding, files = first[key], causes[key]
        yield ""
        step = None if finding.next_step in asked else finding.next_step
        new = tuple(q for q in finding.asks if q not in asked)
        yield from _finding(replace(finding, asks=new, next_step=step), colour)
        asked.update(finding.asks, {finding.next_step or ""})
        yield f"      {len(files)} file{'s' if len(files) != 1 else ''}: {_together(files)}"
    for verdict in ("fail", "review", "pass"):
        named = [_file(output) for output in outputs if output.verdict == verdict]
        if named:
            yield ""
            yield f"{_paint(_WORDS[verdict], verdict, colour)}  {len(named)}: {_together(named)}"
    for output in outputs:
        yield from _held(output)


def _file(output: FileReport) -> str:
    return clean(output.file if output.request is None else f"{output.request}/{output.file}")


def _together(files: Sequence[str]) -> str:
    """Names of files, those of one output as `NAME.{csv,json}`."""
    endings: dict[str, list[str]] = {}
    for file in files:
        stem, dot, ending = file.rpartition(".")
        endings.setdefault(stem if dot else file, []).append(ending if dot else "")
    return ", ".join(
        stem + (f".{{{','.join(e)}}}" if len(e) > 1 else f".{e[0]}" if e[0] else "") for stem, e in endings.items()
    )


def _held(output: FileReport) -> Iterator[str]:
    """What a container holds that cannot leave."""
    if output.verdict == "fail" and output.kind in ("pickle", "npz", "npy", "zlib", "skops", "torch", "xlsx"):
        for line in output.inventory[:12]:
            yield f"      holds {clean(line)}"
        if len(output.inventory) > 12:
            yield f"      and {len(output.inventory) - 12} more"


def _declared(report: Report) -> Iterator[str]:
    said = [entry for entry in report.declared if "declared" in str(entry["by"]) or "attested" in str(entry["by"])]
    if not said:
        return
    yield "Said, not measured"
    people: dict[str, list[str]] = {}
    for entry in said:
        who = f"{entry['by']}{' [simulated]' if entry.get('simulated') else ''}"
        people.setdefault(who, []).append(f"{entry['name']} = {entry['value']}")
    yield from (f"  {clean(', '.join(facts))}: {clean(who)}" for who, facts in people.items())


def _output(output: FileReport, colour: bool) -> Iterator[str]:
    kind = f"  {output.type}" if output.type else ""
    yield f"{_paint(_WORDS[output.verdict], output.verdict, colour)}  {_file(output)}{kind}"
    for finding in output.findings:
        yield from _finding(finding, colour)
    yield from _held(output)


def _finding(finding: Finding, colour: bool) -> Iterator[str]:
    rules = ", ".join(finding.rules)
    target = "" if finding.target == "output" else f" [{clean(finding.target)}]"
    yield f"  {_paint(finding.effect, finding.verdict, colour)}{target} {clean(finding.inside)} ({rules})"
    for question in finding.asks:
        yield f"      question: {clean(question)}"
    if finding.next_step and finding.effect.status != "pass":
        yield f"      next step: {clean(finding.next_step)}"
