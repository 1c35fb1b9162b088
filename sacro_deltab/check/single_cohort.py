"""One file and the cohort: its facts are measured, and its numbers must be what the rules make of the cohort's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..base.errors import InputError
from ..base.findings import Effect, Finding, note
from ..inert.content import TableData
from ..judging.documents import marked_rows
from ..judging.judge import Judged, judge_output
from ..judging.report import FileReport
from ..kinds.kind import Measured
from ..kinds.registry import KINDS
from ..outputs import OutputDocument
from ..rules.facts import Fact, Facts, FactValue, Part, Provider
from .context import Context
from .recompute.cohort_check import compare
from .recompute.cohort_deltas import Source

# What a file and a cohort cannot tell. Each stands as the sentence of a question: the verdict is at best review.
_UNSAID: dict[str, tuple[FactValue, Provider]] = {
    "egress.route": ("tre_airlock", Provider.ATTESTED),
    "ledger.pinned": (False, Provider.LEDGER),
    "ledger.exhausted_before": (False, Provider.LEDGER),
    "linked_release.any": (False, Provider.LEDGER),
    "cohort.overlap_checked": (False, Provider.LEDGER),
    "cohort.overlap_found": (False, Provider.LEDGER),
    "cohort.registered": (False, Provider.LEDGER),
    "output.declared": (False, Provider.DECLARED),
    "training.iterative": (False, Provider.DECLARED),
    "cohort.unit": ("person", Provider.DECLARED),
}
_NOT_NOISED: dict[str, FactValue] = {
    "dp.applied": False, "dp.label": "none", "dp.mechanism": "none", "dp.adjacency": "none",
    "dp.end_to_end_claim": False, "model.origin": "unprotected",
}  # fmt: skip


def type_of_table(table: TableData) -> str | None:
    """The type of output a CSV is by its header, as the package writes it; the cohort then has to bear it out."""
    head = tuple(name.strip().lower() for name in table.header or ())
    rows = tuple(str(row[0]).strip().lower() for row in table.rows)
    return next((kind.name for kind in KINDS.values() if kind.reads is not None and kind.reads(head, rows)), None)


def judge_by_cohort(
    report: FileReport, document: OutputDocument, own: Iterable[Fact], said: Facts | None, context: Context
) -> bool:
    """Judge a file whose numbers the cohort holds; False where it answers nothing about this type.

    said: what the TRE attested about it; what the cohort measures replaces it and is held against it.
    """
    cohort = context.cohort
    assert cohort is not None
    best: tuple[tuple[bool, int], Judged, Measured, Source | None] | None = None
    own = tuple(own)
    for source, found in cohort.readings(document, None):
        raw = _raw(document, found)
        if raw is None:
            continue
        facts = _facts(raw, found, own, said, context)
        judged = _judged(raw, facts, found, source, context, report.sha256, marked_rows(document))
        if judged is None:
            continue
        rank = (judged.document is None, len(_faults(document, judged)))
        if best is None or rank < best[0]:
            best = (rank, judged, found, source)
        if rank == (False, 0):
            break
    if best is None:
        return False
    _, judged, found, source = best
    _report(report, document, judged, said, found, context)
    cohort.publish(document, found, source, judged)
    return True


def _raw(document: OutputDocument, found: Measured) -> OutputDocument | None:
    """The document with the cohort's own numbers; None where the cohort does not answer each row."""
    rows = []
    for row in document.rows:
        values = found.rows.get(str(row[0]))
        if values is None or len(values) != len(row) - 1:
            return None
        rows.append((row[0], *values))
    about = {key: value for key, value in document.about.items() if key != "suppression"}
    return replace(document, rows=tuple(rows), about=about)


