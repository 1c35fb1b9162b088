"""Reading the head, checking what a spend rests on, and appending.

A spend does not read 100,000 entries. It checks the newest one (digest, signature, anchor), and that entry vouches for
the running sums of every partition through its `state`. Each signer checked the entry before in the same way, so by
induction the sums under a good head are those of honest spends; `verify` re-reads every entry.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from ..base.canonical import canonical_line
from ..base.digests import is_sha256, sha256_hex
from ..base.errors import LedgerError
from ..base.strict import parse
from ..privacy.spend import BudgetLimits
from . import schema
from .canonical import body_text, utc_text
from .keys import Anchor, LedgerKey, SignatureChecker
from .store import Store, row_dict
from .tally import Tally, total
from .values import Entry

_ID = re.compile(r"[0-9a-f]{32}")
CLOCK_SKEW = timedelta(minutes=5)  # between machines that share a PostgreSQL ledger


@dataclass(frozen=True)
class Account:
    """Running sums of one partition, the partitions it shares people with, and the limits last applied."""

    own: Tally = field(default_factory=Tally)
    links: tuple[str, ...] = ()
    limits: BudgetLimits | None = None

    def text(self) -> str:
        """As stored."""
        limits = None if self.limits is None else vars(self.limits)
        return canonical_line({"limits": limits, "links": list(self.links), "own": self.own.to_json()})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Account:
        """Inverse of `text`, parsed."""
        limits = data["limits"]
        return cls(
            Tally.from_json(data["own"]), tuple(data["links"]), None if limits is None else BudgetLimits(**limits)
        )


# Built once: SQLAlchemy takes longer to build such a statement than SQLite to run it.
_NEW_ENTRY = insert(schema.entries)
_NEW_SUMS = update(schema.partitions).where(schema.partitions.c.partition == bindparam("name"))
_NEW_SUMS = _NEW_SUMS.values(tally=bindparam("tally"))


class Accounts(Mapping[str, Account]):
    """Running sums of every partition, each read when it is asked for: a spend needs one or two of them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self._read: dict[str, Account] = {}

    def __getitem__(self, name: str) -> Account:
        if name not in self._read:
            self._read[name] = Account.of(parse(self.texts[name]))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, name: object) -> bool:
        return name in self.texts

    def put(self, name: str, account: Account) -> str:
        """Replace one; return its text."""
        self._read[name] = account
        self.texts[name] = account.text()
        return self.texts[name]


def state_digest(texts: Mapping[str, str]) -> str:
    """Digest of all partitions' stored texts."""
    return sums_digest({name: sha256_hex(text) for name, text in texts.items()})


def sums_digest(digests: Mapping[str, str]) -> str:
    """The same from each text's SHA-256, for who keeps those. Names hold no blanks, so the lines cannot be confused."""
    return sha256_hex("\n".join(f"{name} {digest}" for name, digest in sorted(digests.items())))


def shared_total(accounts: Mapping[str, Account], partition: str, account: Account | None = None) -> Tally:
    """What counts against a spend on `partition`: its own sum and that of each partition that shares people with it.

    Nobody in the partition can have been in any other partition, so nobody's total is above this sum. `account` stands
    in for the one stored.
    """
    mine = account or accounts.get(partition) or Account()
    others = sorted({*mine.links} - {partition})
    return total([mine.own, *(accounts[name].own for name in others if name in accounts)])


@dataclass(frozen=True)
class Identity:
    """Who a ledger is, as its own file says (a pin must agree before it counts)."""

    id: str
    head_key: str
    schema_version: int


def read_identity(connection: Connection, where: str) -> Identity:
    """The single row of `ledger_meta`."""
    rows = connection.execute(select(schema.meta)).all()
    if len(rows) != 1:
        raise LedgerError("this database does not hold exactly one ledger", path=where)
    row = rows[0]
    if not (_ID.fullmatch(row.id) and is_sha256(row.head_key)):
        raise LedgerError("this database holds no ledger: its name or its key has another form", path=where)
    return Identity(row.id, row.head_key, row.schema_version)


def entry_of(row: Any, ledger: str) -> Entry:
    """A stored row as an entry of this ledger."""
    return Entry(ledger=ledger, **row_dict(row))


def read_head(connection: Connection, identity: Identity, where: str) -> Entry:
    """The newest entry, checked by itself: digest, signature and that no number is missing below it."""
    row = connection.execute(select(schema.entries).order_by(schema.entries.c.seq.desc()).limit(1)).first()
    if row is None:
        raise LedgerError("the ledger has lost all its entries", path=where, next_step="Restore it from its backup.")
    head = entry_of(row, identity.id)
    if head.computed_digest() != head.digest or not SignatureChecker(identity.head_key).holds(
        head.digest, head.signature
    ):
        raise _changed(where, f"entry {head.seq} is not what the ledger's key signed")
    return head


