"""People by bins of delta: bins fixed without looking, drawn, and counted again from the cohort."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError
from sacro_deltab.check import check_paths

N = 400
DELTA = np.random.default_rng(2).normal(0, 4, N).round(3)


def test_a_histogram_leaves_is_drawn_and_is_counted_again(tmp_path: Path) -> None:
    write_profile(tmp_path)
    session = new_session(tmp_path)
    with pytest.raises(InputError, match="whole years"):
        session.release("delta_histogram", DELTA, width=3, reach=7)
    (entry,) = session.release("delta_histogram", DELTA)
    assert not entry.kept_inside, entry.explain()
    labels = [row[0] for row in entry.document.rows]
    assert labels == [
        "under -6",
        "from -6 to under -3",
        "from -3 to under 0",
        "from 0 to under 3",
        "from 3 to under 6",
        "6 and over",
    ]
    counts = np.histogram(DELTA, [-np.inf, -6, -3, 0, 3, 6, np.inf])[0]
    for (_, shown), n in zip(entry.document.rows, counts, strict=True):
        assert shown % 5 == 0 and abs(shown - n) <= 2
    session.release_plot(entry)
    folder = session.finalise(tmp_path / "out")
    cohort = tmp_path / "cohort.csv"
    for factor, worst in ((1.0, {"pass", "review"}), (1.3, {"fail"})):
        ids = [f"P{i:04d}" for i in range(N)]
        pd.DataFrame({"participant_id": ids, "delta": DELTA * factor}).to_csv(cohort, index=False)
        report = check_paths([folder], profile=tmp_path / "profile.yaml", ledger=tmp_path / "budget.db", cohort=cohort)
        found = [o for o in report.outputs if o.type == "delta_histogram"]
        assert {o.verdict for o in found} <= worst, [f.inside for o in found for f in o.findings]
