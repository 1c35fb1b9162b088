"""Exact intervals of N: whole, non-negative numbers of people that fit everything published.

Atoms that no published or withheld cell tells apart are one variable; bounds are propagated, what is fixed is taken
out, and the rest falls into components that are solved apart: as a network where the cells form two laminar
families (`flows.py`), else as a whole-number program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .flows import Bounds, Network, two_families
from .released import Count
from .solver import INF, Model, SolverError

Interval = tuple[int, int | None]
WHOLE = 400  # variables of one component up to which whole numbers are insisted on
NODES = 5_000
PUSHES = 15_000_000  # cells asked about × arcs up to which the intervals of a network are worked out (half a minute)
LARGE = 3_000  # variables of one component from which only algebra and bound propagation are used


@dataclass
class Row:
    """lo ≤ Σ variables ≤ hi."""

    variables: tuple[int, ...]
    lo: int
    hi: int | None


class Contradiction(SolverError):
    """No table fits what is published."""


def merge_atoms(n_atoms: int, groups: Iterable[Sequence[int]]) -> tuple[list[int], int]:
    """Class of every atom: two atoms in exactly the same groups are in one class."""
    label = [0] * n_atoms
    n_labels = 1
    for group in groups:
        split: dict[int, int] = {}
        for atom in group:
            old = label[atom]
            if old not in split:
                split[old] = n_labels
                n_labels += 1
            label[atom] = split[old]
    order: dict[int, int] = {}
    return [order.setdefault(x, len(order)) for x in label], len(order)


def _classes(group: Sequence[int], label: Sequence[int]) -> tuple[int, ...]:
    if len(group) == 1:
        return (label[group[0]],)
    return tuple(sorted({label[a] for a in group}))


class CountSystem:
    """The attacker's knowledge of N, reduced."""

    def __init__(self, n_atoms: int, counts: Sequence[Count], targets: Sequence[Sequence[int]], integer: bool = True):
        groups = list(dict.fromkeys([c.atoms for c in counts] + [tuple(t) for t in targets]))
        self.label, self.k = merge_atoms(n_atoms, groups)
        self.integer = integer
        self.relaxed: set[tuple[int, ...]] = set()  # groups whose interval is the linear one (it holds the exact one)
        self.moving: set[tuple[int, ...]] = set()  # of these, groups shown to be not exactly known
        merged: dict[tuple[int, ...], Row] = {}
        for c in counts:
            key = _classes(c.atoms, self.label)
            row = merged.get(key)
            if row is None:
                merged[key] = Row(key, c.lo, c.hi)
            else:
                row.lo = max(row.lo, c.lo)
                row.hi = c.hi if row.hi is None else row.hi if c.hi is None else min(row.hi, c.hi)
        self.rows = list(merged.values())
        self.lo = [0] * self.k
        self.hi: list[int | None] = [None] * self.k
        self._propagate()
        self._components(targets)

    def _propagate(self, rounds: int = 50) -> None:
        hi = self.hi
        for row in self.rows:
            if row.hi is not None:
                for v in row.variables:
                    if hi[v] is None or row.hi < hi[v]:  # type: ignore[operator]
                        hi[v] = row.hi
        for row in self.rows:
            if len(row.variables) == 1:  # most cells of a table: known at once, never looked at again
                v = row.variables[0]
                self.lo[v] = max(self.lo[v], row.lo)
                if hi[v] is not None and self.lo[v] > hi[v]:  # type: ignore[operator]
                    raise Contradiction("the published numbers contradict each other", next_step="check the totals")
        longer = [row for row in self.rows if len(row.variables) > 1]
        queue = list(longer)
        of: list[list[Row]] = [[] for _ in range(self.k)]
        for row in longer:
            for v in row.variables:
                of[v].append(row)
        size = sum(len(row.variables) for row in self.rows)
        for _ in range(max(2, min(rounds, 2_000_000 // max(1, size)))):  # bounds only: fewer rounds are only looser
            touched: set[int] = set()
            for row in queue:
                touched |= self._tighten(row)
            if not touched:
                break
            seen: dict[int, Row] = {}
            for v in touched:
                for row in of[v]:
                    seen[id(row)] = row
            queue = list(seen.values())

    def _tighten(self, row: Row) -> set[int]:
        lo, hi = self.lo, self.hi
        low_sum = sum(lo[v] for v in row.variables)
        open_above = [v for v in row.variables if hi[v] is None]
        high_sum = sum(hi[v] or 0 for v in row.variables)
        if (row.hi is not None and low_sum > row.hi) or (not open_above and high_sum < row.lo):
            raise Contradiction("the published numbers contradict each other", next_step="check the table's totals")
        touched = set()
        for v in row.variables:
            high = hi[v]
            if row.hi is not None:
                cap = row.hi - (low_sum - lo[v])
                if high is None or cap < high:
                    hi[v] = cap
                    touched.add(v)
            if not open_above or open_above == [v]:
                floor = row.lo - (high_sum - (high or 0))
                if floor > lo[v]:
                    lo[v] = floor
                    touched.add(v)
            new = hi[v]
            if new is not None and lo[v] > new:
                raise Contradiction("the published numbers contradict each other", next_step="check the totals")
            if v in touched:
                low_sum = sum(lo[u] for u in row.variables) if len(row.variables) < 64 else low_sum
                high_sum = sum(hi[u] or 0 for u in row.variables) if len(row.variables) < 64 else high_sum
                open_above = [u for u in open_above if hi[u] is None]
        return touched

    def _components(self, targets: Sequence[Sequence[int]]) -> None:
        """Rows over variables that are not fixed, and the components they form."""
        free = [self.hi[v] is None or self.lo[v] < self.hi[v] for v in range(self.k)]  # type: ignore[operator]
        parent = list(range(self.k))

        def find(a: int) -> int:
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            return a

        rows: dict[tuple[int, ...], Row] = {}
        for row in self.rows:
            variables = tuple(v for v in row.variables if free[v])
            if not variables:
                continue
            fixed = sum(self.lo[v] for v in row.variables if not free[v])
            lo, hi = row.lo - fixed, None if row.hi is None else row.hi - fixed
            known = rows.get(variables)
            if known is None:
                rows[variables] = Row(variables, lo, hi)
            else:
                known.lo = max(known.lo, lo)
                known.hi = hi if known.hi is None else known.hi if hi is None else min(known.hi, hi)
            first = find(variables[0])
            for v in variables[1:]:
                parent[find(v)] = first
        self.free = free
        self.component = [find(v) if free[v] else -1 for v in range(self.k)]
        self.members: dict[int, list[int]] = {}
        for v in range(self.k):
            if free[v]:
                self.members.setdefault(self.component[v], []).append(v)
        self.component_rows: dict[int, list[Row]] = {c: [] for c in self.members}
        for row in rows.values():
            self.component_rows[self.component[row.variables[0]]].append(row)
        self._solvers: dict[int, _Component | _FlowComponent | _LargeComponent] = {}
        self._targets: dict[int, dict[tuple[int, ...], None]] = {}
        for group in targets:
            for c, members in self._parts(group).items():
                self._targets.setdefault(c, {}).setdefault(members)

    def _parts(self, group: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """The free classes of a group, by component."""
        parts: dict[int, list[int]] = {}
        for v in _classes(group, self.label):
            if self.free[v]:
                parts.setdefault(self.component[v], []).append(v)
        return {c: tuple(members) for c, members in parts.items()}

    def _solver(self, c: int) -> _Component | _FlowComponent | _LargeComponent:
        solver = self._solvers.get(c)
        if solver is None:
            solver = _flow_component(self, c) if self.integer else None
            if solver is None:
                solver = _LargeComponent(self, c) if len(self.members[c]) > LARGE else _Component(self, c)
            self._solvers[c] = solver
        return solver

    def interval(self, group: Sequence[int]) -> Interval:
        """Exact least and largest N of a group of atoms (`None`: no largest)."""
        variables = _classes(group, self.label)
        low = sum(self.lo[v] for v in variables if not self.free[v])
        high: int | None = low
        for c, members in self._parts(group).items():
            a, b = self._solver(c).interval(members)
            low += a
            high = None if high is None or b is None else high + b
        return low, high

    def is_relaxed(self, group: Sequence[int]) -> bool:
        """Whether the interval of a group came from linear programming alone."""
        return any(members in self.relaxed for members in self._parts(group).values())

    def moves(self, group: Sequence[int]) -> bool:
        """Whether a group with a relaxed interval is nevertheless shown to be not exactly known."""
        return any(members in self.moving for members in self._parts(group).values())

    def bounds(self, group: tuple[int, ...]) -> Interval:
        """Bounds of free classes of one component that hold the exact interval; said to be no more than that."""
        self.relaxed.add(group)
        tops = [self.hi[v] for v in group]
        high = None if any(t is None for t in tops) else sum(t for t in tops if t is not None)
        if len(group) > 1 or high is None:
            for row in self.component_rows[self.component[group[0]]]:
                if row.hi is not None and set(group) <= set(row.variables):
                    high = row.hi if high is None else min(high, row.hi)
        return sum(self.lo[v] for v in group), high

    def fixed(self, group: Sequence[int]) -> bool:
        """Whether the N of a group is exactly known."""
        return all(self._solver(c).fixed(members) for c, members in self._parts(group).items())


class _FlowComponent:
    """One connected component that is a network (`flows.py`)."""

    def __init__(self, network: Network, arcs: dict[tuple[int, ...], int], rest: _Component, asked: int) -> None:
        self.network, self.arcs, self.rest = network, arcs, rest
        self.large = asked * len(network.tail) > PUSHES
        self._flags: dict[int, bool] | None = None

    def interval(self, group: tuple[int, ...]) -> Interval:
        """By two maximum flows; groups that are no arc go to the whole-number program."""
        arc = self.arcs.get(group)
        if self.large:
            return self._outer(group, arc)
        if arc is None:
            return self.rest.interval(group)
        top = self.rest.system.hi
        if any(top[v] is None for v in group):  # in no row with an upper bound: the flow on it is cut nowhere
            return self.network.least(arc), None
        return self.network.interval(arc)

    def _outer(self, group: tuple[int, ...], arc: int | None) -> Interval:
        """Too many cells for a flow each: what is exactly known by bridges, else bounds."""
        system = self.rest.system
        if arc is not None and self.fixed(group):
            assert self.network.flow is not None
            value = int(self.network.flow[arc])
            return value, value
        if arc is not None:
            system.moving.add(group)
        return system.bounds(group)

    def fixed(self, group: tuple[int, ...]) -> bool:
        """By bridges where the group is an arc."""
        arc = self.arcs.get(group)
        if arc is None:
            return self.rest.fixed(group)
        if any(self.rest.system.hi[v] is None for v in group):
            return False
        if self._flags is None:
            known = sorted(set(self.arcs.values()))
            self._flags = dict(zip(known, self.network.flags(known), strict=True))
        return self._flags[arc]


def _flow_component(system: CountSystem, name: int) -> _FlowComponent | None:
    """The component as a network, if its rows split into two nested families and its numbers are not too large."""
    entries = sum(len(row.variables) for row in system.component_rows[name])
    if len(system.members[name]) > LARGE and entries > 4 * len(system.members[name]):
        return None  # many overlapping tables: no two families
    rest = _Component(system, name)
    rows = [row for row in rest.rows if len(row.variables) > 1]
    groups = {row.variables for row in rows}
    wanted = [g for g in system._targets.get(name, {}) if len(g) > 1 and g not in groups]
    families: list[int] | None = None
    for targets in [wanted, []] if wanted else [[]]:
        families = two_families([[rest.position[v] for v in g] for g in [*(r.variables for r in rows), *targets]])
        if families is not None:
            break
    if families is None:
        return None
    named = [(row.variables, Bounds(max(row.lo, 0), row.hi)) for row in rows]
    named += [(g, Bounds(0, None)) for g in targets]
    network = Network(
        [Bounds(system.lo[v], system.hi[v]) for v in rest.variables],
        [([rest.position[v] for v in g], bounds) for g, bounds in named],
        families,
    )
    if not network.fits:
        return None
    if not network.feasible():
        raise Contradiction("no table fits what is published", next_step="check the table's totals")
    arcs: dict[tuple[int, ...], int] = {(v,): network.variable_arc[i] for i, v in enumerate(rest.variables)}
    arcs.update({g: network.row_arc[i] for i, (g, _) in enumerate(named)})
    return _FlowComponent(network, arcs, rest, len(system._targets.get(name, {})))


class _LargeComponent:
    """Thousands of classes that no network describes (many linked tables of a large cohort).

    What follows by algebra from exact numbers is known exactly; for the rest the propagated bounds are given, which
    hold the exact interval. Each person being almost alone in a class, whole numbers add nothing there.
    """

    def __init__(self, system: CountSystem, name: int) -> None:
        from .span import Span

        self.system = system
        members = system.members[name]
        self.position = {v: i for i, v in enumerate(members)}
        self.known = [row for row in system.component_rows[name] if row.hi is not None and row.lo == row.hi]
        self.groups = [tuple(self.position[v] for v in row.variables) for row in self.known]
        self.span = Span(len(members), self.groups, [0] * len(members))
        self._inverse: np.ndarray | None = None
        self._matrix = np.zeros((0, 0))

    def interval(self, group: tuple[int, ...]) -> Interval:
        """Exact where derivable, else bounds that hold it."""
        places = [self.position[v] for v in group]
        if self.span.contains(places):
            value = self._value(places)
            return value, value
        return self.system.bounds(group)

    def fixed(self, group: tuple[int, ...]) -> bool:
        """Whether the N of a group is exactly known."""
        low, high = self.interval(group)
        return low == high

    def _value(self, places: list[int]) -> int:
        """The derivable N: the combination's right-hand sides."""
        if self._inverse is None:
            self._matrix = np.zeros((len(self.position), len(self.groups)))
            for j, members in enumerate(self.groups):
                self._matrix[list(members), j] = 1.0
            self._inverse = np.linalg.pinv(self._matrix.T @ self._matrix, rcond=1e-11, hermitian=True)
        weights = self._inverse @ self._matrix[places].sum(axis=0)
        value = float(weights @ np.asarray([float(row.lo) for row in self.known]))
        if abs(value - round(value)) > 1e-3:
            raise SolverError("a derivable number could not be worked out")
        return round(value)


class _Component:
    """One connected component, by whole-number programs."""

    def __init__(self, system: CountSystem, name: int) -> None:
        self.system = system
        self.variables = system.members[name]
        self.position = {v: i for i, v in enumerate(self.variables)}
        self.rows = system.component_rows[name]
        self._linear: Model | None = None
        self._whole: Model | None = None

    def _model(self, integer: bool) -> Model:
        s = self.system
        upper = [INF if s.hi[v] is None else float(s.hi[v]) for v in self.variables]  # type: ignore[arg-type]
        model = Model([float(s.lo[v]) for v in self.variables], upper, [integer] * len(self.variables), max_nodes=NODES)
        model.add_rows(
            [
                (
                    [self.position[v] for v in row.variables],
                    [1.0] * len(row.variables),
                    float(row.lo),
                    INF if row.hi is None else float(row.hi),
                )
                for row in self.rows
                if len(row.variables) > 1
            ]
        )
        return model

    def interval(self, group: tuple[int, ...]) -> Interval:
        s = self.system
        if any(s.hi[v] is None for v in group):
            return self._extreme(group, +1), None
        if len(self.variables) == 1:
            v = self.variables[0]
            return s.lo[v], s.hi[v]
        return self._extreme(group, +1), -self._extreme(group, -1)

    def fixed(self, group: tuple[int, ...]) -> bool:
        """Whether least and largest are the same."""
        low, high = self.interval(group)
        return low == high

    def _extreme(self, group: tuple[int, ...], sign: int) -> int:
        cost = np.zeros(len(self.variables))
        cost[[self.position[v] for v in group]] = sign
        if self._linear is None:
            self._linear = self._model(False)
        relaxed = self._linear.minimise(cost)
        if relaxed.status == "optimal" and (value := self._whole_value(relaxed.x, cost)) is not None:
            return value
        if relaxed.status == "infeasible":
            raise Contradiction("no table fits what is published", next_step="check the table's totals")
        if relaxed.status == "optimal" and len(self.variables) > WHOLE:
            return self._outer(relaxed.value, group)
        if self._whole is None:
            self._whole = self._model(True)
        found = self._whole.minimise(cost)
        if found.status == "limit" and relaxed.status == "optimal":
            return self._outer(relaxed.value, group)
        if found.status != "optimal":
            if found.status == "infeasible":
                raise Contradiction("no table fits what is published", next_step="check the table's totals")
            raise SolverError(f"an interval could not be settled: {found.status}")
        value = self._whole_value(found.x, cost)
        if value is None:
            raise SolverError("the solver's point does not fit the published numbers")
        return value

    def _outer(self, value: float, group: tuple[int, ...]) -> int:
        """The linear bound, rounded to the nearest whole number inside it; said to be no more than that."""
        self.system.relaxed.add(group)
        return math.ceil(value - 1e-6)

    def _whole_value(self, x: np.ndarray, cost: np.ndarray) -> int | None:
        """Objective at the rounded point if that point is whole and fits every row exactly."""
        point = np.rint(x).astype(np.int64)
        if np.abs(point - x).max() > 1e-6:
            return None
        s = self.system
        for i, v in enumerate(self.variables):
            high = s.hi[v]
            if point[i] < s.lo[v] or (high is not None and point[i] > high):
                return None
        for row in self.rows:
            total = int(sum(int(point[self.position[v]]) for v in row.variables))
            if total < row.lo or (row.hi is not None and total > row.hi):
                return None
        return int(point @ cost.astype(np.int64))
