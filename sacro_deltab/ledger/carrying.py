"""A ledger under a new key: everything that was spent is carried over, so that a lost or leaked key resets no budget.

The key signs entries and makes the fingerprints of people. Neither can be done anew in the old ledger: its entries stay
as they were signed, and fingerprints can be made again only from the ids. So a new ledger is made, under a new key, and
holds every spend of the old one. Who the people are has to be registered again; until then overlaps are not checked,
and that is reviewed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import insert, select

from ..base.errors import LedgerError
from ..base.strict import parse
from . import schema
from .book import Ledger
from .canonical import checked_text, partition_key
from .chain import Writer, writing
from .people import linked, unlinked
from .releases import cells_digest
from .spending import SUMS, grant
from .store import row_dict
from .tally import request_of
from .values import Entry


def carry_over(old: Ledger, new: Ledger, *, who: str) -> Entry:
    """Write what `old` has spent, released, registered and declared into `new`, which must be empty.

    Each spend is spent again with its own terms and counts as drawn. Of released cells the N stays and the people do
    not. Private keys of the old ledger are not needed.

    Returns
    -------
    Entry
        The newest entry of `new`.

    Raises
    ------
    LedgerError
        The old ledger is not sound, or the new one holds entries already.
    """
    report = old.verify()
    if not report.ok:
        raise LedgerError(
            "the ledger to be continued was changed: what it has spent is not known",
            path=old.where,
            next_step="Run `sacro-deltab ledger verify`, and continue its newest sound copy.",
        )
    if old.id == new.id:
        raise LedgerError("a ledger cannot be continued by itself", path=new.where, next_step="Name a new file.")
    entries, who = old.history(), checked_text(who, "who")
    cells: dict[int, list[dict[str, Any]]] = {}
    with old.store.read() as connection:
        for row in connection.execute(select(schema.cells).order_by(schema.cells.c.seq, schema.cells.c.number)):
            cells.setdefault(row.seq, []).append({**row_dict(row), "people": None, "mask": None})
    with writing(new.store, new.identity, new.signing_key()) as writer:
        if writer.head.seq != 1:
            raise LedgerError(
                "the ledger that is to continue another one holds entries already",
                path=new.where,
                next_step="Name a file that does not exist yet.",
            )
        carrier = _Carrier(writer, who, {"ledger": old.id, "head": report.head})
        for entry in entries:
            carrier.take(entry, parse(entry.body), cells.get(entry.seq, []))
        return writer.head


class _Carrier:
    """Appends entries of one ledger to another; numbers of entries change on the way."""

    def __init__(self, writer: Writer, who: str, source: Mapping[str, str]) -> None:
        self.writer = writer
        self.who = who
        self.source = dict(source)
        self.number: dict[int, int] = {}
        self.said: set[str] = set()

    def take(self, entry: Entry, body: dict[str, Any], cells: list[dict[str, Any]]) -> None:
        """Carry one entry; openings, refusals and marks of draws are left behind."""
        name, writer = entry.partition, self.writer
        if name is not None and name not in self.said and entry.kind in ("cohort", "spend", "release"):
            self.said.add(name)
            self._cohort(name, set())
        if entry.kind == "bounds":
            writer.append("bounds", body, who=self.who)
        elif entry.kind == "disjoint":
            writer.append("disjoint", body, who=self.who, accounts=unlinked(writer.accounts, body["cohorts"]))
        elif entry.kind == "cohort" and name is not None and body["links"]:
            self._cohort(name, set(body["links"]))
        elif entry.kind == "spend" and name is not None:
            self._spend(entry, name, body)
        elif entry.kind == "close" and entry.ref in self.number:
            writer.append("close", body, who=self.who, partition=name, ref=self.number[entry.ref])
        elif entry.kind == "release":
            made = writer.append(
                "release", {**body, "cells_sha256": cells_digest(cells), "people": None}, who=self.who, partition=name
            )
            if cells:
                writer.connection.execute(insert(schema.cells), [{**cell, "seq": made.seq} for cell in cells])

    def _cohort(self, name: str, links: set[str]) -> None:
        body = {
            "added": 0, "carried": self.source, "links": sorted(links), "overlaps": [], "people": None, "removed": 0,
            "set": None, "status": "not_checked",
        }  # fmt: skip
        self.writer.append("cohort", body, who=self.who, partition=name, accounts=linked(self.writer, name, links))

    def _spend(self, entry: Entry, name: str, body: dict[str, Any]) -> None:
        request, limits = request_of(body)
        origin = {**self.source, "entry": entry.seq, "at": entry.at, "who": entry.who}
        request = replace(request, detail={**request.detail, "carried": origin})
        terms = {k: body[k] for k in body if k not in SUMS}
        terms |= {"detail": dict(request.detail), "draws": "now"}
        made = grant(self.writer, partition_key(name), request, limits, terms, self.who)
        self.number[entry.seq] = made.seq
