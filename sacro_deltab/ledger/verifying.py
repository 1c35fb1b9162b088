"""Re-reading the whole ledger: chain, signatures, sums, order, anchor and the heads that certificates carry."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, select

from ..base.digests import is_sha256, sha256_hex
from ..base.errors import InputError
from ..base.strict import parse
from . import schema
from .canonical import GENESIS, checked_digest, cohort_of
from .chain import Account, entry_of, shared_total, sums_digest
from .handle import Handle
from .keys import SignatureChecker
from .people import unlinked
from .releases import cells_digest
from .store import row_dict
from .tally import request_of
from .values import Entry, Problem, VerifyReport


class _Replay:
    """What the sums must be, recomputed from the entries alone."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.texts: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._state: str | None = None
        self.problems: list[Problem] = []
        self.spends: dict[int, str] = {}
        self.drawn: set[int] = set()
        self.closed: set[int] = set()
        self.sealed: set[int] = set()

    def apply(self, entry: Entry) -> None:
        """Follow one entry."""
        body = parse(entry.body)
        if entry.kind == "spend" and entry.partition:
            self._spend(entry, body)
        elif entry.kind in ("draw", "attach", "close"):
            self._follow(entry, body)
        elif entry.kind == "cohort" and entry.partition:
            for name in body["links"]:
                self._link(entry.partition, name)
        elif entry.kind == "disjoint":
            for name, account in unlinked(self.accounts, body["cohorts"]).items():
                self._put(name, account)
        if self._state is None:
            self._state = sums_digest(self._digests)
        if self._state != entry.state:
            self.problems.append(Problem(entry.seq, "the totals it vouches for are not those of the entries before it"))

    def _spend(self, entry: Entry, body: dict[str, object]) -> None:
        name = str(entry.partition)
        request, limits = request_of(body)
        account = self.accounts.get(name, Account())
        twins = {f"{cohort_of(name)}/{unit}" for unit in ("person", "row")} - {name}
        for twin in sorted(twins & self.accounts.keys()):
            account = replace(account, links=tuple(sorted({*account.links, twin})))
        before = shared_total(self.accounts, name, account)
        if body["before"] != before.to_json() or body["after"] != before.plus(request).to_json():
            self.problems.append(Problem(entry.seq, "its totals before and after do not add up"))
        self._put(name, replace(account, own=account.own.plus(request), limits=limits))
        for other in account.links:
            self._link(other, name, both=False)
        self.spends[entry.seq] = str(body["draws"])

    def _follow(self, entry: Entry, body: dict[str, object]) -> None:
        ref = entry.ref or 0
        seen = self.closed if entry.kind == "close" else self.drawn
        if "sealed" in body:
            self.sealed.add(ref)
        again = ref in seen and not (entry.kind == "close" and ref in self.sealed)
        if ref not in self.spends or again:
            self.problems.append(Problem(entry.seq, f"a {entry.kind} entry without a spend that allows it"))
        seen.add(ref)

    def _link(self, one: str, other: str, *, both: bool = True) -> None:
        pairs = ((one, other), (other, one)) if both else ((one, other),)
        for name, linked in pairs:
            account = self.accounts.get(name, Account())
            self._put(name, replace(account, links=tuple(sorted({*account.links, linked}))))

    def _put(self, name: str, account: Account) -> None:
        self.accounts[name] = account
        self.texts[name] = account.text()
        self._digests[name] = sha256_hex(self.texts[name])
        self._state = None


