"""CSV, TSV and whitespace text, read strictly: every cell counted, nothing guessed away."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from array import array
from collections.abc import Iterator

from ..base.errors import UnreadableError
from ..base.findings import Effect, Finding, note
from .content import ArrayInfo, Column, Content, Item, TableData
from .limits import DEFAULT, Deadline, Limits

_STEP = "Write one flat table: UTF-8, commas, one header row, the label column first."
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?\Z")
MISSING = frozenset({"", "na", "nan", "null", "none", "n/a", "."})
MARKS = frozenset({"*", "<20"})
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)


KEEP_CELLS = 200_000
_CELL = 1 << 20  # characters


def number(text: str) -> float | None:
    """Value of a cell that is a number in any digits or notation a reader may use, else None.

    Wider than what an honest output holds on purpose: full-width digits, thousands commas, percent signs and
    decimal commas are numbers to whoever receives them.
    """
    text = text.strip()
    if not text or len(text) > 400:
        return None
    if _NUMBER.match(text):
        value = float(text)
        return value if math.isfinite(value) else None
    cleaned = text.rstrip("%").replace("\u2212", "-").replace("\u00a0", "").replace(" ", "").replace("'", "")
    if cleaned.count(",") == 1 and "." not in cleaned:
        cleaned = cleaned.replace(",", ".")
    cleaned = cleaned.replace(",", "").replace("_", "")
    try:
        value = float(cleaned)
    except ValueError:
        return _hex(cleaned)
    return value if math.isfinite(value) else None


def _hex(text: str) -> float | None:
    if text.lower().startswith(("0x", "-0x")) and len(text) < 60:
        try:
            return float.fromhex(text)
        except (ValueError, OverflowError):
            return None
    return None


def decode_text(data: bytes, name: str, limits: Limits = DEFAULT) -> str:
    """UTF-8 text, without a byte-order mark.

    Raises
    ------
    UnreadableError
        Another encoding, NUL bytes, or too large.
    """
    if len(data) > limits.text_bytes:
        raise UnreadableError("it is more text than any output needs", path=name, next_step=_STEP)
    if b"\x00" in data:
        raise UnreadableError("it holds NUL bytes", path=name, next_step=_STEP)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError("it is not UTF-8", path=name, place=f"byte {error.start}", next_step=_STEP) from None


def guess_delimiter(lines: list[str]) -> str:
    """Tab, comma, semicolon, pipe or whitespace: the one that splits the first lines evenly."""
    best, score = " ", 0
    sample = [line for line in lines[:20] if line.strip()]
    for mark in ("\t", ",", ";", "|"):
        counts = [line.count(mark) for line in sample]
        if counts and min(counts) > 0 and min(counts) > score:
            best, score = mark, min(counts)
    if score == 0 and any("," in line for line in sample):
        return ","
    return best


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    if delimiter == " ":
        return (line.split() for line in _lines(text))
    return csv.reader(_lines(text), delimiter=delimiter)


def _lines(text: str) -> Iterator[str]:
    """One line after another, never all at once: a list of ten million lines is most of a gigabyte."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[at:end]
        at = end + 1


def read_table(data: bytes, name: str, limits: Limits = DEFAULT) -> Content:
    """Read delimited text.

    Raises
    ------
    UnreadableError
        Not UTF-8, too many columns or cells, lines without end, broken quoting.
    """
    text = decode_text(data, name, limits)
    remarks = list(_text_remarks(text, data))
    comments = [line for line in text.split("\n", 50_000)[:50_000] if line.lstrip().startswith("#")]
    if comments:
        remarks.append(
            note(
                "comment",
                Effect.BLOCK,
                f"{len(comments)} comment lines; text there is not judged.",
                outside="It has comment lines.",
            )
        )
    end = text.find("\n")
    first = text[: min(end, limits.line_bytes) if end >= 0 else limits.line_bytes]
    if max(first.count(","), first.count("\t"), first.count(";"), first.count(" ")) > limits.columns * 4:
        raise UnreadableError("it has more columns than any output needs", path=name, next_step=_STEP)
    delimiter = guess_delimiter(text[:400_000].splitlines()[:20])
    try:
        with _long_cells():
            table = collect(_rows(text, delimiter), delimiter, name, limits)
    except csv.Error as error:
        raise UnreadableError(f"it is not a readable table ({error})", path=name, next_step=_STEP) from None
    return _content(table, remarks)


