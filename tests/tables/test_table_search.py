"""How a pattern is found: eliminations, local search, branch and bound that only refutes, ties, large systems."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

import numpy as np

from sacro_deltab.tables import CellSpec, Limits, Problem, audit_pattern, problem_from_membership, protect
from sacro_deltab.tables.descent import Descent
from sacro_deltab.tables.elimination import small_groups, withheld
from sacro_deltab.tables.search import smallest_hitting_set

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from tables_instances import POLICY, instance


def test_local_search_comes_close_to_the_smallest_set() -> None:
    rng = random.Random(4)
    for _ in range(4):
        cuts = [tuple(sorted(rng.sample(range(10), rng.randint(2, 4)))) for _ in range(12)]
        cost = [rng.randint(1, 5) for _ in range(10)]
        want = min(
            sum(c for c, inside in zip(cost, bits, strict=True) if inside)
            for bits in itertools.product((0, 1), repeat=10)
            if all(any(bits[j] for j in cut) for cut in cuts)
        )
        search = Descent(10, cuts[:6], np.asarray(cost, dtype=float))
        everything = frozenset(range(10))

        def missed(chosen: frozenset[int], cuts: list[tuple[int, ...]] = cuts) -> list[tuple[int, ...]]:
            return [cut for cut in cuts if not chosen & set(cut)]

        found = search.run(everything, missed, steps=300, settles=200, least=0)
        assert not missed(found)
        assert want <= sum(cost[j] for j in found) <= 1.1 * want


def test_costs_too_large_for_floating_point() -> None:
    cost = [(3 << 2000) - (1 << j) for j in range(6)]
    assert smallest_hitting_set([(0, 1), (2, 3), (1, 2), (4, 5)], cost, 1000) in ({1, 3, 5}, {1, 2, 5})


def test_elimination_withholds_only_what_gives_a_group_away() -> None:
    rows = [(0, 1, 2), (0,), (1,), (2,)]
    assert withheld(3, rows, [0, 1, 2, 3], [(0,)]) == [1, 3]
    assert withheld(3, rows, [1, 2, 3, 0], [(0,)]) == [1, 0]
    assert small_groups([1] * 30, 20, 100) is None
    assert set(small_groups([3, 4, 30], 7, 100) or []) == {(0,), (1,)}


def test_three_way_table_is_proved() -> None:
    result = protect(instance("6x5x4", seed=2), policy="exact")
    assert result.proved_optimal and result.bound == len(result.complementary) == 14 and result.safe


def test_first_labels_among_equals() -> None:
    counts = dict.fromkeys("BCDE", 40) | {"A": 3}
    cells = {name: {"atoms": [name]} for name in counts} | {"All": {"atoms": sorted(counts), "role": "grand"}}
    problem = Problem.from_json({"atoms": {k: {"n": n} for k, n in counts.items()}, "cells": cells})
    result = protect(problem)
    assert result.complementary == {"B"} and result.ties_proved


def test_large_linked_tables_are_built_up() -> None:
    """One further cell per table with a small cell, not everything."""
    rng = np.random.default_rng(1)
    columns, cells = [], []
    for t in range(4):
        label = rng.integers(0, 3, size=120)
        if t % 3 == 0:
            label[rng.choice(120, 12, replace=False)] = 3
        for j in range(label.max() + 1):
            columns.append(label == j)
            cells.append(CellSpec(f"t{t}:{j}", f"t{t}", n_rounding="exact"))
        columns.append(np.ones(120, dtype=bool))
        cells.append(CellSpec(f"t{t}:all", f"t{t}", "grand", n_rounding="exact"))
    problem = problem_from_membership(np.stack(columns, axis=1), cells, policy=POLICY)
    result = protect(problem, limits=Limits(large=20))
    assert result.possible and result.safe
    assert set(problem.primary) <= result.suppressed
    assert 0 < len(result.complementary) <= 3
    assert audit_pattern(problem, result.suppressed - {min(result.complementary)}).attackable
