"""Two people decide on each file, neither seeing the other's answer first; every decision is signed and bound.

A submission is written twice. *Sealed*: signed at once, it names the files with their digests, and holds a hash of the
decisions and the decisions themselves, encrypted under a key that only the checker's own private key gives.
*Opened*: the decisions in clear, signed, allowed only when the other checker has submitted for the same files; its
bytes must have the hash that was sealed. Both lie in `inside/review/`, which no record lists (so the viewer can
release none of it) and which the certificate's digest over `inside/` leaves out (so that reviewing does not break the
certificate).

A vote counts for a file with one SHA-256 and one list of questions: when either changes, it is void and the checker is
awaited again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.canonical import MAX_BYTES, canonical_json, decode_base64, encode_base64, read_canonical
from ..base.digests import digest_file, sha256_hex
from ..base.errors import CertificateError, InputError, RefusedError
from ..base.names import shown
from ..base.opening import read_member
from ..base.strict import parse
from ..base.verdicts import NOTHING
from .envelope import parse_envelope, sign
from .inside import inside_digest
from .keys import SigningKey
from .layout import CERTIFIED, ENVELOPE, ENVELOPES, INSIDE, REVIEW, STATEMENT, Inventory, scan
from .seal import INSIDE_STATEMENT
from .statement import INSIDE_SUBJECT, STATEMENT_TYPE, in_full, utc_now
from .types import check_type, schema_problems
from .votes import (
    CHECKERS,
    DECISIONS,
    OPENED_TYPE,
    ROLES,
    SEALED_TYPE,
    FileDecision,
    FileStatus,
    Question,
    Record,
    Submission,
    Target,
    next_number,
    opened_answers,
    read_submissions,
    status,
)

if TYPE_CHECKING:
    from ..ledger.trust import Trust


def load_record(folder: Path, *, changed: list[str] | None = None) -> Record:
    """The files of a folder and their questions, from the signed statement if there is one, else the session's own.

    Parameters
    ----------
    changed
        Where given, names of files that are not those of the statement are added to it, and nothing is raised for
        them: their votes are void, which is what somebody who asks for the state wants to see.

    Raises
    ------
    CertificateError
        A file is not the one the statement is about: it must be certified again before it can be reviewed.
    """
    inventory = scan(folder)
    if inventory.inside is None:
        raise InputError("inside/ is not here, so there is nothing to review.", path=folder)
    if STATEMENT not in inventory.root:
        raise InputError("the folder has no certificate.", path=folder, next_step="finalise the session first.")
    envelope = None
    if ENVELOPE in inventory.root:
        envelope = parse_envelope(read_member(inventory.root[ENVELOPE], limit=2 * MAX_BYTES))
    signed = envelope is not None and envelope.signed
    payload = envelope.payload if envelope and signed else read_member(inventory.root[STATEMENT], limit=MAX_BYTES)
    statement = read_canonical(payload, path=STATEMENT, what="statement")
    check_type(statement)
    if faults := schema_problems(statement):
        raise CertificateError(f"the statement does not follow its schema: {faults[0]}.", path=STATEMENT)
    statement = in_full(statement)
    predicate = statement["predicate"]
    if why := inside_problem(inventory, statement):
        raise CertificateError(f"{why}.", path=folder, next_step="certify the folder again before it is reviewed.")
    subjects = {s["name"]: s["digest"].get("sha256") for s in statement["subject"]}
    questions = _questions(inventory, predicate, signed)
    others = [q.file for q in questions if subjects.get(q.file) != q.sha256]
    others += [f["file"] for f in predicate["files"] if not f["kept_inside"] and f["file"] not in inventory.root]
    if changed is not None:
        changed += others
    elif others:
        raise CertificateError(
            f"{shown(others[0])} is not the file the certificate is about.",
            path=folder,
            next_step="certify the folder again; votes on unchanged files stay.",
        )
    signers = tuple(keyid for keyid, _ in envelope.signatures) if envelope else ()
    return Record(inventory, predicate, signed, signers, questions)


def _questions(
    inventory: Inventory, predicate: Mapping[str, Any], signed: bool, sha256_of: Callable[[str], str] | None = None
) -> tuple[Question, ...]:
    known = sha256_of or (lambda name: digest_file(inventory.root[name]).sha256)
    asked: dict[str, list[str]] = {}
    inner = inner_statement(inventory, signed)
    blocks = [*predicate["outputs"], *((inner or {}).get("predicate", {}).get("outputs", ()))]
    for output in blocks:
        for name in output["files"]:
            asked.setdefault(name, []).extend(q["question"] for q in output["questions"])
    return tuple(
        Question(
            f["file"],
            known(f["file"]),
            f["verdict"],
            tuple(dict.fromkeys(asked.get(f["file"], ()))),
        )
        for f in predicate["files"]
        if not f["kept_inside"] and f["file"] in inventory.root and f["file"] not in (STATEMENT, *ENVELOPES)
    )


def inside_problem(inventory: Inventory, statement: Mapping[str, Any]) -> str | None:
    """Why `inside/` is not the one a statement is about, or None: questions are read from it, so it must be."""
    leave_out = (CERTIFIED,) if statement["predicate"]["stage"] == "session" else ()
    stated = next((s["digest"] for s in statement["subject"] if s["name"] == INSIDE_SUBJECT), None)
    if stated is None or inventory.inside is None:
        return "inside/ is not part of what was certified"
    if inside_digest(inventory.inside, leave_out=leave_out) != stated["sacro_deltab_salted"]:
        return "a file in inside/ was changed, added or removed"
    return None


def inner_statement(inventory: Inventory, signed: bool) -> Mapping[str, Any] | None:
    """The statement that stays inside: what `certify` wrote if the certificate is signed, else the session's."""
    names = [f"{CERTIFIED}/{INSIDE_STATEMENT}"] if signed else []
    for name in (*names, INSIDE_STATEMENT):
        path = (inventory.inside or {}).get(name)
        if path is not None:
            value = parse(read_member(path, limit=MAX_BYTES), path=f"{INSIDE}/{name}")
            return value if isinstance(value, dict) else None
    return None


