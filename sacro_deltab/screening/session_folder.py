"""Judge a session folder: every status, digest and threshold in it is printed, none is believed.

The evidence under `inside/` counts as *recorded by the session*. Every output is judged again from it, transformed
again, and compared byte for byte with the file that is asked to leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InputError, SacroDeltabError, UnreadableError
from ..evidence import SCHEMA_ID as EVIDENCE_ID
from ..evidence import evidence_errors
from ..facts.types import Fact, Facts, Provider, facts_from_json
from ..outputs import MARK, OutputDocument
from ..record import suppressed_cells
from .content import Content
from .context import Context
from .detect import screen
from .documents import _judge_text, document_of_json, marked_rows
from .folder import CERTIFICATES, SUMMARIES, Entry
from .known import Known, Released
from .ledger_check import LedgerView, spend_of, unproved
from .limits import MIB, Limits
from .plausible import cells_of_text, linked, repeated_types, shape_findings
from .reading import IMAGES, kind_of, read_content
from .records import FileRef, Record, chip
from .report import FileReport, Noted, Report, note
from .single import add_decision, differences, own_facts, parts_missing
from .snapshot import Snapshot, take
from .strict_json import load_strict
from .tables_check import TableFindings, attack, number_findings

EVIDENCE = "inside/evidence.json"
_STUB_HEAD = "output,kept inside because\n"
_OWN_PROPERTIES = frozenset(
    {
        "method",
        "sacro_deltab",
        "certificate_id",
        "output_type",
        "rule_set",
        "session",
        "acro",
        "type",
        "label",
        "mitigation",
    }
)


@dataclass
class Session:
    """One folder while it is being judged."""

    root: Path
    context: Context
    records: list[Record]
    files: dict[str, Snapshot]
    evidence: Mapping[str, Any] | None
    view: LedgerView
    strict_min_n: int
    report: Report
    documents: dict[str, OutputDocument] = field(default_factory=dict)
    contents: dict[str, Content] = field(default_factory=dict)
    read: dict[str, tuple[OutputDocument | None, list[Noted]]] = field(default_factory=dict)
    tables: TableFindings | None = None
    _by_file: dict[str, Mapping[str, Any]] | None = None

    @property
    def problems(self) -> list[Mapping[str, Any]]:
        """Table problems of the evidence."""
        if self.evidence is None:
            return []
        return [p for p in (self.evidence["tables"], *self.evidence.get("tables_more", ())) if p]

    def entry_of(self, record: Record) -> Mapping[str, Any] | None:
        """The evidence entry that names this record's files."""
        if self._by_file is None:
            listed = () if self.evidence is None else self.evidence["outputs"]
            self._by_file = {name: entry for entry in reversed(listed) for name in entry["files"]}
        found = (self._by_file.get(ref.name) for ref in record.files)
        return next((entry for entry in found if entry is not None), None)


def read_evidence_part(
    root: Path, entries: list[Entry], limits: Limits
) -> tuple[Mapping[str, Any] | None, list[Noted]]:
    """`inside/evidence.json`, strictly; missing or damaged evidence means that nothing can pass."""
    if not any(entry.name == EVIDENCE and entry.kind == "file" for entry in entries):
        return None, [
            note(
                "no-evidence",
                "block",
                f"not judged: missing {EVIDENCE}; without it no fact about any output is known.",
                next_step="Check the folder inside the TRE, with its inside/.",
            )
        ]
    wide = replace(limits, file_bytes=256 * MIB, json_bytes=256 * MIB, text_bytes=256 * MIB, json_items=40_000_000)
    try:
        data = load_strict(take(root / EVIDENCE, EVIDENCE, wide).data, EVIDENCE, wide)
    except UnreadableError as error:
        return None, [note("no-evidence", "block", f"{EVIDENCE} cannot be read: {error.what}.")]
    errors = _evidence_errors(data)
    if errors:
        return None, [note("no-evidence", "block", f"{EVIDENCE} does not match its schema ({errors[0]}).")]
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
        shells.append({**entry, "facts": {**facts, "facts": {}, "parts": []}, "decision": {}, "raw": None})
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


