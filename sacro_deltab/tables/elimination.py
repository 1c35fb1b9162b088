"""A pattern by elimination: cells are published one after the other, and withheld only where that gives a group away.

Every row published is eliminated (modulo the prime) from the rows still to be decided and from the small groups; a
group that would come out as nothing would be derivable. The answer is always a pattern that gives none of the groups
away, and printing any further cell would.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .circuits import PRIME, product

IntArray = NDArray[np.int64]


def withheld(
    k: int, rows: Sequence[tuple[int, ...]], order: Sequence[int], groups: Sequence[tuple[int, ...]]
) -> list[int]:
    """Positions of the rows that cannot be published without giving one of `groups` away.

    Parameters
    ----------
    k
        Number of classes.
    rows
        Classes of every row.
    order
        Positions in `rows`, the first to be published first.
    groups
        Groups of classes, not empty, that must not be derivable.
    """
    m, t = _mixed(_matrix(k, [rows[i] for i in order]), _matrix(k, groups))
    out = []
    for position, i in enumerate(order):
        row = m[position]
        columns = np.flatnonzero(row)
        if not len(columns):
            continue  # follows from what is published
        pivot = int(columns[0])
        row = row * pow(int(row[pivot]), -1, PRIME) % PRIME
        hit = np.flatnonzero(t[:, pivot])
        left = t[hit]
        left[:, columns] = (left[:, columns] - left[:, pivot][:, None] * row[columns]) % PRIME
        if len(hit) and not left.any(axis=1).all():
            out.append(i)
            continue
        t[hit] = left
        later = position + 1 + np.flatnonzero(m[position + 1 :, pivot])
        if len(later):
            block = np.ix_(later, columns)
            m[block] = (m[block] - m[later, pivot][:, None] * row[columns]) % PRIME
    return out


def _mixed(m: IntArray, t: IntArray) -> tuple[IntArray, IntArray]:
    """Many more classes than rows: random mixtures of them (fixed seed) hang together as the classes do."""
    width = len(m) + 8
    if m.shape[1] <= 2 * width:
        return m, t
    mixer = np.random.default_rng(23).integers(0, PRIME, size=(m.shape[1], width), dtype=np.int64)
    return product(m, mixer), product(t, mixer)


def _matrix(k: int, groups: Sequence[tuple[int, ...]]) -> IntArray:
    out = np.zeros((len(groups), k), dtype=np.int64)
    for i, group in enumerate(groups):
        out[i, list(group)] = 1
    return out


def small_groups(weight: Sequence[int], below: int, most: int) -> list[tuple[int, ...]] | None:
    """Every group of classes of 1 to `below` − 1 people, or None if there are more than `most`."""
    light = sorted((w, c) for c, w in enumerate(weight) if w < below)
    found: list[tuple[int, ...]] = []
    stack: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    while stack:
        first, people, group = stack.pop()
        for i in range(first, len(light)):
            w, c = light[i]
            if people + w >= below:
                break
            if people + w > 0:
                found.append(tuple(sorted((*group, c))))
            stack.append((i + 1, people + w, (*group, c)))
            if len(found) > most or len(stack) > 20 * most:
                return None
    return found
