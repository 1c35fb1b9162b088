"""Intervals of a suppressed mean, joint over N and sums.

Unknowns per class of atoms: people n (whole) and sum of values s. A printed mean m of a group says
(m − h)·N ≤ S ≤ (m + h)·N; what is known of one person's value says L·n ≤ s ≤ U·n. The mean s/n of a group is a
fraction of two unknowns: each end is found by Dinkelbach's method (minimise s − λ·n, put λ to the ratio found), which
ends at the exact optimum over whole n.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .identities import Identity
from .intervals import Contradiction, merge_atoms
from .released import Count, Mean
from .solver import INF, Model, SolverError
from .span import PRIME, reduce_rows

MeanInterval = tuple[float | None, float | None]
WHOLE = 100  # classes of one component up to which whole numbers of people are insisted on
LARGE = 1_500  # classes from which no program is solved at all
NODES = 20_000


class MeanSystem:
    """The attacker's knowledge of N and sums together."""

    def __init__(
        self,
        n_atoms: int,
        counts: Sequence[Count],
        means: Sequence[Mean],
        targets: Sequence[Sequence[int]],
        value_bounds: tuple[float, float] | None,
        integer: bool = True,
        identities: Sequence[Identity] = (),
        misled: bool = False,
    ) -> None:
        groups = [c.atoms for c in counts] + [m.atoms for m in means] + [tuple(t) for t in targets]
        for identity in identities:  # classes hold atoms of one coefficient only
            parts: dict[tuple[float, float], list[int]] = {}
            for atom, c, e in zip(identity.atoms, identity.coefficients, identity.slack, strict=True):
                parts.setdefault((c, e), []).append(atom)
            groups += [tuple(part) for part in parts.values()]
        groups = list(dict.fromkeys(groups))
        self.identities = identities
        self.label, self.k = merge_atoms(n_atoms, groups)
        self.counts, self.means, self.bounds, self.integer = counts, means, value_bounds, integer
        self.misled = misled  # perhaps no table fits: the reader takes a rule for kept that is broken
        total = sum(c.hi for c in counts if c.hi is not None)
        # An N without an upper bound is capped far above everything published; the ray beyond it is added apart.
        self.cap = float(10 * total + 1000)
        self.whole = self._cut()
        self.outer: set[tuple[int, ...]] = set()  # groups whose interval holds the exact one and may be wider
        self._free: dict[tuple[int, ...], _FreeSums | None] = {}  # by the classes that hang together

    def _classes(self, group: Sequence[int]) -> list[int]:
        return sorted({self.label[a] for a in group})

    def _cut(self) -> list[int]:
        """Connected components of classes (people and sums alike)."""
        parent = list(range(self.k))

        def find(a: int) -> int:
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            return a

        linked = [c.atoms for c in self.counts] + [m.atoms for m in self.means] + [i.atoms for i in self.identities]
        for group in linked:
            classes = self._classes(group)
            for c in classes[1:]:
                parent[find(c)] = find(classes[0])
        return [find(c) for c in range(self.k)]

    def interval(self, group: Sequence[int]) -> MeanInterval:
        """Least and largest mean of a group (`None`: unbounded)."""
        classes = self._classes(group)
        roots = {self.whole[c] for c in classes}
        members = [c for c in range(self.k) if self.whole[c] in roots]
        if len(members) <= LARGE:
            problem = _Fraction(self, members, classes)
            if self._moves_freely(problem, members):
                return None, None
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
        self.outer.add(tuple(group))
        return self.bounds or (None, None)

    def _moves_freely(self, problem: _Fraction, members: list[int]) -> bool:
        """Whether some table that fits lets the sum of the group run away (nothing is known of one person's value).

        One table answers for most groups of a component, where the exact search would solve a dozen programs for each.
        """
        if self.bounds is not None or not self.integer or len(members) > WHOLE:
            return False
        key = tuple(members)  # a group may touch several components: positions are those of all of them
        if key not in self._free:
            self._free[key] = _FreeSums.of(problem)
        free = self._free[key]
        return free is not None and free.moves(problem.n_columns)


