"""The DSSE envelope: signing and checking, with every signature accounted for.

Other implementations accept an envelope when one of several signatures is good, or ignore those they do not know.
Here every signature must be by a key the trust file names, valid at both moments, and good; the thresholds of the
node then say whether there are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.canonical import MAX_BYTES, canonical_json, decode_base64, encode_base64, read_canonical
from ..base.errors import CertificateError, UnreadableError
from ..base.opening import read_member
from .keys import SigningKey
from .layout import ENVELOPE
from .statement import PAYLOAD_TYPE

if TYPE_CHECKING:
    from ..ledger.trust import Trust, TrustedKey

_SIGNATURE_BYTES = 64


@dataclass(frozen=True)
class ParsedEnvelope:
    """An envelope as read: nothing in it is believed yet."""

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    @property
    def signed(self) -> bool:
        """False for the placeholder `finalise` leaves."""
        return bool(self.signatures)

    def to_bytes(self) -> bytes:
        """Canonical bytes."""
        return canonical_json(
            {
                "payload": encode_base64(self.payload),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"keyid": k, "sig": encode_base64(s)} for k, s in sorted(self.signatures)],
            }
        )


def parse_envelope(data: bytes, *, path: object = ENVELOPE) -> ParsedEnvelope:
    """Read an envelope strictly.

    Raises
    ------
    UnreadableError
        Not JSON, or not an envelope of ours.
    CertificateError
        Not canonical JSON or base64, or a signature that cannot be one.
    """
    value = read_canonical(data, path=path, what="envelope")
    if not isinstance(value, dict) or set(value) != {"payload", "payloadType", "signatures"}:
        raise UnreadableError("this is not a DSSE envelope.", path=path)
    if value["payloadType"] != PAYLOAD_TYPE:
        raise UnreadableError("the envelope does not hold an in-toto statement.", path=path)
    payload = decode_base64(value["payload"], path=path, what="payload")
    entries = value["signatures"]
    if not isinstance(entries, list):
        raise UnreadableError("the envelope's signatures are not a list.", path=path)
    signatures = [_signature(entry, path) for entry in entries]
    if len({keyid for keyid, _ in signatures}) != len(signatures):
        raise CertificateError("the envelope has two signatures by one key.", path=path)
    return ParsedEnvelope(payload, tuple(signatures))


def _signature(entry: Any, path: object) -> tuple[str, bytes]:
    if not isinstance(entry, dict) or set(entry) != {"keyid", "sig"} or not isinstance(entry["keyid"], str):
        raise CertificateError("a signature is not a key id and a signature.", path=path)
    value = decode_base64(entry["sig"], path=path, what="signature")
    if len(value) != _SIGNATURE_BYTES:
        raise CertificateError("a signature does not have 64 bytes, as Ed25519 signatures do.", path=path)
    return entry["keyid"], value


def sign(payload: bytes, key: SigningKey, before: tuple[tuple[str, bytes], ...] = ()) -> ParsedEnvelope:
    """Sign `payload`, keeping earlier signatures by other keys."""
    from securesystemslib.dsse import Envelope  # late: securesystemslib is heavy
    from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]

    public = SSlibKey.from_crypto(key.private.public_key(), keyid=key.keyid)
    signature = Envelope(payload, PAYLOAD_TYPE, {}).sign(CryptoSigner(key.private, public))
    kept = tuple((keyid, value) for keyid, value in before if keyid != key.keyid)
    return ParsedEnvelope(payload, (*kept, (key.keyid, bytes.fromhex(signature.signature))))


def good_signature(envelope: ParsedEnvelope, keyid: str, value: bytes, public_pem: str) -> bool:
    """Whether one signature is by the key of `public_pem`; False for anything that is not an Ed25519 key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # late: cryptography is heavy
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.dsse import Envelope  # late: securesystemslib is heavy
    from securesystemslib.exceptions import UnverifiedSignatureError
    from securesystemslib.signer import Signature, SSlibKey  # type: ignore[attr-defined]

    from ..ledger.trust import key_id  # late: brings sqlalchemy

    try:
        public = load_pem_public_key(public_pem.encode("ascii"))
    except ValueError:
        return False
    if not isinstance(public, Ed25519PublicKey) or key_id(public_pem) != keyid:
        return False
    try:
        SSlibKey.from_crypto(public, keyid=keyid).verify_signature(
            Signature(keyid, value.hex()), Envelope(envelope.payload, PAYLOAD_TYPE, {}).pae()
        )
    except UnverifiedSignatureError:
        return False
    return True


def check_signatures(
    envelope: ParsedEnvelope, trust: Trust, node: str, moments: tuple[datetime, ...]
) -> tuple[list[TrustedKey], list[str]]:
    """Keys whose signatures count, and every reason why the envelope is not good.

    Parameters
    ----------
    moments
        Times at which each key must be valid: when it was signed, and when it is being verified.
    """
    good: list[TrustedKey] = []
    problems: list[str] = []
    for keyid, value in envelope.signatures:
        key = trust.key(keyid)
        if key is None:
            problems.append(f"a signature is by key {keyid[:16]}, which the trust file does not know")
        elif key.node != node:
            problems.append(f"key {keyid[:16]} is a key of node {key.node}, not of {node}")
        elif not good_signature(envelope, keyid, value, key.public_pem):
            problems.append(f"the signature by key {keyid[:16]} ({key.role}) does not hold: the record was changed")
        elif late := [m for m in moments if not key.valid_at(m)]:
            problems.append(
                f"key {keyid[:16]} ({key.role}) counts from {key.valid_from:%Y-%m-%d} to {key.valid_to:%Y-%m-%d}, "
                f"not on {late[0]:%Y-%m-%d}"
            )
        else:
            good.append(key)
    required = dict(trust.thresholds.get(node, {}))
    required.setdefault("tool", 1)  # a record nobody's tool key signed is never good
    for role, least in sorted(required.items()):
        have = sum(key.role == role for key in good)
        if have < least:
            problems.append(f"{have} of {least} needed signatures in the role {role} at node {node}")
    return good, problems


def read_envelope(path: Path) -> ParsedEnvelope:
    """Read an envelope file."""

    return parse_envelope(read_member(path, limit=2 * MAX_BYTES), path=path.name)
