"""`tables audit` and `tables protect`, every field of `published_sets`, against the enumerating oracle."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import pytest
import tables_oracle as oracle

from sacro_deltab.tables import exactly_disclosed, problem_from_json, protect
from sacro_deltab.tables.answers import audit_answer, protect_answer
from sacro_deltab.tables.minimum import minimum_sets


def compare(seed: int, *, means: bool, wider: bool = False) -> int:
    """Compare one random file; how many patterns were compared (0: too large for the oracle)."""
    data = (oracle.wider if wider else oracle.question)(random.Random(seed), means=means)
    slow = oracle.Oracle(data)
    try:
        wanted = [_wanted(slow, frozenset(s["suppressed"])) for s in data["published_sets"]]
    except oracle.TooLarge:
        return 0
    answer, safe = audit_answer(copy.deepcopy(data))
    assert answer["primary"] == slow.primary, seed
    problem = problem_from_json(data)
    compared = 0
    for want, got, asked in zip(wanted, answer["published_sets"], data["published_sets"], strict=True):
        assert got["name"] == asked["name"]
        if want is None:  # the reader is misled: nothing fits what he believes
            continue
        compared += 1
        for table, shares in want["withhold"].items():  # a table without interior cells: no share of them is defined
            if shares["withhold_interior"] is None:
                shares["withhold_interior"] = got["withhold"][table]["withhold_interior"]
        assert {field: got[field] for field in want} == want, (seed, asked)
        assert list(exactly_disclosed(problem, frozenset(asked["suppressed"]))) == got["exactly_disclosed"], seed
        if means:
            _compare_means(slow, frozenset(asked["suppressed"]), want, got["mean_interval"], seed)
    assert safe == all(s["safe_policy"] for s in answer["published_sets"])
    if wider:
        _compare_group(slow, answer["derived_group"], seed, means)
    return compared


def _compare_group(slow: oracle.Oracle, got: dict[str, Any], seed: int, means: bool) -> None:
    """The group that only differences define, everything being published."""
    try:
        want = slow.n_interval(frozenset(), got["atoms"])["group"]
        ends = slow.mean_interval(frozenset(), got["atoms"]) if means and want[1] != 0 else None
    except (oracle.TooLarge, oracle.Contradicted):
        return
    assert got["n_interval"] == want, seed
    if ends != (math.inf, -math.inf):  # else means that no values within the bounds have
        assert ("mean_interval" in got) == (means and want[1] != 0), seed
    if ends is not None and "mean_interval" in got:
        for mine, his in zip(got["mean_interval"], ends, strict=True):
            assert (mine is None) == (his is None), (seed, got, ends)
            assert his is None or mine == pytest.approx(his, abs=2e-4, rel=2e-5), (seed, got, ends)


def _wanted(slow: oracle.Oracle, gone: frozenset[str]) -> dict[str, Any] | None:
    try:
        return slow.answer(gone)
    except oracle.Contradicted:
        return None


def _compare_means(slow: oracle.Oracle, gone: frozenset[str], want: Any, got: Any, seed: int) -> None:
    somebody = {c for c in gone if want["n_interval"][c][1] != 0}
    assert set(got) <= somebody, seed
    for cell in somebody:
        try:
            ends = slow.mean_interval(gone, slow.cells[cell]["atoms"])
        except oracle.TooLarge:
            continue
        if ends == (math.inf, -math.inf):  # means that no values within the bounds have
            continue
        interval = got[cell]
        for mine, his in zip(interval, ends, strict=True):
            assert (mine is None) == (his is None), (seed, cell, interval, ends)
            assert his is None or mine == pytest.approx(his, abs=2e-4, rel=2e-5), (seed, cell, interval, ends)


def compare_choice(seed: int) -> bool:
    """The smallest sets of a small file; False: too large for the oracle."""
    data = oracle.question(random.Random(seed))
    slow = oracle.Oracle(data)
    open_cells = [c for c in slow.cells if c not in slow.primary and c not in data.get("must_publish", [])]
    if len(open_cells) > 7 or slow.k > 6 or set(slow.primary) & set(data.get("must_publish", [])):
        return False
    try:
        sets = {r: slow.fewest(r) for r in ("exact", "policy")}
    except (oracle.TooLarge, oracle.Contradicted):
        return False
    problem = problem_from_json(data)
    for requirement, smallest in sets.items():
        found = protect(problem, policy=requirement)
        assert found.possible == bool(smallest), (seed, requirement)
        if smallest:
            assert found.complementary in smallest and found.bound == len(smallest[0]), (seed, requirement)
            listed = minimum_sets(problem, requirement)
            assert listed["count"] == len(smallest[0]) and listed["n_sets"] == len(smallest), (seed, requirement)
            assert sorted(listed["sets"]) == sorted(sorted(s) for s in smallest)[:40], (seed, requirement)
    answer, _ = protect_answer(copy.deepcopy(data), policy="policy", objective="cells")
    audited, _ = audit_answer(copy.deepcopy(data))
    assert answer["published_sets"] == audited["published_sets"]
    return True


def test_counts() -> None:
    assert sum(compare(seed, means=False) for seed in range(60)) > 150


def test_means() -> None:
    assert sum(compare(seed, means=True) for seed in range(8)) > 15


def test_percentages_hidden_n_and_groups_of_differences() -> None:
    assert sum(compare(seed, means=False, wider=True) for seed in range(15)) > 35
    assert sum(compare(seed, means=True, wider=True) for seed in range(2)) > 2


@pytest.mark.parametrize("seed", [34, 53, 1_085, 1_113, 1_391, 100_344])
def test_readers_of_nobody(seed: int) -> None:
    """An N that is not printed may be nobody's, where the rule lets nobody stand; of nobody only 0 % is printed."""
    compare(seed, means=False, wider=True)


def test_means_do_not_fit_what_a_misled_reader_believes() -> None:
    assert compare(100_810, means=True) == 4  # N alone fits the rule that one of the patterns breaks


def test_a_group_that_touches_several_components() -> None:
    assert compare(101_960, means=True) == 4


@pytest.mark.parametrize(("seed", "patterns"), [(102_125, 3), (102_335, 4)])
def test_sums_of_nobody_widen_no_mean(seed: int, patterns: int) -> None:
    """Programs in whole numbers take a millionth of a person for nobody, who then has a sum; or give up."""
    assert compare(seed, means=True) == patterns


def test_choices() -> None:
    assert sum(compare_choice(seed) for seed in range(40)) > 8


@pytest.mark.soak
@pytest.mark.parametrize("block", range(20))
def test_oracle_soak(block: int) -> None:
    for seed in range(block * 500, block * 500 + 500):
        compare(100_000 + seed, means=False)
        compare_choice(100_000 + seed)
        compare(100_000 + seed, means=False, wider=True)
        if seed % 5 == 0:
            compare(100_000 + seed, means=True)
            compare(100_000 + seed, means=True, wider=True)
