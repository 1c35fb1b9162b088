"""Earlier releases of the same people, from the ledger: printed cells for the attack, gaps for the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..facts.linked import PrintedCell
from ..facts.types import Fact, FactValue, Provider
from ..outputs.document import MARK
from .entries import Entry

if TYPE_CHECKING:
    from ..acro_session import DeltabSession


def load_earlier(session: DeltabSession) -> None:
    """Put every earlier release whose people are known into the session's table problem, as published."""
    ids = session.state.ids
    if ids is None:
        return
    earlier = session.budget.ledger.earlier_cells(session.cohort, ids)
    cells = []
    for cell in earlier.cells:
        if not any(value is not None for value in cell.published.values()):
            continue
        members = np.flatnonzero(np.frombuffer(cell.mask, dtype=np.uint8))
        cells.append(PrintedCell(f"release {cell.entry}: {cell.output}", cell.key, members, "grand"))
    session.state.linked.publish(cells, (), ())
    if earlier.unchecked:
        session.not_checked.append("differences with earlier releases whose people the ledger does not know")


def history_facts(session: DeltabSession, cells: Sequence[PrintedCell], n: int | None) -> dict[str, Fact]:
    """`linked_release.any` and, where there is one, the smallest gap to it (a query on the people; stays inside)."""
    gap = session.budget.ledger.smallest_gap(session.cohort, list(_release_cells(session, cells, n, None)))
    values: dict[str, FactValue] = {"linked_release.any": gap is not None}
    if gap is not None:
        values["linked_release.smallest_gap"] = int(gap)
    return {name: Fact(name, value, Provider.LEDGER) for name, value in values.items()}


def record_releases(session: DeltabSession, entries: Sequence[Entry], digests: dict[str, str]) -> None:
    """Write what leaves into the ledger's history, once for each output."""
    for entry in entries:
        if entry.kept_inside or entry.name in session.remembered:
            continue
        printed = [c for c in session.state.linked.cells.values() if c.output == entry.name]
        cells = list(_release_cells(session, printed, entry.n, entry))
        session.budget.ledger.record_release(
            session.cohort,
            entry.name,
            kind=entry.type,
            cells=cells,
            who=session.budget.who,
            sha256=digests.get(f"{entry.name}.json") or digests.get(f"{entry.name}.png"),
        )
        session.remembered.add(entry.name)


def _release_cells(
    session: DeltabSession, cells: Sequence[PrintedCell], n: int | None, entry: Entry | None
) -> list[Any]:
    from ..privacy.ledger import ReleaseCell

    ids = session.state.ids
    out = []
    for cell in cells:
        members = None if ids is None else tuple(ids[int(i)] for i in cell.members)
        out.append(ReleaseCell(cell.key, int(cell.members.size), members, _printed(entry, cell)))
    if not cells and n is not None:
        roster = session.state.people
        everybody = ids is not None and roster is not None and n == roster.n_people
        out.append(ReleaseCell("all", int(n), tuple(ids) if everybody and ids is not None else None, {}))
    return out


def _printed(entry: Entry | None, cell: PrintedCell) -> dict[str, float | int | str | None]:
    if entry is None or entry.document is None:
        return {}
    for row in entry.document.rows:
        if row[0] == cell.key:
            heads = [column.name for column in entry.document.columns[1:]]
            return {h: None if v == MARK else v for h, v in zip(heads, row[1:], strict=True)}
    return {}
