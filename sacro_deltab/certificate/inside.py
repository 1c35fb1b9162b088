"""One salted digest over `inside/`: it proves the evidence is unchanged and tells an outsider nothing about it.

A plain digest of a file of small counts can be guessed by trying them all; the key of this HMAC is 32 random bytes
that are kept in `inside/salt` and go nowhere else.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..base.digests import digest_file
from ..base.errors import CertificateError
from ..base.opening import read_member
from .layout import REVIEW, SALT

ALGORITHM = "hmac-sha256"
_HEX = re.compile(r"[0-9a-f]{64}\n?")


def ensure_salt(inside: Path) -> None:
    """Write `inside/salt` if there is none."""
    path = inside / SALT
    if not path.exists():
        path.write_text(secrets.token_hex(32) + "\n", encoding="ascii")


def salt_of(files: Mapping[str, Path]) -> bytes:
    """The key kept in `inside/`.

    Raises
    ------
    CertificateError
        When it is missing or not 32 bytes of lower-case hex.
    """
    path = files.get(SALT)
    text = read_member(path, limit=128).decode("ascii", "replace") if path else ""
    if not _HEX.fullmatch(text):
        raise CertificateError("inside/salt is missing or is not 64 hexadecimal digits.")
    return bytes.fromhex(text.strip())


def inside_digest(files: Mapping[str, Path], *, leave_out: Iterable[str] = ()) -> str:
    """HMAC-SHA256 over the sorted list of `sha256  path` lines of every file in `inside/`.

    `inside/review/` never counts: reviews come after the certificate and carry signatures of their own.
    `leave_out` names further folders at the top of `inside/`.
    """
    skip = tuple(f"{name}/" for name in (REVIEW, *leave_out))
    mac = hmac.new(salt_of(files), b"sacro_deltab inside 1\n", hashlib.sha256)
    for name in sorted(files):
        if not name.startswith(skip):
            mac.update(_line(files[name], name))
    return mac.hexdigest()


def salted_sha256(files: Mapping[str, Path], name: str) -> str:
    """Digest of one file of `inside/` under the salt, for naming it in what leaves (an attack report)."""
    message = b"sacro_deltab file 1\n" + _line(files[name], name)
    return hmac.new(salt_of(files), message, hashlib.sha256).hexdigest()


def _line(path: Path, name: str) -> bytes:
    """`sha256  path`; a name that is not UTF-8 keeps its bytes (`scan` names it as a problem)."""
    return f"{digest_file(path).sha256}  {name}\n".encode("utf-8", "surrogateescape")
