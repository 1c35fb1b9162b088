"""PNG: size, hidden text, bytes after the end. Pixels are for a person: a picture never passes alone."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence

from ..base.errors import UnreadableError
from ..base.findings import Effect, note
from .content import Content, Item

_STEP = "Save the plot again without metadata."
# chunks that only say how to show the pixels, with the lengths they can have
_PLAIN_PNG: dict[bytes, Sequence[int]] = {
    b"gAMA": (4,), b"cHRM": (32,), b"sRGB": (1,), b"pHYs": (9,), b"bKGD": (1, 2, 6), b"sBIT": (1, 2, 3, 4),
}  # fmt: skip
_SOFTWARE = re.compile(rb"Software\x00Matplotlib version\d+(?:\.\d+){0,3}, https?://matplotlib\.org/")
_MOST_PIXELS = 40_000_000


def read_png(data: bytes, name: str) -> Content:
    """Structure of a picture.

    Raises
    ------
    UnreadableError
        When its structure is damaged.
    """
    try:
        size, hidden, end = _png(data)
    except (struct.error, IndexError, ValueError):
        raise UnreadableError("it is a damaged image", path=name, next_step=_STEP) from None
    remarks = []
    if hidden:
        listed = ", ".join(sorted(set(hidden)))
        remarks.append(
            note(
                "image-metadata",
                Effect.BLOCK,
                f"It carries {listed}.",
                outside="It carries hidden data.",
                next_step=_STEP,
            )
        )
    if end < len(data):
        remarks.append(
            note(
                "trailing-bytes",
                Effect.BLOCK,
                f"{len(data) - end} bytes follow its end.",
                outside="Bytes follow its end.",
                next_step=_STEP,
            )
        )
    return Content("png", items=(Item("image", "png", size),), remarks=tuple(remarks))


def _png(data: bytes) -> tuple[tuple[int, int], list[str], int]:
    """Every chunk in its place, once, of its own length; the pixels fill the picture exactly."""
    hidden: list[str] = []
    place, size, header = 8, (0, 0), b""
    seen: list[bytes] = []
    pixels = bytearray()
    while place < len(data):
        length, mark = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        if len(body) != length or place + 12 + length > len(data):
            raise ValueError("short chunk")
        (crc,) = struct.unpack_from(">I", data, place + 8 + length)
        if crc != zlib.crc32(mark + body):
            raise ValueError("bad checksum")
        if mark == b"IHDR" and not seen:
            size, header = struct.unpack_from(">II", body), body
        elif mark == b"IDAT" and (seen[-1] == b"IDAT" or b"IDAT" not in seen):
            pixels += body
        elif mark != b"IEND" or body:
            hidden += _chunk(mark, body, seen, header)
        seen.append(mark)
        place += 12 + length
        if mark == b"IEND":
            hidden += _pixels(bytes(pixels), header)
            return size, hidden, place
    raise ValueError("no end")


def _chunk(mark: bytes, body: bytes, seen: list[bytes], header: bytes) -> list[str]:
    """What a chunk beside the pixels hides: a second one of its kind, one of another length, one with text."""
    if mark in (b"tEXt", b"iTXt", b"zTXt") and mark not in seen:
        return [] if _SOFTWARE.fullmatch(body) and mark == b"tEXt" else ["text"]
    colours = header[9] if len(header) == 13 else -1
    lengths = {**_PLAIN_PNG, b"PLTE": range(3, 769, 3) if colours == 3 else (), b"tRNS": _transparency(colours)}
    if mark in lengths:
        return [] if len(body) in lengths[mark] and mark not in seen else ["a chunk that is not of its kind"]
    return [{b"eXIf": "EXIF"}.get(mark, "a private chunk")]


def _transparency(colours: int) -> Sequence[int]:
    return {0: (2,), 2: (6,), 3: range(1, 257)}.get(colours, ())


def _pixels(packed: bytes, header: bytes) -> list[str]:
    """Bytes that no pixel needs: before the end of the compressed stream, or after it."""
    if len(header) != 13:
        raise ValueError("bad header")
    width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colours)
    if samples is None or not width or not height or width * height > _MOST_PIXELS:
        raise ValueError("bad size")
    if interlaced:
        return ["an interlaced picture"]
    row = 1 + (width * samples * depth + 7) // 8
    engine = zlib.decompressobj()
    try:
        lines = engine.decompress(packed, row * height + 1)
    except zlib.error:
        raise ValueError("bad pixels") from None
    if len(lines) < row * height:
        raise ValueError("too few pixels")
    extra = len(lines) > row * height or not engine.eof or engine.unused_data or engine.unconsumed_tail
    return ["bytes beside its pixels"] if extra or any(kind > 4 for kind in lines[::row]) else []
