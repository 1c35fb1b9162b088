"""The researcher's own ACRO tables: counted as published where their cells can be read.

A table is read when its row and column names (any number of levels) are columns the session knows as groups, and every
number in it is the count, or the mean, sum or SD of a known variable, of exactly those people. Nothing is guessed: a
table that does not match, a regression or a survival table is listed as not checked, and a checker reviews it.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..measure.grouping import make_grouping
from ..measure.numbers import PrintedCell
from ..measure.people import MISSING, Grouping, Ints, label_text

if TYPE_CHECKING:
    from .core import SessionCore

_ALL = "All"  # ACRO's margins
_AND = ", "


def add_foreign(session: SessionCore) -> None:
    """Read every ACRO record that is not ours; done afresh each time, so removed records no longer count."""
    for name in session.state.foreign:
        session.state.linked.retract(name)
    session.state.foreign.clear()
    ours = {entry.name for entry in session.entries}
    for uid, record in session.live.results.results.items():
        if uid in ours:
            continue
        cells, suppressed = _read(session, uid, record)
        if cells:
            session.state.linked.publish(cells, suppressed, ())
            session.state.foreign.append(cells[0].output)
        else:
            what = f"ACRO record {uid}: its cells could not be matched with known groups; a person must review it"
            session.not_checked += [] if what in session.not_checked else [what]


def _read(session: SessionCore, uid: str, record: Any) -> tuple[list[PrintedCell], list[str]]:
    frames = [item for item in record.output if hasattr(item, "columns")]
    if len(frames) != 1 or record.output_type not in ("table", "tabular"):
        return [], []
    frame = frames[0]
    rows, columns = _axis(session, frame.index), _axis(session, frame.columns)
    if rows is None or columns is None or all(people is None for _, people in (*rows, *columns)):
        return [], []
    cells: list[PrintedCell] = []
    gone: list[str] = []
    for i, (row, people) in enumerate(rows):
        for j, (column, others) in enumerate(columns):
            members = _both(people, others)
            if members is None:
                return [], []
            key = row if others is None and len(columns) == 1 else f"{row} × {column}"
            found = _match(session, frame.iat[i, j], members)
            if found is None:
                return [], []
            variable, statistic, shown = found
            if variable is not None:
                values = session.state.linked.values[variable]
                members = members[members < values.size]
                members = members[np.isfinite(values[members])]
            if not shown and not members.size:
                continue  # ACRO prints nothing for a group of nobody
            role = "margin" if _ALL in (*row.split(_AND), *column.split(_AND)) else "interior"
            cells.append(PrintedCell(f"ACRO {uid}", key, members, role, variable, statistic))
            if not shown:
                gone.append(key)
    return cells, gone


def _both(one: Ints | None, other: Ints | None) -> Ints | None:
    if one is None or other is None:
        return other if one is None else one
    return np.intersect1d(one, other)


def _axis(session: SessionCore, axis: Any) -> list[tuple[str, Ints | None]] | None:
    """(label, people) of every row or column: each level is a known grouping, or names statistics and values.

    None where a level is neither: then nobody knows whom the cells are about. People are None where the axis restricts
    nobody.
    """
    levels = range(getattr(axis, "nlevels", 1))
    known = [_members(session, axis.names[k], axis.get_level_values(k)) for k in levels]
    out: list[tuple[str, Ints | None]] = []
    for k in levels:
        if known[k] is None and axis.names[k] is not None:
            return None
    for i in range(len(axis)):
        label: list[str] = []
        people: Ints | None = None
        for k in levels:
            level = known[k]
            if level is None:
                label.append(str(axis.get_level_values(k)[i]))
            else:
                label.append(level[i][0])
                people = _both(people, level[i][1])
        out.append((_AND.join(label), people))
    return out


def _members(session: SessionCore, name: Any, labels: Any) -> list[tuple[str, Ints]] | None:
    """(label, people) for each label of a level that the session knows as a grouping."""
    grouping: Grouping | None = session.state.groupings.get(str(name)) if name is not None else None
    if grouping is None:
        return None
    index = {label: i for i, label in enumerate(grouping.labels)}
    out: list[tuple[str, Ints]] = []
    for raw in labels:
        try:
            text = MISSING if isinstance(raw, float) and math.isnan(raw) else label_text(_plain(raw), str(name))
        except InputError:
            return None
        if text in index:
            out.append((text, np.flatnonzero(grouping.codes == index[text])))
        elif text in (_ALL, ""):  # in a table of several levels ACRO leaves the others of a margin empty
            out.append((_ALL, np.arange(grouping.codes.size)))
        else:
            return None
    return out


def _match(session: SessionCore, value: Any, members: Ints) -> tuple[str | None, str | None, bool] | None:
    """(variable, statistic, shown) of one printed number over `members`, or None when it is not theirs."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if math.isnan(number):
        return None, None, False
    if number == members.size:
        return None, None, True
    for name, values in session.state.linked.values.items():
        known = values[members[members < values.size]]
        finite = known[np.isfinite(known)]
        if not finite.size:
            continue
        mean, total = float(finite.mean()), float(finite.sum())
        if any(math.isclose(s, number, rel_tol=1e-9, abs_tol=1e-12) for s in (mean, total)):
            return name, "mean", True
        if finite.size > 1 and math.isclose(float(finite.std(ddof=1)), number, rel_tol=1e-9):
            return name, "sd", True
        if number == finite.size:
            return name, None, True
    return None


def know_groups(session: SessionCore, groups: Any | None) -> None:
    """The group columns of a cohort, so that the researcher's own tables by them can be read."""
    people = session.state.people
    if groups is None or people is None:
        return
    for i in range(groups.shape[1]):
        with contextlib.suppress(InputError):
            grouping = make_grouping(groups.iloc[:, i], people, session.state.ages())
            session.state.groupings[grouping.name] = grouping


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
