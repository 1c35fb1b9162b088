"""Which numbers left, on which people: what a later release can be subtracted from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from ..base.canonical import canonical_line
from ..base.digests import sha256_hex
from ..base.errors import InputError
from ..base.strict import parse
from . import schema
from .canonical import checked_digest, checked_text, cohort_of, partition_key
from .chain import entry_of, writing
from .handle import Handle
from .people import declarations, fingerprints, last_set, unpacked
from .values import EarlierCell, EarlierCells, Entry, Gap, Release, ReleaseCell


def _printable(text: object) -> str:
    """A label as given, with anything a database cannot hold written out."""
    plain = str(text).encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
    if len(plain) > 1000:
        raise InputError("a cell's label is longer than 1000 characters")
    return plain


@dataclass(frozen=True)
class Leaving:
    """An output that leaves: its cells, their true N, their people (as registered) and published values."""

    output: str
    kind: str
    cells: Sequence[ReleaseCell]
    sha256: str | None = None


def record_releases(ledger: Handle, partition: str, leaving: Sequence[Leaving], *, who: str, unit: str) -> list[Entry]:
    """See `Ledger.record_releases`."""
    name, who = partition_key(partition, unit), checked_text(who, "who")
    heads = [
        {
            "kind": checked_text(one.kind, "the kind of output"),
            "output": checked_text(one.output, "an output's name", longest=400),
            "sha256": None if one.sha256 is None else checked_digest(one.sha256),
        }
        for one in leaving
    ]
    key = ledger.signing_key()
    members = [[None if c.members is None else set(fingerprints(key, c.members)) for c in one.cells] for one in leaving]
    entries = []
    with writing(ledger.store, ledger.identity, key) as writer:
        known = any(m is not None for some in members for m in some)
        people, order = _order(writer.connection, name) if known else (None, [])
        for head, one, some in zip(heads, leaving, members, strict=True):
            digest = people if any(m is not None for m in some) else None
            rows = [_row(i, c, m, digest, order) for i, (c, m) in enumerate(zip(one.cells, some, strict=True))]
            body = {**head, "cells": len(rows), "cells_sha256": cells_digest(rows), "people": digest}
            entries.append(writer.append("release", body, who=who, partition=name))
            if rows:
                new = [{"seq": entries[-1].seq, **row} for row in rows]
                writer.connection.execute(insert(schema.cells), new)
    return entries


def _order(connection: Connection, name: str) -> tuple[str, list[bytes]]:
    digest = last_set(connection, name)
    if digest is None:
        raise InputError(
            "a release on known people needs their cohort registered first", next_step="Call register_cohort with ids."
        )
    table = schema.cohorts
    block = connection.execute(
        select(table.c.people).where(table.c.partition == name, table.c.digest == digest)
    ).scalar_one()
    return digest, unpacked(block)


def _row(
    number: int, cell: ReleaseCell, members: set[bytes] | None, digest: str | None, order: Sequence[bytes]
) -> dict[str, Any]:
    if isinstance(cell.n, bool) or int(cell.n) != cell.n or cell.n < 0:
        raise InputError(f"cell {number}: n must be a whole number of people")
    mask = None
    if members is not None:
        if not members.issubset(order):
            raise InputError(
                f"cell {number} holds people who are not in the registered cohort",
                next_step="Another session may have registered the cohort with other people since. Give each set of "
                "people a cohort name of its own.",
            )
        if len(members) != cell.n:
            raise InputError(f"cell {number}: n is not the number of its people")
        mask = mask_of(members, order).to_bytes((len(order) + 7) // 8, "big")
    return {
        "number": number,
        "key": _printable(cell.key),
        "n": int(cell.n),
        "published": canonical_line(
            {_printable(k): _printable(v) if isinstance(v, str) else v for k, v in cell.published.items()}
        ),
        "people": digest if mask is not None else None,
        "mask": mask,
    }


def mask_of(members: Iterable[bytes], order: Sequence[bytes]) -> int:
    """Whole number whose binary digits, first person highest, say who of `order` is a member."""
    chosen = set(members)
    return int("0" + "".join("1" if person in chosen else "0" for person in order), 2)


def cells_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """What a release entry says about its cells."""
    columns = ("number", "key", "n", "published", "people")
    listed = [[*(row[c] for c in columns), row["mask"] and row["mask"].hex()] for row in rows]
    return sha256_hex(canonical_line(listed))


# -- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stored:
    entry: Entry
    body: Mapping[str, Any]
    row: Any


def releases(ledger: Handle, partition: str | None, unit: str) -> list[Release]:
    """See `Ledger.releases`."""
    with ledger.store.read() as connection:
        found: dict[int, tuple[Entry, Mapping[str, Any], list[Mapping[str, Any]]]] = {}
        name = None if partition is None else partition_key(partition, unit)
        for entry, body in _release_entries(connection, ledger.id):
            if name in (None, entry.partition):
                found[entry.seq] = (entry, body, [])
        table = schema.cells
        for row in connection.execute(select(table).order_by(table.c.seq, table.c.number)):
            if row.seq in found:
                members = None if row.mask is None else sha256_hex(row.mask)
                cell = {"key": row.key, "n": row.n, "published": parse(row.published), "members": members}
                found[row.seq][2].append(cell)
    return [
        Release(e.seq, e.at, str(e.partition), b["output"], b["kind"], b["sha256"], tuple(cells))
        for e, b, cells in found.values()
    ]


def _release_entries(connection: Connection, ledger_id: str) -> Iterator[tuple[Entry, Mapping[str, Any]]]:
    table = schema.entries
    for row in connection.execute(select(table).where(table.c.kind == "release").order_by(table.c.seq)):
        yield entry_of(row, ledger_id), parse(row.body)


def _earlier(connection: Connection, ledger: Handle, name: str, before: int | None) -> list[_Stored]:
    """Cells of releases on people who may be those of `name`: all but the cohorts declared disjoint from it."""
    apart = {
        cohort for pair in declarations(connection) if cohort_of(name) in pair for cohort in pair - {cohort_of(name)}
    }
    entries = {
        entry.seq: (entry, body)
        for entry, body in _release_entries(connection, ledger.id)
        if cohort_of(str(entry.partition)) not in apart and (before is None or entry.seq < before)
    }
    table = schema.cells
    rows = connection.execute(select(table).order_by(table.c.seq, table.c.number))
    return [_Stored(*entries[row.seq], row) for row in rows if row.seq in entries]


def _orders(connection: Connection, stored: Iterable[_Stored]) -> dict[str, list[bytes]]:
    wanted = {s.row.people for s in stored if s.row.people is not None}
    table = schema.cohorts
    rows = connection.execute(select(table.c.digest, table.c.people).where(table.c.digest.in_(wanted)))
    return {row.digest: unpacked(row.people) for row in rows}


def gaps(ledger: Handle, partition: str, cells: Iterable[ReleaseCell], *, unit: str, before: int | None) -> list[Gap]:
    """See `Ledger.gaps`."""
    name = partition_key(partition, unit)
    with ledger.store.read() as connection:
        stored = _earlier(connection, ledger, name, before)
        orders = _orders(connection, stored)
    if not stored:
        return []
    present = [(c, None if c.members is None else set(fingerprints(ledger.signing_key(), c.members))) for c in cells]
    found: list[Gap] = []
    for cell, members in present:
        masks = {} if members is None else {d: mask_of(members, order) for d, order in orders.items()}
        for old in stored:
            gap = _gap(cell, members, masks, old, name)
            if gap is not None:
                found.append(gap)
    return found


def _gap(
    cell: ReleaseCell, members: set[bytes] | None, masks: Mapping[str, int], old: _Stored, name: str
) -> Gap | None:
    row, partition = old.row, str(old.entry.partition)
    about = (cell.key, old.entry.seq, partition, old.body["output"], row.key)
    if members is None or row.mask is None:
        if cohort_of(partition) != cohort_of(name):
            return None
        # Without ids the worst is assumed: the smaller is part of the larger.
        return Gap(*about, n_now=cell.n, n_then=row.n, shared=min(cell.n, row.n), people_known=False)
    shared = (masks[row.people] & int.from_bytes(row.mask, "big")).bit_count()
    if not shared:
        return None
    return Gap(*about, n_now=len(members), n_then=row.n, shared=shared, people_known=True)


def earlier_cells(
    ledger: Handle, partition: str, person_ids: Iterable[object], *, unit: str, before: int | None
) -> EarlierCells:
    """See `Ledger.earlier_cells`."""
    name = partition_key(partition, unit)
    universe = list(dict.fromkeys(fingerprints(ledger.signing_key(), person_ids)))
    n_now = len(universe)
    with ledger.store.read() as connection:
        stored = _earlier(connection, ledger, name, before)
        orders = _orders(connection, stored)
    index = {person: i for i, person in enumerate(universe)}
    laid: list[tuple[_Stored, list[int]]] = []
    unchecked = {
        s.entry.seq for s in stored if s.row.mask is None and cohort_of(str(s.entry.partition)) == cohort_of(name)
    }
    now = set(universe)
    for old in stored:
        if old.row.mask is None:
            continue
        people = _people(old.row.mask, orders[old.row.people])
        if now.isdisjoint(people):
            continue
        laid.append((old, [index.setdefault(person, len(index)) for person in people]))
    return EarlierCells(
        n_now, len(index) - n_now, tuple(_laid(o, at, len(index)) for o, at in laid), tuple(sorted(unchecked))
    )


def _people(mask: bytes, order: Sequence[bytes]) -> list[bytes]:
    bits = int.from_bytes(mask, "big")
    return [person for i, person in enumerate(order) if bits >> (len(order) - 1 - i) & 1]


def _laid(old: _Stored, at: Iterable[int], size: int) -> EarlierCell:
    mask = bytearray(size)
    for position in at:
        mask[position] = 1
    row, entry = old.row, old.entry
    return EarlierCell(
        entry.seq, str(entry.partition), old.body["output"], old.body["kind"], row.key, row.n,
        parse(row.published), bytes(mask),
    )  # fmt: skip
