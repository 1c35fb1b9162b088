"""What the ledger hands out. Counts of people in here stay inside the TRE; texts marked 'outside' may leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..base.canonical import canonical_line
from ..base.digests import sha256_hex
from ..base.strict import parse
from .canonical import ENTRY_TYPE


@dataclass(frozen=True)
class Entry:
    """One line of the chain. `digest` covers everything above it and the digest before; `signature` covers `digest`."""

    ledger: str
    seq: int
    kind: str
    at: str
    who: str
    partition: str | None
    ref: int | None  # the spend this entry closes, draws or attaches
    token: str
    body: str  # canonical JSON
    state: str  # digest of all partitions' totals after this entry
    prev: str
    digest: str = ""
    signature: str = ""

    def computed_digest(self) -> str:
        """SHA-256 over the entry without `digest` and `signature`."""
        signed = {k: v for k, v in vars(self).items() if k not in ("digest", "signature")}
        return sha256_hex(f"{ENTRY_TYPE}\n{canonical_line(signed)}")

    def to_json(self) -> dict[str, Any]:
        """The entry as `schemas/ledger-entry.schema.json` has it."""

        return {"schema": ENTRY_TYPE, **asdict(self), "body": parse(self.body)}


@dataclass(frozen=True)
class Pin:
    """What a trust file or layer holds of a ledger it counts on."""

    id: str
    head_key: str  # Ed25519 public key, 64 hex digits

    @classmethod
    def of(cls, value: Any) -> Pin:
        """From a mapping or object with `id` and `head_key`, or a pair."""
        if isinstance(value, Pin):
            return value
        if isinstance(value, tuple):
            return cls(*value)
        if isinstance(value, Mapping):
            return cls(str(value["id"]), str(value["head_key"]))
        return cls(value.id, value.head_key)  # `trust.PinnedLedger`

    @classmethod
    def all_of(cls, values: Iterable[Any]) -> frozenset[Pin]:
        """Every pin of a list."""
        return frozenset(cls.of(value) for value in values)

    def to_json(self) -> dict[str, str]:
        """`{"id", "head_key"}`, as trust files and profiles list it."""
        return {"id": self.id, "head_key": self.head_key}


@dataclass(frozen=True)
class Overlap:
    """Another partition that holds some of the same people."""

    partition: str
    shared: int  # inside
    declared_disjoint_by: str | None


@dataclass(frozen=True)
class CohortCheck:
    """What the fingerprints say about a cohort.

    status: `new`, `same`, `changed` (other people under the same id) or `not_checked` (no ids).
    reasons: sentences for a person to review, without counts (outside).
    """

    partition: str
    status: Literal["new", "same", "changed", "not_checked"]
    people: int | None  # inside
    added: int  # inside: people not seen under this id before
    removed: int  # inside: people of the last registered set who are missing now
    overlaps: tuple[Overlap, ...]
    reasons: tuple[str, ...]
    entry: int
    registered: bool = False  # these are the people, or a part by a column, that TRE staff registered under this id

    @property
    def review(self) -> bool:
        """A person has to look."""
        return bool(self.reasons)


@dataclass(frozen=True)
class Problem:
    """One thing `verify` found. `entry` is None when it concerns the ledger as a whole."""

    entry: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.entry is None else f"entry {self.entry}: {self.what}"


@dataclass(frozen=True)
class VerifyReport:
    """Result of reading the whole chain. `ok` is True when nothing was changed."""

    ledger: str
    head_key: str
    entries: int
    head: str
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()  # worth knowing, no proof of a change (a copy to another place, no anchor at hand)
    orphans: tuple[int, ...] = ()
    pinned: bool = False

    @property
    def ok(self) -> bool:
        """Nothing was changed."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """For `ledger verify --json`."""
        return {
            "schema": "sacro_deltab/ledger-verify/1",
            "ledger": self.ledger,
            "head_key": self.head_key,
            "entries": self.entries,
            "head": self.head,
            "ok": self.ok,
            "pinned": self.pinned,
            "problems": [{"entry": p.entry, "what": p.what} for p in self.problems],
            "notes": list(self.notes),
            "orphans": list(self.orphans),
        }


@dataclass(frozen=True)
class ReleaseCell:
    """One published number of people, for differencing against later releases.

    key: the row's label as published, or `all` for the whole cohort. n: true number of people. members: ids of these
    people (None when ids are not known). published: the values that left, by name (rounded), None where suppressed.
    """

    key: str
    n: int
    members: tuple[object, ...] | None = None
    published: Mapping[str, float | int | str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Release:
    """An output that left, as the ledger remembers it."""

    entry: int
    at: str
    partition: str
    output: str
    kind: str
    sha256: str | None
    cells: tuple[Mapping[str, Any], ...]  # key, n, published, members (digest or None)


@dataclass(frozen=True)
class Gap:
    """A present cell against an earlier one on overlapping people. All counts stay inside."""

    cell: str
    entry: int
    partition: str
    output: str
    earlier_cell: str
    n_now: int
    n_then: int
    shared: int
    people_known: bool = True  # False: no ids, so the smaller is taken to be part of the larger

    @property
    def gap(self) -> int:
        """People in one of the two but not in both: what subtracting the two releases is about."""
        return self.n_now + self.n_then - 2 * self.shared


@dataclass(frozen=True)
class EarlierCell:
    """An earlier cell laid over the people of now. `mask` has one byte (0 or 1) per person of the universe."""

    entry: int
    partition: str
    output: str
    kind: str
    key: str
    n: int
    published: Mapping[str, Any]
    mask: bytes


@dataclass(frozen=True)
class EarlierCells:
    """Earlier releases for the attacker's model: the universe is the people of now, in their order, then `n_gone`
    people who are in earlier releases only."""

    n_now: int
    n_gone: int
    cells: tuple[EarlierCell, ...]
    unchecked: tuple[int, ...] = ()  # releases of these partitions whose people are not known
