"""Generated tables for benchmarks and soak runs: lognormal counts, about a tenth of the interior cells below 20."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sacro_deltab.tables.policy import TablePolicy
from sacro_deltab.tables.table import Atom, Attacker, Cell, Problem

POLICY = TablePolicy(min_n=20, withhold_share=Fraction(3, 10), interval_n=10, interval_years=2.0)


def tree(branching: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
    """Nodes of a regular hierarchy (name, leaves), leaves first; `(8,)` is a flat dimension with its total."""
    n_leaves = int(np.prod(branching))
    nodes = [(f"l{i}", (i,)) for i in range(n_leaves)]
    size = 1
    for depth in range(len(branching) - 1, -1, -1):
        size *= branching[depth]
        for j in range(n_leaves // size):
            nodes.append((f"h{depth}.{j}", tuple(range(j * size, (j + 1) * size))))
    return nodes


def crossed(dimensions: Sequence[Sequence[int]], counts: np.ndarray, policy: TablePolicy = POLICY) -> Problem:
    """Every combination of one node per dimension is a cell."""
    shape = [int(np.prod(d)) for d in dimensions]
    counts = np.asarray(counts).reshape(shape)
    names = ["|".join(f"l{i}" for i in index) for index in np.ndindex(*shape)]
    atoms = tuple(Atom(int(n)) for n in counts.ravel())
    strides = np.cumprod([1, *shape[::-1]])[::-1][1:]
    cells = {}
    for nodes in itertools.product(*(tree(d) for d in dimensions)):
        members = sorted(int(np.dot(index, strides)) for index in itertools.product(*(leaves for _, leaves in nodes)))
        name = "|".join(label for label, _ in nodes)
        n = sum(atoms[a].n for a in members)
        role = "interior" if len(members) == 1 else "grand" if len(members) == len(atoms) else "margin"
        cells[name] = Cell(name, "t1", role, tuple(members), n, n, "exact")
    return Problem("counts", policy, Attacker(), tuple(names), atoms, cells)


def lognormal(shape: Sequence[int], seed: int, mu: float = 4.3, sigma: float = 1.0) -> np.ndarray:
    """Counts of at least 1, about a tenth below 20."""
    rng = np.random.default_rng(seed)
    return np.maximum(1, np.rint(np.exp(rng.normal(mu, sigma, size=tuple(shape))))).astype(int)


def instance(name: str, seed: int = 1) -> Problem:
    """`10x10`, `6x5x4`, `hier4.4.4x20`, …"""
    if name.startswith("hier"):
        first, *rest = name[4:].split("x")
        dimensions = [tuple(int(b) for b in first.split(".")), *[(int(r),) for r in rest]]
    else:
        dimensions = [(int(r),) for r in name.split("x")]
    return crossed(dimensions, lognormal([int(np.prod(d)) for d in dimensions], seed))
