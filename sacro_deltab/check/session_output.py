"""One output of a session: judged again from the evidence and compared with its files byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base.errors import InputError, SacroDeltabError
from ..base.findings import Effect, Finding, note
from ..inert.reading import IMAGES
from ..judging.documents import marked_rows
from ..judging.judge import Judged, judge_output
from ..judging.plausible import cells_of_text, linked, shape_findings
from ..judging.report import FileReport
from ..kinds.plots import PLOT
from ..measure.table_audit import TableAudit
from ..outputs import OutputDocument
from ..rules import decide
from ..rules.facts import Fact, Facts, Provider, facts_from_json
from .attack_report import attack_findings
from .detect import screen
from .known import Known
from .ledger_check import cohort_findings, spend_findings, spend_of, statement_findings, unproved
from .rebuilt import noised, output_findings, picture_findings, same_rules, told_findings
from .records import Record
from .session_state import Session
from .single import differences, own_facts, parts_missing
from .tables_check import TableFindings


def judge_output_record(session: Session, record: Record, entry: Mapping[str, Any], reports: list[FileReport]) -> None:
    """Judge one output with its evidence; findings go into the report of each of its files."""
    shared = FileReport(reports[0].file, type=entry["type"], title=entry["title"], output=entry["name"])
    document = _document(session, entry, reports, shared)
    files = [session.files[ref.name] for ref in record.files if ref.name in session.files]
    spend = spend_of(session.view, files, entry["privacy"])
    shared.add(*statement_findings(session.view, spend, entry))
    if document is not None:
        _judge_document(session, entry, document, shared, spend is not None)
    elif entry["type"] == PLOT:
        _judge_plot(session, entry, shared)
    else:
        shared.add(note("not-judged", Effect.BLOCK, "not judged: missing the JSON document of this output"))
    if spend is not None:
        said = facts_from_json(entry["facts"], recorded=True)
        shared.add(*cohort_findings(session.view, spend, (session.evidence or {})["session"]))
        shared.add(*spend_findings(session.view, spend, said, entry["privacy"], str(entry["name"])))
    shared.add(*output_findings(session, record, entry), *attack_findings(session, entry))
    for report in reports:
        report.type, report.title, report.output = shared.type, shared.title, shared.output
        report.met, report.facts = shared.met, shared.facts
        report.add(*shared.findings)
        screen_file(session, report, typed=document is not None)


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
        shared.add(note("evidence", Effect.BLOCK, "Its name, type or title is not the one the evidence records."))
    for report in reports:
        content, snapshot = session.contents.get(report.file), session.files.get(report.file)
        if content is None or snapshot is None or content.kind in ("json", *IMAGES):
            continue
        if snapshot.data != document.to_csv().encode("utf-8"):
            report.add(
                note(
                    "csv-json",
                    Effect.BLOCK,
                    "The CSV and the JSON document do not hold the same numbers.",
                    next_step="Release the output again; do not edit it.",
                )
            )
        stem = report.file.rsplit(".", 1)[0]
        if stem != document.name:
            report.add(note("file-name", Effect.BLOCK, "The file's name is not the output's."))
    return document


def _facts(session: Session, entry: Mapping[str, Any], raw: OutputDocument, proved: bool) -> Facts:
    """Recorded facts, with what the checker measures itself and what the ledger does or does not prove."""
    facts = facts_from_json(entry["facts"], recorded=True)
    facts = facts.with_facts(*own_facts(raw, "csv", session.context))
    profile = session.context.ruleset.profile
    if profile is not None:
        facts = facts.with_facts(*(Fact(k, v, Provider.ATTESTED) for k, v in profile.attest.items()))
    told = session.context.declared
    if told is not None:
        now = told.about(raw.name, raw.type).values()
        facts = facts.with_facts(*(fact for fact in now if facts.get(fact.name) is None))
    said = session.context.facts.for_file(raw.name) if session.context.facts is not None else None
    if said is not None:
        facts = facts.with_facts(*(Fact(k, v, Provider.ATTESTED) for k, v in said.facts.items()))
    applied = facts.get("dp.applied")
    noisy = applied is not None and applied.value is True
    counts = session.view.counts and (proved or not noisy)
    more = [Fact("ledger.pinned", counts, Provider.LEDGER), *_n_protected(session, facts), *_people(session, facts)]
    label = facts.get("dp.label")
    if label is not None and label.value == "formal" and not (proved and session.view.counts):
        more.append(Fact("dp.label", "heuristic", Provider.COMPUTED))
    return facts.with_facts(*more)


def _people(session: Session, facts: Facts) -> Iterator[Fact]:
    """That the TRE registered the people is the ledger's to say, where it is here."""
    said, evidence = facts.get("cohort.registered"), session.evidence
    if said is not None and evidence is not None and session.view.counts:
        about = evidence["session"]
        known = session.view.knows_people(str(about["cohort"]), about["unit"])
        yield Fact("cohort.registered", said.value is True and known, Provider.LEDGER)


