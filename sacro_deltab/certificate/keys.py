"""Signing keys: Ed25519, kept as encrypted PKCS#8; the passphrase never comes as an argument."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import InputError, UnreadableError
from ..base.opening import read_file
from ..base.writing import write_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PASSPHRASE_VARIABLE = "SACRO_DELTAB_PASSPHRASE"
LIFETIME = timedelta(days=730)  # two years
_KEY_LIMIT = 64 * 1024


@dataclass(frozen=True)
class SigningKey:
    """An opened private key with the id and public half a trust file knows it by."""

    keyid: str
    public_pem: str
    private: Ed25519PrivateKey
    path: Path


def read_passphrase(file: Path | None, prompt: Callable[[], str] | None) -> bytes:
    """The passphrase from a file, the environment variable, or a prompt, in this order.

    One trailing newline in the file is dropped: every editor writes it.

    Raises
    ------
    InputError
        When there is none, or it is empty.
    """
    if file is not None:
        data = read_file(file).removesuffix(b"\n").removesuffix(b"\r")
    elif PASSPHRASE_VARIABLE in os.environ:
        data = os.environ[PASSPHRASE_VARIABLE].encode()
    elif prompt is not None:
        data = prompt().encode()
    else:
        data = b""
    if not data:
        raise InputError(
            "a key needs a passphrase and none was given.",
            next_step=f"type one, or use --passphrase-file FILE or the variable {PASSPHRASE_VARIABLE}.",
        )
    return data


def keygen(
    out: Path,
    role: str,
    trust: Path,
    passphrase: bytes,
    *,
    node: str = "local",
    now: datetime | None = None,
) -> SigningKey:
    """Make a key and enter its public half in a trust file (made if missing), so that it verifies at once.

    The entry counts from now for two years. The threshold for `tool` becomes 1 if the file has none; keys of the
    other roles may sign, and must only where the TRE writes a threshold for them.

    Raises
    ------
    InputError
        The file exists, the role is unknown, or the trust file cannot be read or written.
    """
    from cryptography.hazmat.primitives import serialization  # late: cryptography is heavy
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from ..ledger.trust import ROLES, add_key, load_trust  # late: brings jsonschema_rs, sqlalchemy

    if role not in ROLES:
        raise InputError(f"there is no role {role!r}.", next_step=f"use one of {', '.join(ROLES)}.")
    if trust.exists():
        load_trust(trust)  # a broken trust file is found before a key exists
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase),
    )
    key = _signing_key(private, out)
    write_file(out, pem, mode=0o600, new=True)
    start = (now or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)
    try:
        add_key(
            trust,
            public_pem=key.public_pem,
            role=role,
            node=node,
            valid_from=start,
            valid_for=LIFETIME,
            threshold=1 if role == "tool" else None,
        )
    except Exception:
        out.unlink(missing_ok=True)
        raise
    return key


def load_key(path: Path, passphrase: bytes) -> SigningKey:
    """Open an encrypted Ed25519 key.

    Raises
    ------
    UnreadableError
        Missing, not a key of this kind, not encrypted, or another passphrase.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # late: cryptography is heavy
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # late: cryptography is heavy

    data = read_file(path)
    if b"-----BEGIN ENCRYPTED PRIVATE KEY-----" not in data or len(data) > _KEY_LIMIT:
        raise UnreadableError(
            "this is not an encrypted PKCS#8 private key.", path=path, next_step="make one with `sacro-deltab keygen`."
        )
    try:
        private = load_pem_private_key(data, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnreadableError("the key does not open with this passphrase.", path=path) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise UnreadableError("the key is not an Ed25519 key.", path=path)
    return _signing_key(private, path)


def _signing_key(private: Ed25519PrivateKey, path: Path) -> SigningKey:
    from cryptography.hazmat.primitives import serialization  # late: cryptography is heavy

    from ..ledger.trust import key_id  # late: brings jsonschema_rs, sqlalchemy

    pem = (
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode("ascii")
    )
    return SigningKey(key_id(pem), pem, private, path)


def refuse_key_inside(key: Path, folder: Path) -> None:
    """A private key or trust file that lies in the folder it signs or judges is refused.

    Raises
    ------
    InputError
        Always for a path under `folder`, links resolved.
    """
    if key.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            "this file lies in the folder itself, where whoever made the folder can put it.",
            path=key,
            next_step="keep keys and trust files where researchers cannot write.",
        )
