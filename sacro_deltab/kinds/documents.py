"""Documents from plain numbers: one flat table each, names first, unrounded.

Rounding, marks and labels come later (`sacro_deltab.judging.judge`): what is built here never leaves as it is.
None of these functions imports numpy; arrays are taken as sequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.errors import InputError
from ..base.names import RESERVED
from ..outputs import Cell, Column, OutputDocument
from .papers import CERTIFICATE


def safe_name(text: str) -> str:
    """A file stem `[a-z0-9_-]` of at most 80 characters; never one of the names ACRO or the viewer own."""
    if not isinstance(text, str):
        raise InputError("an output's name must be text", next_step="Give the output a name of a-z and 0-9.")
    stem = re.sub(r"[^a-z0-9_-]+", "_", text.lower()).strip("_-")[:80].strip("_-")
    if not stem:
        raise InputError(f"no file name can be made from {text!r}", next_step="Give the output a name of a-z and 0-9.")
    return f"{stem}_output" if stem in RESERVED or stem == CERTIFICATE else stem


def scalar(
    output_type: str, name: str, title: str, label: str, value: float, *, unit: str = "", about: Mapping[str, Any]
) -> OutputDocument:
    """One number: whole-cohort mean or SD, training age mean, N."""
    columns = (Column("statistic", "label"), Column("value", "value", unit))
    return OutputDocument(name, output_type, title, columns, ((label, _number(value)),), dict(about))


def vector(
    output_type: str,
    name: str,
    title: str,
    labels: Sequence[str],
    values: Iterable[float],
    *,
    label_column: str = "parameter",
    value_column: str = "value",
    unit: str = "",
    about: Mapping[str, Any],
) -> OutputDocument:
    """One number a name: coefficients, quantiles, correlations, p-values, feature means."""
    columns = (Column(label_column, "label"), Column(value_column, "value", unit))
    rows = tuple((label, _number(value)) for label, value in zip(labels, _plain(values), strict=True))
    return OutputDocument(name, output_type, title, columns, rows, dict(about))


def matrix(
    output_type: str,
    name: str,
    title: str,
    labels: Sequence[str],
    columns: Sequence[tuple[str, str]],
    values: Iterable[Iterable[float | None]],
    *,
    label_column: str = "feature",
    about: Mapping[str, Any],
) -> OutputDocument:
    """Several numbers a name: components (features × J), folded weights, IDP summaries, regression tables.

    `columns` are (name, unit) pairs; `values` one row of numbers for each label.
    """
    heads = (Column(label_column, "label"), *(Column(column, "value", unit) for column, unit in columns))
    plain = _plain(values)
    rows = tuple((label, *map(_number, row)) for label, row in zip(labels, plain, strict=True))
    return OutputDocument(name, output_type, title, heads, rows, dict(about))


def group_table(
    output_type: str,
    name: str,
    title: str,
    labels: Sequence[str],
    counts: Sequence[int],
    values: Sequence[float | None] | None,
    *,
    group_column: str = "group",
    value_column: str = "mean_delta",
    unit: str = "years",
    about: Mapping[str, Any],
) -> OutputDocument:
    """A statistic by group, with the people behind each value beside it; the people alone where there are no values."""
    columns: tuple[Column, ...] = (Column(group_column, "label"), Column("n", "n", "people"))
    rows: list[tuple[Cell, ...]] = [(label, int(n)) for label, n in zip(labels, counts, strict=True)]
    if values is not None:
        columns = (*columns, Column(value_column, "value", unit))
        rows = [(*row, None if value is None else _number(value)) for row, value in zip(rows, values, strict=True)]
    return OutputDocument(name, output_type, title, columns, tuple(rows), dict(about))


def percent_label(percent: float) -> str:
    """`2.5` → "2.5", `50.0` → "50": the key of a quantile."""
    return str(int(percent)) if float(percent).is_integer() else repr(float(percent))


def _plain(values: Any) -> Any:
    """An array as lists of Python numbers, all at once; anything else as it is."""
    return values.tolist() if hasattr(values, "tolist") else values


def _number(value: Any) -> Any:
    """A plain int or float; numpy scalars lose their type, −0.0 its sign."""
    if type(value) is float:
        return value + 0.0
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return int(value)
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, int):
        return number
    return float(number) + 0.0
