"""Opening a ledger, and making one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import insert, inspect

from ..base.errors import LedgerError
from ..base.version import __version__
from . import schema
from .book import Ledger
from .canonical import GENESIS, body_text, checked_text, utc_text
from .chain import (
    check_anchor,
    insert_entry,
    read_accounts,
    read_head,
    read_identity,
    refuse_foreign,
    sealed,
    state_digest,
)
from .keys import KEY_VARIABLE, Anchor, load_or_create_key
from .migrations import bring_up_to_date
from .store import Store, connect, parse_url
from .values import Entry, Pin


def default_key_path(url: str | Path) -> Path | None:
    """`$SACRO_DELTAB_LEDGER_KEY`, else `FILE.key` beside a SQLite ledger."""
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return Path(named)
    _, file = parse_url(url)
    if file is None:
        return None
    file = file.resolve() if file.is_symlink() else file  # the key lies beside the ledger, not beside a link to it
    return file.with_name(f"{file.name}.key")


def open_ledger(
    url: str | Path,
    *,
    create: bool = True,
    key: str | Path | None = None,
    pins: Iterable[Any] = (),
    read_only: bool = False,
    checked: bool = True,
    who: str = "sacro_deltab",
) -> Ledger:
    """Open a ledger, making it when it is not there.

    Parameters
    ----------
    url
        A path or `sqlite:///FILE`, or `postgresql://USER@HOST/NAME`.
    create
        Make ledger (and key) when missing. With False a missing ledger is an error.
    key
        The private key file that the TRE holds. Default: `$SACRO_DELTAB_LEDGER_KEY`, else `FILE.key` beside a SQLite
        file. A ledger counts only where its id and public key are pinned (`pins`), so a researcher's own key is worth
        nothing.
    pins
        What counts: `Trust.ledgers`, a layer's `ledgers`, or `(id, head_key)` pairs.
    read_only
        Write nothing, not even an upgrade or an anchor.
    checked
        Refuse at once a ledger whose newest entry, totals or anchor do not hold. False is for `verify`, which says
        what exactly is wrong.

    Raises
    ------
    LedgerError
        It cannot be reached, read or trusted, is on a network file system, is newer than this version, or was replaced
        by an older copy.
    """
    path = Path(key) if key is not None else default_key_path(url)
    store = connect(url, create=create, read_only=read_only)
    if create and not read_only:
        _initialise(store, path, who)
    with store.read() as connection:
        beside = schema.foreign(connection)
        if checked:
            refuse_foreign(beside, store.where)
    bring_up_to_date(store)
    with store.read() as connection:
        identity = read_identity(connection, store.where)
    ledger = Ledger(store, identity, path if path is not None and path.is_file() else None, Pin.all_of(pins))
    if checked:
        anchor = ledger.anchor()  # before the entries are read: others may go on spending
        with store.read() as connection:
            head = read_head(connection, identity, store.where)
            read_accounts(connection, head, store.where)
            check_anchor(connection, head, anchor, store.where)
    return ledger


def _initialise(store: Store, key_path: Path | None, who: str) -> None:
    """Make tables and first entry when the database holds none; a no-op otherwise."""
    with store.read() as connection:
        there = inspect(connection).get_table_names()
    if schema.meta.name in there:
        return
    if there and store.sqlite:
        raise LedgerError(
            "this SQLite file holds other tables and no ledger", path=store.where, next_step="Name a file of its own."
        )
    if key_path is None:
        raise LedgerError(
            "a new ledger on a server needs a key",
            path=store.where,
            next_step=f"Name the file to keep it in with --key FILE or in {KEY_VARIABLE}.",
        )
    key = load_or_create_key(key_path, create=True)
    with store.write(making=True) as connection:
        if inspect(connection).has_table(schema.meta.name):
            return
        schema.metadata.create_all(connection)
        ledger_id = uuid4().hex
        values = {"one": 1, "schema_version": schema.SCHEMA_VERSION, "id": ledger_id, "head_key": key.public}
        connection.execute(insert(schema.meta).values(**values))
        entry = Entry(
            ledger=ledger_id,
            seq=1,
            kind="open",
            at=utc_text(datetime.now(UTC)),
            who=checked_text(who, "who"),
            partition=None,
            ref=None,
            token=uuid4().hex,
            body=body_text({"head_key": key.public, "versions": {"sacro_deltab": __version__}}),
            state=state_digest({}),
            prev=GENESIS,
        )
        entry = sealed(key, entry)
        insert_entry(connection, entry)
    anchor = Anchor.beside(key.path, ledger_id)
    with anchor.held() as handle:
        if Anchor.read(handle) is None:  # others may have spent already
            anchor.write(handle, entry.seq, entry.digest)
