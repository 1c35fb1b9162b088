"""How a pattern is found: sums, eliminations, masters under a limit, ties, large systems."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

import numpy as np

from sacro_deltab.tables import CellSpec, Limits, Problem, audit_pattern, problem_from_membership, protect
from sacro_deltab.tables.elimination import small_groups, withheld
from sacro_deltab.tables.hitting import Pool
from sacro_deltab.tables.relations import relations
from sacro_deltab.tables.search import smallest_hitting_set

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from tables_instances import POLICY, instance


def test_sums_are_found_from_the_groups() -> None:
    rows = [(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3), (0,), (1,), (2,), (3,)]
    found = {frozenset(cells) for cells in relations(4, rows, ["t"] * 9)}
    assert found == {frozenset(s) for s in ((0, 1, 2), (0, 3, 4), (1, 5, 6), (2, 7, 8), (3, 5, 7), (4, 6, 8))}
    assert relations(2, [(0, 1)], ["t"]) == []
    assert relations(3, [(0, 1, 2), (0, 1), (1, 2)], ["t"] * 3) == []  # they overlap: no sum


def test_master_under_a_limit() -> None:
    """The smallest set that hits the cuts and never takes one member of a sum alone, or that there is none so small."""
    rng = random.Random(4)
    for _ in range(30):
        cuts = [tuple(sorted(rng.sample(range(9), rng.randint(2, 4)))) for _ in range(7)]
        sums = [sorted(rng.sample(range(9), rng.randint(2, 5))) for _ in range(3)]
        cost = np.asarray([rng.randint(1, 5) for _ in range(9)], dtype=float)
        pool = Pool(9, cost, cost, sums)
        for cut in cuts:
            pool.add(cut)
        sets = [frozenset(j for j in range(9) if bits[j]) for bits in itertools.product((0, 1), repeat=9)]
        good = [
            s for s in sets if all(s & set(cut) for cut in cuts) and all(len(s & set(total)) != 1 for total in sums)
        ]
        want = min((int(cost[sorted(s)].sum()) for s in good), default=99)
        point = pool.relaxed()
        assert point.value <= want + 1e-6
        for s in good:  # what reduced costs rule out costs more
            assert all(point.value + point.reduced[j] <= cost[sorted(s)].sum() + 1e-6 for j in s)
        for top in (want - 1, want, want + 3):
            found = pool.master(cost, [], 100, top, np.ones(9, dtype=bool))
            assert found.status == ("optimal" if want <= min(top, 98) else "infeasible")
            if found.status == "optimal":
                assert frozenset(np.flatnonzero(found.x > 0.5).tolist()) in good and found.value == want


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