def verify(
    ledger: Handle, expected_heads: tuple[str, ...] = (), progress: Callable[[int], None] | None = None
) -> VerifyReport:
    """Read every entry and say what is wrong; see `docs/ledger.md` for what this can and cannot find.

    Parameters
    ----------
    expected_heads
        Head digests (SHA-256 hex) that certificates carry. One that is not in the chain means that the ledger was put
        back to an older copy, or that the certificate rests on another one.
    progress
        Called with the number of entries read so far, every 1,000 entries.
    """
    expected = [checked_digest(head, "an expected head") for head in expected_heads]
    anchor, notes = ledger.anchor(), []  # before the entries are read: others may go on spending
    with ledger.store.read() as connection:
        replay, last, count, digests = _replayed(connection, ledger, progress)
        stored = {row.partition: row.tally for row in connection.execute(select(schema.partitions))}
        extra = [*_table_problems(connection), *_people_problems(connection), *_cell_problems(connection)]
    problems = replay.problems + extra
    if stored != replay.texts:
        problems.append(Problem(None, "the stored totals are not those of the entries"))
    missing = [head for head in expected if head not in digests]
    for head in missing:
        problems.append(Problem(None, f"a certificate names the head {head[:16]}…, which is not in this ledger"))
    if anchor is None:
        notes.append("no anchor at hand: an older copy put back would be found only through a certificate")
    elif digests.get(anchor[1]) != anchor[0]:
        problems.append(Problem(None, f"its key has signed an entry {anchor[0]} that is not here"))
    orphans = tuple(seq for seq in replay.spends if seq not in replay.closed)
    return VerifyReport(
        ledger.id, ledger.head_key, count, last, tuple(problems), tuple(notes), orphans, ledger.pinned
    )  # fmt: skip


def _body(text: str) -> dict[str, object]:
    """A body that cannot be read was reported already."""
    try:
        body = parse(text)
    except InputError:
        return {}
    return body if isinstance(body, dict) else {}


def _people_problems(connection: Connection) -> list[Problem]:
    """Registered sets of people against the entries that name them; one set in memory at a time."""
    table, entries = schema.cohorts, schema.entries
    rows = {(r.partition, r.digest): (sha256_hex(r.people), r.seq) for r in connection.execute(select(table))}
    problems = []
    named: dict[tuple[str, object], int] = {}
    registered: dict[int, Mapping[str, Any]] = {}
    for entry in connection.execute(select(entries).where(entries.c.kind == "cohort").order_by(entries.c.seq)):
        body = _body(entry.body)
        digest, staff = body.get("set"), body.get("register")
        if isinstance(staff, dict):
            registered[entry.seq] = staff
        if digest is not None:
            first = named.setdefault((entry.partition, digest), entry.seq)
            if rows.get((entry.partition, str(digest))) != (digest, first):
                problems.append(Problem(entry.seq, "the fingerprints of its people were changed"))
    if rows.keys() - named:
        problems.append(Problem(None, "there are fingerprints of people that no entry registered"))
    return problems + _register_problems(connection, registered)


def _register_problems(connection: Connection, entries: Mapping[int, Mapping[str, Any]]) -> list[Problem]:
    """Registered versions against the entries that vouch for them; what was forgotten is not missed."""
    rows = {row.seq: row for row in connection.execute(select(schema.register))}
    table, tokens = schema.tokens, dict[tuple[str, int], Any]()
    for part in connection.execute(select(table).order_by(table.c.partition, table.c.version, table.c.number)):
        tokens.setdefault((part.partition, part.version), sha256()).update(part.tokens)
    problems = [Problem(seq, "the register holds a cohort that this entry did not") for seq in rows.keys() - entries]
    for seq, body in entries.items():
        row = rows.get(seq)
        made = None if row is None else tokens.pop((row.partition, row.version), None)
        columns = None if row is None else row.columns
        same = columns is None or sha256_hex(columns) == body.get("columns")
        same &= made is None or made.hexdigest() == body.get("tokens")
        if row is None or row.version != body.get("version") or not same:
            problems.append(Problem(seq, "what the register holds of its cohort was changed"))
    if tokens:
        problems.append(Problem(None, "there are tokens of people that no entry registered"))
    return problems


