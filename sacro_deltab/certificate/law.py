"""What the data access committee signs of the law: decisions, approvals of a rule set, layers, waivers.

A detached DSSE envelope beside the text, signed by keys that the trust file knows in the role `dac`. It names what was
signed by the digest of its full text, so that a changed word ends the signature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ..base.canonical import MAX_BYTES, canonical_json, read_canonical
from ..base.digests import digest_file
from ..base.errors import CertificateError, InputError, UnreadableError
from ..base.opening import read_member
from ..base.schemas import fits
from ..base.writing import write_file
from ..ledger.trust import Trust, load_trust
from ..rules.seals import NOBODY, Seal, Seals, beside
from .envelope import ParsedEnvelope, good_signature, parse_envelope, sign
from .keys import SigningKey
from .types import STATEMENT_TYPE, TYPE_ROOT

LAW_TYPE = TYPE_ROOT + "law/v1"
ROLE = "dac"
ATTESTATION = "attestation"  # what TRE staff say of a request; its name in an envelope too
_ROLES = {ATTESTATION: ("checker1", "checker2")}  # who signs what; else the committee


@dataclass(frozen=True)
class Text:
    """What is signed: its kind (decision, approval, layer or waiver), its name, and the digest of its full text."""

    kind: str
    name: str
    sha256: str
    starts: date | None = None
    ends: date | None = None


@dataclass(frozen=True)
class Committee:
    """The committee as a trust file knows it, at a moment."""

    trust: Trust
    at: datetime

    @property
    def committee(self) -> bool:
        """Whether the trust file knows any key of the committee."""
        return any(key.role == ROLE for key in self.trust.keys.values())

    def find(self, envelope: Path, kind: str, name: str, sha256: str) -> Seal | None:
        """The seal on this text where enough signatures hold; None where the file is missing or says anything else."""
        try:
            parsed = parse_envelope(read_member(envelope, limit=2 * MAX_BYTES), path=envelope.name)
            statement = _read(parsed, envelope)
        except (UnreadableError, CertificateError):
            return None
        said = statement["predicate"]
        subject = {"name": name, "digest": {"sha256": sha256}}
        signed_on = date.fromisoformat(said["on"])
        if said["kind"] != kind or statement["subject"] != [subject] or signed_on > self.at.date():
            return None
        keys = self._good(parsed, signed_on, roles_of(kind))
        nodes = {self.trust.keys[k].node for k in keys}
        if len(keys) < max((_least(self.trust, node, kind) for node in nodes), default=1):
            return None
        return Seal(signed_on, keys, _day(said["from"]), _day(said["until"]))

    def _good(self, parsed: ParsedEnvelope, on: date, roles: tuple[str, ...]) -> tuple[str, ...]:
        """Keys whose signature holds; none where one of the signatures does not."""
        good = []
        for keyid, value in parsed.signatures:
            key = self.trust.key(keyid)
            counts = key is not None and key.role in roles and key.valid_from.date() <= on <= key.valid_to.date()
            if key is None or not counts or not good_signature(parsed, keyid, value, key.public_pem):
                return ()
            good.append(keyid)
        return tuple(sorted(good))


def committee(trust: Trust | str | Path | None, at: datetime | None = None) -> Seals:
    """The committee of a trust file; nobody without one."""
    if trust is None:
        return NOBODY
    known = trust if isinstance(trust, Trust) else load_trust(trust)
    return Committee(known, (at or datetime.now(UTC)).astimezone(UTC))


def roles_of(kind: str) -> tuple[str, ...]:
    """Roles whose keys sign a kind of text."""
    return _ROLES.get(kind, (ROLE,))


def _least(trust: Trust, node: str, kind: str) -> int:
    """How many of the committee must sign, as the trust file has it for a node; one of the staff does."""
    return 1 if kind in _ROLES else trust.thresholds.get(node, {}).get(ROLE, 1)


def attested_by(file: Path, trust: Trust | str | Path) -> str | None:
    """Who signed what TRE staff say in a file, as reports print it; None where nobody did.

    Raises
    ------
    CertificateError
        A signature lies beside it that does not hold for this text.
    """
    envelope = beside(file)
    if not envelope.exists():
        return None
    seal = committee(trust).find(envelope, ATTESTATION, ATTESTATION, digest_file(file).sha256)
    if seal is None or not seal.keys:
        raise CertificateError(
            "the signature beside it is not one of a checker on this text", path=file,
            next_step="Sign it again with `sacro-deltab attest`, or take the envelope away.",
        )  # fmt: skip
    known = trust if isinstance(trust, Trust) else load_trust(trust)
    return ", ".join(f"{known.keys[key].role} {key[:16]}" for key in seal.keys)


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _read(parsed: ParsedEnvelope, path: Path) -> Mapping[str, Any]:
    statement = read_canonical(parsed.payload, path=path.name, what="statement")
    if not fits(statement, "law"):
        raise CertificateError("this is no signed text of the law", path=path)
    try:
        for day in ("on", "from", "until"):
            _day(statement["predicate"][day])
    except ValueError:
        raise CertificateError("holds a day that is not in the calendar", path=path) from None
    found: Mapping[str, Any] = statement
    return found


def sign_text(envelope: Path, text: Text, key: SigningKey, trust: Trust, now: datetime) -> Seal:
    """Sign a text, or add a signature to an envelope that is there and says the same.

    Raises
    ------
    InputError
        The key is none that the trust file knows as `dac` today, or the envelope is about another text.
    """
    known = trust.key(key.keyid)
    roles = roles_of(text.kind)
    if known is None or known.role not in roles or not known.valid_at(now):
        raise InputError(
            f"key {key.keyid[:16]} is not a {' or '.join(roles)} key that counts today", path=trust.path,
            next_step=f"Such keys are made with `keygen --role {roles[0]}`.",
        )  # fmt: skip
    fresh = _statement(text, now.date())
    payload = fresh
    before: tuple[tuple[str, bytes], ...] = ()
    if envelope.exists():
        parsed = parse_envelope(read_member(envelope, limit=2 * MAX_BYTES), path=envelope.name)
        old = _read(parsed, envelope)
        if old["subject"] == _subject(text) and old["predicate"]["kind"] == text.kind:
            same = (old["predicate"]["from"], old["predicate"]["until"]) == (_text(text.starts), _text(text.ends))
            if not same:
                raise InputError("the signature that is there is for other dates", path=envelope)
            payload, before = parsed.payload, parsed.signatures
    envelope.parent.mkdir(parents=True, exist_ok=True)
    write_file(envelope, sign(payload, key, before).to_bytes())
    seal = Committee(trust, now).find(envelope, text.kind, text.name, text.sha256)
    if seal is None:
        return Seal(now.date(), (key.keyid,) if _least(trust, known.node, text.kind) <= 1 else ())
    return seal


def _subject(text: Text) -> list[dict[str, Any]]:
    return [{"name": text.name, "digest": {"sha256": text.sha256}}]


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _statement(text: Text, on: date) -> bytes:
    predicate = {"kind": text.kind, "on": on.isoformat(), "from": _text(text.starts), "until": _text(text.ends)}
    return canonical_json(
        {"_type": STATEMENT_TYPE, "subject": _subject(text), "predicateType": LAW_TYPE, "predicate": predicate}
    )
