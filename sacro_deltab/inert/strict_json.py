"""JSON as the viewer and every receiver must be able to read it: one meaning, bounded, finite."""

from __future__ import annotations

import json
import math
import re
from array import array
from typing import Any

from ..base.errors import UnreadableError
from .content import ArrayInfo, Content, Item, Remark
from .limits import DEFAULT, Deadline, Limits
from .tabular import decode_text, number

_STEP = "Write it with the package's own export; nothing else needs such JSON."


def load_strict(data: bytes, name: str, limits: Limits = DEFAULT) -> Any:
    """Parse JSON strictly.

    Raises
    ------
    UnreadableError
        Duplicate keys, NaN or Infinity, integers over 18 digits, numbers beyond a double, nesting over
        `limits.json_depth`, too many items, not UTF-8, a byte-order mark, anything after the value.
    """
    if len(data) > limits.json_bytes or data.count(b",") + data.count(b"[") + data.count(b"{") > limits.json_items:
        raise UnreadableError("it is larger than any output needs", path=name, next_step=_STEP)
    if data.startswith(b"\xef\xbb\xbf"):
        raise UnreadableError("it starts with a byte-order mark", path=name, next_step=_STEP)
    text = decode_text(data, name, limits)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) != len(items):
            raise UnreadableError("a key stands twice in one object", path=name, next_step=_STEP)
        return out

    def integer(literal: str) -> int:
        if len(literal) > limits.int_digits:
            raise UnreadableError("it holds an integer of more than 18 digits", path=name, next_step=_STEP)
        return int(literal)

    def real(literal: str) -> float:
        value = float(literal) if len(literal) < 400 else math.inf
        if not math.isfinite(value):
            raise UnreadableError("it holds a number that is not finite", path=name, next_step=_STEP)
        return value

    def constant(_: str) -> Any:
        raise UnreadableError("it holds NaN or Infinity, which are not JSON", path=name, next_step=_STEP)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_int=integer, parse_float=real, parse_constant=constant)
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError("it is nested too deeply", path=name, next_step=_STEP) from None
    except json.JSONDecodeError as error:
        raise UnreadableError(
            f"it is not JSON ({error.msg})", path=name, place=f"line {error.lineno}", next_step=_STEP
        ) from None
    except ValueError as error:
        raise UnreadableError(f"it is not JSON ({type(error).__name__})", path=name, next_step=_STEP) from None
    _check_depth(value, name, limits)
    return value


