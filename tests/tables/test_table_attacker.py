"""The attacker against exhaustive search, and the properties it must have."""

from __future__ import annotations

import random

import pytest
import tables_brute as brute
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sacro_deltab.tables import audit_pattern, problem_from_json

seeds = st.integers(0, 10**9)


def pick(data: dict, rng: random.Random) -> frozenset[str]:
    """Primary cells and a few more."""
    others = [c for c in data["cells"] if rng.random() < 0.35]
    return brute.primary(data) | frozenset(others)


@settings(max_examples=40, deadline=None, derandomize=True)
@example(93754)  # r1c1: means and totals together leave nobody in it, N alone does not
@given(seeds)
def test_truth_is_inside_and_publishing_never_widens(seed: int) -> None:
    truth_is_inside_and_publishing_never_widens(seed)


def truth_is_inside_and_publishing_never_widens(seed: int) -> None:
    rng = random.Random(seed)
    data = brute.random_problem(rng, means=True)
    problem = problem_from_json(data)
    gone = pick(data, rng)
    before = audit_pattern(problem, gone)
    for name in gone:
        cell = problem.cells[name]
        low, high = before.n_interval[name]
        assert low <= cell.n and (high is None or cell.n <= high)
        if high == 0 or name not in before.mean_interval:  # known to be nobody
            assert cell.n == 0 and name not in before.mean_interval
            continue
        low_mean, high_mean = before.mean_interval[name]
        if cell.n and low_mean is not None and high_mean is not None:
            assert low_mean - 1e-6 <= cell.sum / cell.n <= high_mean + 1e-6
    if not gone:
        return
    fewer = gone - {rng.choice(sorted(gone))}
    after = audit_pattern(problem, fewer)
    for name in fewer:
        low, high = before.n_interval[name]
        low_2, high_2 = after.n_interval[name]
        assert low_2 >= low and (high is None or (high_2 is not None and high_2 <= high))
        if high_2 == 0 or name not in after.mean_interval:
            continue
        a, b = before.mean_interval[name], after.mean_interval[name]
        assert a[0] is None or b[0] >= a[0] - 1e-6
        assert a[1] is None or b[1] <= a[1] + 1e-6
    if before.smallest_derivable_union is not None:
        assert after.smallest_derivable_union.n <= before.smallest_derivable_union.n


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds)
def test_network_and_program_agree(seed: int) -> None:
    """Two code paths for the same interval: maximum flows and whole-number programs."""
    from sacro_deltab.tables import components, intervals
    from sacro_deltab.tables.released import release

    rng = random.Random(seed)
    data = brute.random_problem(rng)
    problem = problem_from_json(data)
    seen = release(problem, pick(data, rng))
    system = intervals.CountSystem(seen.told, seen.asked)
    for atoms in seen.targets.values():
        for c, members in system._parts(system._group(atoms)).items():
            low, high = components.Component(system.piece(c)).interval(members)
            assert system._solver(c).interval(members) == (low, high)
            assert system._solver(c).fixed(members) == (low == high)


def mean_case(**attacker: object) -> dict:
    return {
        "kind": "means",
        "attacker": {"n_published": "exact", "value_bounds": [-40, 40], **attacker},
        "atoms": {"CN": {"n": 280, "sum": -117.6}, "MCI": {"n": 117, "sum": 218.79}, "AD": {"n": 15, "sum": 94.65}},
        "cells": {
            "CN": {"atoms": ["CN"]}, "MCI": {"atoms": ["MCI"]}, "AD": {"atoms": ["AD"]},
            "All": {"role": "grand", "atoms": ["CN", "MCI", "AD"]},
        },
    }  # fmt: skip


def test_closed_form_of_a_mean() -> None:
    """s = N·M − Σ n·m, each mean off by at most 0.05: half-width 0.05·(412 + 280 + 117)/15."""
    found = audit_pattern(problem_from_json(mean_case()), frozenset({"AD"}))
    low, high = found.mean_interval["AD"]
    assert high - low == pytest.approx(2 * 0.05 * (412 + 280 + 117) / 15)
    assert found.n_interval["AD"] == (15, 15)
    assert found.narrow == ("AD",)  # 5.4 years would do, but N is known


def test_sd_says_more() -> None:
    data = mean_case()
    for name, sd in (("CN", 3.1), ("MCI", 3.4), ("All", 3.4)):
        data["cells"][name]["sd"] = sd
    plain = audit_pattern(problem_from_json(mean_case()), frozenset({"AD"}))
    found = audit_pattern(problem_from_json(data), frozenset({"AD"}))
    assert found.mean_interval == plain.mean_interval
    assert found.expert is not None
    assert found.expert.mean_interval["AD"][1] <= plain.mean_interval["AD"][1]
    assert found.expert.mean_interval["AD"][0] >= plain.mean_interval["AD"][0]


def test_percentage_undoes_rounding() -> None:
    data = {
        "attacker": {"n_published": "rounded", "knows_rule": True},
        "atoms": {"A": {"n": 10}, "B": {"n": 20}},
        "cells": {
            "A": {"atoms": ["A"], "percent": {"of": "All", "value": 33.3, "decimals": 1}},
            "B": {"atoms": ["B"]},
            "All": {"role": "grand", "atoms": ["A", "B"]},
        },
    }
    found = audit_pattern(problem_from_json(data), frozenset({"A", "B"}))
    assert found.n_interval["A"] == (10, 10)
    assert not found.safe_exact


def test_a_reader_of_a_mark_learns_more_than_of_a_star() -> None:
    data = {
        "attacker": {"flags_primary": True, "knows_rule": True},
        "atoms": {"A": {"n": 300}, "B": {"n": 19}, "C": {"n": 19}, "D": {"n": 40}},
        "cells": {n: {"atoms": [n]} for n in "ABCD"} | {"All": {"role": "grand", "atoms": list("ABCD")}},
    }
    flagged = audit_pattern(problem_from_json(data), frozenset({"B", "C", "D"}))
    data["attacker"] = {}
    starred = audit_pattern(problem_from_json(data), frozenset({"B", "C", "D"}))
    assert flagged.n_interval["B"] == (0, 19)
    assert starred.n_interval["B"] == (0, 78)