def read_accounts(connection: Connection, head: Entry, where: str) -> Accounts:
    """All running sums, checked against the head's `state`."""
    rows = connection.execute(select(schema.partitions)).all()
    texts = {row.partition: row.tally for row in rows}
    if state_digest(texts) != head.state:
        raise _changed(where, "the running totals are not those of the newest entry")
    return Accounts(texts)


def check_anchor(connection: Connection, head: Entry, anchor: tuple[int, str] | None, where: str) -> None:
    """Refuse a ledger that has forgotten an entry its key has signed."""
    if anchor is None or anchor == (head.seq, head.digest):
        return
    seq, digest = anchor
    found = connection.execute(select(schema.entries.c.digest).where(schema.entries.c.seq == seq)).scalar()
    if found != digest:
        raise _changed(
            where, f"its key has signed an entry {seq} that is not here: an older or another copy was put back"
        )


def refuse_foreign(beside: list[str], where: str) -> None:
    """Refuse a ledger that something stands beside (`schema.foreign`): a trigger would change what is written."""
    if beside:
        raise _changed(where, f"it holds what no ledger makes ({beside[0]})")


def _changed(where: str, what: str) -> LedgerError:
    return LedgerError(
        f"the ledger was changed: {what}",
        path=where,
        next_step="Spend nothing; run `sacro-deltab ledger verify` and restore the newest copy.",
    )


class Writer:
    """One write transaction: the checked head, the checked sums, and `append`."""

    def __init__(self, connection: Connection, identity: Identity, key: LedgerKey, where: str) -> None:
        self.connection = connection
        self.identity = identity
        self.where = where
        self._key = key
        self.head = read_head(connection, identity, where)
        self.accounts = read_accounts(connection, self.head, where)
        self._digests = {name: sha256_hex(text) for name, text in self.accounts.texts.items()}

    def append(
        self,
        kind: str,
        body: Mapping[str, Any],
        *,
        who: str,
        partition: str | None = None,
        ref: int | None = None,
        token: str | None = None,
        accounts: Mapping[str, Account] | None = None,
    ) -> Entry:
        """Write one entry and the running sums that change with it (`accounts`)."""
        for name, account in (accounts or {}).items():
            self._store(name, account)
        entry = sealed(
            self._key,
            Entry(
                ledger=self.identity.id,
                seq=self.head.seq + 1,
                kind=kind,
                at=_now_after(self.head, self.where),
                who=who,
                partition=partition,
                ref=ref,
                token=token or uuid.uuid4().hex,
                body=body_text(body),
                state=sums_digest(self._digests),
                prev=self.head.digest,
            ),
        )
        insert_entry(self.connection, entry)
        self.head = entry
        return entry

    def _store(self, name: str, account: Account) -> None:
        text = self.accounts.put(name, account)
        known = name in self._digests
        if known:
            self.connection.execute(_NEW_SUMS, {"name": name, "tally": text})
        else:
            self.connection.execute(insert(schema.partitions), {"partition": name, "tally": text})
        self._digests[name] = sha256_hex(text)

    def by_token(self, token: str) -> Entry | None:
        """The entry that an earlier try of the same act has left."""
        row = self.connection.execute(select(schema.entries).where(schema.entries.c.token == token)).first()
        return None if row is None else entry_of(row, self.identity.id)


def sealed(key: LedgerKey, entry: Entry) -> Entry:
    """With digest and signature."""
    digest = entry.computed_digest()
    return replace(entry, digest=digest, signature=key.sign(digest))


def insert_entry(connection: Connection, entry: Entry) -> None:
    """Store a sealed entry."""
    values = {k: v for k, v in vars(entry).items() if k != "ledger"}
    connection.execute(_NEW_ENTRY, values)


def _now_after(head: Entry, where: str) -> str:
    """Now, never before the newest entry; a clock that is far behind it is refused."""
    now = datetime.now(UTC)
    if utc_text(now + CLOCK_SKEW) < head.at:
        raise LedgerError(
            f"this machine's clock is behind the ledger's newest entry ({head.at}); nothing was written",
            path=where,
            next_step="Set the clock right.",
        )
    return max(utc_text(now), head.at)


@contextmanager
def writing(store: Store, identity: Identity, key: LedgerKey) -> Iterator[Writer]:
    """Lock anchor and ledger, check both, let the caller append, commit, then move the anchor.

    The anchor moves before control returns, so a caller who may draw noise is always covered by it.
    """
    anchor = Anchor.beside(key.path, identity.id)
    with anchor.held() as handle:
        with store.write() as connection:
            if read_identity(connection, store.where) != identity:
                raise _changed(store.where, "its id, key or version is not what it was when this process opened it")
            refuse_foreign(schema.foreign(connection), store.where)
            writer = Writer(connection, identity, key, store.where)
            check_anchor(connection, writer.head, Anchor.read(handle), store.where)
            yield writer
            head = writer.head
        anchor.write(handle, head.seq, head.digest)


def count_entries(connection: Connection) -> int:
    """Number of entries stored."""
    return int(connection.execute(select(func.count()).select_from(schema.entries)).scalar_one())
