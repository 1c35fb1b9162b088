"""`tables protect` against every subset of the cells that may be withheld, judged by the enumerating oracle."""

from __future__ import annotations

import copy
import itertools
import math
import random
from typing import Any

import pytest
import tables_oracle as oracle

from sacro_deltab.tables import problem_from_json, protect
from sacro_deltab.tables.answers import audit_answer, protect_answer

CANDIDATES = 8  # cells that may be withheld, up to which every subset is tried


REQUIREMENTS = ("exact", "policy", "interval")


def holding(slow: oracle.Oracle, must: set[str]) -> dict[str, list[frozenset[str]]]:
    """For each requirement, all complementary sets that meet it; none where a small cell must be published."""
    fixed = {*slow.primary, *slow.zero, *must}
    open_cells = [c for c in slow.cells if c not in fixed and slow.size(c)]
    if len(open_cells) > CANDIDATES or slow.k > 6:
        raise oracle.TooLarge
    out: dict[str, list[frozenset[str]]] = {requirement: [] for requirement in REQUIREMENTS}
    if must & set(slow.primary):
        return out
    every = itertools.chain.from_iterable(itertools.combinations(open_cells, n) for n in range(len(open_cells) + 1))
    least = slow.policy.get("interval_n", 10)
    for extra in map(frozenset, every):
        found = slow.answer(frozenset(slow.primary) | extra)
        widths = [math.inf if hi is None else hi - lo for lo, hi in map(found["n_interval"].get, slow.primary)]
        met = (found["safe_exact"], found["safe_policy"], found["safe_policy"] and min(widths, default=least) >= least)
        for requirement, yes in zip(REQUIREMENTS, met, strict=True):
            out[requirement] += [extra] * yes
    return out


def compare(seed: int) -> int:
    """One random file under every requirement and objective; how many questions were compared."""
    rng = random.Random(seed)
    data = oracle.question(rng)
    if rng.random() < 0.5:
        data.setdefault("policy", {})["interval_n"] = rng.choice([0, 1, 2, 4, 10])
    slow = oracle.Oracle(data)
    try:
        good = holding(slow, set(data.get("must_publish", [])))
    except (oracle.TooLarge, oracle.Contradicted):
        return 0
    data.pop("published_sets")
    for requirement, objective in itertools.product(REQUIREMENTS, ("cells", "people")):
        _one(data, slow, good[requirement], requirement, objective, seed)
    return 6


def _one(
    data: dict[str, Any], slow: oracle.Oracle, good: list[frozenset[str]], requirement: str, objective: str, seed: int
) -> None:
    where = (seed, requirement, objective)
    answer, safe = protect_answer(copy.deepcopy(data), policy=requirement, objective=objective)
    said = answer["protection"]
    must = set(data.get("must_publish", []))
    chosen, extra = frozenset(said["suppressed"]), frozenset(said["complementary"])
    assert said["requirement"] == requirement and said["objective"] == objective and said["count"] == len(extra), where
    assert set(slow.primary) - must <= chosen and not chosen & must, where
    assert extra == chosen - set(slow.primary), where
    assert said["possible"] == bool(good), where
    assert safe == (said["possible"] and said["safe"]), where
    _audit_is_of_the_choice(data, said, chosen, where)
    if not good:
        assert not safe, where
        return

    def worth(s: frozenset[str]) -> tuple[Any, ...]:
        people = sum(slow.size(c) for c in s)
        return (len(s), people, sorted(s)) if objective == "cells" else (people, sorted(s))

    best = min(good, key=worth)
    assert extra in good, where
    assert said["bound"] is not None and said["bound"] <= worth(best)[0] <= worth(extra)[0], where
    if said["proved_optimal"]:
        assert said["bound"] == worth(best)[0] == worth(extra)[0], where
    if said["ties_proved"]:
        assert worth(extra) == worth(best), where
    if objective == "cells":
        assert said["gap"] == len(extra) - said["bound"], where


def _audit_is_of_the_choice(data: dict[str, Any], said: dict[str, Any], chosen: frozenset[str], where: Any) -> None:
    """The audit beside the choice is the one that the same pattern gets when it is asked about."""
    asked = {**data, "published_sets": [{"name": said["audit"]["name"], "suppressed": sorted(chosen)}]}
    again, _ = audit_answer(asked)
    assert again["published_sets"] == [said["audit"]], where


def test_choices_are_the_smallest() -> None:
    assert sum(compare(seed) for seed in range(24)) > 40


def test_linked_releases_that_must_be_published() -> None:
    """An earlier release stands; the later one is withheld, or nothing can help."""
    for seed in range(12):
        rng = random.Random(seed)
        atoms = {"stay": {"n": rng.randint(20, 60)}, "left": {"n": rng.randint(1, 4)}, "new": {"n": rng.randint(1, 30)}}
        cells = {
            "first": {"table": "r1", "role": "grand", "atoms": ["stay", "left"]},
            "second": {"table": "r2", "role": "grand", "atoms": ["stay", "new"]},
            "both": {"table": "r2", "atoms": ["stay"]},
        }
        data = {"atoms": atoms, "cells": cells, "must_publish": ["first"] if seed % 2 else ["first", "both"]}
        slow = oracle.Oracle(data)
        for objective in ("cells", "people"):
            _one(data, slow, holding(slow, set(data["must_publish"]))["policy"], "policy", objective, seed)


def test_readers_who_do_not_know_that_people_are_whole_need_no_more() -> None:
    for seed in range(12):
        data = oracle.question(random.Random(3_000 + seed))
        whole = protect(problem_from_json(data))
        data.setdefault("attacker", {})["integer"] = False
        weaker = protect(problem_from_json(data))
        assert weaker.possible >= whole.possible
        if whole.possible and whole.proved_optimal and weaker.proved_optimal:
            assert len(weaker.complementary) <= len(whole.complementary)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(10))
def test_choices_soak(block: int) -> None:
    assert sum(compare(200_000 + block * 500 + seed) for seed in range(500)) > 1_000
