"""Who stands in which row: identifiers, their repetition, and the order of several files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError
from .table import Table

Order = npt.NDArray[np.int64]


def person_ids(table: Table, at: int | None) -> tuple[str, ...] | None:
    """Identifiers of a table's rows, or None where it has none. A missing identifier is an error."""
    if at is None:
        return None
    (cells,) = table.texts([at])
    if None in cells:
        row = table.rows[cells.index(None)]
        raise table.error(
            "A row has no identifier.", row=row, next_step="Complete it, or read the file without an identifier column."
        )
    return tuple(str(c) for c in cells)


def align(tables: Mapping[str, Table], ids: Mapping[int, tuple[str, ...] | None]) -> tuple[dict[int, Order], bool]:
    """Row order of each table that brings it to the features' people; True where order had to be trusted.

    Tables that carry identifiers are matched by them; otherwise they must have equally many rows, which are then
    taken to be the same people in the same order.
    """
    base = tables["features"]
    orders: dict[int, Order] = {id(base): np.arange(base.n)}
    trusted = False
    for role, table in tables.items():
        if id(table) in orders:
            continue
        mine, theirs = ids[id(base)], ids[id(table)]
        if mine is not None and theirs is not None:
            orders[id(table)] = _by_id(base, table, mine, theirs)
            continue
        trusted = True
        if table.n != base.n:
            raise table.error(
                f"The {role} have another number of rows than the features file.",
                next_step="Give one row per person in every file, or identifiers in all of them.",
                inside=f"{table.n} rows of {role}, {base.n} of features",
            )
        orders[id(table)] = np.arange(table.n)
    _same_without_base(tables, ids)
    return orders, trusted


def _by_id(base: Table, table: Table, mine: tuple[str, ...], theirs: tuple[str, ...]) -> Order:
    if mine == theirs:
        return np.arange(base.n)
    for one, ids in ((base, mine), (table, theirs)):
        again = _first_repeat(ids)
        if again is not None:
            raise one.error(
                "A person stands in more than one row, and the files do not list the same rows in the same order.",
                row=one.rows[again],
                next_step="Keep one row per person in every file, or write one combined table.",
            )
    where = {person: row for row, person in enumerate(theirs)}
    lost, extra = set(mine) - set(theirs), set(theirs) - set(mine)
    if lost or extra:
        raise table.error(
            "The file holds other people than the features file.",
            next_step="Give the same people in every file.",
            inside=f"{len(lost)} people of the features file are missing here, {len(extra)} stand only here",
        )
    return np.array([where[person] for person in mine], dtype=np.int64)


def _first_repeat(ids: tuple[str, ...]) -> int | None:
    """Position of the first identifier that has already been met."""
    seen: set[str] = set()
    for place, person in enumerate(ids):
        if person in seen:
            return place
        seen.add(person)
    return None


def _same_without_base(tables: Mapping[str, Table], ids: Mapping[int, tuple[str, ...] | None]) -> None:
    """Where the features file has no identifiers, the files that have some must agree with each other."""
    if ids[id(tables["features"])] is not None:
        return
    first: tuple[str, ...] | None = None
    for table in tables.values():
        theirs = ids[id(table)]
        if theirs is None:
            continue
        if first is not None and theirs != first:
            raise table.error(
                "The people stand in another order than in the other files, and the features file has no identifiers.",
                next_step="Add the identifier column to the features file.",
            )
        first = theirs


def cap_rows(ids: tuple[str, ...], most: int | None, base: Table) -> npt.NDArray[np.bool_]:
    """Mask that keeps the first `most` rows of each person; repeated people without a cap are refused."""
    seen: Counter[str] = Counter()
    keep = np.ones(len(ids), dtype=bool)
    for row, person in enumerate(ids):
        seen[person] += 1
        if seen[person] > 1 and most is None:
            raise InputError(
                "A person stands in more than one row.",
                path=base.label,
                place=f"{base.row_word} {base.rows[row]}",
                next_step="Keep one row per person, or cap them with rows_per_person (--rows-per-person).",
                inside=f"{sum(n > 1 for n in Counter(ids).values())} people repeat",
            )
        keep[row] = most is None or seen[person] <= most
    return keep
