"""Everyday files: each planted fault is named with its place, no harmless file is accused, and the child is bounded."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from everyday_files import BIG, PLANTS, TWINS, xlsx

from sacro_deltab.check import check_paths
from sacro_deltab.check.letter import letter
from sacro_deltab.inert import everyday
from sacro_deltab.inert.limits import DEFAULT
from sacro_deltab.inert.office.readers import read
from sacro_deltab.rules import load_ruleset

ACCUSES = re.compile(r"fewer than|one row a person|hidden|hides|undone|identifiers|name people|values that read", re.I)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers in this process: a child a file takes a second each."""

    def child(kind: str, data: bytes, *_: object) -> object:
        return json.loads(json.dumps(read(kind, data).to_json()))

    monkeypatch.setattr(everyday, "_child", child)


def _said(path: Path, data: bytes) -> list[str]:
    path.write_bytes(data)
    report = check_paths([path])
    assert report.exit_code == 1  # nothing of them ever passes
    return [finding.inside for output in report.outputs for finding in output.findings]


@pytest.mark.parametrize("name", PLANTS)
def test_every_plant_is_named_with_its_place(name: str, here: None, tmp_path: Path) -> None:
    data, words = PLANTS[name]
    said = _said(tmp_path / name, data)
    assert any(re.search(words, text) for text in said), said


@pytest.mark.parametrize("name", TWINS)
def test_no_harmless_file_is_accused(name: str, here: None, tmp_path: Path) -> None:
    said = _said(tmp_path / name, TWINS[name])
    assert len(said) == 1, said  # what it is, and nothing else
    assert not ACCUSES.search(said[0].partition(":")[0])


def test_the_numbers_asked_for() -> None:
    kinds = {name.rpartition(".")[2] for name in PLANTS}
    assert len(PLANTS) >= 40 and len(TWINS) >= 10 and kinds == {"xlsx", "docx", "ipynb", "html", "md", "parquet", "dta"}


def test_the_child_reads_under_limits_and_never_the_folder_it_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openpyxl.py").write_text("open('ran', 'w')\n")  # a module that lies beside the files
    assert len(_said(tmp_path / "plain.xlsx", xlsx(BIG))) == 1
    assert not (tmp_path / "ran").exists()
    rows = b"".join(b'<row r="%d"><c r="A%d"><v>%d</v></c></row>' % (i, i, i * 7919) for i in range(1, 100_000))
    bomb = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(xlsx(BIG))) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.namelist():
            data = old.read(item)
            new.writestr(item, data.replace(b"</sheetData>", rows + b"</sheetData>") if "sheet1" in item else data)
    (tmp_path / "bomb.xlsx").write_bytes(bomb.getvalue())
    report = check_paths([tmp_path / "bomb.xlsx"], limits=replace(DEFAULT, seconds=0.5))
    assert next(f.inside for f in report.outputs[0].findings) == "Not read: reading it took too long."
    assert any("Not read: it is damaged" in text for text in _said(tmp_path / "x.parquet", b"PAR1 no footer"))


def test_a_folder_of_requests_is_judged_request_by_request(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text('{"version": "1.0.2", "results": {}}')
    (tmp_path / "small.csv").write_text("site,n\nNairn,140\nOban,3\n")
    report = check_paths([tmp_path])
    targets = {finding.target for finding in report.folder_findings}
    assert {f"folder {tmp_path}/first", f"folder {tmp_path}/second"} <= targets
    assert [output.file for output in report.outputs] == ["small.csv"]  # no file of a request is judged as a loose one
    assert any("3 at 'Oban'" in finding.inside for finding in report.outputs[0].findings)


def test_a_letter_says_what_to_change_and_no_number_or_place(here: None, tmp_path: Path) -> None:
    for name, (data, _) in list(PLANTS.items())[::3]:
        (tmp_path / name).write_bytes(data)
    report = check_paths(sorted(tmp_path.iterdir()))
    told = letter(report, load_ruleset())
    lines = [line for line in told.splitlines()[4:] if line.startswith((" ", "\t"))]
    assert len(lines) > 40 and "What helps: Mark or merge the small groups." in told
    assert not [line for line in lines if re.search(r"\d|Oban|Ayr|Working|participant_id", line)]
    assert all(output.file in told for output in report.outputs)