def _facts(raw: OutputDocument, found: Measured, own: tuple[Fact, ...], said: Facts | None, context: Context) -> Facts:
    computed = {name: Fact(name, value, Provider.COMPUTED) for name, value in {**_NOT_NOISED, **found.facts}.items()}
    unsaid = {name: Fact(name, value, by) for name, (value, by) in _UNSAID.items()}
    profile = context.ruleset.profile
    attested = {} if profile is None else {k: Fact(k, v, Provider.ATTESTED) for k, v in profile.attest.items()}
    kind = KINDS[raw.type].part
    parts = tuple(
        Part(
            kind,
            str(row[0]),
            {name: _part_fact(name, value) for name, value in found.parts.get(str(row[0]), {}).items()},
            row[-1] if isinstance(row[-1], int | float) else None,
        )
        for row in raw.rows
        if kind != "row" or found.parts
    )
    merged = {**unsaid, **({} if said is None else said.facts), **attested, **computed}
    return Facts(raw.name, raw.type, merged, parts).with_facts(*own)


def _part_fact(name: str, value: FactValue) -> Fact:
    return Fact(name, value, Provider.DECLARED if name == "cell.structural_zero" else Provider.COMPUTED)


def _judged(
    raw: OutputDocument,
    facts: Facts,
    found: Measured,
    source: Source | None,
    context: Context,
    digest: str | None,
    marked: frozenset[str],
) -> Judged | None:

    assert context.cohort is not None
    try:
        return judge_output(
            context.ruleset,
            facts,
            raw,
            table=context.cohort.beside(raw, found, source),
            pattern=marked,
            waivers=context.waivers,
            today=context.today,
            output_sha256=digest,
        )
    except InputError:  # the columns do not fit this type
        return None


def _faults(document: OutputDocument, judged: Judged) -> list[Finding]:
    out = [
        note("not-transformed", Effect.BLOCK, f"It is not in the form that may leave: {p}.") for p in judged.problems
    ]
    expected = () if judged.document is None else judged.document.rows
    for have, want in zip(document.rows, expected, strict=False):
        for column, old, new in zip(document.columns[1:], have[1:], want[1:], strict=False):
            if old == new and isinstance(old, str) == isinstance(new, str):
                continue
            out.append(
                note(
                    "cohort-differs",
                    Effect.BLOCK,
                    f"Column {column.name!r} of row {str(have[0])!r} is {old}; the rules make {new} of the cohort's.",
                    target=str(have[0]),
                    outside="A number differs from the cohort.",
                    next_step="Release it through DeltabSession from these people, and do not edit it.",
                )
            )
    return out[:50]


def _report(
    report: FileReport,
    document: OutputDocument,
    judged: Judged,
    said: Facts | None,
    found: Measured,
    context: Context,
) -> None:
    report.add_decision(judged.decision, judged.facts)
    faults = _faults(document, judged)
    report.add(*faults)
    if judged.document is None and not judged.problems:
        report.add(*_rounded_as_far_as_seen(document, found))
    if said is not None:
        report.add(*compare(document, said, replace(found, rows={}))[1])
    profile = context.ruleset.profile
    spoken = {*(() if said is None else said.facts), *(() if profile is None else profile.attest), *found.facts}
    unsaid = sorted(set(_UNSAID) - spoken)
    report.facts = [(name, by) for name, by in report.facts if name not in unsaid]
    if unsaid:
        report.add(
            note(
                "unsaid",
                Effect.REVIEW,
                f"Nobody said, and neither file nor cohort can tell: {', '.join(unsaid)}.",
                next_step="Give --facts FILE or --layer FILE, or check the whole session folder.",
                asks=("Does it leave by the airlock, and what was released of these people before?",),
            )
        )
    done = sorted({*found.facts, *(key for part in found.parts.values() for key in part)})
    assert context.cohort is not None
    context.cohort.measured[document.name] = [*done, *(f"value of {key}" for key in found.rows)]
    context.cohort.unmeasured[document.name] = unsaid


def _rounded_as_far_as_seen(document: OutputDocument, found: Measured) -> Iterator[Finding]:
    """A blocked output has no form to compare with: its numbers must at least lie near the cohort's."""
    for row in document.rows:
        for cell, now in zip(row[1:], found.rows.get(str(row[0]), ()), strict=False):
            if isinstance(cell, int | float) and now is not None and abs(cell - now) > 0.5 + 0.05 * abs(now):
                yield note("cohort-differs", Effect.BLOCK, f"Row {str(row[0])!r} is not what the cohort gives.")
                return
