"""Columns that outputs are asked of, as one row a person, and the traces of pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..measure.numbers import Trace
from ..measure.people import Floats, columns_of, label_text, numbers, rows_of
from .kind import Inside

_LARGEST = 1e100


def column(inside: Inside, values: Any) -> Floats:
    """(people,) one column of numbers."""
    return summable(inside.roster(rows_of(values)).mean_by_person(values))


def summable(values: Floats) -> Floats:
    """Values whose squares can be summed in floats, or a refusal."""
    if np.abs(np.nan_to_num(values)).max(initial=0.0) > _LARGEST:
        raise InputError("values are too large to be summed", next_step="Rescale the column, for example to thousands.")
    return values


def matrix(inside: Inside, X: Any, feature_names: Sequence[str] | None = None) -> tuple[list[str], Floats]:
    """(names, people × columns) from a DataFrame, a Series or an array with names."""
    columns = [numbers(one) for one in columns_of(X)]
    if feature_names is not None:
        if isinstance(feature_names, str) or not hasattr(feature_names, "__iter__"):
            raise InputError("feature_names must be a list of names", next_step="Give one name a column.")
        names = list(feature_names)
    elif hasattr(X, "columns"):
        names = list(X.columns)
    elif len(columns) == 1:
        names = [getattr(X, "name", None) or "value"]
    else:
        names = [f"feature_{i + 1}" for i in range(len(columns))]
    if not columns:
        raise InputError("the table has no columns", next_step="Give at least one column of numbers.")
    labels = [label_text(name, "names") for name in names]
    if len(labels) != len(columns) or len(set(labels)) != len(labels):
        raise InputError("column names repeat, or are not one a column", next_step="Give every column its own name.")
    roster = inside.roster(columns[0].size)
    return labels, summable(np.column_stack([roster.mean_by_person(one) for one in columns]))


def both(one: Floats, other: Floats) -> Floats:
    """(people, 2) columns, NaN where a person lacks either."""
    known = np.isfinite(one) & np.isfinite(other)
    return np.where(known[:, None], np.column_stack([one, other]), np.nan)


def pairs(output: str, kind: str, names: Sequence[str], found: Sequence[Floats]) -> Trace:
    """The columns of some correlations; the values stand there once for each set of people."""
    columns: list[Floats] = []
    labels: list[str] = []
    whose: dict[bytes, int] = {}
    sets = []
    for name, pair in zip(names, found, strict=True):
        people = np.packbits(np.isfinite(pair[:, 0])).tobytes()
        if people not in whose:
            whose[people] = len(columns)
            columns.append(pair[:, 0])
            labels.append("delta")
        sets.append((whose[people], len(columns)))
        columns.append(pair[:, 1])
        labels.append(name)
    return Trace(output, kind, tuple(labels), np.column_stack(columns), tuple(sets))
