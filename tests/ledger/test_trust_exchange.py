"""Trust between TREs without edited JSON: export, the telephone, add; and lost keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from sacro_deltab.base.errors import InputError
from sacro_deltab.certificate.keys import keygen
from sacro_deltab.cli import main
from sacro_deltab.ledger import open_ledger
from sacro_deltab.ledger.trust import add_key, add_node, load_trust, pin_ledger


def run(*words: object, code: int = 0) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert (stopped.value.code or 0) == code


def site(folder: Path) -> Path:
    folder.mkdir()
    for role in ("tool", "checker1"):
        keygen(folder / f"{role}.pem", role, folder / "trust.json", b"correct horse")
    pin = open_ledger(folder / "budget.db").pin()
    pin_ledger(folder / "trust.json", pin.id, pin.head_key)
    return folder / "trust.json"


def exported(trust: Path, node: str, capsys: pytest.CaptureFixture[str]) -> tuple[Path, str]:
    out = trust.parent / f"{node}.trust.json"
    capsys.readouterr()
    run("trust", "export", "--trust", trust, "--node", node, "--out", out)
    return out, capsys.readouterr().out.splitlines()[-1]


def test_two_sites_know_each_other_after_a_telephone_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = site(tmp_path / "a"), site(tmp_path / "b")
    sent, digits = exported(b, "site-b", capsys)
    assert len(digits.split()) == 8 and all(len(group) == 5 for group in digits.split())
    run("trust", "add", sent, "--trust", a, "--fingerprint", digits.replace(" ", "  "))
    known = load_trust(a)
    theirs = [key for key in known.keys.values() if key.node == "site-b"]
    assert [key.role for key in theirs] == ["tool"]  # nobody's checkers decide elsewhere
    assert {pin.node for pin in known.ledgers} == {"local", "site-b"} and known.thresholds["site-b"] == {"tool": 1}
    run("trust", "add", sent, "--trust", a, "--fingerprint", digits)  # twice is once
    assert load_trust(a).to_json() == known.to_json()


def test_what_was_not_read_aloud_is_not_entered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = site(tmp_path / "a"), site(tmp_path / "b"), site(tmp_path / "c")
    sent, digits = exported(b, "site-b", capsys)
    other, others = exported(c, "site-b", capsys)  # somebody in between sends another file under the same name
    before = a.read_bytes()
    run("trust", "add", other, "--trust", a, "--fingerprint", digits, code=1)
    run("trust", "add", sent, "--trust", a, "--fingerprint", "12345", code=1)
    assert a.read_bytes() == before
    run("trust", "add", sent, "--trust", a, "--fingerprint", digits)
    run("trust", "add", other, "--trust", a, "--fingerprint", others, code=2)  # one name for two nodes
    again, digits = exported(b, "site-x", capsys)  # two names for one node
    run("trust", "add", again, "--trust", a, "--fingerprint", digits, code=2)
    assert {key.node for key in load_trust(a).keys.values()} == {"local", "site-b"}


def test_no_other_sites_checkers_or_committee_get_in(tmp_path: Path) -> None:
    a, b = site(tmp_path / "a"), site(tmp_path / "b")
    before = a.read_bytes()
    with pytest.raises(InputError, match="no other TRE's export"):
        add_node(a, load_trust(b))  # a whole trust file, whatever fingerprint was read
    assert a.read_bytes() == before


def test_a_revoked_key_signs_nothing_and_is_not_added_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = site(tmp_path / "a")
    lost = next(key for key in load_trust(a).keys.values() if key.role == "checker1")
    run("trust", "revoke", "nothing", "--trust", a, code=2)
    run("trust", "revoke", lost.keyid[:12], "--trust", a)
    gone = load_trust(a).keys[lost.keyid]
    assert not gone.valid_at(lost.valid_from) and not gone.valid_at(lost.valid_to)
    with pytest.raises(InputError, match="revoked"):
        add_key(a, public_pem=lost.public_pem, role="checker1")
    capsys.readouterr()
    run("trust", "show", "--trust", a)
    assert "revoked" in capsys.readouterr().out
    assert all(key.keyid != lost.keyid for key in load_trust(exported(a, "site-a", capsys)[0]).keys.values())