def _n_protected(session: Session, facts: Facts) -> Iterator[Fact]:
    """Beside an add_remove release; only what was noised under it has another N than the exact one."""
    if not session.n_protected:
        return
    yield Fact("ledger.n_protected", True, Provider.LEDGER)
    noised = (fact := facts.get("dp.applied")) is not None and fact.value is True
    relation, origin = facts.get("dp.adjacency"), facts.get("n.origin")
    public = noised and origin is not None and origin.value == "public_bound"
    if not public and (relation is None or not noised or relation.value != "add_remove"):
        yield Fact("n.origin", "exact", Provider.COMPUTED)


class _Recorded:
    """The table engine's view for `judge_output`: what the attack on the folder's own files found."""

    def __init__(self, tables: TableFindings, name: str) -> None:
        self._tables, self._name = tables, name

    def protect(self, primary: frozenset[str]) -> frozenset[str]:
        """Never re-chosen by a checker."""
        return primary

    def audit(self, suppressed: frozenset[str]) -> Any:
        """Counts of what falls."""

        del suppressed
        return TableAudit(self._tables.recoverable.get(self._name, 0), self._tables.package)


def _judge_document(
    session: Session,
    entry: Mapping[str, Any],
    document: OutputDocument,
    shared: FileReport,
    proved: bool,
) -> None:

    raw = _raw(entry, shared)
    if raw is None:
        return
    facts = _facts(session, entry, raw, proved)
    missing = parts_missing(facts, raw, session.context)
    if missing:
        shared.add(note("not-judged", Effect.BLOCK, "not judged: missing " + ", ".join(missing)))
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
            pattern=marked_rows(document),
            waivers=session.context.waivers,
            today=session.context.today,
            output_sha256=shared.sha256,
        )
    except SacroDeltabError as error:
        shared.add(note("evidence", Effect.BLOCK, f"The evidence does not fit the output: {error.what}."))
        return
    shared.add_decision(judged.decision, judged.facts)
    certain = same_rules(session) and (proved or not noised(facts)) and session.view.counts
    shared.add(*told_findings(session, entry, judged, certain=certain))
    for problem in judged.problems:
        shared.add(note("not-transformed", Effect.BLOCK, f"It is not in the form that may leave: {problem}."))
    if judged.document is not None:
        shared.add(*differences(document, judged.document))
        if judged.document != document and not any(f.rules == ("check/not-transformed",) for f in shared.findings):
            shared.add(note("not-transformed", Effect.BLOCK, "It is not what the rules make of the recorded numbers."))
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
    shared.add(*_declared_otherwise(session, facts))
    if session.context.cohort is not None:
        attacked = session.tables is not None and session.tables.complete
        cohort = session.context.cohort
        shared.add(*cohort.compare(str(entry["name"]), facts, raw, attacked=attacked))
        again = set(cohort.measured[str(entry["name"])])  # recorded before, now measured from the people
        shared.facts = [(name, "computed" if by == "recorded" and name in again else by) for name, by in shared.facts]


def _raw(entry: Mapping[str, Any], shared: FileReport) -> OutputDocument | None:
    data = entry["raw"]
    if not isinstance(data, dict):
        shared.add(note("not-judged", Effect.BLOCK, "not judged: missing its unrounded document in the evidence"))
        return None
    try:
        return OutputDocument.from_json(data)  # the judge holds it against its schema
    except (ValueError, KeyError, TypeError):
        shared.add(note("not-judged", Effect.BLOCK, "not judged: its unrounded document in the evidence is damaged"))
        return None


def _own_consistency(facts: Facts, raw: OutputDocument) -> Iterator[Finding]:
    """The evidence against itself: counts of cells in the facts and in the unrounded table.

    Of a noised count the facts hold a lower limit.
    """
    n_at = [i for i, column in enumerate(raw.columns) if column.role == "n"]
    rows = {str(row[0]): row for row in raw.rows}
    for part in facts.parts:
        row = rows.get(part.key)
        n = part.facts.get("cell.n")
        if row is None or n is None or not n_at:
            continue
        shown = row[n_at[0]]
        limit = noised(facts) and isinstance(shown, int) and isinstance(n.value, int) and n.value <= max(shown, 0)
        if shown != n.value and not limit:
            yield note(
                "evidence", Effect.BLOCK, f"The evidence gives two counts for row {part.key!r}.", target=part.key
            )