def _cell_problems(connection: Connection) -> list[Problem]:
    """Remembered cells against the release entries that vouch for them; those of one release in memory at a time."""
    table, entries = schema.cells, schema.entries
    query = select(table).order_by(table.c.seq, table.c.number)
    stored = {
        seq: cells_digest(map(row_dict, rows))
        for seq, rows in groupby(connection.execute(query), key=lambda row: row.seq)
    }
    problems, none = [], cells_digest(())
    for entry in connection.execute(select(entries).where(entries.c.kind == "release").order_by(entries.c.seq)):
        if stored.pop(entry.seq, none) != _body(entry.body).get("cells_sha256"):
            problems.append(Problem(entry.seq, "its cells were changed"))
    if stored:
        problems.append(Problem(None, "there are cells that no entry released"))
    return problems


def _table_problems(connection: Connection) -> list[Problem]:
    """What stands beside the ledger's own tables, and the number of its one row."""
    found = [Problem(None, f"it holds what no ledger makes: {what}") for what in schema.foreign(connection)]
    if connection.execute(select(schema.meta.c.one)).scalars().all() != [1]:
        found.append(Problem(None, "the number of the row about itself was changed"))
    return found


def _replayed(
    connection: Connection, ledger: Handle, progress: Callable[[int], None] | None
) -> tuple[_Replay, str, int, dict[str, int]]:
    replay, checker = _Replay(), SignatureChecker(ledger.head_key)
    problems = replay.problems
    last, at, seq, digests = GENESIS, "", 0, {}
    for entry in _entries(connection, ledger.id):
        seq += 1
        if entry.seq != seq:
            problems.append(Problem(seq, f"is missing (entry {entry.seq} follows)"))
            seq = entry.seq
        if entry.prev != last:
            problems.append(Problem(entry.seq, "does not follow the entry before it"))
        if entry.computed_digest() != entry.digest:
            problems.append(Problem(entry.seq, "was changed"))
        elif not checker.holds(entry.digest, entry.signature):
            problems.append(Problem(entry.seq, "is not signed by the ledger's key"))
        if entry.at < at:
            problems.append(Problem(entry.seq, "is dated before the entry before it"))
        if (entry.kind == "open") != (entry.seq == 1):
            problems.append(
                Problem(entry.seq, "opens the ledger a second time" if seq > 1 else "does not open the ledger")
            )
        try:
            replay.apply(entry)
        except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, InputError):
            problems.append(Problem(entry.seq, "cannot be read"))
        last, at = entry.digest, entry.at
        digests[entry.digest] = entry.seq
        if progress is not None and seq % 1000 == 0:
            progress(seq)
    if seq == 0:
        problems.append(Problem(None, "all entries are missing"))
    return replay, last, seq, digests


def _entries(connection: Connection, ledger_id: str) -> Iterable[Entry]:
    query = select(schema.entries).order_by(schema.entries.c.seq)
    for row in connection.execution_options(yield_per=2000).execute(query):
        yield entry_of(row, ledger_id)


def heads_in(document: object, ledger_id: str) -> list[str]:
    """Head digests that a certificate, its signed envelope or a session's evidence names for one ledger.

    Looks for objects that hold the ledger's id under `id`, `ledger_id` or `ledger`, and takes every 64-digit text in
    them whose name starts with `head` (except `head_key`). An envelope's payload is opened.
    """
    found: list[str] = []
    todo: list[object] = [document]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo.extend(item)
        elif isinstance(item, dict):
            todo.extend(item.values())
            payload = item.get("payload")
            if isinstance(payload, str) and "payloadType" in item:
                todo.append(_payload(payload))
            if ledger_id in (item.get("id"), item.get("ledger_id"), item.get("ledger")):
                found += [v for k, v in item.items() if k.startswith("head") and k != "head_key" and is_sha256(v)]
    return list(dict.fromkeys(found))


def _payload(text: str) -> object:
    try:
        return parse(base64.b64decode(text, validate=True))
    except (ValueError, InputError):
        return None
