"""npy and npz read by their headers: shapes and plain numbers only, object arrays refused, nothing unpickled."""

from __future__ import annotations

import ast
import io
import struct

from ..base.errors import UnreadableError
from ..base.findings import Effect, Finding, note
from .archives import read_members
from .buffers import decode
from .content import ArrayInfo, Content, Item
from .limits import DEFAULT, Limits

_ALTERNATIVE = "Write the numbers as a flat CSV with one header row and the matching JSON document."


def parse_header(data: bytes, name: str) -> tuple[str, bool, tuple[int, ...], int]:
    """Header of an npy block: dtype, Fortran order, shape, where the numbers start.

    Raises
    ------
    UnreadableError
        For a header that is not three plain literals.
    """
    if len(data) < 12 or not data.startswith(b"\x93NUMPY"):
        raise UnreadableError("it is not a NumPy file", path=name, next_step=_ALTERNATIVE)
    major = data[6]
    if major == 1:
        (length,) = struct.unpack_from("<H", data, 8)
        start = 10
    else:
        (length,) = struct.unpack_from("<I", data, 8)
        start = 12
    if length > 65_536 or start + length > len(data):
        raise UnreadableError("its NumPy header is damaged", path=name, next_step=_ALTERNATIVE)
    try:
        header = ast.literal_eval(data[start : start + length].decode("ascii").strip())
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        raise UnreadableError("its NumPy header is damaged", path=name, next_step=_ALTERNATIVE) from None
    if not isinstance(shape, tuple) or not all(type(s) is int and 0 <= s < 2**40 for s in shape) or len(shape) > 32:
        raise UnreadableError("its NumPy header is damaged", path=name, next_step=_ALTERNATIVE)
    return (descr if isinstance(descr, str) else "structured"), bool(fortran), shape, start + length


def _one(data: bytes, place: str, name: str) -> tuple[ArrayInfo, list[Finding]]:
    dtype, fortran, shape, start = parse_header(data, name)
    remarks = []
    if "O" in dtype or dtype == "structured":
        remarks.append(
            note(
                "object-array",
                Effect.BLOCK,
                f"{place} holds Python objects or records; reading them would run a pickle.",
                outside="It holds Python objects; reading them would run a pickle.",
                next_step=_ALTERNATIVE,
            )
        )
        return ArrayInfo(place, shape, dtype), remarks
    values = decode(data[start:], dtype, shape, fortran)
    size = 1
    for side in shape:
        size *= side
    digits = "".join(filter(str.isdecimal, dtype))
    if digits and dtype.lstrip("<>=|")[:1] in "fiubc" and int(digits) * size < len(data) - start:
        remarks.append(
            note(
                "trailing-bytes", Effect.BLOCK, f"Bytes follow the numbers of {place}.", outside="Bytes follow its end."
            )
        )
    return ArrayInfo(place, shape, dtype, values), remarks


def read_npy(data: bytes, name: str) -> Content:
    """One array."""
    info, remarks = _one(data, "array", name)
    return Content("npy", (info,), (Item("array", info.dtype, info.shape),), remarks=tuple(remarks))


def read_npz(data: bytes, name: str, limits: Limits = DEFAULT) -> Content:
    """All arrays of an npz (a zip of npy members)."""
    arrays, items, remarks = [], [], []
    for member in read_members(io.BytesIO(data), name, limits):
        place = member.name.removesuffix(".npy")
        info, found = _one(member.data, place, name)
        arrays.append(info)
        items.append(Item(place, info.dtype, info.shape))
        remarks += found
    return Content("npz", tuple(arrays), tuple(items), remarks=tuple(remarks))
