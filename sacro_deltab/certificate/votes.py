"""Votes of checkers as they lie in `inside/review/`: reading them, and what they say of each file.

Nothing read here is believed before its signature, its role, its release and its commitment hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.canonical import MAX_BYTES, canonical_json, read_canonical
from ..base.digests import sha256_hex
from ..base.errors import CertificateError, SacroDeltabError
from ..base.names import shown
from ..base.opening import read_member
from ..base.schemas import fits
from .envelope import ParsedEnvelope, good_signature, parse_envelope
from .layout import REVIEW, Inventory
from .statement import TYPE_ROOT

if TYPE_CHECKING:
    from ..ledger.trust import Trust

SEALED_TYPE = TYPE_ROOT + "review-sealed/v1"
OPENED_TYPE = TYPE_ROOT + "review/v1"
CHECKERS = ("checker1", "checker2")
ROLES = (*CHECKERS, "dac")
DECISIONS = ("accept", "return", "refuse")
_NAME = re.compile(r"(checker1|checker2|dac)-(\d{4})\.(sealed|opened)\.dsse\.json")

Target = tuple[str, str, str]  # file, SHA-256, digest of its questions


@dataclass(frozen=True)
class Question:
    """One file with everything its checker must answer."""

    file: str
    sha256: str
    verdict: str
    questions: tuple[str, ...]

    @property
    def target(self) -> Target:
        """What a vote is bound to."""
        digest = sha256_hex(canonical_json(sorted(self.questions)))
        return self.file, self.sha256, digest


@dataclass(frozen=True)
class FileDecision:
    """What a checker says of one file: accept, return (mend it and come again) or refuse, with a reason."""

    decision: str
    reason: str
    answers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """One checker's submission as read back; `files` is None while it is sealed."""

    role: str
    number: int
    keyid: str
    time: str
    commitment: str
    targets: tuple[Target, ...]
    sealed: str
    files: Mapping[str, FileDecision] | None = None


@dataclass(frozen=True)
class FileStatus:
    """Where one file stands. votes: role → accept | return | refuse | sealed | reset | awaited."""

    file: str
    verdict: str
    questions: int
    votes: Mapping[str, str]

    @property
    def outcome(self) -> str:
        """accepted, returned, refused, or awaited."""
        votes = [self.votes[role] for role in CHECKERS] + [v for r, v in self.votes.items() if r == "dac"]
        if any(v not in DECISIONS for v in votes[:2]):
            return "awaited"
        for vote, outcome in (("refuse", "refused"), ("return", "returned")):
            if vote in votes:
                return outcome
        return "accepted"

    @property
    def awaited(self) -> list[str]:
        """Roles that must still submit or open."""
        return [role for role in CHECKERS if self.votes[role] not in DECISIONS]


@dataclass(frozen=True)
class Record:
    """What is being reviewed: the statement, whether it is signed, and who signed it."""

    inventory: Inventory
    predicate: Mapping[str, Any]
    signed: bool
    signers: tuple[str, ...]
    questions: tuple[Question, ...]


def read_submissions(
    inventory: Inventory, certificate_id: str, trust: Trust, at: datetime
) -> tuple[list[Submission], list[str]]:
    """Every submission in `inside/review/`, and what is wrong with any of them."""
    prefix = f"{REVIEW}/"
    paths = {n.removeprefix(prefix): p for n, p in (inventory.inside or {}).items() if n.startswith(prefix)}
    sealed: dict[tuple[str, int], Submission] = {}
    problems: list[str] = []
    for name in sorted(paths, key=lambda n: ("sealed" not in n, n)):
        try:
            _read_one(name, paths[name], certificate_id, trust, at, sealed)
        except SacroDeltabError as error:
            problems.append(f"{shown(name)}: {error.what}")
    votes = [(s.role, t) for s in sealed.values() for t in s.targets]
    if len(set(votes)) != len(votes):
        problems.append("one checker voted twice on the same file")
    return sorted(sealed.values(), key=lambda s: (s.role, s.number)), problems


