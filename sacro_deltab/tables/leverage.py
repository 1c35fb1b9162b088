"""Which classes cannot be part of any small derivable group: a bound by projection, for many linked tables.

Let P be the orthogonal projection on the span of the published groups. A derivable 0/1 vector b has P b = b, so for
a class i in its support S: 1 = Σ_{j in S} P_ij. A group of fewer than m people has at most m − 1 classes; where P_ii
plus the m − 2 largest other entries of row i stay below 1, class i is in no such group. What is left out makes the
other rows' sums smaller: repeat. Fifty linked tables of thousands of people leave next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SLACK = 1e-6  # rounding of the projection is of the order 1e-12
BLOCK = 1024


def possible(rows: Sequence[Sequence[int]], weight: Sequence[int], most_people: int) -> NDArray[np.bool_]:
    """Classes that may be in a derivable group of 1 to `most_people` people.

    Parameters
    ----------
    rows
        Published groups, as classes 0 … len(weight) − 1.
    """
    n = len(weight)
    people = np.asarray(weight, dtype=np.int64)
    alive: NDArray[np.bool_] = people <= most_people
    if not alive.any():
        return alive
    a = np.zeros((n, len(rows)))
    for j, row in enumerate(rows):
        a[list(row), j] = 1.0
    q = _basis(a)
    # classes of nobody are free of charge, so only the others are counted
    free = int((people == 0).sum())
    count = most_people // max(1, int(people[people > 0].min(initial=1))) + free
    # Σ over S of P_ij is at most √(|S|·P_ii): settles large cohorts without the projection itself
    alive &= count * (q**2).sum(axis=1) >= (1 - SLACK) ** 2
    for _ in range(20):
        index = np.flatnonzero(alive)
        if len(index) <= count:
            break
        keep = _reach(q[index], count) >= 1 - SLACK
        if keep.all():
            break
        alive[index[~keep]] = False
    return alive


def _basis(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal basis of the columns of `a`, from the smaller Gram matrix where that is accurate."""
    if a.shape[0] >= a.shape[1]:
        values, vectors = np.linalg.eigh(a.T @ a)
        share = values / max(1.0, float(values[-1]))
        if not ((share > 1e-13) & (share < 1e-8)).any():
            good = share >= 1e-8
            return np.asarray(a @ (vectors[:, good] / np.sqrt(values[good])))
    u, s, _ = np.linalg.svd(a, full_matrices=False)
    return np.asarray(u[:, s > 1e-10 * max(1.0, float(s[0]))])


def _reach(q: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """For every row: its own entry of the projection and the `count` − 1 largest others that are positive."""
    out = np.empty(len(q))
    for start in range(0, len(q), BLOCK):
        part = q[start : start + BLOCK] @ q.T
        own = np.arange(len(part))
        diagonal = part[own, start + own].copy()
        part[own, start + own] = 0.0
        k = min(count - 1, part.shape[1])
        if k <= 0:
            out[start : start + BLOCK] = diagonal
            continue
        top = np.partition(part, part.shape[1] - k, axis=1)[:, part.shape[1] - k :]
        out[start : start + BLOCK] = diagonal + np.maximum(top, 0.0).sum(axis=1)
    return out
