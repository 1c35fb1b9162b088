"""Tables of several sessions on one ledger, in any order and at the same time; totals of tables that did not leave."""

from __future__ import annotations

import logging
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacro_deltab.base.errors import RefusedError
from sacro_deltab.measure.linked import LinkedTables
from sacro_deltab.measure.numbers import PrintedCell
from sacro_deltab.session.foreign import know_groups
from sacro_deltab.tables import TablePolicy

PEOPLE = [f"P{i:04d}" for i in range(400)]
DELTAS = np.random.default_rng(5).normal(0.7, 4.0, 400)
OTHERS = np.random.default_rng(6).normal(0.2, 3.5, 400)
G = np.array(["a", "b"])[np.arange(400) % 2]
H = np.array(["x", "y"])[np.arange(400) // 2 % 2]
ALL, LESS = np.arange(400), np.arange(1, 400)

Release = Callable[[Any, Any], Any]
RELEASES: dict[str, Release] = {
    "mean": lambda s, who: s.release_mean(DELTAS[who]),
    "mean of other values": lambda s, who: s.release_mean(OTHERS[who], name="other"),
    "group means": lambda s, who: s.release_group_means(DELTAS[who], column(G, who)),
    "counts": lambda s, who: s.release_counts(column(G, who)),
    "sd": lambda s, who: s.release_sd(DELTAS[who]),
}
PAIRS = [
    ("mean", "mean"),
    ("mean", "mean of other values"),
    ("group means", "counts"),
    ("counts", "group means"),
    ("counts", "counts"),
    ("sd", "sd"),
]


def column(labels: Any, who: Any) -> pd.Series:
    return pd.Series(labels[who], name="g")


def people(who: Any) -> dict[str, Any]:
    return {"people": [PEOPLE[i] for i in who]}


@pytest.mark.parametrize("order", [(ALL, LESS), (LESS, ALL)], ids=["fewer now", "more now"])
@pytest.mark.parametrize("pair", PAIRS, ids=" then ".join)
def test_one_person_apart_in_two_sessions(
    make_session: Any, place: Path, pair: tuple[str, str], order: tuple[Any, Any]
) -> None:
    first = make_session(**people(order[0]))
    assert not RELEASES[pair[0]](first, order[0]).kept_inside
    first.finalise(place / "first")
    second = make_session(cohort="another", **people(order[1]))
    assert RELEASES[pair[1]](second, order[1]).status == "fail"


@pytest.mark.parametrize("pair", [("mean", "mean"), ("counts", "group means"), ("sd", "sd")], ids=" then ".join)
def test_sessions_open_at_the_same_time(make_session: Any, place: Path, pair: tuple[str, str]) -> None:
    first, second = make_session(**people(ALL)), make_session(cohort="another", **people(LESS))
    early = RELEASES[pair[1]](second, LESS)
    assert not RELEASES[pair[0]](first, ALL).kept_inside and not early.kept_inside
    first.finalise(place / "first")
    with pytest.raises(RefusedError, match=r"release \d+: "):
        second.finalise(place / "second")
    second.drop(early.name)
    assert RELEASES[pair[1]](second, LESS).status == "fail"


def test_a_failed_finalise_is_no_release_to_its_own_session(make_session: Any, place: Path, monkeypatch: Any) -> None:
    session = make_session(**people(ALL))
    RELEASES["group means"](session, ALL)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", _full)
        with pytest.raises(Exception, match="could not be written"):
            session.finalise(place / "out")
    assert RELEASES["mean"](session, ALL).status == "pass"
    assert session.finalise(place / "out").is_dir()


def _full(self: Path, target: Any) -> None:
    raise OSError(28, "No space left on device")


def test_acro_tables_of_an_earlier_session_count(make_session: Any, place: Path) -> None:
    logging.getLogger("acro").setLevel(logging.ERROR)
    first = make_session(**people(ALL))
    table = pd.DataFrame({"g": G, "h": H})
    know_groups(first, table)
    first.acro.crosstab(table.g, table.h)
    first.finalise(place / "first")
    (release,) = first.budget.ledger.releases()
    assert release.kind == "acro_table" and [c["n"] for c in release.cells] == [100] * 4
    assert make_session(**people(ALL)).release_counts(column(G, ALL)).status == "pass"
    assert RELEASES["counts"](make_session(cohort="another", **people(LESS)), LESS).status == "fail"


def test_an_acro_table_against_an_earlier_release(make_session: Any, place: Path) -> None:
    logging.getLogger("acro").setLevel(logging.ERROR)
    first = make_session(**people(ALL))
    RELEASES["counts"](first, ALL)
    first.finalise(place / "first")
    second = make_session(cohort="another", **people(LESS))
    table = pd.DataFrame({"g": G[LESS], "h": H[LESS]})
    know_groups(second, table)
    second.acro.crosstab(table.g, table.h)
    with pytest.raises(RefusedError, match=r"ACRO output_0 and release \d+: count_by_g"):
        second.finalise(place / "second")


def test_an_earlier_printed_mean_bounds_later_ones() -> None:
    """Twelve withheld beside 25 others: last year's mean of the 37, near the largest value, tells of the twelve."""
    policy = TablePolicy(20, Fraction(3, 10), 10, 2.0, value_bounds=(-40.0, 40.0))
    values = np.full(137, 39.98)
    values[37:] = np.linspace(-5.0, 5.0, 100)
    linked = LinkedTables(policy)
    linked.values["v1"] = values
    cells = [
        PrintedCell("now", key, np.arange(*span), "interior", "v1", "mean")
        for key, span in {"few": (0, 12), "some": (12, 37), "most": (37, 137)}.items()
    ]
    gone = frozenset({"now|few", "now|some"})
    for printed, safe in ((None, True), (40.0, False), (12.0, True)):  # 12.0: of other values
        linked.retract("last year")
        linked.publish([PrintedCell("last year", "all", np.arange(37), "grand", printed=printed)], (), ())
        assert linked.verdict("v1", cells, gone).safe is safe


@pytest.mark.parametrize("total", [False, True])
def test_totals_of_a_withheld_table(make_session: Any, place: Path, total: bool) -> None:
    """A table that stays inside adds no margin; its total does as soon as it is printed elsewhere, before or after."""
    session = make_session(**people(ALL))
    three = pd.Series(np.where(ALL < 12, "tiny", np.where(ALL < 30, "few", "most")), name="three")
    assert session.release_group_means(DELTAS, three).kept_inside
    if total:
        assert session.release_n().status == "pass"
    four = pd.Series(np.select([ALL < 12, ALL < 112, ALL < 212], ["w", "x", "y"], "z"), name="four")
    entry = session.release_counts(four)
    assert entry.suppressed == ("w",) and not entry.complementary and not entry.kept_inside
    # N would be the margin: of the two the table leaves, which prints more, whatever came first
    number = session.release_n() if not total else session.find("n_subjects")
    assert number.kept_inside
    assert session.finalise(place / "out").is_dir()
