"""Certifying: run the whole check again, state what it found, and sign that; never more, and a fail as a fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.canonical import MAX_BYTES, read_canonical
from ..base.digests import digest_file
from ..base.errors import CertificateError, InputError, RefusedError, SacroDeltabError, UnreadableError
from ..base.findings import Effect, Finding
from ..base.names import shown
from ..base.opening import read_member
from ..base.strict import DATA, parse
from ..base.verdicts import exit_code, worst
from ..base.writing import write_file
from ..judging.report import Report
from ..ledger import Ledger, open_ledger
from ..ledger.trust import Trust
from .envelope import ParsedEnvelope, parse_envelope, sign
from .inside import ensure_salt, inside_digest
from .keys import SigningKey, refuse_key_inside
from .layout import CERTIFIED, ENVELOPE, ENVELOPES, INSIDE, RESULTS, SHOWN, STATEMENT, Inventory, scan
from .page import render_page
from .policy import Policy
from .review import load_record, opened_answers, read_submissions
from .seal import INSIDE_STATEMENT, write_checksum, write_inside_statement
from .shown import shown_envelope
from .statement import INSIDE_SUBJECT, Context, build, in_full, statement_bytes
from .types import SUPPORTED, schema_problems
from .verify import verify_path
from .verify_files import subjects_of
from .viewer import read_results

PAGE = "certificate.html"
_NOT_ITS_OWN = Finding(("session-statement",), "output", Effect.BLOCK, "The session's own statement does not hold.")
Checker = Callable[[Path], Report]


@dataclass(frozen=True)
class Certified:
    """What was signed. recorded: facts that rest on the session's word, printed one by one."""

    verdict: str
    label: str
    certificate_id: str
    keyid: str
    role: str
    recorded: tuple[str, ...]
    caps: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """As `check`: 0 pass, 1 fail, 3 review."""
        return exit_code(self.verdict)


@dataclass(frozen=True)
class Request:
    """Everything `certify` is given besides folder and key."""

    trust: Trust
    policy: Policy
    check: Checker
    ledger: str | None = None
    waivers: Sequence[Any] = ()
    now: datetime | None = None
    add: bool = False


def certify_folder(folder: Path, key: SigningKey, request: Request) -> Certified:
    """Check a session folder again and sign what was found.

    A key of the role `tool` signs a new statement. A key of another role (or `add`) signs the statement that is there
    already, when the folder still verifies and a new check finds nothing worse.

    Raises
    ------
    RefusedError
        The trust file does not know the key, or it does not count today.
    InputError, UnreadableError
        The folder was never finalised, or the key lies inside it.
    """
    refuse_key_inside(key.path, folder)
    if request.trust.path is not None:
        refuse_key_inside(request.trust.path, folder)
    moment = (request.now or datetime.now(UTC)).astimezone(UTC)
    entry = request.trust.key(key.keyid)
    if entry is None:
        raise RefusedError(
            "the trust file does not know this key, so nobody could verify what it signs.",
            path=key.path,
            next_step="make keys with `keygen --trust`, or name the right trust file.",
        )
    if not entry.valid_at(moment):
        raise RefusedError("this key is not valid today.", path=key.path)
    try:
        if entry.role != "tool" or request.add:
            return _countersign(folder, key, entry.role, request, moment)
        return _sign_new(folder, key, entry.node, request, moment)
    except OSError as error:
        raise InputError(
            f"the folder cannot be written ({error.strerror or type(error).__name__}).", path=folder
        ) from None


def _sign_new(folder: Path, key: SigningKey, node: str, request: Request, moment: datetime) -> Certified:
    inventory = scan(folder)
    session = _session_statement(inventory)
    certificate_id = str(session["predicate"]["certificate_id"])
    findings, notes = _departures(inventory, session)
    report = request.check(folder)
    evidence = _evidence(inventory)
    ledger, caps = read_ledger(request, node, evidence)
    context = Context(
        policy=request.policy,
        stage="certified",
        certificate_id=certificate_id,
        node=node,
        now=moment,
        waivers=request.waivers,
        cap=tuple(caps),
        ledger=ledger,
        answers=_answers(folder, certificate_id, request.trust, moment),
        extra_findings=findings,
        notes=tuple(notes),
    )
    payload = _write_inside(folder, inventory, report, evidence, context)
    written = read_canonical(payload, path=ENVELOPE, what="statement")
    if faults := schema_problems(written):
        raise CertificateError(f"this folder leads to a statement that its schema forbids: {faults[0]}.", path=folder)
    predicate = in_full(written)["predicate"]
    _write_envelope(folder, sign(payload, key))
    return _result(predicate, key, "tool", notes)


