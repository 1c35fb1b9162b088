"""A table as read: columns of numbers (text on demand), with the place of every row for messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError

Array = npt.NDArray[np.float64]

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "."})
_NUMBER_LIKE = re.compile(r"[\d.,;:eE+\-\s/]*\d[\d.,;:eE+\-\s/]*\Z")


def is_missing(cell: str) -> bool:
    """True for an empty cell and the usual words for a missing value; codes such as -999 are numbers."""
    return len(cell) < 8 and cell.strip().lower() in MISSING


_SEPARATORS = re.compile(r"[|;,:\t]\s*")
_LONE_DECIMAL = re.compile(r"(?:^|\s)[-+]?\d+[.,]\d+(?:\s|$)")


def column_label(name: str, number: int) -> str:
    """How a message calls a column: by name, unless the name could be somebody's value, or a whole row of them read
    with the wrong separator."""
    parts = _SEPARATORS.split(name)
    a_row = (len(parts) > 1 and any(_NUMBER_LIKE.match(part) for part in parts)) or _LONE_DECIMAL.search(name)
    if len(name) > 80 or _NUMBER_LIKE.match(name) or a_row or not name.isprintable():
        return f"column {number}"
    return repr(name)


@dataclass(frozen=True)
class Column:
    """One column. `values` are its numbers (NaN where missing), None where a cell is no number."""

    name: str
    values: Array | None
    bad_row: int | None  # place of the first cell that is no number
    mostly_numbers: bool = False  # a slip in a column of numbers rather than a column of words


@dataclass(frozen=True)
class Table:
    """Columns of equal length and where they came from."""

    label: str
    path: Path | None
    names: tuple[str, ...] | None
    columns: Sequence[Column]
    rows: Sequence[int]
    row_word: str  # "line" of a file, "row" of a data frame
    text_of: Callable[[Sequence[int], int], list[list[str | None]]]
    decimal_commas: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def find(self, name: str) -> int | None:
        """Position of a column by its exact name, or else by its name in any case."""
        if self.names is None:
            return None
        if name in self.names:
            return self.names.index(name)
        lower = [n.lower() for n in self.names]
        return lower.index(name.lower()) if lower.count(name.lower()) == 1 else None

    def need(self, name: str, role: str) -> int:
        """Position of a column that must be there."""
        at = self.find(name)
        if at is None:
            raise self.error(
                f"There is no column {column_label(name, 0)} for the {role}."
                if self.names is not None
                else f"The file has no header, so the {role} cannot be found by name.",
                next_step="Name a column of the first line, exactly as written there.",
            )
        return at

    def numbers(self, j: int, role: str) -> Array:
        """Numbers of one column (NaN where missing), or an error that names the place of the first that is none."""
        column = self.columns[j]
        if column.values is None:
            raise self.error(
                f"The {role} in {self.label_of(j)} are not all numbers.",
                row=column.bad_row,
                next_step="Repair the cell, leave the column out, or name it as a group."
                if role != "ages"
                else "Write ages in years with a decimal point; a header is a first line of names.",
            )
        return column.values

    def texts(self, wanted: Sequence[int]) -> list[list[str | None]]:
        """Columns as text, None where missing."""
        return self.text_of(wanted, 0 if self.names is None else 1)

    def label_of(self, j: int) -> str:
        """How messages call column j."""
        return f"column {j + 1}" if self.names is None else column_label(self.names[j], j + 1)

    def error(
        self, what: str, *, row: int | None = None, next_step: str | None = None, inside: str | None = None
    ) -> InputError:
        """An InputError about this table, at a row where given."""
        place = f"{self.row_word} {row}" if row is not None else None
        return InputError(what, path=self.label, place=place, next_step=next_step, inside=inside)
