"""Records of ours in a live ACRO: validated first, then added under the output's own name.

`validate_draft` refuses everything that breaks the viewer, an ACRO `finalise`, or the rule that nothing but judged
numbers leaves; only then does `add_record` pass it on, by keyword.

Each output is one record of type `custom` with its CSV and its JSON: the one output type for which ACRO 1.0.2
copies named files, and all files of a record share one `sdc.cells`, which the viewer paints on CSV files only.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import InputError
from ..base.names import RESERVED
from ..base.strict import DATA, parse
from ..base.verdicts import VERDICTS
from ..build.record import CELL_CHECK
from ..outputs import is_mark

_FILE = re.compile(r"^[a-z0-9][a-z0-9_-]{0,79}\.(csv|json|png)$")
_ACRO_FILE = re.compile(r"^output_\d+(_\d+)?\.csv$")
_NUMBER = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$")
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Draft:
    """One record before it is handed to ACRO: plain JSON types and paths of files that exist."""

    name: str
    status: str
    summary: str
    properties: Mapping[str, Any]
    files: tuple[Path, ...]
    sdc: Mapping[str, Any] = field(default_factory=dict)
    fair: Mapping[str, Any] = field(default_factory=dict)
    command: str = "sacro_deltab"
    comments: tuple[str, ...] = ()


def draft_of(record: Mapping[str, Any], folder: Path) -> Draft:
    """A built record as a draft, its files in `folder`."""
    return Draft(
        name=str(record["uid"]),
        status=str(record["status"]),
        summary=str(record["summary"]),
        properties=record["properties"],
        files=tuple(folder / str(file["name"]) for file in record["files"]),
        sdc=record["files"][0]["sdc"] if record["files"] else {},
        fair=record["fair"],
        command=str(record["command"]),
        comments=tuple(record["comments"]),
    )


def validate_draft(draft: Draft, *, taken: Iterable[str] = ()) -> None:
    """Refuse a record that would break the viewer, ACRO or the disclosure of nothing but the judged numbers.

    Parameters
    ----------
    draft
        The record.
    taken
        File names already used in the session, in any case.

    Raises
    ------
    InputError
        Naming the record, the field and what is wrong with it.
    """

    def fail(place: str, what: str) -> None:
        raise InputError(f"record {draft.name!r}: {what}", place=place, next_step="Nothing was recorded.")

    if draft.status not in VERDICTS:
        fail("status", "the status must be pass, review or fail")
    if not draft.summary.startswith(draft.status + "; "):
        fail("summary", "the summary must start with the status and '; '")
    for place, value in (
        ("properties", draft.properties),
        ("sdc", draft.sdc),
        ("fair", draft.fair),
        ("summary", draft.summary),
        ("command", draft.command),
        ("comments", list(draft.comments)),
    ):
        problem = _plain_problem(value)
        if problem:
            fail(place, problem)
    if not draft.files:
        fail("files", "a record needs at least one file")
    used = {name.lower() for name in taken}
    for path in draft.files:
        name = path.name
        if not _FILE.match(name) or name.lower().rpartition(".")[0] in RESERVED or _ACRO_FILE.match(name):
            fail("files", f"{name!r} is not a safe file name, or belongs to ACRO or the viewer")
        if name.lower() in used:
            fail("files", f"the session already has a file called {name!r}")
        used.add(name.lower())
        problem = file_problem(path)
        if problem:
            fail(name, problem)
    _check_cells(draft, fail)


def file_problem(path: Path) -> str | None:
    """Why a file may not stand in a record, or None."""
    try:
        body = path.read_bytes()
    except OSError:
        return "the file cannot be read"
    if not body:
        return "the file is empty"
    if path.suffix == ".png":
        return None if body.startswith(_PNG) else "the file is not a PNG image"
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return "the file is not UTF-8"
    if "<" in text:
        return "the file holds '<', which the viewer takes for markup"
    return _json_problem(text) if path.suffix == ".json" else _csv_problem(text)


def add_record(acro: Any, draft: Draft) -> None:
    """Hand a validated draft to ACRO, under the output's own name. The one place that calls `Records.add`."""
    results = acro.results
    if draft.name in results.results:
        raise InputError(
            f"ACRO has an output called {draft.name!r} already",
            next_step="Rename that one with acro.rename_output, or give another name=.",
        )
    before = f"output_{results.output_id}"
    results.add(
        status=draft.status,
        output_type="custom",
        properties=parse(json.dumps(draft.properties)),
        sdc=parse(json.dumps(draft.sdc)),
        fair=parse(json.dumps(draft.fair)),
        command=draft.command,
        summary=draft.summary,
        output=[str(path) for path in draft.files],
        comments=list(draft.comments),
    )
    made = results.results.pop(before)
    made.uid = draft.name
    results.results[draft.name] = made


def _plain_problem(value: Any, depth: int = 0) -> str | None:
    if depth > 8:
        return "it is nested too deep"
    kind = type(value)
    if value is None or kind in (bool, int):
        return None
    if kind is float:
        return None if math.isfinite(value) else "a number is not finite"
    if kind is str:
        if "<" in value:
            return "a text holds '<', which the viewer takes for markup"
        return "a text holds a control character" if any(ord(c) < 32 or ord(c) == 127 for c in value) else None
    if isinstance(value, Mapping):
        if any(type(key) is not str for key in value):
            return "a key is not text"
        return next(filter(None, (_plain_problem(v, depth + 1) for kv in value.items() for v in kv)), None)
    if kind is list:
        return next(filter(None, (_plain_problem(item, depth + 1) for item in value)), None)
    return f"a value has the type {kind.__name__}, which is not plain JSON"


def _json_problem(text: str) -> str | None:
    try:
        data = parse(text, bounds=DATA)
    except InputError:
        return "the file is not strict JSON"
    if not isinstance(data, dict):
        return "the file's JSON is not an object"
    if "version" in data and "results" in data:
        return "the viewer would take the file for ACRO's own results"
    return None


def _csv_problem(text: str) -> str | None:
    rows = list(csv.reader(io.StringIO(text), strict=True))
    if len(rows) < 2 or not rows[0]:
        return "the table has no rows"
    head = rows[0]
    if len(set(head)) != len(head) or any(not cell for cell in head):
        return "two columns have the same name, or one has none"
    if any(len(row) != len(head) for row in rows):
        return "a row has another number of cells than the header"
    labels = [row[0] for row in rows[1:]]
    if len(set(labels)) != len(labels):
        return "two rows have the same name"
    for row in rows:
        for cell in row:
            if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not _NUMBER.match(cell):
                return "a cell starts like a spreadsheet formula"
            if cell.lower() in ("nan", "inf", "-inf", "infinity"):
                return "a cell is not a finite number"
    return None


def _check_cells(draft: Draft, fail: Any) -> None:
    cells = draft.sdc.get("cells", {})
    if not cells:
        return
    table = next((path for path in draft.files if path.suffix == ".csv"), None)
    if table is None or set(cells) != {CELL_CHECK}:
        fail("sdc", "marked cells need a table, and one check key for all of them")
        return
    rows = list(csv.reader(io.StringIO(table.read_text(encoding="utf-8"))))[1:]
    for place in cells[CELL_CHECK]:
        if len(place) != 2 or not (0 <= place[0] < len(rows) and 0 <= place[1] < len(rows[0]) - 1):
            fail("sdc", "a marked cell lies outside the table")
        elif not is_mark(rows[place[0]][place[1] + 1]):
            fail("sdc", "a marked cell shows a number")
