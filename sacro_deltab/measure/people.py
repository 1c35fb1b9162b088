"""One value a person: rows of a table become people, group columns become labels that are safe to print.

Everything here holds per-subject data and stays on the facts side.
"""

from __future__ import annotations

import contextlib
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError
from ..cohort.reading import PLAUSIBLE_AGES

MISSING = "(missing)"
MAX_LABEL = 120
MAX_GROUPS = 5000
_NUMBER = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$")

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Roster:
    """Who the rows are about. `codes[i]` is the person of row i; `declared` when rows were taken as people."""

    codes: Ints
    n_people: int
    declared: bool

    @classmethod
    def of(cls, n_rows: int, person_ids: Any | None) -> Roster:
        """Rows to people; without ids every row counts as a person, and that rests on a declaration."""
        if person_ids is None:
            return cls(np.arange(n_rows, dtype=np.int64), n_rows, True)
        ids = [_plain(v) for v in _as_list(person_ids)]
        if len(ids) != n_rows:
            raise InputError(
                f"there are {len(ids)} person ids for {n_rows} rows",
                next_step="Give one id for each row, in the same order.",
            )
        if any(_missing(v) for v in ids):
            raise InputError("a person id is missing", next_step="Give every row the id of its person.")
        seen: dict[str, int] = {}
        codes = np.array([seen.setdefault(str(v), len(seen)) for v in ids], dtype=np.int64)
        return cls(codes, len(seen), False)

    def mean_by_person(self, values: Any) -> Floats:
        """(people,) mean of each person's rows; NaN where a person has no finite value.

        Raises
        ------
        InputError
            For another length, or values that are not numbers.
        """
        column = numbers(values)
        if column.shape != self.codes.shape:
            raise InputError(
                f"there are {column.size} values for {self.codes.size} rows",
                next_step="Give one value for each row of the cohort, in the same order.",
            )
        if self.n_people == self.codes.size:
            out = np.full(self.n_people, np.nan)
            out[self.codes] = column
            return out
        finite = np.isfinite(column)
        total = np.bincount(self.codes[finite], weights=column[finite], minlength=self.n_people)
        count = np.bincount(self.codes[finite], minlength=self.n_people)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def one_row_each(self, values: Any, rows: npt.NDArray[np.bool_] | None = None) -> Floats:
        """(people of the rows, …) mean of each person's rows, of a column or a matrix; `rows`: of those alone."""
        table = np.asarray(values, dtype=np.float64)
        codes = self.codes
        if rows is not None:
            table, codes = table[rows], codes[rows]
        _, place = np.unique(codes, return_inverse=True)
        people = Roster(np.asarray(place, dtype=np.int64), int(place.max(initial=-1)) + 1, self.declared)
        columns = [people.mean_by_person(column) for column in np.atleast_2d(table.T)]
        return np.column_stack(columns) if table.ndim == 2 else columns[0]

    def labels_by_person(self, labels: Sequence[str], column: str) -> list[str]:
        """(people,) one label a person; a person in two groups is refused."""
        if len(labels) != self.codes.size:
            raise InputError(
                f"column {column!r} has {len(labels)} labels for {self.codes.size} rows",
                next_step="Give one label for each row of the cohort, in the same order.",
            )
        out: list[str | None] = [None] * self.n_people
        for code, label in zip(self.codes, labels, strict=True):
            if out[code] is not None and out[code] != label:
                raise InputError(
                    f"a person stands in two groups of column {column!r}",
                    next_step="Keep one row a person, or use a column that is the same on all rows of a person.",
                )
            out[code] = label
        return [MISSING if label is None else label for label in out]


@dataclass(frozen=True)
class Grouping:
    """People by group. `codes[p]` is the group of person p; `labels` in print order; `structural` are empty by
    declaration; `widths` are band widths in years where the groups are age bands."""

    name: str
    labels: tuple[str, ...]
    codes: Ints
    structural: frozenset[str] = frozenset()
    widths: tuple[float, ...] | None = None

    def __len__(self) -> int:
        return len(self.labels)


def rows_of(values: Any) -> int:
    """How many rows a column or table has; anything without rows is refused."""
    try:
        return len(values)
    except TypeError:
        raise InputError(
            "one column of values is needed", next_step="Give one value for each row of the cohort."
        ) from None


