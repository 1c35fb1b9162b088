"""The researcher's own ACRO tables: counted as published where their cells can be read.

A table is read when its row and column names are columns the session has seen as groups, and every number in it is
the count (or the mean of a known variable) of exactly those people. Nothing is guessed: a table that does not match is
listed as not checked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..facts.linked import PrintedCell
from ..facts.people import MISSING, Grouping, Ints, label_text

if TYPE_CHECKING:
    from ..acro_session import DeltabSession

_ALL = "All"  # ACRO's margins


def add_foreign(session: DeltabSession) -> None:
    """Read every ACRO record that is not ours; done afresh each time, so removed records no longer count."""
    for name in session.state.foreign:
        session.state.linked.retract(name)
    session.state.foreign.clear()
    ours = {entry.uid for entry in session.entries}
    for uid, record in session.acro.results.results.items():
        if uid in ours:
            continue
        cells, suppressed = _read(session, uid, record)
        if cells:
            session.state.linked.publish(cells, suppressed, ())
            session.state.foreign.append(cells[0].output)
        else:
            session.not_checked.append(f"ACRO record {uid}: its cells could not be matched with known groups")


def _read(session: DeltabSession, uid: str, record: Any) -> tuple[list[PrintedCell], list[str]]:
    frames = [item for item in record.output if hasattr(item, "columns")]
    if len(frames) != 1 or record.output_type not in ("table", "tabular"):
        return [], []
    frame = frames[0]
    if getattr(frame.index, "nlevels", 1) != 1 or getattr(frame.columns, "nlevels", 1) != 1:
        return [], []
    rows = _members(session, frame.index.name, frame.index)
    columns: list[tuple[str, Ints | None]] = list(_members(session, frame.columns.name, frame.columns) or ())
    if not columns and frame.shape[1] == 1:
        columns = [(str(frame.columns[0]), None)]
    if rows is None or not columns:
        return [], []
    cells: list[PrintedCell] = []
    gone: list[str] = []
    for i, (row, people) in enumerate(rows):
        for j, (column, others) in enumerate(columns):
            members = people if others is None else np.intersect1d(people, others)
            key = row if others is None else f"{row} × {column}"
            value = frame.iat[i, j]
            found = _match(session, value, members)
            if found is None:
                return [], []
            variable, statistic, shown = found
            role = "margin" if _ALL in (row, column) else "interior"
            cells.append(PrintedCell(f"ACRO {uid}", key, members, role, variable, statistic))
            if not shown:
                gone.append(key)
    return cells, gone


def _members(session: DeltabSession, name: Any, labels: Any) -> list[tuple[str, Ints]] | None:
    """(label, people) for each label of an axis that the session knows as a grouping."""
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
        elif text == _ALL:
            out.append((_ALL, np.arange(grouping.codes.size)))
        else:
            return None
    return out


def _match(session: DeltabSession, value: Any, members: Ints) -> tuple[str | None, str | None, bool] | None:
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
        if finite.size and math.isclose(float(finite.mean()), number, rel_tol=1e-9, abs_tol=1e-12):
            return name, "mean", True
        if number == finite.size:
            return name, None, True
    return None


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