def _plausible(session: Session, facts: Facts, document: OutputDocument, raw: OutputDocument) -> Iterator[Finding]:
    context = session.context
    n = facts.get("n")
    people = n.value if n is not None and type(n.value) is int else None
    yield from shape_findings(document, people, context.ruleset)
    yield from cells_of_text(raw)
    yield from linked(document.name, document, facts, session.problems)


def _strict(session: Session, facts: Facts, document: OutputDocument) -> Iterator[Finding]:
    """ACRO's own threshold where it is stricter than the rule set's."""
    if session.strict_min_n <= session.context.min_n():
        return
    marked = marked_rows(document)
    for part in facts.parts:
        n = part.facts.get("cell.n")
        if n is not None and part.key not in marked and type(n.value) is int and 0 < n.value < session.strict_min_n:
            yield note(
                "acro-threshold",
                Effect.BLOCK,
                f"Row {part.key!r} is below ACRO's threshold of {session.strict_min_n}, "
                "which is stricter than the rule set's.",
                target=part.key,
            )
    n = facts.get("n")
    if n is not None and type(n.value) is int and n.value < session.strict_min_n:
        yield note("acro-threshold", Effect.BLOCK, f"N is below ACRO's threshold of {session.strict_min_n}.")


def _attested_by_folder(session: Session, facts: Facts) -> Iterator[Finding]:
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
            Effect.REVIEW,
            f"Only the folder says that TRE staff attested: {', '.join(claimed)}.",
            next_step="Give --layer FILE or --facts FILE.",
            asks=("Did the TRE attest these facts?",),
        )


def _declared_otherwise(session: Session, facts: Facts) -> Iterator[Finding]:
    """What the researcher declares now against what the session was told."""
    told = session.context.declared
    for fact in () if told is None else told.about(facts.output_name, facts.output_type).values():
        known = facts.get(fact.name)
        if known is not None and known.value != fact.value:
            yield note(
                "declared-otherwise",
                Effect.BLOCK,
                f"{fact.name} is declared now otherwise than the session was told.",
                next_step="Find out which holds; release the output again if the session was told wrongly.",
            )


def _judge_plot(session: Session, entry: Mapping[str, Any], shared: FileReport) -> None:

    facts = facts_from_json(entry["facts"], recorded=True)
    facts = facts.with_facts(
        Fact("output.known", entry["type"] in session.context.output_types, Provider.COMPUTED),
        Fact("output.format", "png", Provider.COMPUTED),
        Fact("ledger.pinned", session.view.counts, Provider.LEDGER),
        *_n_protected(session, facts),
        *_people(session, facts),
    )
    try:
        decision = decide(session.context.ruleset, facts, waivers=session.context.waivers, today=session.context.today)
    except InputError as error:
        shared.add(note("evidence", Effect.BLOCK, f"The evidence does not fit the plot: {error.what}."))
        return
    shared.add_decision(decision, facts)
    certain = same_rules(session) and session.view.counts
    shared.add(*told_findings(session, entry, Judged(decision, None, facts), certain=certain))
    shared.add(*picture_findings(session, entry))


def judge_withheld(session: Session, entry: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether the rules lead to the reasons that the note of a withheld output states."""

    shared = FileReport(str(entry["name"]))
    raw = _raw(entry, shared)
    if raw is None:
        yield from shared.findings
        return
    facts = _facts(session, entry, raw, proved=False)
    try:
        judged = judge_output(
            session.context.ruleset, facts, raw, waivers=session.context.waivers, today=session.context.today
        )
    except SacroDeltabError as error:
        yield note("evidence", Effect.BLOCK, f"The evidence does not fit the output: {error.what}.")
        return
    certain = same_rules(session) and not noised(facts) and session.view.counts
    yield from told_findings(session, entry, judged, certain=certain)


def screen_file(session: Session, report: FileReport, *, typed: bool) -> None:
    """Look for per-subject data in one file, whatever its evidence says."""
    content = session.contents.get(report.file)
    if content is None:
        return
    known = session.context.known
    local = Known(set(known.ns), known.columns, known.released if not typed else [], known.noise_word)
    report.inventory = [item.line() for item in content.items[:60]]
    report.add(*(remark for remark in screen(content, local, report.file, typed=typed)))
