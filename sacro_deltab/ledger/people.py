"""Who a cohort holds, as keyed fingerprints: changed cohorts, overlapping ones, and those declared disjoint."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import Connection, insert, select

from ..base.digests import sha256_hex
from ..base.errors import InputError
from ..base.strict import parse
from . import schema
from .canonical import checked_text, cohort_of, partition_key
from .chain import Account, Writer, writing
from .handle import Handle
from .keys import LedgerKey
from .values import CohortCheck, Entry, Overlap

_POINT_ZERO = re.compile(r"^([+-]?\d+)\.0+$")
WIDTH = 16  # bytes of one fingerprint
NOT_CHECKED = "overlap with other cohorts was not checked: the cohort has no person ids"
CHANGED = "the cohort holds other people than when it was registered under this id before"


@lru_cache(maxsize=1 << 18)  # an id is asked for once a cell and release
def _plain(text: str) -> str:
    """One spelling of an id: Unicode NFKC, no blanks, no characters that do not show, case folded, no needless `.0`."""
    shown = (c for c in unicodedata.normalize("NFKC", text) if not c.isspace() and unicodedata.category(c) != "Cf")
    plain = unicodedata.normalize("NFKC", "".join(shown).casefold())
    return _POINT_ZERO.sub(r"\1", plain)


def person_text(value: object) -> str:
    """An id as text, in one spelling however it was typed."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    text = "" if missing else _plain(str(value))
    if not text or text in ("nan", "<na>", "none", "nat"):
        raise InputError("a person id is missing", next_step="Give every row an id, or none.")
    return text


def same_person(person_ids: Sequence[object]) -> tuple[int, int] | None:
    """Positions of two ids that differ in spelling only; None where there are none."""
    seen: dict[str, int] = {}
    for at, value in enumerate(person_ids):
        first = seen.setdefault(person_text(value), at)
        if first != at and str(person_ids[first]) != str(value):
            return first, at
    return None


def fingerprints(key: LedgerKey, person_ids: Iterable[object]) -> list[bytes]:
    """One fingerprint per id, in order."""
    return [key.fingerprint(person_text(value)) for value in person_ids]


def packed(people: Iterable[bytes]) -> bytes:
    """Distinct fingerprints, sorted, in one block."""
    return b"".join(sorted(set(people)))


def unpacked(block: bytes) -> list[bytes]:
    """Inverse of `packed`."""
    return [block[i : i + WIDTH] for i in range(0, len(block), WIDTH)]


@dataclass(frozen=True)
class Finding:
    """What is known of people besides their ids.

    found: cohorts in which their measurements were found, and how many (inside). register: what stands of them in the
    register, where TRE staff enter them now. known: version and part of the register that these people are.
    """

    found: Mapping[str, int] = field(default_factory=dict)
    register: Mapping[str, Any] | None = None
    known: Mapping[str, Any] | None = None


NOTHING = Finding()


def register_cohort(
    ledger: Handle,
    partition: str,
    person_ids: Iterable[object] | None,
    *,
    who: str,
    unit: str = "person",
    finding: Finding = NOTHING,
) -> CohortCheck:
    """Register the people of a cohort and say what a person must review.

    Parameters
    ----------
    person_ids
        One id per row (repeats count once), or None when the cohort has no ids.

    Returns
    -------
    CohortCheck
        Cohorts that share people with this one share its budget from now on, unless they were declared disjoint.
    """
    name, who = partition_key(partition, unit), checked_text(who, "who")
    block = None if person_ids is None else packed(fingerprints(ledger.signing_key(), person_ids))
    if block is not None and not block:
        raise InputError("the cohort has no people")
    with writing(ledger.store, ledger.identity, ledger.signing_key()) as writer:
        return check_in(writer, name, block, who, finding)


def check_in(writer: Writer, name: str, block: bytes | None, who: str, finding: Finding = NOTHING) -> CohortCheck:
    """Write an entry about the people of a cohort, tie it to those that share people with it."""
    people = None if block is None else set(unpacked(block))
    digest = None if block is None else sha256_hex(block)
    earlier, last = _known_sets(writer.connection, name)
    status: Literal["new", "same", "changed", "not_checked"]
    if people is None:
        status, added, removed = "not_checked", 0, 0
    else:
        seen = set().union(*earlier.values())
        added, removed = len(people - seen), len(earlier[last] - people) if last else 0
        status = "new" if not earlier else "same" if digest == last else "changed"
    declared = declarations(writer.connection)
    overlaps = () if people is None else _overlaps(writer.connection, name, people, declared, finding.found)
    unknown = _not_yet_again(writer.connection, name)
    if status == "changed" and (finding.register is not None or finding.known is not None):
        status = "same"  # TRE staff say who is in a cohort
    twins = {f"{cohort_of(name)}/{u}" for u in ("person", "row")} - {name}
    links = {o.partition for o in overlaps if o.declared_disjoint_by is None} | (twins & writer.accounts.keys())
    entry = writer.append(
        "cohort",
        {
            "added": added,
            "links": sorted(links),
            "overlaps": [vars(o) for o in overlaps],
            "people": None if people is None else len(people),
            "removed": removed,
            "set": digest,
            "status": status,
            **({} if finding.register is None else {"register": dict(finding.register)}),
            **({} if finding.known is None else {"registered": dict(finding.known)}),
        },
        who=who,
        partition=name,
        accounts=linked(writer, name, links),
    )
    if digest is not None and digest not in earlier:
        row = {"partition": name, "digest": digest, "seq": entry.seq, "people": block}
        writer.connection.execute(insert(schema.cohorts).values(**row))
    reasons = _reasons(status, overlaps) + unknown
    count = None if people is None else len(people)
    return CohortCheck(name, status, count, added, removed, overlaps, reasons, entry.seq, finding.known is not None)


