"""Every kind that is measured on people, by its arguments' names: few people stay inside, and one person fewer is seen.

A new kind is tried here as soon as its file is there; an argument of a new name is a column to be added below.
"""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import SacroDeltabError
from sacro_deltab.kinds.registry import KINDS

N, LEAST = 400, 20
ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(3)
AGE = RNG.uniform(45, 85, N)
COLUMNS: dict[str, Any] = {
    "values": RNG.normal(0, 4, N),
    "by": pd.Series(np.where(RNG.random(N) < 0.5, "one", "two"), name="half"),
    "group": pd.Series(np.where(RNG.random(N) < 0.5, "one", "two"), name="half"),
    "others": pd.DataFrame({"hours": RNG.normal(7, 1, N)}),
    "predictors": pd.DataFrame({"hours": RNG.normal(7, 1, N)}),
    "X": pd.DataFrame({f"f{i}": RNG.normal(0, 1, N) - 0.05 * AGE for i in range(3)}),
    "predicted": AGE + RNG.normal(0, 5, N),
    "age": AGE,
}
MEASURED = sorted({kind.make: name for name, kind in KINDS.items() if kind.make is not None}.values())  # one a maker


def _asked(kind: str, people: slice) -> dict[str, Any]:
    """The columns that a kind takes, with a value for some people only."""
    make = KINDS[kind].make
    assert make is not None
    out: dict[str, Any] = {}
    for name in list(inspect.signature(make).parameters)[1:]:
        if name in COLUMNS:
            column = COLUMNS[name]
            if name not in ("by", "group"):
                column = column.copy().astype(float)
                gone = np.ones(N, dtype=bool)
                gone[people] = False
                column[gone] = np.nan
            out[name] = column
    return out


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("kinds")
    write_profile(place)
    return new_session(place)


@pytest.mark.parametrize("kind", [kind for kind in MEASURED if {"values", "X", "age"} & {*_asked(kind, slice(N))}])
def test_few_people_stay_inside_and_one_person_fewer_is_seen(live: Any, kind: str) -> None:
    try:
        few = live.release(kind, **_asked(kind, slice(LEAST - 1)))
    except SacroDeltabError:
        few = []
    assert all(entry.kept_inside or "*" in {c for r in entry.document.rows for c in r} for entry in few), few
    for entry in [e for e in live.entries if e.made_of is None]:
        live.drop(entry.name)
    whole, *_ = live.release(kind, **_asked(kind, slice(N)))
    assert not whole.kept_inside, whole.explain()
    again, *_ = live.release(kind, **_asked(kind, slice(1, N)), name=f"{kind}_again")
    first = live.find(whole.name)
    marked = any(e.document is not None and "*" in {c for r in e.document.rows for c in r} for e in (first, again))
    assert first.kept_inside or again.kept_inside or marked or "review" in (first.status, again.status), kind
    for entry in [e for e in live.entries if e.made_of is None]:
        live.drop(entry.name)


def test_the_page_is_made_from_the_kinds_and_its_example_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "kinds.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(ROOT / "tools" / "kinds_page.py"))["page"]() == text, "run python tools/kinds_page.py"
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, {})
