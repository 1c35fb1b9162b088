"""A bound that may be too wide never makes a cell look protected: a second table must."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tables_brute as brute

from sacro_deltab.tables import CellSpec, Problem, TablePolicy, audit_pattern, intervals, means, problem_from_membership
from sacro_deltab.tables.identities import sum_identity, with_identities

POLICY = TablePolicy.from_parameters(
    {"min_n": 20, "withhold_share": "3/10", "interval_n": 10, "interval_years": 2.0, "value_bounds": [-40, 40]}
)


def linked(n: int, tables: int, seed: int) -> Problem:
    """Tables of four groups; in the first a fifth group of twelve people."""
    rng = np.random.default_rng(seed)
    columns, cells = [], []
    for t in range(tables):
        group = rng.integers(0, 4, n)
        if t == 0:
            group[rng.choice(n, 12, replace=False)] = 4
        for g in range(5 if t == 0 else 4):
            columns.append(group == g)
            cells.append(CellSpec(f"t{t}: {g}", f"t{t}", mean=True))
    columns.append(np.ones(n, bool))
    cells.append(CellSpec("N", "weights", "grand"))
    values = rng.normal(0, 5, n)
    problem = problem_from_membership(np.column_stack(columns), cells, values - values.mean(), policy=POLICY)
    return with_identities(problem, [sum_identity(problem)])


def test_large_systems_are_judged_by_what_can_be_proved() -> None:
    problem = linked(1800, 12, 3)
    alone = audit_pattern(problem, frozenset({"t0: 4"}))
    assert alone.n_interval["t0: 4"] == (12, 12) and not alone.safe_exact
    both = audit_pattern(problem, frozenset({"t0: 4", "t0: 3"}))
    assert set(both.relaxed) == set(both.mean_outer) == {"t0: 3", "t0: 4"}
    assert both.safe_exact and not both.narrow and not both.unproved
    assert "mean_interval_outer" in both.to_json()


@pytest.mark.parametrize("means_too", [False, True])
def test_forced_bounds_say_safe_only_where_it_is(means_too: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every component treated as too large, against the exact audit of the same pattern."""
    calm = 0
    for seed in range(60):
        rng = random.Random(seed)
        problem = Problem.from_json(brute.random_problem(rng, means=means_too))
        gone = frozenset(problem.primary) | {c for c in problem.cells if rng.random() < 0.3}
        exact = audit_pattern(problem, gone)
        with monkeypatch.context() as patch:
            patch.setattr(intervals, "LARGE", 0)
            patch.setattr(intervals, "_flow_component", lambda system, name: None)
            patch.setattr(means, "LARGE", 0)
            rough = audit_pattern(problem, gone)
        assert not (rough.safe_exact and not exact.safe_exact), seed
        assert set(exact.narrow) <= set(rough.narrow), seed
        calm += rough.safe_exact
    assert calm > 10
