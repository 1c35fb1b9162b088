"""Opening a path that somebody gave: an ordinary file, once, bounded in bytes and seconds.

A pipe would wait for a writer, a device has no end, and a link can point elsewhere after the check.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from .errors import UnreadableError

MIB = 1024 * 1024
GIB = 1024 * MIB
SMALL = 4 * MIB  # declarations, trust files, keys, layers: what a person could read
LARGE = 64 * MIB  # evidence and outputs of the largest sessions: read and parsed, they stay under 512 MiB
SECONDS = 120.0
_BLOCK = MIB
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def opened(
    path: str | Path, *, shown: object | None = None, links: bool = True, dir_fd: int | None = None
) -> Iterator[int]:
    """A descriptor of an ordinary file.

    Parameters
    ----------
    shown
        How messages name the file; by default its path.
    links
        Whether a symbolic link is followed. False for every file of a folder that is judged or certified.
    dir_fd
        Descriptor of the folder that `path` is relative to.

    Raises
    ------
    UnreadableError
        Missing, not permitted, a link where none may be, a folder, a pipe, a device.
    """
    name = path if shown is None else shown
    try:
        handle = os.open(path, _FLAGS | (0 if links else getattr(os, "O_NOFOLLOW", 0)), dir_fd=dir_fd)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _refusal(error, name) from None
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableError("it is a folder, not a file", path=name, next_step="Name the file inside it.")
        if not stat.S_ISREG(mode):
            raise UnreadableError("it is not an ordinary file", path=name, next_step="Give an ordinary file.")
        yield handle
    finally:
        os.close(handle)


def _refusal(error: OSError | ValueError, name: object) -> UnreadableError:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ENOENT:
        return UnreadableError("there is no such file", path=name, next_step="Check the name.")
    if code == errno.ELOOP:
        return UnreadableError(
            "it is a symbolic link; what it points to could change after the check",
            path=name,
            next_step="Put the file itself in its place.",
        )
    reason = error.strerror if isinstance(error, OSError) else "it has a NUL in its name"
    return UnreadableError(f"it cannot be opened ({reason})", path=name)


def blocks(handle: int, *, limit: int, shown: object, seconds: float = SECONDS) -> Iterator[bytes]:
    """The bytes of an opened file, a block at a time, never more than it had when it was opened.

    Raises
    ------
    UnreadableError
        Larger than `limit` bytes, changed while it was read, or slower than `seconds`.
    """
    before = os.fstat(handle)
    if before.st_size > limit:
        size = f"{limit // MIB} MiB" if limit >= MIB else f"{limit} bytes"
        raise UnreadableError(f"it is larger than {size}, more than such a file needs", path=shown)
    left, end = before.st_size + 1, time.monotonic() + seconds  # a file that grows while it is read would not end
    try:
        while left > 0 and (block := os.read(handle, min(left, _BLOCK))):
            left -= len(block)
            if time.monotonic() > end:
                raise UnreadableError(f"reading it took longer than {seconds:g} seconds", path=shown)
            yield block
        after = os.fstat(handle)
    except OSError as error:
        raise UnreadableError(f"it cannot be read ({error.strerror})", path=shown) from None
    if left != 1 or _identity(before) != _identity(after):
        raise UnreadableError(
            "it changed while it was being read", path=shown, next_step="Try again when nothing writes to it."
        )


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


_HELD: ContextVar[dict[str, bytes] | None] = ContextVar("held", default=None)


@contextmanager
def read_once() -> Iterator[None]:
    """Inside, each file of a folder that is judged is read once: who asks again is given the same bytes."""
    token = _HELD.set({})
    try:
        yield
    finally:
        _HELD.reset(token)


def holding() -> bool:
    """Whether files are read once here."""
    return _HELD.get() is not None


def read_file(
    path: str | Path,
    *,
    limit: int = SMALL,
    shown: object | None = None,
    links: bool = True,
    dir_fd: int | None = None,
    seconds: float = SECONDS,
) -> bytes:
    """All bytes of an ordinary file (see `opened` for the parameters).

    Raises
    ------
    UnreadableError
        No ordinary file, larger than `limit` bytes, changed while it was read, or slower than `seconds`.
    """
    name = path if shown is None else shown
    held, key = None if links or dir_fd is not None else _HELD.get(), str(Path(path).absolute())
    if held is not None and key in held and len(held[key]) <= limit:
        return held[key]
    with opened(path, shown=name, links=links, dir_fd=dir_fd) as handle:
        data = b"".join(blocks(handle, limit=limit, shown=name, seconds=seconds))
    if held is not None:
        held[key] = data
    return data


def read_member(path: Path, *, limit: int = LARGE) -> bytes:
    """A file of a folder that is judged or certified: no link, and messages name it as the folder does."""
    return read_file(path, limit=limit, shown=path.name, links=False)


def read_text(path: str | Path, *, limit: int = SMALL, shown: object | None = None) -> str:
    """The text of a UTF-8 file; a byte-order mark in front is dropped.

    Raises
    ------
    UnreadableError
        As `read_file`, or not UTF-8.
    """
    name = path if shown is None else shown
    try:
        return read_file(path, limit=limit, shown=name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(
            "it is not UTF-8 text", path=name, place=f"byte {error.start}", next_step="Save it as UTF-8."
        ) from None


def ordinary(path: str | Path) -> Path:
    """`path`, after a look that it is an ordinary file: for libraries that open by name themselves.

    Raises
    ------
    UnreadableError
        As `opened`.
    """
    with opened(path):
        return Path(path)
