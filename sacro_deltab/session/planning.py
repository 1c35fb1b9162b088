"""What of everything asked for can leave together: one answer, whatever came first.

Nothing of a session has left before `finalise`, so the cells of all its outputs are chosen together, beside what left
in earlier sessions. Where not all outputs can leave, those are taken that let most leave, then those that print most
numbers, then those about most people; what is left of a tie is settled by the outputs' content, never by their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..base.errors import SacroDeltabError
from ..judging.judge import CELL_KIND, Judged, judge_output
from ..judging.shape import shaped
from ..measure.context import Attacked, Context
from ..measure.linked import LinkedTables
from ..measure.table_audit import TableAudit
from ..outputs import is_mark
from ..rules import RuleSet, Waiver
from .entries import Candidate

if TYPE_CHECKING:
    from .core import SessionCore

MOST_TRIES = 240  # sets of outputs that are judged in search of the best


@dataclass
class _Told:
    """A table engine whose answers are known; it keeps which cells the rules asked it about."""

    chosen: frozenset[str] = frozenset()
    found: TableAudit = field(default_factory=lambda: TableAudit(0, 0))
    primary: frozenset[str] = frozenset()

    def protect(self, primary: frozenset[str]) -> frozenset[str]:
        self.primary = primary
        return self.chosen - primary

    def audit(self, suppressed: frozenset[str]) -> TableAudit:  # noqa: ARG002 (the judge's protocol)
        return self.found


@dataclass(frozen=True)
class Outcome:
    """What becomes of a set of outputs that are asked for together."""

    names: frozenset[str]
    judged: Mapping[str, Judged]
    attacked: Attacked

    @property
    def leaving(self) -> frozenset[str]:
        """Those of them that leave."""
        return frozenset(name for name, judged in self.judged.items() if judged.document is not None)

    @property
    def whole(self) -> bool:
        """Whether all leave."""
        return self.leaving == self.names

    def shown(self) -> int:
        """Rows of numbers that leave."""
        documents = (judged.document for judged in self.judged.values())
        return sum(
            not any(map(is_mark, row[1:])) for document in documents if document is not None for row in document.rows
        )


@dataclass
class Planner:
    """The outputs that a session was asked for, judged in sets."""

    ruleset: RuleSet
    linked: LinkedTables
    wanted: Mapping[str, Candidate]
    waivers: Sequence[Waiver] = ()
    base: LinkedTables = field(init=False)  # what is outside already
    alone: dict[str, tuple[frozenset[str], Judged]] = field(init=False)  # primary rows, and the rules' own verdict
    _known: dict[frozenset[str], Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base = self.linked.without(self.wanted.keys())
        self.alone = {}
        for name, candidate in sorted(self.wanted.items(), key=lambda item: _content(item[1])):
            told = _Told()
            judged = self._judge(candidate, told)
            self.alone[name] = (told.primary, judged)

    @classmethod
    def of(cls, session: SessionCore, wanted: Mapping[str, Candidate]) -> Planner:
        """The planner of a session."""
        return cls(session.ruleset, session.state.linked, wanted, session.waivers)

    @property
    def eligible(self) -> list[str]:
        """Outputs that would leave if nobody else's numbers were known, in an order of their content."""
        return [name for name, (_, judged) in self.alone.items() if judged.document is not None]

    def _judge(self, candidate: Candidate, table: _Told) -> Judged:
        judged = judge_output(self.ruleset, candidate.facts, candidate.document, table=table, waivers=self.waivers)
        return shaped(self.ruleset, judged)

    def judge(self, names: Iterable[str]) -> Outcome:
        """Choose cells for some outputs together, attack them together, and let the rules judge each."""
        asked = frozenset(names)
        if asked not in self._known:
            self._known[asked] = self._judged_together(asked)
        return self._known[asked]

    def _judged_together(self, asked: frozenset[str]) -> Outcome:
        mine = [self.wanted[name] for name in self.alone if name in asked]
        cells = tuple(cell for candidate in mine for cell in candidate.cells)
        told = tuple(moment for candidate in mine for moment in candidate.moments)
        pinned = frozenset(cell.id for candidate in mine if not _is_table(candidate) for cell in candidate.cells)
        context = Context(self.base, cells, told, pinned=pinned)
        primary = {f"{name}|{key}" for name in asked for key in self.alone[name][0]}
        try:
            gone = context.choose(frozenset(primary)) - pinned
            attacked = context.attack(gone)
        except SacroDeltabError:  # could not be settled: not together
            gone, attacked = frozenset(cell.id for cell in cells), Attacked(frozenset(), 1, ())
        judged = {}
        for candidate in mine:
            keys = frozenset(cell.key for cell in candidate.cells if cell.id in gone)
            found = attacked.audit({cell.id for cell in candidate.cells})
            judged[candidate.document.name] = self._judge(candidate, _Told(keys, found))
        return Outcome(asked, judged, attacked)

    def best(self) -> Outcome:
        """The set that lets most leave."""
        outcome = self.judge(self.eligible)
        if outcome.whole:
            return outcome
        found = [self._grown([], order) for order in self._orders()]
        shrunk = outcome
        while not shrunk.whole and shrunk.leaving:
            shrunk = self.judge(shrunk.leaving)
        if shrunk.whole:
            found.append(self._grown(shrunk.names, self.eligible))
        top = max(found, key=self._worth)
        for name in [name for name in self.eligible if name not in top.names]:  # begin with one that was left out
            rest = [other for other in self.eligible if other in top.names]
            top = max((top, self._grown([], [name, *rest, *self.eligible])), key=self._worth)
        return top

    def _grown(self, start: Iterable[str], order: Sequence[str]) -> Outcome:
        """Take one output after another as long as all taken leave."""
        taken = self.judge(start)
        for name in order:
            if name not in taken.names and len(self._known) < MOST_TRIES:
                more = self.judge({*taken.names, name})
                if more.whole:
                    taken = more
        return taken

    def _orders(self) -> Iterator[list[str]]:
        people = {name: candidate.n or 0 for name, candidate in self.wanted.items()}
        rows = {name: len(candidate.document.rows) for name, candidate in self.wanted.items()}
        yield sorted(self.eligible, key=lambda name: -rows[name])
        yield sorted(self.eligible, key=lambda name: rows[name])
        yield sorted(self.eligible, key=lambda name: -people[name])

    def _worth(self, outcome: Outcome) -> tuple[object, ...]:
        people = sum(self.wanted[name].n or 0 for name in outcome.names)
        order = list(self.alone)
        return (len(outcome.names), outcome.shown(), people, [-order.index(n) for n in order if n in outcome.names])

    def against(self, name: str, top: Outcome) -> list[str]:
        """Why an output stays inside though the rules have nothing against it: which others stand against it, and
        what would have let both leave."""
        out = []
        for other in sorted(top.names):
            if self.judge({*top.names - {other}, name}).whole:
                out.append(f"{other} stands against {name}: without it, {name} would leave")
        for release in sorted({cell.output for cell in self.base.cells.values()}):
            out += self._had_it_waited(name, release)
        return out[:6]

    def _had_it_waited(self, name: str, release: str) -> list[str]:
        """About one earlier release: whether it alone stands in the way, and the plan that would have let both out."""
        candidate, (primary, _) = self.wanted[name], self.alone[name]
        before = tuple(cell for cell in self.base.cells.values() if cell.output == release)
        rest = self.base.without({release})
        ids = frozenset(f"{name}|{key}" for key in primary)
        pinned = frozenset() if _is_table(candidate) else frozenset(cell.id for cell in candidate.cells)
        try:
            alone = Context(rest, candidate.cells, candidate.moments, pinned=pinned)
            if not alone.attack(alone.choose(ids)).safe:
                return []
            both = Context(rest, (*before, *candidate.cells), candidate.moments, pinned=pinned)
            gone = both.choose(ids)
            safe = both.attack(gone).safe
        except SacroDeltabError:
            return []
        more = [cell.key for cell in before if cell.id in gone]
        together = f": asked for in one session, both would have left with {', '.join(more)} of {release} withheld"
        return [f"{release} left before and stands against {name}" + (together if safe and more else "")]


def _is_table(candidate: Candidate) -> bool:
    return any(part.kind == CELL_KIND for part in candidate.facts.parts)


def _content(candidate: Candidate) -> str:
    """What an output says and about whom, whatever it is called and whenever it was asked for."""
    document = candidate.document
    digest = hashlib.sha256(repr((document.type, document.columns, document.rows)).encode())
    for group in (*candidate.cells, *candidate.moments):
        digest.update(group.members.tobytes())
    return digest.hexdigest()
