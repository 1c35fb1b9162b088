"""Crossed tables: the cheapest box through a cell.

A group is protected as soon as the cells withheld leave a change of the table that moves it and no printed number. In a
crossed table the plainest changes are boxes: in every dimension +1 on one leaf and −1 on another (or on none, which
moves the totals), multiplied. Withheld go the cells that the box touches: 2 × 2 × 2 in three flat dimensions; between
leaves of different branches also the branches. Dimensions and their hierarchies are found from the groups alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .layout import IntArray, flatten, hang_together

FloatArray = NDArray[np.float64]
NEVER = 1e9  # cost of a cell that has to be printed
LARGEST = 4_000_000  # options × nodes of one dimension beyond which boxes are not looked for


@dataclass(frozen=True)
class Box:
    """A change of the table: per dimension the leaves it moves (+1, −1), and the cells that it touches."""

    value: float
    factors: tuple[FloatArray, ...]
    cells: IntArray  # positions in the flat array of nodes

    def moves(self, leaves: IntArray) -> bool:
        """Whether a group of classes, by their leaves, changes."""
        return abs(float(np.prod([f[leaves[:, d]] for d, f in enumerate(self.factors)], axis=0).sum())) > 0.5


@dataclass(frozen=True)
class Grid:
    """A crossed table. `nodes[d]`: nodes × leaves of a dimension, its root last; `leaf`: classes × dimensions;
    `node_of`: per row its node in every dimension."""

    nodes: tuple[FloatArray, ...]
    leaf: IntArray
    node_of: dict[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(cls, k: int, rows: Sequence[tuple[int, ...]]) -> Grid | None:
        """From groups of classes, ascending; None where they are not the cells of one crossed table."""
        rows = list(dict.fromkeys(row for row in rows if row))
        families = _families([row for row in rows if len(row) < k], k)
        if families is None or len(rows) == 0:
            return None
        label = np.full((len(families), k), -1, dtype=np.int64)
        for d, family in enumerate(families):
            for i, row in enumerate(family):
                label[d, list(row)] = i
        members, start = flatten(rows)
        met = np.stack([_distinct(label[d][members], start, len(f)) for d, f in enumerate(families)])
        full = met == np.asarray([len(f) for f in families])[:, None]
        leaf, nodes = np.zeros((k, len(families)), dtype=np.int64), []
        for d in range(len(families)):
            own = np.flatnonzero((met[d] == 1) & np.delete(full, d, axis=0).all(axis=0))
            inside = _leaves([rows[i] for i in own.tolist()], k)
            if inside is None:
                return None
            leaf[:, d], n = inside
            nodes.append(_tree([rows[i] for i in own.tolist()], leaf[:, d], n))
        return cls._checked(rows, nodes, leaf)

    @classmethod
    def _checked(cls, rows: Sequence[tuple[int, ...]], nodes: list[FloatArray], leaf: IntArray) -> Grid | None:
        """Every row must be the product of one node per dimension, every class a leaf of its own."""
        if len(np.unique(leaf, axis=0)) < len(leaf):
            return None
        name = [{tuple(np.flatnonzero(node).tolist()): i for i, node in enumerate(t)} for t in nodes]
        holes = int(np.prod([t.shape[1] for t in nodes])) - len(leaf)
        node_of = {}
        for row in rows:
            met = [tuple(np.unique(leaf[list(row), d]).tolist()) for d in range(len(nodes))]
            at = tuple(name[d].get(m, -1) for d, m in enumerate(met))
            if -1 in at or holes or int(np.prod([len(m) for m in met])) != len(row):
                return None
            node_of[row] = at
        return cls(tuple(nodes), leaf, node_of)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Nodes per dimension."""
        return tuple(len(t) for t in self.nodes)

    @cached_property
    def flat(self) -> dict[tuple[int, ...], int]:
        """Position of every row in the flat array of nodes."""
        return {row: int(np.ravel_multi_index(at, self.shape)) for row, at in self.node_of.items()}

    @cached_property
    def _options(self) -> dict[tuple[int, int], tuple[FloatArray, FloatArray]]:
        return {}

    def options(self, d: int, node: int) -> tuple[FloatArray, FloatArray]:
        """Every factor of one dimension that moves a node: over its leaves, and which nodes it touches."""
        if (d, node) not in self._options:
            tree = self.nodes[d]
            inside, outside = np.flatnonzero(tree[node]), np.flatnonzero(tree[node] == 0)
            n = len(inside) * (1 + len(outside))
            factor = np.zeros((n, tree.shape[1]))
            factor[np.arange(n), np.repeat(inside, 1 + len(outside))] = 1.0
            second = np.tile(np.append(outside, -1), len(inside))
            factor[np.flatnonzero(second >= 0), second[second >= 0]] = -1.0
            self._options[d, node] = factor, np.abs(factor @ tree.T)
        return self._options[d, node]

    def cheapest(self, cost: FloatArray, node: Sequence[int]) -> Box | None:
        """The box through a cell that costs least (`cost` per node, flat); None where there is none."""
        if any(self.nodes[d][at].sum() * self.nodes[d].size > LARGEST for d, at in enumerate(node)):
            return None
        options = [self.options(d, at) for d, at in enumerate(node)]
        total = cost.reshape(self.shape)
        for _, touched in options:  # one dimension after the other: nodes become options, the first axis the last
            total = np.tensordot(total, touched, axes=([0], [1]))
        best = np.unravel_index(int(np.argmin(total)), total.shape)
        if total[best] >= NEVER:
            return None
        touched_nodes = [np.flatnonzero(options[d][1][i]) for d, i in enumerate(best)]
        cells = np.ravel_multi_index(np.ix_(*touched_nodes), self.shape).ravel()
        return Box(float(total[best]), tuple(options[d][0][i] for d, i in enumerate(best)), cells)

    def through(self, cost: FloatArray, group: tuple[int, ...]) -> Box | None:
        """The cheapest box that moves a group: a cell, or any set of classes."""
        leaves = self.leaf[list(group)]
        found = [box for node in self._starts(group) if (box := self.cheapest(cost, node)) and box.moves(leaves)]
        return min(found, key=lambda box: box.value, default=None)

    def _starts(self, group: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if group in self.node_of:
            yield self.node_of[group]
            return
        for c in group:
            yield tuple(self._alone[d][int(self.leaf[c, d])] for d in range(len(self.nodes)))

    @cached_property
    def _alone(self) -> list[list[int]]:
        """The node of every single leaf."""
        return [
            [int(np.flatnonzero((t.sum(axis=1) == 1) & (t[:, i] == 1))[0]) for i in range(t.shape[1])]
            for t in self.nodes
        ]


def _families(rows: Sequence[tuple[int, ...]], k: int) -> list[list[tuple[int, ...]]] | None:
    """The largest groups below the whole, those that are apart together: each family must make up the whole."""
    tops: list[tuple[int, ...]] = []
    holds: dict[int, list[set[int]]] = {}
    for row in sorted(rows, key=len, reverse=True):
        if any(top.issuperset(row) for top in holds.get(row[0], ())):
            continue
        tops.append(row)
        mine = set(row)
        for c in row:
            holds.setdefault(c, []).append(mine)
        if sum(map(len, tops)) > 40 * k:
            return None
    sets = [set(top) for top in tops]
    pairs = [(i, j) for i in range(len(sets)) for j in range(i) if sets[i].isdisjoint(sets[j])]
    a, b = np.asarray([i for i, _ in pairs], dtype=np.int64), np.asarray([j for _, j in pairs], dtype=np.int64)
    label = hang_together(len(tops), a, b)
    out = [[tops[i] for i in np.flatnonzero(label == n).tolist()] for n in range(int(label.max(initial=-1)) + 1)]
    if not out or any(sum(map(len, f)) != k or len(set().union(*f)) != k for f in out):
        return None
    return out


def _distinct(values: IntArray, start: IntArray, n: int) -> IntArray:
    """How many different values (0 … n − 1) every row has."""
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return np.bincount(np.unique(row * n + values) // n, minlength=len(start) - 1)


def _leaves(nodes: Sequence[tuple[int, ...]], k: int) -> tuple[IntArray, int] | None:
    """Leaf of every class: the smallest nodes, which must make up the whole."""
    leaf = np.full(k, -1, dtype=np.int64)
    n = 0
    for node in sorted(nodes, key=len):
        held = leaf[list(node)]
        if (held < 0).all():
            leaf[list(node)] = n
            n += 1
        elif (held < 0).any():
            return None
    return None if (leaf < 0).any() else (leaf, n)


def _tree(nodes: Sequence[tuple[int, ...]], leaf: IntArray, n: int) -> FloatArray:
    """Nodes × leaves, each once, the root last."""
    out = np.zeros((len(nodes) + 1, n))
    for i, node in enumerate(nodes):
        out[i, leaf[list(node)]] = 1.0
    out[-1] = 1.0
    return out