def linked(writer: Writer, name: str, links: set[str]) -> dict[str, Account]:
    """Accounts that change when `name` is tied to `links`, both ways."""
    changed: dict[str, Account] = {}
    for other in sorted(links):
        for one, two in ((name, other), (other, name)):
            account = changed.get(one) or writer.accounts.get(one, Account())
            changed[one] = replace(account, links=tuple(sorted({*account.links, two})))
    return changed


def _reasons(status: str, overlaps: tuple[Overlap, ...]) -> tuple[str, ...]:
    reasons = [NOT_CHECKED] if status == "not_checked" else [CHANGED] if status == "changed" else []
    for overlap in overlaps:
        cohort = cohort_of(overlap.partition)
        if overlap.declared_disjoint_by is None:
            reasons.append(f"the cohort shares people with {cohort}, so the two share one budget")
        else:
            reasons.append(
                f"the cohort shares ids with {cohort}, which {overlap.declared_disjoint_by} declared disjoint"
            )
    return tuple(reasons)


def _not_yet_again(connection: Connection, name: str) -> tuple[str, ...]:
    """Cohorts carried from a ledger with another key, whose people nobody has registered since."""
    table = schema.entries
    query = select(table.c.partition, table.c.body).where(table.c.kind == "cohort").order_by(table.c.seq)
    carried: dict[str, bool] = {}
    for other, body in connection.execute(query):
        if '"carried"' in body:
            carried.setdefault(other, False)
        elif other in carried and parse(body)["set"] is not None:
            carried[other] = True
    mine, missing = carried.get(name), sorted(cohort_of(n) for n, again in carried.items() if not again and n != name)
    found = []
    if mine is False:
        found.append("the people of this cohort's earlier releases are not known under the ledger's new key")
    if missing:
        found.append(f"overlap was not checked with {', '.join(dict.fromkeys(missing))}: not registered again yet")
    return tuple(found)


def _known_sets(connection: Connection, name: str) -> tuple[dict[str, set[bytes]], str | None]:
    """Sets registered for a partition by digest, and the digest of the last registration."""
    table = schema.cohorts
    rows = connection.execute(select(table).where(table.c.partition == name)).all()
    return {row.digest: set(unpacked(row.people)) for row in rows}, last_set(connection, name)


def last_set(connection: Connection, name: str) -> str | None:
    """Digest of the people that were registered last for a partition; None when it never had ids."""
    table = schema.entries
    query = select(table.c.body).where(table.c.partition == name, table.c.kind == "cohort")
    for (body,) in connection.execute(query.order_by(table.c.seq.desc())):
        digest: str | None = parse(body)["set"]
        if digest is not None:
            return digest
    return None


def _overlaps(
    connection: Connection, name: str, people: set[bytes], declared: dict[frozenset[str], str], found: Mapping[str, int]
) -> tuple[Overlap, ...]:
    table = schema.cohorts
    shared: dict[str, set[bytes]] = {}
    for row in connection.execute(select(table).order_by(table.c.partition)):
        if cohort_of(row.partition) != cohort_of(name):
            shared.setdefault(row.partition, set()).update(people.intersection(unpacked(row.people)))
    count = {other: max(len(shared.get(other, ())), found.get(other, 0)) for other in {*shared, *found}}
    return tuple(
        Overlap(other, common, declared.get(frozenset({cohort_of(other), cohort_of(name)})))
        for other, common in sorted(count.items())
        if common
    )


def declarations(connection: Connection) -> dict[frozenset[str], str]:
    """Pairs of cohorts that were declared disjoint, and by whom."""
    table = schema.entries
    query = select(table.c.body).where(table.c.kind == "disjoint").order_by(table.c.seq)
    bodies = [parse(body) for (body,) in connection.execute(query)]
    return {frozenset(body["cohorts"]): body["by"] for body in bodies}


def declare_disjoint(ledger: Handle, one: str, other: str, *, by: str, reason: str, unit: str = "person") -> Entry:
    """A named person states that two cohorts share nobody, so that each has a budget of its own.

    An overlap of ids that is found all the same is still shown and reviewed, with that person's name.
    """
    cohorts = sorted({cohort_of(partition_key(one, unit)), cohort_of(partition_key(other, unit))})
    if len(cohorts) != 2:
        raise InputError("a cohort cannot be declared disjoint from itself")
    by = checked_text(by, "the name of who declares it")
    body = {
        "by": by,
        "cohorts": cohorts,
        "reason": checked_text(reason, "reason"),
    }
    with writing(ledger.store, ledger.identity, ledger.signing_key()) as writer:
        changed = unlinked(writer.accounts, cohorts)
        return writer.append("disjoint", body, who=by, accounts=changed)


def unlinked(accounts: Mapping[str, Account], cohorts: Iterable[str]) -> dict[str, Account]:
    """Accounts of two cohorts without their ties to each other."""
    one, other = cohorts
    changed = {}
    for name, account in accounts.items():
        mine = cohort_of(name)
        if mine in (one, other):
            foe = other if mine == one else one
            links = tuple(link for link in account.links if cohort_of(link) != foe)
            if links != account.links:
                changed[name] = replace(account, links=links)
    return changed
