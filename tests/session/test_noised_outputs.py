"""Noised statistics of a session and of `run`: a package of them is formal as a whole; groups are named first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from declarations import ATTEST, DECLARE
from people_register import register_frame
from session_helpers import write_profile

from sacro_deltab.base.errors import InputError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis

N = 600


@pytest.fixture
def files(place: Path) -> Path:
    """A registered cohort and basis, with what people say, as files."""
    public, cohort = smith_cohort(600, 8, seed=1), smith_cohort(N, 8, seed=2)
    basis = Basis.from_public(
        public.X, public.age, public.feature_names, n_components=3, made_on="public", age_range=(40, 80)
    )
    basis.save("basis.json")
    table = pd.DataFrame(cohort.X, columns=list(cohort.feature_names)).assign(
        participant_id=[f"P{i:04d}" for i in range(N)], age=cohort.age, sex=np.where(np.arange(N) % 2, "F", "M")
    )
    table.loc[0, "sex"] = "X"
    table.to_csv("cohort.csv", index=False)
    for name, said in (("declare.json", DECLARE), ("attest.json", ATTEST)):
        Path(name).write_text(json.dumps(said), encoding="utf-8")
    write_profile(place)
    return place


def test_a_whole_package_is_formal(files: Path, cli: Callable[..., Any]) -> None:
    assert cli("ledger", "register-basis", "basis.json", "--ledger", "budget.db")[0] == 0
    register_frame("budget.db", "site-a", pd.read_csv("cohort.csv"))
    asked = ["--noised", "mean=0.3", "--noised", "sd=0.5", "--noised", "quantiles=0.5", "--noised", "group_means=0.4",
             "--noised", "counts=0.1", "--noised", "features=0.5", "--labels", "sex=F,M",
             "--age-bands", "20"]  # fmt: skip
    code, out, err = cli(
        "run", "--ages", "cohort.csv", "--features", "cohort.csv", "--ignore", "sex", "--id-column", "participant_id",
        "--basis", "basis.json", "--epsilon", "1", "--profile", "profile.yaml", "--cohort", "site-a", "--declare",
        "declare.json", "--attest", "attest.json", *asked, "--out", "out",
    )  # fmt: skip
    assert code == 3, err + out  # a person is asked once about noised SD, quantiles and tables (DP-27)
    assert "no exact statistics or tables" in out and "ε 3.8 of 4.0 spent" in out
    privacy = json.loads((files / "out" / "certificate.json").read_text(encoding="utf-8"))["predicate"]["privacy"]
    assert (privacy["label"], privacy["end_to_end"], privacy["outside_budget"]) == ("formal", True, [])
    table = json.loads((files / "out" / "mean_delta_by_sex_private.json").read_text(encoding="utf-8"))
    assert [row[0] for row in table["rows"]] == ["F", "M"]  # nobody learns that there is another label
    assert table["about"]["noised_error"]["high"] > 0.5
    assert cli("check", "out", "--profile", "profile.yaml", "--ledger", "budget.db", "--attest", "attest.json")[0] == 3


def test_groups_are_named_beforehand(make_session: Any, deltas: Any) -> None:
    session, sex = make_session(), np.where(np.arange(400) % 2, "F", "M")
    for wrong in ((), ("F", "F")):
        with pytest.raises(InputError, match="named beforehand"):
            session.release_private("group_means", deltas, by=sex, groups=wrong, epsilon=0.5)
    with pytest.raises(InputError, match="public centre"):
        session.release_private("features", features=deltas[:, None], feature_names=["f"], epsilon=0.5)
    with pytest.raises(InputError, match="no such noised statistic"):
        session.release_private("median", deltas, epsilon=0.5)
    assert session.budget.totals_json()["epsilon_sum"] == 0
    rare = np.where(np.arange(400) < 5, "rare", sex)
    entry = session.release_private("counts", by=rare, groups=["F", "M", "rare"], epsilon=1.0)
    assert entry.document is None  # one of three groups does not show the minimum: more than three in ten cells


def test_what_was_paid_for_comes_back(make_session: Any, deltas: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from sacro_deltab.session import noised_outputs

    session = make_session()
    session.release_private("sd", deltas, epsilon=0.25)
    with monkeypatch.context() as patch:
        patch.setattr(noised_outputs, "_candidate", lambda *args, **kwargs: 1 / 0)
        with pytest.raises(InputError, match="ZeroDivisionError"):
            session.release_private("sd", deltas, epsilon=0.5)
    assert session.budget.totals_json()["epsilon_sum"] == 0.75
    with pytest.raises(InputError, match="waits to be taken up"):
        session.release_private("quantiles", deltas, epsilon=0.5, name="delta_sd_private_2")  # other terms
    entry = session.release_private("sd", deltas, epsilon=0.5)
    assert session.budget.totals_json()["epsilon_sum"] == 0.75
    assert entry.name == "delta_sd_private_2"
    assert entry.document is not None and 2 < float(entry.document.rows[0][1]) < 7
