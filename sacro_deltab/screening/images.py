"""PNG, JPEG and GIF: size, hidden text, bytes after the end. Pixels are for a person: an image never passes alone."""

from __future__ import annotations

import struct
import zlib

from ..errors import UnreadableError
from .content import Content, Item, Remark
from .limits import DEFAULT, Limits

_STEP = "Save the plot again without metadata."
_PLAIN_PNG = frozenset(
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"pHYs", b"bKGD", b"sBIT"}
)


def read_image(data: bytes, kind: str, name: str, limits: Limits = DEFAULT) -> Content:
    """Structure of an image.

    Raises
    ------
    UnreadableError
        When its structure is damaged.
    """
    del limits
    reader = {"png": _png, "jpeg": _jpeg, "gif": _gif}[kind]
    try:
        size, hidden, end = reader(data)
    except (struct.error, IndexError, ValueError):
        raise UnreadableError("it is a damaged image", path=name, next_step=_STEP) from None
    remarks = []
    if hidden:
        listed = ", ".join(sorted(set(hidden)))
        remarks.append(Remark("image-metadata", f"It carries {listed}.", "It carries hidden data.", next_step=_STEP))
    if end < len(data):
        remarks.append(
            Remark(
                "trailing-bytes", f"{len(data) - end} bytes follow its end.", "Bytes follow its end.", next_step=_STEP
            )
        )
    return Content(kind, items=(Item("image", kind, size),), remarks=tuple(remarks))


def _png(data: bytes) -> tuple[tuple[int, int], list[str], int]:
    hidden: list[str] = []
    place, size = 8, (0, 0)
    while place < len(data):
        length, mark = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        if len(body) != length or place + 12 + length > len(data):
            raise ValueError("short chunk")
        (crc,) = struct.unpack_from(">I", data, place + 8 + length)
        if crc != zlib.crc32(mark + body):
            raise ValueError("bad checksum")
        if mark == b"IHDR":
            size = struct.unpack_from(">II", body)
        elif mark == b"tEXt" and body.startswith((b"Software\x00Matplotlib", b"Software\x00matplotlib")):
            if len(body) > 120:
                hidden.append("text")
        elif mark not in _PLAIN_PNG:
            hidden.append(
                {b"tEXt": "text", b"zTXt": "text", b"iTXt": "text", b"eXIf": "EXIF"}.get(mark, "a private chunk")
            )
        place += 12 + length
        if mark == b"IEND":
            return size, hidden, place
    raise ValueError("no end")


def _jpeg(data: bytes) -> tuple[tuple[int, int], list[str], int]:
    hidden: list[str] = []
    place, size = 2, (0, 0)
    while True:
        if data[place] != 0xFF:
            raise ValueError("no marker")
        mark = data[place + 1]
        if mark == 0xD9:
            return size, hidden, place + 2
        if mark == 0xFF:
            place += 1
            continue
        (length,) = struct.unpack_from(">H", data, place + 2)
        if length < 2:
            raise ValueError("bad length")
        if mark in (0xC0, 0xC1, 0xC2):
            height, width = struct.unpack_from(">HH", data, place + 5)
            size = (width, height)
        if mark == 0xFE:
            hidden.append("a comment")
        elif 0xE1 <= mark <= 0xEF:
            hidden.append("EXIF" if mark == 0xE1 else "an application block")
        place += 2 + length
        if mark == 0xDA:
            place = _jpeg_scan_end(data, place)


def _jpeg_scan_end(data: bytes, place: int) -> int:
    while True:
        place = data.index(b"\xff", place)
        if data[place + 1] == 0x00 or 0xD0 <= data[place + 1] <= 0xD7:
            place += 2
            continue
        return place


def _gif(data: bytes) -> tuple[tuple[int, int], list[str], int]:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    place = 13 + (3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0)
    hidden: list[str] = []
    while True:
        mark = data[place]
        if mark == 0x3B:
            return (width, height), hidden, place + 1
        if mark == 0x21:
            if data[place + 1] == 0xFE:
                hidden.append("a comment")
            elif data[place + 1] == 0xFF and data[place + 3 : place + 11] != b"NETSCAPE":
                hidden.append("an application block")
            place = _gif_blocks(data, place + 2)
        elif mark == 0x2C:
            flags = data[place + 9]
            place = _gif_blocks(data, place + 10 + (3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0) + 1)
        else:
            raise ValueError("unknown block")


def _gif_blocks(data: bytes, place: int) -> int:
    while data[place]:
        place += 1 + data[place]
    return place + 1