def check_session(session: Session) -> None:
    """Judge every record of the folder into `session.report`."""
    _evidence_findings(session)
    for record in session.records:
        _load_documents(session, record)
    _known(session)
    _attack(session)
    session.report.folder_findings += repeated_types(
        session.documents, session.context.known.ns, session.context.min_n()
    )
    for record in session.records:
        if record.is_ours or session.entry_of(record) is not None or _special(record):
            session.report.outputs += _judge_record(session, record)


def _special(record: Record) -> bool:
    return all(ref.name in SUMMARIES or ref.name in CERTIFICATES for ref in record.files)


# --- before any output ------------------------------------------------------------------------------------------------


def _evidence_findings(session: Session) -> None:
    if session.evidence is None:
        return
    report, evidence = session.report, session.evidence
    made = evidence["session"]["rule_set"]
    ours = session.context.rule_set_json()
    if made["sha256"] != ours["sha256"]:
        report.folder_findings.append(
            note(
                "rule-set",
                "label",
                f"The session used {made['id']} {made['version']}; this check uses "
                f"{ours['id']} {ours['version']} (another digest). This check's rules decide.",
            )
        )
    for who in ("declared", "attested"):
        said = evidence["session"][who]
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
    report.not_checked += [text for text in evidence["not_checked"] if text not in report.not_checked]
    listed = {ref.name for record in session.records for ref in record.files}
    seen: set[str] = set()
    for entry in evidence["outputs"]:
        for name in entry["files"]:
            if name in seen:
                report.folder_findings.append(note("evidence", "block", f"The evidence names {name} twice."))
            seen.add(name)
            if name not in listed:
                report.folder_findings.append(
                    note(
                        "missing-record",
                        "block",
                        f"{name} is in the evidence but in no record of results.json.",
                        next_step="Finalise the session again; do not edit results.json.",
                    )
                )


def _load_documents(session: Session, record: Record) -> None:
    for ref in record.files:
        snapshot = session.files.get(ref.name)
        if snapshot is None or ref.name in CERTIFICATES or ref.name in SUMMARIES:
            continue
        content = read_content(snapshot, session.context.limits)
        session.contents[ref.name] = content
        if content.kind == "json":
            session.read[ref.name] = document_of_json(content, snapshot.data)
            document = session.read[ref.name][0]
            if document is not None:
                session.documents[document.name] = document


def _known(session: Session) -> None:
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
    if document.type not in ("y_mean", "delta_mean", "delta_sd", "ysq_mean"):
        return
    for row in document.rows:
        for cell in row[1:]:
            if isinstance(cell, float):
                digits = len(repr(cell).partition(".")[2]) if "e" not in repr(cell) else 0
                yield Released(f"{document.name} ({row[0]})", cell, 0.5 * 10.0**-digits)


def _attack(session: Session) -> None:
    if session.evidence is None:
        return
    problems = session.problems
    if not problems:
        return
    session.tables = attack(problems, session.documents, session.strict_min_n)
    session.report.folder_findings += session.tables.findings
    session.report.folder_findings += number_findings(problems, session.documents)
    session.report.tables = session.tables.summary


# --- one record -------------------------------------------------------------------------------------------------------


def _judge_record(session: Session, record: Record) -> list[FileReport]:
    reports = [_file_report(session, ref) for ref in record.files]
    if _special(record):
        for report in reports:
            _judge_paper(session, record, report)
        return reports
    entry = session.entry_of(record)
    stub = _is_stub(session, record)
    if stub is not None and (entry is None or entry["kept_inside"]):
        for report in reports:
            report.kept_inside = True
            report.findings = [*stub]
            report.title = None if entry is None else entry["title"]
            report.type = None if entry is None else entry["type"]
            report.add(*_record_texts(record))
        if record.status != "fail":
            reports[0].add(
                note("status", "block", f"results.json says {record.status} for an output that stays inside.")
            )
        if any(finding.verdict == "fail" for finding in reports[0].findings):
            for report in reports:
                report.kept_inside = False
        else:
            for report in reports:
                report.add(note("kept-inside", "block", "Withheld: only this note is in the folder, not the table."))
        session.report.kept_inside += [report.file for report in reports if report.kept_inside]
        return reports
    if entry is None:
        for report in reports:
            report.add(
                note(
                    "not-judged",
                    "block",
                    "not judged: missing its entry in the evidence",
                    next_step="Release it through the session.",
                )
            )
            _screen_file(session, report, typed=False)
        return reports
    _judge_output(session, record, entry, reports)
    return reports


