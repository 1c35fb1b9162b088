"""What has to stay withheld when cells are printed one after the other, each unless it gives a group away.

Every row printed is eliminated (modulo a prime) from the rows still to be decided and from the groups; a group that
comes out as nothing would be derivable. The answer is always a pattern that gives none of the groups away, and printing
any further cell would.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .circuits import PRIME, product
from .layout import IntArray


def withheld(
    rows: Sequence[tuple[int, ...]], order: Sequence[int], groups: Sequence[tuple[int, ...]], sure: int = 0
) -> list[int]:
    """Positions of the rows that cannot be printed without giving one of `groups` away.

    Parameters
    ----------
    rows
        Classes of every row.
    order
        Positions in `rows`, the first to be printed first.
    groups
        Groups of classes, not empty, that must not be derivable.
    sure
        How many of the first rows are printed in any case: what they say of single classes drops out of the rest.
    """
    known = _known(rows, order[:sure], {c for group in groups for c in group})
    left = [[c for c in rows[i] if c not in known] for i in order]
    place = {c: n for n, c in enumerate(sorted({c for row in left for c in row} | {c for g in groups for c in g}))}
    kept = [n for n, row in enumerate(left) if row]
    m, t = _mixed(_matrix(place, [left[n] for n in kept]), _matrix(place, groups))
    out = []
    for position, n in enumerate(kept):
        row = m[position]
        columns = np.flatnonzero(row)
        if not len(columns):
            continue  # follows from what is printed
        pivot = int(columns[0])
        row = row * pow(int(row[pivot]), -1, PRIME) % PRIME
        hit = np.flatnonzero(t[:, pivot])
        rest = t[hit]
        rest[:, columns] = (rest[:, columns] - rest[:, pivot][:, None] * row[columns]) % PRIME
        if len(hit) and not rest.any(axis=1).all():
            out.append(order[n])
            continue
        t[hit] = rest
        later = position + 1 + np.flatnonzero(m[position + 1 :, pivot])
        if len(later):
            block = np.ix_(later, columns)
            m[block] = (m[block] - m[later, pivot][:, None] * row[columns]) % PRIME
    return out


def _known(rows: Sequence[tuple[int, ...]], sure: Sequence[int], never: set[int]) -> set[int]:
    """Classes that these rows print by themselves, again and again; not those of the groups."""
    live = [set(rows[i]) for i in sure]
    of: dict[int, list[int]] = {}
    for n, row in enumerate(live):
        for c in row:
            of.setdefault(c, []).append(n)
    known: set[int] = set()
    queue = [n for n, row in enumerate(live) if len(row) == 1]
    while queue:
        row = live[queue.pop()]
        if len(row) != 1 or row <= never:
            continue
        (c,) = row
        known.add(c)
        for n in of.pop(c):
            live[n].discard(c)
            if len(live[n]) == 1:
                queue.append(n)
    return known


def _mixed(m: IntArray, t: IntArray) -> tuple[IntArray, IntArray]:
    """Many more classes than rows: random mixtures of them (fixed seed) hang together as the classes do."""
    width = len(m) + 8
    if m.shape[1] <= 2 * width:
        return m, t
    mixer = np.random.default_rng(23).integers(0, PRIME, size=(m.shape[1], width), dtype=np.int64)
    return product(m, mixer), product(t, mixer)


def _matrix(place: dict[int, int], groups: Sequence[Sequence[int]]) -> IntArray:
    out = np.zeros((len(groups), len(place)), dtype=np.int64)
    for i, group in enumerate(groups):
        out[i, [place[c] for c in group]] = 1
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
