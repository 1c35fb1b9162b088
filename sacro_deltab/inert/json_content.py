"""What stands in a JSON file: the arrays, numbers and texts in it, wherever they are."""

from __future__ import annotations

import re
from array import array
from typing import Any

from ..base.findings import Effect, Finding, note
from ..base.strict import parse
from .content import ArrayInfo, Content, Item
from .limits import DEFAULT, Deadline, Limits
from .tabular import number

_OPAQUE = re.compile(r"[A-Za-z0-9+/_=-]{64,}\Z")


def read_json(data: bytes, name: str, limits: Limits = DEFAULT) -> Content:
    """JSON with the arrays found in it: lists of numbers, lists of equal lists, numbers written as strings."""
    value = parse(data, path=name, bounds=limits.json)
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
        self.remarks: list[Finding] = []
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
                    note(
                        "opaque",
                        Effect.BLOCK,
                        f"{place or 'a value'} is a long coded string.",
                        outside="It holds a long coded string.",
                    )
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
