"""Judge a session folder: every status, digest and threshold in it is printed, none is believed.

The evidence under `inside/` counts as *recorded by the session*. Every output is judged again from it, transformed
again, and compared byte for byte with the file that is asked to leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..base.findings import Effect, note
from ..inert.reading import kind_of, read_content
from ..judging.documents import document_of_json
from ..judging.plausible import repeated_types
from ..judging.report import PAPER, FileReport, attempted, broke_off
from ..judging.said import NO_COLUMNS
from .folder import CERTIFICATES, SUMMARIES
from .ledger_check import NOT_COMPARED, other_people
from .paper_check import judge_certificate
from .rebuilt import output_findings, rebuild, stub_findings
from .records import FileRef, Record
from .session_evidence import evidence_findings, learn
from .session_output import judge_output_record, judge_withheld, screen_file
from .session_state import Session
from .tables_check import attack, number_findings


def check_session(session: Session, config: Any, config_data: bytes) -> None:
    """Judge every record of the folder into `session.report`; config.json as it was read stands beside it."""
    _step(session, evidence_findings)
    for record in session.records:
        _step(session, partial(_load_documents, record=record))
    _step(session, learn)
    _step(session, _learn_cohort)
    _step(session, partial(rebuild, config=config, config_data=config_data))
    _step(session, _attack)
    _step(session, _repeated)
    for record in session.records:
        if record.is_ours or session.entry_of(record) is not None or is_special(record):
            name = record.files[0].name if record.files else record.uid
            session.report.outputs += attempted(name, partial(_judge_record, session, record))
    _step(session, _link_cohort)
    _step(session, _columns)


def _columns(session: Session) -> None:
    """Of people registered without columns nothing was compared; `--cohort` compares."""
    if session.context.cohort is not None or session.evidence is None:
        return
    about = session.evidence["session"]
    if NO_COLUMNS in session.evidence["not_checked"] or not session.view.knows_columns(
        str(about["cohort"]), about["unit"]
    ):
        session.report.folder_findings.append(
            note(
                "columns-unknown",
                Effect.REVIEW,
                "The TRE registered these people without columns, so no column behind an output was compared with one.",
                asks=("Where do values, features and labels come from, and could they be single people's?",),
                next_step="Register the source table with its columns, or check with --cohort FILE.",
            )
        )


def _step(session: Session, act: Callable[[Session], None]) -> None:
    """One step over the whole folder; where it breaks off the folder fails, and its files are judged all the same."""
    try:
        act(session)
    except Exception as error:
        session.report.folder_findings.append(broke_off(error))


def _learn_cohort(session: Session) -> None:
    if session.context.cohort is not None:
        session.context.cohort.sources.learn(session.evidence)


def _link_cohort(session: Session) -> None:
    if session.context.cohort is not None:
        session.report.folder_findings += session.context.cohort.linked(session.problems)
        _compare_people(session)


def _compare_people(session: Session) -> None:
    cohort = session.context.cohort
    ids = None if cohort is None else cohort.file.ids
    if ids is None or session.evidence is None:
        return
    about = session.evidence["session"]
    others = other_people(session.view, str(about["cohort"]), str(about["unit"]), ids)
    if others is None:
        session.report.not_checked.append(NOT_COMPARED)
    elif others:
        session.report.folder_findings.append(
            note(
                "cohort-differs",
                Effect.BLOCK,
                "The people of the cohort are not those under whose ids the session was held and paid for.",
                next_step="Run the session again on the registered cohort, under its own ids.",
            )
        )


def _repeated(session: Session) -> None:
    session.report.folder_findings += repeated_types(
        session.documents, session.context.known.ns, session.context.min_n()
    )


def is_special(record: Record) -> bool:
    """Whether a record lists only ACRO's summaries or the certificate files."""
    return all(ref.name in SUMMARIES or ref.name in CERTIFICATES for ref in record.files)


def keeps_inside(record: Record) -> bool:
    """Whether ACRO's summary is in the record that ACRO makes for it, which tells every checker not to release it."""
    return record.uid.endswith("DONT_RELEASE") and record.status != "pass"


def _load_documents(session: Session, record: Record) -> None:
    for ref in record.files:
        snapshot = session.files.get(ref.name)
        if snapshot is None or ref.name in CERTIFICATES or ref.name in SUMMARIES:
            continue
        content = read_content(snapshot, session.context.limits)
        session.contents[ref.name] = content
        if content.kind == "json":
            session.read[ref.name] = document_of_json(content, snapshot.data, session.context.ruleset.parameters)
            document = session.read[ref.name][0]
            if document is not None:
                session.documents[document.name] = document


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


def _judge_record(session: Session, record: Record) -> list[FileReport]:
    reports = [file_report(session, ref) for ref in record.files]
    if is_special(record):
        for report in reports:
            _judge_paper(session, record, report)
        return reports
    entry = session.entry_of(record)
    if entry is None:
        for report in reports:
            report.add(
                note(
                    "not-judged",
                    Effect.BLOCK,
                    "not judged: missing its entry in the evidence",
                    next_step="Release it through the session.",
                )
            )
            screen_file(session, report, typed=False)
        return reports
    if entry["kept_inside"]:
        _judge_stub(session, record, entry, reports[0])
        return reports
    judge_output_record(session, record, entry, reports)
    return reports


def _judge_stub(session: Session, record: Record, entry: Mapping[str, Any], report: FileReport) -> None:
    """An output that stays inside: its note and its record may say no more than its findings."""
    report.title, report.type, report.output = entry["title"], entry["type"], entry["name"]
    report.add(*output_findings(session, record, entry), *stub_findings(session, entry))
    report.add(*judge_withheld(session, entry))
    if report.verdict != "fail":
        report.kept_inside = True
        report.add(note("kept-inside", Effect.BLOCK, "Withheld: only this note is in the folder, not the table."))
        session.report.kept_inside.append(report.file)


def file_report(session: Session, ref: FileRef) -> FileReport:
    """An empty report of one listed file, or the finding that it is missing."""
    snapshot = session.files.get(ref.name)
    report = FileReport(ref.name)
    if snapshot is None:
        report.add(
            note("missing-file", Effect.BLOCK, f"{ref.name} cannot be judged: it is not in the folder or unreadable.")
        )
        return report
    report.sha256, report.n_bytes, report.kind = snapshot.sha256, len(snapshot.data), kind_of(snapshot.data)
    return report


def _judge_paper(session: Session, record: Record, report: FileReport) -> None:
    if report.file in SUMMARIES and session.evidence is not None:
        report.add(note("summary-record", Effect.BLOCK, "ACRO's summary of a session of ours stays in inside/."))
        return
    if report.file in SUMMARIES:
        report.kept_inside = keeps_inside(record)
        if not report.kept_inside:
            report.add(note("summary-record", Effect.BLOCK, "ACRO's summary stands in a record that does not say so."))
            return
        report.add(note("kept-inside", Effect.BLOCK, "ACRO's own summary says: do not release."))
        session.report.kept_inside.append(report.file)
        return

    report.type = PAPER
    judge_certificate(session, report)