def columns_of(X: Any) -> list[Any]:
    """Columns of a DataFrame, of a two-dimensional array (masked or not), or of a single column."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        return [X.iloc[:, i] for i in range(X.shape[1])]
    array = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if array.ndim == 1:
        return [X]
    if array.ndim != 2:
        raise InputError("a table of columns is needed", next_step="Give a DataFrame, or rows by columns.")
    return [array[:, j] for j in range(array.shape[1])]


def numbers(values: Any) -> Floats:
    """Any one-dimensional column of numbers as float64; missing and masked values become NaN.

    Object, Decimal and extension dtypes are converted value by value; text that is not a number is refused.
    Integers too large for a float to hold exactly (above 2^53) are refused.
    """
    array = getattr(values, "to_numpy", None)
    if hasattr(values, "columns"):
        raise InputError("a table was given where one column is needed", next_step="Pick one column.")
    if isinstance(values, np.ma.MaskedArray):
        masked, values = np.ma.getmaskarray(values), np.ma.getdata(values).astype(object)
        values[masked] = None
    raw = array() if callable(array) else np.asarray(values)
    if raw.ndim != 1:
        raise InputError(f"values have {raw.ndim} dimensions; one column is needed", next_step="Pick one column.")
    if raw.dtype.kind in "cmM" or any(isinstance(v, complex | np.complexfloating) for v in raw[:1]):
        raise InputError(
            "values are complex numbers, dates or times where plain numbers are needed",
            next_step="Convert the column to numbers first, such as years.",
        )
    if raw.dtype.kind == "f":
        column = raw.astype(np.float64)
    elif raw.dtype.kind in "iu":
        if raw.size and (np.abs(raw.astype(np.float64)) > 2**53).any():
            raise InputError("an integer is too large to be summed exactly", next_step="Rescale the values.")
        column = raw.astype(np.float64)
    elif raw.dtype.kind == "b":
        column = raw.astype(np.float64)
    else:
        column = np.array([_one_number(v, row) for row, v in enumerate(raw, 1)], dtype=np.float64)
    column[~np.isfinite(column)] = np.nan
    return column


def group_labels(column: Any, name: str) -> tuple[list[str], list[str], frozenset[str]]:
    """(label of each row, labels in print order, labels nobody has) for a group column of any dtype.

    A missing label is a group of its own. Categories that nobody has are kept: they are cells with no people.
    Labels that cannot be printed safely are refused with the way out; line breaks and tabs become a space.
    """
    observed = [_plain(v) for v in _as_list(column)]
    categories = _categories(column)
    order = list(categories) if categories is not None else _sorted_unique(observed)
    text: dict[Any, str] = {}
    back: dict[str, Any] = {}
    for value in order:
        label = label_text(value, name)
        if label in back and back[label] != value:
            raise InputError(
                f"two different groups of column {name!r} would both be printed as {label!r}",
                next_step="Rename one of them.",
            )
        text[_key(value)] = label
        back[label] = value
    if len(order) > MAX_GROUPS:
        raise InputError(
            f"column {name!r} has more than {MAX_GROUPS} groups",
            next_step="A column with a value of its own for nearly everybody is no group; use bands.",
        )
    has_missing = any(_missing(v) for v in observed)
    if has_missing and MISSING in back:
        raise InputError(f"column {name!r} has a group called {MISSING!r} and missing labels", next_step="Rename it.")
    rows = [MISSING if _missing(v) else text[_key(v)] for v in observed]
    labels = [text[_key(v)] for v in order] + ([MISSING] if has_missing else [])
    present = set(rows)
    return rows, labels, frozenset(label for label in labels if label not in present)


def printed_labels(column: Any, name: str) -> list[str]:
    """The label of each row; one that cannot be printed is missing, and nothing is said of it."""

    def printed(value: Any) -> str:
        try:
            return MISSING if _missing(value) else label_text(value, name)
        except InputError:
            return MISSING

    return [printed(_plain(value)) for value in _as_list(column)]


def label_text(value: Any, column: str) -> str:
    """One label as it will be printed."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int):
        text = str(value)
    elif isinstance(value, float):
        text = str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    elif isinstance(value, bytes | bytearray):
        raise InputError(f"a label of column {column!r} is bytes, not text", next_step="Decode the column first.")
    else:
        _plain_edges(value, column)
        text = str(value)
    text = " ".join(unicodedata.normalize("NFC", text).split())
    if not text:
        raise InputError(f"column {column!r} has an empty label", next_step="Name that group, or make it missing.")
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text):
        raise InputError(f"a label of column {column!r} holds a control character", next_step="Rename that group.")
    if "<" in text or ">" in text:
        raise InputError(
            f"a label of column {column!r} holds '<' or '>', which a viewer may take for markup",
            next_step="Write it in words, for example 'below 65'.",
        )
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise InputError(
            f"a group of column {column!r} is called {text!r}, which programs read as no number",
            next_step="Make it missing (None), or name it in words such as 'unknown'.",
        )
    if text == "*":
        raise InputError(f"a group of column {column!r} is called '*', the suppression mark", next_step="Rename it.")
    if len(text) > MAX_LABEL:
        raise InputError(f"a label of column {column!r} is longer than {MAX_LABEL} characters", next_step="Shorten it.")
    return f"'{text}" if text[0] in "=+-@" and not _NUMBER.match(text) else text


