"""The researcher's own ACRO tables beside ours: read in the common shapes, attacked with them, else said unread."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacro_deltab.base.errors import RefusedError
from sacro_deltab.session.foreign import add_foreign

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # ACRO's own

RNG = np.random.default_rng(51)
TABLE = pd.DataFrame(
    {
        "g": ["A"] * 200 + ["B"] * 200,
        "h": ["x", "y"] * 200,
        "k": ["u"] * 100 + ["v"] * 200 + ["u"] * 100,
        "d": RNG.normal(0.5, 4.0, 400),
    }
)
SHAPES = {
    "counts": lambda a: a.crosstab(TABLE.g, TABLE.h),
    "means with margins": lambda a: a.crosstab(TABLE.g, TABLE.h, values=TABLE.d, aggfunc="mean", margins=True),
    "two statistics": lambda a: a.pivot_table(TABLE, index=["g"], values=["d"], aggfunc=["mean", "std"]),
    "two axes": lambda a: a.pivot_table(TABLE, index=["g"], columns=["h"], values=["d"], aggfunc="mean"),
    "two row columns": lambda a: a.crosstab([TABLE.g, TABLE.k], TABLE.h, values=TABLE.d, aggfunc="mean"),
    "sums": lambda a: a.crosstab(TABLE.g, TABLE.h, values=TABLE.d, aggfunc="sum"),
}


@pytest.fixture
def session(make_session: Any) -> Any:
    logging.getLogger("acro").setLevel(logging.ERROR)
    found = make_session()
    for column in "ghk":
        found.release_counts(TABLE[column])
    found.release_mean(TABLE.d)
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_common_shapes_are_read(session: Any, shape: str) -> None:
    SHAPES[shape](session.acro)
    add_foreign(session)
    assert len(session.state.foreign) == 1, session.not_checked
    cells = [c for c in session.state.linked.cells.values() if c.output == session.state.foreign[0]]
    whole = TABLE.assign(i=range(400))
    expected = set(whole[(whole.g == "A") & (whole.h == "x")].i)
    if shape in ("counts", "two axes", "sums"):
        assert expected in [set(cell.members.tolist()) for cell in cells]


def test_a_table_of_one_person_fewer_is_caught(session: Any, place: Path) -> None:
    session.release_group_means(TABLE.d, TABLE.g)
    less = TABLE.g.copy()
    less[0] = "B"
    session.acro.crosstab(less.rename("g2"), TABLE.h)
    session.state.groupings["g2"] = session.state.groupings["g"]
    add_foreign(session)
    assert any("could not be matched" in text for text in session.not_checked)  # its counts are not those of g
    session.acro.crosstab(TABLE.g.iloc[1:], TABLE.h.iloc[1:])
    add_foreign(session)
    assert not session.state.foreign


def test_unread_tables_and_regressions_are_said_and_reviewed(session: Any, place: Path) -> None:
    from sacro_deltab.check import check_paths

    session.acro.crosstab(TABLE.g.rename("unknown"), TABLE.h)
    session.acro.ols(TABLE.d, RNG.normal(size=(400, 1)))
    folder = session.finalise(place / "outputs")
    assert sum("could not be matched" in text for text in session.not_checked) == 2
    report = check_paths([folder], ruleset=session.ruleset, ledger=place / "budget.db")
    theirs = [o for o in report.outputs if o.file.startswith("output_")]
    assert theirs and all(o.verdict != "pass" for o in theirs)


def test_a_small_group_given_away_together_stops_finalise(make_session: Any, place: Path) -> None:
    logging.getLogger("acro").setLevel(logging.ERROR)
    session = make_session()
    clinic = pd.Series(np.repeat(list("abcdefg"), (8, 30, 45, 55, 72, 90, 100)), name="clinic")
    session.release_mean(TABLE.d)
    table = session.release_group_means(TABLE.d, clinic)
    assert set(table.suppressed) == {"a", "b"}
    session.acro.pivot_table(TABLE.assign(clinic=clinic), index=["clinic"], values=["d"], aggfunc=["mean"])
    with pytest.raises(RefusedError, match=r"mean_delta_by_clinic|ACRO"):
        session.finalise(place / "outputs")
