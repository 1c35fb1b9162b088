"""Earlier releases of the same people, from the ledger: printed cells for the attack, gaps for the rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kinds.registry import KINDS
from ..measure.numbers import Earlier, PrintedCell, Trace, labels_of, member_sets
from ..outputs import OutputDocument, is_mark
from ..outputs.parameters import GIVE_DELTAS
from ..rules.facts import Fact, FactValue, Provider
from .entries import Candidate, Entry
from .nearness import Nearness

if TYPE_CHECKING:
    from .core import SessionCore

MEANS = ("mean_delta", "mean delta")  # columns and rows that hold one
_WHOLE = re.compile(r"all( \d+)?")  # key of the people behind an output without cells
PUBLIC_N = "the public N"  # of the registered roster, which a training under zero_out_N_public takes as told
UNCHECKED = "differences with earlier releases whose people the ledger does not know"
MOST_SETS = 40  # distinct sets of people of one output that the ledger remembers one by one


def load_earlier(session: SessionCore) -> None:
    """Put every earlier release whose people are known into the session's table problem, as published.

    Asked again at every step: another session on the same people may have released something since. Nothing is done
    where the ledger is as it was.
    """
    state, ledger = session.state, session.budget.ledger
    ids, head = state.ids, ledger.head
    state.first_head = state.first_head or head
    if head == state.history_head:
        return
    _know_public_n(session)
    state.weights_out = any(r.kind in GIVE_DELTAS for r in ledger.releases(session.cohort))
    if ids is None:
        return
    earlier = ledger.earlier_cells(session.cohort, ids)
    for name in {name for name, _, _ in state.earlier}:
        state.linked.retract(name)
    state.earlier, state.linked.earlier, cells = [], [], []
    for cell in earlier.cells:
        if cell.entry in state.own_releases or not any(value is not None for value in cell.published.values()):
            continue
        members = np.flatnonzero(np.frombuffer(cell.mask, dtype=np.uint8))
        name = f"release {cell.entry}: {cell.output}"
        state.earlier.append((name, cell, members))
        kind = KINDS.get(cell.kind)
        if kind is not None and kind.earlier:
            shown = {str(k): float(v) for k, v in cell.published.items() if isinstance(v, int | float)}
            state.linked.earlier.append(Earlier(name, kind.earlier, members, shown))
        if kind is None or kind.tells is None or not _WHOLE.fullmatch(cell.key):
            cells.append(PrintedCell(name, cell.key, members, "grand", printed=_mean_of(cell.published)))
    state.linked.publish(cells, (), ())
    state.history_head = head
    if earlier.unchecked and UNCHECKED not in session.not_checked:
        session.not_checked.append(UNCHECKED)


def _know_public_n(session: SessionCore) -> None:
    """Under zero_out_N_public the roster's N is a constant that every reader has, printed or not."""
    roster, linked = session.state.people, session.state.linked
    cell = None if roster is None else PrintedCell(PUBLIC_N, "N", np.arange(roster.n_people))
    if cell is not None and cell.id not in linked.cells and session.budget.n_is_public():
        linked.publish([cell], (), ())


def _mean_of(published: Mapping[str, Any]) -> float | None:
    """The mean delta that an earlier cell printed."""
    for label in MEANS:
        value = published.get(label)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def released_meanwhile(session: SessionCore) -> list[tuple[str, str]]:
    """(release, output) that are about nearly the same people, where the output was judged before the other left."""
    if session.budget.ledger.head == session.state.first_head:
        return []
    least = int(session.ruleset.parameters["min_n"])
    bad = []
    for entry in session.entries:
        fact = entry.facts.facts.get("linked_release.smallest_gap")
        if entry.kept_inside or (fact is not None and int(fact.value) < least):
            continue  # a person looks at it anyway
        printed = [c for c in session.state.linked.cells.values() if c.output == entry.name]
        trace = next((t for t in session.state.traces if t.output == entry.name), None)
        close = _close(session, list(_release_cells(session, printed, entry.n, None, trace)))
        bad += [(f"release {gap.entry}: {gap.output}", entry.name) for gap in close[:1]]
    return bad


