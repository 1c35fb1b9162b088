"""Judge one file on its own: what it holds, what it most likely is, and what the rules say given attested facts."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..base.errors import InputError, UnreadableError
from ..base.findings import Effect, Finding, note
from ..inert.archives import Member, read_members, read_tar
from ..inert.content import Content, TableData
from ..inert.reading import EXPORT, IMAGES, read_content, unpack
from ..inert.snapshot import Snapshot
from ..judging.documents import document_of_csv, document_of_json, marked_rows, stem_of
from ..judging.judge import judge_output
from ..judging.plausible import shape_findings
from ..judging.report import FileReport
from ..kinds.per_subject import KINDS as PER_SUBJECT
from ..kinds.plots import PLOT
from ..kinds.registry import KINDS
from ..outputs import OutputDocument, is_mark
from ..rules import facts_required
from ..rules.facts import Fact, Facts, Part, Provider
from ..rules.types import Decision
from .context import Context
from .detect import screen
from .everyday import everyday_findings, with_people
from .facts_file import Attested
from .recompute.cohort_file import is_noised
from .single_cohort import judge_by_cohort, type_of_table

_FORMATS = {
    "json": "json",
    "table": "csv",
    "png": "png",
    "pickle": "pickle",
    "npz": "npz",
    "npy": "npy",
    "text": "text",
}


_RELEASE = frozenset({"results.json", "certificate.dsse.txt"})  # what every release zip holds
_RELEASED = "It is a release with its certificate: what is in it was judged before it was packed, and is verified now."


def check_file(snapshot: Snapshot, context: Context) -> list[FileReport]:
    """Judge a file; an archive gives one entry for itself and one for each member."""
    try:
        packed = unpack(snapshot.data, snapshot.name, context.limits)
    except UnreadableError as error:
        return [_refused(snapshot, error)]
    if packed is not None:
        return _check_archive(snapshot, packed, context)
    return [_check_plain(snapshot, context)]


def _refused(snapshot: Snapshot, error: UnreadableError) -> FileReport:
    report = _empty(snapshot)
    report.add(note("unreadable", Effect.BLOCK, f"Not read: {error.what}.", next_step=error.next_step))
    return report


def _empty(snapshot: Snapshot) -> FileReport:
    return FileReport(snapshot.name, sha256=snapshot.sha256, n_bytes=len(snapshot.data))


def _check_archive(snapshot: Snapshot, packed: tuple[str, bytes], context: Context) -> list[FileReport]:
    kind, data = packed
    outer = _empty(snapshot)
    outer.kind = kind
    outer.add(
        note(
            "archive",
            Effect.BLOCK,
            "It is an archive: each file needs a decision of its own.",
            next_step="Send the files themselves, not an archive.",
        )
    )
    if kind not in ("zip", "tar"):
        outer.add(note("archive", Effect.BLOCK, f"It is a compressed stream that holds a file of kind {kind}."))
        inner = Snapshot.of_bytes(f"{snapshot.name}!{stem_of(snapshot.name)}", data)
        return [outer] if kind == "gzip" else [outer, _check_plain(inner, context)]
    reports = [outer]
    try:
        members = list(_members(kind, data, snapshot.name, context))
        if {member.name for member in members} >= _RELEASE:
            outer.findings = [note("archive", Effect.BLOCK, _RELEASED, next_step=f"sacro-deltab verify {outer.file}")]
            return reports
        for member in members:
            outer.inventory.append(f"{member.name}: {len(member.data)} bytes")
            inner = Snapshot.of_bytes(f"{snapshot.name}!{member.name}", member.data)
            if unpack(member.data, inner.name, context.limits) is not None:
                nested = _empty(inner)
                nested.add(note("archive", Effect.BLOCK, "It is an archive inside an archive; it was not opened."))
                reports.append(nested)
            else:
                reports.append(_check_plain(inner, context))
    except UnreadableError as error:
        outer.add(note("archive", Effect.BLOCK, f"Not opened: {error.what}.", next_step=error.next_step))
    return reports


def _members(kind: str, data: bytes, name: str, context: Context) -> Iterable[Member]:

    return (
        read_members(io.BytesIO(data), name, context.limits) if kind == "zip" else read_tar(data, name, context.limits)
    )


def _check_plain(snapshot: Snapshot, context: Context) -> FileReport:
    content = read_content(snapshot, context.limits)
    report = _empty(snapshot)
    report.kind = content.kind
    report.inventory = [item.line() for item in content.items[:400]]
    attested = context.facts.for_file(snapshot.name) if context.facts is not None else None
    known = replace(context.known, ns=set(context.known.ns))
    if attested is not None:
        known.add_ns(v for k, v in attested.facts.items() if k in ("n", "n_node") and type(v) is int)
    document, findings = _document(content, snapshot, attested, context)
    told = list(everyday_findings(content, context.min_n())) if document is None else []
    remarks = screen(with_people(content), known, snapshot.name.rsplit("!", 1)[-1], typed=document is not None)
    report.add(*findings, *told, *remarks)
    if document is not None:
        report.type, report.title, report.output = document.type, document.title, document.name
        _judge(report, document, content, attested, context)
        return report
    report.type = guessed_type(remarks)
    if content.kind in IMAGES:
        _judge_image(report, attested, context)
    elif report.type is not None or not any(remark.code == "kind" for remark in remarks):
        report.add(_not_judged(report, context))
    return report


def guessed_type(remarks: Iterable[Finding]) -> str | None:
    """The per-subject type most remarks speak of."""
    found = {remark.code.removeprefix("type-") for remark in remarks if remark.code.startswith("type-")}
    return next((kind.name for kind in PER_SUBJECT if kind.name in found), None)


def _document(
    content: Content, snapshot: Snapshot, attested: Attested | None, context: Context
) -> tuple[OutputDocument | None, list[Finding]]:
    numbers = context.ruleset.parameters
    if content.kind == "json":
        return document_of_json(content, snapshot.data, numbers)
    if content.kind != "table":
        return None, []
    table: TableData = content.data
    kind = None if attested is None else attested.output_type
    if kind is None and context.cohort is not None:
        kind = type_of_table(table)
    if kind is None:
        return None, []
    title = None if attested is None else attested.title
    return document_of_csv(table, snapshot.data, stem_of(snapshot.name), kind, title, numbers)


def _not_judged(report: FileReport, context: Context, missing: Iterable[str] = ()) -> Finding:
    names = list(missing)
    if not names:
        names = ["what kind of output it is", "every fact about it"]
        if report.type is not None and report.type in context.output_types:
            return note(
                "never-leaves",
                Effect.BLOCK,
                f"not judged: {report.type} holds values of people and never leaves.",
                next_step=EXPORT,
            )
    listed = ", ".join(names)
    return note(
        "not-judged",
        Effect.BLOCK,
        f"not judged: missing {listed}",
        next_step="Check the whole session folder, or give --facts FILE (attested by the TRE) or --cohort FILE. "
        + EXPORT,
    )


def own_facts(document: OutputDocument, file_format: str, context: Context) -> list[Fact]:
    """Facts the checker can measure on the file itself; they replace whatever was said about them."""
    computed = Provider.COMPUTED
    values = sum(len(row) - 1 for row in document.rows)
    return [
        Fact("output.known", document.type in context.output_types, computed),
        Fact("output.format", file_format, computed),
        Fact("output.rows", len(document.rows), computed),
        Fact("shape.length", values, computed),
    ]


def _judge(
    report: FileReport, document: OutputDocument, content: Content, attested: Attested | None, context: Context
) -> None:
    file_format = _FORMATS.get(content.kind, "other")
    if attested is not None and attested.output_type not in (None, document.type):
        report.add(
            note("type", Effect.BLOCK, f"The facts speak of {attested.output_type}, the file of {document.type}.")
        )
        return
    own = own_facts(document, file_format, context)
    spoken = None if attested is None else attested.to_facts(document.name, document.type)
    if context.cohort is not None and not is_noised(spoken) and judge_by_cohort(report, document, own, spoken, context):
        report.add(*_shape(document, spoken, context))
        return
    if spoken is None:
        report.add(_not_judged(report, context, _required(document.type, context)))
        return
    if context.cohort is not None:
        report.add(*context.cohort.compare(document.name, spoken, document))
    facts = _without_noise(_profiled(spoken, context).with_facts(*own))
    facts = Facts(facts.output_name, facts.output_type, facts.facts, _complete_parts(facts.parts, document, context))
    missing_parts = parts_missing(facts, document, context)
    if missing_parts:
        report.add(_not_judged(report, context, missing_parts))
        return
    apply_rules(report, facts, document, context, sha256=report.sha256)
    report.add(*_shape(document, facts, context))
    cap_noise(report, facts)


def _shape(document: OutputDocument, facts: Facts | None, context: Context) -> Iterator[Finding]:
    n = None if facts is None else facts.get("n")
    people = n.value if n is not None and type(n.value) is int else None
    if people is None and context.cohort is not None:
        people = context.cohort.n
    return shape_findings(document, people, context.ruleset)


def _profiled(facts: Facts, context: Context) -> Facts:
    """With what layers attest for every output."""
    profile = context.ruleset.profile
    said = {} if profile is None else profile.attest
    return facts.with_facts(*(Fact(name, value, Provider.ATTESTED) for name, value in said.items()))


def _without_noise(facts: Facts) -> Facts:
    """Where the TRE attests that nothing was noised, what follows from that need not be said as well."""
    applied = facts.get("dp.applied")
    if applied is None or applied.value is not False:
        return facts
    absent = (name for name in ("dp.label", "dp.mechanism", "dp.adjacency") if facts.get(name) is None)
    return facts.with_facts(*(Fact(name, "none", Provider.COMPUTED) for name in absent))


def _required(output_type: str, context: Context) -> list[str]:
    if output_type not in context.output_types:
        return [f"a rule for outputs of type {output_type}"]

    measured = {"output.known", "output.format", "output.rows", "shape.length", "rounding.done", "evidence.complete"}
    needed = sorted(set(facts_required(context.ruleset, output_type)) - measured)
    noise = [name for name in needed if name.startswith(("dp.", "bounds.")) and name != "dp.applied"]
    plain = [name for name in needed if name not in noise]
    return [*plain, *([f"where noise was added also {noise[0]}", *noise[1:]] if noise else [])]


def _complete_parts(parts: tuple[Part, ...], document: OutputDocument, context: Context) -> tuple[Part, ...]:
    if parts or document.type not in context.output_types or context.ruleset.cls(document.type) != "quantile":
        return parts
    out = []
    for row in document.rows:
        try:
            percent = Fact("quantile.percent", float(str(row[0])), Provider.COMPUTED)
        except ValueError:
            continue
        out.append(Part("quantile", str(row[0]), {"quantile.percent": percent}))
    return tuple(out)


def parts_missing(facts: Facts, document: OutputDocument, context: Context) -> list[str]:
    """Rows of a table that no part speaks of: without them a rule for each cell would hold of nothing."""
    if document.type not in context.output_types:
        return []
    needs = KINDS[document.type].part
    if needs == "row":
        return []
    have = {part.key for part in facts.parts if part.kind == needs}
    rows = [str(row[0]) for row in document.rows]
    gone = [row for row in rows if row not in have]
    return [f"facts of {len(gone)} of its {len(rows)} rows (`parts`)"] if gone or not rows else []


def apply_rules(
    report: FileReport, facts: Facts, document: OutputDocument, context: Context, *, sha256: str | None = None
) -> Decision | None:
    """Judge a document that arrived as it would leave: it must already be what the rules would make of it."""

    try:
        judged = judge_output(
            context.ruleset,
            facts,
            document,
            pattern=marked_rows(document),
            waivers=context.waivers,
            today=context.today,
            output_sha256=sha256,
        )
    except InputError as error:
        report.add(note("evidence", Effect.BLOCK, f"Its facts do not fit it: {error.what}."))
        return None
    report.add_decision(judged.decision, judged.facts)
    for problem in judged.problems:
        report.add(note("not-transformed", Effect.BLOCK, f"It is not in the form that may leave: {problem}."))
    if judged.document is not None:
        report.add(*differences(document, judged.document))
    return judged.decision


def differences(arrived: OutputDocument, expected: OutputDocument) -> list[Finding]:
    """Cells that are not what the rules make of them."""
    out = []
    for number, (have, want) in enumerate(zip(arrived.rows, expected.rows, strict=False), start=1):
        for column, old, new in zip(arrived.columns, have, want, strict=False):
            if old == new and type(old) is type(new):
                continue
            if isinstance(old, int | float) and isinstance(new, int | float) and float(old) == float(new):
                continue
            what = "must be marked" if is_mark(new) else "is not rounded as the rules say"
            out.append(
                note(
                    "not-transformed",
                    Effect.BLOCK,
                    f"Row {number}, column {column.name!r} {what}.",
                    target=str(have[0]),
                    next_step="Release the output again; do not edit it.",
                )
            )
    return out[:50]


def cap_noise(report: FileReport, facts: Facts) -> None:
    """Noise cannot be seen in a file: without a pinned, closed ledger it never counts as more than somebody's word."""
    applied = facts.get("dp.applied")
    if applied is not None and applied.value is True:
        report.add(
            note(
                "noise-unproved",
                Effect.REVIEW,
                "That noise was added rests on a statement; nothing in one file proves it.",
                next_step="Check the session folder with --ledger and --trust.",
                asks=("Who saw the noise being added, and in which ledger is it written?",),
            )
        )


def _judge_image(report: FileReport, attested: Attested | None, context: Context) -> None:
    if report.kind != "png":
        report.add(note("format", Effect.BLOCK, "Plots leave as PNG only.", next_step="Save the plot as PNG."))
    if attested is None or attested.facts.get("plot.source_status") not in ("pass", "review"):
        report.add(_not_judged(report, context, ["the verdict of the numbers that are drawn (plot.source_status)"]))
        return
    report.type = PLOT
    report.facts = sorted((name, "attested") for name in attested.facts)
    if attested.facts.get("plot.per_subject_marks") is not False:
        report.add(_not_judged(report, context, ["whether a mark stands for one subject (plot.per_subject_marks)"]))
    report.add(
        note(
            "image",
            Effect.REVIEW,
            "A person must look at the picture: its pixels are not judged.",
            asks=("Does any mark, label or outlier of the picture show one person or a small group?",),
        )
    )


def file_format(kind: str) -> str:
    """The rule set's word for a kind of file."""
    return _FORMATS.get(kind, "other")


__all__: list[Any] = [
    "apply_rules",
    "check_file",
    "differences",
    "file_format",
    "own_facts",
    "parts_missing",
]
