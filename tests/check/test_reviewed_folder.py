"""A folder reviewed in SACRO-Viewer before it was certified: judged as the session left it, the additions named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import Folder, passing

from sacro_deltab.judging.report import Report

Edit = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return passing(tmp_path_factory.mktemp("session"))


def clicked(honest: Folder, where: Path, words: str = "", edit: Edit = lambda data: None) -> Report:
    """What the viewer's review leaves in results.json, then the check of the folder."""
    folder = honest.copy(where / "outputs")
    data = folder.json("results.json")
    text = f"\n# Review summary\n{words}\n\n"
    for uid, record in data["results"].items():
        for item in record["files"]:
            cells: dict[str, list[str]] = {}
            for flag, places in item["sdc"].get("cells", {}).items():
                for row, column in places:
                    cells.setdefault(f"{row},{column}", []).append(flag)
            item["url"] = f"/contents/?path=%2Ftre%2Fresults.json&output={uid}&filename={item['name']}"
            item["checksum_valid"] = True
            item["checksum"] = (folder.path / "checksums" / f"{item['name']}.txt").read_text()
            item["cell_index"] = cells
        text += f"\n## {uid}\nACRO status: {record['status']}\nReviewer status: approved\n\n{words}\n\n"
    data |= {"reviewer_summary": text + "\n\n\n", "review_timestamp": "2026-11-30T03:00:00.123456", "reviewer": "anna"}
    edit(data)
    (folder.path / "results.json").write_text(json.dumps(data, indent=2))
    return folder.check()


def told(report: Report) -> str:
    return "; ".join(f.inside for f in report.folder_findings)


def test_a_click_changes_no_verdict_and_is_named(honest: Folder, tmp_path: Path) -> None:
    report = clicked(honest, tmp_path)
    assert report.verdict == "pass", told(report)
    assert "reviewed in the viewer by anna" in told(report) and "0 remark(s) of 0 characters" in told(report)
    assert {o.file: o.verdict for o in report.outputs} == {o.file: o.verdict for o in honest.check().outputs}


def test_what_was_written_there_goes_to_a_person(honest: Folder, tmp_path: Path) -> None:
    report = clicked(honest, tmp_path, "read in full")
    assert report.verdict == "review" and "60 characters" not in told(report)
    assert any(f.asks for f in report.folder_findings)


EDITS: dict[str, Edit] = {
    "digits": lambda d: d.update(reviewer_summary=d["reviewer_summary"].replace("## ", "9" * 21 + "\n## ", 1)),
    "a reviewer of many digits": lambda d: d.update(reviewer="anna 61.5 70.2 55.6"),
    "another time": lambda d: d.update(review_timestamp="61.5"),
    "another entry": lambda d: d.update(people="61.5"),
    "an address": lambda d: _first(d)["files"][0].update(url="/contents/?path=61.5"),
    "a checksum": lambda d: _first(d)["files"][0].update(checksum="6" * 64),
    "a cell": lambda d: _first(d)["files"][0]["cell_index"].update({"61,5": ["x"]}),
    "a status": lambda d: _first(d).update(status="review"),
    "a comment": lambda d: _first(d)["comments"].append("Output Checker: 61.5"),
    "a record's own field": lambda d: _first(d).update(command="61.5"),
    "a record gone": lambda d: d["results"].pop(next(iter(d["results"]))),
    "a file without a name": lambda d: _first(d)["files"][0].pop("name"),
    "a file that is none": lambda d: _first(d)["files"].append(61.5),
    "no summary": lambda d: d.pop("reviewer_summary"),
}  # fmt: skip


def _first(data: dict[str, Any]) -> Any:
    return next(iter(data["results"].values()))


@pytest.mark.parametrize("name", EDITS)
def test_anything_else_is_refused(honest: Folder, tmp_path: Path, name: str) -> None:
    report = clicked(honest, tmp_path, edit=EDITS[name])
    assert report.verdict == "fail" and "broke off" not in told(report)
