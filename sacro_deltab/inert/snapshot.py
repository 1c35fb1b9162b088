"""Take one file as it is now: no symbolic links, no devices, bounded size, unchanged while read."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import UnreadableError
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
        return cls(name, data, hashlib.sha256(data).hexdigest())


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def take(path: Path, name: str, limits: Limits, *, dir_fd: int | None = None) -> Snapshot:
    """Read `path` once.

    Raises
    ------
    UnreadableError
        For links, pipes, devices, folders, files over `limits.file_bytes`, and files that change while they are read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableError(
                "it is a symbolic link; what it points to could change after the check",
                path=name,
                next_step="Put the file itself in its place.",
            ) from None
        raise UnreadableError(f"it cannot be opened ({error.strerror})", path=name) from None
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            raise UnreadableError("it is not an ordinary file", path=name, next_step="Send ordinary files only.")
        if before.st_size > limits.file_bytes:
            raise UnreadableError(
                f"it is larger than {limits.file_bytes // (1024 * 1024)} MiB, more than any output needs",
                path=name,
                next_step="Send the aggregated output only.",
            )
        chunks = []
        left = before.st_size + 1  # never more: a file that grows while it is read would not end
        while left > 0 and (block := os.read(handle, min(left, 1 << 20))):
            chunks.append(block)
            left -= len(block)
        data = b"".join(chunks)
        after = os.fstat(handle)
    finally:
        os.close(handle)
    if _identity(before) != _identity(after) or len(data) != before.st_size:
        raise UnreadableError(
            "it changed while it was being read", path=name, next_step="Check again when nothing writes to it."
        )
    return Snapshot.of_bytes(name, data)
