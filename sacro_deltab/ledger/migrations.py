"""Upgrades of older ledgers: a copy first, then one transaction. Newer ledgers are refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, text, update

from ..base.errors import LedgerError
from . import schema
from .chain import read_identity
from .store import Store


def _add_cells(connection: Connection) -> None:
    """1 → 2: published cells are remembered, so that later releases can be differenced against them."""
    schema.cells.create(connection)


def _add_register(connection: Connection) -> None:
    """2 → 3: cohorts that TRE staff registered from the source table."""
    for table in (schema.register, schema.tokens, schema.steps):
        table.create(connection)


MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: _add_cells, 2: _add_register}  # version → step to the next
_FIRST = ("ledger_meta", "ledger_entries", "ledger_partitions", "ledger_cohorts")
_TABLES_OF = {1: _FIRST, 2: (*_FIRST, "ledger_cells")}


def bring_up_to_date(store: Store) -> Path | str | None:
    """Upgrade an older ledger; say where the copy of it is, or None when there was nothing to do.

    SQLite: `FILE.v1-20260101T120000Z.bak` beside the file. PostgreSQL: tables `NAME_v1` in the same schema.

    Raises
    ------
    LedgerError
        The ledger is newer than this program, or older and opened for reading only.
    """
    with store.read() as connection:
        version = read_identity(connection, store.where).schema_version
    refuse_newer(version, store.where)
    if version == schema.SCHEMA_VERSION:
        return None
    if store.read_only:
        raise LedgerError(
            f"this ledger is of version {version} and has to be upgraded to {schema.SCHEMA_VERSION}",
            path=store.where,
            next_step="Open it once for writing: `sacro-deltab ledger open --ledger ...`.",
        )
    with store.write() as connection:
        version = read_identity(connection, store.where).schema_version
        refuse_newer(version, store.where)
        if version == schema.SCHEMA_VERSION:  # another process was faster
            return None
        copy = _copied(store, connection, version)
        for step in range(version, schema.SCHEMA_VERSION):
            MIGRATIONS[step](connection)
        connection.execute(update(schema.meta).values(schema_version=schema.SCHEMA_VERSION))
    return copy


def refuse_newer(version: int, where: str) -> None:
    """Raise LedgerError for a version that this program does not know."""
    if version > schema.SCHEMA_VERSION or version < 1:
        raise LedgerError(
            f"this ledger has version {version}; this program knows versions 1 to {schema.SCHEMA_VERSION}",
            path=where,
            next_step="Use a newer sacro-deltab. Nothing was written.",
        )


def _copied(store: Store, connection: Connection, version: int) -> Path | str:
    """Copy the ledger as it was; the caller holds the write lock, so nothing changes meanwhile."""
    if store.file is None:
        for name in _TABLES_OF[version]:
            connection.execute(text(f"CREATE TABLE {name}_v{version} AS TABLE {name}"))
        return f"tables *_v{version}"
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    copy = store.file.with_name(f"{store.file.name}.v{version}-{stamp}.bak")
    if copy.exists():
        raise LedgerError("the copy to be made before upgrading is there already", path=copy)
    copy.touch(mode=0o600)
    source = sqlite3.connect(f"file:{store.file}?mode=ro", uri=True)
    with closing(source), closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy
