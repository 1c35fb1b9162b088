"""Documents: one flat table, names first, every type with its shape, cells never echoed in a message."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.canonical import narrow_json
from sacro_deltab.base.errors import InputError
from sacro_deltab.judging.schema import check_document, document_errors, known_types
from sacro_deltab.kinds import documents as build
from sacro_deltab.outputs.document import Column, OutputDocument
from sacro_deltab.rules import load_ruleset


def table(**change: object) -> OutputDocument:
    made = build.group_table(
        "delta_mean_by_sex",
        "t",
        "Mean delta by sex",
        ["F", "M"],
        [120, 130],
        [0.25, -1.5],
        group_column="sex",
        about={},
    )
    return replace(made, **change)  # type: ignore[arg-type]


def test_a_built_table_meets_its_schema() -> None:
    check_document(table())
    assert table().to_csv() == "sex,n,mean_delta\nF,120,0.25\nM,130,-1.5\n"


def test_every_judged_type_has_a_shape() -> None:
    ruleset = load_ruleset()
    never = {name for name, spec in ruleset.outputs.items() if spec.cls in ("subject_level", "record", "inside_only")}
    assert set(ruleset.outputs) - never - known_types() == set()


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (table(name="Bad Name"), "name"),
        (table(type="delta_vector"), "type"),
        (table(title="a<b"), "title"),
        (table(rows=(("F", 120, 0.5), ("F", 130, 1.0))), "rows/2"),
        (table(rows=(("", 120, 0.5),)), "rows/1"),
        (table(rows=((7, 120, 0.5),)), "rows/1"),
        (table(rows=()), "rows"),
        (table(columns=(Column("sex", "label"), Column("n", "value"), Column("m", "value"))), "columns/1/role"),
        (table(columns=(Column("sex", "label"), Column("n", "n"), Column("n", "value"))), "columns"),
        (table(about={"deep": {"a": {"b": 1}}}), "about"),
    ],
)
def test_faults_are_named_by_place(document: OutputDocument, place: str) -> None:
    errors = document_errors(json.loads(document.to_json()))
    assert any(error.startswith(place) for error in errors), errors
    with pytest.raises(InputError, match="does not match its schema"):
        check_document(document)


def test_messages_never_echo_a_cell() -> None:
    data = json.loads(table().to_json())
    data["rows"][0][2] = {"secret": 14.2}
    data["rows"][1] = ["M", [71.3]]
    text = " ".join(document_errors(data))
    assert "14.2" not in text and "71.3" not in text


def test_not_finite_and_ragged_tables_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="finite"):
        table(rows=(("F", 120, float("nan")),))
    with pytest.raises(ValueError, match="cells"):
        table(rows=(("F", 120),))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Mean Delta by Site!", "mean_delta_by_site"),
        ("results", "results_output"),
        ("β₁ x", "x"),
        ("a" * 200, "a" * 80),
    ],
)
def test_safe_names(text: str, name: str) -> None:
    assert build.safe_name(text) == name


def test_names_that_cannot_be_made() -> None:
    with pytest.raises(InputError):
        build.safe_name("§§§")


def test_json_round_trip_keeps_every_cell() -> None:
    document = table()
    assert OutputDocument.from_json(json.loads(document.to_json())) == document


texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=30)
plain = st.recursive(
    st.none() | st.integers(-(2**50), 2**50) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=40,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(texts.filter(lambda key: key != "rows"), plain, max_size=6), st.lists(plain, max_size=5))
def test_narrow_json_says_the_same_in_lines_that_fit(data: dict[str, Any], rows: list[Any]) -> None:
    text = narrow_json({**data, "rows": rows}, by_line="rows")
    assert json.loads(text) == {**data, "rows": rows}
    for line in text.split("\n"):
        pair = re.fullmatch(r' *(?:"(?:[^"\\]|\\.)*": )?("(?:[^"\\]|\\.)*"|[^ "\[\]{}]*),?', line)
        assert len(line) <= 100 or pair, line  # nothing to break it at: one text, or one number
    assert not set("<>&") & set(text)


def test_a_wide_table_has_no_line_wider_than_a_screen() -> None:
    columns = (Column("feature", "label"), *(Column(f"component_{j}", "value") for j in range(1, 51)))
    row = tuple(round(0.0123 * j - 0.3, 4) for j in range(50))
    about = {"bounds": {"age": [40.0, 90.0], "z": 4.0}, "layout": [f"moment {i}" for i in range(60)]}
    document = OutputDocument("pca", "pca_components", "Components", columns, (("left_thickness", *row),), about)
    lines = document.to_json().splitlines()
    assert max(map(len, lines)) <= 100
    assert OutputDocument.from_json(json.loads(document.to_json())) == document