def history_facts(session: SessionCore, candidate: Candidate, near: Nearness) -> dict[str, Fact]:
    """`linked_release.any` and, where there is one, the smallest gap to it (a query on the people; stays inside).

    Outputs of this session count like earlier releases. Other numbers of exactly the same people count as a gap of
    nobody: values may have been changed in between.
    """
    now = list(_release_cells(session, candidate.cells, candidate.n, None, candidate.trace))
    gap = session.budget.ledger.smallest_gap(session.cohort, now)
    known = [g for g in (gap, near.gap) if g is not None]
    for name in _other_numbers(session, candidate):
        near.notes.append(f"{name} and {candidate.document.name}: other numbers of the same people")
        known.append(0)
    if gap is not None and gap < int(session.ruleset.parameters["min_n"]):
        for name in sorted({f"release {g.entry}: {g.output}" for g in _close(session, now)})[:3]:
            near.notes.append(f"{name} and {candidate.document.name}: about nearly the same people")
    values: dict[str, FactValue] = {"linked_release.any": bool(known)}
    if known:
        values["linked_release.smallest_gap"] = int(min(known))
    return {name: Fact(name, value, Provider.LEDGER) for name, value in values.items()}


def _close(session: SessionCore, cells: Sequence[Any]) -> list[Any]:
    least = int(session.ruleset.parameters["min_n"])
    found = session.budget.ledger.gaps(session.cohort, list(cells))
    own = session.state.own_releases
    return [g for g in found if g.gap < least and (g.gap or not g.people_known) and g.entry not in own]


def _other_numbers(session: SessionCore, candidate: Candidate) -> list[str]:
    """Earlier releases of the same kind about exactly the same people that printed other numbers."""
    if not session.state.earlier or (candidate.privacy is not None):
        return []
    people: dict[str, Any] = {cell.key: cell.members for cell in candidate.cells}
    if candidate.trace is not None:
        whole = next(member_sets(candidate.trace), None)
        people["all"] = None if whole is None else whole[1]
    out = []
    for name, cell, members in session.state.earlier:
        mine = people.get(cell.key)
        years = cell.kind in KINDS and KINDS[cell.kind].in_years
        if not years or cell.kind != candidate.document.type or mine is None or not np.array_equal(mine, members):
            continue
        if cell.key == "all":
            rows = {str(row[0]): row[1] for row in candidate.document.rows}
            pairs = [(rows.get(label), value) for label, value in cell.published.items()]
        else:
            values = _row(candidate.document, cell.key)
            pairs = [(values.get(label), value) for label, value in cell.published.items() if label != "n"]
        if any(_differs(raw, shown) for raw, shown in pairs):
            out.append(name)
    return out


def _differs(raw: Any, shown: Any) -> bool:
    """Whether an unrounded number would not be printed as what was printed before (to 0.1 years)."""
    if not isinstance(raw, int | float) or not isinstance(shown, int | float):
        return False
    return abs(float(raw) - float(shown)) > 0.0500001


def record_releases(session: SessionCore, entries: Sequence[Entry], digests: dict[str, str]) -> None:
    """Write what leaves into the ledger's history, once for each output, in one step.

    The researcher's own ACRO tables leave as well: those whose cells could be read.
    """
    from ..ledger.releases import Leaving  # late: brings sqlalchemy

    leaving = []
    for entry in entries:
        if entry.kept_inside or entry.name in session.remembered:
            continue
        printed = [c for c in session.state.linked.cells.values() if c.output == entry.name]
        trace = next((t for t in session.state.traces if t.output == entry.name), None)
        cells = _release_cells(session, printed, entry.n, entry, trace)
        sha256 = digests.get(f"{entry.name}.json") or digests.get(f"{entry.name}.png")
        leaving.append(Leaving(entry.name, entry.type, cells, sha256))
    leaving += [
        Leaving(name, "acro_table", _foreign_cells(session, name))
        for name in session.state.foreign
        if name not in session.remembered
    ]
    if not leaving:
        return
    written = session.budget.ledger.record_releases(session.cohort, leaving, who=session.budget.who)
    session.state.own_releases |= {entry.seq for entry in written}
    session.remembered |= {one.output for one in leaving}