def _plain_edges(value: Any, column: str) -> None:
    """Intervals whose edges were read from the data (`pandas.cut(x, 4)`) print its extremes as labels."""
    edges = [getattr(value, side, None) for side in ("left", "right")]
    numeric = [float(edge) for edge in edges if isinstance(edge, int | float)]
    if len(numeric) == 2 and any((edge * 2) % 1 for edge in numeric):
        raise InputError(
            f"the intervals of column {column!r} have edges that no person chose: they would print values of the data",
            next_step="Cut at round numbers of your own, for example pandas.cut(x, [0, 5, 10]), or use AgeBands.",
        )


def _as_list(column: Any) -> list[Any]:
    if hasattr(column, "columns"):
        raise InputError("a table was given where one column is needed", next_step="Pick one column.")
    if getattr(column, "ndim", 1) != 1:
        raise InputError("groups must be one column of labels", next_step="Pick one column.")
    if callable(column) or isinstance(column, str | bytes):
        raise InputError("groups must be a column of labels, not a function or a query", next_step="Pass the column.")
    if hasattr(column, "tolist"):
        return list(column.tolist())
    rows_of(column)
    return list(column)


def _categories(column: Any) -> list[Any] | None:
    dtype = getattr(column, "dtype", None)
    categories = getattr(dtype, "categories", None)
    if categories is None and hasattr(column, "categories"):
        categories = column.categories
    return None if categories is None else [_plain(v) for v in categories]


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        text = str(value.isoformat())
        return text[:10] if text.endswith("T00:00:00") else text
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return _plain(value.item())
    return value


def _missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if value == "NaT" and not isinstance(value, str):
        return True
    return isinstance(value, float) and math.isnan(value)


def _key(value: Any) -> Any:
    return (type(value).__name__ if isinstance(value, bool | str) else "number", value)


def _sorted_unique(values: Sequence[Any]) -> list[Any]:
    unique: dict[Any, Any] = {}
    for value in values:
        if not _missing(value):
            try:
                unique.setdefault(_key(value), value)
            except TypeError:
                raise InputError(
                    "a group label is a list or another container", next_step="Use text or numbers."
                ) from None
    found = list(unique.values())
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in found):
        return sorted(found)
    return sorted(found, key=lambda v: (str(type(v).__name__), str(v)))


def _one_number(value: Any, row: int) -> float:
    what = "a value is neither a number nor missing"
    if _missing(_plain(value)):
        return math.nan
    if isinstance(value, str | bytes):
        what = "a value is text where a number is needed"
    elif not isinstance(value, complex | np.complexfloating | np.datetime64 | np.timedelta64):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return float(value)
    raise InputError(what, place=f"row {row}", next_step="Convert the column to numbers first.")


def plausible_ages(values: Any) -> Floats:
    """(rows,) ages in years; NaN where none is known.

    Raises
    ------
    InputError
        For an age that nobody has, or what is no number.
    """
    ages = numbers(values)
    low, high = PLAUSIBLE_AGES
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero((ages < low) | (ages > high))
    if wrong.size:
        raise InputError(
            f"an age lies outside {low:g} to {high:g} years",
            place=f"row {wrong[0] + 1}",
            next_step="Correct it, or make it missing.",
        )
    return ages
