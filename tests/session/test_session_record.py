"""The record validator: whatever breaks the viewer, ACRO or the promise of judged numbers only is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sacro_deltab.base.errors import InputError
from sacro_deltab.base.findings import Effect, Finding
from sacro_deltab.build.record import CELL_CHECK, Outside, stub, summary, suppressed_cells, told_of
from sacro_deltab.outputs.document import Column, OutputDocument
from sacro_deltab.session.acro_records import Draft, file_problem, validate_draft

DOCUMENT = OutputDocument(
    "t", "delta_mean_by_sex", "T", (Column("sex", "label"), Column("n", "n"), Column("mean", "value")),
    (("F", 100, 0.5), ("M", "*", "*")), {},
)  # fmt: skip


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    table, machine = tmp_path / "t.csv", tmp_path / "t.json"
    table.write_text(DOCUMENT.to_csv(), encoding="utf-8")
    machine.write_text(DOCUMENT.to_json(), encoding="utf-8")
    return Draft(
        "t", "pass", "pass; meets the rules", {"method": "deltab_x"}, (table, machine),
        {"summary": {"suppressed": True}, "cells": suppressed_cells(DOCUMENT)},
    )  # fmt: skip


def test_a_good_draft_passes(draft: Draft) -> None:
    validate_draft(draft)
    assert draft.sdc["cells"] == {CELL_CHECK: [[1, 0], [1, 1]]}


@pytest.mark.parametrize(
    "change",
    [
        {"status": "Review"},
        {"summary": "FrequencyTable : fail"},
        {"summary": "pass"},
        {"summary": "pass; mean 0.3 <!-- subject -->"},
        {"properties": {"n": np.int64(3)}},
        {"properties": {"x": float("nan")}},
        {"properties": {"x": float("inf")}},
        {"properties": {("a", "b"): 1}},
        {"properties": {"x": (1, 2)}},
        {"properties": {"x": {1, 2}}},
        {"properties": {"x": Path("p")}},
        {"properties": {"x": np.zeros(2)}},
        {"fair": {"x": b"bytes"}},
        {"command": "df[df.id<3]"},
        {"comments": ("line\nbreak",)},
        {"files": ()},
        {"sdc": {"cells": {CELL_CHECK: [[9, 9]]}}},
        {"sdc": {"cells": {CELL_CHECK: [[0, 0]]}}},
        {"sdc": {"cells": {CELL_CHECK: [[1, 0, 0]]}}},
        {"sdc": {"cells": {"below 20": [[1, 0]]}}},
    ],
)
def test_faults_of_a_record_are_refused(draft: Draft, change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        validate_draft(replace(draft, **change))


@pytest.mark.parametrize(
    "name",
    ["results.json", "config.json", "outputs.json", "session_summary.csv", "summary.txt", "evidence.json", "a b.csv",
     "output_0_0.csv", "model.pkl", "plot.svg", "../x.csv", "UPPER.csv", "t.html", ".hidden.csv", "x" * 90 + ".csv"],
)  # fmt: skip
def test_unsafe_and_foreign_file_names_are_refused(draft: Draft, tmp_path: Path, name: str) -> None:
    path = tmp_path / Path(name).name
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError):
        validate_draft(replace(draft, sdc={}, files=(tmp_path / name,)))


def test_a_name_is_used_once(draft: Draft) -> None:
    with pytest.raises(InputError, match="already has a file"):
        validate_draft(draft, taken=["T.CSV"])


@pytest.mark.parametrize(
    ("suffix", "body"),
    [
        (".csv", b""),
        (".csv", b"a,b\n"),
        (".csv", b"a,a\nx,1\n"),
        (".csv", b"a,b\nx,1\nx,2\n"),
        (".csv", b"a,b\nx\n"),
        (".csv", b"a,b\nx,=1+1\n"),
        (".csv", b"a,b\n@SUM,1\n"),
        (".csv", b"a,b\n<b>x</b>,1\n"),
        (".csv", b"a,b\nx,nan\n"),
        (".csv", b"a,b\nx,\xff\n"),
        (".json", b"[1]"),
        (".json", b"3"),
        (".json", b"{"),
        (".json", b'{"a": NaN}'),
        (".json", b'{"version": "1", "results": {}}'),
        (".json", b'{"a": "<script>"}'),
        (".png", b"<svg>"),
    ],
)
def test_files_the_viewer_chokes_on(tmp_path: Path, suffix: str, body: bytes) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(body)
    assert file_problem(path) is not None


def test_negative_numbers_are_no_formulas(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\nx,-1.5\ny,+2e-3\n-5,1\n", encoding="utf-8")
    assert file_problem(path) is None


def test_summary_words_and_chip() -> None:
    finding = Finding(("R-1",), "output", Effect.BLOCK, "n is 7", "too few; below < 20", ())
    text = summary("fail", told_of([finding]), rule_set="r 1", marked=True)
    assert text == "fail; too few, below below 20"
    assert summary("pass", [], rule_set="r 1", marked=False) == "pass; meets r 1"
    assert summary("pass", [], rule_set="r 1", marked="*") == "pass; cells marked * are withheld"
    assert "7" not in text


def test_stub_holds_one_line_of_reason() -> None:
    finding = Finding(("R-1",), "output", Effect.WITHHOLD, "", "more than 30%\nsuppressed; really", ())
    text = stub(Outside("a", "delta_mean", "A, title", "fail", True, "none", tuple(told_of([finding])))).decode()
    assert text == 'output,kept inside because\n"A, title","more than 30% suppressed, really"\n'


def test_json_form_hides_markup() -> None:
    document = replace(DOCUMENT, about={"note": "a & b"})
    assert "&" not in document.to_json()
    assert json.loads(document.to_json())["about"]["note"] == "a & b"
