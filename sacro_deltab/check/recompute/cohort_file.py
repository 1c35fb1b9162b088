"""`--cohort FILE` as read: one row a person, columns of numbers and of groups. Stays inside the TRE."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import InputError
from ...base.opening import ordinary
from ...cohort.aligning import cap_rows, person_ids
from ...cohort.reading import id_column
from ...cohort.sources import as_table
from ...cohort.table import is_missing
from ...measure.people import MISSING, group_labels
from ...rules.facts import Facts

_MOST_GROUPS = 5_000
_BAND = re.compile(r"(\d+(?:\.\d+)?)\s*(?:-|–|to under|to)\s*(\d+(?:\.\d+)?)\b")
OUTSIDE = "outside the bands"


def is_noised(facts: Facts | None) -> bool:
    """Whether noise was recorded."""
    applied = None if facts is None else facts.get("dp.applied")
    return applied is not None and applied.value is True


@dataclass
class CohortFile:
    """Columns by lower-case name; `numbers` are (people,) floats with NaN where nothing stands."""

    path: str
    n: int
    numbers: dict[str, Any]
    raw: dict[str, Any]  # every column, for labels
    ids: tuple[str, ...] | None = None  # one a person; None where no column names the people
    inside: Any = None  # (people,) bool: those of a part; everybody else's numbers are missing
    _labels: dict[str, list[str]] = field(default_factory=dict)

    @property
    def ages(self) -> Any:
        """(people,) ages in years, or None."""
        return self.numbers.get("age")

    def column(self, name: str) -> Any:
        """(people,) numbers of a column as an output names it, or None."""
        return self.numbers.get(name.removeprefix("'").strip().lower())

    def matrix(self, names: Sequence[str]) -> Any:
        """(people, names) numbers, or None where one of the columns is not here."""

        columns = [self.column(name) for name in names]
        if not columns or any(column is None for column in columns):
            return None
        return np.column_stack(columns)

    def sorted_columns(self) -> dict[str, array[float]]:
        """Per-subject columns, sorted, for the detectors."""

        out = {}
        for name, values in self.numbers.items():
            finite = np.sort(values[np.isfinite(values)])
            if len(finite) >= 5 and float(finite.std()) > 0:
                out[name] = array("d", finite)
        return out

    def part(self, where: Sequence[str]) -> CohortFile | None:
        """The file with the numbers of a part only: `where` is a column and its labels. None where it has no such."""
        column, *labels = where
        key = column.strip().lower()
        if key not in self.raw or not labels or not set(labels) <= set(self.labels(key)):
            return None
        inside = np.isin(self.labels(key), labels)
        return replace(self, numbers={k: np.where(inside, v, np.nan) for k, v in self.numbers.items()}, inside=inside)

    def labels(self, name: str) -> list[str]:
        """Each person's label in one column, as a session prints it; empty texts where none could be printed."""
        if name not in self._labels:
            self._labels[name] = _printed(self.raw[name], name, self.n)
        return self._labels[name]

    def _labels_for(self, keys: set[str], name: str) -> list[str]:
        """Labels of a column; where the table names a group as files name what is missing (NA), it is that group."""

        words = [key for key in keys if is_missing(key)]
        if len(words) != 1 or MISSING in keys:
            return self.labels(name)
        return [words[0] if label == MISSING else label for label in self.labels(name)]

    def grouped(self, keys: set[str], named: str | None) -> Iterator[list[str]]:
        """Columns whose groups have these names: the one that the table names first, then those that fit best."""
        first = (named or "").strip().lower()
        if first in self.raw and len(keys & set(self._labels_for(keys, first))) > len(keys) / 2:
            yield self._labels_for(keys, first)
        shares = {name: len(keys & set(self._labels_for(keys, name))) / len(keys) for name in self._grouping_columns}
        best = max(shares.values(), default=0.0)
        if best > 0.5:
            fits = [name for name, share in shares.items() if share == best and name != first]
            yield from (self._labels_for(keys, name) for name in fits)
        else:
            bands = self._bands(keys)
            if bands is not None:
                yield bands

    @cached_property
    def _grouping_columns(self) -> list[str]:
        return [name for name, column in self.raw.items() if column.nunique() <= _MOST_GROUPS]

    def _bands(self, keys: set[str]) -> list[str] | None:

        bands = _bands_of(keys)
        if self.ages is None or bands is None:
            return None
        lows, names = [low for low, _, _ in bands], [OUTSIDE, *(key for _, _, key in bands)]
        at = np.searchsorted(lows, self.ages, side="right")
        at = np.where(self.ages < max(high for _, high, _ in bands), at, 0)
        return [MISSING if np.isnan(age) else names[int(i)] for age, i in zip(self.ages, at, strict=True)]


def _bands_of(keys: set[str]) -> list[tuple[float, float, str]] | None:

    bands = sorted((float(m[1]), float(m[2]), key) for key in keys if (m := _BAND.match(key)))
    return bands if bands and len(bands) + (MISSING in keys) == len(keys) else None


def band_edges(keys: set[str]) -> tuple[float, ...] | None:
    """Edges of touching age bands, from their names; None for anything else."""
    bands = _bands_of(keys)
    if bands is None or any(a[1] != b[0] for a, b in pairwise(bands)):
        return None
    return (*(low for low, _, _ in bands), bands[-1][1])


def read_cohort_file(path: str | Path) -> CohortFile:
    """Read a table with any of: age, delta, features, groups, by the reader that `run` uses.

    Of a person with several rows the first counts, as `run --rows-per-person 1` takes it.

    Raises
    ------
    InputError
        When the file cannot be read as such a table.
    """
    import pandas as pd  # late: pandas is heavy

    table = as_table(ordinary(path), "cohort")
    if table.names is None or not table.n:
        raise InputError("the cohort has no header, or no rows", path=path, next_step="Give a table with a header row.")
    keep = np.ones(table.n, dtype=bool)
    person = id_column(table)
    ids = person_ids(table, person)
    if ids is not None:
        keep = cap_rows(ids, 1, table)
    distinct = None if ids is None else tuple(person for person, kept in zip(ids, keep, strict=True) if kept)
    words = [j for j, column in enumerate(table.columns) if column.values is None or j == person]
    texts = dict(zip(words, table.texts(words), strict=True))
    numbers: dict[str, Any] = {}
    raw: dict[str, Any] = {}
    for j, (name, column) in enumerate(zip(table.names, table.columns, strict=True)):
        key = name.strip().lower()
        if key in raw:
            raise InputError("two columns of the cohort have the same name", path=path, place=f"column {j + 1}")
        if j in texts:
            raw[key] = _words(pd.Series(texts[j], dtype=object, name=name)[keep].reset_index(drop=True))
            if raw[key].dtype == bool:
                numbers[key] = raw[key].to_numpy(dtype=float)
        else:
            assert column.values is not None
            raw[key] = pd.Series(column.values[keep], name=name)
            numbers[key] = column.values[keep]
    return CohortFile(str(path), int(keep.sum()), numbers, raw, ids=distinct)


def _words(column: Any) -> Any:
    """Words as they stand; a column of True and False as such, since sessions print them in small letters."""
    return column.map({"True": True, "False": False}) if set(column) <= {"True", "False"} else column


def _printed(column: Any, name: str, n: int) -> list[str]:

    try:
        return group_labels(column, name)[0]
    except InputError:  # a label that no session would print: no table can be about it
        return [""] * n
