"""Connected components of the attacker's knowledge of N, each by what suits it.

A network where the cells form two laminar families (`flows.py`), else whole-number programs; where thousands of
classes hang together only algebra and propagated bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .flows import Network
from .layout import Layout, flatten, two_families
from .solver import INF, Contradiction, Model, SolverError
from .span import Span

Interval = tuple[int, int | None]
WHOLE = 400  # variables of one component up to which whole numbers are insisted on
NODES = 5_000
PUSHES = 15_000_000  # cells asked about × arcs up to which the intervals of a network are worked out (half a minute)
SPARSE = 3_000  # variables from which components of many overlapping groups are not looked at as networks


@dataclass
class Row:
    """lo ≤ Σ variables ≤ hi; `group`: the group of the layout that says so."""

    variables: tuple[int, ...]
    lo: int
    hi: int | None
    group: int


@dataclass(frozen=True)
class Learnt:
    """What the components of one layout found besides their intervals."""

    layout: Layout
    relaxed: set[tuple[int, ...]] = field(default_factory=set)  # interval is the linear one (it holds the exact one)
    ends: dict[tuple[tuple[int, ...], int], float] = field(default_factory=dict)  # by programs
    moving: set[tuple[int, ...]] = field(default_factory=set)  # of the relaxed: groups shown to be not exactly known


@dataclass(frozen=True)
class Piece:
    """One component: its variables (classes) with bounds, the rows over them, and the longer groups asked about."""

    variables: list[int]
    lo: list[int]
    hi: list[int | None]
    rows: list[Row]
    asked: dict[tuple[int, ...], int]
    learnt: Learnt

    @cached_property
    def position(self) -> dict[int, int]:
        """Place of every variable."""
        return {v: i for i, v in enumerate(self.variables)}

    def open_above(self, group: Sequence[int]) -> bool:
        """Whether some variable of a group has no upper bound."""
        return any(self.hi[self.position[v]] is None for v in group)

    def bounds(self, group: tuple[int, ...]) -> Interval:
        """Bounds that hold the exact interval of a group; said to be no more than that."""
        self.learnt.relaxed.add(group)
        tops = [self.hi[self.position[v]] for v in group]
        high = None if any(t is None for t in tops) else sum(t for t in tops if t is not None)
        if len(group) > 1 or high is None:
            for row in self.rows:
                if row.hi is not None and set(group) <= set(row.variables):
                    high = row.hi if high is None else min(high, row.hi)
        return sum(self.lo[self.position[v]] for v in group), high


class FlowComponent:
    """One connected component that is a network (`flows.py`)."""

    def __init__(self, network: Network, arcs: dict[tuple[int, ...], int], rest: Component, asked: int) -> None:
        self.network, self.arcs, self.rest = network, arcs, rest
        self.large = asked * network.n_arcs > PUSHES

    def interval(self, group: tuple[int, ...]) -> Interval:
        """By two maximum flows; groups that are no arc go to the whole-number program."""
        arc = self._arc(group)
        if self.large:
            return self._outer(group, arc)
        if arc is None:
            return self.rest.interval(group)
        if self.rest.piece.open_above(group):  # in no row with an upper bound: the flow on it is cut nowhere
            return self.network.least(arc), None
        return self.network.interval(arc)

    def _arc(self, group: tuple[int, ...]) -> int | None:
        if len(group) == 1:
            return self.network.variable_arc + self.rest.position[group[0]]
        return self.arcs.get(group)

    def _outer(self, group: tuple[int, ...], arc: int | None) -> Interval:
        """Too many cells for a flow each: what is exactly known by bridges, else bounds."""
        piece = self.rest.piece
        if arc is not None and self.fixed(group):
            assert self.network.flow is not None
            value = int(self.network.flow[arc])
            return value, value
        if arc is not None:
            piece.learnt.moving.add(group)
        return piece.bounds(group)

    def fixed(self, group: tuple[int, ...]) -> bool:
        """By bridges where the group is an arc."""
        arc = self._arc(group)
        if arc is None:
            return self.rest.fixed(group)
        return not self.rest.piece.open_above(group) and bool(self.network.fixed[arc])

    def fixed_alone(self, variables: list[int]) -> list[bool]:
        """The same of single variables."""
        fixed = self.network.fixed[self.network.variable_arc :].tolist()
        position, tops = self.rest.position, self.rest.piece.hi
        return [fixed[position[v]] and tops[position[v]] is not None for v in variables]


def flow_component(piece: Piece, asked: int) -> FlowComponent | None:
    """The component as a network, if its rows split into two nested families and its numbers are not too large.

    `asked`: groups asked about.
    """
    entries = sum(len(row.variables) for row in piece.rows)
    if len(piece.variables) > SPARSE and entries > 4 * len(piece.variables):
        return None  # many overlapping tables: no two families
    rows = [row for row in piece.rows if len(row.variables) > 1]
    groups = {row.variables for row in rows}
    wanted = {g: i for g, i in piece.asked.items() if len(g) > 1 and g not in groups}
    named = [*(row.variables for row in rows), *wanted]
    everybody = piece.learnt.layout.families
    families: list[int] | None
    if everybody is not None:  # what is nested or apart stays so when known classes are taken out
        families = [everybody[i] for i in [*(row.group for row in rows), *wanted.values()]]
    else:
        families = _families(piece, named)
        if families is None and wanted:
            wanted, named = {}, named[: len(rows)]
            families = _families(piece, named)
    if families is None:
        return None
    places = [[piece.position[v] for v in group] for group in named]
    limits = [(max(row.lo, 0), row.hi) for row in rows] + [(0, None)] * len(wanted)
    network = Network(piece.lo, piece.hi, places, limits, families)
    if not network.fits:
        return None
    if not network.feasible():
        raise Contradiction("no table fits what is published", next_step="check the table's totals")
    return FlowComponent(network, {group: i for i, group in enumerate(named)}, Component(piece), asked)


def _families(piece: Piece, groups: Sequence[tuple[int, ...]]) -> list[int] | None:
    places = [[piece.position[v] for v in group] for group in groups]
    return two_families(len(piece.variables), *flatten(places))


class LargeComponent:
    """Thousands of classes that no network describes (many linked tables of a large cohort).

    What follows by algebra from exact numbers is known exactly; for the rest the propagated bounds are given, which
    hold the exact interval. Each person being almost alone in a class, whole numbers add nothing there.
    """

    def __init__(self, piece: Piece) -> None:

        self.piece, self.position = piece, piece.position
        self.known = [row for row in piece.rows if row.hi is not None and row.lo == row.hi]
        self.groups = [tuple(self.position[v] for v in row.variables) for row in self.known]
        self.span = Span(len(self.position), self.groups, [0] * len(self.position))
        self._inverse: np.ndarray | None = None
        self._matrix = np.zeros((0, 0))

    def interval(self, group: tuple[int, ...]) -> Interval:
        """Exact where derivable, else bounds that hold it."""
        places = [self.position[v] for v in group]
        if self.span.contains(places):
            value = self._value(places)
            return value, value
        return self.piece.bounds(group)

    def fixed(self, group: tuple[int, ...]) -> bool:
        """Whether the N of a group is exactly known."""
        low, high = self.interval(group)
        return low == high

    def fixed_alone(self, variables: list[int]) -> list[bool]:
        """The same of single variables."""
        return [self.fixed((v,)) for v in variables]

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


class Component:
    """One connected component, by whole-number programs."""

    def __init__(self, piece: Piece) -> None:
        self.piece, self.variables, self.position, self.rows = piece, piece.variables, piece.position, piece.rows
        self._linear: Model | None = None
        self._whole: Model | None = None
        self._points: list[np.ndarray] = []  # tables that fit, found so far

    def _model(self, integer: bool) -> Model:
        upper = [INF if top is None else float(top) for top in self.piece.hi]
        lower = [float(low) for low in self.piece.lo]
        model = Model(lower, upper, [integer] * len(self.variables), max_nodes=NODES)
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
        if len(self.variables) == 1:
            return self.piece.lo[0], self.piece.hi[0]
        low = self._extreme(group, +1)
        high = None if self.piece.open_above(group) else -self._extreme(group, -1)
        ends = self.piece.learnt.ends
        ends.setdefault((group, +1), low)
        ends.setdefault((group, -1), INF if high is None else high)
        return low, high

    def fixed(self, group: tuple[int, ...]) -> bool:
        """Whether least and largest are the same; two tables found so far that differ in the group settle it."""
        places = [self.position[v] for v in group]
        if len({int(point[places].sum()) for point in self._points}) > 1:
            return False
        low, high = self.interval(group)
        return low == high

    def fixed_alone(self, variables: list[int]) -> list[bool]:
        """The same of single variables."""
        return [self.fixed((v,)) for v in variables]

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
            return self._outer(relaxed.value, group, sign)
        if self._whole is None:
            self._whole = self._model(True)
        found = self._whole.minimise(cost)
        if found.status == "limit" and relaxed.status == "optimal":
            return self._outer(relaxed.value, group, sign)
        if found.status != "optimal":
            if found.status == "infeasible":
                raise Contradiction("no table fits what is published", next_step="check the table's totals")
            raise SolverError(f"an interval could not be settled: {found.status}")
        value = self._whole_value(found.x, cost)
        if value is None:
            raise SolverError("the solver's point does not fit the published numbers")
        return value

    def _outer(self, value: float, group: tuple[int, ...], sign: int) -> int:
        """The linear bound, rounded to the nearest whole number inside it; said to be no more than that."""
        self.piece.learnt.relaxed.add(group)
        self.piece.learnt.ends[group, sign] = sign * value
        return math.ceil(value - 1e-6)

    def _whole_value(self, x: np.ndarray, cost: np.ndarray) -> int | None:
        """Objective at the rounded point if that point is whole and fits every row exactly."""
        point = np.rint(x).astype(np.int64)
        if np.abs(point - x).max() > 1e-6:
            return None
        for value, low, high in zip(point.tolist(), self.piece.lo, self.piece.hi, strict=True):
            if value < low or (high is not None and value > high):
                return None
        for row in self.rows:
            total = int(sum(int(point[self.position[v]]) for v in row.variables))
            if total < row.lo or (row.hi is not None and total > row.hi):
                return None
        self._points.append(point)
        return int(point @ cost.astype(np.int64))
