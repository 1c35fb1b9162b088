"""Workbooks by openpyxl: sheets and their states, hidden rows and columns, comments, formulas, caches, links."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lxml import etree
from openpyxl import load_workbook
from openpyxl.utils import get_column_letter

from ..archives import read_members
from .found import Found

_STATES = {"hidden": "hidden", "veryHidden": "veryHidden (no menu shows it)"}
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"


def read(data: bytes, found: Found, within: str) -> list[tuple[str, bytes]]:
    """A workbook; the files embedded in it are handed back."""
    members = {member.name: member.data for member in read_members(io.BytesIO(data), "workbook")}
    shown = load_workbook(io.BytesIO(data), data_only=True)
    written = load_workbook(io.BytesIO(data))
    for sheet in shown.worksheets:
        _sheet(sheet, written[sheet.title], found, within)
    for name in shown.chartsheets:
        if name.sheet_state != "visible":
            found.part("hidden", f"{within}Chart sheet {name.title!r} is {_STATES[name.sheet_state]}.")
    for name, defined in written.defined_names.items():
        if defined.hidden:
            found.part("hidden", f"{within}The defined name {name!r} is hidden.")
    _members(members, found, within)
    return [(within + name, blob) for name, blob in members.items() if "/embeddings/" in name]


def _sheet(sheet: Any, written: Any, found: Found, within: str) -> None:
    place = f"{within}sheet {sheet.title!r}"
    state = _STATES.get(sheet.sheet_state)
    grid = {at: cell.value for at, cell in sheet._cells.items() if cell.value is not None}  # as sparse as the file
    rows = sorted({row for row, _ in grid})
    found.items.append(f"{place}{f' ({state})' if state else ''}: {len(rows)} rows")
    if state:
        found.part("hidden", f"{place} is {state}: {len(rows)} rows with values.")
    hidden = {i for i, d in sheet.row_dimensions.items() if d.hidden or d.height == 0}
    if out := [i for i in rows if i in hidden]:
        found.part("hidden", f"{place} hides row{'s' * (len(out) > 1)} {_spans(out)}, which hold values.")
    unseen = [d for d in sheet.column_dimensions.values() if d.hidden or (d.customWidth and d.width == 0)]
    columns = {j for _, j in grid if any((d.min or 1) <= j <= (d.max or d.min or 1) for d in unseen)}
    if gone := [get_column_letter(j) for j in sorted(columns)]:
        found.part("hidden", f"{place} hides column{'s' * (len(gone) > 1)} {', '.join(gone)}, which hold values.")
    _cells(written, place, found)
    for at, block in _blocks(grid):
        found.table(f"{place} {at}", block)


def _cells(sheet: Any, place: str, found: Found) -> None:
    formulas: list[str] = []
    unseen: list[str] = []
    for _, cell in sorted(sheet._cells.items()):
        if cell.comment is not None:
            found.part("comment", f"{place} cell {cell.coordinate} has a comment.")
            found.text(f"{place} cell {cell.coordinate}, comment", str(cell.comment.text))
        if cell.data_type == "f":
            formulas.append(cell.coordinate)
        if cell.value is not None and (cell.number_format == ";;;" or _white(cell)):
            unseen.append(cell.coordinate)
    if formulas:
        found.part("formula", f"{place} has {len(formulas)} formulas, the first in {formulas[0]}.")
    if unseen:
        found.part("hidden", f"{place} has {len(unseen)} cells that show nothing (format or white font): {unseen[0]}.")


def _white(cell: Any) -> bool:
    colour = cell.font.color.rgb if cell.font is not None and cell.font.color is not None else None
    return isinstance(colour, str) and colour[-6:].upper() == "FFFFFF" and cell.fill.fill_type is None


def _spans(numbers: Sequence[int]) -> str:
    """`3-5, 9`."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in _runs(numbers))


def _blocks(grid: Mapping[tuple[int, int], object]) -> Iterator[tuple[str, list[list[object]]]]:
    """Tables that empty rows or empty columns keep apart, with their ranges."""
    by_row: dict[int, dict[int, object]] = {}
    for (i, j), value in sorted(grid.items()):
        by_row.setdefault(i, {})[j] = value
    for top, bottom in _runs(sorted(by_row)):
        part = [by_row[i] for i in range(top, bottom + 1)]
        for left, right in _runs(sorted({j for row in part for j in row})):
            block = [[row.get(j) for j in range(left, right + 1)] for row in part]
            yield f"{get_column_letter(left)}{top}:{get_column_letter(right)}{bottom}", block


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """First and last of numbers without a gap."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return runs


def _members(members: dict[str, bytes], found: Found, within: str) -> None:
    for name, data in members.items():
        place = f"{within}{name}"
        if "/pivotCache/pivotCacheDefinition" in name and name.endswith(".xml"):
            _pivot(place, data, members.get(name.replace("Definition", "Records"), b""), found)
        elif "/externalLinks/" in name and name.endswith(".xml"):
            cells = sum(1 for _ in _tree(data).iter(f"{_MAIN}cell"))
            found.part("attached", f"{place} is a link to another workbook that keeps {cells} of its cells.")
        elif "/charts/chart" in name and name.endswith(".xml"):
            points = sum(1 for _ in _tree(data).iter(f"{_CHART}pt"))
            if points:
                found.part("attached", f"{place} is a chart that keeps {points} of the values it was drawn from.")
        elif name.endswith(("vbaProject.bin", "connections.xml")) or "/threadedComments/" in name:
            found.part("comment" if "Comments" in name else "attached", f"{place} stands in the workbook.")


def _tree(data: bytes) -> Any:
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def _pivot(place: str, definition: bytes, records: bytes, found: Found) -> None:
    """A pivot cache keeps the rows that the table was made of, whatever the sheets show."""
    fields = list(_tree(definition).iter(f"{_MAIN}cacheField"))
    shared = [[item.get("v") for item in f.iterfind(f"{_MAIN}sharedItems/*")] for f in fields]
    rows: list[list[object]] = [[f.get("name") for f in fields]]
    for record in _tree(records).iterfind(f"{_MAIN}r") if records else ():
        cells = list(record)
        rows.append(
            [
                shared[j][int(c.get("v"))] if c.tag == f"{_MAIN}x" and int(c.get("v")) < len(shared[j]) else c.get("v")
                for j, c in enumerate(cells[: len(fields)])
            ]
        )
    names = ", ".join(str(name) for name in rows[0])
    found.part("attached", f"{place} is a pivot cache: it keeps {len(rows) - 1} source rows of {names}.")
    found.table(f"{place} (pivot cache)", rows)
