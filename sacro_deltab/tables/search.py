"""Smallest hitting sets by reductions and a bounded depth-first search in whole numbers: no solver, no tolerance.

Most tables need a handful of extra cells; a branch-and-bound solver spends longer on starting than on solving them.
Costs are added lexicographically (cells, then people, then labels) as one whole number, so one search settles every
stage of the objective. The budget is counted in nodes; when it is used up nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Sequence


class _Spent(Exception):
    """The budget is used up."""


def smallest_hitting_set(cuts: Sequence[Sequence[int]], cost: Sequence[int], budget: int) -> frozenset[int] | None:
    """The hitting set of least total cost, or None when `budget` nodes do not settle it.

    Parameters
    ----------
    cuts
        Each a non-empty set of candidates, one of which must be chosen.
    cost
        Positive cost per candidate; distinct sets should have distinct costs for a unique answer.
    """
    left = [budget]
    try:
        chosen, rest = _reduce([frozenset(cut) for cut in cuts], cost)
        for part in _components(rest):
            chosen |= _Search(part, cost, left).run()
    except _Spent:
        return None
    return frozenset(chosen)


def _minimal(cuts: list[frozenset[int]]) -> list[frozenset[int]]:
    """Cuts that hold no other."""
    kept: list[frozenset[int]] = []
    by: dict[int, list[frozenset[int]]] = {}
    for cut in sorted(set(cuts), key=lambda c: (len(c), sorted(c))):
        if any(small <= cut for j in cut for small in by.get(j, ())):
            continue
        kept.append(cut)
        by.setdefault(min(cut), []).append(cut)
    return kept


def _reduce(cuts: list[frozenset[int]], cost: Sequence[int]) -> tuple[set[int], list[frozenset[int]]]:
    """Take what must be chosen; drop cuts that hold others and candidates that a cheaper one stands in for."""
    chosen: set[int] = set()
    while True:
        cuts = _minimal(cuts)
        forced = {j for cut in cuts if len(cut) == 1 for j in cut}
        if forced:
            chosen |= forced
            cuts = [cut for cut in cuts if not cut & forced]
            continue
        holders: dict[int, set[int]] = {}
        for i, cut in enumerate(cuts):
            for j in cut:
                holders.setdefault(j, set()).add(i)
        gone: set[int] = set()
        for j in sorted(holders, key=lambda j: (len(holders[j]), -cost[j])):
            first = min(holders[j])
            if any(
                other != j and other not in gone and cost[other] <= cost[j] and holders[j] <= holders[other]
                for other in cuts[first]
            ):
                gone.add(j)
        if not gone:
            return chosen, cuts
        cuts = [cut - gone for cut in cuts]


def _components(cuts: list[frozenset[int]]) -> list[list[frozenset[int]]]:
    """Cuts that share candidates, directly or through others."""
    parent: dict[int, int] = {}

    def find(a: int) -> int:
        while parent.setdefault(a, a) != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        return a

    for cut in cuts:
        root = find(min(cut))
        for j in cut:
            parent[find(j)] = root
    grouped: dict[int, list[frozenset[int]]] = {}
    for cut in cuts:
        grouped.setdefault(find(min(cut)), []).append(cut)
    return list(grouped.values())


class _Search:
    """One component, on bit masks of cuts."""

    def __init__(self, cuts: list[frozenset[int]], cost: Sequence[int], left: list[int]) -> None:
        self.left = left
        names = sorted({j for cut in cuts for j in cut}, key=lambda j: (cost[j], j))
        self.cuts = [sorted(cut, key=lambda j: (cost[j], j)) for cut in cuts]
        self.cost = {j: cost[j] for j in names}
        self.hits = {j: sum(1 << i for i, cut in enumerate(cuts) if j in cut) for j in names}
        self.everything = (1 << len(cuts)) - 1
        self.touching = [0] * len(cuts)  # cuts that share a candidate with each cut
        for i, cut in enumerate(self.cuts):
            for j in cut:
                self.touching[i] |= self.hits[j]
        self.best: list[int] = []
        self.best_cost = -1

    def run(self) -> set[int]:
        """The cheapest set of this component."""
        self._greedy()
        self._walk(self.everything, 0, [], frozenset())
        return set(self.best)

    def _greedy(self) -> None:
        open_cuts, chosen = self.everything, []
        while open_cuts:
            useful = [(j, (self.hits[j] & open_cuts).bit_count()) for j in self.hits]
            # whole numbers: costs that hold every stage are too large for floating point
            j = min(((self.cost[j] * 1_000_000 // n, j) for j, n in useful if n))[1]
            chosen.append(j)
            open_cuts &= ~self.hits[j]
        self.best, self.best_cost = chosen, sum(self.cost[j] for j in chosen)

    def _bound(self, open_cuts: int, banned: frozenset[int]) -> tuple[int, int]:
        """Sum of the cheapest members of cuts that share nothing, and the open cut with fewest members allowed."""
        total, pick, fewest = 0, -1, 1 << 30
        rest = open_cuts
        while rest:
            i = (rest & -rest).bit_length() - 1
            allowed = [j for j in self.cuts[i] if j not in banned] if banned else self.cuts[i]
            if not allowed:
                return -1, i
            total += self.cost[allowed[0]]
            if len(allowed) < fewest:
                pick, fewest = i, len(allowed)
            rest &= ~self.touching[i]
        return total, pick

    def _walk(self, open_cuts: int, spent: int, chosen: list[int], banned: frozenset[int]) -> None:
        if not open_cuts:
            if spent < self.best_cost:
                self.best, self.best_cost = list(chosen), spent
            return
        self.left[0] -= 1
        if self.left[0] < 0:
            raise _Spent
        least, pick = self._bound(open_cuts, banned)
        if least < 0 or spent + least >= self.best_cost:
            return
        members = [j for j in self.cuts[pick] if j not in banned]
        members.sort(key=lambda j: (-(self.hits[j] & open_cuts).bit_count(), self.cost[j], j))
        for j in members:
            self._walk(open_cuts & ~self.hits[j], spent + self.cost[j], [*chosen, j], banned)
            banned = banned | {j}
