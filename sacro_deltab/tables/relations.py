"""Sums that the cells of a table must satisfy: a group and the groups that make it up, found from the groups alone.

They tell the master what a pattern needs: in a smallest pattern no withheld cell can be worked out from one sum, so of
the cells of a sum either none is withheld or at least two are. That is worth more to a linear bound than hundreds of
derivations, and it is known before any is looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MOST = 4_000_000  # pairs of groups that share a class, beyond which no sums are looked for


def relations(k: int, rows: Sequence[tuple[int, ...]], tables: Sequence[object]) -> list[tuple[int, ...]]:
    """Positions in `rows` of a group and of the groups of one table that it is the disjoint union of, as large as
    there are: its direct parts.

    Parameters
    ----------
    k
        Number of classes.
    rows
        Classes of every group, distinct and not empty.
    tables
        The table of every group: parts are looked for in one table before the others.
    """
    from scipy.sparse import csr_array  # late: scipy is heavy

    size = np.asarray([len(r) for r in rows], dtype=np.int64)
    columns = np.asarray([c for r in rows for c in r], dtype=np.int64)
    if len(rows) < 2 or int((np.bincount(columns, minlength=k) ** 2).sum()) > MOST:
        return []
    starts = np.concatenate([[0], np.cumsum(size)])
    a = csr_array((np.ones(len(columns), dtype=np.int32), columns, starts), shape=(len(rows), k))
    common = (a @ a.T).tocoo()
    inside = (common.data == size[common.row]) & (common.row != common.col)
    within = csr_array(
        (np.ones(int(inside.sum()), dtype=np.int32), (common.col[inside], common.row[inside])),
        shape=(len(rows), len(rows)),
    )  # [i, j]: j lies in i
    direct = (within - within.multiply((within @ within) > 0)).tocsr()
    meets: list[set[int]] = [set() for _ in rows]
    for i, j in zip(common.row.tolist(), common.col.tolist(), strict=True):
        meets[i].add(j)
    out: list[tuple[int, ...]] = []
    for i in range(len(rows)):
        out += [(i, *parts) for parts in _partitions(_parts(direct, i), int(size[i]), size.tolist(), meets, tables)]
    return out


def _parts(direct: Any, i: int) -> list[int]:
    part = direct.indices[direct.indptr[i] : direct.indptr[i + 1]][
        direct.data[direct.indptr[i] : direct.indptr[i + 1]] != 0
    ]
    return sorted(part.tolist())


def _partitions(
    parts: list[int], total: int, size: list[int], meets: list[set[int]], tables: Sequence[object]
) -> list[list[int]]:
    """Sets of disjoint parts that make up the whole; every part is tried once."""
    out = []
    left = dict.fromkeys(parts)
    while left:
        first = next(iter(left))
        chosen, blocked = [first], set(meets[first])
        for j in sorted(parts, key=lambda j: (tables[j] != tables[first], j)):
            if j not in blocked:
                chosen.append(j)
                blocked |= meets[j]
        for j in chosen:
            left.pop(j, None)
        if sum(size[j] for j in chosen) == total:
            out.append(chosen)
    return out
