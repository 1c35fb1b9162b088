"""Certificates of every version ever written verify; what is newer is refused by name."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sacro_deltab.certificate.envelope import read_envelope
from sacro_deltab.certificate.types import SUPPORTED
from sacro_deltab.certificate.verify import verify_path
from sacro_deltab.check import check_paths

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "certificates"
VERSIONS = sorted(p for p in FIXTURES.iterdir() if p.is_dir())
DAY = datetime(2026, 12, 1, tzinfo=UTC)


def test_every_supported_version_has_a_fixture() -> None:
    assert {kind.rsplit("/", 1)[-1] for kind in SUPPORTED} == {p.name for p in VERSIONS}


@pytest.mark.parametrize("version", VERSIONS, ids=lambda p: p.name)
def test_old_certificates_verify(version: Path) -> None:
    for path in (version / "session", version / "release.zip"):
        result = verify_path(path, version / "trust.json", at=DAY)
        assert result.ok and result.verdict == "review", [c.line() for c in result.checks]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda p: p.name)
def test_reviews_in_them_are_read(version: Path) -> None:
    result = verify_path(version / "session", version / "trust.json", at=DAY)
    assert next(c.text for c in result.checks if c.name == "review") == "4 accepted"


@pytest.mark.parametrize("version", VERSIONS, ids=lambda p: p.name)
def test_what_is_verified_is_the_bytes_that_were_signed(version: Path, tmp_path: Path) -> None:
    folder = tmp_path / "o"
    shutil.copytree(version / "session", folder)
    payload = read_envelope(folder / "certificate.dsse.json").payload
    assert b'"stage": "certified"' in payload
    (folder / "inside" / "evidence.json").write_text("{}")
    assert not verify_path(folder, version / "trust.json", at=DAY).ok


@pytest.mark.parametrize("version", VERSIONS, ids=lambda p: p.name)
def test_folders_of_earlier_versions_are_judged_again_and_not_passed(version: Path) -> None:
    report = check_paths([version / "session"])
    assert report.verdict in ("review", "fail") and report.outputs
    assert not any("internal error" in f.inside for output in report.outputs for f in output.findings)
