"""A table of counts as people print it (CSV): labels, marks for what is withheld, totals.

What is withheld is not in the file. Any whole numbers that fit everything printed stand in for it: what a reader can
work out, which is all that is asked here, is the same for every table that fits.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import InputError, UnreadableError
from .problem_json import LARGEST_N
from .solver import INF, Model

MARK = re.compile(
    r"|\*+|[-–—.]+|[xscX]|n/?a|(?:<\s*|below )\d{1,6}|[\[(]?(redacted|suppressed|withheld|masked)[\])]?", re.I
)
TOTAL = re.compile(r"(grand )?totals?|all|sum|overall|everybody", re.I)
LIMIT = 16 * 2**20
_STEP = "write counts, a mark like * or [REDACTED] for what is withheld, and totals in a row or column called Total"


def read_csv(path: Path) -> dict[str, Any]:
    """The problem file of a printed table: one pattern, "as printed", that withholds what is marked.

    Raises
    ------
    InputError, UnreadableError
        No such table: not UTF-8, ragged, a cell that is neither a count nor a mark, totals that nothing adds up to.
    """
    try:
        if path.stat().st_size > LIMIT:
            raise UnreadableError("the file is larger than a printed table", path=path, next_step="give one table")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UnreadableError(error.strerror or "cannot be read", path=path, next_step="check the name") from error
    except UnicodeDecodeError as error:
        raise UnreadableError("cannot be read as UTF-8 text", path=path, next_step="save it as UTF-8") from error
    lines = [line for line in text.splitlines() if line.strip()]
    delimiter = max(",;\t", key=(lines[0] if lines else "").count)
    try:
        rows = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"not a table: {error}", path=path, next_step=_STEP) from error
    return printed_problem(rows, path)


def printed_problem(rows: Sequence[Sequence[str]], path: Path) -> dict[str, Any]:
    """The same of rows of cells that were read already."""
    return _problem(_grid([[cell.strip() for cell in row] for row in rows], path), path)


Printed = tuple[list[str], list[str], list[list[int | None]]]  # labels of rows and of columns, numbers (None: a mark)


def _grid(rows: list[list[str]], path: Path) -> Printed:
    if not rows or min(map(len, rows)) != max(map(len, rows)):
        raise InputError("the rows are not equally long", path=path, next_step=_STEP)
    header = all(_number(cell) is None for cell in rows[0][1:]) and not all(MARK.fullmatch(c) for c in rows[0][1:])
    names = rows.pop(0) if header else [f"column {i}" for i in range(len(rows[0]))]
    if not rows:
        raise InputError("the table has no rows of numbers", path=path, next_step=_STEP)
    if len(rows) == 1 and (len(names) == 1 or _number(rows[0][0]) is not None or MARK.fullmatch(rows[0][0])):
        rows, names = [["", *rows[0]]], ["", *names]  # one row without a label
    if len(names) < 2:
        raise InputError("the table has no numbers beside its labels", path=path, next_step=_STEP)
    labels, columns = [row[0] for row in rows], names[1:]
    for what, given in (("rows", labels), ("columns", columns)):
        if len(set(given)) != len(given):
            raise InputError(f"two {what} have one label", path=path, next_step="name every group once")
    numbers = [[_cell(cell, i, j, path) for j, cell in enumerate(row[1:])] for i, row in enumerate(rows)]
    return labels, columns, numbers


def _number(text: str) -> int | None:
    return int(text.split(".")[0]) if re.fullmatch(r"\d{1,10}(\.0*)?", text) else None


def _cell(text: str, i: int, j: int, path: Path) -> int | None:
    value = _number(text)
    place = f"row {i + 1}, number {j + 1}"
    if value is None and not MARK.fullmatch(text):
        raise InputError("a cell is neither a count nor a mark", path=path, place=place, next_step=_STEP)
    if value is not None and value > LARGEST_N:
        raise InputError(f"N is larger than {LARGEST_N}", path=path, place=place, next_step="count people")
    return value


def _problem(printed: Printed, path: Path) -> dict[str, Any]:
    labels, columns, numbers = printed
    inner_rows = [i for i, name in enumerate(labels) if not TOTAL.fullmatch(name)]
    inner_columns = [j for j, name in enumerate(columns) if not TOTAL.fullmatch(name)]
    if not inner_rows or not inner_columns:
        raise InputError("every row or every column is a total", path=path, next_step=_STEP)
    plain_rows, plain_columns = len(labels) == 1, len(columns) == 1

    def name(i: int, j: int) -> str:
        return columns[j] if plain_rows else labels[i] if plain_columns else f"{labels[i]} | {columns[j]}"

    atoms = {member: n for n, member in enumerate(name(i, j) for i in inner_rows for j in inner_columns)}
    cells, known, marked = {}, [], []
    for i in range(len(labels)):
        for j in range(len(columns)):
            mine = [name(a, b) for a in inner_rows if i in (a, *_total(i, inner_rows)) for b in inner_columns
                    if j in (b, *_total(j, inner_columns))]  # fmt: skip
            totals = (i not in inner_rows) + (j not in inner_columns)
            role = "interior" if not totals else "grand" if len(mine) == len(atoms) else "margin"
            cells[name(i, j)] = {"table": path.stem, "role": role, "atoms": mine}
            value = numbers[i][j]
            if value is None:
                marked.append(name(i, j))
            else:
                known.append(([atoms[m] for m in mine], [1.0] * len(mine), float(value), float(value)))
    people = _fitting(len(atoms), known, path)
    return {
        "title": path.stem,
        "kind": "counts",
        "attacker": {"n_published": "exact"},
        "atoms": {m: {"n": n} for m, n in zip(atoms, people, strict=True)},
        "cells": cells,
        "primary": marked,
        "published_sets": [{"name": "as printed", "suppressed": marked}],
    }


def _total(i: int, inner: list[int]) -> tuple[int, ...]:
    """`i` again where it is a total: it holds every group."""
    return () if i in inner else (i,)


def _fitting(k: int, known: list[tuple[list[int], list[float], float, float]], path: Path) -> list[int]:
    """Whole numbers that fit everything printed."""
    model = Model(np.zeros(k), np.full(k, INF), [True] * k)
    model.add_rows(known)
    found = model.minimise(np.ones(k))
    if found.status != "optimal":
        raise InputError(
            "no table fits the numbers printed", path=path, next_step="check that the totals are those of the counts"
        )
    return [int(n) for n in np.rint(found.x)]
