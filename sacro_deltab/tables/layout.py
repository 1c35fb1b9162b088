"""Groups of atoms as rows over classes of atoms that no group tells apart.

What is withheld changes which rows have bounds, never the rows: one layout serves every pattern of a problem.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
DENSE = 40_000_000  # multiplications of a dense product that take less time than setting up a sparse one


def flatten(groups: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """All members one after the other, and where every group starts (one entry more than groups)."""
    start = np.zeros(len(groups) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, groups), np.int64, len(groups)), out=start[1:])
    members = np.fromiter(itertools.chain.from_iterable(groups), np.int64, int(start[-1]))
    return members, start


def _classes(n_atoms: int, members: IntArray, start: IntArray) -> tuple[IntArray, IntArray]:
    """Class of every atom, classes numbered by their first atoms, and those first atoms."""
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.argsort(members, kind="stable")
    held = group[order].astype(np.int32).tobytes()
    end = (4 * np.cumsum(np.bincount(members, minlength=n_atoms))).tolist()
    number: dict[bytes, int] = {}
    label = np.zeros(n_atoms, dtype=np.int64)
    first: list[int] = []
    at = 0
    for atom, to in enumerate(end):
        key = held[at:to]  # the groups that hold the atom, in order
        at = to
        known = number.get(key)
        if known is None:
            known = number[key] = len(first)
            first.append(atom)
        label[atom] = known
    return label, np.asarray(first, dtype=np.int64)


def merge_atoms(n_atoms: int, groups: Iterable[Sequence[int]]) -> tuple[list[int], int]:
    """Class of every atom: two atoms in exactly the same groups are in one class."""
    label, first = _classes(n_atoms, *flatten(list(groups)))
    return label.tolist(), len(first)


@dataclass(frozen=True)
class Layout:
    """Distinct groups of atoms over `k` classes.

    `label`: class of every atom. `classes[start[i]:start[i + 1]]`: the classes of group i, ascending.
    """

    groups: tuple[tuple[int, ...], ...]
    label: IntArray
    k: int
    classes: IntArray
    start: IntArray

    @classmethod
    def of(cls, n_atoms: int, groups: Iterable[Sequence[int]]) -> Layout:
        """From groups of atoms, each without repeats."""
        unique = tuple(dict.fromkeys(map(tuple, groups)))
        members, start = flatten(unique)
        label, first = _classes(n_atoms, members, start)
        keep = np.zeros(n_atoms, dtype=bool)
        keep[first] = True  # one atom stands for its class
        kept = keep[members]
        where = np.concatenate([[0], np.cumsum(kept)])[start]
        classes = label[members[kept]]
        row = np.repeat(np.arange(len(unique)), np.diff(where))
        return cls(unique, label, len(first), classes[np.lexsort((classes, row))], where.astype(np.int64))

    @cached_property
    def index(self) -> Mapping[tuple[int, ...], int]:
        """Position of every group."""
        return {group: i for i, group in enumerate(self.groups)}

    @cached_property
    def size(self) -> IntArray:
        """Classes per group."""
        return np.diff(self.start)

    @cached_property
    def families(self) -> list[int] | None:
        """The two nested families of all groups, if there are such."""
        return two_families(self.k, self.classes, self.start)

    def row(self, i: int) -> IntArray:
        """The classes of a group."""
        return self.classes[self.start[i] : self.start[i + 1]]


def take(values: IntArray, start: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """The entries of some rows one after the other, and where each starts (one entry more than rows)."""
    size = start[rows + 1] - start[rows]
    out = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(size, out=out[1:])
    place = np.arange(out[-1]) + np.repeat(start[rows] - out[:-1], size)
    return values[place], out


def hang_together(n: int, a: NDArray[np.integer], b: NDArray[np.integer], connection: str = "weak") -> IntArray:
    """Label of every node 0 … n − 1 of the graph with edges a[i] → b[i]: the same for nodes that hang together.

    `connection`: "weak", or "strong" (there is a way in both directions).
    """
    from scipy.sparse import csr_array  # late: scipy is heavy
    from scipy.sparse.csgraph import connected_components

    edges = np.sort(a.astype(np.int64) * n + b)
    edges = edges[np.concatenate([[True], edges[1:] != edges[:-1]])] if len(edges) else edges
    start = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(np.bincount(edges // max(1, n), minlength=n), out=start[1:])
    ends = (edges % max(1, n)).astype(np.int32)  # each edge once: repeated ones lead scipy astray
    graph = csr_array((np.ones(len(ends)), ends, start), shape=(n, n))
    _, label = connected_components(graph, directed=True, connection=connection)
    out: IntArray = label.astype(np.int64)
    return out


def two_families(n: int, members: IntArray, start: IntArray, most_entries: int = 20_000_000) -> list[int] | None:
    """Family (0 or 1) of every group, or None: groups that cross go to different families.

    Parameters
    ----------
    members, start
        Group i holds `members[start[i]:start[i + 1]]`, which are from 0 to n − 1.
    """
    size = np.diff(start)
    if (np.bincount(members, minlength=n) ** 2).sum() > most_entries:
        return None
    a, b, both = _shared_members(n, members, size)
    cross = (both < size[a]) & (both < size[b])
    a, b = a[cross], b[cross]
    # Two copies of every group, crossing groups joined from one copy to the other: copies that meet are an odd cycle.
    k = len(size)
    label = hang_together(2 * k, np.concatenate([a, a + k]), np.concatenate([b + k, b]))
    first, second = label[:k], label[k:]
    if (first == second).any():
        return None
    return (first > second).astype(int).tolist()  # type: ignore[no-any-return]


def _shared_members(n: int, members: IntArray, size: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs of groups with a member in common, and how many they have."""
    k = len(size)
    if k * k * n <= DENSE:
        m = np.zeros((k, n), dtype=np.float32)
        m[np.repeat(np.arange(k), size), members] = 1.0
        product = m @ m.T
        a, b = np.nonzero(product)
        return a, b, product[a, b].astype(np.int64)
    from scipy.sparse import csr_array  # late: scipy is heavy

    start = np.concatenate([[0], np.cumsum(size)])
    sparse = csr_array((np.ones(len(members), dtype=np.int32), members, start), shape=(k, n))
    found = (sparse @ sparse.T).tocoo()
    return found.coords[0], found.coords[1], found.data
