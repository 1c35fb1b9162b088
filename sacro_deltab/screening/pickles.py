"""An inert inventory of a pickle: every attribute, type and shape, and nothing is ever run or imported.

The standard unpickler is not used, not even with stub classes: its C code grows its memo to whatever index a file
asks for. Instead the operations, listed by `pickletools.genops`, are followed on a small stack of plain records
(protocols 0 to 5). A pickle never passes, whatever it holds; the inventory is the reason a checker can read.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from typing import Any

from ..errors import UnreadableError
from .content import ArrayInfo, Content, Item, Remark, floats
from .limits import DEFAULT, Deadline, Limits

ALLOWED_GLOBALS = frozenset(
    {
        "deltab.deltab.BrainDelta",
        "deltab.BrainDelta",
        "sklearn.decomposition._pca.PCA",
        "numpy.ndarray",
        "numpy.dtype",
        "numpy.core.multiarray._reconstruct",
        "numpy._core.multiarray._reconstruct",
        "numpy.core.multiarray.scalar",
        "numpy._core.multiarray.scalar",
        "numpy.core.numeric._frombuffer",
        "numpy._core.numeric._frombuffer",
        "_codecs.encode",
        "collections.OrderedDict",
        "copyreg._reconstructor",
        "copy_reg._reconstructor",
        "builtins.object",
        "__builtin__.object",
        "builtins.bytearray",
    }
)
_MARK = object()


@dataclass
class _Global:
    name: str


@dataclass
class _Object:
    """Result of a call that was written down instead of made."""

    maker: str
    args: Any = None
    state: Any = None
    items: list[Any] = field(default_factory=list)


@dataclass
class _Machine:
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    globals: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    def to_mark(self) -> list[Any]:
        out: list[Any] = []
        while self.stack:
            value = self.stack.pop()
            if value is _MARK:
                out.reverse()
                return out
            out.append(value)
        raise ValueError("mark missing")

    def note_global(self, name: str) -> _Global:
        if name not in self.globals:
            self.globals.append(name)
        return _Global(name)


def _bad(what: str, path: str) -> UnreadableError:
    return UnreadableError(
        f"it is a broken pickle ({what})", path=path, next_step="Export the weights as CSV and JSON."
    )


def read_pickle(data: bytes, name: str, limits: Limits = DEFAULT) -> Content:
    """List what a pickle holds without running it.

    Returns
    -------
    Content
        kind "pickle"; arrays with shapes (and values for plain little-endian floats and integers), all attributes,
        and a remark for each global outside the short list that honest deltab pickles need.

    Raises
    ------
    UnreadableError
        When the operations do not parse or exceed the limits.
    """
    machine = _Machine()
    deadline = Deadline(limits.seconds, name)
    end = None
    try:
        for count, (op, arg, pos) in enumerate(pickletools.genops(data)):
            if count > limits.pickle_ops:
                raise UnreadableError("it has more pickle operations than any model needs", path=name)
            if count % 256 == 0:
                deadline.check()
            if op.name == "STOP":
                end = (pos or 0) + 1
                break
            _step(machine, op.name, arg)
    except UnreadableError:
        raise
    except RecursionError:
        raise _bad("nested too deeply", name) from None
    except Exception as error:  # any malformed operation: genops raises ValueError, the stack IndexError
        raise _bad(type(error).__name__, name) from None
    top = machine.stack[-1] if machine.stack else None
    return _inventory(top, machine, trailing=len(data) - (end or len(data)), deadline=deadline)


def _step(m: _Machine, op: str, arg: Any) -> None:
    handler = _HANDLERS.get(op)
    if handler is not None:
        handler(m, arg)
    elif op in _PUSH:
        m.stack.append(arg)
    elif op in _CONST:
        m.stack.append(_CONST[op])
    elif op in ("PROTO", "FRAME", "READONLY_BUFFER"):
        pass
    else:
        m.strange.append(op)
        m.stack.append(_Object(f"<{op}>", arg))


_PUSH = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)
_CONST: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


def _collect(m: _Machine, op: str) -> None:
    values = m.to_mark()
    if op == "DICT":
        m.stack.append(dict_of(values))
    elif op == "TUPLE":
        m.stack.append(tuple(values))
    else:
        m.stack.append(values)


def dict_of(values: list[Any]) -> dict[str, Any]:
    """Alternating keys and values as a dict with printable keys."""
    return {_key(k): v for k, v in zip(values[::2], values[1::2], strict=False)}


def _key(value: Any) -> str:
    return (
        value if isinstance(value, str) else str(value)[:80] if isinstance(value, int | float) else type(value).__name__
    )


def _setitems(m: _Machine, pairs: list[Any]) -> None:
    target = m.stack[-1]
    if isinstance(target, dict):
        target.update(dict_of(pairs))
    elif isinstance(target, _Object):
        target.items.append(dict_of(pairs))


def _append(m: _Machine, values: list[Any]) -> None:
    target = m.stack[-1]
    if isinstance(target, list):
        target.extend(values)
    elif isinstance(target, _Object):
        target.items.extend(values)


def _call(m: _Machine, maker: Any, args: Any) -> None:
    name = maker.name if isinstance(maker, _Global) else type(maker).__name__
    m.stack.append(_Object(name, args))


def _op_reduce(m: _Machine, _: Any) -> None:
    args = m.stack.pop()
    _call(m, m.stack.pop(), args)


def _op_newobj_ex(m: _Machine, _: Any) -> None:
    m.stack.pop()
    _op_reduce(m, None)


def _op_build(m: _Machine, _: Any) -> None:
    state = m.stack.pop()
    target = m.stack[-1]
    if isinstance(target, _Object):
        target.state = state
    elif isinstance(target, dict) and isinstance(state, dict):
        target.update(state)


def _op_stack_global(m: _Machine, _: Any) -> None:
    attribute = m.stack.pop()
    module = m.stack.pop()
    m.stack.append(m.note_global(f"{module}.{attribute}"))


def _op_inst(m: _Machine, arg: Any) -> None:
    args = m.to_mark()
    _call(m, m.note_global(str(arg).replace(" ", ".", 1)), tuple(args))


def _op_obj(m: _Machine, _: Any) -> None:
    args = m.to_mark()
    _call(m, args[0], tuple(args[1:]))


def _op_setitem(m: _Machine, _: Any) -> None:
    value = m.stack.pop()
    key = m.stack.pop()
    _setitems(m, [key, value])


def _op_tuple_n(n: int) -> Any:
    def step(m: _Machine, _: Any) -> None:
        if len(m.stack) < n:
            raise ValueError("stack too short")
        values = tuple(m.stack[-n:])
        del m.stack[-n:]
        m.stack.append(values)

    return step


def _put(m: _Machine, arg: Any) -> None:
    m.memo[int(arg)] = m.stack[-1]


_HANDLERS: dict[str, Any] = {
    "MARK": lambda m, _: m.stack.append(_MARK),
    "POP": lambda m, _: m.stack.pop(),
    "POP_MARK": lambda m, _: m.to_mark(),
    "DUP": lambda m, _: m.stack.append(m.stack[-1]),
    "EMPTY_LIST": lambda m, _: m.stack.append([]),
    "EMPTY_DICT": lambda m, _: m.stack.append({}),
    "EMPTY_SET": lambda m, _: m.stack.append([]),
    "LIST": lambda m, _: _collect(m, "LIST"),
    "FROZENSET": lambda m, _: _collect(m, "LIST"),
    "TUPLE": lambda m, _: _collect(m, "TUPLE"),
    "DICT": lambda m, _: _collect(m, "DICT"),
    "TUPLE1": _op_tuple_n(1),
    "TUPLE2": _op_tuple_n(2),
    "TUPLE3": _op_tuple_n(3),
    "APPEND": lambda m, _: _append(m, [m.stack.pop()]),
    "APPENDS": lambda m, _: _append(m, m.to_mark()),
    "ADDITEMS": lambda m, _: _append(m, m.to_mark()),
    "SETITEM": _op_setitem,
    "SETITEMS": lambda m, _: _setitems(m, m.to_mark()),
    "GLOBAL": lambda m, arg: m.stack.append(m.note_global(str(arg).replace(" ", ".", 1))),
    "STACK_GLOBAL": _op_stack_global,
    "REDUCE": _op_reduce,
    "NEWOBJ": _op_reduce,
    "NEWOBJ_EX": _op_newobj_ex,
    "BUILD": _op_build,
    "INST": _op_inst,
    "OBJ": _op_obj,
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": lambda m, _: m.memo.__setitem__(len(m.memo), m.stack[-1]),
    "GET": lambda m, arg: m.stack.append(m.memo[int(arg)]),
    "BINGET": lambda m, arg: m.stack.append(m.memo[int(arg)]),
    "LONG_BINGET": lambda m, arg: m.stack.append(m.memo[int(arg)]),
}


# --- reading the records that were written down -----------------------------------------------------------------------


def _inventory(top: Any, machine: _Machine, *, trailing: int, deadline: Deadline) -> Content:
    walk = _Walk(deadline)
    walk.visit(top, "model")
    remarks = []
    foreign = [g for g in machine.globals if g not in ALLOWED_GLOBALS and not _known_library(g)]
    if foreign:
        shown = ", ".join(foreign[:8])
        remarks.append(
            Remark(
                "pickle-global",
                f"Opening it would import or call: {shown}.",
                f"Opening it would import or call: {shown}.",
            )
        )
    if machine.strange:
        seen = sorted(set(machine.strange))
        remarks.append(
            Remark("pickle-persistent", f"It uses {', '.join(seen)}.", "It refers to objects outside itself.")
        )
    if trailing > 0:
        remarks.append(
            Remark("trailing-bytes", f"{trailing} bytes follow the end of the pickle.", "Bytes follow its end.")
        )
    return Content(
        kind="pickle",
        arrays=tuple(walk.arrays),
        items=tuple(walk.items),
        scalars=walk.scalars,
        strings=tuple(walk.strings),
        remarks=tuple(remarks),
        data=tuple(machine.globals),
    )


def _known_library(name: str) -> bool:
    return name.startswith(("sklearn.", "deltab.", "joblib.numpy_pickle.", "scipy.sparse."))


class _Walk:
    """Visit each record once (a memo can make a small file look endlessly large)."""

    def __init__(self, deadline: Deadline) -> None:
        self.arrays: list[ArrayInfo] = []
        self.items: list[Item] = []
        self.scalars: dict[str, float] = {}
        self.strings: list[tuple[str, str]] = []
        self._seen: set[int] = set()
        self._deadline = deadline
        self._max_items = 5_000

    def visit(self, root: Any, place: str) -> None:
        """Depth first, without recursion."""
        pending = [(root, place)]
        while pending:
            if len(self.items) >= self._max_items:
                self.items.append(Item("...", "more items than are listed"))
                return
            self._deadline.check()
            value, where = pending.pop()
            if isinstance(value, dict | list | tuple | _Object):
                if id(value) in self._seen:
                    continue
                self._seen.add(id(value))
            pending.extend(reversed(self._one(value, where)))

    def _one(self, value: Any, where: str) -> list[tuple[Any, str]]:
        if isinstance(value, _Object):
            return self._object(value, where)
        if isinstance(value, dict):
            self.items.append(Item(where, "dict", (len(value),)))
            return [(v, f"{where}.{str(k)[:80]}") for k, v in list(value.items())[:5_000]]
        if isinstance(value, list | tuple):
            return self._sequence(value, where)
        if isinstance(value, bool) or value is None:
            self.items.append(Item(where, type(value).__name__))
        elif isinstance(value, int | float):
            self.items.append(Item(where, type(value).__name__))
            if abs(value) < 1e300:
                self.scalars[where] = float(value)
        elif isinstance(value, str):
            self.items.append(Item(where, "str", (len(value),)))
            self.strings.append((where, value[:2_000]))
        elif isinstance(value, bytes | bytearray):
            self.items.append(Item(where, "bytes", (len(value),)))
        elif isinstance(value, _Global):
            self.items.append(Item(where, value.name))
        return []

    def _sequence(self, value: list[Any] | tuple[Any, ...], where: str) -> list[tuple[Any, str]]:
        self.items.append(Item(where, type(value).__name__, (len(value),)))
        numbers = [v for v in value if isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e300]
        if len(numbers) == len(value) and len(value) > 1:
            self.arrays.append(ArrayInfo(where, (len(value),), "list", floats(numbers)))
            return []
        return [(v, f"{where}[{i}]") for i, v in enumerate(value[:1_000])]

    def _object(self, value: _Object, where: str) -> list[tuple[Any, str]]:
        info = _as_array(value, where)
        if info is not None:
            self.items.append(Item(where, f"array {info.dtype}", info.shape))
            if info.shape == ():
                if info.values is not None and len(info.values) == 1:
                    self.scalars[where] = info.values[0]
            else:
                self.arrays.append(info)
            return []
        self.items.append(Item(where, value.maker))
        follow: list[tuple[Any, str]] = []
        if isinstance(value.state, dict):
            follow += [(v, f"{where}.{str(k)[:80]}") for k, v in list(value.state.items())[:5_000]]
        elif value.state is not None:
            follow.append((value.state, f"{where}.state"))
        if value.args not in (None, ()):
            follow.append((value.args, f"{where}.args"))
        if value.items:
            follow.append((value.items, f"{where}.items"))
        return follow


def _as_array(value: _Object, where: str) -> ArrayInfo | None:
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
    return None


def _dtype(record: Any) -> str:
    if isinstance(record, _Object) and isinstance(record.args, tuple) and record.args:
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
    if isinstance(raw, _Object) and raw.maker == "_codecs.encode" and isinstance(raw.args, tuple) and raw.args:
        text = raw.args[0]
        raw = text.encode("latin-1", "ignore") if isinstance(text, str) else None
    if (
        isinstance(raw, _Object)
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
    import numpy as np

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