def _read_one(
    name: str, path: Path, certificate_id: str, trust: Trust, at: datetime, sealed: dict[tuple[str, int], Submission]
) -> None:
    match = _NAME.fullmatch(name)
    if match is None:
        raise CertificateError("is not a review")
    role, number, kind = match[1], int(match[2]), match[3]
    envelope = parse_envelope(read_member(path, limit=2 * MAX_BYTES))
    if any((key := trust.key(signer)) is not None and key.revoked is not None for signer, _ in envelope.signatures):
        return  # whoever lost the key votes again with another
    keyid = _signer(envelope, trust, role, at)
    statement = read_canonical(envelope.payload, path=name, what="review")
    if not fits(statement, "review", "$defs", kind):
        raise CertificateError("does not follow its schema")
    predicate = statement["predicate"]
    if predicate["certificate_id"] != certificate_id or predicate["role"] != role:
        raise CertificateError("belongs to another release or role")
    targets = tuple((s["name"], s["digest"]["sha256"], s["digest"]["questions_sha256"]) for s in statement["subject"])
    if kind == "sealed":
        sealed[role, number] = Submission(
            role, number, keyid, predicate["time"], predicate["commitment"], targets, predicate["sealed"]
        )
        return
    before = sealed.get((role, number))
    if before is None or before.keyid != keyid or before.targets != targets:
        raise CertificateError("was not sealed before it was opened")
    if sha256_hex(envelope.payload) != before.commitment:
        raise CertificateError("is not what was sealed")
    files = {
        f["file"]: FileDecision(f["decision"], f["reason"], {a["question"]: a["answer"] for a in f["answers"]})
        for f in predicate["files"]
    }
    sealed[role, number] = Submission(
        role, number, keyid, before.time, before.commitment, targets, before.sealed, files
    )


def _signer(envelope: ParsedEnvelope, trust: Trust, role: str, at: datetime) -> str:
    if len(envelope.signatures) != 1:
        raise CertificateError("does not carry exactly one signature")
    keyid, value = envelope.signatures[0]
    key = trust.key(keyid)
    if key is None or key.role != role:
        raise CertificateError(f"is not signed by a key the trust file knows as {role}")
    if not key.valid_at(at):
        raise CertificateError("is signed by a key that is not valid")
    if not good_signature(envelope, keyid, value, key.public_pem):
        raise CertificateError("was changed after it was signed")
    return keyid


def next_number(inventory: Inventory, role: str) -> int:
    """Number of a role's next submission; those of revoked keys keep theirs."""
    found = (_NAME.fullmatch(name.removeprefix(f"{REVIEW}/")) for name in inventory.inside or {})
    return 1 + max((int(match[2]) for match in found if match is not None and match[1] == role), default=0)


def status(record: Record, submissions: Sequence[Submission]) -> list[FileStatus]:
    """Where each file stands: a vote on another digest or other questions of the same file reads "reset"."""
    out = []
    for question in record.questions:
        votes: dict[str, str] = {}
        for role in ROLES:
            own = [s for s in submissions if s.role == role]
            current = next((s for s in own if question.target in s.targets), None)
            earlier = any(t[0] == question.file for s in own for t in s.targets)
            if current is None:
                votes[role] = "reset" if earlier else "awaited"
            else:
                votes[role] = "sealed" if current.files is None else current.files[question.file].decision
        if votes["dac"] == "awaited":
            del votes["dac"]  # the DAC decides where it is asked to, not on every file
        out.append(FileStatus(question.file, question.verdict, len(question.questions), votes))
    return out


def opened_answers(record: Record, submissions: Sequence[Submission]) -> list[dict[str, Any]]:
    """Decisions on the files as they are now, for `people.answers` of a new statement. Their texts stay inside."""
    current = {q.target for q in record.questions}
    return [
        {
            "file": target[0],
            "sha256": target[1],
            "role": s.role,
            "keyid": s.keyid,
            "decision": s.files[target[0]].decision,
            "answered": len(s.files[target[0]].answers),
            "time": s.time,
        }
        for s in submissions
        if s.files is not None
        for target in s.targets
        if target in current
    ]