def _file_report(session: Session, ref: FileRef) -> FileReport:
    snapshot = session.files.get(ref.name)
    report = FileReport(ref.name)
    if snapshot is None:
        report.add(
            note("missing-file", "block", f"{ref.name} cannot be judged: it is not in the folder or unreadable.")
        )
        return report
    report.sha256, report.n_bytes, report.kind = snapshot.sha256, len(snapshot.data), kind_of(snapshot.data)
    return report


def _is_stub(session: Session, record: Record) -> list[Noted] | None:
    """Faults of a stub (none when it is an honest one); None when the record holds something else."""
    if len(record.files) != 1:
        return None
    snapshot = session.files.get(record.files[0].name)
    if snapshot is None:
        return None
    text = snapshot.data[:4_000].decode("utf-8", "replace")
    if not text.startswith(_STUB_HEAD):
        return None
    rows = text.removeprefix(_STUB_HEAD)
    faults = list(_judge_text("the reason", rows.removesuffix("\n")))
    numbers = re.findall(r"\d+(?:\.\d+)?", rows)
    if rows.count("\n") != 1 or len(snapshot.data) > 2_500 or len(numbers) > 8 or any("." in n for n in numbers):
        faults.append(note("stub", "block", "The note of a withheld output holds more than one reason."))
    return faults


def _judge_paper(session: Session, record: Record, report: FileReport) -> None:
    if report.file in SUMMARIES:
        report.kept_inside = True
        report.add(note("kept-inside", "block", "ACRO's own summary says: do not release."))
        session.report.kept_inside.append(report.file)
        return
    from .paper_check import judge_certificate

    report.type = "certificate"
    judge_certificate(session, record, report)


def _judge_output(session: Session, record: Record, entry: Mapping[str, Any], reports: list[FileReport]) -> None:
    shared = FileReport(reports[0].file, type=entry["type"], title=entry["title"], output=entry["name"])
    document = _document(session, entry, reports, shared)
    files = [session.files[ref.name] for ref in record.files if ref.name in session.files]
    proved = spend_of(session.view, files) is not None
    if document is not None:
        _judge_document(session, entry, document, shared, proved)
    elif entry["type"] == "plot":
        _judge_plot(session, entry, shared)
    else:
        shared.add(note("not-judged", "block", "not judged: missing the JSON document of this output"))
    shared.add(*_record_faults(record, entry, document, shared))
    if entry["kept_inside"]:
        shared.add(note("status", "block", "The evidence says this stays inside, but its numbers are in the folder."))
    for report in reports:
        report.type, report.title, report.output = shared.type, shared.title, shared.output
        report.met, report.facts = shared.met, shared.facts
        report.add(*shared.findings)
        _screen_file(session, report, typed=document is not None)


def _document(
    session: Session, entry: Mapping[str, Any], reports: list[FileReport], shared: FileReport
) -> OutputDocument | None:
    """The JSON document, with the CSV held against it byte for byte."""
    document = None
    for report in reports:
        content, snapshot = session.contents.get(report.file), session.files.get(report.file)
        if content is None or snapshot is None or content.kind != "json":
            continue
        document, findings = session.read[report.file]
        report.add(*findings)
    if document is None:
        return None
    if (document.name, document.type, document.title) != (entry["name"], entry["type"], entry["title"]):
        shared.add(note("evidence", "block", "Its name, type or title is not the one the evidence records."))
    for report in reports:
        content, snapshot = session.contents.get(report.file), session.files.get(report.file)
        if content is None or snapshot is None or content.kind in ("json", *IMAGES):
            continue
        if snapshot.data != document.to_csv().encode("utf-8"):
            report.add(
                note(
                    "csv-json",
                    "block",
                    "The CSV and the JSON document do not hold the same numbers.",
                    next_step="Release the output again; do not edit it.",
                )
            )
        stem = report.file.rsplit(".", 1)[0]
        if stem != document.name:
            report.add(note("file-name", "block", "The file's name is not the output's."))
    return document


