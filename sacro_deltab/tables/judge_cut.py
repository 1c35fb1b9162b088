"""What the judge's refusals say: which of the cells published have to go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .attack import audit_pattern, refused
from .audits import SetAudit
from .engine import Engine, Impossible
from .master import Pool
from .released import release
from .witness import Witness

REFUSALS = 3  # patterns of a large system that the judge may refuse, and of a larger table without a cut being made


@dataclass(frozen=True)
class Verdict:
    """What the judge says of a pattern; `exposed`: primary cells that are known too well. `audit`: of large systems."""

    holds: bool
    exposed: tuple[str, ...]
    audit: SetAudit | None = None


class Judge:
    """The judge of one run of `protect`. The last answer is kept; refusals become cuts."""

    def __init__(self, engine: Engine) -> None:
        self.e = engine
        self.refused = 0
        self._last: tuple[frozenset[str], Verdict] | None = None

    def ask(self, pattern: frozenset[str]) -> Verdict:
        """Whether one pattern meets the requirement. A large system is attacked once, wholly."""
        if self._last is None or self._last[0] != pattern:
            e = self.e
            if e.large:
                audit = audit_pattern(e.problem, pattern)
                verdict = Verdict(audit.meets(e.requirement), audit.exposed(e.requirement, e.problem.primary), audit)
            else:
                exposed = refused(e.problem, pattern, e.requirement)
                verdict = Verdict(exposed is None, exposed or ())
            self._last = (pattern, verdict)
        return self._last[1]

    def cut(self, pool: Pool, chosen: frozenset[int]) -> bool:
        """Add cuts that `chosen`, which the judge refuses, does not meet; False: of a large system nothing is learned
        any more.

        Raises
        ------
        Impossible
            Nothing is left to withhold.
        """
        self.refused += 1
        pattern = self.e.pattern(chosen)
        verdict = self.ask(pattern)
        if (judged := verdict.audit) is not None:
            outer = judged.relaxed or judged.mean_outer or (judged.expert is not None and judged.expert.outer)
            return bool(outer) and self.refused <= REFUSALS and self._by_room(pool, chosen, verdict.exposed)
        if not self._by_row(pool, pattern, verdict.exposed):
            self._by_halves(pool, chosen, verdict.exposed)
        return True

    def _cut_of(self, witness: Witness, cell: str) -> tuple[int, ...] | None:
        """Candidates whose printed numbers stop a cell from being anything else; None where nothing stops it."""
        policy, group = self.e.problem.policy, witness.seen.targets[cell]
        interval = self.e.requirement == "interval"
        people = max(1.0, policy.interval_n) if interval else 1.0
        room = witness.n_room(group, people)
        if room.width >= people:
            if not interval or self.e.problem.kind != "means" or witness.people_of(group) == 0:
                return None
            room = witness.mean_room(group, policy.interval_years)
            if room.width >= policy.interval_years - 1e-9:
                return None
        e = self.e
        return tuple(j for j, g in enumerate(e.candidates) if room.tight.intersection(e.groups[g].cells))

    def _by_room(self, pool: Pool, chosen: frozenset[int], exposed: Sequence[str]) -> bool:
        """Large systems: what stops a second table that is far enough away, until there is one for every cell. A whole
        audit then judges the pattern; here only the cells it named are looked at."""
        e, known = self.e, len(pool.cuts)
        for again in range(e.limits.judge_calls):
            witness = self._witness(e.pattern(chosen))
            found = [(cell, self._cut_of(witness, cell)) for cell in exposed]
            cuts = [cut for _, cut in found if cut is not None]
            if not again and 2 * len(cuts) < len(exposed):  # fractions of people hide why most of them are known
                return False
            if not all(cuts):
                raise Impossible("what must be published reveals a withheld cell")
            if not sum(pool.add(cut, judged=True) for cut in cuts):
                break
            exposed = [cell for cell, cut in found if cut is not None]
            chosen = pool.hit(chosen, e.count)
        return len(pool.cuts) > known

    def _by_row(self, pool: Pool, pattern: frozenset[str], exposed: Sequence[str]) -> bool:
        """The same for one pattern, each cut confirmed by the judge: its cells alone, printed, are refused."""
        e, known = self.e, len(pool.cuts)
        witness = self._witness(pattern)
        for cell in exposed[: e.limits.judge_calls]:
            cut = self._cut_of(witness, cell)
            if cut and self._refuses(pool, cut, [cell]):
                pool.add(cut, judged=True)
        return len(pool.cuts) > known

    def _by_halves(self, pool: Pool, chosen: frozenset[int], exposed: Sequence[str]) -> None:
        """Publishing more never makes a pattern safer: of the cells published here one must go. The more can be
        withheld as well without making it safe, the stronger that cut."""
        e = self.e
        rest = sorted(set(range(pool.k)) - chosen)
        if not rest:
            raise Impossible("withholding everything is still not enough")
        size, asked, most = len(rest) // 2, 0, e.limits.judge_calls
        while size:
            start = 0
            while start < len(rest) and size < len(rest) and asked < most:
                kept = rest[:start] + rest[start + size :]
                asked += 1
                if self._refuses(pool, kept, exposed):
                    rest = kept
                else:
                    start += size
            size //= 2
        pool.add(rest, judged=True)

    def _refuses(self, pool: Pool, published: Sequence[int], exposed: Sequence[str]) -> bool:
        """Whether printing nothing but these candidates gives the exposed cells (or a small group) away."""
        pattern = self.e.pattern(frozenset(range(pool.k)) - set(published))
        return refused(self.e.problem, pattern, self.e.requirement, exposed or None) is not None

    def _witness(self, pattern: frozenset[str]) -> Witness:
        return Witness(release(self.e.problem, pattern), self.e.problem.atoms, self.e.problem.identities)
