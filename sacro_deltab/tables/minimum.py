"""All smallest complementary sets of a small problem, one by one.

For people who want to choose among equals, and for checking the engine: every set returned was judged safe, and
every smaller one is ruled out by a derivation or by the judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .complement import Protection, protect
from .engine import Engine, Limits
from .shares import withhold
from .table import Problem

COUNTED = 32  # candidates up to which a requirement that nobody asked for is worked out as well


class _TooMany(Exception):
    pass


def _candidates(problem: Problem) -> list[str]:
    taken = set(problem.primary) | problem.must_publish | problem.structural_zero
    return [c.id for c in problem.cells.values() if c.id not in taken and c.n]


class _Oracle:
    """Is it safe to withhold these as well? Answers are kept; a refusal becomes a cut."""

    def __init__(self, problem: Problem, requirement: str, candidates: list[str], budget: int) -> None:
        self.problem, self.requirement, self.candidates, self.budget = problem, requirement, candidates, budget
        self.base = frozenset(problem.primary) - problem.must_publish
        self.engine = Engine(problem, requirement, "cells", Limits(), self.base)
        self.cuts: list[frozenset[str]] = []

    def safe(self, extra: frozenset[str]) -> bool:
        if self.budget <= 0:
            raise _TooMany
        self.budget -= 1
        return self.engine.holds(self.base | extra)

    def refuse(self, extra: frozenset[str]) -> None:
        """Add cuts: of the cells a small group is derived from one must go; or, where only the judge knows why,
        withholding all but these is still unsafe."""
        engine = self.engine
        share = np.zeros(len(engine.candidates))
        share[[j for j, g in enumerate(engine.candidates) if set(engine.groups[g].cells) <= extra]] = 1.0
        derived = [engine.cut(d) for d in engine.derivations(share, 0.5)]
        if derived:
            self.cuts += [
                frozenset(c for j in cut for c in engine.groups[engine.candidates[j]].cells) for cut in derived
            ]
            return
        grown = set(extra)
        for c in self.candidates:  # the larger the unsafe set, the stronger the cut
            if c not in grown and not self.safe(frozenset(grown | {c})):
                grown.add(c)
        self.cuts.append(frozenset(self.candidates) - grown)


def _hitting_sets(cuts: list[frozenset[str]], size: int, order: dict[str, int]) -> Iterator[frozenset[str]]:
    """Sets of at most `size` that hit every cut (which may grow meanwhile); each once."""
    stack: list[tuple[frozenset[str], frozenset[str]]] = [(frozenset(), frozenset())]
    while stack:
        chosen, banned = stack.pop()
        missed = next((cut for cut in cuts if not cut & chosen), None)
        if missed is None:
            yield chosen
            # the cuts may have grown: look again before leaving this node
            missed = next((cut for cut in cuts if not cut & chosen), None)
            if missed is None:
                if len(chosen) < size:
                    for c in sorted(order.keys() - chosen - banned, key=order.__getitem__):
                        stack.append((chosen | {c}, banned))
                        banned = banned | {c}
                continue
        if len(chosen) == size:
            continue
        for c in sorted(missed - banned, key=order.__getitem__):
            stack.append((chosen | {c}, banned))
            banned = banned | {c}


def minimum_sets(
    problem: Problem, requirement: str, *, budget: int = 600, largest: int = 16, known: Protection | None = None
) -> dict[str, Any] | None:
    """The `min_complementary_*` block of the case files; None when the problem is too large to list.

    Parameters
    ----------
    budget
        Number of patterns the judge may be asked about.
    largest
        Most candidates for which the sets are listed; above it only their number of cells is given.
    known
        A choice made already, of use if it was made for the same requirement and for fewest cells.
    """
    candidates = _candidates(problem)
    fits = known is not None and (known.requirement, known.objective) == (requirement, "cells")
    if len(candidates) > (120 if fits else COUNTED):
        return None
    best = known if known is not None and fits else protect(problem, policy=requirement)
    if not best.possible:
        return {"count": None, "n_sets": 0, "unique": False, "sets": []}
    if not best.proved_optimal:
        return None
    size = len(best.complementary)
    if len(candidates) > largest:
        return {"count": size}
    oracle = _Oracle(problem, requirement, candidates, budget)
    order = {c: i for i, c in enumerate(candidates)}
    found: list[frozenset[str]] = []
    try:
        for chosen in _hitting_sets(oracle.cuts, size, order):
            if oracle.safe(chosen):
                if len(chosen) == size:
                    found.append(chosen)
            else:
                oracle.refuse(chosen)
    except _TooMany:
        return {"count": size}
    weight = {s: problem_weight(problem, s) for s in found}
    least = min(weight.values())
    found.sort(key=lambda s: sorted(order[c] for c in s))
    return {
        "count": size,
        "n_sets": len(found),
        "unique": len(found) == 1,
        "sets": [sorted(s) for s in found[:40]],
        "min_weight": least,
        "min_weight_sets": [sorted(s) for s in found if weight[s] == least][:40],
    }


def problem_weight(problem: Problem, cells: frozenset[str]) -> int:
    """People in the cells withheld, counted per cell."""
    return sum(problem.cells[c].n for c in cells)


def minimum_answers(
    problem: Problem, *, budget: int = 600, largest: int = 16, known: Protection | None = None
) -> dict[str, Any]:
    """`min_complementary_exact`, `_policy` and the withholding decision at the first of the smallest."""
    out: dict[str, Any] = {}
    for requirement in ("exact", "policy"):
        block = minimum_sets(problem, requirement, budget=budget, largest=largest, known=known)
        if block is not None:
            out[f"min_complementary_{requirement}"] = block
    block = out.get("min_complementary_policy")
    if block and block.get("min_weight_sets"):
        pattern = (frozenset(problem.primary) - problem.must_publish) | frozenset(block["min_weight_sets"][0])
        out["withhold_at_minimum"] = {t: w.to_json() for t, w in withhold(problem, pattern).items()}
    return out
