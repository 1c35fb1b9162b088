"""Judging the outputs of a session again, with what people say by now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..kinds.plots import PLOT
from ..rules.facts import Fact, Facts, Provider
from .common import stated
from .entries import Candidate, Entries, Entry
from .recording import judge, revise
from .settling import needs_plan, settle

if TYPE_CHECKING:
    from .core import SessionCore

_SAID = (Provider.DECLARED, Provider.ATTESTED)


def rejudge(session: SessionCore) -> list[Entry]:
    """See `DeltabSession.rejudge`."""
    for entry in list(session.entries):
        if entry.type == PLOT or entry.raw is None:
            continue  # drawn of an output, whose verdict it has
        candidate = _candidate(session, entry)
        session.state.linked.retract(entry.name)
        judged, notes = judge(session, candidate)
        if judged.document is not None:
            session.state.linked.publish(candidate.cells, judged.suppressed, judged.complementary, candidate.moments)
        if entry.name in session.state.wanted:
            session.state.wanted[entry.name] = candidate
        revise(session, entry, candidate, judged, notes)
    if needs_plan(session):
        settle(session)
    return Entries(session.entries)


def _candidate(session: SessionCore, entry: Entry) -> Candidate:
    """The output as it was asked for, with the facts that people say now: what was measured stays."""
    assert entry.raw is not None
    receipt = session.budget.ledger.receipt(entry.spends[0]) if entry.spends else None
    plain = Candidate(
        entry.raw, entry.facts, privacy=entry.privacy, receipt=receipt, n=entry.n, made_of=entry.made_of,
        trace=next((t for t in session.state.traces if t.output == entry.name), None),
    )  # fmt: skip
    known = session.state.wanted.get(entry.name, plain)
    now = {name: fact for name, fact in stated(session, entry.name, entry.type).items() if _may_change(entry, name)}
    facts = Facts(entry.name, entry.type, {**entry.facts.facts, **now}, entry.facts.parts)
    return replace(known, facts=facts, receipt=receipt, privacy=entry.privacy)


def _may_change(entry: Entry, name: str) -> bool:
    """What was measured, or read from the ledger, nobody's word replaces; nor where the components come from."""
    fact: Fact | None = entry.facts.facts.get(name)
    return name != "pca.origin" and (fact is None or fact.by in _SAID)
