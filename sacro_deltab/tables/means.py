"""Intervals of a suppressed mean, joint over N and sums.

Unknowns per class of atoms: people n (whole) and sum of values s. A printed mean m of a group says
(m − h)·N ≤ S ≤ (m + h)·N; what is known of one person's value says L·n ≤ s ≤ U·n; an empty class has no sum. The mean
s/n of a group is a fraction of two unknowns: `ratio.py` finds its ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .ratio import FreeSums, Printed, Ratio
from .solver import INF, Contradiction, SolverError

MeanInterval = tuple[float | None, float | None]
WHOLE = 100  # classes of one component up to which whole numbers of people are insisted on
LARGE = 1_500  # classes from which no program is solved at all


class MeanSystem:
    """The attacker's knowledge of N and sums together; `misled`: perhaps no table fits, since the reader takes a rule
    for kept that is broken.

    With `years` and the true `people` of every atom ends are only as exact as it takes to say whether the interval is
    as wide as that: values that the true people may have can show that it is, fractions of people that it is not.
    """

    def __init__(
        self, printed: Printed, misled: bool = False, years: float | None = None, people: Sequence[int] = ()
    ) -> None:
        self.printed, self.misled, self.years = printed, misled, None if misled else years
        self.people = np.bincount(printed.label[: len(people)], people, printed.k).astype(np.int64)
        self.whole = self._cut()
        self.outer: set[tuple[int, ...]] = set()  # groups whose interval holds the exact one and may be wider
        self._free: dict[tuple[int, ...], FreeSums | None] = {}  # by the classes that hang together

    def _cut(self) -> list[int]:
        """Connected components of classes (people and sums alike)."""
        parent = list(range(self.printed.k))

        def find(a: int) -> int:
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            return a

        linked = (
            [c.atoms for c in self.printed.counts]
            + [m.atoms for m in self.printed.means]
            + [i.atoms for i in self.printed.identities]
        )
        for group in linked:
            classes = self.printed.classes(group)
            for c in classes[1:]:
                parent[find(c)] = find(classes[0])
        return [find(c) for c in range(self.printed.k)]

    def interval(self, group: Sequence[int]) -> MeanInterval | None:
        """Least and largest mean of a group (`None`: unbounded); None where means and totals leave nobody in it."""
        classes = self.printed.classes(group)
        roots = {self.whole[c] for c in classes}
        members = [c for c in range(self.printed.k) if self.whole[c] in roots]
        if len(members) <= LARGE:
            problem = Ratio(self.printed, members, classes)
            try:
                return self._ends(problem, members, group)
            except Contradiction:  # no table has somebody in the group
                if self.misled or not problem.fits_without():
                    raise
            self.outer.discard(tuple(group))
            return None
        self.outer.add(tuple(group))
        return self.printed.bounds or (None, None)

    def _ends(self, problem: Ratio, members: list[int], group: Sequence[int]) -> MeanInterval:
        """Both ends of a mean that somebody has."""
        if not self.printed.integer:
            return problem.real_end(+1), problem.real_end(-1)
        if self._moves_freely(problem, members):
            return None, None
        if self.years is not None and (settled := self._settled(problem, members, self.years)) is not None:
            return settled
        if len(members) <= WHOLE:
            try:
                return problem.end(+1), problem.end(-1)
            except SolverError as error:
                # Rows of very different size can make the whole-number program see no table where there is one;
                # bounds of the linear one hold, and only if that has no table either nothing fits.
                if self.misled and isinstance(error, Contradiction):
                    raise
        self.outer.add(tuple(group))
        return problem.outer(+1), problem.outer(-1)

    def _settled(self, problem: Ratio, members: list[int], years: float) -> MeanInterval | None:
        """Ends that lie on the same side of `years` as the exact ones; None where that takes the exact ones."""
        people = self.people[members]
        size = int(people[problem.n_columns].sum())
        least, most = (problem.at(people, +1), problem.at(people, -1)) if size else (None, None)
        if least is not None and most is not None and (most - least) / size >= years:
            return (None if least == -INF else least / size), (None if most == INF else most / size)
        low, high = problem.outer(+1), problem.outer(-1)
        return (low, high) if low is not None and high is not None and high - low < years - 1e-6 else None

    def _moves_freely(self, problem: Ratio, members: list[int]) -> bool:
        """Whether some table that fits lets the sum of the group run away (nothing is known of one person's value).

        One table answers for most groups of a component, where the exact search would solve a dozen programs for each.
        """
        if self.printed.bounds is not None or len(members) > WHOLE:
            return False
        key = tuple(members)  # a group may touch several components: positions are those of all of them
        if key not in self._free:
            self._free[key] = problem.somebody_nearly_everywhere()
        free = self._free[key]
        return free is not None and free.moves(problem.n_columns)
