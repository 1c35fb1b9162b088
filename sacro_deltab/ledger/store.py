"""Connections and transactions: SQLite (WAL, FULL, immediate) and PostgreSQL (one locked row), the same above them."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from ..base.errors import LedgerError
from ..base.opening import MIB, ordinary
from . import schema
from .probes import refuse_unsafe_place

BUSY_SECONDS = 60
_SERVER_SETTINGS = f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'; SET LOCAL synchronous_commit = on"
_RETRIES = 8
_VALUE_BYTES = 64 * MIB  # one stored value: the fingerprints of four million people
T = TypeVar("T")


@dataclass(frozen=True)
class Store:
    """One database that holds one ledger."""

    engine: Engine
    where: str  # for people: a path, or the URL without its password
    file: Path | None  # SQLite only
    read_only: bool

    @property
    def sqlite(self) -> bool:
        """A file rather than a server."""
        return self.file is not None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the ledger."""
        with self._translated(), self.engine.connect() as connection:
            if not self.sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def write(self, *, making: bool = False) -> Iterator[Connection]:
        """A transaction that nobody else's write can come between.

        SQLite: BEGIN IMMEDIATE. PostgreSQL: the row of `ledger_meta` is locked first (an advisory lock while `making`
        the tables), and each statement after it sees what was committed before.
        """
        if self.read_only:
            raise LedgerError("the ledger was opened for reading only", path=self.where)
        with self._translated(), self.engine.connect() as connection:
            if self.sqlite:
                connection = connection.execution_options(deltab_write=True)
            with connection.begin():
                if not self.sqlite:
                    connection.exec_driver_sql(_SERVER_SETTINGS)
                    if making:
                        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7315029104)")
                    else:
                        connection.execute(select(schema.meta.c.one).with_for_update())
                yield connection

    def retried(self, act: Callable[[bool], T]) -> T:
        """Run `act` again when the server broke a transaction off (serialisation, deadlock, lost connection).

        `act` is told whether this is a further try; then it must look for its own earlier success first (entries carry
        a token), so that nothing is counted twice.
        """
        for attempt in range(_RETRIES):
            try:
                return act(attempt > 0)
            except LedgerError as error:
                cause = error.__cause__
                if not (isinstance(cause, DBAPIError) and _transient(cause)) or attempt == _RETRIES - 1:
                    raise
                time.sleep(random.uniform(0.01, 0.05) * 2**attempt)  # spread, no secret
        raise AssertionError("unreachable")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise translate(error, self.where, self.read_only) from error
        except sqlite3.Error as error:
            raise translate(error, self.where, self.read_only) from error
        except UnicodeDecodeError as error:  # damaged names or texts: the driver cannot even say so
            raise LedgerError(
                "the ledger file is damaged",
                path=self.where,
                next_step="Restore it from its backup, then run `ledger verify`.",
            ) from error


