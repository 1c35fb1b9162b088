"""Reading delimited text without trusting it: encoding, separator, header, decimal mark, ragged lines.

Numbers are converted while reading; text is fetched by a second pass over the columns that need it, so a wide table
of numbers never exists as a million strings. No cell ever appears in a message: a line and a column do.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError, UnreadableError
from ..base.opening import GIB, read_file
from .table import Column, Table, column_label, is_missing

Array = npt.NDArray[np.float64]
Header = Literal["auto", "yes", "no"]
Decimal = Literal["auto", ".", ","]

_BATCH = 64
LONGEST_VALUE = 100_000  # characters; the csv module's own limit is a setting of the whole process
_MAGIC = {
    b"\x1f\x8b": "gzip-compressed",
    b"PK\x03\x04": "a zip or Excel file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file",
    b"FEA1": "a Feather file",
    b"ARROW1": "a Feather or Arrow file",
    b"\x93NUMPY": "a numpy file",
    b"\x89HDF": "an HDF5 file",
}
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?\Z")
_SPACED_NUMBERS = re.compile(r"[\d.,eE+-]+(?:\s+[\d.,eE+-]+)+\Z")

MOST_BYTES = 16 * GIB  # 100,000 people with 10,000 features


def read_text_table(
    path: Path, *, delimiter: str | None = None, header: Header = "auto", decimal: Decimal = "auto"
) -> Table:
    """Read one delimited text file (CSV, TSV, semicolons, whitespace).

    Raises
    ------
    UnreadableError
        Not text, or not UTF-8.
    InputError
        Empty, ragged, no or repeated column names, header in doubt; with file and line.
    """
    text = _decode(path)
    separator = delimiter or _separator(text, path)
    reader = _Reader(path, text, separator, decimal)
    return reader.table(header)


def _decode(path: Path) -> str:
    try:
        raw = read_file(path, limit=MOST_BYTES, seconds=3600.0)
    except UnreadableError as error:
        what = f"The file cannot be used: {error.what}."
        raise InputError(what, path=path, next_step=error.next_step or "Check the path and its permissions.") from None
    if not raw.strip():
        raise InputError("The file is empty.", path=path, next_step="Give a file with one row per person.")
    for magic, kind in _MAGIC.items():
        if raw.startswith(magic):
            raise UnreadableError(
                f"The file is {kind}, not text.", path=path, next_step="Save it as CSV (UTF-8), or unpack it first."
            )
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableError("The file is UTF-16 text.", path=path, next_step="Save it as UTF-8.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UnreadableError(
            "The file is not UTF-8 (it may be Latin-1 or Windows-1252).",
            path=path,
            place=f"line {line}",
            next_step="Save it as UTF-8; for example: iconv -f latin1 -t utf-8 FILE.",
        ) from None
    if "\0" in text:
        raise UnreadableError(
            "The file holds NUL bytes: it is not text.", path=path, next_step="Save it as CSV (UTF-8)."
        )
    return text


def _separator(text: str, path: Path) -> str:
    """Tab, semicolon or comma where the first lines have one outside quotes, else runs of whitespace."""
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    lines = [line for line in islice(_lines(text), 5) if line.strip() and not line.startswith("# ")]
    for sample in ("".join(lines[:1]), "".join(lines)):  # the first line decides, the next ones only if it cannot
        bare = re.sub(r'"[^"]*"', "", sample)
        for mark in "\t;,":
            if mark in bare:
                return mark
    return " "


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends, one at a time; only LF, CR and CRLF end a line."""
    return (match.group() for match in _LINE.finditer(text))


