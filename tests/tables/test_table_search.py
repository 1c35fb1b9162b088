"""How a pattern is found: boxes, sums, eliminations, masters under a limit, ties, drawn ties, large systems."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from memberships import Column, problem_of

from sacro_deltab.tables import Limits, audit_pattern, problem_from_json, protect
from sacro_deltab.tables.boxes import NEVER, Grid
from sacro_deltab.tables.master import Linear, Pool
from sacro_deltab.tables.prune import small_groups, withheld
from sacro_deltab.tables.relations import relations

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from tables_instances import POLICY, instance


def test_sums_are_found_from_the_groups() -> None:
    rows = [(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3), (0,), (1,), (2,), (3,)]
    found = {frozenset(cells) for cells in relations(4, rows, ["t"] * 9)}
    assert found == {frozenset(s) for s in ((0, 1, 2), (0, 3, 4), (1, 5, 6), (2, 7, 8), (3, 5, 7), (4, 6, 8))}
    assert relations(2, [(0, 1)], ["t"]) == []
    assert relations(3, [(0, 1, 2), (0, 1), (1, 2)], ["t"] * 3) == []  # they overlap: no sum


@pytest.mark.parametrize("name", ["6x5", "4x3x2", "hier2.3x4", "3x2x2x2"])
def test_boxes_of_crossed_tables(name: str) -> None:
    """Dimensions are found from the groups; a box moves its group, and of the cells only those that it names."""
    problem = instance(name, seed=5)
    rows = [cell.atoms for cell in problem.cells.values()]
    grid = Grid.of(len(problem.atoms), random.Random(1).sample(rows, len(rows)))
    assert grid is not None and sorted(grid.node_of) == sorted(rows)
    cost = np.ones(int(np.prod(grid.shape)))
    for group in [*rows[:: len(rows) // 7], (0, len(problem.atoms) - 1)]:
        box = grid.through(cost, group)
        assert box is not None and box.value == len(box.cells)
        change = np.prod([f[grid.leaf[:, d]] for d, f in enumerate(box.factors)], axis=0)
        assert abs(change[list(group)].sum()) >= 1
        touched = {grid.flat[row] for row in rows if change[list(row)].sum()}
        assert touched == set(box.cells.tolist())
    assert grid.through(np.full(len(cost), NEVER), rows[0]) is None


def test_other_tables_have_no_boxes() -> None:
    rows = [cell.atoms for cell in instance("4x3").cells.values()]
    assert Grid.of(12, [*rows, (0, 5)]) is None  # a group across
    assert Grid.of(12, [row for row in rows if len(row) != 4]) is not None  # margins left out
    assert Grid.of(4, [(0, 1), (1, 2), (2, 3)]) is None


def test_three_way_table_as_good_as_others() -> None:
    """A table of which another program's best is 22 cells."""
    problem = instance("7x7x5")
    result = protect(problem, policy="exact", limits=Limits(repairs=40))
    assert result.safe and set(problem.primary) <= result.suppressed and result.bound is not None
    assert result.bound <= len(result.complementary) <= 22


def test_a_key_draws_among_equals() -> None:
    """Which group goes beside the small one tells nothing of sizes: the same key draws the same, keys draw evenly."""
    counts = {"A": 3, "B": 25, "C": 40, "D": 60, "E": 90}
    cells = {name: {"atoms": [name]} for name in counts} | {"All": {"atoms": sorted(counts), "role": "grand"}}
    problem = problem_from_json({"atoms": {k: {"n": n} for k, n in counts.items()}, "cells": cells})
    drawn = [protect(problem, key=bytes([i])) for i in range(40)]
    assert all(r.safe and r.proved_optimal and len(r.complementary) == 1 for r in drawn)
    assert protect(problem, key=b"\0").suppressed == drawn[0].suppressed
    assert {c for r in drawn for c in r.complementary} == {"B", "C", "D", "E", "All"}
    larger = problem_from_json(
        {"atoms": {k: {"n": n if k == "A" else 115 - n} for k, n in counts.items()}, "cells": cells}
    )
    assert [protect(larger, key=bytes([i])).complementary for i in range(40)] == [r.complementary for r in drawn]


def test_master_under_a_limit() -> None:
    """The smallest set that hits the cuts and never takes one member of a sum alone, or that there is none so small."""
    rng = random.Random(4)
    for _ in range(30):
        cuts = [tuple(sorted(rng.sample(range(9), rng.randint(2, 4)))) for _ in range(7)]
        sums = [sorted(rng.sample(range(9), rng.randint(2, 5))) for _ in range(3)]
        cost = np.asarray([rng.randint(1, 5) for _ in range(9)], dtype=float)
        pool = Pool(9, sums)
        for cut in cuts:
            pool.add(cut)
        sets = [frozenset(j for j in range(9) if bits[j]) for bits in itertools.product((0, 1), repeat=9)]
        good = [
            s for s in sets if all(s & set(cut) for cut in cuts) and all(len(s & set(total)) != 1 for total in sums)
        ]
        want = min((int(cost[sorted(s)].sum()) for s in good), default=99)
        point = Linear(pool, cost).solve()
        assert point is not None
        assert point.value <= want + 1e-6
        for s in good:  # what reduced costs rule out costs more
            assert all(point.value + point.reduced[j] <= cost[sorted(s)].sum() + 1e-6 for j in s)
        for top in (want - 1, want, want + 3):
            found, chosen = pool.master(cost, [], 100, top, np.ones(9, dtype=bool))
            assert found.status == ("optimal" if want <= min(top, 98) else "infeasible")
            if found.status == "optimal":
                assert chosen in good and found.value == want
                equal = [s for s in good if cost[sorted(s)].sum() == want]
                found, _ = pool.master(cost, [], 100, want, np.ones(9, dtype=bool), equal)
                assert found.status == "infeasible"  # those are all


def test_elimination_withholds_only_what_gives_a_group_away() -> None:
    rows = [(0, 1, 2), (0,), (1,), (2,)]
    assert withheld(rows, [0, 1, 2, 3], [(0,)]) == [1, 3]
    assert withheld(rows, [1, 2, 3, 0], [(0,)]) == [1, 0]
    assert withheld(rows, [2, 0, 3, 1], [(0,)], sure=2) == [3, 1]  # 1 is known: it drops out of the rest
    assert small_groups([1] * 30, 20, 100) is None
    assert set(small_groups([3, 4, 30], 7, 100) or []) == {(0,), (1,)}


def test_three_way_table_is_proved() -> None:
    result = protect(instance("6x5x4", seed=2), policy="exact")
    assert result.proved_optimal and result.bound == len(result.complementary) == 14 and result.safe


def test_first_labels_among_equals() -> None:
    counts = dict.fromkeys("BCDE", 40) | {"A": 3}
    cells = {name: {"atoms": [name]} for name in counts} | {"All": {"atoms": sorted(counts), "role": "grand"}}
    problem = problem_from_json({"atoms": {k: {"n": n} for k, n in counts.items()}, "cells": cells})
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
            cells.append(Column(f"t{t}:{j}", f"t{t}", n_rounding="exact"))
        columns.append(np.ones(120, dtype=bool))
        cells.append(Column(f"t{t}:all", f"t{t}", "grand", n_rounding="exact"))
    problem = problem_of(np.stack(columns, axis=1), cells, policy=POLICY)
    result = protect(problem, limits=Limits(large=20))
    assert result.possible and result.safe
    assert set(problem.primary) <= result.suppressed
    assert 0 < len(result.complementary) <= 3
    assert audit_pattern(problem, result.suppressed - {min(result.complementary)}).attackable
