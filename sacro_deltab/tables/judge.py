"""The judge: attacks a pattern with what would be released, and reports. Chooses nothing.

`protect` is a separate code path; whatever it proposes is judged here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .intervals import CountSystem, Interval
from .means import MeanInterval, MeanSystem
from .primary import is_primary_n
from .released import Released, release
from .shares import Withhold, withhold
from .span import Span, Union
from .table import Problem


@dataclass(frozen=True)
class SetAudit:
    """What a reader of one pattern learns; fields as in the case files' README."""

    name: str
    suppressed: frozenset[str]
    n_interval: Mapping[str, Interval]
    mean_interval: Mapping[str, MeanInterval]
    exactly_disclosed: tuple[str, ...]
    smallest_derivable_union: Union | None
    union_atoms: tuple[str, ...]
    safe_exact: bool
    safe_policy: bool
    withhold: Mapping[str, Withhold]
    narrow: tuple[str, ...]  # primary cells whose N or mean is pinned closer than the protection interval
    unprinted: tuple[str, ...]  # primary cells that the pattern publishes

    @property
    def attackable(self) -> bool:
        """Not safe by the policy."""
        return not self.safe_policy

    @property
    def safe_interval(self) -> bool:
        """Safe, and no primary cell narrower than the protection interval."""
        return self.safe_policy and not self.narrow

    def to_json(self) -> dict[str, Any]:
        """One entry of `published_sets`."""
        union = self.smallest_derivable_union
        out: dict[str, Any] = {
            "name": self.name,
            "suppressed": sorted(self.suppressed),
            "n_interval": {c: list(iv) for c, iv in self.n_interval.items()},
            "exactly_disclosed": list(self.exactly_disclosed),
            "smallest_derivable_union": None if union is None else {"n": union.n, "atoms": list(self.union_atoms)},
            "safe_exact": self.safe_exact,
            "safe_policy": self.safe_policy,
            "attackable": self.attackable,
            "withhold": {t: w.to_json() for t, w in self.withhold.items()},
        }
        out["mean_interval"] = {
            c: [None if v is None else round(v, 4) + 0.0 for v in iv] for c, iv in self.mean_interval.items()
        }
        out["protection_interval"] = {
            "narrow": list(self.narrow),
            "safe": self.safe_interval,
            "primary_published": list(self.unprinted),
        }
        return out


@dataclass(frozen=True)
class AuditReport:
    """One `SetAudit` per pattern of the problem, in its order."""

    problem: Problem
    sets: tuple[SetAudit, ...]

    @property
    def safe(self) -> bool:
        """Whether every pattern is safe."""
        return all(s.safe_policy for s in self.sets)


def _protected_enough(low: float | None, high: float | None, width: float) -> bool:
    return low is None or high is None or high - low >= width


def audit_pattern(
    problem: Problem, suppressed: frozenset[str], name: str = "pattern", *, means: bool = True
) -> SetAudit:
    """Attack one pattern (`means=False`: leave the intervals of means out)."""
    suppressed = problem.pattern(suppressed)
    seen = release(problem, suppressed)
    n_intervals = count_intervals(seen)
    mean = mean_intervals(seen) if means and problem.kind == "means" else {}
    disclosed = tuple(sorted(c for c, (lo, hi) in n_intervals.items() if lo == hi))
    span = Span(seen.n_atoms, seen.rows, [a.n for a in problem.atoms])
    union = span.smallest()
    primary = set(problem.primary)
    safe_exact = not primary & set(disclosed)
    small = union is not None and is_primary_n(union.n, problem.policy.min_n, False)
    policy = problem.policy
    narrow = tuple(
        c
        for c in sorted(primary & suppressed)
        if not _protected_enough(*n_intervals[c], policy.interval_n)
        or (c in mean and not _protected_enough(*mean[c], policy.interval_years))
    )
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
        narrow,
        tuple(sorted(primary - suppressed)),
    )


def count_intervals(seen: Released) -> dict[str, Interval]:
    """Exact interval of N of every withheld cell."""
    system = CountSystem(seen.n_atoms, seen.counts, list(seen.targets.values()), seen.integer)
    known: dict[tuple[int, ...], Interval] = {}
    out = {}
    for name, atoms in seen.targets.items():
        if atoms not in known:
            known[atoms] = system.interval(atoms)
        out[name] = known[atoms]
    return out


def mean_intervals(seen: Released) -> dict[str, MeanInterval]:
    """Interval of the mean of every withheld cell that has somebody in it."""
    system = MeanSystem(
        seen.n_atoms, seen.counts, seen.means, list(seen.targets.values()), seen.value_bounds, seen.integer
    )
    known: dict[tuple[int, ...], MeanInterval] = {}
    out = {}
    for name, atoms in seen.targets.items():
        if atoms not in known:
            known[atoms] = system.interval(atoms)
        out[name] = known[atoms]
    return out


def group_intervals(
    problem: Problem, suppressed: frozenset[str], group: tuple[int, ...]
) -> tuple[Interval, MeanInterval | None]:
    """What a reader learns of any group of atoms: N, and its mean where means are published."""
    seen = release(problem, problem.pattern(suppressed))
    n = CountSystem(seen.n_atoms, seen.counts, [group], seen.integer).interval(group)
    if problem.kind != "means":
        return n, None
    system = MeanSystem(seen.n_atoms, seen.counts, seen.means, [group], seen.value_bounds, seen.integer)
    return n, system.interval(group)


def audit(problem: Problem) -> AuditReport:
    """Attack every pattern that the problem lists."""
    return AuditReport(problem, tuple(audit_pattern(problem, s.suppressed, s.name) for s in problem.published_sets))
