"""A bound that may be too wide never makes a cell look protected: a second table must."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tables_brute as brute
from memberships import Column, knowing, problem_of, zero_sum

from sacro_deltab.tables import Problem, TablePolicy, audit_pattern, intervals, means, problem_from_json, protect
from sacro_deltab.tables.audits import SetAudit
from sacro_deltab.tables.engine import Limits

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
            cells.append(Column(f"t{t}: {g}", f"t{t}", mean=True))
    columns.append(np.ones(n, bool))
    cells.append(Column("N", "weights", "grand"))
    values = rng.normal(0, 5, n)
    problem = problem_of(np.column_stack(columns), cells, values - values.mean(), policy=POLICY)
    return knowing(problem, zero_sum(problem))


def test_large_systems_are_judged_by_what_can_be_proved() -> None:
    problem = linked(1800, 12, 3)
    alone = audit_pattern(problem, frozenset({"t0: 4"}))
    assert alone.n_interval["t0: 4"] == (12, 12) and not alone.safe_exact
    both = audit_pattern(problem, frozenset({"t0: 4", "t0: 3"}))
    assert set(both.relaxed) == set(both.mean_outer) == {"t0: 3", "t0: 4"}
    assert both.safe_exact and not both.narrow and not both.unproved
    assert "mean_interval_outer" in both.to_json()


def rough(patch: pytest.MonkeyPatch) -> None:
    """Every component is too large to be exact, and every system for a search."""
    patch.setattr(intervals, "LARGE", 0)
    patch.setattr(intervals, "flow_component", lambda piece, asked: None)
    patch.setattr(means, "LARGE", 0)


@pytest.mark.parametrize("means_too", [False, True])
def test_forced_bounds_say_safe_only_where_it_is(means_too: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every component treated as too large, against the exact audit of the same pattern."""
    calm = 0
    for seed in range(60):
        rng = random.Random(seed)
        problem = problem_from_json(brute.random_problem(rng, means=means_too))
        gone = frozenset(problem.primary) | {c for c in problem.cells if rng.random() < 0.3}
        exact = audit_pattern(problem, gone)
        with monkeypatch.context() as patch:
            rough(patch)
            found = audit_pattern(problem, gone)
        assert not (found.safe_exact and not exact.safe_exact), seed
        assert set(exact.narrow) <= set(found.narrow), seed
        calm += found.safe_exact
    assert calm > 10


def test_patterns_of_large_systems_hold_under_the_exact_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chosen by what a second table says, judged by bounds: what is called safe is safe."""
    held = 0
    for seed in range(15):
        problem = problem_from_json(brute.random_problem(random.Random(seed), means=True))
        with monkeypatch.context() as patch:
            rough(patch)
            result = protect(problem, policy="interval", limits=Limits(large=0))
        exact = audit_pattern(problem, result.suppressed)
        assert not (result.safe and not exact.safe_interval), seed
        assert result.bound is None or result.bound <= len(result.complementary), seed
        held += result.safe and bool(result.complementary)
    assert held > 3


@pytest.mark.parametrize("policy", ["interval", "policy"])
def test_large_sessions_need_few_audits(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = replace(linked(2600, 12, 3), declared_primary=frozenset({"t0: 3"}))
    asked: list[frozenset[str]] = []

    def counted(judged: Problem, pattern: frozenset[str], **how: Any) -> SetAudit:
        asked.append(pattern)
        return audit_pattern(judged, pattern, **how)

    monkeypatch.setattr("sacro_deltab.tables.judge_cut.audit_pattern", counted)
    result = protect(problem, policy=policy)
    assert result.safe and result.possible and len(asked) <= 3 and asked[-1] == result.suppressed
    assert len(result.complementary) == (policy == "interval")  # the mean of t0: 3 needs another cell of its table
    assert not result.audit.narrow or policy == "policy"


def test_large_sessions_end_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What must be published keeps a mean too narrow, or the judge goes on refusing: not possible, and said so."""
    problem = replace(linked(2600, 12, 3), declared_primary=frozenset({"t0: 3"}))
    outside = frozenset(problem.cells) - {"t0: 3", "t0: 4"}
    stuck = protect(replace(problem, must_publish=outside), policy="interval")
    assert not stuck.possible and not stuck.safe and stuck.bound is None and stuck.notes

    monkeypatch.setattr("sacro_deltab.tables.attack.SetAudit.meets", lambda audit, requirement: False)
    small = problem_from_json(brute.random_problem(random.Random(1), means=True))
    refused = protect(small, policy="interval", limits=Limits(large=0))
    assert not refused.possible and refused.notes and refused.bound is None
    assert refused.suppressed >= set(small.primary)
