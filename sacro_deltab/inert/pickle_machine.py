"""The operations of a pickle followed on a small stack of plain records: nothing is run, nothing imported.

The standard unpickler is not used, not even with stub classes: its C code grows its memo to whatever index a file
asks for. Protocols 0 to 5, as `pickletools.genops` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_MARK = object()


@dataclass
class GlobalName:
    """A class or function that opening the file would look up."""

    name: str


@dataclass
class Made:
    """Result of a call that was written down instead of made."""

    maker: str
    args: Any = None
    state: Any = None
    items: list[Any] = field(default_factory=list)


@dataclass
class Machine:
    """Stack, memo, and what was met on the way."""

    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    globals: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    def to_mark(self) -> list[Any]:
        """Everything above the last mark, taken off the stack."""
        out: list[Any] = []
        while self.stack:
            value = self.stack.pop()
            if value is _MARK:
                out.reverse()
                return out
            out.append(value)
        raise ValueError("mark missing")

    def note_global(self, name: str) -> GlobalName:
        """Remember a global by name."""
        if name not in self.globals:
            self.globals.append(name)
        return GlobalName(name)


def step(m: Machine, op: str, arg: Any) -> None:
    """Follow one operation."""
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
        m.stack.append(Made(f"<{op}>", arg))


_PUSH = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)
_CONST: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


def _collect(m: Machine, op: str) -> None:
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


def _setitems(m: Machine, pairs: list[Any]) -> None:
    target = m.stack[-1]
    if isinstance(target, dict):
        target.update(dict_of(pairs))
    elif isinstance(target, Made):
        target.items.append(dict_of(pairs))


def _append(m: Machine, values: list[Any]) -> None:
    target = m.stack[-1]
    if isinstance(target, list):
        target.extend(values)
    elif isinstance(target, Made):
        target.items.extend(values)


def _call(m: Machine, maker: Any, args: Any) -> None:
    name = maker.name if isinstance(maker, GlobalName) else type(maker).__name__
    m.stack.append(Made(name, args))


def _op_reduce(m: Machine, _: Any) -> None:
    args = m.stack.pop()
    _call(m, m.stack.pop(), args)


def _op_newobj_ex(m: Machine, _: Any) -> None:
    m.stack.pop()
    _op_reduce(m, None)


def _op_build(m: Machine, _: Any) -> None:
    state = m.stack.pop()
    target = m.stack[-1]
    if isinstance(target, Made):
        target.state = state
    elif isinstance(target, dict) and isinstance(state, dict):
        target.update(state)


def _op_stack_global(m: Machine, _: Any) -> None:
    attribute = m.stack.pop()
    module = m.stack.pop()
    m.stack.append(m.note_global(f"{module}.{attribute}"))


def _op_inst(m: Machine, arg: Any) -> None:
    args = m.to_mark()
    _call(m, m.note_global(str(arg).replace(" ", ".", 1)), tuple(args))


def _op_obj(m: Machine, _: Any) -> None:
    args = m.to_mark()
    _call(m, args[0], tuple(args[1:]))


def _op_setitem(m: Machine, _: Any) -> None:
    value = m.stack.pop()
    key = m.stack.pop()
    _setitems(m, [key, value])


def _op_tuple_n(n: int) -> Any:
    def step(m: Machine, _: Any) -> None:
        if len(m.stack) < n:
            raise ValueError("stack too short")
        values = tuple(m.stack[-n:])
        del m.stack[-n:]
        m.stack.append(values)

    return step


def _put(m: Machine, arg: Any) -> None:
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