def _facts(session: Session, entry: Mapping[str, Any], raw: OutputDocument, proved: bool) -> Facts:
    """Recorded facts, with what the checker measures itself and what the ledger does or does not prove."""
    facts = facts_from_json(entry["facts"], recorded=True)
    facts = facts.with_facts(*own_facts(raw, "csv", session.context))
    profile = session.context.ruleset.profile
    if profile is not None:
        facts = facts.with_facts(*(Fact(k, v, Provider.ATTESTED) for k, v in profile.attest.items()))
    said = session.context.facts.for_file(raw.name) if session.context.facts is not None else None
    if said is not None:
        facts = facts.with_facts(*(Fact(k, v, Provider.ATTESTED) for k, v in said.facts.items()))
    applied = facts.get("dp.applied")
    noisy = applied is not None and applied.value is True
    counts = session.view.counts and (proved or not noisy)
    more = [Fact("ledger.pinned", counts, Provider.LEDGER)]
    label = facts.get("dp.label")
    if label is not None and label.value == "formal" and not (proved and session.view.counts):
        more.append(Fact("dp.label", "heuristic", Provider.COMPUTED))
    return facts.with_facts(*more)


class _Recorded:
    """The table engine's view for `judge_output`: what the attack on the folder's own files found."""

    def __init__(self, tables: TableFindings, name: str) -> None:
        self._tables, self._name = tables, name

    def protect(self, primary: frozenset[str]) -> frozenset[str]:
        """Never re-chosen by a checker."""
        return primary

    def audit(self, suppressed: frozenset[str]) -> Any:
        """Counts of what falls."""
        from ..facts.table_audit import TableAudit

        del suppressed
        return TableAudit(self._tables.recoverable.get(self._name, 0), self._tables.package)


def _judge_document(
    session: Session,
    entry: Mapping[str, Any],
    document: OutputDocument,
    shared: FileReport,
    proved: bool,
) -> None:
    from ..judge import judge_output

    raw = _raw(entry, shared)
    if raw is None:
        return
    facts = _facts(session, entry, raw, proved)
    missing = parts_missing(facts, raw, session.context)
    if missing:
        shared.add(note("not-judged", "block", "not judged: missing " + ", ".join(missing)))
        return
    shared.add(*_own_consistency(facts, raw))
    shared.add(*_plausible(session, facts, document, raw))
    table: Any = None
    if session.tables is not None and session.tables.complete:
        table = _Recorded(session.tables, document.name)
    try:
        judged = judge_output(
            session.context.ruleset,
            facts,
            raw,
            table=table,
            pattern=marked_rows(document, MARK),
            waivers=session.context.waivers,
            today=session.context.today,
            output_sha256=shared.sha256,
        )
    except SacroDeltabError as error:
        shared.add(note("evidence", "block", f"The evidence does not fit the output: {error.what}."))
        return
    add_decision(shared, judged.decision, judged.facts)
    for problem in judged.problems:
        shared.add(note("not-transformed", "block", f"It is not in the form that may leave: {problem}."))
    if judged.document is not None:
        shared.add(*differences(document, judged.document))
        if judged.document != document and not any(f.rules == ("check/not-transformed",) for f in shared.findings):
            shared.add(note("not-transformed", "block", "It is not what the rules make of the recorded numbers."))
    shared.add(*_strict(session, facts, document))
    noisy = facts.get("dp.applied")
    if noisy is not None and noisy.value is True and not (proved and session.view.counts):
        shared.add(
            unproved(
                "Noise was recorded, but no pinned ledger is closed by the digest of these bytes: the label is at "
                "most heuristic."
            )
        )
    shared.add(*_attested_by_folder(session, facts))
    if session.context.cohort is not None:
        shared.add(*session.context.cohort.compare(str(entry["name"]), facts, raw))


def _raw(entry: Mapping[str, Any], shared: FileReport) -> OutputDocument | None:
    data = entry["raw"]
    if not isinstance(data, dict):
        shared.add(note("not-judged", "block", "not judged: missing its unrounded document in the evidence"))
        return None
    try:
        return OutputDocument.from_json(data)  # the judge holds it against its schema
    except (ValueError, KeyError, TypeError):
        shared.add(note("not-judged", "block", "not judged: its unrounded document in the evidence is damaged"))
        return None


