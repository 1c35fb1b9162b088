"""What TRE staff attest, signed by a checker: said so in the report, and void once a word changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from declarations import ATTEST

from sacro_deltab.base.errors import CertificateError
from sacro_deltab.certificate.keys import keygen
from sacro_deltab.check import check_paths
from sacro_deltab.cli import main

TABLE = "site,n,mean_delta\nA,140,0.3\nB,95,0.1\n"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A loose table, a statement of TRE staff, and keys of a checker and of the tool."""
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE, encoding="utf-8")
    Path("pw").write_text("correct horse\n", encoding="utf-8")
    for role in ("checker1", "tool"):
        keygen(Path(f"{role}.pem"), role, Path("trust.json"), b"correct horse")
    Path("attest.json").write_text(json.dumps(ATTEST), encoding="utf-8")
    return Path("attest.json")


def sign(role: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(f"attest attest.json --key {role}.pem --trust trust.json --passphrase-file pw".split())
    return int(stopped.value.code or 0)


def declared() -> list[Any]:
    return check_paths(["table.csv"], facts_file="attest.json", trust="trust.json").declared


def test_who_signed_stands_first_in_the_report(said: Path) -> None:
    assert not [entry for entry in declared() if "signed" in entry["by"]]
    assert sign("checker1") == 0 and Path("attest.json.dsse.json").is_file()
    signed = {entry["name"]: entry for entry in declared() if "attested and signed by checker1" in entry["by"]}
    assert signed["egress.route"]["value"] == "tre_airlock"


EDITS: dict[str, Callable[[Path], Any]] = {
    "a changed word": lambda said: said.write_text(json.dumps({**ATTEST, "by": "Somebody else"}), encoding="utf-8"),
    "an envelope of nothing": lambda said: Path("attest.json.dsse.json").write_text("{}", encoding="utf-8"),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_signature_that_does_not_hold_stops_the_check(said: Path, what: str) -> None:
    assert sign("checker1") == 0
    EDITS[what](said)
    with pytest.raises(CertificateError, match="not one of a checker on this text"):
        declared()


def test_only_checkers_sign_and_only_for_staff(said: Path) -> None:
    assert sign("tool") == 2 and not Path("attest.json.dsse.json").exists()
    said.write_text(json.dumps({**ATTEST, "role": "researcher"}), encoding="utf-8")
    assert sign("checker1") == 2
