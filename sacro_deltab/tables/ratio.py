"""Least and largest mean of one group: s/n over whole people n and sums s, exact to a millionth of a year.

Dinkelbach's method: minimise s − λ·n, put λ to the ratio found, until nothing is below it. The whole-number program
only proposes people; the ratio taken is that of a second program, over sums alone, for exactly these people, in which
an empty class has no sum. Where the first used a sum of nobody, the class is tried empty and with somebody apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .bounds import Count
from .identities import Identity
from .layout import merge_atoms
from .reading import Mean
from .solver import INF, Contradiction, Model, SolverError
from .span import PRIME, reduce_rows

Row = tuple[list[int], list[float], float, float]
NODES = 20_000
BRANCHES = 200  # classes tried empty and with somebody, for one end of one interval
CLOSE = 1e-6  # years (of a mean below one; else relative) within which an end is the exact one


class Printed:
    """Everything printed of N and means, over classes of atoms that nothing printed tells apart."""

    def __init__(
        self,
        n_atoms: int,
        counts: Sequence[Count],
        means: Sequence[Mean],
        targets: Sequence[Sequence[int]],
        value_bounds: tuple[float, float] | None,
        integer: bool = True,
        identities: Sequence[Identity] = (),
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
        total = sum(c.hi for c in counts if c.hi is not None)
        # An N without an upper bound is capped far above everything published; the ray beyond it is added apart.
        self.cap = float(10 * total + 1000)

    def classes(self, group: Sequence[int]) -> list[int]:
        return sorted({self.label[a] for a in group})


class Ratio:
    """One component of a `means.MeanSystem` (or the few that the group touches): its rows, and s/n of the group."""

    def __init__(self, system: Printed, members: list[int], group: list[int]) -> None:
        self.s = system
        self.position = {c: i for i, c in enumerate(members)}
        self.k = len(members)
        self.n_columns = [self.position[c] for c in group]
        self.s_columns = [self.k + i for i in self.n_columns]
        self.count_rows: list[tuple[list[int], int, int | None]] = []
        self.mean_rows: list[tuple[list[int], Fraction, Fraction]] = []
        for count in system.counts:
            classes = system.classes(count.atoms)
            if classes and classes[0] in self.position:
                self.count_rows.append(([self.position[c] for c in classes], count.lo, count.hi))
        for mean in system.means:
            classes = system.classes(mean.atoms)
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
        self.bottoms, self.tops = self._ends_of_classes()

    def _ends_of_classes(self) -> tuple[list[int], list[int | None]]:
        """Least and largest N of every class by the rows it is in (`None`: open above)."""
        bottoms, tops = [0] * self.k, [None] * self.k  # type: tuple[list[int], list[int | None]]
        for columns, lo, hi in self.count_rows:
            if len(columns) == 1:
                bottoms[columns[0]] = max(bottoms[columns[0]], lo)
            for c in columns if hi is not None else ():
                top = tops[c]
                tops[c] = hi if top is None or (hi is not None and hi < top) else top
        return bottoms, tops

    def sum_rows(self) -> list[Row]:
        """What means, identities and bounds of values say of people (columns 0 to k − 1) and sums (k to 2k − 1)."""
        rows: list[Row] = []
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

    def model(self, *, occupied: bool = False) -> Model:
        """Whole people n, sums s (of an empty class too) and somebody in the group; or (`occupied`), where the group
        may be empty, with third columns that say which classes have somebody."""
        k, more = self.k, self.k if occupied else 0
        model = Model(
            [0.0] * k + [-INF] * k + [0.0] * more,
            [self.s.cap] * k + [INF] * k + [1.0] * more,
            [True] * k + [False] * k + [True] * more,
            max_nodes=NODES,
        )
        rows = self.sum_rows()
        rows += [([c, 2 * k + c], [1.0, -1.0], 0.0, INF) for c in range(more)]
        for columns, lo, hi in self.count_rows:
            rows.append((columns, [1.0] * len(columns), float(lo), INF if hi is None else float(hi)))
        if not occupied:
            rows.append((self.n_columns, [1.0] * len(self.n_columns), 1.0, INF))
        model.add_rows(rows)
        return model

    def relaxed(self, sign: int, t_high: float) -> float:
        """Charnes-Cooper relaxation with 1/N of the group between 0 and `t_high`; 0: the limit of large groups, in
        which classes of bounded size have no part."""
        k = self.k
        sums = [0.0 if top == 0 or (t_high == 0.0 and top is not None) else INF for top in self.tops]
        model = Model([0.0] * k + [-v for v in sums] + [0.0], [INF] * k + sums + [t_high])
        rows = self.sum_rows()
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
        best = Search(self, sign).run()
        if best is None or all(top is not None for top in self.tops):
            return best
        ray = self.relaxed(sign, 0.0)
        return None if sign * ray == -INF else sign * min(sign * best, sign * ray)

    def real_end(self, sign: int) -> float | None:
        """The least or largest mean for a reader who does not know that people are whole numbers."""
        if self.s.bounds is None:
            for c, top in enumerate(self._largest()):
                self.tops[c] = top
        return self.outer(sign, INF)

    def _largest(self) -> list[int | None]:
        """`tops` with 0 for the classes that the other rows leave nobody: these have no sum."""
        model = Model([0.0] * self.k, [self.s.cap] * self.k)
        ones = [([*columns], [1.0] * len(columns), lo, hi) for columns, lo, hi in self.count_rows]
        model.add_rows([(a, b, float(lo), INF if hi is None else float(hi)) for a, b, lo, hi in ones])
        out = list(self.tops)
        for c in range(self.k):
            cost = np.zeros(self.k)
            cost[c] = -1.0
            found = model.minimise(cost)
            out[c] = 0 if found.status == "optimal" and found.value > -1e-7 else out[c]
        return out

    def outer(self, sign: int, t_high: float = 1.0) -> float | None:
        """A bound that holds the least or largest mean: people may be fractions."""
        relaxed = self.relaxed(sign, t_high)
        if sign * relaxed == INF:
            raise Contradiction("no table fits what is published", next_step="check the means and totals")
        return None if sign * relaxed == -INF else relaxed

    def fits_without(self) -> bool:
        """Whether some table fits in which the group is empty; people may be fractions."""
        lower, upper = np.asarray([0.0] * self.k + [-INF] * self.k), np.full(2 * self.k, INF)
        empty = self.n_columns + self.s_columns
        lower[empty], upper[empty] = 0.0, 0.0
        model = Model(lower, upper)
        counts = [(c, [1.0] * len(c), float(lo), INF if hi is None else float(hi)) for c, lo, hi in self.count_rows]
        model.add_rows(self.sum_rows() + counts)
        return model.minimise(np.zeros(2 * self.k)).status == "optimal"

    def at(self, people: NDArray[np.int64], sign: int, columns: Sequence[int] | None = None) -> float | None:
        """Least (or largest) sum over `columns` (the group) for these people; ±∞: unbounded; None: nothing fits."""
        low, high = self.s.bounds or (-INF, INF)
        occupied = np.flatnonzero(people)
        place = {int(c): i for i, c in enumerate(occupied)}
        wanted = [place[c] for c in (self.n_columns if columns is None else columns) if c in place]
        n = people[occupied].astype(np.float64)
        model = Model(low * n, high * n, feasibility=1e-9)
        rows: list[Row] = []
        for members, lo, hi in self.mean_rows:
            total = int(people[members].sum())
            here = [place[c] for c in members if c in place]
            if here:
                rows.append((here, [1.0] * len(here), float(lo * total), float(hi * total)))
        for row in self.identity_rows:
            room = sum(e * int(people[c]) for c, (_, e) in row.items())
            here = [c for c in row if c in place]
            if here:
                rows.append(([place[c] for c in here], [row[c][0] for c in here], -room, room))
        model.add_rows(rows)
        cost = np.zeros(len(occupied))
        cost[wanted] = sign
        found = model.minimise(cost)
        if found.status == "limit":
            raise SolverError("an interval of a mean could not be settled")
        return None if found.status == "infeasible" else sign * found.value

    def free_sums(self, occupied: Iterable[int]) -> FreeSums:
        """Which sums can move when these classes have people."""
        rows = [dict.fromkeys(columns, Fraction(1)) for columns, _, _ in self.mean_rows]
        rows += [{c: Fraction(value) for c, (value, _) in row.items()} for row in self.identity_rows]
        return FreeSums(occupied, rows)

    def somebody_nearly_everywhere(self) -> FreeSums | None:
        """Of a table that fits and has as many classes with people as the search finds; None where none is found."""
        k = self.k
        model = self.model(occupied=True)
        cost = np.zeros(3 * k)
        cost[2 * k :] = -1.0
        found = model.minimise(cost)
        if found.status != "optimal":
            return None
        people = np.rint(found.x[:k]).astype(np.int64)
        return None if self.at(people, 1, ()) is None else self.free_sums(np.flatnonzero(people).tolist())


class FreeSums:
    """The directions in which the sums of the classes with people can move without a printed number changing."""

    def __init__(self, occupied: Iterable[int], rows: Sequence[dict[int, Fraction]]) -> None:
        self.occupied = list(occupied)
        self.place = {c: i for i, c in enumerate(self.occupied)}
        matrix = np.zeros((len(rows), len(self.place)), dtype=np.int64)
        for i, row in enumerate(rows):
            for c, value in row.items():
                if c in self.place:  # an empty class has no sum to move
                    matrix[i, self.place[c]] = value.numerator * pow(value.denominator, -1, PRIME) % PRIME
        self.base, self.pivots = reduce_rows(matrix)

    def _rest(self, columns: Sequence[int]) -> NDArray[np.int64]:
        """The group's sum after subtraction of what is printed: zero where it is a combination of it.

        A combination that exists modulo the prime only goes to the exact search. One that the prime hides would need a
        determinant divisible by it.
        """
        vector = np.zeros(len(self.place), dtype=np.int64)
        vector[[self.place[c] for c in columns if c in self.place]] = 1
        for i, p in enumerate(self.pivots):
            if vector[p]:
                vector = (vector - vector[p] * self.base[i]) % PRIME
        return vector

    def moves(self, columns: Sequence[int]) -> bool:
        """Whether the sum over these classes is no combination of what is printed."""
        return bool(self._rest(columns).any())

    def ray(self, columns: Sequence[int], doubtful: set[int]) -> list[int] | None:
        """Classes that must have people for the group's sum to run away: the direction that needs the fewest of the
        `doubtful` ones. None: it cannot."""
        rays = []
        for f in np.flatnonzero(self._rest(columns)).tolist():
            moved = [f, *(p for i, p in enumerate(self.pivots) if self.base[i, f])]
            rays.append([self.occupied[i] for i in moved if self.occupied[i] in doubtful])
        return min(rays, key=lambda needed: (len(needed), needed)) if rays else None


class Search:
    """One end of one interval."""

    def __init__(self, ratio: Ratio, sign: int) -> None:
        self.ratio, self.sign = ratio, sign
        self.model = ratio.model()
        self.best: float | None = None
        self.runs_away = False
        self.bound = None if ratio.s.bounds is None else ratio.outer(sign)  # nothing lies beyond

    def run(self) -> float | None:
        """The end; None: unbounded."""
        stack: list[dict[int, bool]] = [{}]  # class: with somebody (True) or empty (False)
        for _ in range(BRANCHES):
            if not stack:
                break
            known = stack.pop()
            if (c := self._node(known)) is not None:
                stack += [{**known, c: False}, {**known, c: True}]
            if self.runs_away:
                return None
        if stack:
            raise SolverError("an interval of a mean did not settle")
        if self.best is None:
            raise Contradiction("no table fits what is published", next_step="check the means and totals")
        return self.best

    def _node(self, known: dict[int, bool]) -> int | None:
        """Settle the tables with these classes empty or not; else the class to decide first."""
        r = self.ratio
        for c in range(r.k):
            filled = False if r.tops[c] == 0 else known.get(c)
            self.model.set_bounds(c, float(filled is True), 0.0 if filled is False else r.s.cap)
            self.model.set_bounds(r.k + c, *((0.0, 0.0) if filled is False else (-INF, INF)))
        doubtful = {c for c in range(r.k) if c not in known and not r.bottoms[c] and r.tops[c] != 0}
        if r.s.bounds is None:
            free = r.free_sums(c for c in range(r.k) if known.get(c, True) and r.tops[c] != 0)
            needed = free.ray(r.n_columns, doubtful)
            if needed:
                return needed[0]
            if needed is not None:
                return self._anything_fits(doubtful)
        return self._dinkelbach(doubtful)

    def _anything_fits(self, doubtful: set[int]) -> int | None:
        """The sum runs away in every table of the node: is there one?"""
        found = self.model.minimise(np.zeros(self.model.n))
        if found.status == "infeasible":
            return None
        people = self._people(found.status, found.x)
        if self.ratio.at(people, self.sign, ()) is not None:
            self.runs_away = True
            return None
        return self._sum_of_nobody(people, found.x, doubtful)

    def _people(self, status: str, x: NDArray[np.float64]) -> NDArray[np.int64]:
        if status != "optimal":
            raise SolverError(f"an interval could not be settled: {status}")
        return np.rint(x[: self.ratio.k]).astype(np.int64)

    def _sum_of_nobody(self, people: NDArray[np.int64], x: NDArray[np.float64], doubtful: set[int]) -> int:
        """The class to decide: empty, with the largest sum."""
        sums = {c: abs(float(x[self.ratio.k + c])) for c in sorted(doubtful) if not people[c]}
        if not sums or max(sums.values()) < 1e-12:
            raise SolverError("an interval of a mean did not settle")
        return max(sums, key=lambda c: sums[c])

    def _dinkelbach(self, doubtful: set[int]) -> int | None:
        r, sign = self.ratio, self.sign
        cost = np.zeros(self.model.n)
        for _ in range(100):
            aim = self.best if self.best is not None else self.bound or 0.0
            close = CLOSE * max(1.0, abs(aim))
            if self.best is not None and self.bound is not None and sign * (self.best - self.bound) <= 0.1 * close:
                return None
            cost[r.s_columns], cost[r.n_columns] = sign, -sign * aim
            found = self.model.minimise(cost)
            if found.status == "infeasible":
                return None
            people = self._people(found.status, found.x)
            size = int(people[r.n_columns].sum())
            if self.best is not None and found.value >= -0.1 * close:  # at least one person: nor is any mean below
                return None
            total = r.at(people, sign)
            if total is not None and abs(total) == INF:
                raise SolverError("a sum is unbounded that algebra gives")
            if total is not None and (self.best is None or sign * (total / size - aim) < -0.1 * close):
                self.best = total / size
                continue
            if self.best is not None and found.value >= -close:
                return None
            return self._sum_of_nobody(people, found.x, doubtful)
        raise SolverError("an interval of a mean did not settle")
