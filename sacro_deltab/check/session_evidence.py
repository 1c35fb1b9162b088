"""`inside/evidence.json`: read strictly, printed as *recorded*, never believed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.errors import UnreadableError
from ..base.findings import Effect, Finding, note
from ..base.strict import DATA, parse
from ..inert.limits import Limits
from ..inert.snapshot import take
from ..judging.evidence import SCHEMA_ID as EVIDENCE_ID
from ..judging.evidence import evidence_errors
from ..judging.said import MOST_WORD, few_digits
from ..kinds.whole import DELTA_MEAN, DELTA_SD
from ..outputs import OutputDocument
from ..outputs.parameters import Y_MEAN, YSQ_MEAN
from ..rules.facts import facts_from_json
from .folder import Entry
from .known import Released
from .rebuilt import law_said
from .session_state import Session

EVIDENCE = "inside/evidence.json"


def read_evidence_part(
    root: Path, entries: list[Entry], limits: Limits
) -> tuple[Mapping[str, Any] | None, list[Finding]]:
    """`inside/evidence.json`, strictly; missing or damaged evidence means that nothing can pass."""
    if not any(entry.name == EVIDENCE and entry.kind == "file" for entry in entries):
        return None, [
            note(
                "no-evidence",
                Effect.BLOCK,
                f"not judged: missing {EVIDENCE}; without it no fact about any output is known.",
                next_step="Check the folder inside the TRE, with its inside/.",
            )
        ]
    wide = replace(limits, file_bytes=DATA.size)
    try:
        data = parse(take(root / EVIDENCE, EVIDENCE, wide).data, path=EVIDENCE, bounds=DATA)
    except UnreadableError as error:
        return None, [note("no-evidence", Effect.BLOCK, f"{EVIDENCE} cannot be read: {error.what}.")]
    errors = _evidence_errors(data)
    if errors:
        return None, [note("no-evidence", Effect.BLOCK, f"{EVIDENCE} does not match its schema ({errors[0]}).")]
    return data, []


def _evidence_errors(data: Any) -> list[str]:
    """Faults of the evidence: its schema, with the thousands of facts checked by hand (the same rules, in time)."""
    if not isinstance(data, dict) or data.get("schema") != EVIDENCE_ID or not isinstance(data.get("outputs"), list):
        return ["document: not this schema"]
    errors: list[str] = []
    shells = []
    for index, entry in enumerate(data["outputs"]):
        facts = entry.get("facts") if isinstance(entry, dict) else None
        if not isinstance(facts, dict) or not _facts_hold(facts):
            errors.append(f"outputs/{index}/facts: not named facts with a value and who said it")
            continue
        decision: dict[str, Any] | None = {} if isinstance(entry.get("decision"), dict) else None  # compared as a whole
        shells.append({**entry, "facts": {**facts, "facts": {}, "parts": []}, "decision": decision, "raw": None})
    return errors or evidence_errors({**data, "outputs": shells})


def _facts_hold(facts: Mapping[str, Any]) -> bool:
    try:
        parsed = facts_from_json(facts)
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    keys = [part.key for part in parsed.parts]
    blocks = [facts["facts"], *(part["facts"] for part in facts["parts"])]
    known = all(set(fact) == {"value", "by"} for block in blocks for fact in block.values())
    return (
        known and len(set(keys)) == len(keys) and all(part.kind in ("cell", "quantile", "row") for part in parsed.parts)
    )


def evidence_findings(session: Session) -> None:
    """Rule set, declarations and file lists of the evidence, as far as they concern the whole folder."""
    if session.evidence is None:
        return
    report, evidence = session.report, session.evidence
    made = evidence["session"]["rule_set"]
    ours = session.context.rule_set_json()
    if made["sha256"] != ours["sha256"]:
        report.folder_findings.append(
            note(
                "rule-set",
                Effect.LABEL,
                f"The session used {made['id']} {made['version']}; this check uses "
                f"{ours['id']} {ours['version']} (another digest). This check's rules decide.",
            )
        )
    elif not law_said(session):
        report.folder_findings.append(
            note(
                "law-said",
                Effect.BLOCK,
                f"The records say otherwise what the rules are ({made.get('state', 'of no state')}; here "
                f"{ours['state']}), or what layers let through.",
                next_step="Check with the trust file and the layers of the session.",
            )
        )
    for who in ("declared", "attested"):
        said = evidence["session"][who]
        if not all(_sayable(session, name, value) for name, value in said["facts"].items()):
            what = f"Something {who} is no fact of the rules, or has no value that such a fact can have."
            report.folder_findings.append(note("evidence", Effect.BLOCK, what))
        report.declared += [
            {
                "name": name,
                "value": value,
                "by": f"{who} by {said['by'] or 'nobody named'}",
                "in": "inside/evidence.json",
                "simulated": bool(said.get("simulated", False)),
            }
            for name, value in sorted(said["facts"].items())
        ]
    told = session.context.declared
    if told is not None and told.by != evidence["session"]["declared"]["by"]:
        report.folder_findings.append(
            note(
                "declared-otherwise",
                Effect.BLOCK,
                "Somebody else declares now than the session was told.",
                next_step="Give the declaration that the session was opened with.",
            )
        )
    report.not_checked += [text for text in evidence["not_checked"] if text not in report.not_checked]
    seen: set[str] = set()
    for entry in evidence["outputs"]:
        for name in entry["files"]:
            if name in seen:
                report.folder_findings.append(note("evidence", Effect.BLOCK, f"The evidence names {name} twice."))
            seen.add(name)


def _sayable(session: Session, name: str, value: object) -> bool:
    """Whether a declared value has a form in which it may be repeated: yes or no, a word of the rules, few digits."""
    spec = session.context.ruleset.facts.get(name)
    if spec is None:
        return False
    if isinstance(value, str):
        return spec.type == "text" and (value in spec.values if spec.values else len(value) <= MOST_WORD)
    return isinstance(value, bool) == (spec.type == "boolean") and (isinstance(value, bool) or few_digits(value))


def learn(session: Session) -> None:
    """Numbers of people, noise mechanism and released values, for the detectors."""
    known = session.context.known
    if session.evidence is not None:
        known.add_ns(n for n in session.evidence["n_known"] if type(n) is int)
        for entry in session.evidence["outputs"]:
            n = entry["facts"]["facts"].get("n")
            if isinstance(n, dict) and type(n.get("value")) is int:
                known.add_ns([n["value"]])
        if any(_mechanism(entry) for entry in session.evidence["outputs"]):
            known.noise_word = "one_release"
    known.released += [item for document in session.documents.values() for item in _released(document)]


def _mechanism(entry: Mapping[str, Any]) -> bool:
    statement = entry.get("privacy")
    return isinstance(statement, dict) and "moment" in str(statement.get("mechanism", "")) + str(
        statement.get("blocks", "")
    )


def _released(document: OutputDocument) -> Iterator[Released]:
    if document.type not in (Y_MEAN, DELTA_MEAN, DELTA_SD, YSQ_MEAN):
        return
    for row in document.rows:
        for cell in row[1:]:
            if isinstance(cell, float):
                digits = len(repr(cell).partition(".")[2]) if "e" not in repr(cell) else 0
                yield Released(f"{document.name} ({row[0]})", cell, 0.5 * 10.0**-digits)
