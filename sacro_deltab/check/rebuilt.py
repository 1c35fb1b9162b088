"""The folder made again from its evidence and compared: what the package would not have written does not leave.

Evidence that nobody signed proves consistency only: that every byte outside `inside/` follows from it, that the rules
say of it what the records say, and no more. What it says of people is held against `--cohort` and the ledger elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..base.findings import Effect, Finding, note
from ..build.free import free_bits
from ..build.picture import picture, plotted, source_of
from ..build.record import Header, Outside, broken_told, loosened, stub, told_of
from ..build.results import CERTIFICATE_RECORD, config_faults, own_records, results_bytes
from ..judging.documents import free_text_of
from ..judging.judge import Judged
from ..judging.shape import shaped
from ..kinds.plots import PLOT
from ..outputs.document import OutputDocument
from ..rules import decide, decision_to_json, outside_findings
from ..rules.facts import Facts
from .records import Record
from .session_state import Session

_STEP = "Finalise the session again; do not edit what it wrote."


def rebuild(session: Session, config: Any, config_data: bytes) -> None:
    """Compare results.json and config.json with what the evidence makes of them."""
    if session.evidence is None:
        return
    report, header = session.report, Header.of(session.evidence["session"])
    if faults := header.faults():
        report.folder_findings.append(
            note(
                "not-rebuilt",
                Effect.BLOCK,
                f"The evidence holds a text of another form than the package writes: {', '.join(faults)}.",
                next_step=_STEP,
            )
        )
    for fault in config_faults(config, config_data, session.evidence["session"]):
        report.folder_findings.append(note("config", Effect.BLOCK, f"config.json: {fault}.", next_step=_STEP))
    own = own_records(session.evidence, _documents(session))
    others = {
        record.uid: record.raw
        for record in session.records
        if record.uid not in own and record.uid != CERTIFICATE_RECORD
    }
    session.expected = own
    bits = sum(entry.get("free_bits", 0) for entry in session.evidence["outputs"])
    if session.evidence.get("free_bits") != bits:
        what = "The evidence does not say how much all names, labels and orders can say together."
        report.folder_findings.append(note("not-rebuilt", Effect.BLOCK, what, next_step=_STEP))
    if results_bytes(session.evidence, own, others) != session.results:
        report.folder_findings.append(
            note(
                "not-rebuilt",
                Effect.BLOCK,
                "results.json is not, byte for byte, what the package writes of these records: "
                f"{_where(session.records, own)}.",
                next_step=_STEP,
            )
        )


def _where(records: Sequence[Record], own: Mapping[str, Mapping[str, Any]]) -> str:
    """The first places that differ, by name only."""
    there = {record.uid: record.raw for record in records}
    places = [f"record {uid!r} is missing" for uid in own if uid not in there]
    places += [f"record {uid!r} ({', '.join(_fields(there[uid], own[uid]))})" for uid in own if uid in there]
    places = [place for place in places if not place.endswith("()")]
    if CERTIFICATE_RECORD not in there:
        places.append("the certificate's record is missing")
    return ", ".join(places[:5]) or "its order, its first entries or its form"


def _fields(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    return [key for key, value in expected.items() if key not in found or found[key] != value]


def _documents(session: Session) -> dict[str, OutputDocument | None]:
    """What leaves of each output, read from the folder; a plot shows the numbers of the output that it is made of."""
    found: dict[str, OutputDocument | None] = {}
    for entry in (session.evidence or {}).get("outputs", ()):
        name = str(entry["name"])
        if entry["kept_inside"]:
            found[name] = None
        elif entry["type"] == PLOT:
            source = session.documents.get(source_of(entry))
            found[name] = source and plotted(entry, source)
        else:
            found[name] = session.documents.get(name)
    return found


def output_findings(session: Session, record: Record, entry: Mapping[str, Any]) -> Iterator[Finding]:
    """The record of one output, its files' names and the texts that somebody chose."""
    yield from free_text_of((str(entry["name"]), str(entry["title"])), session.context.ruleset.parameters)
    if list(Outside.of(entry).files) != list(entry["files"]):
        yield note(
            "not-rebuilt", Effect.BLOCK, "The evidence names other files than the package writes.", next_step=_STEP
        )
    document = None if entry["kept_inside"] else session.documents.get(str(entry["name"]))
    if entry.get("free_bits") != free_bits(str(entry["name"]), str(entry["title"]), document):
        what = "The evidence does not say how much the names, labels and order of this output can say."
        yield note("not-rebuilt", Effect.BLOCK, what, next_step=_STEP)
    expected = session.expected.get(str(entry["name"]))
    fields = ["uid"] if expected is None or expected["uid"] != record.uid else _fields(record.raw, expected)
    if fields:
        yield note(
            "not-rebuilt",
            Effect.BLOCK,
            f"Its record is not what the package writes of this output: {', '.join(fields)}.",
            next_step=_STEP,
        )