def _write_inside(
    folder: Path,
    inventory: Inventory,
    report: Report,
    evidence: Mapping[str, Any] | None,
    context: Context,
) -> bytes:
    """Write what certifying adds to `inside/`, then build the statement whose digest covers it."""

    if inventory.inside is not None:
        ensure_salt(folder / INSIDE)
        where = folder / INSIDE / CERTIFIED
        inner = write_inside_statement(folder, where / INSIDE_STATEMENT, report, evidence, context)
        write_file(where / PAGE, render_page(build(folder, report, evidence, context), inner=inner))
    return statement_bytes(build(folder, report, evidence, context))


def _countersign(folder: Path, key: SigningKey, role: str, request: Request, moment: datetime) -> Certified:
    """Add a signature to the statement that is there."""
    inventory = scan(folder)
    envelope = _envelope(inventory)
    if envelope is None or not envelope.signed:
        raise RefusedError(
            f"there is nothing for {role} to sign yet.", path=folder, next_step="let the tool key certify first."
        )
    own = _alone(request.trust)
    result = verify_path(folder, own, ledger=request.ledger, at=moment)
    if not result.authentic or result.statement is None:
        raise CertificateError(f"what is signed does not hold: {result.conclusion()}.", path=folder)
    predicate = result.statement["predicate"]
    report = request.check(folder)
    found = worst([report.verdict, predicate["verdict"]])
    if found != predicate["verdict"]:
        raise RefusedError(
            f"the certificate says {predicate['verdict']}, and a new check says {report.verdict}.",
            path=folder,
            next_step="certify again with the tool key.",
        )
    _write_envelope(folder, sign(envelope.payload, key, envelope.signatures))
    return _result(predicate, key, role, [f"{len(envelope.signatures) + 1} signatures now"])


def _alone(trust: Trust) -> Trust:
    """The same trust with only the tool's threshold: the others are what is being collected."""

    return replace(
        trust,
        thresholds={node: {r: n for r, n in roles.items() if r == "tool"} for node, roles in trust.thresholds.items()},
    )


def read_ledger(
    request: Request, node: str, evidence: Mapping[str, Any] | None
) -> tuple[dict[str, Any] | None, list[str]]:
    """The ledger's id, heads and totals as read now, and why `formal` and `pass` may not be signed."""
    if request.ledger is None:
        return None, ["no ledger was given"]

    try:
        ledger = open_ledger(request.ledger, create=False, read_only=True)
        report = ledger.verify()
        pinned = request.trust.pins_ledger(ledger.id, ledger.head_key, node)
        found = {
            "id": ledger.id,
            "head_key": ledger.head_key,
            "head": report.head,
            "head_before": _head_before(ledger, evidence),
            "entries": report.entries,
            "pinned": pinned and report.ok,
            "after": _ledger_totals(ledger, evidence),
        }
    except SacroDeltabError as error:
        return None, [f"the ledger cannot be used: {error.what}"]
    caps = [] if pinned else ["the ledger is not pinned in the trust file"]
    if not report.ok:
        caps.append("the ledger does not verify")
    return found, caps


def _own_entries(evidence: Mapping[str, Any] | None) -> set[int]:
    """Ledger entries that the session says its noisy outputs were paid with."""
    outputs = (evidence or {}).get("outputs")
    blocks = [o.get("privacy") for o in outputs if isinstance(o, Mapping)] if isinstance(outputs, list) else []
    ledgers = [b.get("ledger") for b in blocks if isinstance(b, Mapping)]
    return {b["entry"] for b in ledgers if isinstance(b, Mapping) and type(b.get("entry")) is int}


def _head_before(ledger: Ledger, evidence: Mapping[str, Any] | None) -> str | None:
    own = _own_entries(evidence)
    first = next((e for e in ledger.history() if e.seq == min(own)), None) if own else None
    return None if first is None else first.prev


def _ledger_totals(ledger: Ledger, evidence: Mapping[str, Any] | None) -> dict[str, Any] | None:
    session = (evidence or {}).get("session")
    if not isinstance(session, Mapping) or not isinstance(session.get("cohort"), str):
        return None
    return asdict(ledger.totals(session["cohort"], unit=str(session.get("unit", "person"))))


def _session_statement(inventory: Inventory) -> Mapping[str, Any]:
    path = inventory.root.get(STATEMENT)
    if path is None:
        raise InputError(
            "the folder has no certificate.json.", path=inventory.folder, next_step="certify what `finalise` wrote."
        )
    value = read_canonical(read_member(path, limit=MAX_BYTES), path=STATEMENT, what="statement")
    if not isinstance(value, dict) or schema_problems_or_type(value):
        raise UnreadableError("certificate.json is not the statement of a session.", path=STATEMENT)
    return in_full(value)


