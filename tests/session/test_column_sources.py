"""Which columns an output may be about without a person's look, on a real register."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from people_register import register_people

from sacro_deltab import AgeBands
from sacro_deltab.base.errors import InputError, RefusedError
from sacro_deltab.ledger import open_ledger
from sacro_deltab.ledger.register import registered
from sacro_deltab.measure.people import Roster
from sacro_deltab.rules import load_base
from sacro_deltab.session.core import SessionCore
from sacro_deltab.session.sources import own

N = 240
IDS = [f"P{i:03d}" for i in range(N)]
RNG = np.random.default_rng(4)
AGE = RNG.uniform(45, 80, N).round(1)
SITE = [str(s) for s in RNG.choice(["north", "south", "east"], N)]
CODED = RNG.integers(1, 4, N).astype(float)
THICK, BMI, DELTA = RNG.normal(2.5, 0.1, N), RNG.normal(27, 4, N), RNG.normal(0, 4, N)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Any:
    ledger = tmp_path_factory.mktemp("tre") / "budget.db"
    columns = {"age": AGE, "site": SITE, "coded": CODED, "thickness": THICK, "bmi": BMI, "brain_delta": DELTA}
    register_people(ledger, "co-a", IDS, columns)
    return registered(open_ledger(ledger), "co-a", IDS)


class _Column(list[Any]):
    """Labels with a name, as a Series has one."""

    def __init__(self, values: Any, name: str) -> None:
        super().__init__(values)
        self.name = name


def asked(known: Any, *, sound: Any = (), **more: Any) -> bool:
    state: Any = SimpleNamespace(ages=lambda: AGE, sound=list(sound), people=Roster.of(N, IDS))
    return bool(own(state, known, load_base().parameters, **more)["columns.own"].value)


def groups(values: Any, name: str) -> dict[str, Any]:
    return {"groups": (_Column(values, name), Roster.of(N, IDS))}


def merged(label: str) -> list[str]:
    return [label if s in ("north", "south") else s for s in SITE]


AGES_AS_LABELS = [" ".join(str(int(a)) for a in AGE[g * 40 : g * 40 + 11]) for g in np.arange(N) // 40]
KNOWN: dict[str, dict[str, Any]] = {
    "a registered group": groups(SITE, "site"),
    "a coded group": groups(CODED.astype(int).tolist(), "coded"),
    "a merge of registered labels": groups(merged("north + south"), "site_merged"),
    "bands of the registered age": {"groups": (AgeBands(AGE, width=10), Roster.of(N, IDS))},
    "crossed": {"groups": ([_Column(SITE, "site"), AgeBands(AGE, width=10)], Roster.of(N, IDS))},
    "a registered feature": {"columns": (["thickness"], THICK[:, None])},
    "registered deltas": {"values": DELTA},
    "terms": {"terms": [("bmi", BMI, False), ("site", SITE, True)]},
}
OWN: dict[str, dict[str, Any]] = {
    "labels that are ages": groups(AGES_AS_LABELS, "ward"),
    "a merge under words of one's own": groups(merged("471 534 597"), "site_merged"),
    "a registered group under another name": groups(SITE, "p0001 71 p0002 68"),
    "the group with one person moved": groups(["south" if SITE[0] != "south" else "east", *SITE[1:]], "site"),
    "bands of other ages": {"groups": (AgeBands(AGE + 3, width=10), Roster.of(N, IDS))},
    "an invented feature": {"columns": (["area"], RNG.normal(size=(N, 1)))},
    "a registered feature under another name": {"columns": (["71 68 55"], THICK[:, None])},
    "a feature with one value changed": {"columns": (["thickness"], np.r_[9.0, THICK[1:]][:, None])},
    "values from elsewhere": {"values": RNG.normal(0, 4, N)},
    "a term of one's own": {"terms": [("bmi", BMI, False), ("mine", RNG.normal(size=N), False)]},
}


@pytest.mark.parametrize("case", KNOWN)
def test_the_cohorts_own_columns_need_no_look(known: Any, case: str) -> None:
    assert not asked(known, **KNOWN[case])


@pytest.mark.parametrize("case", OWN)
def test_what_somebody_made_goes_to_a_person(known: Any, case: str) -> None:
    assert asked(known, **OWN[case])


def test_some_of_the_deltas_that_the_session_made_need_no_look(known: Any) -> None:
    made = RNG.normal(0, 4, N)
    some = np.where(np.arange(N) < 200, made, np.nan)
    assert not asked(known, sound=[made], values=some)
    assert asked(known, sound=[made], values=np.where(np.arange(N) == 3, 9.0, made))


def test_other_columns_are_no_deltas_and_ages_no_features(known: Any) -> None:
    with pytest.raises(RefusedError, match="registered column 'bmi'"):
        asked(known, values=BMI)
    with pytest.raises(RefusedError, match="the ages of these people"):
        asked(known, columns=(["area"], (AGE * 2 + 1)[:, None]))


@pytest.mark.parametrize("again", ["p000", "P000 ", "P\u200b000"])
def test_two_spellings_of_one_id_are_refused_with_their_rows(tmp_path: Path, again: str) -> None:
    live: Any = SimpleNamespace(config={}, results=None)
    with pytest.raises(InputError, match="are the same once case") as caught:
        SessionCore(live, cohort="co-a", people=[*IDS, again], ledger=tmp_path / "b.db", journal=tmp_path / "j")
    assert caught.value.place == f"rows 1 and {N + 1}" and "P000" not in str(caught.value)
    assert open_ledger(tmp_path / "b.db").history("co-a") == []
