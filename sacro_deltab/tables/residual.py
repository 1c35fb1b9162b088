"""Extremes of single arcs of a circulation, one after the other."""

from __future__ import annotations

import itertools

from .layout import IntArray


class Residual:
    """A circulation that is pushed from one extreme to the next; searches run on bit masks of nodes.

    The circulation is never put back: any feasible one serves, and each arc that touches a bound of its own on the
    way has that extreme settled.
    """

    def __init__(self, tail: list[int], head: list[int], lo: list[int], hi: list[int], flow: IntArray) -> None:
        self.tail, self.head, self.lo, self.hi = tail, head, lo, hi
        self.flow: list[int] = flow.tolist()
        self.out: list[int] = [0] * (1 + max(*tail, *head))
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