class _Reader:
    def __init__(self, path: Path, text: str, separator: str, decimal: Decimal) -> None:
        self.path, self.text, self.separator, self.decimal = path, text, separator, decimal
        self.commas = self.points = self.clear_commas = False  # decimal marks met so far

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of every line but leading comments; a blank line inside the file is an error."""
        blank: int | None = None
        started = False
        for line, cells in self._raw():
            if not any(cell.strip() for cell in cells) and len(cells) <= 1:
                blank = blank or line
                continue
            if not started and cells[0].startswith("# "):
                continue
            if blank is not None and started:
                raise self._error(
                    "An empty line stands between rows.", blank, "Remove it, or write NA for a missing value."
                )
            blank, started = None, True
            yield line, cells

    def _raw(self) -> Iterator[tuple[int, list[str]]]:
        if self.separator == " ":
            for number, line in enumerate(_lines(self.text), start=1):
                yield number, [c.strip('"') for c in line.split()]
            return
        reader = csv.reader(_lines(self.text), delimiter=self.separator, strict=True)
        start = 1
        try:
            for cells in reader:
                if max(map(len, cells), default=0) > LONGEST_VALUE:
                    raise self._error("A value is thousands of characters long.", start, "Repair the line.")
                yield start, cells
                start = reader.line_num + 1
        except csv.Error as error:
            if "larger than field limit" in str(error):
                raise self._error("A value is thousands of characters long.", start, "Repair the line.") from None
            raise self._error(
                "A quotation mark is never closed, or stands inside a value.", start, "Repair the quoting of this line."
            ) from None

    def _error(
        self, what: str, line: int | None = None, next_step: str | None = None, column: str | None = None
    ) -> InputError:
        place = ", ".join(p for p in (f"line {line}" if line else None, column) if p)
        return InputError(what, path=self.path, place=place or None, next_step=next_step)

    # --- header --------------------------------------------------------------------------------------------------

    def table(self, header: Header) -> Table:
        rows = self.rows()
        first = next(rows, None)
        if first is None:
            raise self._error("The file holds no rows.", next_step="Give a file with one row per person.")
        line, cells = first
        self._spaced(line, cells)
        has_header = self._has_header(cells, line) if header == "auto" else header == "yes"
        names = self._names(cells, line, sure=header == "yes") if has_header else None
        width = len(cells)
        source: Iterator[tuple[int, list[str]]] = rows if has_header else _chain(first, rows)
        columns, lines = self._columns(source, width, names)
        if not lines:
            raise self._error("The file has a header but no rows.", line, "Give a file with one row per person.")
        if header == "auto" and names is None:
            self._doubtful_header(columns, line)
        return Table(
            label=str(self.path), path=self.path, names=names, columns=columns, rows=lines, row_word="line",
            text_of=self.text_columns, decimal_commas=self.commas,
        )  # fmt: skip

    def _spaced(self, line: int, cells: Sequence[str]) -> None:
        if self.separator == "," and any(_SPACED_NUMBERS.match(cell.strip()) for cell in cells):
            raise self._error(
                "Commas and spaces both could separate the numbers (decimal commas?).",
                line,
                "Separate with semicolons or tabs, or write decimal points.",
            )

    def _has_header(self, cells: Sequence[str], line: int) -> bool:
        """A header is a first line with any cell that is no number; one that might be either is an error."""
        numbers = [self._number(c) for c in cells]
        self.commas = self.points = self.clear_commas = False
        words = [c for c, v in zip(cells, numbers, strict=True) if v is None and c.strip()]
        if words:
            return True
        if any(not c.strip() for c in cells) and len(cells) > 1 and not cells[0].strip() and _counts(numbers[1:]):
            raise self._error(
                "The first line looks like a table written with row numbers and numbered columns.",
                line,
                "Write it without row numbers and with column names.",
            )
        return False

    def _doubtful_header(self, columns: Sequence[Column], line: int) -> None:
        """1,2,3,... over rows of measurements is a header of numbers, not a person."""
        if len(columns) < 2 or any(c.values is None for c in columns):
            return
        data = np.column_stack([c.values for c in columns if c.values is not None])
        rest = data[1:]
        measured = bool((rest[np.isfinite(rest)] % 1 != 0).any()) or data.shape[1] > 3
        if rest.size and _counts(list(data[0])) and measured:
            raise self._error(
                "The first line counts 1, 2, 3, ...: it looks like a header of numbers, not a person.",
                line,
                "Give the columns names that are no numbers (in Python: header='yes' or header='no').",
            )

    def _names(self, cells: Sequence[str], line: int, sure: bool) -> tuple[str, ...]:
        names = [c.strip() for c in cells]
        seen: set[str] = set()
        for number, name in enumerate(names, start=1):
            if not name:
                raise self._error(
                    f"Column {number} has no name.", line, "Name it; row numbers of pandas or R are best not written."
                )
            if name in seen:
                raise self._error(
                    f"Column name {column_label(name, number)} stands twice.", line, "Rename one of them."
                )
            seen.add(name)
        if not sure and sum(self._number(n) is not None for n in names) * 2 > len(names) > 1:
            raise self._error(
                "The first line is mostly numbers with some text: header or person?",
                line,
                "Repair the text cell, or give every column a name that is no number (in Python: header='yes').",
            )
        return tuple(names)

    # --- cells ---------------------------------------------------------------------------------------------------

    def _columns(
        self, rows: Iterator[tuple[int, list[str]]], width: int, names: tuple[str, ...] | None
    ) -> tuple[list[Column], list[int]]:
        chunks: list[list[Array]] = [[] for _ in range(width)]
        bad: list[int | None] = [None] * width  # first line that is no number
        good = [0] * width
        wrong = [0] * width
        lines: list[int] = []
        while batch := list(islice(rows, _BATCH)):
            for line, cells in batch:
                if len(cells) != width:
                    raise self._ragged(line, len(cells), width, names)
                lines.append(line)
            for j, column in enumerate(zip(*(cells for _, cells in batch), strict=True)):
                values, first_bad, count = self._convert(column)
                chunks[j].append(values)
                wrong[j] += count
                good[j] += int(np.isfinite(values).sum())
                if first_bad is not None and bad[j] is None:
                    bad[j] = batch[first_bad][0]
        columns = []
        for j in range(width):
            values = np.concatenate(chunks[j]) if chunks[j] else np.empty(0)
            label = names[j] if names else f"column {j + 1}"
            columns.append(
                Column(label, None if bad[j] else values, bad[j], mostly_numbers=bool(bad[j]) and good[j] > wrong[j])
            )
        if self.commas and not self.clear_commas and self.decimal == "auto":
            raise self._error(
                "Commas in the numbers could mark thousands or decimals.",
                next_step="Write decimal points and no thousands marks (in Python: decimal=',').",
            )
        if self.commas and self.points:
            raise self._error(
                "Some numbers have decimal commas and some decimal points.",
                next_step="Write all numbers with decimal points.",
            )
        return columns, lines

    def _ragged(self, line: int, got: int, width: int, names: tuple[str, ...] | None) -> InputError:
        hint = "Check for a missing or doubled separator."
        if names is not None and got == width + 1 and width > 1:
            hint = "A table of R with row names has one name too few: write it with col.names=NA or without row names."
        return self._error(f"The line has {got} values, the first line {width}.", line, hint)

    def _convert(self, column: Sequence[str]) -> tuple[Array, int | None, int]:
        """Numbers of one column's cells, the index of the first cell that is none, and how many are none."""
        try:
            joined = "\n".join(column)
            if self.decimal != "," and "_" not in joined:
                values = np.fromiter(map(float, column), dtype=np.float64, count=len(column))
                self.points = self.points or "." in joined
                return values, None, 0
        except ValueError:
            pass
        out = np.full(len(column), np.nan)
        first, count = None, 0
        for i, cell in enumerate(column):
            value = self._number(cell)
            if value is not None:
                out[i] = value
            elif not is_missing(cell):
                first = i if first is None else first
                count += 1
        return out, first, count

    def _number(self, cell: str) -> float | None:
        """The cell as a number, or None (also for a missing value)."""
        text = cell.strip()
        if is_missing(text) or "_" in text:
            return None
        if self.separator != "," and self.decimal != "." and _COMMA_NUMBER.match(text):
            self.commas = True
            if len(re.split("[,eE]", text)[1]) != 3:
                self.clear_commas = True  # 1,234 alone could be one thousand two hundred and thirty-four
            return float(text.replace(",", "."))
        try:
            value = float(text)
        except ValueError:
            return None
        self.points = self.points or "." in text
        return value

    def text_columns(self, wanted: Sequence[int], skip: int) -> list[list[str | None]]:
        """Cells of some columns as text (None where missing); `skip` header rows are left out."""
        out: list[list[str | None]] = [[] for _ in wanted]
        for _, cells in islice(self.rows(), skip, None):
            for store, j in zip(out, wanted, strict=True):
                text = cells[j].strip()
                store.append(None if is_missing(text) else text)
        return out


def _counts(numbers: Sequence[float | None]) -> bool:
    """True for 0, 1, 2, ... or 1, 2, 3, ... (two at least)."""
    start = numbers[0] if numbers else None
    return len(numbers) > 1 and start in (0, 1) and all(v == start + i for i, v in enumerate(numbers))


def _chain(first: tuple[int, list[str]], rest: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rest