def _own_consistency(facts: Facts, raw: OutputDocument) -> Iterator[Noted]:
    """The evidence against itself: counts of cells in the facts and in the unrounded table."""
    n_at = [i for i, column in enumerate(raw.columns) if column.role == "n"]
    rows = {str(row[0]): row for row in raw.rows}
    for part in facts.parts:
        row = rows.get(part.key)
        n = part.facts.get("cell.n")
        if row is None or n is None or not n_at:
            continue
        if row[n_at[0]] != n.value:
            yield note("evidence", "block", f"The evidence gives two counts for row {part.key!r}.", target=part.key)


def _plausible(session: Session, facts: Facts, document: OutputDocument, raw: OutputDocument) -> Iterator[Noted]:
    context = session.context
    n = facts.get("n")
    people = n.value if n is not None and type(n.value) is int else None
    kind = context.ruleset.cls(document.type) if document.type in context.output_types else ""
    yield from shape_findings(document, people, context.min_n(), kind)
    yield from cells_of_text(raw)
    yield from linked(document.name, document, facts, session.problems)


def _strict(session: Session, facts: Facts, document: OutputDocument) -> Iterator[Noted]:
    """ACRO's own threshold where it is stricter than the rule set's."""
    if session.strict_min_n <= session.context.min_n():
        return
    marked = marked_rows(document, MARK)
    for part in facts.parts:
        n = part.facts.get("cell.n")
        if n is not None and part.key not in marked and type(n.value) is int and 0 < n.value < session.strict_min_n:
            yield note(
                "acro-threshold",
                "block",
                f"Row {part.key!r} is below ACRO's threshold of {session.strict_min_n}, "
                "which is stricter than the rule set's.",
                target=part.key,
            )
    n = facts.get("n")
    if n is not None and type(n.value) is int and n.value < session.strict_min_n:
        yield note("acro-threshold", "block", f"N is below ACRO's threshold of {session.strict_min_n}.")


def _attested_by_folder(session: Session, facts: Facts) -> Iterator[Noted]:
    """What the folder says TRE staff attested counts only when the TRE says it here too."""
    profile = session.context.ruleset.profile
    ours = set(profile.attest) if profile is not None else set()
    said = session.context.facts.for_file(facts.output_name) if session.context.facts is not None else None
    ours |= set(said.facts) if said is not None else set()
    claimed = sorted(
        fact.name for fact in facts.facts.values() if fact.by is Provider.ATTESTED and fact.name not in ours
    )
    if claimed:
        yield note(
            "attested-by-folder",
            "review",
            f"Only the folder says that TRE staff attested: {', '.join(claimed)}.",
            next_step="Give --profile FILE or --facts FILE.",
            asks=("Did the TRE attest these facts?",),
        )


def _judge_plot(session: Session, entry: Mapping[str, Any], shared: FileReport) -> None:
    from ..rules import decide

    facts = facts_from_json(entry["facts"], recorded=True)
    facts = facts.with_facts(
        Fact("output.known", entry["type"] in session.context.output_types, Provider.COMPUTED),
        Fact("output.format", "png", Provider.COMPUTED),
        Fact("ledger.pinned", session.view.counts, Provider.LEDGER),
    )
    try:
        add_decision(
            shared,
            decide(session.context.ruleset, facts, waivers=session.context.waivers, today=session.context.today),
            facts,
        )
    except InputError as error:
        shared.add(note("evidence", "block", f"The evidence does not fit the plot: {error.what}."))
    if _redrawn(session, entry):
        return
    shared.add(
        note(
            "image",
            "review",
            "A person must look at the picture: its pixels are not judged.",
            asks=("Does any mark, label or outlier of the picture show one person or a small group?",),
        )
    )


def _redrawn(session: Session, entry: Mapping[str, Any]) -> bool:
    """Whether the PNG is, pixel by pixel, the picture of a released table: then the table's verdict is the plot's."""
    from dataclasses import replace

    from ..session.plots import draws

    raw = entry["raw"] or {}
    source = session.documents.get(str((raw.get("about") or {}).get("plot_of")))
    pictures = [session.files[name].data for name in entry["files"] if name in session.files]
    if source is None or len(pictures) != 1:
        return False
    return draws(replace(source, name=entry["name"], title=entry["title"], type="plot"), pictures[0])


