"""Tables that are networks: two-way tables, with or without one hierarchy, and whatever else splits into two
families of nested cells.

If the published groups can be split into two families so that within a family any two are nested or apart, the
attacker's system is a network: one tree per family, an arc per class of atoms from the first tree to the second.
Flows of whole numbers exist wherever flows exist, so every interval is a maximum flow: exact, whole, no LP. A cell
whose arc lies on no cycle (a bridge) is exactly known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]
LIMIT = 2**28


def mask_of(members: Sequence[int]) -> int:
    """Bit mask of a group."""
    bits = bytearray((max(members) >> 3) + 1)
    for v in members:
        bits[v >> 3] |= 1 << (v & 7)
    return int.from_bytes(bits, "little")


def _overlapping(groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Pairs of groups that may share a member (all pairs, when there are few groups)."""
    n = len(groups)
    if n <= 600:
        yield from itertools.combinations(range(n), 2)
        return
    holders: dict[int, list[int]] = {}
    for i, group in enumerate(groups):
        for v in group:
            holders.setdefault(v, []).append(i)
    seen: set[tuple[int, int]] = set()
    for members in holders.values():
        for pair in itertools.combinations(members, 2):
            if pair not in seen:
                seen.add(pair)
                yield pair


def two_families(groups: Sequence[Sequence[int]], most_pairs: int = 4_000_000) -> list[int] | None:
    """Family (0 or 1) of every group, or None: groups that cross go to different families (2-colouring)."""
    n = len(groups)
    masks = [mask_of(group) for group in groups]
    crossing: list[set[int]] = [set() for _ in range(n)]
    for count, (a, b) in enumerate(_overlapping(groups)):
        if count > most_pairs:
            return None
        both = masks[a] & masks[b]
        if both and both != masks[a] and both != masks[b]:
            crossing[a].add(b)
            crossing[b].add(a)
    colour = [-1] * n
    for first in range(n):
        if colour[first] >= 0:
            continue
        colour[first] = 0
        queue = [first]
        while queue:
            a = queue.pop()
            for b in crossing[a]:
                if colour[b] < 0:
                    colour[b] = 1 - colour[a]
                    queue.append(b)
                elif colour[b] == colour[a]:
                    return None
    return colour


@dataclass(frozen=True)
class Bounds:
    """lo ≤ flow ≤ hi; `hi` None: unbounded."""

    lo: int
    hi: int | None


def _most_people(
    variables: Sequence[Bounds], rows: Sequence[tuple[Sequence[int], Bounds]], families: Sequence[int]
) -> int:
    """A bound of everybody: by the outermost rows of a family, or all bounds together where some are open above."""
    most = sum(b.lo + (b.hi or 0) for b in [*variables, *(b for _, b in rows)])
    if any(b.hi is None for b in variables):
        return most
    for family in (0, 1):
        index = sorted((i for i, f in enumerate(families) if f == family), key=lambda i: -len(rows[i][0]))
        covered: set[int] = set()
        total = 0
        for i in index:
            members, bounds = rows[i]
            if members[0] in covered:  # nested in an earlier one
                continue
            covered.update(members)
            inside = sum(variables[v].hi or 0 for v in members)
            total += inside if bounds.hi is None else min(bounds.hi, inside)
        total += sum(b.hi or 0 for v, b in enumerate(variables) if v not in covered)
        most = min(most, total)
    return most


