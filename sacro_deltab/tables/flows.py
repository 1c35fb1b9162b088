"""Tables that are networks: two-way tables, with or without one hierarchy, and whatever else splits into two
families of nested cells.

If the published groups can be split into two families so that within a family any two are nested or apart, the
attacker's system is a network: one tree per family, an arc per class of atoms from the first tree to the second.
Flows of whole numbers exist wherever flows exist, so every interval is a maximum flow: exact, whole, no LP. A cell
whose arc lies on no cycle (a bridge) is exactly known.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import IntArray, hang_together
from .residual import Residual

LIMIT = 2**28


def _trees(n: int, rows: Sequence[Sequence[int]], families: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The two trees, row i being node i + 2: for each family the node around every member, and the node around every
    row (0 or 1: the root)."""
    leaf = np.zeros((2, n), dtype=np.int64)
    leaf[1] = 1
    above = np.asarray(families, dtype=np.int64)
    for family in (0, 1):
        tree = sorted((i for i, f in enumerate(families) if f == family), key=lambda i: -len(rows[i]))
        if not tree:
            continue
        size = np.asarray([len(rows[i]) for i in tree])
        members = np.fromiter(itertools.chain.from_iterable(rows[i] for i in tree), np.int64, int(size.sum()))
        order = np.argsort(members, kind="stable")  # per member its rows, larger ones first: each in the one before
        node = np.repeat(np.asarray(tree) + 2, size)[order]
        last = np.concatenate([members[order][1:] != members[order][:-1], [True]])
        leaf[family, members[order][last]] = node[last]
        around = np.full(len(order), family)
        around[order[1:]] = np.where(last[:-1], family, node[:-1])
        above[tree] = around[np.concatenate([[0], np.cumsum(size)[:-1]])]
    return leaf, above


def _largest(
    lo: Sequence[int],
    hi: Sequence[int | None],
    rows: Sequence[Sequence[int]],
    limits: Sequence[tuple[int, int | None]],
    outermost: tuple[list[int], list[int]],
) -> tuple[int, bool]:
    """More than any extreme flow, and whether such numbers fit the solver.

    By everything added up, or less by the outermost rows of a family and the classes in none of them.
    """
    least = sum(lo) + sum(low for low, _ in limits)
    most = least + sum(top for top in hi if top is not None) + sum(high for _, high in limits if high is not None)
    if None not in hi:
        for family in outermost:  # rows that are apart
            outside, people = list(hi), 0
            for i in family:
                inside, high = sum([hi[v] or 0 for v in rows[i]]), limits[i][1]
                people += inside if high is None else min(high, inside)
                for v in rows[i]:
                    outside[v] = 0
            most = min(most, people + sum(top or 0 for top in outside))
    return max(1, min(most + 1, LIMIT)), most < LIMIT and least < LIMIT


