"""What a reader of one pattern of published cells learns: the values that the attack hands back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .components import Interval
from .means import MeanInterval
from .shares import Withhold
from .span import Union
from .table import Problem


@dataclass(frozen=True)
class Expert:
    """What a reader gets besides who also uses the training identities and the printed SDs."""

    mean_interval: Mapping[str, MeanInterval]
    smallest_derivable_sum: Union | None
    union_atoms: tuple[str, ...]
    identities: tuple[str, ...]
    small: bool
    outer: tuple[str, ...] = ()  # cells whose interval of the mean may be wider than the exact one

    def to_json(self) -> dict[str, Any]:
        """The `expert` block of one entry of `published_sets`."""
        union = self.smallest_derivable_sum
        return {
            "identities": list(self.identities),
            "mean_interval": _rounded(self.mean_interval),
            "smallest_derivable_sum": None if union is None else {"n": union.n, "atoms": list(self.union_atoms)},
            "safe": not self.small,
        }


def _rounded(intervals: Mapping[str, MeanInterval]) -> dict[str, list[float | None]]:
    return {c: [None if v is None else round(v, 4) + 0.0 for v in iv] for c, iv in intervals.items()}


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
    expert: Expert | None = None
    union_proved: bool = True  # False: no group below the minimum exists, but the smallest of the others was not sought
    relaxed: tuple[str, ...] = ()  # cells of large systems whose N interval holds the exact one but may be wider
    mean_outer: tuple[str, ...] = ()  # the same of the mean
    unproved: tuple[str, ...] = ()  # of these, primary cells for which no second table was found: taken as known

    @property
    def expert_union_small(self) -> bool:
        """Whether the training identities make a small group's sum derivable."""
        return self.expert is not None and self.expert.small

    @property
    def attackable(self) -> bool:
        """Not safe by the policy."""
        return not self.safe_policy

    @property
    def safe_interval(self) -> bool:
        """Safe, and no primary cell narrower than the protection interval."""
        return self.safe_policy and not self.narrow and not self.expert_union_small

    def meets(self, requirement: str) -> bool:
        """Whether "exact", "policy" or "interval" is met."""
        if requirement == "exact":
            return self.safe_exact
        return self.safe_policy if requirement == "policy" else self.safe_interval

    def exposed(self, requirement: str, primary: Iterable[str]) -> tuple[str, ...]:
        """Withheld cells of the `primary` ones that the requirement does not allow to be known so well."""
        known = {*self.exactly_disclosed, *self.unproved, *(self.narrow if requirement == "interval" else ())}
        return tuple(sorted(known & self.suppressed & set(primary)))

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
        out["mean_interval"] = _rounded(self.mean_interval)
        if self.relaxed:
            out["n_interval_outer"] = list(self.relaxed)
        if self.mean_outer:
            out["mean_interval_outer"] = list(self.mean_outer)
        if self.unproved:
            out["exactly_disclosed_perhaps"] = list(self.unproved)
        if not self.union_proved:
            out["smallest_derivable_union_proved"] = False
        if self.expert is not None:
            out["expert"] = self.expert.to_json()
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
