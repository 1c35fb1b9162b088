"""A notebook may be mailed: what it shows by itself holds no unrounded number; who sits inside asks for more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis

RNG = np.random.default_rng(3)
DELTA = RNG.normal(0, 4, 400)
FRAME = pd.DataFrame(RNG.normal(size=(400, 3)), columns=list("abc"))
LONG = re.compile(r"\d\.\d{4,}")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    write_profile(tmp_path)
    return new_session(tmp_path)


def test_what_a_cell_shows_is_short_and_rounded(session: Any) -> None:
    basis = Basis.from_public(
        *(lambda p: (p.X, p.age, p.feature_names))(smith_cohort(80, 6, seed=1)), n_components=2, made_on="simulated"
    )
    mean, listed = session.release_mean(DELTA), session.release_correlation(DELTA, FRAME)
    table = session.release_correlations(DELTA, FRAME)
    for thing in (mean, listed, table, table.raw, table.document, basis, session):
        assert len(repr(thing)) < 300 and not LONG.search(repr(thing)), type(thing)
    for thing in (mean, listed, table, session):
        assert not LONG.search(thing._repr_html_())
    assert repr(listed).startswith("[Entry(correlation: ") and "<table>" in listed._repr_html_()
    assert str(DELTA.mean())[:7] not in repr(listed) + repr(table)


def test_an_entry_explains_itself_to_who_sits_inside(session: Any) -> None:
    entry = session.release_regression(DELTA, FRAME)
    said = entry.explain()
    assert "review by SS-15" in said and "question:" in said and "next step:" in said
    small = session.release_mean(np.where(np.arange(400) < 12, DELTA, np.nan), name="few")
    assert "12" in small.explain() and "12" not in " ".join(small.reasons)


def test_a_habitual_finalise_of_acro_is_met_with_the_way_out(session: Any, tmp_path: Path) -> None:
    session.release_mean(DELTA)
    session.acro.finalise(str(tmp_path / "theirs"), "json")
    with pytest.raises(InputError, match=r"acro\.finalise\(\) was called") as found:
        session.finalise(tmp_path / "ours")
    assert "session.finalise" in str(found.value) and not (tmp_path / "ours").exists()
    for uid in [u for u in session.acro.results.results if u.endswith("DONT_RELEASE")]:
        session.acro.remove_output(uid)
    assert (session.finalise(tmp_path / "ours") / "inside" / "evidence.json").is_file()
