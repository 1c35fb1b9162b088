"""What SACRO-Viewer changes is told apart from what nobody may change; its zip verifies as far as it can."""

from __future__ import annotations

import copy
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cert_builder as cb
import cert_signed as cs
import pytest

from sacro_deltab.base.errors import SacroDeltabError
from sacro_deltab.certificate.verify import VerifyResult, verify_path

OUTPUTS = ["output_0", "output_1"]
CERTIFICATE = ["output_3"]


def verify(path: Path, **options: Any) -> VerifyResult:
    return verify_path(path, cs.ring().trust, at=cb.NOW, **options)


def line(result: VerifyResult, name: str) -> str:
    return next(c.text for c in result.checks if c.name == name)


def annotate(folder: Path) -> dict[str, Any]:
    """results.json as the viewer holds it: its own entries for each file added."""
    data = json.loads((folder / "results.json").read_text())
    for uid, record in data["results"].items():
        for item in record["files"]:
            item["url"] = f"/contents/?path=%2Ftre%2Fhome&output={uid}&filename={item['name']}"
            item["checksum_valid"] = True
            item["checksum"] = (folder / "checksums" / f"{item['name']}.txt").read_text()
            item["cell_index"] = {"2,1": ["x"]}
    return data


def review_in_viewer(folder: Path) -> None:
    """A review click: the viewer rewrites results.json with its reviewer entries."""
    data = annotate(folder)
    data["reviewer_summary"] = "# Review summary\nall fine\n"
    data["review_timestamp"] = "2026-11-30T03:00:00.1"
    data["reviewer"] = "checker"
    write(folder, data)


def write(folder: Path, data: Any) -> None:
    (folder / "results.json").write_text(json.dumps(data, indent=2))


def release(folder: Path, target: Path, approved: list[str]) -> Path:
    """The viewer's own way of writing its zip."""
    data = annotate(folder)
    data["results"] = {uid: record for uid, record in data["results"].items() if uid in approved}
    with zipfile.ZipFile(target, "w") as archive:
        for uid in approved:
            data["results"][uid]["status"] = "approved"
            data["results"][uid]["comments"].append("Output Checker: read in full")
        archive.writestr("results.json", json.dumps(data, indent=2))
        for uid in approved:
            for item in data["results"][uid]["files"]:
                archive.write(folder / item["name"], arcname=item["name"])
        archive.writestr("summary.txt", "# Review summary\n")
    return target