def _transient(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        return error.connection_invalidated
    return state in {"40001", "40P01", "55P03"} or state.startswith(("08", "57P"))


_MEANINGS = (  # part of the driver's message → what it means to a reader, and what to do
    ("readonly", "the ledger cannot be written", "Check the permissions of the file and its folder."),
    ("read-only", "the ledger cannot be written", "Check the permissions of the file and its folder."),
    ("unable to open", "the ledger cannot be opened", "Check the path and the permissions of the file and its folder."),
    ("is locked", "another process holds the ledger and did not let go in time", "Try again when it has finished."),
    ("is full", "the disk is full; nothing was written", "Free some space; the ledger is unharmed."),
    (
        "i/o error",
        "the disk did not take the write (full or failing); nothing was written",
        "Free some space or check it.",
    ),
    (
        "not a database",
        "this file is not a ledger",
        "Check the path; restore the ledger from its backup if it was one.",
    ),
    ("too big", "the ledger was changed: a value is larger than any ledger writes", "Restore the newest copy."),
    ("malformed", "the ledger file is damaged or cut short", "Restore it from its backup, then run `ledger verify`."),
    ("no such table", "this database holds no ledger", "Make one with `sacro-deltab ledger open`."),
    ("no such column", "this database holds no ledger of this kind", "Check the path."),
    ("does not exist", "this database holds no ledger, or does not exist", "Make one with `sacro-deltab ledger open`."),
    ("password authentication", "the server does not accept this user", "Check the URL's user and password."),
    ("connection", "the ledger's server cannot be reached", "Check the URL and that the server runs."),
)


def translate(error: Exception, where: str, read_only: bool = False) -> LedgerError:
    """The driver's complaint as one of ours. The driver's own words may hold values, so they stay inside."""
    original = getattr(error, "orig", None) or error
    text = str(original).lower()
    for part, what, next_step in _MEANINGS:
        if part in text:
            if part == "unable to open" and read_only:
                what = "the ledger does not exist or cannot be opened"
            return LedgerError(what, path=where, next_step=next_step, inside=str(original))
    return LedgerError(
        f"the ledger's database refused ({type(original).__name__})",
        path=where,
        next_step="Run `sacro-deltab ledger verify`.",
        inside=str(original),
    )


def parse_url(url: str | Path) -> tuple[URL | None, Path | None]:
    """(server URL, None) for PostgreSQL or (None, file) for SQLite. A plain path is a SQLite file."""
    text = os.fspath(url)
    if "://" not in text:
        if not Path(text).name or re.match(r"[A-Za-z][A-Za-z0-9+]+:", text):
            raise LedgerError(
                "this is neither a file nor a ledger URL",
                next_step="Use budget.db, sqlite:///budget.db or postgresql://HOST/NAME.",
            )
        return None, Path(text)
    try:
        parsed = make_url(text)
    except ArgumentError as error:
        raise LedgerError(
            "this ledger URL cannot be read", next_step="Use budget.db, sqlite:///budget.db or postgresql://HOST/NAME."
        ) from error
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        if parsed.database in (None, "", ":memory:") or "mode=memory" in text:
            raise LedgerError("a ledger in memory forgets; it must be a file", next_step="Use sqlite:///budget.db.")
        if parsed.query or (parsed.database or "").startswith("file:"):
            raise LedgerError("a SQLite ledger URL has no options", next_step="Use sqlite:///budget.db.")
        return None, Path(str(parsed.database))
    if kind in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg"), None
    raise LedgerError(f"a ledger cannot be kept in {kind!r}", next_step="Use a SQLite file or postgresql://HOST/NAME.")


def connect(url: str | Path, *, create: bool, read_only: bool) -> Store:
    """Open the database. SQLite files are made with mode 0600 when `create`; servers' databases must exist."""
    server, file = parse_url(url)
    if file is None:
        assert server is not None
        try:
            engine = create_engine(
                server, pool_size=1, pool_pre_ping=True, isolation_level="READ COMMITTED", use_native_hstore=False
            )
        except (NoSuchModuleError, ImportError) as error:
            step = "pip install 'sacro-deltab[postgres]'."
            raise LedgerError("the PostgreSQL driver is missing", next_step=step) from error
        _forget_in_children(engine)
        return Store(engine, server.render_as_string(hide_password=True), None, read_only)
    if file.is_dir():
        raise LedgerError("this is a folder, not a ledger file", path=file, next_step="Name a file, such as budget.db.")
    if not file.parent.is_dir():
        raise LedgerError("the ledger's folder does not exist", path=file, next_step="Make the folder first.")
    if not file.exists() and not (create and not read_only):
        raise LedgerError("there is no ledger here", path=file, next_step="Make one with `sacro-deltab ledger open`.")
    if file.exists():
        ordinary(file)  # SQLite would wait for ever for whoever holds the other end of a pipe
    refuse_unsafe_place(file.resolve())
    if not file.exists():
        _make_private(file)
    return Store(_sqlite_engine(file.resolve(), read_only), str(file), file, read_only)


def _forget_in_children(engine: Engine) -> None:
    """A forked child must not talk on its parent's connection."""
    if hasattr(os, "register_at_fork"):
        known = weakref.ref(engine)

        def forget() -> None:
            parents = known()
            if parents is not None:
                parents.dispose(close=False)

        os.register_at_fork(after_in_child=forget)


def _make_private(file: Path) -> None:
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise LedgerError(f"the ledger cannot be made ({error.strerror})", path=file) from error


def _sqlite_engine(file: Path, read_only: bool) -> Engine:
    mode = "ro" if read_only else "rw"
    address = f"file:{quote(str(file))}?mode={mode}"

    def open_file() -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
            cursor = connection.cursor()
            cursor.execute("PRAGMA trusted_schema=OFF")  # the file's own views and triggers run nothing
            if read_only:
                return _readable(connection, file)
            _write_ahead(cursor, file)
            cursor.execute("PRAGMA synchronous=FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=open_file, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("deltab_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _readable(connection: sqlite3.Connection, file: Path) -> sqlite3.Connection:
    """The connection, or where the folder cannot be written either, one that takes the file as frozen.

    A write-ahead log needs a shared file beside the ledger even for reading. Without an unfinished log there is nothing
    in it to miss.
    """
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        log = file.with_name(f"{file.name}-wal")
        if not any(words in str(error) for words in ("unable to open", "readonly")) or (
            log.exists() and log.stat().st_size
        ):
            raise
        connection.close()
        return sqlite3.connect(f"file:{quote(str(file))}?mode=ro&immutable=1", uri=True, isolation_level=None)
    return connection


def _write_ahead(cursor: sqlite3.Cursor, file: Path) -> None:
    """Switch to the write-ahead log; SQLite does not wait for others while it switches, so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            journal = cursor.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if journal != "wal":
            raise LedgerError(
                f"SQLite cannot use a write-ahead log here (it stayed with {journal!r})",
                path=file,
                next_step="Keep the ledger on a local disk, or use a PostgreSQL ledger.",
            )


def row_dict(row: Any) -> dict[str, Any]:
    """A row as a plain dictionary."""
    return dict(row._mapping)
