"""Terms of a regression: numbers as they are, categories as indicators against one of them, and formulas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import InputError
from .people import Floats, Roster, columns_of, label_text, numbers

_CATEGORY = re.compile(r"^C\(\s*([^()]+?)\s*\)$")
_LEVEL = re.compile(r"^(?P<column>.+)\[(?P<level>.+)\]$")


@dataclass(frozen=True)
class Terms:
    """Columns of a design, one row a person, and for each category the level that the others are compared with."""

    names: tuple[str, ...]
    matrix: Floats
    against: Mapping[str, str]


def read_formula(formula: str, data: Any) -> tuple[Any, list[tuple[str, Any, bool]]]:
    """(outcome, terms as (name, column, whether a category)) of `"delta ~ age + C(sex)"` over a table.

    Raises
    ------
    InputError
        Anything but sums of columns and C(column), or a column that is not there.
    """
    left, sign, right = formula.partition("~")
    if not sign or not right.strip():
        raise InputError("this is no formula", place="formula", next_step='For example "delta ~ age + C(sex)".')
    outcome = _column(data, left.strip())
    terms = []
    for part in right.split("+"):
        word = part.strip()
        found = _CATEGORY.match(word)
        name = found.group(1) if found else word
        if not re.fullmatch(r"[^\s*:^|~()\[\]]+(?: [^\s*:^|~()\[\]]+)*", name):
            raise InputError(
                f"the term {word!r} is not understood", place="formula",
                next_step="Use columns and C(column) joined by +; make a product a column of its own.",
            )  # fmt: skip
        terms.append((name, _column(data, name), found is not None))
    return outcome, terms


def _column(data: Any, name: str) -> Any:
    columns = list(getattr(data, "columns", data if isinstance(data, Mapping) else ()))
    if name not in columns:
        raise InputError(f"there is no column {name!r}", place="formula", next_step="Name a column of data=.")
    return data[name]


def terms_of(predictors: Any) -> list[tuple[str, Any, bool]]:
    """The columns of a table or a single column; text, categories and booleans count as categories."""
    columns = columns_of(predictors)
    if hasattr(predictors, "columns"):
        names = [str(name) for name in predictors.columns]
    else:
        names = [str(getattr(c, "name", None) or f"predictor_{i + 1}") for i, c in enumerate(columns)]
        names = ["value"] if len(columns) == 1 and names == ["predictor_1"] else names
    return [(label_text(n, "names"), c, _is_category(c)) for n, c in zip(names, columns, strict=True)]


def _is_category(column: Any) -> bool:
    dtype = getattr(column, "dtype", None)
    if dtype is None or getattr(dtype, "kind", "") in "iufbc":
        return getattr(dtype, "kind", "") == "b"
    values = [v for v in list(column) if v is not None and v == v]
    return any(isinstance(v, (str, bool, np.bool_)) for v in values)


def design(roster: Roster, terms: list[tuple[str, Any, bool]]) -> Terms:
    """One row a person; the commonest level of a category is what the others are compared with."""
    names: list[str] = []
    columns: list[Floats] = []
    against: dict[str, str] = {}
    for name, column, category in terms:
        if not category:
            names.append(name)
            columns.append(roster.mean_by_person(_numbers(column, name)))
            continue
        labels, codes = _levels(column, name)
        known = codes >= 0
        counts = np.bincount(codes[known], minlength=len(labels))
        base = int(np.argmax(counts))
        against[name] = labels[base]
        for k, label in enumerate(labels):
            if k != base:
                names.append(f"{name}[{label}]")
                columns.append(roster.mean_by_person(np.where(known, (codes == k).astype(float), np.nan)))
    if not columns:
        raise InputError("no term varies", next_step="Give at least one predictor with more than one value.")
    if len(set(names)) < len(names):
        raise InputError("two terms have the same name", next_step="Give every column its own name.")
    return Terms(tuple(names), np.column_stack(columns), against)


def level_of(term: str) -> tuple[str, str] | None:
    """(column, level) of the indicator term `sex[M]`; None for a term that is a column."""
    found = _LEVEL.match(term)
    return None if found is None else (found.group("column"), found.group("level"))


def _numbers(column: Any, name: str) -> Floats:
    try:
        return numbers(column)
    except InputError as error:
        raise InputError(
            f"{name!r}: {error.what}", next_step=f"Write C({name}) in a formula if it is a category."
        ) from None


def _levels(column: Any, name: str) -> tuple[list[str], Any]:
    values = list(column)
    texts = [None if v is None or v != v else label_text(v.item() if hasattr(v, "item") else v, name) for v in values]
    labels = sorted({t for t in texts if t is not None})
    at = {label: k for k, label in enumerate(labels)}
    return labels, np.array([-1 if t is None else at[t] for t in texts])
