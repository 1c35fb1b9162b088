"""`--cohort FILE` as read: one row a person, columns of numbers and of groups. Stays inside the TRE."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...base.opening import ordinary

_IDS = ("participant_id", "subject_id", "person_id", "id", "eid")
_MOST_GROUPS = 5_000
_BAND = re.compile(r"(\d+(?:\.\d+)?)\s*(?:-|–|to under|to)\s*(\d+(?:\.\d+)?)\b")
OUTSIDE = "outside the bands"


@dataclass
class CohortFile:
    """Columns by lower-case name; `numbers` are (people,) floats with NaN where nothing stands."""

    path: str
    n: int
    numbers: dict[str, Any]
    raw: dict[str, Any]  # every column as pandas read it, for labels
    _labels: dict[str, list[str]] = field(default_factory=dict)

    @property
    def has_ids(self) -> bool:
        """Whether a column names the people, each once."""
        return any(name in self.raw for name in _IDS)

    @property
    def ages(self) -> Any:
        """(people,) ages in years, or None."""
        return self.numbers.get("age")

    def column(self, name: str) -> Any:
        """(people,) numbers of a column as an output names it, or None."""
        return self.numbers.get(name.removeprefix("'").strip().lower())

    def matrix(self, names: Sequence[str]) -> Any:
        """(people, names) numbers, or None where one of the columns is not here."""
        import numpy as np

        columns = [self.column(name) for name in names]
        if not columns or any(column is None for column in columns):
            return None
        return np.column_stack(columns)

    def sorted_columns(self) -> dict[str, array[float]]:
        """Per-subject columns, sorted, for the detectors."""
        import numpy as np

        out = {}
        for name, values in self.numbers.items():
            finite = np.sort(values[np.isfinite(values)])
            if len(finite) >= 5 and float(finite.std()) > 0:
                out[name] = array("d", finite)
        return out

    def labels(self, name: str) -> list[str]:
        """Each person's label in one column, as a session prints it; empty texts where none could be printed."""
        if name not in self._labels:
            self._labels[name] = _printed(self.raw[name], name, self.n)
        return self._labels[name]

    def grouped(self, keys: set[str], named: str | None) -> Iterator[list[str]]:
        """Columns whose groups have these names: the one that the table names first, then those that fit best."""
        first = (named or "").strip().lower()
        if first in self.raw and len(keys & set(self.labels(first))) > len(keys) / 2:
            yield self.labels(first)
        shares = {name: len(keys & set(self.labels(name))) / len(keys) for name in self._grouping_columns}
        best = max(shares.values(), default=0.0)
        if best > 0.5:
            yield from (self.labels(name) for name, share in shares.items() if share == best and name != first)
        else:
            bands = self._bands(keys)
            if bands is not None:
                yield bands

    @cached_property
    def _grouping_columns(self) -> list[str]:
        return [name for name, column in self.raw.items() if column.nunique() <= _MOST_GROUPS]

    def _bands(self, keys: set[str]) -> list[str] | None:
        import numpy as np

        from ...measure.people import MISSING

        bands = _bands_of(keys)
        if self.ages is None or bands is None:
            return None
        lows, names = [low for low, _, _ in bands], [OUTSIDE, *(key for _, _, key in bands)]
        at = np.searchsorted(lows, self.ages, side="right")
        at = np.where(self.ages < max(high for _, high, _ in bands), at, 0)
        return [MISSING if np.isnan(age) else names[int(i)] for age, i in zip(self.ages, at, strict=True)]


def _bands_of(keys: set[str]) -> list[tuple[float, float, str]] | None:
    from ...measure.people import MISSING

    bands = sorted((float(m[1]), float(m[2]), key) for key in keys if (m := _BAND.match(key)))
    return bands if bands and len(bands) + (MISSING in keys) == len(keys) else None


def band_edges(keys: set[str]) -> tuple[float, ...] | None:
    """Edges of touching age bands, from their names; None for anything else."""
    bands = _bands_of(keys)
    if bands is None or any(a[1] != b[0] for a, b in pairwise(bands)):
        return None
    return (*(low for low, _, _ in bands), bands[-1][1])


def read_cohort_file(path: str | Path) -> CohortFile:
    """Read a CSV of one row a person with any of: age, delta, features, groups.

    Raises
    ------
    InputError
        When the file cannot be read as such a table, or a person stands in it twice.
    """
    import numpy as np
    import pandas as pd

    try:
        with ordinary(path).open("rb") as handle:
            if handle.read(64).lstrip()[:1] in (b"{", b"[", b"\x80"):
                raise ValueError("no CSV")
        frame = pd.read_csv(path, low_memory=False)
        words = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
        # what stands there, not what pandas takes for missing: a group may be called NA
        texts = pd.read_csv(path, usecols=words, dtype=str, keep_default_na=False) if words else frame[words]
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise InputError(
            f"the cohort cannot be read ({type(error).__name__})",
            path=path,
            next_step="Give a CSV with a header row, one row a person.",
        ) from None
    if not len(frame):
        raise InputError("the cohort has no rows", path=path)
    numbers: dict[str, Any] = {}
    raw: dict[str, Any] = {}
    for name in frame.columns:
        key = str(name).strip().lower()
        if key in raw:
            raise InputError("two columns of the cohort have the same name", path=path, place=f"column {name}")
        if key in _IDS and frame[name].duplicated().any():
            raise InputError("a person stands in the cohort twice", path=path, place=f"column {name}")
        raw[key] = frame[name]
        if name in words:
            raw[key] = texts[name].where(texts[name] != "")
        else:
            numbers[key] = np.asarray(frame[name], dtype=float)
    return CohortFile(str(path), len(frame), numbers, raw)


def _printed(column: Any, name: str, n: int) -> list[str]:
    from ...measure.people import group_labels

    try:
        return group_labels(column, name)[0]
    except InputError:  # a label that no session would print: no table can be about it
        return [""] * n
