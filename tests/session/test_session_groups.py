"""Groups of every dtype, labels that break tables elsewhere, people instead of rows: right numbers or a refusal."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import InputError
from sacro_deltab.kinds.group_tables import table_type
from sacro_deltab.measure.grouping import AgeBands, make_grouping
from sacro_deltab.measure.measure import cell_parts, largest_share, nk_check
from sacro_deltab.measure.people import MISSING, Roster, group_labels, numbers

ROSTER = Roster.of(6, None)
VALUES = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def counts(by: Any, roster: Roster = ROSTER) -> dict[str, int]:
    grouping = make_grouping(by, roster, None)
    return {label: int((grouping.codes == i).sum()) for i, label in enumerate(grouping.labels)}


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series(["a", "a", "b", "b", "b", "b"]), {"a": 2, "b": 4}),
        (pd.Series([1.0, 1.0, 2.0, np.nan, 2.0, 2.0]), {"1": 2, "2": 3, MISSING: 1}),
        (pd.Series([1, 1, 2, 2, 2, 2], dtype="Int64"), {"1": 2, "2": 4}),
        (pd.Series([1, None, 2, 2, 2, 2], dtype="Int64"), {"1": 1, "2": 4, MISSING: 1}),
        (pd.Series([True, True, False, False, False, False]), {"false": 4, "true": 2}),
        (pd.Series([True, None, False, False, False, False], dtype="boolean"), {"false": 4, "true": 1, MISSING: 1}),
        (pd.Series(pd.to_datetime(["2020-01-01"] * 2 + ["2021-01-01"] * 4)), {"2020-01-01": 2, "2021-01-01": 4}),
        (pd.Series(pd.Categorical(["a"] * 4 + ["b"] * 2, categories=["b", "a", "c"])), {"b": 2, "a": 4, "c": 0}),
        (pd.Series(["x", 1, 1.5, "x", None, "1"], dtype=object), {"1": 2, "1.5": 1, "x": 2, MISSING: 1}),
        (pd.Series(["All", "All", "b", "b", "b", "b"]), {"All": 2, "b": 4}),
        (pd.Series(['say "hi", you', "O'Brien", "Δ", "none", "a\nb", "a\nb"]), None),
        (["a", "a", "b", "b", "b", "b"], {"a": 2, "b": 4}),
        (np.array(["a", "a", "b", "b", "b", "b"]), {"a": 2, "b": 4}),
        (pd.Series(["-5", "-5", "+3", "=1+1", "@SUM(A1)", "-x"]), None),
    ],
    ids=["text", "float", "Int64", "Int64-missing", "bool", "boolean", "datetime", "categorical", "mixed", "All", "odd",
         "list", "array", "formula"],
)  # fmt: skip
def test_dtypes(column: Any, expected: dict[str, int] | None) -> None:
    if expected is not None and "x" in expected and "1" in expected and MISSING in expected:
        with pytest.raises(InputError, match="printed as '1'"):  # the number 1 and the text "1"
            counts(column)
        return
    found = counts(column)
    assert sum(found.values()) == 6
    if expected is not None:
        assert found == expected
    for label in found:
        assert "\n" not in label
        assert label[0] not in "=@" and not label.startswith("-x")


def test_pyarrow_labels() -> None:
    pytest.importorskip("pyarrow")
    assert counts(pd.Series([1, 1, 2, None, 2, 2], dtype="int64[pyarrow]")) == {"1": 2, "2": 3, MISSING: 1}
    assert counts(pd.Series(["a", "a", "b", None, "b", "b"], dtype="string[pyarrow]")) == {"a": 2, "b": 3, MISSING: 1}


@pytest.mark.parametrize("label", ["a<b", "x>y", "*", "", "\u200bhidden", "z" * 200, "bell\x07"])
def test_labels_that_cannot_be_printed_are_refused(label: str) -> None:
    with pytest.raises(InputError, match=r"label|group"):
        counts(pd.Series([label] * 6))


def test_callables_queries_and_tables_are_refused() -> None:
    for by in (lambda x: x, "sex", b"sex"):
        with pytest.raises(InputError):
            group_labels(by, "sex")
    with pytest.raises(InputError):
        group_labels(pd.DataFrame({"a": [1]}), "a")


def test_people_are_counted_never_rows() -> None:
    roster = Roster.of(6, ["p", "p", "p", "q", "r", "s"])
    assert roster.n_people == 4
    assert counts(pd.Series(["a", "a", "a", "a", "b", "b"]), roster) == {"a": 2, "b": 2}
    assert roster.mean_by_person(VALUES).tolist() == [2.0, 4.0, 5.0, 6.0]
    with pytest.raises(InputError, match="two groups"):
        counts(pd.Series(["a", "b", "a", "a", "b", "b"]), roster)


def test_contributors_are_those_with_a_value() -> None:
    grouping = make_grouping(pd.Series(["a"] * 3 + ["b"] * 3), ROSTER, None)
    values = numbers(pd.Series([1.0, np.nan, np.inf, 4.0, 5.0, 6.0]))
    parts = cell_parts(grouping, values, "mean")
    assert [p.facts["cell.n"].value for p in parts] == [1, 3]
    assert parts[0].value == 1.0


def test_numbers_of_odd_types() -> None:
    assert numbers(pd.Series([Decimal("1.5"), None], dtype=object)).tolist()[0] == 1.5
    assert numbers(pd.Series([1, None], dtype="Int64")).tolist()[0] == 1.0
    with pytest.raises(InputError, match="too large"):
        numbers(pd.Series([2**62, 1]))
    with pytest.raises(InputError, match="text"):
        numbers(pd.Series(["1", "x"]))
    with pytest.raises(InputError):
        numbers(pd.DataFrame({"a": [1.0]}))


def test_dominance_never_uses_the_signed_sum() -> None:
    assert largest_share(np.array([10.0, -10.0, 5.0])) == pytest.approx(0.4)
    assert largest_share(np.zeros(5)) == pytest.approx(0.2)
    assert nk_check(np.array([30.0, -25.0, 1.0, 1.0]), 2, 0.5) == "fail"
    assert nk_check(np.ones(10), 2, 0.5) == "pass"
    giant = numbers(pd.Series([Decimal("500"), *[Decimal("1")] * 29], dtype=object))
    assert nk_check(giant, 2, 0.5) == "fail"


def test_crossing_keeps_cells_of_nobody() -> None:
    sex, arm = pd.Series(["F", "F", "M", "M", "M", "M"], name="sex"), pd.Series(["x"] * 2 + ["y"] * 4, name="arm")
    assert counts([sex, arm]) == {"F × x": 2, "F × y": 0, "M × x": 0, "M × y": 4}
    assert counts(pd.DataFrame({"sex": sex, "arm": arm})) == counts({"sex": sex, "arm": arm})
    with pytest.raises(InputError, match="same name"):
        counts([sex, sex])


def test_structural_zeros_are_named_and_empty() -> None:
    column = pd.Series(pd.Categorical(["a"] * 6, categories=["a", "never"]))
    assert make_grouping(column, ROSTER, None, ["never"]).structural == {"never"}
    with pytest.raises(InputError, match="has people"):
        make_grouping(column, ROSTER, None, ["a"])
    with pytest.raises(InputError, match="no group"):
        make_grouping(column, ROSTER, None, ["other"])


def test_age_bands_are_half_open_and_anchored() -> None:
    ages = np.array([45.0, 49.99, 50.0, 54.0, 60.0, 61.0])
    grouping = AgeBands(ages, 5).grouping(ROSTER)
    assert grouping.labels == ("45 to under 50", "50 to under 55", "55 to under 60", "60 to under 65")
    assert [int((grouping.codes == i).sum()) for i in range(4)] == [2, 2, 0, 2]
    assert grouping.widths == (5.0,) * 4
    assert table_type(grouping) == "delta_mean_by_age_band"
    with pytest.raises(InputError, match="outside"):
        AgeBands(ages, edges=(50, 60, 70)).grouping(ROSTER)
    for width in (0, -5, float("nan")):
        with pytest.raises(InputError):
            AgeBands(ages, width).grouping(ROSTER)


def test_age_bands_under_another_name_are_recognised() -> None:
    ages = np.array([45.0, 45.5, 46.2, 46.8, 47.1, 47.9])
    grouping = make_grouping(pd.Series(list("aabbcc"), name="cohort_wave"), ROSTER, ages)
    assert table_type(grouping) == "delta_mean_by_age_band"
    assert grouping.widths is not None  # D-121: from one youngest to the next; the first and the last are open
    assert [round(w, 9) for w in grouping.widths] == [120.0, 0.9, 120.0]
    mixed = make_grouping(pd.Series(list("abcabc"), name="site"), ROSTER, ages)
    assert table_type(mixed) == "delta_mean_by_site"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-3, 3), st.booleans(), st.sampled_from(["a", "b ", "ü", "x,y"]),
                          st.just(datetime.date(2020, 1, 2))), min_size=1, max_size=40))  # fmt: skip
def test_any_labels_give_right_counts_or_a_refusal(column: list[Any]) -> None:
    try:
        grouping = make_grouping(pd.Series(column, dtype=object), Roster.of(len(column), None), None)
    except InputError as error:
        assert "printed as" in str(error)
        return
    assert len(set(grouping.labels)) == len(grouping.labels)
    assert np.bincount(grouping.codes, minlength=len(grouping)).sum() == len(column)
    missing = sum(v is None for v in column)
    found = dict(zip(grouping.labels, np.bincount(grouping.codes, minlength=len(grouping)), strict=True))
    assert found.get(MISSING, 0) == missing