def test_a_review_in_the_viewer_is_reported_as_reviewed(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    review_in_viewer(folder)
    result = verify(folder)
    assert result.ok
    assert "reviewed in the viewer by checker" in line(result, "results.json")


@pytest.mark.parametrize("by_windows", [False, True])
def test_comments_added_are_reviewed(tmp_path: Path, by_windows: bool) -> None:
    folder = cs.certified(tmp_path / "o")
    data = json.loads((folder / "results.json").read_text())
    data["results"]["output_1"]["comments"].append("please look")
    write(folder, data)
    if by_windows:
        path = folder / "results.json"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    result = verify(folder)
    assert result.ok and "1 comment(s) added" in line(result, "results.json")


def test_a_draft_saved_in_the_viewer_is_reviewed(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    data = annotate(folder)
    del data["tool"]
    data["config"] = json.loads((folder / "config.json").read_text())
    data = json.loads(json.dumps(data).replace("1.0,", "1,").replace('"share": 1.0', '"share": 1'))
    write(folder, data)
    result = verify(folder)
    assert result.ok, [c.line() for c in result.checks]
    assert "draft" in line(result, "results.json")


def tampering() -> dict[str, Callable[[dict[str, Any]], None]]:
    def record(data: dict[str, Any]) -> dict[str, Any]:
        return data["results"]["output_1"]

    return {
        "review raised to pass": lambda d: record(d).update(status="pass"),
        "unknown status": lambda d: record(d).update(status="released"),
        "summary": lambda d: record(d).update(summary="pass; fine"),
        "comment changed": lambda d: record(d).update(comments=["made by someone else"]),
        "comment removed": lambda d: record(d).update(comments=[]),
        "comments gone": lambda d: record(d).pop("comments"),
        "comment not text": lambda d: record(d).update(comments=["made by a session", {"x": 1}]),
        "file listed twice": lambda d: record(d)["files"].append({"name": "folded_weights.csv"}),
        "file renamed": lambda d: record(d)["files"][0].update(name="../../etc/passwd"),
        "cells unpainted": lambda d: record(d)["files"][0].update(sdc={}),
        "properties": lambda d: record(d)["properties"].update(certificate_id="0"),
        "exception": lambda d: record(d).update(exception="please"),
        "record added": lambda d: d["results"].update(output_9=copy.deepcopy(record(d))),
        "record removed": lambda d: d["results"].pop("output_1"),
        "record renamed": lambda d: d["results"].update(output_x=d["results"].pop("output_1")),
        "version": lambda d: d.update(version="1.0.3"),
        "new entry": lambda d: d.update(note="hello"),
        "other config": lambda d: d.update(config={"safe_threshold": 1}),
        "text in a url": lambda d: record(d)["files"][0].update(url="subject 1007 has delta 14.2"),
        "text in a checksum": lambda d: record(d)["files"][0].update(checksum="1007"),
        "text in a cell index": lambda d: record(d)["files"][0].update(cell_index={"subject 1007": []}),
        "reviewer not text": lambda d: d.update(reviewer={"name": "x"}),
        "results not records": lambda d: d.update(results=[]),
    }


@pytest.mark.parametrize("which", list(tampering()))
def test_anything_else_is_changed(tmp_path: Path, which: str) -> None:
    folder = cs.certified(tmp_path / "o")
    data = json.loads((folder / "results.json").read_text())
    tampering()[which](data)
    write(folder, data)
    result = verify(folder)
    assert [c.name for c in result.checks if c.state == "fail"] == ["results.json"]


def test_layout_that_the_viewer_does_not_write_is_changed(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    data = json.loads((folder / "results.json").read_text())
    (folder / "results.json").write_text(json.dumps(data))
    assert not verify(folder).ok


def test_the_viewers_zip_verifies_and_says_what_it_cannot(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    review_in_viewer(folder)
    zipped = release(folder, tmp_path / "release.zip", [*OUTPUTS, *CERTIFICATE])
    result = verify(zipped)
    assert result.ok, [c.line() for c in result.checks]
    assert "became approved" in line(result, "results.json")
    assert "not released: output_2" in line(result, "results.json")
    skipped = {c.name for c in result.checks if c.state == "not checked"}
    assert {"absent files", "viewer's files", "checksums", "inside"} <= skipped


def test_an_unpacked_release_verifies_when_it_is_said_to_be_one(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    zipped = release(folder, tmp_path / "release.zip", [*OUTPUTS, *CERTIFICATE])
    shutil.unpack_archive(zipped, tmp_path / "unpacked")
    assert verify(tmp_path / "unpacked", released=True).ok
    assert not verify(tmp_path / "unpacked").ok


def test_an_approved_fail_is_said(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o", "fail")
    zipped = release(folder, tmp_path / "release.zip", [*OUTPUTS, *CERTIFICATE])
    assert "own verdict is fail for" in line(verify(zipped), "results.json")


@pytest.mark.parametrize(
    "which",
    [
        "edited",
        "extra",
        "missing",
        "twice",
        "folder",
        "parent path",
        "no certificate",
        "truncated",
        "not a zip",
        "link",
    ],
)
def test_a_doctored_zip_is_caught(tmp_path: Path, which: str) -> None:
    folder = cs.certified(tmp_path / "o")
    zipped = release(folder, tmp_path / "a.zip", OUTPUTS if which == "no certificate" else [*OUTPUTS, *CERTIFICATE])
    doctored = tmp_path / "b.zip"
    with zipfile.ZipFile(zipped) as old, zipfile.ZipFile(doctored, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "folded_weights.csv":
                if which == "missing":
                    continue
                data = data.replace(b"0.123", b"0.124") if which == "edited" else data
            new.writestr(name, data)
        if which == "extra":
            new.writestr("more.csv", "1")
        elif which == "twice":
            with pytest.warns(UserWarning):
                new.writestr("folded_weights.csv", "1")
        elif which == "folder":
            new.writestr("sub/", "")
        elif which == "parent path":
            new.writestr("../folded_weights.csv", "1")
        elif which == "link":
            info = zipfile.ZipInfo("link.csv")
            info.external_attr = 0o120777 << 16
            new.writestr(info, "/etc/passwd")
    if which == "truncated":
        doctored.write_bytes(doctored.read_bytes()[:-200])
    elif which == "not a zip":
        doctored.write_bytes(b"PK\x03\x04nothing")
    try:
        assert not verify(doctored).ok
    except SacroDeltabError:
        assert which in ("no certificate", "truncated", "not a zip")
