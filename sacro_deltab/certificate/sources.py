"""Where a certified release is read from: the session folder, what was left of it, or the viewer's zip."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..base.digests import Digests, digest_bytes, digest_file
from ..base.errors import CertificateError, InputError, UnreadableError
from ..base.names import name_problems, shown
from ..base.opening import LARGE, read_file, read_member
from .layout import ENVELOPE, SHOWN, Inventory, scan
from .shown import hidden_envelope
from .zips import form_problems

SUMMARY = "summary.txt"  # written by the viewer into its release
MAX_ZIP_BYTES = 1024**3
MAX_ZIP_FILES = 10_000


@dataclass(frozen=True)
class Source:
    """Files by name, and what is wrong with their being there.

    released: True for what was let out (flat, a part of the files, results.json rewritten). order: names of a zip's
    members as they stand in it.
    """

    path: Path
    released: bool
    names: tuple[str, ...]
    problems: tuple[str, ...]
    inventory: Inventory | None = None
    members: Mapping[str, bytes] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    _known: dict[str, Digests] = field(default_factory=dict, repr=False, compare=False)

    def read(self, name: str, *, limit: int = LARGE) -> bytes:
        """Bytes of one file."""
        if self.inventory is not None and name in self.inventory.root:
            return read_member(self.inventory.root[name], limit=limit)
        return self.members[name]

    def digests(self, name: str) -> Digests:
        """Both digests of one file, worked out once: all checks of one verification are about the same bytes."""
        if name not in self._known:
            path = self.inventory.root.get(name) if self.inventory is not None else None
            self._known[name] = digest_bytes(self.members[name]) if path is None else digest_file(path)
        return self._known[name]


def open_source(path: Path, *, released: bool = False) -> Source:
    """Open a folder or a release zip.

    Parameters
    ----------
    released
        Say that a folder is what the viewer let out (an unpacked zip). A zip always is.

    Raises
    ------
    InputError, UnreadableError
        Neither a folder nor a readable zip.
    """
    if path.is_dir():
        inventory = scan(path)
        more = {}
        if SHOWN in inventory.root and ENVELOPE not in inventory.root:
            more = _envelope(read_member(inventory.root[SHOWN], limit=LARGE))
        return Source(path, released, (*inventory.root, *more), inventory.problems, inventory, more)
    if path.is_file():
        return _open_zip(path, read_file(path, limit=MAX_ZIP_BYTES))
    raise InputError("there is no such folder or zip.", path=path)


def _open_zip(path: Path, data: bytes) -> Source:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read_zip(path, archive, data)
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        raise UnreadableError(f"this is not a readable zip ({type(error).__name__}).", path=path) from None


def _read_zip(path: Path, archive: zipfile.ZipFile, data: bytes) -> Source:
    problems: list[str] = []
    members: dict[str, bytes] = {}
    infos = archive.infolist()
    total = sum(info.file_size for info in infos)
    if total > MAX_ZIP_BYTES or len(infos) > MAX_ZIP_FILES:
        raise UnreadableError("the zip unpacks to more than any release holds.", path=path)
    for info in infos:
        name = info.filename
        if name in members:
            problems.append(f"the zip holds {shown(name)} twice")
        elif stat.S_ISLNK(info.external_attr >> 16):
            problems.append(f"{shown(name)} is a link, not a file")
        elif info.is_dir():
            problems.append(f"{shown(name)} is a folder; a release is flat")
        else:
            with archive.open(info) as handle:  # reads no more than it declared: CRC and size are checked
                held = handle.read(info.file_size + 1)
            if len(held) != info.file_size:
                raise UnreadableError("the zip does not hold what it declares.", path=path)
            members[name] = held
    problems += name_problems(members)
    if not problems:
        problems += form_problems(data, infos, members)
    order = tuple(members)
    if SHOWN in members and ENVELOPE not in members:
        members |= _envelope(members[SHOWN])
    return Source(path, True, tuple(sorted(members)), tuple(problems), None, members, order)


def _envelope(text: bytes) -> dict[str, bytes]:
    """The viewer lets out the text form of the envelope alone: what is in it is read as the envelope."""
    try:
        return {ENVELOPE: hidden_envelope(text)}
    except CertificateError:
        return {}