class _FreeSums:
    """The directions in which the sums of one fitting table can move without a printed number changing."""

    def __init__(self, occupied: list[int], rows: list[dict[int, Fraction]]) -> None:
        self.place = {c: i for i, c in enumerate(occupied)}
        matrix = np.zeros((len(rows), len(occupied)), dtype=np.int64)
        for i, row in enumerate(rows):
            for c, value in row.items():
                if c in self.place:  # an empty class has no sum to move
                    matrix[i, self.place[c]] = value.numerator * pow(value.denominator, -1, PRIME) % PRIME
        self.base, self.pivots = reduce_rows(matrix)

    @classmethod
    def of(cls, problem: _Fraction) -> _FreeSums | None:
        """From a table that fits and has as many classes with people as the search finds; None where none is found."""
        k = problem.k
        model = problem.table_model()
        cost = np.zeros(model.n)
        cost[2 * k :] = -1.0
        found = model.minimise(cost)
        if found.status != "optimal":
            return None
        rows = [dict.fromkeys(columns, Fraction(1)) for columns, _, _ in problem.mean_rows]
        rows += [{c: Fraction(value) for c, (value, _) in row.items()} for row in problem.identity_rows]
        return cls([c for c in range(k) if found.x[2 * k + c] > 0.5], rows)

    def moves(self, columns: Sequence[int]) -> bool:
        """Whether the sum over these classes is no combination of what is printed, while somebody is in them.

        A combination that exists modulo the prime only goes to the exact search. One that the prime hides would need a
        determinant divisible by it.
        """
        here = [self.place[c] for c in columns if c in self.place]
        if not here:
            return False
        vector = np.zeros(len(self.place), dtype=np.int64)
        vector[here] = 1
        for i, p in enumerate(self.pivots):
            if vector[p]:
                vector = (vector - vector[p] * self.base[i]) % PRIME
        return bool(vector.any())


