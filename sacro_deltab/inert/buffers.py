"""Arrays inside other files: plain numbers of a raw buffer, and the records that NumPy pickles them as."""

from __future__ import annotations

from typing import Any, BinaryIO

from .content import ArrayInfo, floats
from .pickle_machine import Made

_JOBLIB = "NumpyArrayWrapper"


def pickled_array(value: Made, where: str) -> ArrayInfo | None:
    """The array that a record of calls would make, or None."""
    maker = value.maker.rsplit(".", 1)[-1]
    state = value.state
    if maker == "_reconstruct" and isinstance(state, tuple) and len(state) == 5:
        _, shape, dtype, fortran, raw = state
        return _array(where, shape, _dtype(dtype), raw, bool(fortran))
    if maker == "_frombuffer" and isinstance(value.args, tuple) and len(value.args) == 4:
        raw, dtype, shape, order = value.args
        return _array(where, shape, _dtype(dtype), raw, order == "F")
    if maker == "scalar" and isinstance(value.args, tuple) and len(value.args) == 2:
        return _array(where, (), _dtype(value.args[0]), value.args[1], False)
    if maker == _JOBLIB and isinstance(state, dict) and not value.items:
        return _array(where, state.get("shape"), _dtype(state.get("dtype")), value.args, state.get("order") == "F")
    return None


def take_joblib_bytes(value: Any, stream: BinaryIO) -> bool:
    """Step over the numbers that joblib writes between the operations of a pickle, and keep them beside the record.

    True where a pickle of its own follows: the array holds objects.
    """
    if not isinstance(value, Made) or value.maker.rsplit(".", 1)[-1] != _JOBLIB or not isinstance(value.state, dict):
        return False
    shape, dtype = value.state.get("shape"), _dtype(value.state.get("dtype"))
    if "O" in dtype:
        return True
    width = dtype.lstrip("<>=|")[1:]
    if not width.isdecimal() or not isinstance(shape, tuple):
        raise ValueError("bad array")
    size = int(width)
    for side in shape:
        if type(side) is not int or not 0 <= side < 2**40:
            raise ValueError("bad shape")
        size *= side
    if value.state.get("numpy_array_alignment_bytes") is not None:
        stream.read(stream.read(1)[0])
    value.args = stream.read(min(size, 2**27))
    return False


def _dtype(record: Any) -> str:
    if isinstance(record, Made) and isinstance(record.args, tuple) and record.args:
        order = ""
        if isinstance(record.state, tuple) and len(record.state) > 1 and isinstance(record.state[1], str):
            order = record.state[1]
        return ("" if order in ("", "|") else order) + str(record.args[0])[:16]
    return "unknown"


def _array(where: str, shape: Any, dtype: str, raw: Any, fortran: bool) -> ArrayInfo | None:
    if isinstance(shape, int):
        shape = (shape,)
    if not isinstance(shape, tuple) or not all(isinstance(s, int) and 0 <= s < 2**40 for s in shape):
        return None
    if isinstance(raw, Made) and raw.maker == "_codecs.encode" and isinstance(raw.args, tuple) and raw.args:
        text = raw.args[0]
        raw = text.encode("latin-1", "ignore") if isinstance(text, str) else None
    if (
        isinstance(raw, Made)
        and isinstance(raw.args, tuple)
        and raw.args
        and isinstance(raw.args[0], bytes | bytearray)
    ):
        raw = raw.args[0]
    values = None
    if isinstance(raw, bytes | bytearray):
        values = decode(bytes(raw), dtype, tuple(shape), fortran)
    return ArrayInfo(where, tuple(shape), dtype, values)


def decode(raw: bytes, dtype: str, shape: tuple[int, ...], fortran: bool) -> Any:
    """Plain numbers of a raw buffer as C doubles in C order; None for anything else. `dtype` as numpy spells it."""
    import numpy as np  # late: numpy is heavy

    size = 1
    for side in shape:
        size *= side
    if size > 2_000_000 or dtype.lstrip("<>=|")[:1] not in ("f", "i", "u", "b"):
        return None
    try:
        kind = np.dtype(dtype)
        if kind.hasobject or kind.itemsize * size != len(raw):
            return None
        block = np.frombuffer(raw, dtype=kind).astype("<f8")
        if fortran and len(shape) > 1:
            block = np.ascontiguousarray(block.reshape(shape, order="F")).ravel()
    except (TypeError, ValueError):
        return None
    return floats(block[np.isfinite(block)] if not np.isfinite(block).all() else block) if size else floats(())