def _record_texts(record: Record) -> Iterator[Noted]:
    """Fields that leave with an approved record and that nobody sees in the viewer."""
    for name, value in (("summary", record.summary), ("command", record.command)):
        yield from _judge_text(f"`{name}` of record {record.uid!r}", value)
    for text in record.raw.get("comments") or []:
        if isinstance(text, str):
            yield from _judge_text(f"a comment of record {record.uid!r}", text)
    if isinstance(record.raw.get("exception"), str):
        yield from _judge_text(f"`exception` of record {record.uid!r}", record.raw["exception"])
    strange = sorted(str(key) for key in set(record.properties) - _OWN_PROPERTIES)
    if strange:
        yield note("extra-keys", "block", f"record {record.uid!r}: properties nobody judges: {', '.join(strange[:5])}.")
    for key, held in record.properties.items():
        if isinstance(held, str):
            yield from _judge_text(f"property {key!r} of record {record.uid!r}", held)
        elif isinstance(held, dict | list):
            yield note("extra-keys", "block", f"record {record.uid!r}: property {key!r} holds more than a word.")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{5,15}(?:Z|[+-]\d\d:\d\d)?", str(record.raw.get("timestamp"))):
        yield note("record-form", "block", f"record {record.uid!r}: `timestamp` is no time.")
    if record.type != "custom" or len(record.uid) > 80:
        yield note("record-form", "block", f"record {record.uid!r} is not of the form the package writes.")
    yield from _judge_text("a record's uid", record.uid)
    fair = record.raw.get("fair")
    for value in fair.values() if isinstance(fair, dict) else ():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                yield from _judge_text(f"`fair` of record {record.uid!r}", text)
    for ref in record.files:
        summary = ref.sdc.get("summary", {})
        if set(ref.sdc) - {"summary", "cells"} or (summary not in ({}, {"suppressed": True}, {"suppressed": False})):
            yield note(
                "extra-keys",
                "block",
                f"record {record.uid!r}: `sdc` of {ref.name} says more than which cells are marked.",
            )
    for key in ("outcome", "fair"):
        inner = record.raw.get(key)
        if isinstance(inner, dict | list) and inner and _holds_numbers(inner):
            yield note(
                "extra-keys", "block", f"record {record.uid!r}: `{key}` holds numbers; it leaves with the record."
            )


def _holds_numbers(value: Any) -> bool:
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, int | float) and not isinstance(node, bool):
            return True
    return False


def _record_faults(
    record: Record, entry: Mapping[str, Any], document: OutputDocument | None, shared: FileReport
) -> Iterator[Noted]:
    yield from _record_texts(record)
    order = {"pass": 0, "review": 1, "fail": 2}
    if order.get(record.status, 0) < order[entry["status"]]:
        yield note(
            "status-edited",
            "block",
            f"results.json says {record.status}; the session's own evidence says {entry['status']}.",
            next_step="Finalise the session again; do not edit results.json.",
        )
    elif order.get(record.status, 0) < order[shared.verdict] and shared.verdict == "fail":
        yield note("status-believed", "block", f"results.json says {record.status}; the rules say {shared.verdict}.")
    if chip(record) != record.status:
        yield note(
            "summary", "block", "The viewer's chip does not show the record's status: `summary` must start with it."
        )
    if not record.is_ours:
        yield note("record-form", "review", "The record does not name the rule set it was made under.")
    cells: dict[str, Any] = {}
    for ref in record.files:
        cells = dict(ref.sdc.get("cells", {})) or cells
    expected = suppressed_cells(document) if document is not None else {}
    have = sorted(tuple(pair) for pairs in cells.values() for pair in pairs)
    want = sorted(tuple(pair) for pairs in expected.values() for pair in pairs)
    if have != want or len(cells) > 1:
        yield note(
            "red-cells",
            "block",
            "The cells the viewer paints red are not the marked ones, or tell why a cell is marked.",
            next_step="Finalise the session again.",
        )


def _screen_file(session: Session, report: FileReport, *, typed: bool) -> None:
    content = session.contents.get(report.file)
    if content is None:
        return
    known = session.context.known
    local = Known(set(known.ns), known.columns, known.released if not typed else [], known.noise_word)
    report.inventory = [item.line() for item in content.items[:60]]
    report.add(*(Noted.of_remark(remark) for remark in screen(content, local, report.file, typed=typed)))
