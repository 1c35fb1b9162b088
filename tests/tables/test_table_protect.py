"""The choice of complementary cells: smallest, never a hole, never a primary cell in print."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
import tables_brute as brute
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import InputError
from sacro_deltab.tables import Limits, Problem, TablePolicy, audit_pattern, problem_from_json, protect, suggest_merges
from sacro_deltab.tables.solver import SolverError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from tables_instances import instance


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10**9), st.sampled_from(["exact", "policy"]))
def test_fewest_cells_by_exhaustive_search(seed: int, requirement: str) -> None:
    data = brute.random_problem(random.Random(seed), exact=True)
    problem = problem_from_json(data)
    result = protect(problem, policy=requirement)
    want = brute.fewest(data, requirement)
    assert result.possible == (want is not None)
    assert set(problem.primary) <= result.suppressed
    if want is not None:
        assert result.proved_optimal and result.bound == want == len(result.complementary)
        assert brute.safe(data, result.suppressed, requirement)


def check_random_table(seed: int) -> None:
    """No hole in our own result; every planted hole (one complement printed after all) is found."""
    rng = random.Random(seed)
    data = brute.random_problem(rng, exact=True)
    problem = problem_from_json(data)
    result = protect(problem)
    if not result.possible:
        return
    assert set(problem.primary) <= result.suppressed
    judged = audit_pattern(problem, result.suppressed)
    assert judged.safe_policy
    assert result.proved_optimal
    for cell in result.complementary:  # the set is the smallest, so without any one of it there is a hole
        assert audit_pattern(problem, result.suppressed - {cell}).attackable


def test_random_tables_sample() -> None:
    for seed in range(60):
        check_random_table(seed)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(20))
def test_random_tables_soak(block: int) -> None:
    for seed in range(block * 500, block * 500 + 500):
        check_random_table(10_000 + seed)


@pytest.mark.parametrize("name", ["6x5", "10x10", "hier2.3x4", "4x3x2"])
def test_generated_tables(name: str) -> None:
    problem = instance(name, seed=3)
    result = protect(problem)
    assert result.possible and result.safe and result.audit.safe_policy
    assert not set(problem.primary) - result.suppressed
    assert result.bound is not None and result.bound <= len(result.complementary)
    if result.proved_optimal:
        assert result.bound == len(result.complementary)
        for cell in sorted(result.complementary)[:6]:
            assert audit_pattern(problem, result.suppressed - {cell}).attackable
    assert protect(problem).suppressed == result.suppressed  # the same input, the same pattern


def test_limits_are_counts_and_leave_a_bound() -> None:
    result = protect(instance("5x4x3", seed=2), limits=Limits(first_rounds=3, columns=0, repairs=1))
    assert result.safe
    assert result.bound is not None and result.bound <= len(result.complementary)


def table(counts: dict[str, int], **more: object) -> Problem:
    cells = {name: {"atoms": [name]} for name in counts}
    cells["All"] = {"atoms": list(counts), "role": "grand"}
    return problem_from_json({"atoms": {k: {"n": n} for k, n in counts.items()}, "cells": cells, **more})


def test_people_as_objective() -> None:
    problem = table({"A": 300, "B": 12, "C": 45, "D": 50})
    assert protect(problem, objective="people").complementary == {"C"}
    assert protect(problem).complementary == {"C"}


def test_total_that_must_be_published() -> None:
    result = protect(table({"A": 300, "B": 12}, must_publish=["All"]))
    assert result.possible and result.complementary == {"A"}
    result = protect(table({"A": 300, "B": 12}, must_publish=["All", "A"]))
    assert not result.possible and not result.safe
    result = protect(table({"A": 300, "B": 12}, must_publish=["B"]))
    assert not result.possible and not result.safe


def test_nobody_protects_nobody() -> None:
    result = protect(table({"A": 300, "B": 7, "Z": 0}))
    assert result.complementary == {"A"}
    zero = protect(table({"A": 300, "B": 60, "Z": 0}, policy={"zeros_are_primary": True}))
    assert "Z" in zero.suppressed and len(zero.complementary) == 1


def test_interval_requirement_goes_on() -> None:
    """Union and exactness hold with one complement of 24 people; 30 people of room ask for the other."""
    policy = {"interval_n": 40}
    problem = table({"A": 300, "B": 12, "C": 24}, policy=policy, must_publish=["All"])
    assert protect(problem).complementary == {"C"}
    wide = protect(problem, policy="interval")
    assert wide.safe and wide.complementary == {"A"}


def test_all_equal_and_everything_small() -> None:
    same = protect(table(dict.fromkeys("ABCDE", 30)))
    assert not same.suppressed
    small = protect(table(dict.fromkeys("ABC", 3)))
    assert small.suppressed == {"A", "B", "C", "All"} and small.safe
    single = problem_from_json({"atoms": {"a": {"n": 7}}, "cells": {"a": {"atoms": ["a"]}}})
    assert protect(single).suppressed == {"a"}


def test_merges_save_a_table() -> None:
    problem = table({"40-44": 15, "45-49": 41, "50-54": 42, "55-59": 43})
    (best, *_) = suggest_merges(problem, "t1")
    assert best.groups == (("40-44", "45-49"),) and best.suppressed == 0
    assert "merge 40-44 + 45-49" in str(best)
    assert suggest_merges(table({"A": 30, "B": 40}), "t1") == ()
    declared = suggest_merges(problem, "t1", declared=[["40-44", "55-59"]])
    assert declared[0].groups == (("40-44", "55-59"),)
    with pytest.raises(InputError):
        suggest_merges(problem, "nowhere")


def test_a_merge_that_cannot_be_judged_is_no_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = table({"40-44": 15, "45-49": 41, "50-54": 42, "55-59": 43})

    def only_as_it_is(asked: Problem, **kwargs: object) -> object:
        if len(asked.cells) == len(problem.cells):
            return protect(asked)
        raise SolverError("no answer")

    def never(asked: Problem, **kwargs: object) -> object:
        raise SolverError("no answer")

    for unsettled in (only_as_it_is, never):
        monkeypatch.setattr("sacro_deltab.tables.merges.protect", unsettled)
        assert suggest_merges(problem, "t1") == ()


def test_parameters_come_from_the_rule_set() -> None:
    with pytest.raises(InputError, match="min_n"):
        TablePolicy.from_parameters({"withhold_share": "3/10"})
    policy = TablePolicy.from_parameters(
        {"min_n": 20, "withhold_share": "3/10", "interval_n": 10, "interval_years": 2.0}
    )
    assert policy.too_many(4, 13) and not policy.too_many(3, 10)
    assert TablePolicy(20, policy.withhold_share, 10, 2.0).too_many(31, 100)


def test_unknown_requirement() -> None:
    with pytest.raises(InputError):
        protect(table({"A": 30}), policy="good enough")


def test_tables_too_large_for_flows_get_flags_and_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = instance("10x10")
    gone = protect(problem).suppressed - {"All"}
    exact = audit_pattern(problem, gone)
    monkeypatch.setattr("sacro_deltab.tables.components.PUSHES", 0)
    bounds = audit_pattern(problem, gone)
    assert bounds.exactly_disclosed == exact.exactly_disclosed and bounds.safe_policy == exact.safe_policy
    assert bounds.relaxed
    for cell, (low, high) in exact.n_interval.items():
        least, most = bounds.n_interval[cell]
        assert least <= low and (most is None or (high is not None and high <= most)), cell


def test_tables_too_large_to_choose_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacro_deltab.tables.complement.LARGEST", 0)
    assert protect(table({"A": 30, "B": 40})).safe
    with pytest.raises(SolverError, match="too many to choose from"):
        protect(table({"A": 3, "B": 40, "C": 50}))
