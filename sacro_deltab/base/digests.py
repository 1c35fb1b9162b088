"""SHA-256 of bytes, texts and files; and SHA-512 beside it where two are recorded."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from .opening import LARGE, blocks, holding, opened, read_member

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Digests:
    """SHA-256 and SHA-512 of one file, lower-case hex."""

    sha256: str
    sha512: str

    def to_json(self) -> dict[str, str]:
        """The in-toto digest set."""
        return {"sha256": self.sha256, "sha512": self.sha512}


def sha256_hex(data: bytes | str) -> str:
    """SHA-256 of bytes, or of a text in UTF-8: 64 hex digits."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def is_sha256(value: object) -> bool:
    """True for 64 lower-case hex digits."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def digest_bytes(data: bytes) -> Digests:
    """Both digests of `data`."""
    return Digests(sha256_hex(data), hashlib.sha512(data).hexdigest())


def digest_file(path: str | Path) -> Digests:
    """Both digests of an ordinary file, in one pass, without following a link."""
    if holding():
        return digest_bytes(read_member(Path(path)))
    one, two, name = hashlib.sha256(), hashlib.sha512(), Path(path).name
    with opened(path, shown=name, links=False) as handle:
        for block in blocks(handle, limit=32 * LARGE, shown=name):
            one.update(block)
            two.update(block)
    return Digests(one.hexdigest(), two.hexdigest())
