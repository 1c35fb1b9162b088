"""The judge: attacks a pattern with what would be released, and reports. Chooses nothing.

`protect` is a separate code path; whatever it proposes is judged here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

import numpy as np

from .audits import AuditReport, Expert, SetAudit
from .bounds import GroupBounds
from .components import Interval
from .identities import Identity
from .intervals import CountSystem
from .means import MeanInterval, MeanSystem
from .policy import is_primary_n
from .ratio import Printed
from .released import Released, breaks_rule, read_bounds, read_cells, release
from .shares import withhold
from .solver import Contradiction
from .span import Span
from .table import Problem
from .witness import Widths

T = TypeVar("T")


def audit_pattern(
    problem: Problem,
    suppressed: frozenset[str],
    name: str = "pattern",
    *,
    means: bool = True,
    about: Collection[str] | None = None,
) -> SetAudit:
    """Attack one pattern.

    Parameters
    ----------
    means
        False: leave the intervals of means out; whether a pattern is safe by the policy does not rest on them.
    about
        Cells whose intervals are worked out, those of means only as sharp as the verdict needs; default: every withheld
        cell, exactly. The primary ones settle every verdict.
    """
    suppressed = problem.pattern(suppressed)
    seen, counted = _read(problem, suppressed, about)
    n_intervals, relaxed = counted.interval, counted.relaxed
    sharp = about is None or bool(seen.squares)
    mean, outer = ({}, ()) if not means or problem.kind != "means" else _means(problem, seen, n_intervals, sharp)
    disclosed = tuple(sorted(c for c, (lo, hi) in n_intervals.items() if lo == hi))
    span = Span(seen.n_atoms, seen.rows, [a.n for a in problem.atoms])
    union = span.smallest(problem.policy.min_n)
    small = union is not None and is_primary_n(union.n, problem.policy.min_n, False)
    primary = set(problem.primary)
    expert = _expert(problem, seen, n_intervals, mean, outer, sharp) if means else None
    known = (mean, outer) if expert is None else (expert.mean_interval, expert.outer)
    nobody = dict.fromkeys((c for c in n_intervals if means and problem.kind == "means" and c not in known[0]), (0, 0))
    wide = tuple(c for c in relaxed if c not in nobody)
    widths = Widths(problem, seen, {**n_intervals, **nobody}, wide, counted.width, *known)
    hidden = sorted(primary & suppressed & n_intervals.keys())
    doubtful = set(relaxed) - set(disclosed) - set(counted.moving)
    unproved = tuple(c for c in hidden if c in doubtful and widths.people(c) < 1)
    safe_exact = not primary & {*disclosed, *unproved}
    return SetAudit(
        name,
        suppressed,
        n_intervals,
        mean,
        disclosed,
        union,
        () if union is None else problem.names(union.atoms),
        safe_exact,
        safe_exact and not small,
        withhold(problem, suppressed),
        tuple(c for c in hidden if not widths.enough(c)),
        tuple(sorted(primary - suppressed)),
        expert,
        span.proved,
        relaxed,
        outer,
        unproved,
    )


@dataclass(frozen=True)
class CountsRead:
    """Intervals of N; the cells of large systems whose interval is only a bound, those of them that are shown to be not
    exactly known all the same, and how far apart two tables in fractions of people are where that was worked out."""

    interval: dict[str, Interval]
    relaxed: tuple[str, ...]
    moving: tuple[str, ...]
    width: dict[str, float]


def _read(
    problem: Problem, suppressed: frozenset[str], about: Collection[str] | None = None
) -> tuple[Released, CountsRead]:
    """What is released and what it says of N. A reader who is misled by a pattern that breaks the rule, until nothing
    fits, stops believing in the rule where it is broken."""
    seen = release(problem, suppressed)
    try:
        return seen, count_intervals(seen, about)
    except Contradiction:
        if not breaks_rule(problem, suppressed):
            raise
    seen = release(problem, suppressed, believes=False)
    return seen, count_intervals(seen, about)


def _believed(problem: Problem, seen: Released, attack: Callable[[Released, bool], T]) -> T:
    """An attack on sums, of which the same holds as of N in `_read`: N alone may fit what a misled reader believes, but
    not with the means. `attack` is told whether he may be misled."""
    suppressed = frozenset(seen.targets)
    misled = breaks_rule(problem, suppressed)
    try:
        return attack(seen, misled)
    except Contradiction:
        if not misled:
            raise
    return attack(release(problem, suppressed, believes=False), False)


def _means(
    problem: Problem, seen: Released, n: Mapping[str, Interval], sharp: bool, identities: Sequence[Identity] = ()
) -> tuple[dict[str, MeanInterval], tuple[str, ...]]:
    """Interval of the mean of every cell of `n` (its interval of N) that may have somebody in it, and the cells whose
    interval may be wider than the exact one (large systems). Not `sharp`: see `MeanSystem`."""
    known: dict[tuple[int, ...], MeanInterval | None] = {}
    years, people = (None, []) if sharp else (problem.policy.interval_years, [a.n for a in problem.atoms])

    def attack(read: Released, misled: bool) -> tuple[dict[str, MeanInterval], tuple[str, ...]]:
        groups = list(read.targets.values())
        printed = Printed(read.n_atoms, read.counts, read.means, groups, read.value_bounds, read.integer, identities)
        system = MeanSystem(printed, misled, years, people)
        known.clear()
        out = {}
        for name in n:
            atoms = read.targets[name]
            if n[name][1] == 0:
                continue  # known to be nobody: there is no mean
            if atoms not in known:
                known[atoms] = system.interval(atoms)
            if (ends := known[atoms]) is not None:
                out[name] = ends
        return out, tuple(name for name in out if read.targets[name] in system.outer)

    return _believed(problem, seen, attack)


def _expert(
    problem: Problem,
    seen: Released,
    n: Mapping[str, Interval],
    mean: Mapping[str, MeanInterval],
    outer: tuple[str, ...],
    sharp: bool,
) -> Expert | None:
    if problem.kind != "means" or not (problem.identities or seen.squares):
        return None
    intervals = dict(mean)
    if problem.identities:
        intervals, outer = _means(problem, seen, n, sharp, problem.identities)
    if seen.squares:
        known = intervals
        intervals, wide = _believed(problem, seen, lambda read, misled: _with_squares(read, n, known, misled))
        outer = tuple(dict.fromkeys([*outer, *wide]))
    margins = [i.atoms for i in problem.identities if i.is_margin]
    span = Span(seen.n_atoms, [*seen.rows, *margins], [a.n for a in problem.atoms])
    union = span.smallest(problem.policy.min_n)
    return Expert(
        intervals,
        union,
        () if union is None else problem.names(union.atoms),
        tuple(i.name for i in problem.identities),
        union is not None and is_primary_n(union.n, problem.policy.min_n, False),
        outer,
    )


def _with_squares(
    seen: Released, n: Mapping[str, Interval], mean: Mapping[str, MeanInterval], misled: bool
) -> tuple[dict[str, MeanInterval], tuple[str, ...]]:
    """Means cut by mean² ≤ mean of squares, which the printed SDs bound, and the cells of which that is not exact."""
    largest = None if seen.value_bounds is None else max(abs(b) for b in seen.value_bounds) ** 2
    bounds = (0.0, 1e12 if largest is None else largest)
    groups = list(seen.targets.values())
    system = MeanSystem(Printed(seen.n_atoms, seen.counts, seen.squares, groups, bounds, seen.integer), misled)
    out = dict(mean)
    for name in n:
        atoms = seen.targets[name]
        if n[name][1] == 0:
            continue
        squares = system.interval(atoms)
        if squares is None or squares[1] is None or name not in out:
            continue
        root = math.sqrt(max(0.0, squares[1]))
        low, top = out[name]
        out[name] = (-root if low is None else max(low, -root), root if top is None else min(top, root))
    return out, tuple(name for name in out if seen.targets[name] in system.outer)


def count_intervals(seen: Released, about: Collection[str] | None = None) -> CountsRead:
    """What is told of N of every withheld cell, or of those in `about`."""
    targets = {name: atoms for name, atoms in seen.targets.items() if about is None or name in about}
    asked = seen.asked if about is None else seen.asked[[name in about for name in seen.targets]]
    system = CountSystem(seen.told, asked, seen.integer)
    known: dict[tuple[int, ...], Interval] = {}
    out = {}
    for name, atoms in targets.items():
        if atoms not in known:
            known[atoms] = system.interval(atoms)
        out[name] = known[atoms]
    relaxed = {name: atoms for name, atoms in targets.items() if system.learnt.relaxed and system.is_relaxed(atoms)}
    moving = tuple(name for name, atoms in relaxed.items() if system.moves(atoms))
    widths = {name: system.linear_width(atoms) for name, atoms in relaxed.items()}
    return CountsRead(out, tuple(relaxed), moving, {name: w for name, w in widths.items() if w is not None})


def exactly_disclosed(problem: Problem, suppressed: frozenset[str]) -> tuple[str, ...]:
    """Withheld cells whose N is exactly known, without the intervals: in two-way tables bridges, no program at all.

    Cells of systems too large to be exact (`n_interval_outer` of an audit) are named only where algebra gives them.
    """
    names = sorted(problem.pattern(suppressed))
    return _known(problem, suppressed, names, lambda system: tuple(compress(names, system.fixed())))


def _known(problem: Problem, suppressed: frozenset[str], names: Sequence[str], ask: Callable[[CountSystem], T]) -> T:
    """What the system of some withheld cells answers, without their intervals."""
    reading = read_cells(problem, True)
    asked = reading.groups[[reading.place[name] for name in names]]
    try:
        return ask(CountSystem(read_bounds(problem, suppressed), asked, problem.attacker.integer))
    except Contradiction:
        if not breaks_rule(problem, suppressed):
            raise
    return ask(CountSystem(read_bounds(problem, suppressed, False), asked, problem.attacker.integer))


def holds(problem: Problem, suppressed: frozenset[str], requirement: str) -> bool:
    """Whether a pattern meets a requirement ("exact", "policy", "interval")."""
    return refused(problem, suppressed, requirement) is None


def refused(
    problem: Problem, suppressed: frozenset[str], requirement: str, about: Collection[str] | None = None
) -> tuple[str, ...] | None:
    """The verdict of `audit_pattern` with as little work as it takes, about all primary cells or some: None, or the
    primary cells that are known too well (none of them where a small group is derivable)."""
    suppressed, least = problem.pattern(suppressed), problem.policy.min_n
    if requirement != "exact":
        seen = release(problem, suppressed)
        union = Span(seen.n_atoms, seen.rows, [a.n for a in problem.atoms]).smallest(least)
        if union is not None and is_primary_n(union.n, least, False):
            return ()
    hidden = [name for name in problem.primary if name in suppressed and (about is None or name in about)]
    if requirement != "interval":
        fixed, settled = _known(problem, suppressed, hidden, lambda s: (s.fixed(), not s.learnt.relaxed))
        if settled:
            return tuple(compress(hidden, fixed)) or None
    found = audit_pattern(problem, suppressed, means=requirement == "interval", about=hidden)
    return None if found.meets(requirement) else found.exposed(requirement, hidden)


def group_intervals(
    problem: Problem, suppressed: frozenset[str], group: tuple[int, ...]
) -> tuple[Interval, MeanInterval | None]:
    """What a reader learns of any group of atoms: N, and its mean where means are published."""
    suppressed = problem.pattern(suppressed)
    seen, _ = _read(problem, suppressed)

    def count(read: Released, _: bool) -> Interval:
        told = GroupBounds.of(read.n_atoms, read.counts, [group])
        return CountSystem(told, np.asarray([told.layout.index[group]]), read.integer).interval(group)

    n = _believed(problem, seen, count)
    if problem.kind != "means" or n[1] == 0:  # nobody has no mean
        return n, None

    def attack(read: Released, misled: bool) -> MeanInterval | None:
        known = (read.n_atoms, read.counts, read.means, [group], read.value_bounds, read.integer)
        return MeanSystem(Printed(*known), misled).interval(group)

    return n, _believed(problem, seen, attack)


def audit(problem: Problem) -> AuditReport:
    """Attack every pattern that the problem lists."""
    return AuditReport(problem, tuple(audit_pattern(problem, s.suppressed, s.name) for s in problem.published_sets))
