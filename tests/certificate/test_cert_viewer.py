"""What SACRO-Viewer changes is told apart from what nobody may change; its zip verifies as far as it can."""

from __future__ import annotations

import copy
import json
import random
import re
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
            item["url"] = f"/contents/?path=%2Ftre%2Fhome%2Fresults.json&output={uid}&filename={item['name']}"
            item["checksum_valid"] = True
            item["checksum"] = (folder / "checksums" / f"{item['name']}.txt").read_text()
            item["cell_index"] = {"2,1": ["x"]}
    return data


def summary(data: dict[str, Any], approved: list[str], words: str = "read in full") -> str:
    """The text of the viewer's own template."""
    text = f"\n# Review summary\n{words}\n\n"
    for uid, record in data["results"].items():
        state = "approved" if uid in approved else "rejected"
        text += f"\n## {uid}\nACRO status: {record['status']}\nReviewer status: {state}\n\n{words}\n\n"
    return text + "\n\n\n"


def reviewed(folder: Path, approved: list[str], words: str = "read in full") -> dict[str, Any]:
    """results.json after a review click."""
    data = annotate(folder)
    data["reviewer_summary"] = summary(data, approved, words)
    data["review_timestamp"] = "2026-11-30T03:00:00.123456"
    data["reviewer"] = "checker"
    return data


def review_in_viewer(folder: Path) -> None:
    """A review click: the viewer rewrites results.json with its reviewer entries."""
    write(folder, reviewed(folder, [*OUTPUTS, *CERTIFICATE]))


def write(folder: Path, data: Any) -> None:
    (folder / "results.json").write_text(json.dumps(data, indent=2))


def release(
    folder: Path,
    target: Path,
    approved: list[str],
    words: str = "read in full",
    edit: Callable[[dict[str, Any]], None] = lambda data: None,
) -> Path:
    """The viewer's own way of writing its zip; `edit` changes results.json first."""
    data = reviewed(folder, approved, words)
    data["results"] = {uid: record for uid, record in data["results"].items() if uid in approved}
    text = data["reviewer_summary"]
    for record in data["results"].values():
        record["status"] = "approved"
        record["comments"].append(f"Output Checker: {words}")
    names = [item["name"] for record in data["results"].values() for item in record["files"]]
    edit(data)
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("results.json", json.dumps(data, indent=2))
        for name in names:
            archive.write(folder / name, arcname=name)
        archive.writestr("summary.txt", text)
    return target