class Network:
    """Circulations of one component.

    Parameters
    ----------
    lo, hi
        Bounds of the classes of atoms, 0 … n − 1; `None`: no upper bound.
    rows, limits
        Groups of classes with bounds on their totals.
    families
        Which of the two trees each row is in.

    Attributes
    ----------
    variable_arc
        Row i is arc i, class v is arc `variable_arc` + v.
    """

    def __init__(
        self,
        lo: Sequence[int],
        hi: Sequence[int | None],
        rows: Sequence[Sequence[int]],
        limits: Sequence[tuple[int, int | None]],
        families: Sequence[int],
    ) -> None:
        leaf, above = _trees(len(lo), rows, families)
        self.n_nodes = 2 + len(rows)  # the roots of the two trees come first
        outermost = [i for i, up in enumerate(above.tolist()) if up < 2]
        by_family = [i for i in outermost if not families[i]], [i for i in outermost if families[i]]
        self.big, self.fits = _largest(lo, hi, rows, limits, by_family)
        second, node = np.asarray(families, dtype=bool), np.arange(2, self.n_nodes)
        self.variable_arc = len(rows)
        self._tail = np.concatenate([np.where(second, node, above), leaf[0], [1]]).astype(np.int32)
        self._head = np.concatenate([np.where(second, above, node), leaf[1], [0]]).astype(np.int32)
        self._lo = np.asarray([*(low for low, _ in limits), *lo, 0], dtype=np.int64)
        tops = [*(high for _, high in limits), *hi, None]
        self._hi = np.asarray([self.big if top is None else min(top, self.big) for top in tops], dtype=np.int64)
        self.n_arcs = len(self._tail)
        self.flow: IntArray | None = None

    def feasible(self) -> bool:
        """Find some circulation (from the published numbers alone)."""
        from scipy.sparse import coo_array, csr_array  # late: scipy is heavy
        from scipy.sparse.csgraph import maximum_flow

        source, sink = self.n_nodes, self.n_nodes + 1
        excess = np.zeros(self.n_nodes, dtype=np.int64)
        np.add.at(excess, self._head, self._lo)
        np.add.at(excess, self._tail, -self._lo)
        give, take = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
        tails = np.concatenate([self._tail, np.full(len(give), source), take])
        heads = np.concatenate([self._head, give, np.full(len(take), sink)])
        room = np.concatenate([self._hi - self._lo, excess[give], -excess[take]])
        size = self.n_nodes + 2
        graph = csr_array(coo_array((room.astype(np.int32), (tails, heads)), shape=(size, size)))
        needed = int(excess[give].sum())
        result = maximum_flow(graph, source, sink)
        if int(result.flow_value) != needed:
            return False
        self.flow = self._lo + self._shared(result.flow)
        return True

    def _shared(self, pushed: Any) -> IntArray:
        """What runs from node to node, over its arcs: parallel arcs are filled one after the other."""
        pair = self._tail.astype(np.int64) * (self.n_nodes + 2) + self._head
        flow = pushed.tocoo()
        runs = flow.coords[0].astype(np.int64) * (self.n_nodes + 2) + flow.coords[1]
        order = np.argsort(runs)
        place = np.minimum(np.searchsorted(runs[order], pair), max(0, len(runs) - 1))
        found = runs[order][place] == pair if len(runs) else np.zeros(len(pair), dtype=bool)
        amount = np.where(found, np.maximum(flow.data[order][place], 0), 0) if len(runs) else np.zeros(len(pair))
        room = self._hi - self._lo
        order = np.argsort(pair, kind="stable")
        first = np.concatenate([[True], pair[order][1:] != pair[order][:-1]])
        before = np.cumsum(room[order]) - room[order]
        before -= before[first][np.cumsum(first) - 1]  # room of the earlier arcs between the same nodes
        out = np.zeros(len(pair), dtype=np.int64)
        out[order] = np.clip(amount[order] - before, 0, room[order])
        return out

    def interval(self, arc: int) -> tuple[int, int]:
        """Least and largest flow on one arc, arcs without a bound being cut at `big`."""
        return self.least(arc), self._extremes.most(arc)

    def least(self, arc: int) -> int:
        """Least flow on one arc."""
        return self._extremes.least(arc)

    @cached_property
    def _extremes(self) -> Residual:
        assert self.flow is not None
        return Residual(self._tail.tolist(), self._head.tolist(), self._lo.tolist(), self._hi.tolist(), self.flow)

    @cached_property
    def fixed(self) -> NDArray[np.bool_]:
        """For each arc, whether its flow is fixed.

        An arc between two strong components of the residual graph never moves; within one, every one-way arc lies on
        a directed cycle, so after a small push all arcs have room both ways and only bridges are fixed.
        """
        assert self.flow is not None
        up, down = self._hi > self.flow, self.flow > self._lo
        rows = np.concatenate([self._tail[up], self._head[down]])
        columns = np.concatenate([self._head[up], self._tail[down]])
        strong = hang_together(self.n_nodes, rows, columns, connection="strong")
        moving = (up | down) & (strong[self._tail] == strong[self._head])
        fixed: NDArray[np.bool_] = ~moving | _bridges(self.n_nodes, self._tail, self._head, moving)
        return fixed


def _bridges(
    n_nodes: int, tail: NDArray[np.int32], head: NDArray[np.int32], present: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Arcs of the undirected graph that lie on no cycle (parallel arcs make one)."""
    bridge = np.zeros(len(tail), dtype=bool)
    around: list[list[tuple[int, int]]] = [[] for _ in range(n_nodes)]
    arcs = np.flatnonzero(present & (tail != head))
    for arc, a, b in zip(arcs.tolist(), tail[arcs].tolist(), head[arcs].tolist(), strict=True):
        around[a].append((b, arc))
        around[b].append((a, arc))
    seen = [0] * n_nodes
    low = [0] * n_nodes
    clock = 0
    for root in range(n_nodes):
        if seen[root] or not around[root]:
            continue
        clock += 1
        seen[root] = low[root] = clock
        stack = [(root, -1, iter(around[root]))]
        while stack:
            node, through, edges = stack[-1]
            for other, arc in edges:
                if arc == through:
                    continue
                if seen[other]:
                    if seen[other] < low[node]:
                        low[node] = seen[other]
                else:
                    clock += 1
                    seen[other] = low[other] = clock
                    stack.append((other, arc, iter(around[other])))
                    break
            else:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    low[above] = min(low[above], low[node])
                    if low[node] > seen[above]:
                        bridge[through] = True
    return bridge