def schema_problems_or_type(statement: Mapping[str, Any]) -> list[str]:
    """Faults of a statement of any supported type; a type that is not supported is one."""

    if statement.get("predicateType") not in SUPPORTED:
        return ["an unknown predicate type"]
    return schema_problems(statement)


def _departures(inventory: Inventory, session: Mapping[str, Any]) -> tuple[list[Finding], list[str]]:
    """How the folder differs from what its session stated; a difference is a fail, the viewer's changes are not."""
    subjects = subjects_of(session)
    problems: list[str] = []
    notes: list[str] = []
    for name, digest in subjects.items():
        path = inventory.root.get(name)
        if path is None:
            problems.append(f"{shown(name)} is missing")
        elif digest_file(path).to_json() != digest and name != RESULTS:
            problems.append(f"{shown(name)} was changed after the session was finalised")
    if RESULTS in inventory.root and digest_file(inventory.root[RESULTS]).to_json() != subjects.get(RESULTS):
        sha256_of = {name: digest_file(path).sha256 for name, path in inventory.root.items()}
        reading = read_results(read_member(inventory.root[RESULTS]), session["predicate"], sha256_of)
        problems += [*reading.changed, *(f"record {shown(uid)} was removed" for uid in reading.absent)]
        notes.append("results.json was reviewed in the viewer after the session was finalised")
    known = {*subjects, STATEMENT, *ENVELOPES}
    problems += [
        f"{shown(name)} was added after the session was finalised" for name in inventory.root if name not in known
    ]
    stated = inventory.checksums.get(STATEMENT)
    if stated is None or read_member(stated, limit=256) != digest_file(inventory.root[STATEMENT]).sha256.encode():
        problems.append("certificate.json is not the one that `finalise` wrote")
    problems += _inside_departures(inventory, session)
    return [_NOT_ITS_OWN] if problems else [], [*problems, *notes]


def _inside_departures(inventory: Inventory, session: Mapping[str, Any]) -> list[str]:
    stated = next((s["digest"] for s in session["subject"] if s["name"] == INSIDE_SUBJECT), None)
    if inventory.inside is None:
        return ["inside/ is missing"] if stated else []
    try:
        now = inside_digest(inventory.inside, leave_out=(CERTIFIED,))
    except SacroDeltabError as error:
        return [error.what]
    same = stated is not None and now == stated["sacro_deltab_salted"]
    return [] if same else ["inside/ was changed after the session was finalised"]


def _evidence(inventory: Inventory) -> Mapping[str, Any] | None:
    path = (inventory.inside or {}).get("evidence.json")
    if path is None:
        return None
    try:
        value = parse(read_member(path), path="inside/evidence.json", bounds=DATA)
    except SacroDeltabError:
        return None  # the check has said so and failed
    return value if isinstance(value, dict) else None


def _answers(folder: Path, certificate_id: str, trust: Trust, moment: datetime) -> list[dict[str, Any]]:
    """Opened reviews of the files as they are; none where there is no valid earlier certificate."""

    try:
        record = load_record(folder)
    except SacroDeltabError:
        return []
    submissions, problems = read_submissions(record.inventory, certificate_id, trust, moment)
    return [] if problems else opened_answers(record, submissions)


def _envelope(inventory: Inventory) -> ParsedEnvelope | None:
    path = inventory.root.get(ENVELOPE)
    return None if path is None else parse_envelope(read_member(path, limit=2 * MAX_BYTES))


def _write_envelope(folder: Path, envelope: ParsedEnvelope) -> None:
    """Replace the envelope and its text form, each in one step, then their checksum files."""
    for name, data in ((ENVELOPE, envelope.to_bytes()), (SHOWN, shown_envelope(envelope.to_bytes()))):
        write_file(folder / name, data, mode=0o644)
        write_checksum(folder, name)


def _result(predicate: Mapping[str, Any], key: SigningKey, role: str, notes: Sequence[str]) -> Certified:
    return Certified(
        verdict=str(predicate["verdict"]),
        label=str(predicate["privacy"]["label"]),
        certificate_id=str(predicate["certificate_id"]),
        keyid=key.keyid,
        role=role,
        recorded=tuple(predicate["recorded_not_recomputed"]),
        caps=tuple(predicate["capped"]),
        notes=tuple(notes),
    )


__all__ = ["Certified", "Request", "certify_folder", "read_ledger"]
