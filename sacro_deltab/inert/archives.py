"""zip and tar: listed and read in memory within limits; never written to disk, never nested."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from ..base.errors import UnreadableError
from ..base.names import path_problem
from .limits import DEFAULT, Limits

_STEP = "Send the files themselves, one decision each, not an archive."


@dataclass(frozen=True)
class Member:
    """One ordinary file of an archive."""

    name: str
    data: bytes


def _refuse(what: str, path: str) -> UnreadableError:
    return UnreadableError(what, path=path, next_step=_STEP)


def names_of_zip(data: bytes) -> list[str]:
    """Member names, without reading any member; empty when it is no readable zip."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()[:20_000]
    except Exception:
        return []


def read_members(stream: io.BytesIO, path: str, limits: Limits = DEFAULT) -> Iterator[Member]:
    """Ordinary members of a zip.

    Raises
    ------
    UnreadableError
        Bad names, links, encryption, duplicate names, too many or too large members, ratios of a bomb.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except Exception:
        raise _refuse("it is a damaged zip file", path) from None
    with archive:
        infos = archive.infolist()
        _check_listing([(i.filename, i.file_size) for i in infos], path, limits)
        total = 0
        for info in infos:
            if info.is_dir():
                continue
            if (info.external_attr >> 16) & 0o170000 == 0o120000:
                raise _refuse(f"its member {info.filename!r} is a symbolic link", path)
            if info.flag_bits & 0x1:
                raise _refuse(f"its member {info.filename!r} is encrypted", path)
            if info.file_size > 1_000_000 and info.file_size > limits.archive_ratio * max(info.compress_size, 1):
                raise _refuse("it unpacks to far more than its size, as a zip bomb does", path)
            try:
                with archive.open(info) as handle:
                    data = handle.read(limits.archive_bytes - total + 1)
            except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError):
                raise _refuse(f"its member {info.filename!r} cannot be read", path) from None
            total += len(data)
            if total > limits.archive_bytes:
                raise _refuse("it unpacks to more than the limit", path)
            yield Member(info.filename, data)


def read_tar(data: bytes, path: str, limits: Limits = DEFAULT) -> Iterator[Member]:
    """Ordinary members of an uncompressed tar; the same refusals as for zip."""
    total = 0
    seen: list[tuple[str, int]] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for count, info in enumerate(archive):
                if count >= limits.archive_members:
                    raise _refuse("it has more members than the limit", path)
                seen.append((info.name, info.size))
                if info.isdir():
                    continue
                if not info.isreg() or info.issparse():
                    raise _refuse(f"its member {info.name!r} is a link, device or sparse file", path)
                _check_listing(seen[-1:], path, limits)
                total += info.size
                if total > limits.archive_bytes:
                    raise _refuse("it unpacks to more than the limit", path)
                handle = archive.extractfile(info)
                yield Member(info.name, handle.read() if handle is not None else b"")
    except (tarfile.TarError, ValueError, EOFError, OSError, OverflowError):
        raise _refuse("it is a damaged tar file", path) from None
    _check_listing(seen, path, limits)


def gunzip(data: bytes, path: str, limits: Limits = DEFAULT) -> bytes:
    """Unpack one gzip stream within limits."""
    return _unpacked(data, 31, "gzip file", path, limits)


def inflate(data: bytes, path: str, limits: Limits = DEFAULT) -> bytes:
    """Unpack one zlib stream within limits."""
    return _unpacked(data, 15, "compressed stream", path, limits)


def _unpacked(data: bytes, window: int, what: str, path: str, limits: Limits) -> bytes:
    try:
        engine = zlib.decompressobj(window)
        out = engine.decompress(data, min(limits.archive_bytes, limits.archive_ratio * len(data) + 1_000_000))
    except zlib.error:
        raise _refuse(f"it is a damaged {what}", path) from None
    if engine.unconsumed_tail:
        raise _refuse("it unpacks to more than the limit", path)
    return out


def _check_listing(listing: list[tuple[str, int]], path: str, limits: Limits) -> None:
    if len(listing) > limits.archive_members:
        raise _refuse("it has more members than the limit", path)
    if sum(size for _, size in listing) > limits.archive_bytes:
        raise _refuse("it unpacks to more than the limit", path)
    folded: set[str] = set()
    for name, _ in listing:
        reason = path_problem(name)
        if reason:
            raise _refuse(f"it has a member {name[:80]!r}: {reason}", path)
        if name.casefold() in folded:
            raise _refuse(f"two of its members are called {name[:80]!r}", path)
        folded.add(name.casefold())
