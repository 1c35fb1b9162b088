"""An opened ledger: which one it is, its store and its key. What is done with it stands in the files that take it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select

from ..base.errors import LedgerError
from . import schema
from .canonical import partition_key
from .chain import Identity, entry_of, read_head
from .keys import KEY_VARIABLE, Anchor, LedgerKey, load_or_create_key
from .store import Store
from .values import Entry, Pin


class Handle:
    """Store, identity and key of one ledger."""

    def __init__(self, store: Store, identity: Identity, key_path: Path | None, pins: frozenset[Pin]) -> None:
        self.store = store
        self.identity = identity
        self._key_path = key_path
        self._key: LedgerKey | None = None
        self._pins = pins

    @property
    def id(self) -> str:
        """32 hex digits, drawn when the ledger was made."""
        return self.identity.id

    @property
    def head_key(self) -> str:
        """Ed25519 public key (64 hex digits) under which every entry is signed."""
        return self.identity.head_key

    @property
    def where(self) -> str:
        """Path or URL for people, without a password."""
        return self.store.where

    @property
    def pinned(self) -> bool:
        """True when a trust file or layer given at opening names this id and head key."""
        return Pin(self.id, self.head_key) in self._pins

    @property
    def head(self) -> str:
        """Digest of the newest entry, checked."""
        return self._checked_head().digest

    def pin(self) -> Pin:
        """What a TRE writes into its trust file or layer to make this ledger count."""
        return Pin(self.id, self.head_key)

    def signing_key(self) -> LedgerKey:
        """The private key; a ledger without it can be read and verified, not spent from."""
        if self._key is None:
            if self._key_path is None:
                raise LedgerError(
                    "this ledger's key was not given, so nothing can be spent",
                    path=self.where,
                    next_step=f"Give the TRE's key with --key FILE or in {KEY_VARIABLE}.",
                )
            key = load_or_create_key(self._key_path, create=False)
            if key.public != self.head_key:
                raise LedgerError("this key is not the one that the ledger was made with", path=self._key_path)
            self._key = key
        return self._key

    def history(self, partition: str | None = None, *, unit: str = "person") -> list[Entry]:
        """All entries in order, or those of one partition."""
        query = select(schema.entries).order_by(schema.entries.c.seq)
        if partition is not None:
            query = query.where(schema.entries.c.partition == partition_key(partition, unit))
        with self.store.read() as connection:
            return [entry_of(row, self.id) for row in connection.execute(query)]

    def _checked_head(self) -> Entry:
        with self.store.read() as connection:
            return read_head(connection, self.identity, self.where)

    def anchor(self) -> tuple[int, str] | None:
        """(entry, digest) that the file beside the key remembers, or None without one."""
        return None if self._key_path is None else Anchor.beside(self._key_path, self.id).peek()
