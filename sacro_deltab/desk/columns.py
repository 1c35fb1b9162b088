"""What each column of a CSV holds, as output checkers ask for it: type, missing, marked, range, sum, rounding."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from ..outputs import is_mark

MAX_BYTES = 16 * 1024 * 1024  # the airlock limit of OpenSAFELY; larger tables are named, not read


@dataclass(frozen=True)
class ColumnSummary:
    """One column. `smallest`, `largest` and `total` are of the published numbers; '' where there are none."""

    name: str
    kind: str
    rows: int
    missing: int
    marked: int
    smallest: str
    largest: str
    total: str
    rounding: str


@dataclass(frozen=True)
class Table:
    """A CSV as it would leave."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def read_table(path: Path) -> Table | None:
    """The CSV at `path`, or None where it is too large, not UTF-8 or not a flat table."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        text = path.read_text(encoding="utf-8")
        rows = [tuple(row) for row in csv.reader(io.StringIO(text))]
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return None
    return Table(rows[0], tuple(rows[1:]))


def summarise(table: Table) -> tuple[ColumnSummary, ...]:
    """One summary a column, in order."""
    return tuple(_column(name, [row[i] for row in table.rows]) for i, name in enumerate(table.header))


def _column(name: str, cells: list[str]) -> ColumnSummary:
    missing = sum(cell == "" for cell in cells)
    marked = sum(map(is_mark, cells))
    numbers = [n for n in (_number(c) for c in cells if c and not is_mark(c)) if n is not None]
    plain = len(cells) - missing - marked
    numeric = bool(numbers) and len(numbers) == plain
    if not numeric:
        return ColumnSummary(name, "words" if plain else "empty", len(cells), missing, marked, "", "", "", "")
    return ColumnSummary(
        name=name,
        kind="numbers",
        rows=len(cells),
        missing=missing,
        marked=marked,
        smallest=str(min(numbers)),
        largest=str(max(numbers)),
        total=str(sum(numbers, Decimal(0))),
        rounding=_rounding(numbers),
    )


def _number(cell: str) -> Decimal | None:
    try:
        number = Decimal(cell)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _rounding(numbers: list[Decimal]) -> str:
    """How the column is rounded, as far as its digits tell."""
    whole = all(n == n.to_integral_value() for n in numbers)
    if whole:
        return "all divisible by 5" if all(n % 5 == 0 for n in numbers) else "whole numbers"
    places = max(_places(n) for n in numbers)
    figures = max(len(n.normalize().as_tuple().digits) for n in numbers)
    return f"at most {places} decimal place{'s' if places > 1 else ''}, {figures} significant figures"


def _places(number: Decimal) -> int:
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