# -- submitting -------------------------------------------------------------------------------------------------------


def reviewer_role(key: SigningKey, trust: Trust, record: Record, at: datetime) -> str:
    """The role in which a key reviews.

    Raises
    ------
    RefusedError
        The key is the author's (it signed the certificate), is not a reviewer's, or is not valid now.
    """
    entry = trust.key(key.keyid)
    if key.keyid in record.signers and (entry is None or entry.role == "tool"):
        raise RefusedError("this key signed the certificate; nobody reviews their own work.", path=key.path)
    if entry is None:
        raise RefusedError("the trust file does not know this key.", path=key.path)
    if entry.role not in ROLES:
        raise RefusedError(
            f"this key has the role {entry.role}; the author's key does not review.",
            path=key.path,
            next_step="use the key of checker1, checker2 or dac.",
        )
    if not entry.valid_at(at):
        raise RefusedError("this key is not valid today.", path=key.path)
    return entry.role


def to_decide(record: Record, submissions: Sequence[Submission], role: str) -> list[Question]:
    """Files on which `role` has no vote that counts."""
    voted = {t for s in submissions if s.role == role for t in s.targets}
    return [q for q in record.questions if q.target not in voted]


def submit(
    folder: Path,
    key: SigningKey,
    trust: Trust,
    decide: Callable[[Question], FileDecision],
    *,
    expected: Sequence[Target] | None = None,
    now: datetime | None = None,
) -> list[str]:
    """Ask for every undecided file, seal the answers, and open what may be opened.

    Parameters
    ----------
    expected
        What the decisions were made on, where it was shown before: anything else is refused.

    Returns
    -------
    list of str
        What was done, one sentence each.
    """
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    record = load_record(folder)
    role = reviewer_role(key, trust, record, moment)
    submissions, problems = read_submissions(record.inventory, record.predicate["certificate_id"], trust, moment)
    if problems:
        raise CertificateError(f"an earlier review does not hold: {problems[0]}.", path=folder / INSIDE / REVIEW)
    if not record.questions:
        raise RefusedError(f"{NOTHING}: no output of this folder is asked to leave.", path=folder)
    done: list[str] = []
    open_questions = to_decide(record, submissions, role)
    if expected is not None and tuple(question.target for question in open_questions) != tuple(expected):
        raise InputError("the request changed since it was shown", path=folder, next_step="Read it again.")
    if open_questions:
        decisions = {q.file: checked_decision(q, decide(q)) for q in open_questions}
        number = next_number(record.inventory, role)
        submissions.append(_seal(folder, key, role, number, record, open_questions, decisions, moment))
        done.append(f"sealed as {role}: {len(decisions)} file(s)")
    done += _open_own(folder, key, role, record, submissions)
    return done or [f"nothing to do: {role} has decided on every file"]


def checked_decision(question: Question, given: FileDecision) -> FileDecision:
    """A decision with a reason and an answer to every question, or an InputError that says what is missing."""
    if given.decision not in DECISIONS:
        raise InputError(f"a decision is one of {', '.join(DECISIONS)}.", place=shown(question.file))
    if not given.reason.strip():
        raise InputError("a decision needs a reason.", place=shown(question.file))
    for text in question.questions:
        if not given.answers.get(text, "").strip():
            raise InputError(f"a question is not answered: {text}", place=shown(question.file))
    return given


def _seal(
    folder: Path,
    key: SigningKey,
    role: str,
    number: int,
    record: Record,
    questions: Sequence[Question],
    decisions: Mapping[str, FileDecision],
    moment: datetime,
) -> Submission:
    subject = [
        {"name": f, "digest": {"sha256": sha, "questions_sha256": asked}}
        for f, sha, asked in (q.target for q in questions)
    ]
    common = {"certificate_id": record.predicate["certificate_id"], "role": role, "time": utc_now(moment)}
    opened = canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": subject,
            "predicateType": OPENED_TYPE,
            "predicate": {
                **common,
                "blind": secrets.token_hex(32),
                "files": [_decision_json(q, decisions[q.file]) for q in questions],
            },
        }
    )
    commitment = sha256_hex(opened)
    sealed = encode_base64(_encrypt(key, opened, common["certificate_id"]))
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": subject,
        "predicateType": SEALED_TYPE,
        "predicate": {**common, "commitment": commitment, "sealed": sealed},
    }
    _write(folder, f"{role}-{number:04d}.sealed.dsse.json", sign(canonical_json(statement), key).to_bytes())
    targets = tuple(q.target for q in questions)
    return Submission(role, number, key.keyid, common["time"], commitment, targets, sealed)


