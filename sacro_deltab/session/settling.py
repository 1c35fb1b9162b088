"""Bring the outputs of a session to what its plan says: other cells marked, one out, another in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..kinds.plots import PLOT
from ..outputs.parameters import GIVE_DELTAS
from .entries import Candidate, Entry
from .planning import Outcome, Planner
from .plots import plot_candidate
from .recording import entry_of, judge, revise, with_weights

if TYPE_CHECKING:
    from .core import SessionCore

AGAIN = "the cells of this session's outputs were chosen again together"


def needs_plan(session: SessionCore) -> bool:
    """Whether anything of the session is withheld: then what came first may have decided."""
    held = session.state.wanted
    weights = session.state.weights_out or any(e.type in GIVE_DELTAS for e in session.entries)
    told = weights and any(trace.sums for trace in session.state.traces)
    marked = any(e.name in held and (e.suppressed or e.kept_inside) for e in session.entries)
    return len(held) > 1 and (marked or told)


def settle(session: SessionCore) -> None:
    """Judge everything that the session was asked for together, and change what has to be."""
    held = session.state.wanted
    held |= {name: with_weights(session, candidate) for name, candidate in held.items()}
    wanted = {e.name: held[e.name] for e in session.entries if e.name in held}
    planner = Planner.of(session, wanted)
    top = planner.best()
    linked = session.state.linked
    for name in wanted:
        linked.retract(name)
    for name in planner.alone:
        if name in top.names:
            judged, candidate = top.judged[name], wanted[name]
            linked.publish(candidate.cells, judged.suppressed, judged.complementary, candidate.moments)
    changed = [name for name in wanted if _apply(session, planner, top, name)]
    _redraw(session, changed)


def hypothetical(session: SessionCore, candidate: Candidate, entry: Entry) -> Entry:
    """A previewed output that would not leave beside the others as they stand: what it would be were it asked for."""
    name = candidate.document.name
    top = Planner.of(session, {**session.state.wanted, name: candidate}).best()
    if name not in top.names:
        return entry
    return entry_of(session, candidate, top.judged[name], (AGAIN, *top.attacked.pairs))


def _apply(session: SessionCore, planner: Planner, top: Outcome, name: str) -> bool:
    """Make one entry what the plan says; whether it is another than before."""
    entry, candidate = session.find(name), planner.wanted[name]
    if name in top.names:
        judged = top.judged[name]
        if entry.document == judged.document and entry.suppressed == tuple(sorted(judged.suppressed)):
            return False
        revise(session, entry, candidate, judged, (AGAIN, *top.attacked.pairs))
        return True
    judged, notes = judge(session, candidate)
    if name in planner.eligible and judged.document is None:
        notes = tuple(dict.fromkeys((*notes, *planner.against(name, top))))
    if judged.document is not None:
        session.state.linked.publish(candidate.cells, judged.suppressed, judged.complementary, candidate.moments)
    if entry.document == judged.document and entry.notes_inside == notes:
        return False
    revise(session, entry, candidate, judged, notes)
    return True


def _redraw(session: SessionCore, changed: list[str]) -> None:
    """Plots of what has changed: drawn again, or gone with the numbers."""
    for plot in [e for e in session.entries if e.made_of in changed and e.type == PLOT]:
        source = session.find(str(plot.made_of))
        if source.document is None:
            session.live.results.results.pop(plot.name, None)
            session.entries.remove(plot)
            session.went_along.add(plot.name)
            session.journal.write("drop", {"name": plot.name})
            continue
        candidate = plot_candidate(session, source, plot.title)
        document = replace(candidate.document, name=plot.name)
        facts = replace(candidate.facts, output_name=plot.name)
        drawn = replace(candidate, document=document, facts=facts)
        revise(session, plot, drawn, *judge(session, drawn))