class _Fraction:
    """min and max of s(group)/n(group) over the classes of one component (or the few that the group touches)."""

    def __init__(self, system: MeanSystem, members: list[int], group: list[int]) -> None:
        self.s = system
        self.position = {c: i for i, c in enumerate(members)}
        self.k = len(members)
        self.n_columns = [self.position[c] for c in group]
        self.s_columns = [self.k + i for i in self.n_columns]
        self.count_rows: list[tuple[list[int], int, int | None]] = []
        self.mean_rows: list[tuple[list[int], Fraction, Fraction]] = []
        for count in system.counts:
            classes = system._classes(count.atoms)
            if classes and classes[0] in self.position:
                self.count_rows.append(([self.position[c] for c in classes], count.lo, count.hi))
        for mean in system.means:
            classes = system._classes(mean.atoms)
            if classes and classes[0] in self.position:
                self.mean_rows.append(([self.position[c] for c in classes], mean.lo, mean.hi))
        self.identity_rows: list[dict[int, tuple[float, float]]] = []
        for identity in system.identities:
            row = {
                self.position[system.label[a]]: (c, e)
                for a, c, e in zip(identity.atoms, identity.coefficients, identity.slack, strict=True)
                if system.label[a] in self.position
            }
            if row:
                self.identity_rows.append(row)

    def _shared_rows(self) -> list[tuple[list[int], list[float], float, float]]:
        rows: list[tuple[list[int], list[float], float, float]] = []
        for columns, lo, hi in self.mean_rows:
            sums = [self.k + c for c in columns]
            ones = [1.0] * len(columns)
            rows.append((sums + columns, ones + [-float(hi)] * len(columns), -INF, 0.0))
            rows.append((sums + columns, ones + [-float(lo)] * len(columns), 0.0, INF))
        for row in self.identity_rows:
            columns = [*(self.k + c for c in row), *row]
            values = [c for c, _ in row.values()]
            slack = [e for _, e in row.values()]
            rows.append((columns, values + [-e for e in slack], -INF, 0.0))
            rows.append((columns, values + slack, 0.0, INF))
        if self.s.bounds is not None:
            low, high = self.s.bounds
            for c in range(self.k):
                rows.append(([self.k + c, c], [1.0, -high], -INF, 0.0))
                rows.append(([self.k + c, c], [1.0, -low], 0.0, INF))
        return rows

    def table_model(self) -> Model:
        """Any table that fits, with z for the classes that have people; sums up to far above what is printed."""
        return self._model(self._limit(), free=True)

    def _model(self, largest_sum: float | None, free: bool = False) -> Model:
        """Whole people n, sums s; with `largest_sum` also z: somebody is in the class, else its sum is 0. `free`: the
        group itself may be empty."""
        k = self.k
        model = Model(
            [0.0] * k + [-INF] * k + ([] if largest_sum is None else [0.0] * k),
            [self.s.cap] * k + [INF] * k + ([] if largest_sum is None else [1.0] * k),
            [self.s.integer] * k + [False] * k + ([] if largest_sum is None else [True] * k),
            max_nodes=NODES,
        )
        rows = self._shared_rows()
        for columns, lo, hi in self.count_rows:
            rows.append((columns, [1.0] * len(columns), float(lo), INF if hi is None else float(hi)))
        if not free:
            rows.append((self.n_columns, [1.0] * len(self.n_columns), 1.0, INF))
        if largest_sum is not None:
            for c in range(k):
                rows.append(([c, 2 * k + c], [1.0, -1.0], 0.0, INF))
                rows.append(([k + c, 2 * k + c], [1.0, -largest_sum], -INF, 0.0))
                rows.append(([k + c, 2 * k + c], [1.0, largest_sum], 0.0, INF))
        model.add_rows(rows)
        return model

    def _relaxed(self, sign: int, t_high: float) -> float:
        """Charnes-Cooper relaxation with 1/N of the group between 0 and `t_high`; 0: the limit of large groups, in
        which classes of bounded size have no part."""
        k = self.k
        sums = [0.0 if t_high == 0.0 and top is not None else INF for top in self._tops()]
        model = Model([0.0] * k + [-v for v in sums] + [0.0], [INF] * k + sums + [t_high])
        rows = self._shared_rows()
        t = 2 * k
        for columns, lo, hi in self.count_rows:
            ones = [1.0] * len(columns)
            rows.append(([*columns, t], [*ones, -float(lo)], 0.0, INF))
            if hi is not None:
                rows.append(([*columns, t], [*ones, -float(hi)], -INF, 0.0))
        rows.append((self.n_columns, [1.0] * len(self.n_columns), 1.0, 1.0))
        model.add_rows(rows)
        cost = np.zeros(2 * k + 1)
        cost[self.s_columns] = sign
        found = model.minimise(cost)
        return sign * (-INF if found.status == "limit" else found.value)  # no answer: nothing is known

    def end(self, sign: int) -> float | None:
        """The least (`sign` +1) or largest (−1) mean."""
        best = self._without_bounds(sign) if self.s.bounds is None and self.s.integer else self._within_bounds(sign)
        if best is None or all(top is not None for top in self._tops()):
            return best
        ray = self._relaxed(sign, 0.0)
        return None if sign * ray == -INF else sign * min(sign * best, sign * ray)

    def outer(self, sign: int) -> float | None:
        """A bound that holds the least or largest mean: people may be fractions."""
        relaxed = self._relaxed(sign, 1.0)
        if sign * relaxed == INF:
            raise Contradiction("no table fits what is published", next_step="check the means and totals")
        return None if sign * relaxed == -INF else relaxed

    def _within_bounds(self, sign: int) -> float | None:
        relaxed = self.outer(sign)
        return None if relaxed is None else self._dinkelbach(sign, relaxed, self._model(None))

    def _without_bounds(self, sign: int) -> float | None:
        """Nothing is known of one person's value, but nobody has no value: a class is empty or its sum is free.

        Free sums are let run to a limit far above what is printed, then to twice it: what moves along is unbounded.
        """
        limit = self._limit()
        first, second = (self._dinkelbach(sign, 0.0, self._model(limit * times)) for times in (1.0, 2.0))
        return first if abs(first - second) <= 1e-6 * max(1.0, abs(first)) else None

    def _limit(self) -> float:
        """A sum far above what is printed."""
        tops = [self.s.cap if top is None else float(top) for top in self._tops()]
        printed = [max(abs(lo), abs(hi)) * sum(tops[c] for c in columns) for columns, lo, hi in self.mean_rows]
        return 10.0 * (self.k + 1) * (1.0 + max(map(float, printed), default=0.0))

    def _tops(self) -> list[int | None]:
        """Largest N of every class by the rows it is in (`None`: open above)."""
        tops: list[int | None] = [None] * self.k
        for columns, _, hi in self.count_rows:
            for c in columns if hi is not None else ():
                top = tops[c]
                tops[c] = hi if top is None or (hi is not None and hi < top) else top
        return tops

    def _dinkelbach(self, sign: int, ratio: float, model: Model) -> float:
        cost = np.zeros(model.n)
        best: float | None = None
        for _ in range(100):
            cost[self.s_columns] = sign
            cost[self.n_columns] = -sign * ratio
            found = model.minimise(cost)
            if found.status == "infeasible":
                raise Contradiction("no table fits what is published", next_step="check the means and totals")
            if found.status != "optimal":
                raise SolverError(f"an interval could not be settled: {found.status}")
            people = float(np.rint(found.x[self.n_columns]).sum())
            new = float(found.x[self.s_columns].sum()) / people
            if best is not None and sign * new >= sign * best - 1e-9:
                return best
            best = new
            if abs(new - ratio) <= 1e-9:
                return new
            ratio = new
        raise SolverError("an interval of a mean did not settle")