def _decision_json(question: Question, decision: FileDecision) -> dict[str, Any]:
    return {
        "file": question.file,
        "decision": decision.decision,
        "reason": decision.reason.strip(),
        "answers": [{"question": q, "answer": decision.answers[q].strip()} for q in question.questions],
    }


def _open_own(folder: Path, key: SigningKey, role: str, record: Record, submissions: Sequence[Submission]) -> list[str]:
    done: list[str] = []
    for own in submissions:
        if own.role != role or own.keyid != key.keyid or own.files is not None:
            continue
        waiting = not_yet_covered(own, submissions, record)
        if waiting:
            done.append(f"stays sealed until {', '.join(waiting)} submitted; then run this command again to open it")
            continue
        opened = _decrypt(key, decode_base64(own.sealed, path=REVIEW, what="sealed review"), record)
        if sha256_hex(opened) != own.commitment:
            raise CertificateError("the sealed review is not the one that was committed to.")
        _write(folder, f"{role}-{own.number:04d}.opened.dsse.json", sign(opened, key).to_bytes())
        done.append(f"opened as {role}: {len(own.targets)} file(s)")
    return done


def not_yet_covered(own: Submission, submissions: Sequence[Submission], record: Record) -> list[str]:
    """Checkers who have not submitted for every file of `own` that is still the file under review."""
    current = {q.target for q in record.questions}
    needed = set(own.targets) & current
    others = [r for r in CHECKERS if r != own.role]
    return [r for r in others if not needed <= {t for s in submissions if s.role == r for t in s.targets}]


def _write(folder: Path, name: str, data: bytes) -> None:
    where = folder / INSIDE / REVIEW
    where.mkdir(exist_ok=True)
    if where.is_symlink():
        raise InputError("inside/review is a link.", path=where)
    try:
        descriptor = os.open(where / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        raise InputError(f"the review cannot be written ({error.strerror}).", path=where / name) from None
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(data)


def _sealing_key(key: SigningKey) -> Any:
    from cryptography.hazmat.primitives import hashes  # late: cryptography is heavy
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # late: cryptography is heavy

    seed = key.private.private_bytes_raw()
    return ChaCha20Poly1305(HKDF(hashes.SHA256(), 32, None, b"sacro_deltab sealed review 1").derive(seed))


def _encrypt(key: SigningKey, data: bytes, certificate_id: str) -> bytes:
    nonce = secrets.token_bytes(12)
    ciphertext: bytes = _sealing_key(key).encrypt(nonce, data, certificate_id.encode())
    return nonce + ciphertext


def _decrypt(key: SigningKey, data: bytes, record: Record) -> bytes:
    from cryptography.exceptions import InvalidTag  # late: cryptography is heavy

    try:
        opened: bytes = _sealing_key(key).decrypt(data[:12], data[12:], record.predicate["certificate_id"].encode())
    except (InvalidTag, ValueError):
        raise CertificateError("the sealed review does not open with this key.") from None
    return opened


def folder_states(
    inventory: Inventory,
    predicate: Mapping[str, Any],
    trust: Trust,
    at: datetime,
    sha256_of: Callable[[str], str] | None = None,
) -> list[FileStatus]:
    """Where each file of a signed record stands, by the reviews in its folder."""
    submissions, _ = read_submissions(inventory, predicate["certificate_id"], trust, at)
    questions = _questions(inventory, predicate, True, sha256_of)
    return status(Record(inventory, predicate, True, (), questions), submissions)


def review_lines(
    inventory: Inventory,
    predicate: Mapping[str, Any],
    sha256_of: Callable[[str], str],
    trust: Trust,
    at: datetime,
) -> tuple[list[str], list[str]]:
    """What `verify` says of the reviews of a signed record: problems, and who decided what or is awaited."""
    _, problems = read_submissions(inventory, predicate["certificate_id"], trust, at)
    if problems:
        return problems, []
    states = folder_states(inventory, predicate, trust, at, sha256_of)
    awaited = sorted({role for s in states for role in s.awaited})
    counts = {o: sum(s.outcome == o for s in states) for o in ("accepted", "returned", "refused", "awaited")}
    notes = [", ".join(f"{n} {o}" for o, n in counts.items() if n) or "no file to review"]
    if awaited:
        notes.append(f"awaited: {', '.join(awaited)}")
    return [], notes


__all__ = [
    "CHECKERS",
    "DECISIONS",
    "FileDecision",
    "FileStatus",
    "Question",
    "Record",
    "folder_states",
    "load_record",
    "opened_answers",
    "read_submissions",
    "review_lines",
    "status",
    "submit",
]
