"""Take one file as it is now: no symbolic links, no devices, bounded size, unchanged while read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..base.digests import sha256_hex
from ..base.opening import read_file
from .limits import Limits


@dataclass(frozen=True)
class Snapshot:
    """The bytes that were judged, and their digest (so that what is certified is what was read)."""

    name: str
    data: bytes
    sha256: str

    @classmethod
    def of_bytes(cls, name: str, data: bytes) -> Snapshot:
        """A snapshot of bytes already in memory (members of an archive)."""
        return cls(name, data, sha256_hex(data))


def take(path: Path, name: str, limits: Limits, *, dir_fd: int | None = None) -> Snapshot:
    """Read `path` once; a link is not followed.

    Raises
    ------
    UnreadableError
        For links, pipes, devices, folders, files over `limits.file_bytes`, and files that change while they are read.
    """
    return Snapshot.of_bytes(
        name,
        read_file(path, limit=limits.file_bytes, shown=name, links=False, dir_fd=dir_fd, seconds=limits.seconds),
    )
