"""People and columns that cannot be used: said with place and next step, nothing spent; or taken for what they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacro_deltab import Basis, DeltabSession
from sacro_deltab.base.errors import InputError
from sacro_deltab.ledger import open_ledger
from sacro_deltab.run.pipeline import quiet_acro
from sacro_deltab.run.starting import write_trial

Change = Callable[[pd.DataFrame], Any]


@pytest.fixture(scope="module")
def tre(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tre")
    write_trial(folder)
    return folder


def trained(tre: Path, table: pd.DataFrame, journal: Path, cohort: str = "site-a") -> Any:
    files = {name: str(tre / f"{name}.json") for name in ("trust", "declare", "attest")}
    session = DeltabSession(
        quiet_acro(), cohort=cohort, people=table["participant_id"], ledger=tre / "budget.db", journal=journal, **files
    )
    features = table[[name for name in table if name.startswith("idp_")]]
    basis = Basis.load(tre / "basis.json")
    return session.train_private(features, table["age"], epsilon=0.01, basis=basis, membership_test=False)


def put(column: str, row: int, value: object) -> Change:
    def change(table: pd.DataFrame) -> None:
        table[column] = table[column].astype(object)
        table.loc[row, column] = value

    return change


def index_of_nothing(table: pd.DataFrame) -> None:
    table.index = pd.Index([0] * len(table))


REFUSED: dict[str, tuple[Change, str, str | None]] = {
    "an id spelled otherwise": (lambda t: put("participant_id", 1, f" {t.participant_id[0].lower()}")(t),
                                "the same once case", "rows 1 and 2"),
    "one id twice": (lambda t: put("participant_id", 1, t.participant_id[0])(t), "a person has several rows", None),
    "no id": (put("participant_id", 3, np.nan), "a person id is missing", None),
    "a negative age": (put("age", 3, -4.0), "outside 0 to 120 years", "row 4"),
    "an age in months": (put("age", 3, 840.0), "outside 0 to 120 years", "row 4"),
    "an age in words": (put("age", 3, "seventy"), "text where a number is needed", "row 4"),
    "a feature in words": (put("idp_01", 3, "thick"), "text where a number is needed", "row 4"),
    "an index with one entry": (index_of_nothing, "holds an entry twice", None),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_used_is_said_and_nothing_spent(tre: Path, tmp_path: Path, what: str) -> None:
    change, says, place = REFUSED[what]
    table = pd.read_csv(tre / "cohort.csv")
    change(table)
    before = open_ledger(tre / "budget.db", create=False).totals("site-a").epsilon_sum
    with pytest.raises(InputError, match=says) as caught:
        trained(tre, table, tmp_path)
    assert caught.value.next_step and caught.value.place == place
    assert open_ledger(tre / "budget.db", create=False).totals("site-a").epsilon_sum == before


OTHERS: dict[str, Change] = {
    "five people fewer": lambda t: t.drop(index=range(5), inplace=True),
    "one person more": lambda t: t.__setitem__("participant_id", [*t.participant_id[:-1], "somebody"]),
    "a row under a second id": lambda t: t.loc.__setitem__(len(t), {**t.loc[0], "participant_id": "again"}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_people_that_are_not_the_registered_ones_are_no_formal_cohort(tre: Path, tmp_path: Path, what: str) -> None:
    table = pd.read_csv(tre / "cohort.csv")
    OTHERS[what](table)
    assert trained(tre, table, tmp_path).statement.label == "heuristic"


def test_another_cohorts_people_are_not_this_one(tre: Path, tmp_path: Path) -> None:
    table = pd.read_csv(tre / "cohort.csv")
    assert trained(tre, table, tmp_path, "site-b").statement.label == "heuristic"


def test_missing_ages_and_features_are_nobodys_values(tre: Path, tmp_path: Path) -> None:
    table = pd.read_csv(tre / "cohort.csv")
    table.loc[3, "age"], table.loc[4, "idp_01"] = np.nan, np.inf
    assert trained(tre, table, tmp_path).statement.label == "formal"
