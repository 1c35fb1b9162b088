"""The key that a TRE holds for a ledger, and the anchor beside it.

One Ed25519 private key signs every entry; its public half is the ledger's `head_key`, which a trust file or site
profile pins. The keys for person fingerprints and for sealed results are derived from the same secret: one file
to keep.

The *anchor* is a small file next to the key: the newest entry that this key has signed. It is written after each commit
and before the caller may draw noise, so a ledger file restored from an older copy is refused at its next use.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ..base.digests import sha256_hex
from ..base.errors import LedgerError
from ..base.opening import read_file

KEY_VARIABLE = "SACRO_DELTAB_LEDGER_KEY"
PASSPHRASE_VARIABLE = "SACRO_DELTAB_LEDGER_PASSPHRASE_FILE"
_SLOT = 160  # bytes of one of the anchor's two slots


def _passphrase() -> bytes | None:
    path = os.environ.get(PASSPHRASE_VARIABLE)
    if not path:
        return None
    return read_file(path).rstrip(b"\r\n")


@contextmanager
def _locked(handle: IO[bytes]) -> Iterator[None]:
    """Hold an exclusive lock on an open file, waiting for it."""
    try:
        import fcntl
    except ImportError:  # Windows: one byte of the file, retried by the C library for ten seconds
        import msvcrt

        win: Any = msvcrt
        handle.seek(0)
        win.locking(handle.fileno(), win.LK_LOCK, 1)
        try:
            yield
        finally:
            handle.seek(0)
            win.locking(handle.fileno(), win.LK_UNLCK, 1)
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


@dataclass(frozen=True)
class LedgerKey:
    """The private half, as long as a process may spend."""

    path: Path
    public: str  # hex
    _private: Any
    _person: bytes
    _seal: bytes
    _known: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)  # fingerprints made already

    def sign(self, digest: str) -> str:
        """Ed25519 signature of an entry's digest, 128 hex digits."""
        signature: bytes = self._private.sign(bytes.fromhex(digest))
        return signature.hex()

    def fingerprint(self, person: str) -> bytes:
        """16 bytes that stand for one person in this TRE and mean nothing without the key."""
        found = self._known.get(person)
        if found is None:
            found = self._known[person] = hmac.digest(self._person, person.encode("utf-8"), "sha256")[:16]
        return found

    def secret(self, use: str) -> bytes:
        """The TRE's key for one use in the register; it never leaves the ledger account."""
        return hmac.digest(self._person, f"sacro_deltab/ledger/{use}/1".encode(), "sha256")

    def seal(self, body: bytes, about: str) -> bytes:
        """Encrypted so that only this key opens it again, and only as being about the same."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # late: spends alone need it

        nonce = os.urandom(12)
        return nonce + AESGCM(self._seal).encrypt(nonce, body, about.encode("utf-8"))

    def unseal(self, sealed: bytes, about: str) -> bytes:
        """What `seal` was given.

        Raises
        ------
        LedgerError
            Cut short, changed, about something else, or sealed under another key.
        """
        from cryptography.exceptions import InvalidTag  # late: cryptography is heavy
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._seal).decrypt(sealed[:12], sealed[12:], about.encode("utf-8"))
        except (InvalidTag, ValueError) as error:
            raise LedgerError(
                "a sealed result cannot be opened: it was changed, or sealed under another key",
                next_step="Use the ledger and the key it was paid with.",
            ) from error


def load_or_create_key(path: Path, *, create: bool) -> LedgerKey:
    """Read the private key at `path`; with `create`, make it (mode 0600) when there is none.

    Two processes that create at once end with the same key. A passphrase is taken from the file that
    `SACRO_DELTAB_LEDGER_PASSPHRASE_FILE` names.
    """
    from cryptography.hazmat.primitives import serialization as ser  # late: cryptography is heavy
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    passphrase = _passphrase()
    try:
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
        with os.fdopen(os.open(path, flags, 0o600), "r+b" if create else "rb") as handle, _locked(handle):
            handle.seek(0)
            pem = handle.read()
            if not pem and create:
                cipher = ser.BestAvailableEncryption(passphrase) if passphrase else ser.NoEncryption()
                pem = Ed25519PrivateKey.generate().private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, cipher)
                handle.write(pem)
                handle.flush()
                os.fsync(handle.fileno())
        private = ser.load_pem_private_key(pem, passphrase)
    except OSError as error:
        raise LedgerError(
            f"the ledger's key cannot be read ({error.strerror})",
            path=path,
            next_step=f"Give the TRE's key with --key FILE or in {KEY_VARIABLE}.",
        ) from error
    except (ValueError, TypeError) as error:
        raise LedgerError(
            "this is no readable Ed25519 private key (PEM), or its passphrase is wrong", path=path
        ) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise LedgerError("a ledger key must be an Ed25519 private key", path=path)
    raw = private.private_bytes(ser.Encoding.Raw, ser.PrivateFormat.Raw, ser.NoEncryption())
    public = private.public_key().public_bytes(ser.Encoding.Raw, ser.PublicFormat.Raw).hex()
    person = hmac.digest(raw, b"sacro_deltab/ledger/person/1", "sha256")
    seal = hmac.digest(raw, b"sacro_deltab/ledger/seal/1", "sha256")
    return LedgerKey(path, public, private, person, seal)


class SignatureChecker:
    """Checks entry signatures under one public key."""

    def __init__(self, head_key: str) -> None:
        from cryptography.exceptions import InvalidSignature  # late: cryptography is heavy
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self._wrong = InvalidSignature
        try:
            self._public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(head_key))
        except ValueError as error:
            raise LedgerError("the ledger's head key is no Ed25519 public key") from error

    def holds(self, digest: str, signature: str) -> bool:
        """True when `signature` is this key's over `digest`."""
        try:
            self._public.verify(bytes.fromhex(signature), bytes.fromhex(digest))
        except (self._wrong, ValueError):
            return False
        return True