def stub_findings(session: Session, entry: Mapping[str, Any]) -> Iterator[Finding]:
    """The note of an output that stays inside: the one line that its findings make, and nothing else."""
    output = replace(Outside.of(entry), kept_inside=True)
    snapshot = session.files.get(output.files[0])
    if snapshot is None or snapshot.data != stub(output):
        yield note("stub", Effect.BLOCK, "The note of a withheld output holds more than one reason.", next_step=_STEP)


def picture_findings(session: Session, entry: Mapping[str, Any]) -> Iterator[Finding]:
    """A PNG must be, byte for byte, the picture of released numbers: then their verdict is the picture's."""
    source = session.documents.get(source_of(entry))
    found = [session.files[name].data for name in Outside.of(entry).files if name in session.files]
    if source is None or len(found) != 1 or found[0] != picture(plotted(entry, source)):
        yield note(
            "image",
            Effect.BLOCK,
            "The picture is not the one that is drawn of released numbers.",
            next_step="Plot a released output, and check where matplotlib has the version that the session had.",
        )


def told_findings(session: Session, entry: Mapping[str, Any], judged: Judged, *, certain: bool) -> Iterator[Finding]:
    """Status and sentences of the record against those that the rules lead to here.

    Under other rules, or without the ledger that the session had, they may differ: then a person reads them, asked once
    for the folder.
    """
    judged = shaped(session.context.ruleset, _before_the_answer(session, entry, judged))
    told = told_of(outside_findings(judged.decision, session.context.ruleset))
    recorded = (entry["told"], entry["status"], entry["decision"])
    if recorded == (told, judged.status, decision_to_json(judged.decision)):
        return
    if entry["kept_inside"] and entry["status"] == "fail" and entry["told"] == broken_told():
        return
    if certain:
        yield note(
            "told",
            Effect.BLOCK,
            "What the record says of the output is not what the rules say of it.",
            next_step=_STEP,
        )
    elif _ELSEWHERE not in session.report.folder_findings:
        session.report.folder_findings.append(_ELSEWHERE)


def _before_the_answer(session: Session, entry: Mapping[str, Any], judged: Judged) -> Judged:
    """The judgement without what TRE staff have said since: the record asked for it."""
    context = session.context
    answered = {
        name
        for name in entry["decision"].get("missing", ())
        if name in context.ruleset.facts and context.ruleset.facts[name].ask
    } & judged.facts.facts.keys()
    if not answered:
        return judged
    known = {name: fact for name, fact in judged.facts.facts.items() if name not in answered}
    decision = decide(context.ruleset, replace(judged.facts, facts=known), waivers=context.waivers, today=context.today)
    return replace(judged, decision=decision)


_ELSEWHERE = note(
    "told",
    Effect.REVIEW,
    "Records say of their outputs what other rules, or another ledger, may have led to; here the rules say otherwise.",
    next_step="Check with the rule set, the layers and the ledger of the session.",
    asks=("Do the sentences of the records say anything that no rule says?",),
)


def same_rules(session: Session) -> bool:
    """Whether the session was judged under the rules of this check."""
    made = (session.evidence or {}).get("session", {})
    ours = session.context.rule_set_json()
    profile = session.context.ruleset.profile
    site = None if profile is None else {"id": profile.id, "sha256": profile.sha256}
    return bool(made.get("rule_set", {}).get("sha256") == ours["sha256"] and made.get("profile") == site)


def law_said(session: Session) -> bool:
    """Whether the evidence says what these rules are: approved or a draft, and what signed layers let through."""
    ours, evidence = session.context.ruleset, session.evidence
    return evidence is None or bool(evidence["session"]["rule_set"] == ours.statement() | loosened(ours))


def noised(facts: Facts) -> bool:
    """Whether noise was recorded."""
    applied = facts.get("dp.applied")
    return applied is not None and applied.value is True