def test_a_review_in_the_viewer_is_reported_as_reviewed(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    review_in_viewer(folder)
    result = verify(folder)
    assert result.ok
    assert "reviewed in the viewer by checker" in line(result, "results.json")


def test_line_ends_of_windows_are_the_viewers(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    review_in_viewer(folder)
    path = folder / "results.json"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert verify(folder).ok


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
        "a comment that nobody released": lambda d: record(d)["comments"].append("Output Checker: please look"),
        "approved in the folder": lambda d: record(d).update(status="approved"),
        "a draft of the researcher's view": lambda d: (d.pop("tool"), d.update(config={"safe_threshold": 20})),
        "rows in a cell index": lambda d: record(d)["files"][0].update(cell_index={"2,1": ["P1,70.1,-3.2"]}),
        "another cell": lambda d: record(d)["files"][0].update(cell_index={"2,2": ["x"]}),
        "rows in a path": lambda d: record(d)["files"][0].update(
            url="/contents/?path=P1+70.1+-3.2&output=output_1&filename=delta_by_diagnosis.csv"
        ),
        "more in a url": lambda d: record(d)["files"][0].update(url=record(d)["files"][0]["url"] + "&more=70.1"),
        "digits in a path": lambda d: [
            f.update(url=f["url"].replace("path=%2Ftre", "path=%2F" + "7" * 50))
            for r in d["results"].values()
            for f in r["files"]
        ],
        "two paths": lambda d: record(d)["files"][0].update(
            url=record(d)["files"][0]["url"].replace("%2Fhome", "%2Fhome2")
        ),
        "another checksum": lambda d: record(d)["files"][0].update(checksum="ab" * 32),
        "checksum called wrong": lambda d: record(d)["files"][0].update(checksum_valid=False),
        "one file without": lambda d: [record(d)["files"][0].pop(k) for k in ("url", "checksum_valid", "checksum")],
        "order of records": lambda d: d.update(results=dict(reversed(d["results"].items()))),
        "order of entries": lambda d: d["results"].update(output_1=dict(reversed(record(d).items()))),
        "order of additions": lambda d: record(d)["files"].__setitem__(
            0, dict(reversed(record(d)["files"][0].items()))
        ),
        "spelling of a number": lambda d: record(d)["properties"].update(share=1),
        "summary of another release": lambda d: d.update(reviewer_summary="\n# Review summary\nfine\n\n\n\n\n"),
        "rows in the summary": lambda d: d.update(reviewer_summary=d["reviewer_summary"] + "P1,70.1,-3.2"),
        "people in a remark": lambda d: d.update(
            reviewer_summary=summary(d, [], "P1 70.1, P2 63.2, P3 55.5, P4 71.1, P5 44.2, P6 50.0")
        ),
        "a remark without end": lambda d: d.update(reviewer_summary=summary(d, [], "aebdc " * 100)),
        "numbers of a reviewer": lambda d: d.update(reviewer="p701x632x555x711"),
        "a time of no clock": lambda d: d.update(review_timestamp="2026-11-30T70:63:55.1"),
        "half a review": lambda d: d.pop("reviewer"),
    }


@pytest.mark.parametrize("which", list(tampering()))
def test_anything_else_is_changed(tmp_path: Path, which: str) -> None:
    folder = cs.certified(tmp_path / "o")
    data = reviewed(folder, [])
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
    assert {"absent files", "checksums", "inside", "decisions"} <= skipped
    assert "5 remark(s) of 60 characters" in line(result, "results.json")


def test_an_unpacked_release_verifies_when_it_is_said_to_be_one(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    zipped = release(folder, tmp_path / "release.zip", [*OUTPUTS, *CERTIFICATE])
    shutil.unpack_archive(zipped, tmp_path / "unpacked")
    assert verify(tmp_path / "unpacked", released=True).ok
    assert not verify(tmp_path / "unpacked").ok


def test_a_release_with_a_fail_is_not_complete(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o", "fail")
    result = verify(release(folder, tmp_path / "release.zip", [*OUTPUTS, *CERTIFICATE]))
    assert result.authentic and not result.ok
    assert result.conclusion() == ("authentic and NOT complete: the certificate says fail of delta_by_diagnosis")
    assert verify(release(folder, tmp_path / "less.zip", ["output_0", *CERTIFICATE])).ok


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
        "prefix",
        "suffix",
        "comment",
        "member comment",
        "extra field",
        "packed",
        "other order",
        "mode",
        "summary",
        "missing files",
        "text of another envelope",
    ],
)
def test_a_doctored_zip_is_caught(tmp_path: Path, which: str) -> None:
    folder = cs.certified(tmp_path / "o")
    zipped = release(folder, tmp_path / "a.zip", OUTPUTS if which == "no certificate" else [*OUTPUTS, *CERTIFICATE])
    doctored = tmp_path / "b.zip"
    with zipfile.ZipFile(zipped) as old, zipfile.ZipFile(doctored, "w") as new:
        for name in reversed(old.namelist()) if which == "other order" else old.namelist():
            data = old.read(name)
            info = old.getinfo(name)
            info.comment = b"P1,70.1" if which == "member comment" else b""
            info.extra = b"\x99\x99\x04\x00P170" if which == "extra field" else b""
            info.compress_type = zipfile.ZIP_DEFLATED if which == "packed" else zipfile.ZIP_STORED
            if which == "mode":
                info.external_attr |= 0o7000 << 16
            if name == "summary.txt" and which == "summary":
                data += b"P1,70.1"
            if name == "certificate.dsse.txt" and which == "text of another envelope":
                new.writestr("certificate.dsse.json", (folder / "certificate.dsse.json").read_bytes())
                data = b"P1,70.1"
            if name == "folded_weights.csv":
                if which == "missing":
                    continue
                data = data.replace(b"0.123", b"0.124") if which == "edited" else data
            new.writestr(info, data)
        if which == "comment":
            new.comment = b"P1,70.1"
        elif which == "missing files":
            new.writestr("missing-files.txt", "P1,70.1")
        elif which == "extra":
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
    elif which == "prefix":
        doctored.write_bytes(b"P1,70.1" + doctored.read_bytes())
    elif which == "suffix":
        doctored.write_bytes(doctored.read_bytes() + b"P1,70.1")
    elif which == "not a zip":
        doctored.write_bytes(b"PK\x03\x04nothing")
    try:
        assert not verify(doctored).ok
    except SacroDeltabError:
        assert which in ("no certificate", "truncated", "not a zip")


def test_rebuilt_by_the_same_hand_a_zip_verifies(tmp_path: Path) -> None:
    zipped = release(cs.certified(tmp_path / "o"), tmp_path / "a.zip", [*OUTPUTS, *CERTIFICATE])
    with zipfile.ZipFile(zipped) as old, zipfile.ZipFile(tmp_path / "b.zip", "w") as new:
        for info in old.infolist():
            new.writestr(info, old.read(info))
    assert verify(tmp_path / "b.zip").ok


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["results"]["output_1"]["comments"].append("Output Checker: and more"),
        lambda d: d["results"]["output_1"]["comments"].__setitem__(-1, "Output Checker: P1,70.1"),
        lambda d: d["results"]["output_1"]["comments"].__setitem__(-1, "P1,70.1"),
        lambda d: d["results"]["output_1"].update(status="rejected"),
        lambda d: d.update(reviewer_summary=d["reviewer_summary"].replace("output_1", "output_P1701")),
        lambda d: [d.pop(k) for k in ("reviewer_summary", "review_timestamp", "reviewer")],
    ],
)
def test_a_release_says_what_its_review_says(tmp_path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    folder = cs.certified(tmp_path / "o")
    assert not verify(release(folder, tmp_path / "a.zip", [*OUTPUTS, *CERTIFICATE], edit=edit)).ok


def changed_bytes(tmp_path: Path, seed: int, how_many: int) -> list[str]:
    """Bytes changed, put in or taken out of the viewer's folder and zip after certification, and called complete."""
    chance = random.Random(seed)
    folder = cs.certified(tmp_path / "o")
    review_in_viewer(folder)
    zipped = release(folder, tmp_path / "a.zip", [*OUTPUTS, *CERTIFICATE])
    missed = []
    for number in range(how_many):
        path = (zipped, folder / "results.json")[number % 4 == 3]
        before = path.read_bytes()
        at = chance.randrange(len(before))
        kind = chance.choice(("put in", "taken out", "changed"))
        new = b"" if kind == "taken out" else bytes([chance.choice(b"0123456789azAZ ,.\n\x00") ^ chance.randrange(2)])
        after = before[:at] + new + before[at + (kind != "put in") :]
        if after == before:
            continue
        path.write_bytes(after)
        try:
            if verify(path if path == zipped else folder).ok and not a_persons(before, at):
                missed.append(f"{path.name} {kind} at {at}")
        except SacroDeltabError:
            pass
        path.write_bytes(before)
    return missed


def a_persons(data: bytes, at: int) -> bool:
    """Whether a place is in what a person types in the viewer, its clock, its path, or a member's time: all bounded."""
    line = data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at)].strip()
    typed = (b'"reviewer', b'"review_timestamp', b'"url"', b'"Output Checker')
    return line.startswith(typed) or in_a_time(data, at)


def in_a_time(data: bytes, at: int) -> bool:
    places = [(m.start() + (10 if m[0] == b"PK\x03\x04" else 12)) for m in re.finditer(b"PK(\x03\x04|\x01\x02)", data)]
    return any(0 <= at - place < 4 for place in places)


def test_bytes_changed_after_certification_are_not_complete(tmp_path: Path) -> None:
    assert changed_bytes(tmp_path, seed=14, how_many=150) == []


@pytest.mark.soak
def test_five_thousand_bytes_changed_after_certification(tmp_path: Path) -> None:
    assert changed_bytes(tmp_path, seed=141, how_many=5_000) == []
