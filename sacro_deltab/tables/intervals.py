"""Exact intervals of N: whole, non-negative numbers of people that fit everything published.

Atoms that no published or withheld cell tells apart are one variable; bounds are propagated (`bounds.py`), what is
fixed is taken out, and the rest falls into components that are solved apart (`components.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .bounds import OPEN, GroupBounds, class_bounds
from .components import Component, FlowComponent, Interval, LargeComponent, Learnt, Piece, Row, flow_component
from .layout import IntArray, hang_together

LARGE = 3_000  # variables of one component from which only algebra and bound propagation are used


class CountSystem:
    """The attacker's knowledge of N, reduced.

    Parameters
    ----------
    known
        What is told of groups; its layout has every group that will be asked about.
    asked
        Positions of these groups in the layout.
    integer
        Whether numbers of people are whole.
    """

    def __init__(self, known: GroupBounds, asked: IntArray, integer: bool = True) -> None:
        self.layout, self.asked, self.integer = known.layout, asked, integer
        self.rows = class_bounds(known)
        self.learnt = Learnt(known.layout)
        self._solvers: dict[int, Component | FlowComponent | LargeComponent] = {}
        self.component = np.full(self.layout.k, -1)  # of every class that is not known
        self.n_components = 0
        if self.rows.free.any():
            self._cut()

    def _cut(self) -> None:
        """Free classes that hang together by rows, numbered."""
        rows = self.rows
        first = np.repeat(rows.classes[rows.start[:-1]], np.diff(rows.start))
        label = hang_together(self.layout.k, first, rows.classes)
        used = np.zeros(self.layout.k, dtype=np.int64)
        used[label[rows.free]] = 1
        self.component[rows.free] = (np.cumsum(used) - 1)[label[rows.free]]
        self.n_components = int(used.sum())

    @cached_property
    def _members(self) -> list[IntArray]:
        order = np.argsort(self.component, kind="stable")
        order = order[int((self.component < 0).sum()) :]
        size = np.bincount(self.component[order], minlength=self.n_components)
        return np.split(order, np.cumsum(size)[:-1])

    @cached_property
    def _rows(self) -> list[list[Row]]:
        """Rows of every component, those over the same classes put together."""
        rows = self.rows
        merged: dict[tuple[int, ...], Row] = {}
        classes, ends, groups = rows.classes.tolist(), rows.start.tolist(), rows.group.tolist()
        for j, (low, high) in enumerate(zip(rows.row_lo.tolist(), rows.row_hi.tolist(), strict=True)):
            key = tuple(classes[ends[j] : ends[j + 1]])
            row = merged.setdefault(key, Row(key, low, None, groups[j]))
            row.lo = max(row.lo, low)
            if high != OPEN:
                row.hi = high if row.hi is None else min(row.hi, high)
        out: list[list[Row]] = [[] for _ in range(self.n_components)]
        for row in merged.values():
            out[self.component[row.variables[0]]].append(row)
        return out

    @cached_property
    def _asked(self) -> list[dict[tuple[int, ...], int]]:
        """Groups of several classes that are asked about, by component, with their positions in the layout."""
        out: list[dict[tuple[int, ...], int]] = [{} for _ in range(self.n_components)]
        for i in dict.fromkeys(self.asked[self.layout.size[self.asked] > 1].tolist()):
            for c, members in self._parts(self.layout.row(i)).items():
                out[c].setdefault(members, i)
        return out

    @cached_property
    def _asked_alone(self) -> IntArray:
        """Single classes that are asked about, by component."""
        single = self.asked[self.layout.size[self.asked] == 1]
        where = self.component[np.unique(self.layout.classes[self.layout.start[single]])]
        return np.bincount(where[where >= 0], minlength=self.n_components)

    def _group(self, group: Sequence[int]) -> IntArray:
        return self.layout.row(self.layout.index[tuple(group)])

    def _parts(self, classes: IntArray) -> dict[int, tuple[int, ...]]:
        """The free classes of a group, by component."""
        parts: dict[int, list[int]] = {}
        for v, c in zip(classes.tolist(), self.component[classes].tolist(), strict=True):
            if c >= 0:
                parts.setdefault(c, []).append(v)
        return {c: tuple(members) for c, members in parts.items()}

    def piece(self, c: int) -> Piece:
        """One component by itself."""
        members = self._members[c]
        hi = self.rows.hi[members]
        tops = [None if top == OPEN else top for top in hi.tolist()]
        return Piece(members.tolist(), self.rows.lo[members].tolist(), tops, self._rows[c], self._asked[c], self.learnt)

    def _solver(self, c: int) -> Component | FlowComponent | LargeComponent:
        solver = self._solvers.get(c)
        if solver is None:
            piece = self.piece(c)
            asked = len(piece.asked) + int(self._asked_alone[c])
            solver = flow_component(piece, asked) if self.integer else None
            if solver is None:
                solver = LargeComponent(piece) if len(piece.variables) > LARGE else Component(piece)
            self._solvers[c] = solver
        return solver

    def interval(self, group: Sequence[int]) -> Interval:
        """Exact least and largest N of a group of atoms (`None`: no largest)."""
        classes = self._group(group)
        low = int(self.rows.lo[classes[self.component[classes] < 0]].sum())
        high: int | None = low
        for c, members in self._parts(classes).items():
            a, b = self._solver(c).interval(members)
            low += a
            high = None if high is None or b is None else high + b
        return low, high

    def is_relaxed(self, group: Sequence[int]) -> bool:
        """Whether the interval of a group came from linear programming alone."""
        return any(members in self.learnt.relaxed for members in self._parts(self._group(group)).values())

    def linear_width(self, group: Sequence[int]) -> float | None:
        """How far apart two tables in fractions of people are in a group; None where that was not worked out."""
        width = 0.0
        for c, members in self._parts(self._group(group)).items():
            if (members, +1) not in self.learnt.ends and members not in self.learnt.relaxed:
                self._solver(c).interval(members)
            if (members, +1) not in self.learnt.ends:
                return None
            width += self.learnt.ends[members, -1] - self.learnt.ends[members, +1]
        return width

    def moves(self, group: Sequence[int]) -> bool:
        """Whether a group with a relaxed interval is nevertheless shown to be not exactly known."""
        return any(members in self.learnt.moving for members in self._parts(self._group(group)).values())

    def fixed(self) -> list[bool]:
        """For every group asked about, whether its N is exactly known."""
        single = self.layout.size[self.asked] == 1
        out = np.ones(len(self.asked), dtype=bool)
        classes = self.layout.classes[self.layout.start[self.asked]]
        out[single] = self._fixed_classes(np.unique(classes[single]))[classes[single]]
        for place in np.flatnonzero(~single).tolist():
            parts = self._parts(self.layout.row(int(self.asked[place])))
            out[place] = all(self._solver(c).fixed(members) for c, members in parts.items())
        return out.tolist()

    def _fixed_classes(self, classes: IntArray) -> np.ndarray:
        """For every class whether its N is exactly known; only those of `classes` are worked out."""
        known = ~self.rows.free
        where = self.component[classes]
        for c in np.unique(where[where >= 0]).tolist():
            mine = classes[where == c]
            known[mine] = self._solver(c).fixed_alone(mine.tolist())
        return known
