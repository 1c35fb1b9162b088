"""The certificate files of a folder: they leave too, so they may say only what follows from the rest of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..base.canonical import read_canonical
from ..base.digests import digest_bytes
from ..base.errors import SacroDeltabError
from ..base.findings import Effect, Finding, note
from ..build.results import CERTIFICATE
from ..certificate.types import check_type, schema_problems
from ..judging.report import FileReport
from .folder import CERTIFICATES
from .session_state import Session

if TYPE_CHECKING:
    from ..certificate.envelope import ParsedEnvelope

ENVELOPE = "certificate.dsse.json"
_STEP = "Run `sacro-deltab certify` or finalise the session again; never edit a certificate."


def judge_certificate(session: Session, report: FileReport) -> None:
    """The three files of a certificate; the one that the viewer shows and releases answers for all."""
    report.title = "Certificate"
    for name, judge in (("certificate.json", _statement), (ENVELOPE, _envelope), (CERTIFICATE, _text)):
        snapshot = session.files.get(name)
        if snapshot is None:
            report.add(note("certificate", Effect.BLOCK, f"There is no {name}.", next_step=_STEP))
            continue
        try:
            report.add(*judge(session, snapshot.data))
        except SacroDeltabError as error:
            report.add(note("certificate", Effect.BLOCK, f"{name} is no certificate: {error.what}.", next_step=_STEP))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            what = type(error).__name__
            report.add(note("certificate", Effect.BLOCK, f"{name} is no certificate ({what}).", next_step=_STEP))


def _text(session: Session, data: bytes) -> Iterator[Finding]:
    """The text that the viewer shows: what the envelope makes, byte for byte."""
    from ..certificate.shown import shown_envelope  # late: brings scipy, threadpoolctl

    if shown_envelope(session.files[ENVELOPE].data) != data:
        yield note("certificate", Effect.BLOCK, f"{CERTIFICATE} is not the text of the signed record.", next_step=_STEP)


def _statement(session: Session, data: bytes) -> Iterator[Finding]:

    statement = read_canonical(data, path="certificate.json", what="statement")
    yield from _subjects(session, statement)
    yield from _rebuilt(session, statement)


def _subjects(session: Session, statement: Any) -> Iterator[Finding]:
    named = {
        str(s["name"]): str(s["digest"]["sha256"]) for s in statement["subject"] if "sha256" in s.get("digest", {})
    }
    for name, snapshot in session.files.items():
        if name in CERTIFICATES:
            continue
        if name not in named:
            yield note("certificate", Effect.BLOCK, f"The certificate does not cover {name}.", next_step=_STEP)
        elif named[name] != snapshot.sha256:
            yield note(
                "certificate", Effect.BLOCK, f"{name} is not the file that the certificate covers.", next_step=_STEP
            )


def _rebuilt(session: Session, statement: Any) -> Iterator[Finding]:
    """The same statement made again from this folder: every byte must follow from it."""
    from ..certificate.statement import departures  # late: brings scipy, threadpoolctl

    given = session.context
    known = {"results.json": digest_bytes(session.results)}
    parts = departures(session.root, statement, session.evidence, given.ruleset, given.waivers, known)
    if parts:
        where = ", ".join(parts)
        yield note(
            "certificate",
            Effect.REVIEW,
            f"The certificate does not follow from this folder and rule set: {where}.",
            next_step=_STEP,
            asks=("Was the certificate made under another rule set or version?",),
        )


def _envelope(session: Session, data: bytes) -> Iterator[Finding]:
    from ..certificate.envelope import parse_envelope  # late: brings scipy, threadpoolctl
    from ..certificate.seal import placeholder_envelope

    if data == placeholder_envelope():
        yield note("certificate", Effect.LABEL, "Nobody has signed the certificate yet.")
        return
    envelope = parse_envelope(data)
    if envelope.to_bytes() != data:
        yield note("certificate", Effect.BLOCK, "The envelope holds more than payload and signatures.", next_step=_STEP)

    statement = read_canonical(envelope.payload, path="certificate.dsse.json", what="statement")
    yield from _nothing_else(statement)
    yield from _subjects(session, statement)
    yield from _signatures(session, envelope, statement)


def _nothing_else(statement: Any) -> Iterator[Finding]:
    """A signed statement may be of another check than this one, but it holds what statements hold and no more."""

    check_type(statement)
    problems = schema_problems(statement)
    if problems:
        yield note("certificate", Effect.BLOCK, f"What was signed is no statement: {problems[0]}.", next_step=_STEP)


def _signatures(session: Session, envelope: ParsedEnvelope, statement: Any) -> Iterator[Finding]:
    from ..certificate.envelope import check_signatures  # late: brings scipy, threadpoolctl

    trust = session.context.trust
    if trust is None:
        yield note(
            "certificate",
            Effect.REVIEW,
            "Its signatures were not checked: without a trust file anybody may have written it.",
            next_step="Give --trust FILE, or run `sacro-deltab verify`.",
            asks=("Does `sacro-deltab verify` accept this certificate?",),
        )
        return
    made = statement["predicate"]["made"]
    _, problems = check_signatures(envelope, trust, str(made["node"]), (datetime.fromisoformat(str(made["time"])),))
    for problem in problems:
        yield note("certificate", Effect.BLOCK, f"The signed certificate: {problem}.", next_step=_STEP)
