"""Facts measured twice, by code that shares nothing: both say the same of every column, and a fault of one shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sacro_deltab
from sacro_deltab.kinds import anew
from sacro_deltab.kinds.registry import KINDS
from sacro_deltab.measure import measure
from sacro_deltab.measure.people import Grouping

NUMBERS = {"nk_n": 2, "nk_k": 0.9, "min_n": 10, "round_n_below": 50, "min_residual_dof": 10}
RNG = np.random.default_rng(14)
COLUMNS: dict[str, Any] = {
    "deltas": RNG.normal(0.4, 4, 341),
    "an even number": RNG.normal(70, 9, 340),
    "missing": np.where(RNG.random(300) < 0.2, np.nan, RNG.normal(size=300)),
    "an indicator": (RNG.random(300) < 0.07).astype(float),
    "an indicator with noise": (RNG.random(300) < 0.07) + RNG.normal(0, 1e-3, 300),
    "all the same": np.full(680, 0.1),
    "all zero": np.zeros(80),
    "one person": np.array([3.0]),
    "two people": np.array([3.0, -8.0]),
    "nobody": np.full(20, np.nan),
    "one very large": np.r_[RNG.normal(size=99), 1e90],
    "large": RNG.normal(size=99) * 1e99,
}


def same(one: Any, other: Any) -> bool:
    return bool(one == other) if isinstance(one, str | bool) or one is None else bool(np.isclose(one, other, rtol=1e-9))


def plain(facts: Any) -> dict[str, Any]:
    return {fact.name: fact.value for fact in facts.values()}


@pytest.mark.parametrize("name", COLUMNS)
def test_two_ways_of_measuring_agree(name: str) -> None:
    values = COLUMNS[name]
    finite, column = values[np.isfinite(values)], anew.known(values)
    for which in ("mean", "sd"):
        assert same(measure.statistic_of(finite, which), anew.statistic(column, which)), which
        mine, theirs = plain(measure.summary_facts(values, NUMBERS, which)), anew.summary(values, NUMBERS, which)
        assert mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in mine), (mine, theirs)
    mine, theirs = plain(measure.feature_facts(values[:, None])), anew.features(values[:, None])
    assert mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in mine), (mine, theirs)
    for percent in (0, 5, 50, 99.5, 100) if finite.size else ():
        assert same(float(np.percentile(finite, percent)), anew.quantile(column, percent))


@pytest.mark.parametrize("which", ["mean", "sd", "count"])
def test_tables_agree(which: str) -> None:
    values = np.where(RNG.random(400) < 0.1, np.nan, RNG.normal(size=400))
    codes = RNG.choice([-1, 0, 1, 2, 3], 400, p=[0.1, 0.4, 0.3, 0.19, 0.01])
    groups = Grouping("g", ("a", "b", "c", "few", "none"), codes, frozenset({"none"}), (5.0, 5.0, 5.0, 5.0, 5.0))
    inside = None if which == "count" else values
    parts = measure.cell_parts(groups, inside, which)
    again = anew.cells(groups, inside, which)
    for part in parts:
        facts, value = again[part.key]
        assert plain(part.facts).keys() == facts.keys() and same(part.value, value)
        assert all(same(v, facts[k]) for k, v in plain(part.facts).items()), (part.key, facts)
    mine, theirs = plain(measure.table_facts(groups, inside, parts, NUMBERS)), anew.table(groups, inside, NUMBERS)
    assert mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in mine), (mine, theirs)


def test_what_measures_again_takes_nothing_of_what_measured() -> None:
    room = Path(sacro_deltab.__file__).parent
    files = [room / "kinds" / "anew.py", *(room / "check" / "recompute").glob("*.py")]
    assert len(files) > 4
    assert [file.name for file in files if "measure.measure" in file.read_text()] == []
    shared = set(re.findall(r"^def (\w+)", (room / "measure" / "measure.py").read_text(), re.M))
    for kind in KINDS.values():
        if kind.again is not None:
            assert shared.isdisjoint(kind.again.__code__.co_names), kind.name