def _text_remarks(text: str, data: bytes) -> Iterator[Finding]:
    if data.startswith(b"\xef\xbb\xbf"):
        yield note(
            "byte-order-mark",
            Effect.BLOCK,
            "It starts with a byte-order mark.",
            outside="It starts with a byte-order mark.",
        )
    if _INVISIBLE.search(text[1:] if data.startswith(b"\xef\xbb\xbf") else text):
        yield note(
            "invisible", Effect.BLOCK, "It holds invisible characters.", outside="It holds invisible characters."
        )
    if not text.isascii() and any(c.isdigit() and not c.isascii() for c in text):
        yield note("digits", Effect.BLOCK, "It holds digits outside 0-9.", outside="It holds digits outside 0-9.")
    if re.search(r"[ \t]+(?:\r?\n|\Z)", text):
        yield note(
            "trailing-space", Effect.BLOCK, "Lines end in spaces or tabs.", outside="Lines end in spaces or tabs."
        )
    if re.search(r"<[!/a-zA-Z]", text):
        yield note(
            "markup", Effect.BLOCK, "It holds markup; the viewer hides what stands inside.", outside="It holds markup."
        )
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text):
        yield note("control", Effect.BLOCK, "It holds control characters.", outside="It holds control characters.")


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """The csv module's limit on a cell is one for the whole process: raised for this reading only."""
    before = csv.field_size_limit(_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def collect(rows: Iterator[list[str]], delimiter: str, name: str, limits: Limits) -> TableData:
    """Rows of cells as a table, within limits."""
    deadline = Deadline(limits.seconds, name)
    header: tuple[str, ...] | None = None
    columns: list[Column] = []
    kept: list[tuple[str, ...]] = []
    cells = n_rows = 0
    for index, row in enumerate(rows):
        if index % 1024 == 0:
            deadline.check()
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if len(row) > limits.columns:
            raise UnreadableError("it has more columns than any output needs", path=name, next_step=_STEP)
        cells += len(row)
        if cells > limits.cells:
            raise UnreadableError("it has more cells than any output needs", path=name, next_step=_STEP)
        if not columns:
            if _is_header(row):
                header = tuple(row)
                columns = [Column(cell.strip()) for cell in row]
                continue
            columns = [Column(f"column {i + 1}") for i in range(len(row))]
        n_rows += 1
        if cells <= KEEP_CELLS:
            kept.append(tuple(row))
        while len(columns) < len(row):
            columns.append(Column(f"column {len(columns) + 1} (beyond the header)"))
        for column, cell in zip(columns, row, strict=False):
            _put(column, cell)
    return TableData(delimiter, header, tuple(columns), n_rows, tuple(kept) if cells <= KEEP_CELLS else ())


def _is_header(row: list[str]) -> bool:
    return not any(number(cell) is not None for cell in row) or (
        number(row[0]) is None
        and len(set(row)) == len(row) > 1
        and sum(number(c) is not None for c in row) * 2 < len(row)
    )


def _put(column: Column, cell: str) -> None:
    if len(cell) > 400 or not cell:
        value = None
    elif _NUMBER.match(cell):
        column.numbers.append(float(cell))
        return
    else:
        value = number(cell)
    if value is not None:
        column.numbers.append(value)
        return
    stripped = cell.strip()
    if stripped in MARKS:
        return
    if stripped.lower() in MISSING:
        column.n_missing += 1
    else:
        column.is_text = True
        if len(column.texts) < 50_000:
            column.texts.append(cell)


def _content(table: TableData, remarks: list[Finding]) -> Content:
    arrays, items = [], []
    numeric = [c for c in table.columns if len(c.numbers) >= 1]
    for column in table.columns:
        kind = "text" if column.is_text and not column.numbers else "mixed" if column.is_text else "numbers"
        items.append(Item(column.name[:120], kind, (table.n_rows,)))
    for column in numeric[:5_000]:
        arrays.append(
            ArrayInfo(
                column.name[:120], (len(column.numbers),), "text", column.numbers, has_missing=column.n_missing > 0
            )
        )
    complete = [c for c in numeric if len(c.numbers) == table.n_rows]
    if len(complete) >= 2:
        width = len(complete)
        values = None
        if width * table.n_rows <= 1_000_000:
            values = array("d", bytes(8 * width * table.n_rows))
            for i, column in enumerate(complete):
                values[i::width] = column.numbers
        arrays.append(ArrayInfo("table", (table.n_rows, width), "text", values))
    for row in table.rows[:2_000]:
        if len(complete) == len(table.columns) and len(row) >= 20 and table.n_rows < 20:
            cells = [number(cell) for cell in row]
            if all(c is not None for c in cells):
                arrays.append(ArrayInfo("row", (len(row),), "text", array("d", [c for c in cells if c is not None])))
    strings = [(c.name[:120], text[:2_000]) for c in table.columns for text in c.texts[:2_000]][:20_000]
    return Content("table", tuple(arrays), tuple(items), strings=tuple(strings), remarks=tuple(remarks), data=table)
