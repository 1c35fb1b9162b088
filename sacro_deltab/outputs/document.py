"""One output as it leaves: a flat table for people (CSV) and the same numbers for machines (JSON)."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base.canonical import narrow_json

Cell = str | int | float | None

MARK = "*"  # says nothing of a cell; a rule set may let it say that fewer than the minimum are in one (D-28)
_MARKS = re.compile(r"\*|below [1-9]\d{0,5}")
SCHEMA_ID = "sacro_deltab/output/1"


def is_mark(cell: object) -> bool:
    """Whether a cell of ours holds the mark of a withheld number; which of the marks the law has is for the judge."""
    return isinstance(cell, str) and _MARKS.fullmatch(cell) is not None


@dataclass(frozen=True)
class Column:
    """A column of the flat table. The first column always names the row (feature, group, parameter).

    role: label (names), n (people), value (statistic). unit: e.g. "years", "people", "" .
    """

    name: str
    role: str
    unit: str = ""


@dataclass(frozen=True, repr=False)
class OutputDocument:
    """What one output says. `about` holds public context only (model, J, mechanism, rule set); never a count
    under a threshold, an input path or a per-subject value."""

    name: str  # file stem: [a-z0-9_-], at most 80
    type: str  # key of the rule set's `vocabulary.outputs`
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        width = len(self.columns)
        for row in self.rows:
            if len(row) != width:
                raise ValueError(f"output {self.name!r}: a row has {len(row)} cells for {width} columns")
        if not all(map(math.isfinite, (c for row in self.rows for c in row if isinstance(c, float)))):
            raise ValueError(f"output {self.name!r}: a value is not finite")

    @property
    def mark(self) -> str:
        """The mark of its withheld rows; empty where there are none."""
        return next((str(cell) for row in self.rows for cell in row[1:] if is_mark(cell)), "")

    def __repr__(self) -> str:
        """No number of it: a document before rounding is shown by accident in notebooks."""
        return f"OutputDocument({self.name!r}, {self.type})"

    def to_data(self) -> dict[str, Any]:
        """The machine form as plain lists and dictionaries."""
        return {
            "schema": SCHEMA_ID,
            "name": self.name,
            "type": self.type,
            "title": self.title,
            "columns": [{"name": c.name, "role": c.role, "unit": c.unit} for c in self.columns],
            "rows": [list(r) for r in self.rows],
            "about": dict(self.about),
        }

    def to_json(self) -> str:
        """Machine form: one pair and one row a line, no line wider than a screen (`narrow_json`)."""
        return narrow_json(self.to_data(), by_line="rows")

    def to_csv(self) -> str:
        """People's form: one header row, first column the label. Line ends are LF."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([c.name for c in self.columns])
        for row in self.rows:
            writer.writerow(["" if cell is None else format_cell(cell) for cell in row])
        return buffer.getvalue()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OutputDocument:
        """Read a machine form that has already passed `schemas/output.schema.json`."""
        return cls(
            name=str(data["name"]),
            type=str(data["type"]),
            title=str(data["title"]),
            columns=tuple(Column(c["name"], c["role"], c.get("unit", "")) for c in data["columns"]),
            rows=tuple(tuple(r) for r in data["rows"]),
            about=dict(data.get("about", {})),
        )


def format_cell(cell: Cell) -> str:
    """Shortest text that reads back as the same number; integers without a point; −0.0 never."""
    if isinstance(cell, bool) or cell is None or isinstance(cell, str):
        return "" if cell is None else str(cell)
    if isinstance(cell, int):
        return str(cell)
    return repr(cell + 0.0 if cell != 0 else 0.0)
