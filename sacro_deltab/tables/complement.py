"""Complementary suppression: the fewest extra cells so that nothing small can be worked out.

Work is counted in rounds and nodes, never in time: the same input gives the same pattern everywhere. How a pattern is
found is in `choose.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..base.errors import InputError
from .attack import audit_pattern
from .audits import SetAudit
from .choose import Choice, Chooser
from .engine import Engine, Impossible, Limits
from .solver import SolverError
from .table import Problem

LARGEST = 400_000_000  # cells × atoms beyond which no pattern is looked for
REQUIREMENTS = ("exact", "policy", "interval")


@dataclass(frozen=True)
class Protection:
    """What to withhold.

    `bound`: no pattern with fewer complementary cells (people, when that is the objective) exists; equal to what is
    found when `proved_optimal`. `ties_proved`: the fewest people, then the first labels, among all patterns that are
    as good in the first objective, is proved as well. `possible` is False when cells that must be published reveal a
    small group by themselves: then the pattern is everything that may be withheld, and it is not safe.
    """

    suppressed: frozenset[str]
    complementary: frozenset[str]
    proved_optimal: bool
    bound: int | None
    requirement: str
    objective: str
    possible: bool
    audit: SetAudit
    rounds: int
    ties_proved: bool = False
    notes: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        """What the independent audit says of the pattern, for the requirement."""
        return self.audit.meets(self.requirement)

    def to_json(self) -> dict[str, Any]:
        """The `protection` block of `tables protect`."""
        return {
            "requirement": self.requirement,
            "objective": self.objective,
            "possible": self.possible,
            "suppressed": sorted(self.suppressed),
            "complementary": sorted(self.complementary),
            "count": len(self.complementary),
            "proved_optimal": self.proved_optimal,
            "ties_proved": self.ties_proved,
            "bound": self.bound,
            "gap": None if self.bound is None or self.objective != "cells" else len(self.complementary) - self.bound,
            "safe": self.safe,
            "notes": list(self.notes),
        }


def protect(
    problem: Problem,
    *,
    policy: str = "policy",
    objective: str = "cells",
    suppressed: frozenset[str] | None = None,
    limits: Limits | None = None,
    key: bytes | None = None,
) -> Protection:
    """Choose the complementary cells.

    Parameters
    ----------
    policy
        The requirement: "exact" (no primary N exactly known), "policy" (besides, no group of 1 to min_n − 1 people
        derivable), "interval" (besides, every primary protected by the policy's intervals).
    objective
        "cells": fewest cells, then fewest people, then labels. "people": fewest people, then labels.
    suppressed
        Cells withheld in any case, besides the primary ones.
    key
        Draws among equally good patterns; never the researcher's. Without one the fewest people, then the first labels
        decide, and who runs the engine again learns from the choice.
    """
    if policy not in REQUIREMENTS or objective not in ("cells", "people"):
        raise InputError("unknown requirement or objective", next_step=f"use one of {', '.join(REQUIREMENTS)}")
    must = sorted(set(problem.primary) & problem.must_publish)
    base = (frozenset(problem.primary) - problem.must_publish) | problem.pattern(suppressed or ())
    if len(problem.cells) * len(problem.atoms) > LARGEST:
        return _as_it_is(problem, base, policy, objective, len(must))
    engine = Engine(problem, policy, objective, limits or Limits(), base, key)
    chooser = Chooser(engine)
    try:
        if must:
            raise Impossible(f"{len(must)} cells that must be published are too small")
        choice = chooser.run()
    except Impossible as why:
        pattern = engine.pattern(frozenset(range(len(engine.candidates))))
        choice = Choice(pattern, None, 0, (str(why),))
        return _protection(engine, choice, chooser.count, possible=False)
    return _protection(engine, choice, chooser.count, possible=True)


def _as_it_is(problem: Problem, base: frozenset[str], policy: str, objective: str, must: int) -> Protection:
    """Tables too large to choose for: the cells that must go, if that is enough."""
    if not must:
        judged = audit_pattern(problem, base)
        found = Protection(base, frozenset(), True, 0, policy, objective, True, judged, 0, True)
        if found.safe:
            return found
    raise SolverError(
        f"{len(problem.cells)} cells over {len(problem.atoms)} groups of people are too many to choose from",
        next_step="Merge categories or split the file, or give patterns in published_sets to `tables audit`.",
    )


def _protection(engine: Engine, choice: Choice, rounds: int, *, possible: bool) -> Protection:
    return Protection(
        choice.pattern,
        choice.pattern - engine.fixed,
        choice.stages > 0,
        choice.bound,
        engine.requirement,
        engine.objective,
        possible,
        audit_pattern(engine.problem, choice.pattern) if choice.audit is None else choice.audit,
        rounds,
        choice.stages >= engine.n_stages,
        choice.notes,
    )
