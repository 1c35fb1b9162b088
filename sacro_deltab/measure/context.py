"""The judge's view of outputs that are not yet published: what must go, and what a reader would work out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ..tables import Problem, find_links, protect
from ..tables.released import release
from ..tables.solver import Contradiction
from ..tables.span import Span
from .linked import LinkedTables, Verdict
from .numbers import Moment, PrintedCell
from .table_audit import TableAudit


@dataclass(frozen=True)
class Attacked:
    """What an attack on everything printed found (inside view): cells that fall, and small groups that follow."""

    fallen: frozenset[str]
    groups: int
    pairs: tuple[str, ...]

    @property
    def safe(self) -> bool:
        """Nothing can be worked out."""
        return not self.fallen and not self.groups

    def audit(self, mine: Collection[str], notes: tuple[str, ...] = ()) -> TableAudit:
        """The same for one output with the cells `mine`."""
        pairs = tuple(dict.fromkeys((*notes, *self.pairs)))
        return TableAudit(len(self.fallen & set(mine)) + self.groups, len(self.fallen) + self.groups, pairs)


@dataclass(frozen=True)
class Context:
    """`sacro_deltab.judging.judge.TableContext` over a session's linked tables."""

    linked: LinkedTables
    candidate: tuple[PrintedCell, ...]
    moments: tuple[Moment, ...] = ()
    notes: list[str] = field(default_factory=list)
    pinned: frozenset[str] = frozenset()  # ids of cells that leave with their output or not at all

    def protect(self, primary: frozenset[str]) -> frozenset[str]:
        """Rows to suppress besides `primary`, with everything published before taken as it is."""
        gone = self.choose(frozenset(self._ids(primary)))
        return frozenset(cell.key for cell in self.candidate if cell.id in gone) - primary

    def choose(self, primary: frozenset[str]) -> frozenset[str]:
        """Ids of the candidate's cells to suppress, those of `primary` among them."""

        if not primary and not self.linked.cells and len({cell.output for cell in self.candidate}) < 2:
            return primary
        mine = frozenset(cell.id for cell in self.candidate)
        forced = primary
        for variable in self._variables():
            if not self._plainly_unsafe(variable, forced) and self._verdict(variable, forced).safe:
                continue
            if self.linked.cells:
                self.notes.extend(self._pairs(variable, forced))
            problem = self._problem(variable)
            if problem is not None and not forced <= set(problem.primary):
                problem = self._problem(variable, primary=forced)
            if problem is None:
                continue
            try:
                result = protect(problem, policy="interval")
            except Contradiction:
                return mine
            self.linked.judged(problem, result.audit)
            forced |= result.suppressed & mine
        return forced

    def audit(self, suppressed: frozenset[str]) -> TableAudit:
        """Attack what would be published, with everything that was published before."""
        found = self.attack(frozenset(self._ids(suppressed)))
        return found.audit({cell.id for cell in self.candidate}, tuple(self.notes))

    def attack(self, gone: frozenset[str]) -> Attacked:
        """What a reader works out with `gone` (ids) marked."""
        fallen: set[str] = set()
        small = False
        pairs: list[str] = []
        for variable in self._variables():
            verdict = self._verdict(variable, gone)
            fallen |= verdict.fallen
            small = small or verdict.small_group
            if not verdict.safe:
                pairs += self._pairs(variable, gone)
        touched = {m.variables for m in self.moments if m.exact} | {
            (c.variable, c.variable) for c in self.candidate if c.variable is not None and c.statistic == "sd"
        }
        sums = self.linked.sums(self.candidate, self.moments, gone).small(self.linked.policy.min_n, touched)
        pairs += [derived.sentence for derived in sums]
        return Attacked(frozenset(fallen), int(small) + len(sums), tuple(dict.fromkeys(pairs)))

    def _problem(self, variable: str | None, primary: Iterable[str] = ()) -> Problem | None:
        return self.linked.problem(variable, self.candidate, moments=self.moments, pinned=self.pinned, primary=primary)

    def _verdict(self, variable: str | None, gone: frozenset[str]) -> Verdict:
        return self.linked.verdict(variable, self.candidate, gone, moments=self.moments, pinned=self.pinned)

    def _plainly_unsafe(self, variable: str | None, gone: frozenset[str]) -> bool:
        """Whether algebra alone gives a small group away: no whole audit is needed to say that something must go."""

        problem = self._problem(variable)
        if problem is None or not self.linked.cells:
            return False
        seen = release(problem, self.linked.pattern(problem, gone))
        found = Span(seen.n_atoms, seen.rows, [a.n for a in problem.atoms]).smallest(problem.policy.min_n)
        return found is not None and 0 < found.n < problem.policy.min_n

    def _pairs(self, variable: str | None, gone: frozenset[str]) -> list[str]:
        """Which outputs give a small group away together, and which of them to drop."""

        problem = self._problem(variable)
        if problem is None:
            return []
        pattern = self.linked.pattern(problem, gone)
        return [link.outside for link in find_links(problem, pattern, limit=3)]

    def _ids(self, keys: Iterable[str]) -> list[str]:
        wanted = set(keys)
        return [cell.id for cell in self.candidate if cell.key in wanted]

    def _variables(self) -> list[str | None]:
        mine = {c.variable for c in self.candidate if c.statistic is not None}
        tables = set(self.linked.variables())
        mine |= {m.variables[0] for m in self.moments if len(m.variables) == 1 and m.variables[0] in tables}
        found: list[str | None] = [v for v in mine if v is not None]
        found += [v for v in self.linked.variables() if v not in mine]
        if not mine or not found:
            return found or [None]
        return found
