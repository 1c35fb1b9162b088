"""An inert inventory of a pickle: every attribute, type and shape, and nothing is ever run or imported.

A pickle never passes, whatever it holds; the inventory is the reason a checker can read.
"""

from __future__ import annotations

import io
import pickletools
from typing import Any

from ..base.errors import UnreadableError
from ..base.findings import Effect, note
from .buffers import pickled_array, take_joblib_bytes
from .content import ArrayInfo, Content, Item, floats
from .limits import DEFAULT, Deadline, Limits
from .pickle_machine import GlobalName, Machine, Made, step

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
    machine = Machine()
    stream = io.BytesIO(data)
    try:
        end = _follow(machine, stream, name, limits)
    except UnreadableError:
        raise
    except RecursionError:
        raise _bad("nested too deeply", name) from None
    except Exception as error:  # any malformed operation: genops raises ValueError, the stack IndexError
        raise _bad(type(error).__name__, name) from None
    top = machine.stack[-1] if machine.stack else None
    return _inventory(top, machine, trailing=len(data) - end, deadline=Deadline(limits.seconds, name))


def _follow(machine: Machine, stream: io.BytesIO, name: str, limits: Limits) -> int:
    """Every operation up to the last STOP, and the place after it. joblib puts numbers and whole pickles between."""
    deadline = Deadline(limits.seconds, name)
    count = 0
    outer: list[tuple[Made, dict[int, Any]]] = []  # arrays of objects whose own pickle is being read
    while True:
        for op, arg, _ in pickletools.genops(stream):
            count += 1
            if count > limits.pickle_ops:
                raise UnreadableError("it has more pickle operations than any model needs", path=name)
            if count % 256 == 0:
                deadline.check()
            if op.name == "STOP":
                break
            step(machine, op.name, arg)
            if op.name == "BUILD" and take_joblib_bytes(machine.stack[-1], stream):
                outer.append((machine.stack[-1], machine.memo))
                machine.memo = {}
                break
        if op.name != "STOP":
            continue
        if not outer:
            return stream.tell()
        (array, machine.memo), value = outer.pop(), machine.stack.pop()
        array.items.append(value)


def _inventory(top: Any, machine: Machine, *, trailing: int, deadline: Deadline) -> Content:
    walk = _Walk(deadline)
    walk.visit(top, "model")
    remarks = []
    foreign = [g for g in machine.globals if g not in ALLOWED_GLOBALS and not _known_library(g)]
    if foreign:
        shown = ", ".join(foreign[:8])
        remarks.append(
            note(
                "pickle-global",
                Effect.BLOCK,
                f"Opening it would import or call: {shown}.",
                outside=f"Opening it would import or call: {shown}.",
            )
        )
    if machine.strange:
        seen = sorted(set(machine.strange))
        remarks.append(
            note(
                "pickle-persistent",
                Effect.BLOCK,
                f"It uses {', '.join(seen)}.",
                outside="It refers to objects outside itself.",
            )
        )
    if trailing > 0:
        remarks.append(
            note(
                "trailing-bytes",
                Effect.BLOCK,
                f"{trailing} bytes follow the end of the pickle.",
                outside="Bytes follow its end.",
            )
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
            if isinstance(value, dict | list | tuple | Made):
                if id(value) in self._seen:
                    continue
                self._seen.add(id(value))
            pending.extend(reversed(self._one(value, where)))

    def _one(self, value: Any, where: str) -> list[tuple[Any, str]]:
        if isinstance(value, Made):
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
        elif isinstance(value, GlobalName):
            self.items.append(Item(where, value.name))
        return []

    def _sequence(self, value: list[Any] | tuple[Any, ...], where: str) -> list[tuple[Any, str]]:
        self.items.append(Item(where, type(value).__name__, (len(value),)))
        numbers = [v for v in value if isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e300]
        if len(numbers) == len(value) and len(value) > 1:
            self.arrays.append(ArrayInfo(where, (len(value),), "list", floats(numbers)))
            return []
        return [(v, f"{where}[{i}]") for i, v in enumerate(value[:1_000])]

    def _object(self, value: Made, where: str) -> list[tuple[Any, str]]:
        info = pickled_array(value, where)
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