def _check_depth(value: Any, name: str, limits: Limits) -> None:
    pending = [(value, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > limits.json_depth:
            raise UnreadableError("it is nested too deeply", path=name, next_step=_STEP)
        if isinstance(node, dict):
            pending.extend((v, depth + 1) for v in node.values() if isinstance(v, dict | list))
        elif isinstance(node, list):
            pending.extend((v, depth + 1) for v in node if isinstance(v, dict | list))


_OPAQUE = re.compile(r"[A-Za-z0-9+/_=-]{64,}\Z")


def read_json(data: bytes, name: str, limits: Limits = DEFAULT) -> Content:
    """JSON with the arrays found in it: lists of numbers, lists of equal lists, numbers written as strings."""
    value = load_strict(data, name, limits)
    walk = _Walk(Deadline(limits.seconds, name))
    walk.run(value)
    return Content(
        "json",
        tuple(walk.arrays),
        tuple(walk.items[:5_000]),
        scalars=walk.scalars,
        strings=tuple(walk.strings[:20_000]),
        remarks=tuple(walk.remarks),
        data=value,
    )


class _Walk:
    def __init__(self, deadline: Deadline) -> None:
        self.arrays: list[ArrayInfo] = []
        self.items: list[Item] = []
        self.scalars: dict[str, float] = {}
        self.strings: list[tuple[str, str]] = []
        self.remarks: list[Remark] = []
        self._deadline = deadline

    def run(self, value: Any) -> None:
        pending: list[tuple[Any, str]] = [(value, "")]
        while pending:
            self._deadline.check()
            node, place = pending.pop()
            if isinstance(node, dict):
                self._object(node, place, pending)
            elif isinstance(node, list):
                self._list(node, place, pending)
            else:
                self._leaf(node, place)

    def _object(self, node: dict[str, Any], place: str, pending: list[tuple[Any, str]]) -> None:
        self.items.append(Item(place or "object", "object", (len(node),)))
        numbers = [v for v in node.values() if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) == len(node) and len(node) >= 20:  # {"sub-001": 3.2, ...}: a vector with its keys
            self.arrays.append(ArrayInfo(place or "object", (len(node),), "float64", array("d", numbers)))
            self.strings.extend((place, str(k)[:200]) for k in list(node)[:200])
            return
        for key, child in node.items():
            if not isinstance(child, dict | list) and number(str(key)) is not None and len(str(key)) > 6:
                self.strings.append((place, str(key)[:200]))
            pending.append((child, f"{place}.{str(key)[:80]}" if place else str(key)[:80]))

    def _list(self, node: list[Any], place: str, pending: list[tuple[Any, str]]) -> None:
        self.items.append(Item(place or "list", "list", (len(node),)))
        flat = _numbers(node)
        if flat is not None:
            values, as_text = flat
            if len(node) > 1:
                self.arrays.append(ArrayInfo(place or "list", (len(node),), "float64", values, as_text=as_text))
            return
        if node and all(isinstance(row, list) for row in node):
            self._matrix(node, place)
            if all(_numbers(row) is not None for row in node):
                return
        elif node and all(isinstance(row, dict) for row in node) and len(node) > 1:
            self._records(node, place)
        pending.extend((child, f"{place}[{i}]") for i, child in enumerate(node) if len(self.items) < 20_000)

    def _matrix(self, node: list[list[Any]], place: str) -> None:
        width = len(node[0])
        if width == 0 or any(len(row) != width for row in node):
            return
        columns: list[array[float]] = []
        for index in range(min(width, 2_000)):
            found = _numbers([row[index] for row in node])
            if found is not None:
                columns.append(found[0])
                self.arrays.append(ArrayInfo(f"{place}[column {index}]", (len(node),), "float64", found[0], found[1]))
        complete = len(columns) == width and all(len(column) == len(node) for column in columns)
        if complete and width > 1 and width * len(node) <= 1_000_000:
            values = array("d", bytes(8 * width * len(node)))
            for index, column in enumerate(columns):
                values[index::width] = column
            self.arrays.append(ArrayInfo(place or "matrix", (len(node), width), "float64", values))

    def _records(self, node: list[dict[str, Any]], place: str) -> None:
        for key in list(node[0])[:500]:
            found = _numbers([row.get(key) for row in node])
            if found is not None:
                self.arrays.append(ArrayInfo(f"{place}.{key}"[:160], (len(node),), "float64", found[0], found[1]))

    def _leaf(self, node: Any, place: str) -> None:
        if isinstance(node, bool) or node is None:
            return
        if isinstance(node, int | float):
            if len(self.scalars) < 50_000:
                self.scalars[place] = float(node)
        elif isinstance(node, str):
            self.strings.append((place, node[:2_000]))
            if _OPAQUE.match(node) and not re.fullmatch(r"[0-9a-f]{64}", node):
                self.remarks.append(
                    Remark("opaque", f"{place or 'a value'} is a long coded string.", "It holds a long coded string.")
                )
            elif len(node) > 60:
                packed = re.split(r"[,;\s|]+", node.strip())
                found = _numbers(packed) if len(packed) >= 20 else None
                if found is not None:
                    self.arrays.append(ArrayInfo(place, (len(packed),), "text", found[0], True))


def _numbers(node: list[Any]) -> tuple[array[float], bool] | None:
    """All elements as numbers (None counts as missing), and whether any was written as text."""
    out = array("d")
    as_text = False
    for item in node:
        if isinstance(item, bool):
            return None
        if isinstance(item, int | float):
            out.append(float(item))
        elif isinstance(item, str):
            value = number(item)
            if value is None:
                if item.strip() in ("*", "") and len(node) > 1:
                    continue
                return None
            as_text = True
            out.append(value)
        elif item is None:
            continue
        else:
            return None
    return (out, as_text) if out else None