def _foreign_cells(session: SessionCore, name: str) -> list[Any]:
    from ..ledger import ReleaseCell  # late: brings sqlalchemy

    ids, linked = session.state.ids, session.state.linked
    return [
        ReleaseCell(
            cell.key,
            int(cell.members.size),
            None if ids is None else tuple(ids[int(i)] for i in cell.members),
            {"shown": None if cell.id in linked.suppressed else cell.statistic or "n"},
        )
        for cell in linked.cells.values()
        if cell.output == name
    ]


def _release_cells(
    session: SessionCore,
    cells: Sequence[PrintedCell],
    n: int | None,
    entry: Entry | None,
    trace: Trace | None,
) -> list[Any]:
    from ..ledger import ReleaseCell  # late: brings sqlalchemy

    ids = session.state.ids
    out = []
    for cell in cells:
        members = None if ids is None else tuple(ids[int(i)] for i in cell.members)
        out.append(ReleaseCell(cell.key, int(cell.members.size), members, _printed(entry, cell.key)))
    sets = [] if trace is None or ids is None else list(member_sets(trace))
    if len(sets) > MOST_SETS:
        sets = []
    if sets:
        assert ids is not None
        for key, people in sets:
            shown = _printed(entry, None)
            if trace is not None and not trace.percents:
                here = set(labels_of(trace, people))
                shown = {label: value for label, value in shown.items() if label in here}
            out.append(ReleaseCell(key, int(people.size), tuple(ids[int(i)] for i in people), shown))
    out += _told_parts(session, trace, [people for _, people in sets])
    if not sets and not cells and n is not None:
        roster = session.state.people
        everybody = ids is not None and roster is not None and n == roster.n_people
        out.append(ReleaseCell("all", int(n), tuple(ids) if everybody and ids is not None else None, {}))
    return out


def _told_parts(session: SessionCore, trace: Trace | None, whole: Sequence[Any]) -> list[Any]:
    """Groups that a statistic tells of besides its own people, such as those with the higher of two values."""
    from ..ledger import ReleaseCell  # late: brings sqlalchemy

    ids = session.state.ids
    if trace is None or ids is None:
        return []
    known = {people.tobytes() for people in whole}
    groups = {
        m.members.tobytes(): m.members
        for m in session.state.linked.moments.get(trace.output, ())
        if m.exact and len(m.variables) == 1 and m.members.tobytes() not in known
    }
    return [
        ReleaseCell(f"part {i + 1}", int(people.size), tuple(ids[int(j)] for j in people), {"sum": "told"})
        for i, people in enumerate([*groups.values()][:MOST_SETS])
    ]


def _printed(entry: Entry | None, key: str | None) -> dict[str, float | int | str | None]:
    """What left: one row by column, or with no key every row's first value by its name."""
    if entry is None or entry.document is None:
        return {}
    if key is None:
        places = [i for i, column in enumerate(entry.document.columns) if column.role == "value"]
        at = places[0] if places else 1
        return {str(row[0]): None if is_mark(row[at]) else row[at] for row in entry.document.rows}
    return {head: None if is_mark(value) else value for head, value in _row(entry.document, key).items()}


def _row(document: OutputDocument, key: str) -> dict[str, Any]:
    for row in document.rows:
        if row[0] == key:
            return dict(zip([column.name for column in document.columns[1:]], row[1:], strict=True))
    return {}
