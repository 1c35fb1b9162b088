"""The one form of a release zip: made again from its members and compared, so that no byte lies beside them.

It is what Python's `zipfile` writes, and so what SACRO-Viewer writes: stored members one after the other, their
directory, its end. `release` writes the same with one time for every member.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterable, Mapping, Sequence

from ..base.names import shown

TIME = (1980, 1, 1, 0, 0, 0)  # of every member that `release` writes
MODE = 0o600
_MODES = frozenset({0o600, 0o640, 0o644, 0o660, 0o664, 0o666, 0o700, 0o744, 0o750, 0o755, 0o770, 0o775, 0o777})
_SYSTEMS = frozenset({0, 3})
_NAMES_UTF8 = 0x800


def zip_bytes(members: Iterable[tuple[zipfile.ZipInfo, bytes]]) -> bytes:
    """A zip of stored members, in this order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for info, data in members:
            archive.writestr(_plain(info), data)
    return buffer.getvalue()


def release_bytes(files: Mapping[str, bytes]) -> bytes:
    """The zip of a release: nothing in it but names and bytes."""
    return zip_bytes((member(name), data) for name, data in files.items())


def member(name: str) -> zipfile.ZipInfo:
    """A member as `release` writes it."""
    info = zipfile.ZipInfo(name, TIME)
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | MODE) << 16
    return info


def form_problems(data: bytes, infos: Sequence[zipfile.ZipInfo], members: Mapping[str, bytes]) -> list[str]:
    """Why a zip holds more than its members: names the first of them where something stands beside it."""
    odd = [info.filename for info in infos if not _usual(info)]
    if odd:
        return [
            f"the zip says more of {shown(odd[0])} than a name: it is packed, marked or dated as the viewer does not"
        ]
    if zip_bytes((info, members[info.filename]) for info in infos) != data:
        return ["the zip has bytes beside its members: before, between or behind them"]
    return []


def _usual(info: zipfile.ZipInfo) -> bool:
    """Only what the viewer's Python writes: stored, a plain file, a time that a clock shows."""
    mode = info.external_attr >> 16
    year, month, day, hour, minute, second = info.date_time
    return (
        info.compress_type == zipfile.ZIP_STORED
        and info.create_system in _SYSTEMS
        and info.flag_bits & ~_NAMES_UTF8 == 0
        and info.internal_attr == 0
        and info.external_attr & 0xFFFF == 0
        and stat.S_IFMT(mode) in (0, stat.S_IFREG)
        and stat.S_IMODE(mode) in _MODES
        and (1980 <= year <= 2107 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60)
    )


def _plain(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """A fresh description with the entries that may differ, so that nothing else of `info` is written."""
    made = zipfile.ZipInfo(info.filename, info.date_time)
    made.create_system, made.external_attr = info.create_system, info.external_attr
    return made
