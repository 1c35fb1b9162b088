"""The zip that leaves: accepted outputs and nothing else, in one form, and verified."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import cert_builder as cb
import cert_signed as cs
import pytest
from test_cert_review import accept, both, one_file, review
from test_cert_viewer import release as viewer_zip
from test_cert_viewer import review_in_viewer
from typer.testing import CliRunner

from sacro_deltab.base.errors import CertificateError, InputError, RefusedError
from sacro_deltab.base.findings import Effect
from sacro_deltab.base.verdicts import NOTHING
from sacro_deltab.build.results import dumped
from sacro_deltab.certificate.release import Release, write_release
from sacro_deltab.certificate.seal import new_certificate_id, seal_folder, write_checksum
from sacro_deltab.certificate.verify import verify_path
from sacro_deltab.check import check_paths
from sacro_deltab.judging.report import FileReport, Report

WEIGHTS = ["folded_weights.csv", "folded_weights.json"]
TABLE = ["delta_by_diagnosis.csv", "delta_by_diagnosis.json"]


def release(folder: Path, name: str = "r.zip") -> Release:
    return write_release(folder, cs.ring().trust, folder.parent / name, now=cb.NOW)


def decided(folder: Path, two: Any = accept, verdict: str = "review") -> Path:
    both(cs.certified(folder, verdict), two=two)
    cs.certify(folder, verdict)
    return folder


def test_what_both_checkers_accepted_leaves_in_one_form(tmp_path: Path) -> None:
    folder = decided(tmp_path / "o")
    done = release(folder)
    assert done.outputs == ("delta_by_diagnosis", "folded_weights")
    result = verify_path(done.path, cs.ring().trust, at=cb.NOW)
    assert result.ok and result.conclusion().startswith("authentic and complete")
    names = zipfile.ZipFile(done.path).namelist()
    assert names == ["results.json", *WEIGHTS, *TABLE, "certificate.dsse.txt"]
    review_in_viewer(folder)  # what the viewer writes into the folder does not leave
    assert release(folder, "again.zip").path.read_bytes() == done.path.read_bytes()


@pytest.mark.parametrize("decision", ["refuse", "return"])
def test_an_output_of_which_one_file_was_turned_down_stays(tmp_path: Path, decision: str) -> None:
    done = release(decided(tmp_path / "o", one_file(decision)))
    assert done.outputs == ("delta_by_diagnosis",) and set(done.left) == {"folded_weights", "session_summary.csv"}
    with zipfile.ZipFile(done.path) as archive:
        assert archive.namelist() == ["results.json", *TABLE, "certificate.dsse.txt"]
        assert list(json.loads(archive.read("results.json"))["results"]) == ["output_1", "output_3"]


def test_a_fail_never_leaves_whatever_was_decided(tmp_path: Path) -> None:
    done = release(decided(tmp_path / "o", verdict="fail"))
    assert done.outputs == ("folded_weights",) and done.left["delta_by_diagnosis"] == "the certificate says fail"


def test_nothing_is_packed_of_what_nobody_decided(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")  # without a pinned ledger: no pass
    with pytest.raises(RefusedError, match=NOTHING):
        release(folder)
    review(folder, "checker1")
    with pytest.raises(RefusedError, match="undecided: delta_by_diagnosis, folded_weights"):
        release(folder)
    review(folder, "checker2")
    review(folder, "checker1")
    with pytest.raises(RefusedError, match="before the checkers decided"):
        release(folder)
    assert not (tmp_path / "r.zip").exists()
    cs.certify(folder)
    assert release(folder).path.exists()


def test_only_a_folder_as_certified_is_packed(tmp_path: Path) -> None:
    folder = decided(tmp_path / "o")
    (folder / "folded_weights.csv").write_text("feature,weight\nage,70.1\n")
    with pytest.raises(CertificateError, match="files"):
        release(folder)
    with pytest.raises(InputError):
        write_release(folder, cs.ring().trust, folder / "r.zip")


WORDS = "P0001 aged 61.5"  # what somebody may have typed, wherever ACRO takes a text


def with_table_of_acro(folder: Path) -> Path:
    """A folder with a table that ACRO made for the researcher, certified after both checkers accepted it."""
    cb.write_session(folder)
    body = b"region,no,yes\nFife,2.5,2.3\n"
    results = json.loads((folder / "results.json").read_text())
    results["results"]["output_4"] = {
        "uid": "output_4", "status": "review", "type": "table", "properties": {"method": "crosstab"},
        "files": [{"name": "output_4_0.csv", "sdc": {"summary": {}, "cells": {"x": [[2, 1]]}}}],
        "outcome": {WORDS: {WORDS: "ok"}}, "command": WORDS, "summary": "review; ",
        "timestamp": "2026-10-05T09:30:00.000000", "comments": [WORDS], "exception": WORDS,
        "fair": {"dependent": WORDS, "independent": [WORDS]},
    }  # fmt: skip
    (folder / "results.json").write_bytes(json.dumps(results, indent=4).encode())
    (folder / "output_4_0.csv").write_bytes(body)
    for name in ("results.json", "output_4_0.csv"):
        write_checksum(folder, name)
    seal_folder(folder, evidence=cb.default_evidence(), ruleset=cb.POLICY, certificate_id=new_certificate_id())

    def judged(_: Path) -> Report:
        report = cs.report("review")
        table = FileReport("output_4_0.csv", title="ACRO crosstab", findings=[cb.found("TX-01", Effect.REVIEW)])
        report.outputs.append(table)
        return report

    for _ in range(2):  # the second certificate carries the decisions
        cs.certify(folder, check=judged)
        if not (folder / "inside" / "review").exists():
            both(folder)
    return folder


def test_texts_that_somebody_chose_in_a_record_of_acros_do_not_leave(tmp_path: Path) -> None:
    folder = with_table_of_acro(tmp_path / "o")
    done = release(folder)
    assert "output_4_0.csv" in done.outputs
    with zipfile.ZipFile(done.path) as archive:
        assert "output_4_0.csv" in archive.namelist()
        assert not [name for name in archive.namelist() if WORDS.encode() in archive.read(name)]
        record = json.loads(archive.read("results.json"))["results"]["output_4"]
        unpacked = tmp_path / "unpacked"
        archive.extractall(unpacked)
    assert [record[key] for key in ("outcome", "command", "comments", "exception", "fair")] == [{}, "", [], "", {}]
    assert verify_path(unpacked, cs.ring().trust, at=cb.NOW, released=True).ok
    record["exception"] = WORDS  # neither as certified nor blank
    results = json.loads((unpacked / "results.json").read_text())
    results["results"]["output_4"] = record
    (unpacked / "results.json").write_bytes(dumped(results))
    assert not verify_path(unpacked, cs.ring().trust, at=cb.NOW, released=True).authentic


def test_a_zip_of_the_viewers_that_holds_them_is_not_complete(tmp_path: Path) -> None:
    folder = with_table_of_acro(tmp_path / "o")
    approved = ["output_0", "output_1", "output_3", "output_4"]
    result = verify_path(viewer_zip(folder, tmp_path / "v.zip", approved), cs.ring().trust, at=cb.NOW)
    assert result.authentic and not result.ok and "output_4 hold" in result.conclusion()
    without = verify_path(viewer_zip(folder, tmp_path / "w.zip", approved[:3]), cs.ring().trust, at=cb.NOW)
    assert without.ok


def test_check_of_a_release_says_verify(tmp_path: Path) -> None:
    done = release(decided(tmp_path / "o"))
    (output,) = check_paths([done.path]).outputs
    (found,) = output.findings
    assert output.verdict == "fail" and found.next_step == f"sacro-deltab verify {done.path}"


def test_the_command(tmp_path: Path) -> None:
    from sacro_deltab.cli import _register, app

    _register()
    folder = decided(tmp_path / "o", one_file("refuse"))
    command = ["release", str(folder), "--trust", str(cs.ring().trust_path), "--out", str(tmp_path / "r.zip")]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 0, ran.output
    assert "packed delta_by_diagnosis" in ran.output and "stays  folded_weights: refused" in ran.output
