"""A ledger of version 1 is upgraded after a copy, in one transaction; a newer one is refused."""

from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as ser
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_helpers import small, spend_args
from sqlalchemy import inspect, text
from typer.testing import CliRunner

from sacro_deltab.base.errors import LedgerError
from sacro_deltab.cli import _register, app
from sacro_deltab.ledger import Ledger, ReleaseCell, migrations, open_ledger, schema

VERSION_1 = (Path(__file__).parent / "data" / "version-1.sql").read_text(encoding="utf-8")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A version-1 file with every kind of entry that version 1 knew, and its (published, worthless) key."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    pem = key.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, ser.NoEncryption())
    (tmp_path / "budget.db.key").write_bytes(pem)
    with closing(sqlite3.connect(tmp_path / "budget.db")) as connection:
        connection.executescript(VERSION_1)
    return tmp_path / "budget.db"


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT schema_version FROM ledger_meta").fetchone()[0])


def test_an_older_ledger_is_upgraded_after_a_copy(old: Path) -> None:
    assert version(old) == 1
    book = open_ledger(old)
    assert version(old) == schema.SCHEMA_VERSION == 3
    assert book.verify().problems == ()
    assert book.totals("site-a").epsilon_sum == 2.0
    assert [entry.seq for entry in book.orphans()] == [7]
    book.spend(small(1.0), **spend_args())
    book.record_release("site-a", "t", kind="table", cells=[ReleaseCell("all", 30)], who="analyst")
    assert book.verify().problems == ()
    (copy,) = old.parent.glob("budget.db.v1-*.bak")
    assert version(copy) == 1
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM ledger_entries").fetchone() == (9,)


def test_the_commands_of_the_upgrade_page_run_on_a_ledger_of_before(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "upgrade.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(.*?)```", page, flags=re.S)
    commands = [shlex.split(line.removeprefix("$ sacro-deltab ")) for line in block.splitlines()]
    assert [words[:2] for words in commands] == [["ledger", "open"], ["ledger", "verify"]]
    monkeypatch.chdir(old.parent)
    _register()
    for words in commands:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    assert version(old) == schema.SCHEMA_VERSION and len(list(old.parent.glob("budget.db.v1-*.bak"))) == 1
    assert "sound" in done.output, done.output


def test_it_is_upgraded_once(old: Path) -> None:
    open_ledger(old)
    open_ledger(old)
    assert len(list(old.parent.glob("*.bak"))) == 1


def test_an_upgrade_that_breaks_leaves_the_old_ledger(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = migrations.MIGRATIONS[1]

    def broken(connection: object) -> None:
        step(connection)  # type: ignore[arg-type]
        raise LedgerError("the power went")

    monkeypatch.setitem(migrations.MIGRATIONS, 1, broken)
    with pytest.raises(LedgerError, match="the power went"):
        open_ledger(old)
    assert version(old) == 1
    with closing(sqlite3.connect(old)) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert "ledger_cells" not in tables
    for copy in old.parent.glob("*.bak"):
        copy.unlink()
    monkeypatch.setitem(migrations.MIGRATIONS, 1, step)
    assert open_ledger(old).verify().ok


def test_reading_only_does_not_upgrade(old: Path) -> None:
    before = old.read_bytes()
    with pytest.raises(LedgerError, match="has to be upgraded"):
        open_ledger(old, create=False, read_only=True)
    assert old.read_bytes() == before


@pytest.mark.parametrize("number", [0, 4, 99])
def test_a_newer_ledger_is_refused(file_book: Ledger, number: int) -> None:
    file = file_book.store.file
    assert file is not None
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE ledger_meta SET schema_version = ?", (number,))
        connection.commit()
    before = file.read_bytes()
    with pytest.raises(LedgerError, match=f"has version {number}") as caught:
        open_ledger(file)
    assert "newer sacro-deltab" in str(caught.value.next_step)
    assert file.read_bytes() == before
    with pytest.raises(LedgerError):  # a process that had it open before somebody upgraded it
        file_book.spend(small(0.1), **spend_args())


@pytest.mark.postgres
def test_on_a_server_the_copy_is_in_tables(postgres: str, key: Path) -> None:
    import uuid

    import psycopg

    name = f"ledger_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.format(name="postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")  # type: ignore[arg-type]
    url = postgres.format(name=name)
    book = open_ledger(url, key=key)
    book.spend(small(1.0), **spend_args())
    with book.store.engine.begin() as connection_:  # version 1 is this one without the tables that came later
        for table in ("ledger_cells", "ledger_register", "ledger_tokens", "ledger_steps"):
            connection_.execute(text(f"DROP TABLE {table}"))
        connection_.execute(text("UPDATE ledger_meta SET schema_version = 1"))
    again = open_ledger(url, key=key)
    assert again.verify().ok
    assert again.totals("site-a").epsilon_sum == 1.0
    tables = inspect(again.store.engine).get_table_names()
    assert {"ledger_cells", "ledger_entries_v1", "ledger_meta_v1"} <= set(tables)
