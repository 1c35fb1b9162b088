"""All cells of a session as one table problem: what is printed, over whom, and what a reader can work out.

Every published number over a group of people is a cell: rows of group tables, count tables, whole-cohort means and
Ns, the researcher's own ACRO tables where they can be read, and earlier releases. People are positions in the
session's register; they never leave this module except as atoms (groups with a count and a sum) of a problem that
stays inside the TRE.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..tables import Problem, TablePolicy, audit_pattern
from ..tables.audits import SetAudit
from ..tables.solver import Contradiction
from .atoms import table_problem
from .margins import Margin, margins
from .numbers import Earlier, Moment, PrintedCell
from .people import Floats, Ints
from .sums import Sums

KEPT = 6  # problems and audits remembered


@dataclass(frozen=True)
class Verdict:
    """What one audit found (inside view): suppressed cells that fall, and a small group that can be derived."""

    fallen: frozenset[str]
    small_group: bool

    @property
    def safe(self) -> bool:
        """Nothing can be worked out."""
        return not self.fallen and not self.small_group


@dataclass
class LinkedTables:
    """The cells of a session, in the order they were added. Mutable; one per session."""

    policy: TablePolicy
    values: dict[str, Floats] = field(default_factory=dict)
    cells: dict[str, PrintedCell] = field(default_factory=dict)
    suppressed: set[str] = field(default_factory=set)
    complementary: set[str] = field(default_factory=set)
    ages: Callable[[], Floats | None] | None = None  # years of the register's people, where they are known
    training: list[Ints] = field(default_factory=list)  # people known to have been trained on, besides what is found
    moments: dict[str, tuple[Moment, ...]] = field(default_factory=dict)  # what outputs without cells tell, by output
    earlier: list[Earlier] = field(default_factory=list)  # … and what earlier sessions did
    version: int = 0  # of the cells
    _built: list[tuple[Any, Any, Floats | None, Problem]] = field(default_factory=list)  # the last problems
    _judged: list[tuple[Problem, frozenset[str], Verdict]] = field(default_factory=list)  # … and audits

    def publish(
        self,
        cells: Sequence[PrintedCell],
        suppressed: Iterable[str],
        complementary: Iterable[str],
        moments: Sequence[Moment] = (),
    ) -> None:
        """Add the numbers of an accepted output; `suppressed` and `complementary` are row keys."""
        self.version += 1
        if moments:
            self.moments[moments[0].output] = tuple(moments)
        gone, extra = set(suppressed), set(complementary)
        for cell in cells:
            self.cells[cell.id] = cell
            if cell.key in gone:
                self.suppressed.add(cell.id)
            if cell.key in extra:
                self.complementary.add(cell.id)

    def retract(self, output: str) -> None:
        """Forget every cell of one output: it is no longer asked to leave."""
        self.version += 1
        self.moments.pop(output, None)
        gone = [name for name, cell in self.cells.items() if cell.output == output]
        for name in gone:
            del self.cells[name]
        self.suppressed.difference_update(gone)
        self.complementary.difference_update(gone)

    def safe_without(self, output: str) -> bool:
        """Whether everything printed would be safe were one output not printed."""
        names: list[str | None] = [*self.variables()] or [None]
        gone = frozenset(self.suppressed - self.complementary)
        if not all(self.verdict(v, (), gone, without=output).safe for v in names):
            return False
        return not self.sums(without=output).small(self.policy.min_n)

    def without(self, outputs: Collection[str]) -> LinkedTables:
        """The same but for some outputs."""
        out = replace(self, cells={}, suppressed=set(), complementary=set(), moments={}, _built=[], _judged=[])
        out.cells = {name: cell for name, cell in self.cells.items() if cell.output not in outputs}
        out.suppressed, out.complementary = self.suppressed & out.cells.keys(), self.complementary & out.cells.keys()
        out.moments = {name: told for name, told in self.moments.items() if name not in outputs}
        return out

    def sums(
        self,
        cells: Sequence[PrintedCell] = (),
        moments: Sequence[Moment] = (),
        gone: frozenset[str] = frozenset(),
        *,
        without: str | None = None,
    ) -> Sums:
        """Every sum that is told, with those of a candidate added; those of a table's own variable are left to its
        problem, which has them all."""
        own = {*self.variables(), *(c.variable for c in cells if c.statistic is not None)}
        found = Sums()
        for cell in (*self.cells.values(), *cells):
            hidden = cell.id in gone or cell.id in self.suppressed
            if cell.variable is not None and cell.statistic == "sd" and not hidden and cell.output != without:
                found.add((cell.variable, cell.variable), cell.output, cell.members)
        for moment in (*(m for told in self.moments.values() for m in told), *moments):
            alone = len(moment.variables) == 1 and moment.variables[0] in own
            if moment.exact and moment.output != without and not alone:
                found.add(moment.variables, moment.output, moment.members)
        for variables in list(found.told):
            for old in self.earlier:
                if old.about(variables, self.values):
                    found.add(variables, old.output, old.members)
        return found

    def live(self) -> set[str]:
        """Variables that something printed is about."""
        printed = {c.variable for c in self.cells.values() if c.variable is not None}
        return printed | {name for told in self.moments.values() for m in told for name in m.variables}

    def _told(self, variable: str | None, moments: Sequence[Moment], without: str | None) -> list[PrintedCell]:
        """Sums of a table's variable that outputs without cells tell, as cells that nobody can withhold."""
        out: dict[str, PrintedCell] = {}
        for moment in (*(m for told in self.moments.values() for m in told), *moments):
            if moment.variables == (variable,) and moment.exact and moment.output != without:
                key = moment.label if f"{moment.output}|{moment.label}" not in out else f"{moment.label} #{len(out)}"
                cell = PrintedCell(
                    moment.output, key, moment.members, "grand", variable, "mean", shows_n=moment.shows_n
                )
                out[cell.id] = cell
        for i, old in enumerate(self.earlier):
            if variable is not None and old.kind == "features" and old.about((variable,), self.values):
                cell = PrintedCell(old.output, f"feature {i}", old.members, "grand", variable, "mean", shows_n=False)
                out[cell.id] = cell
        return list(out.values())

    def variables(self) -> list[str]:
        """Variables whose statistics are printed, most cells first; counts alone give one nameless entry."""
        tally: dict[str, int] = {}
        for cell in self.cells.values():
            if cell.variable is not None and cell.statistic is not None:
                tally[cell.variable] = tally.get(cell.variable, 0) + 1
        return sorted(tally, key=lambda v: (-tally[v], v))

    def problem(
        self,
        variable: str | None,
        candidate: Sequence[PrintedCell] = (),
        *,
        moments: Sequence[Moment] = (),
        pinned: frozenset[str] = frozenset(),
        without: str | None = None,
        primary: Iterable[str] = (),
        fixed: bool = True,
    ) -> Problem | None:
        """The problem of one variable: every N, and the statistics of that variable. None when nothing is printed.

        Complementary cells of earlier outputs are not published and need no protection of their own, so they are
        left out; earlier primary cells stay in as suppressed cells. `without` leaves one output out.
        """
        cells = [
            c for c in self.cells.values() if c.output != without and (c.id not in self.complementary or not fixed)
        ]
        cells += [c for c in candidate if c.output != without]
        told = self._told(variable, moments, without)
        cells = [*self._with_sds(variable, cells), *told]
        if not cells:
            return None
        values = self.values.get(variable) if variable else None
        forced = frozenset({*primary, *(self.suppressed - self.complementary)} & {c.id for c in cells})
        with_ages = self.ages is not None and self.ages() is not None
        held = (*candidate, *moments)
        key = (
            self.version,
            variable,
            tuple(map(id, held)),
            pinned,
            without,
            forced,
            fixed,
            len(self.training),
            with_ages,
        )
        for known, _, array, problem in self._built:
            if known == key and array is values:
                return problem

        ids = frozenset(c.id for c in cells)
        built = table_problem(
            cells,
            values,
            variable,
            self.policy,
            self.known_sums(variable, cells),
            must_publish=frozenset(
                ids & (self.cells.keys() - self.suppressed) | {c.id for c in told} | pinned if fixed else ()
            ),
            primary=forced,
            suppressed=frozenset(self.suppressed & ids),
        )
        # the candidate's cells are held so that their ids are not given to others
        self._built = [*self._built[1 - KEPT :], (key, held, values, built)]
        return built

    def _with_sds(self, variable: str | None, cells: list[PrintedCell]) -> list[PrintedCell]:
        """SDs add up like means do (their squares): beside an SD table, whose cells print N, the SD of everybody says
        as much as if N stood beside it."""
        if not any(c.statistic == "sd" and c.variable == variable and c.shows_n for c in cells):
            return cells
        return [replace(c, shows_n=True) if c.statistic == "sd" and c.variable == variable else c for c in cells]

    def verdict(
        self, variable: str | None, candidate: Sequence[PrintedCell], gone: frozenset[str], **kw: Any
    ) -> Verdict:
        """Audit everything printed with `gone` (cell ids) marked, for one variable."""

        problem = self.problem(variable, candidate, **kw)
        if problem is None:
            return Verdict(frozenset(), False)
        pattern = self.pattern(problem, gone)
        for judged, known, verdict in self._judged:
            if judged is problem and known == pattern:
                return verdict
        try:
            return self.judged(problem, audit_pattern(problem, pattern))
        except Contradiction:  # a number is printed that the rule a reader believes in does not allow
            return Verdict(frozenset(c.id for c in candidate), True)

    def pattern(self, problem: Problem, gone: frozenset[str]) -> frozenset[str]:
        """Cells of a problem that are withheld when `gone` are as well."""
        return frozenset(((self.suppressed - self.complementary) | gone) & problem.cells.keys())

    def judged(self, problem: Problem, found: SetAudit) -> Verdict:
        """What an audit says, remembered: the same cells are often asked about again at once."""
        union = found.smallest_derivable_union
        small = union is not None and 0 < union.n < self.policy.min_n
        fallen = {*found.exactly_disclosed, *found.unproved} & set(problem.primary) | {*found.narrow, *found.unprinted}
        verdict = Verdict(frozenset(fallen), small or found.expert_union_small)
        self._judged = [*self._judged[1 - KEPT :], (problem, found.suppressed, verdict)]
        return verdict

    def known_sums(self, variable: str | None, cells: Sequence[PrintedCell]) -> list[Margin]:
        """What everybody knows this variable to add up to, where it is the delta of a model's own training people."""
        if variable is None or not any(c.variable == variable and c.statistic == "mean" for c in cells):
            return []
        ages = None if self.ages is None or self.policy.value_bounds is None else self.ages()
        return margins(self.values[variable], ages, cells, self.training)