class Network:
    """Circulations of one component.

    Parameters
    ----------
    n_variables
        Classes of atoms, 0 … n − 1, each with bounds.
    rows
        Groups of classes with bounds on their total.
    """

    def __init__(
        self, variables: Sequence[Bounds], rows: Sequence[tuple[Sequence[int], Bounds]], families: Sequence[int]
    ) -> None:
        self.n_variables = len(variables)
        bounds = [*variables, *(b for _, b in rows)]
        total = _most_people(variables, rows, families)  # no extreme flow is larger
        self.big = max(1, min(total + 1, LIMIT))
        self.fits = total < LIMIT and sum(b.lo for b in bounds) < LIMIT
        self.tail: list[int] = []
        self.head: list[int] = []
        self.lo: list[int] = []
        self.hi: list[int] = []
        self.n_nodes = 2  # roots of the two trees
        leaf = [[0] * self.n_variables, [1] * self.n_variables]
        self.row_arc = [-1] * len(rows)
        for family in (0, 1):
            index = sorted((i for i, f in enumerate(families) if f == family), key=lambda i: -len(rows[i][0]))
            for i in index:
                node = self.n_nodes
                self.n_nodes += 1
                parent = leaf[family][rows[i][0][0]]  # the smallest group so far around it: larger ones came first
                ends = (parent, node) if family == 0 else (node, parent)
                self.row_arc[i] = self._arc(*ends, rows[i][1])
                for v in rows[i][0]:
                    leaf[family][v] = node
        self.variable_arc = [self._arc(leaf[0][v], leaf[1][v], b) for v, b in enumerate(variables)]
        self._arc(1, 0, Bounds(0, None))
        self._tail = np.asarray(self.tail, dtype=np.int32)
        self._head = np.asarray(self.head, dtype=np.int32)
        self._lo = np.asarray(self.lo, dtype=np.int64)
        self._hi = np.asarray(self.hi, dtype=np.int64)
        self.flow: NDArray[np.int64] | None = None
        self._residual: _Residual | None = None

    def _arc(self, tail: int, head: int, bounds: Bounds) -> int:
        self.tail.append(tail)
        self.head.append(head)
        self.lo.append(bounds.lo)
        self.hi.append(self.big if bounds.hi is None else min(bounds.hi, self.big))
        return len(self.tail) - 1

    def feasible(self) -> bool:
        """Find some circulation (from the published numbers alone)."""
        from scipy.sparse import coo_array, csr_array
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
        pushed = np.asarray(result.flow.todense())
        flow = self._lo.copy()
        for i in range(len(self._tail)):  # parallel arcs share what runs between two nodes
            t, h = self._tail[i], self._head[i]
            moved = int(min(max(pushed[t, h], 0), self._hi[i] - self._lo[i]))
            flow[i] += moved
            pushed[t, h] -= moved
            pushed[h, t] += moved
        self.flow = flow
        return True

    def interval(self, arc: int) -> tuple[int, int]:
        """Least and largest flow on one arc, arcs without a bound being cut at `big`."""
        return self.least(arc), self._extremes().most(arc)

    def least(self, arc: int) -> int:
        """Least flow on one arc."""
        return self._extremes().least(arc)

    def _extremes(self) -> _Residual:
        if self._residual is None:
            assert self.flow is not None
            self._residual = _Residual(self)
        return self._residual

    def flags(self, arcs: Sequence[int]) -> list[bool]:
        """For each arc, whether its flow is fixed.

        An arc between two strong components of the residual graph never moves; within one, every one-way arc lies on
        a directed cycle, so after a small push all arcs have room both ways and only bridges are fixed.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        assert self.flow is not None
        up, down = self._hi > self.flow, self.flow > self._lo
        rows = np.concatenate([self._tail[up], self._head[down]])
        columns = np.concatenate([self._head[up], self._tail[down]])
        graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(self.n_nodes, self.n_nodes))
        _, strong = connected_components(graph, directed=True, connection="strong")
        moving = (up | down) & (strong[self._tail] == strong[self._head])
        fixed = ~moving | _bridges(self.n_nodes, self._tail, self._head, moving)
        return [bool(fixed[arc]) for arc in arcs]


class _Residual:
    """A circulation that is pushed from one extreme to the next; searches run on bit masks of nodes.

    The circulation is never put back: any feasible one serves, and each arc that touches a bound of its own on the
    way has that extreme settled.
    """

    def __init__(self, network: Network) -> None:
        assert network.flow is not None
        self.tail, self.head = network.tail, network.head
        self.lo, self.hi = network.lo, network.hi
        self.flow = [int(x) for x in network.flow]
        self.n = network.n_nodes
        self.out: list[int] = [0] * self.n
        self.pairs: dict[tuple[int, int], list[int]] = {}  # arc a as a + 1 (forward) or −(a + 1) (backward)
        for a in range(len(self.tail)):
            t, h = self.tail[a], self.head[a]
            if t == h:
                continue
            self.pairs.setdefault((t, h), []).append(a + 1)
            self.pairs.setdefault((h, t), []).append(-(a + 1))
        self.closed = -1
        for pair in self.pairs:
            self._refresh(pair)
        self.at_low = [f == low for f, low in zip(self.flow, self.lo, strict=True)]
        self.at_high = [f == high for f, high in zip(self.flow, self.hi, strict=True)]
        self.minimum: dict[int, int] = {}
        self.maximum: dict[int, int] = {}

    def _room(self, signed: int) -> int:
        a = abs(signed) - 1
        if a == self.closed:
            return 0
        return self.hi[a] - self.flow[a] if signed > 0 else self.flow[a] - self.lo[a]

    def _refresh(self, pair: tuple[int, int]) -> None:
        bit = 1 << pair[1]
        if any(self._room(signed) > 0 for signed in self.pairs[pair]):
            self.out[pair[0]] |= bit
        else:
            self.out[pair[0]] &= ~bit

    def most(self, arc: int) -> int:
        """Largest flow on the arc."""
        if self.at_high[arc]:
            return self.hi[arc]
        if arc not in self.maximum:
            self.maximum[arc] = self._push(arc, +1)
        return self.maximum[arc]

    def least(self, arc: int) -> int:
        """Least flow on the arc."""
        if self.at_low[arc]:
            return self.lo[arc]
        if arc not in self.minimum:
            self.minimum[arc] = self._push(arc, -1)
        return self.minimum[arc]

    def _push(self, arc: int, sign: int) -> int:
        """Push the arc's flow as far as it goes; its value then."""
        tail, head = self.tail[arc], self.head[arc]
        if tail == head:
            self.flow[arc] = self.hi[arc] if sign > 0 else self.lo[arc]
            return self.flow[arc]
        source, sink = (head, tail) if sign > 0 else (tail, head)
        self.closed = arc
        self._refresh((tail, head))
        self._refresh((head, tail))
        while True:
            wanted = self.hi[arc] - self.flow[arc] if sign > 0 else self.flow[arc] - self.lo[arc]
            if wanted <= 0:
                break
            path = self._path(source, sink)
            if path is None:
                break
            self.flow[arc] += sign * self._augment(path, wanted)
        self.closed = -1
        self._refresh((tail, head))
        self._refresh((head, tail))
        self._mark(arc)
        return self.flow[arc]

    def _mark(self, a: int) -> None:
        if self.flow[a] == self.lo[a]:
            self.at_low[a] = True
        if self.flow[a] == self.hi[a]:
            self.at_high[a] = True

    def _path(self, source: int, sink: int) -> list[int] | None:
        """Nodes of a shortest path with room."""
        out, goal = self.out, 1 << sink
        seen = 1 << source
        layers: list[tuple[int, int]] = []  # (node, nodes first reached from it)
        queue = [source]
        for node in queue:
            new = out[node] & ~seen
            if not new:
                continue
            seen |= new
            layers.append((node, new))
            if new & goal:
                break
            while new:
                low = new & -new
                queue.append(low.bit_length() - 1)
                new ^= low
        else:
            return None
        path, bit = [sink], goal
        for node, reached in reversed(layers):
            if reached & bit:
                path.append(node)
                bit = 1 << node
        return path[::-1]

    def _augment(self, path: list[int], wanted: int) -> int:
        steps = list(itertools.pairwise(path))
        amount = wanted
        for pair in steps:
            amount = min(amount, sum(self._room(signed) for signed in self.pairs[pair]))
        for pair in steps:
            left = amount
            for signed in self.pairs[pair]:
                moved = min(left, self._room(signed))
                if moved:
                    a = abs(signed) - 1
                    self.flow[a] += moved if signed > 0 else -moved
                    left -= moved
                    self._mark(a)
                if not left:
                    break
            self._refresh(pair)
            self._refresh((pair[1], pair[0]))
        return amount


def _bridges(n_nodes: int, tail: IntArray, head: IntArray, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Arcs of the undirected graph that lie on no cycle (parallel arcs make one)."""
    bridge = np.zeros(len(tail), dtype=bool)
    around: list[list[tuple[int, int]]] = [[] for _ in range(n_nodes)]
    for arc in np.flatnonzero(present).tolist():
        a, b = int(tail[arc]), int(head[arc])
        if a == b:
            continue
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