@dataclass(frozen=True)
class Anchor:
    """Newest entry the key has signed for one ledger, in a file of two slots written in turn.

    A slot torn by a crash leaves the other one, which is at most one entry behind; the entry that was being written had
    not yet been answered for, so no noise rests on it.
    """

    path: Path

    @classmethod
    def beside(cls, key: Path, ledger_id: str) -> Anchor:
        """The anchor file of this ledger next to the key."""
        return cls(key.with_name(f"{key.name}.{ledger_id[:8]}.anchor"))

    @contextmanager
    def held(self) -> Iterator[IO[bytes]]:
        """Open and lock it, making it when it is missing."""
        try:
            handle = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise LedgerError(
                f"the anchor beside the ledger's key cannot be written ({error.strerror})",
                path=self.path,
                next_step="Let the account that runs the jobs write in the folder of the key.",
            ) from error
        with handle, _locked(handle):
            yield handle

    def peek(self) -> tuple[int, str] | None:
        """What the anchor says, without locking; None when there is no readable one."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        return _newest(data)

    @staticmethod
    def read(handle: IO[bytes]) -> tuple[int, str] | None:
        """(entry, digest), or None for a new anchor."""
        handle.seek(0)
        return _newest(handle.read(2 * _SLOT))

    def write(self, handle: IO[bytes], seq: int, digest: str) -> None:
        """Record (entry, digest) and wait until it is on the disk."""
        line = f"{seq} {digest}"
        check = sha256_hex(line)[:16]
        try:
            handle.seek((seq % 2) * _SLOT)
            handle.write(f"{line} {check}".ljust(_SLOT - 1).encode() + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
        except OSError as error:
            raise LedgerError(
                f"the anchor beside the ledger's key could not be written ({error.strerror}); the entry stands, "
                "and nothing may be drawn on it",
                path=self.path,
            ) from error


def _newest(data: bytes) -> tuple[int, str] | None:
    found: list[tuple[int, str]] = []
    for start in (0, _SLOT):
        parts = data[start : start + _SLOT].decode("ascii", "replace").split()
        if len(parts) == 3 and sha256_hex(f"{parts[0]} {parts[1]}")[:16] == parts[2]:
            found.append((int(parts[0]), parts[1]))
    return max(found, default=None)
