"""The trust file."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as ser
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sacro_deltab.base.errors import InputError, UnreadableError
from sacro_deltab.ledger.trust import add_key, key_id, load_trust, pin_ledger


def pem() -> str:
    public = Ed25519PrivateKey.generate().public_key()
    return public.public_bytes(ser.Encoding.PEM, ser.PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trust.json"


def test_a_new_key_counts_at_once_for_two_years(path: Path) -> None:
    public = pem()
    add_key(path, public_pem=public, role="tool")
    trust = load_trust(path)
    key = trust.key(key_id(public))
    assert key is not None
    now = datetime.now(UTC)
    assert key.valid_at(now)
    assert key.valid_at(now + timedelta(days=729))
    assert not key.valid_at(now + timedelta(days=732))
    assert not key.valid_at(now - timedelta(minutes=1))
    assert trust.thresholds == {"local": {"tool": 1}} and (key.role, key.node) == ("tool", "local")


def test_ledgers_and_keys_live_in_one_file(path: Path) -> None:
    pin_ledger(path, "1" * 32, "2" * 64)
    add_key(path, public_pem=pem(), role="checker1", node="telEport")
    pin_ledger(path, "3" * 32, "4" * 64, node="telEport")
    pin_ledger(path, "3" * 32, "4" * 64, node="telEport")
    trust = load_trust(path)
    assert len(trust.ledgers) == 2
    assert trust.pins_ledger("1" * 32, "2" * 64)
    assert not trust.pins_ledger("1" * 32, "4" * 64)
    assert trust.pins_ledger("3" * 32, "4" * 64, "telEport")
    assert not trust.pins_ledger("3" * 32, "4" * 64, "local")
    assert trust.to_json() == json.loads(path.read_text())


def test_a_role_or_a_head_key_is_not_changed_by_adding(path: Path) -> None:
    public = pem()
    add_key(path, public_pem=public, role="checker1")
    add_key(path, public_pem=public, role="checker1")
    with pytest.raises(InputError, match="in another role"):
        add_key(path, public_pem=public, role="dac")
    pin_ledger(path, "1" * 32, "2" * 64)
    with pytest.raises(InputError, match="another head key"):
        pin_ledger(path, "1" * 32, "5" * 64)
    with pytest.raises(InputError, match="a role is one of"):
        add_key(path, public_pem=pem(), role="boss")


GOOD: dict[str, Any] = {"schema": "sacro_deltab/trust/1", "keys": {}, "nodes": {}, "ledgers": []}
KEY = {"public_pem": pem(), "role": "tool", "node": "local", "valid_from": "2026-01-01T00:00:00Z",
       "valid_to": "2027-01-01T00:00:00Z"}  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {**GOOD, "schema": "sacro_deltab/trust/2"},
        {**GOOD, "extra": 1},
        {**GOOD, "keys": {"k": {**KEY, "role": "boss"}}},
        {**GOOD, "keys": {"k": {**KEY, "valid_to": "2025-01-01T00:00:00Z"}}},
        {**GOOD, "keys": {"k": {**KEY, "valid_to": "2026-02-30T00:00:00Z"}}},
        {**GOOD, "keys": {"k": {**KEY, "valid_to": "tomorrow"}}},
        {**GOOD, "keys": {"../k": KEY}},
        {**GOOD, "nodes": {"local": {"thresholds": {"tool": 0}}}},
        {**GOOD, "nodes": {"local": {"thresholds": {"tool": True}}}},
        {**GOOD, "ledgers": [{"id": "1" * 32, "head_key": "zz", "node": "local"}]},
    ],
)
def test_files_that_are_none_are_refused_whole(path: Path, document: object) -> None:
    path.write_text(json.dumps(document))
    with pytest.raises(UnreadableError) as caught:
        load_trust(path)
    assert "trust.json" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "\udcff", '{"keys": {}, "keys": {}}', "[" * 100_000, json.dumps(GOOD) + " " * 5_000_000],
    ids=["empty", "half", "latin", "repeated", "deep", "large"],
)
def test_texts_that_are_no_trust_file(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UnreadableError):
        load_trust(path)


def test_a_missing_file(path: Path) -> None:
    with pytest.raises(UnreadableError, match="no such file"):
        load_trust(path)
