"""Who the people are, as TRE staff say: cohorts registered from the source table, a block of rows at a time.

Of the table the ledger keeps keyed fingerprints of ids, keyed tokens (see `tokens`), and per column a name, a type, a
unit and one keyed sum over all people, by which a session's column is recognised as the registered one. Only digests
of these stand in the signed chain, so that tokens and sums can be erased (`forget`) and the chain still holds.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, delete, insert, select, update

from ..base.canonical import canonical_line
from ..base.digests import sha256_hex
from ..base.errors import InputError
from ..base.strict import parse
from . import schema
from .canonical import checked_text, cohort_of, partition_key
from .chain import writing
from .handle import Handle
from .people import Finding, check_in, fingerprints, packed
from .tokens import Floats, Tokeniser, Tokens, agreeing, column_key, joined, steps_of, twice
from .tokens import packed as packed_tokens
from .tokens import unpacked as unpacked_tokens
from .values import CohortCheck, Entry

MOST_GROUPS = 16  # values of a column by which a part of the cohort may be named
_NO_VALUE = np.uint64(0x9E3779B97F4A7C15)
Words = Sequence[str | None]
Sums = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Rows:
    """A block of rows of the source table; `places` are line or row numbers for messages."""

    ids: Sequence[object]
    numbers: Mapping[str, Floats]
    words: Mapping[str, Words]
    places: Sequence[int]
    place: str = "row"  # what `places` count


class _Weights:
    """Two secret 64-bit factors per person, by which sums over people are keyed."""

    def __init__(self, secret: bytes, people: Sequence[bytes]) -> None:
        drawn = b"".join(hmac.digest(secret, person, "sha256")[:16] for person in people)
        self.factors: Sums = np.frombuffer(drawn, dtype="<u8").reshape(-1, 2).astype(np.uint64)
        self._secret = secret
        self._texts: dict[str | None, int] = {}

    def everybody(self) -> Sums:
        """The sum that stands for this set of people."""
        return np.asarray(self.factors.sum(axis=0, dtype=np.uint64))

    def of_numbers(self, values: Floats) -> Sums:
        """The keyed sum of a column of numbers, as far as single precision tells them apart."""
        with np.errstate(over="ignore"):
            bits = (values + 0.0).astype(np.float32).view(np.uint32).astype(np.uint64)
        return self._sum(np.where(np.isnan(values), _NO_VALUE, _spread(bits)))

    def label(self, text: str) -> bytes:
        """What stands for a word, whatever its case."""
        return hmac.digest(self._secret, text.strip().casefold().encode("utf-8", "surrogatepass"), "sha256")[:8]

    def of_words(self, words: Words) -> Sums:
        """The keyed sum of a column of words."""
        for text in set(words) - self._texts.keys():
            self._texts[text] = int(_NO_VALUE) if text is None else int.from_bytes(self.label(text), "little")
        return self._sum(np.array([self._texts[text] for text in words], dtype=np.uint64))

    def _sum(self, values: Sums) -> Sums:
        return np.asarray((self.factors * values[:, None]).sum(axis=0, dtype=np.uint64))


def _spread(bits: Sums) -> Sums:
    """Every bit of a value into every bit (the last step of splitmix64), so that no difference has few low bits."""
    with np.errstate(over="ignore"):
        bits = bits + _NO_VALUE
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@dataclass
class _Column:
    type: str
    sums: Sums = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))
    groups: dict[str | float, Sums] | None = field(default_factory=dict)  # None: too many values for groups

    def add(self, values: Floats | Words, weights: _Weights) -> None:
        """Add a block of rows; parts of the cohort are remembered while the column has few values."""
        if isinstance(values, np.ndarray):
            self.sums = self.sums + weights.of_numbers(values)
            kinds: Any = np.unique(values[np.isfinite(values)]).tolist() if self.groups is not None else ()
        else:
            self.sums = self.sums + weights.of_words(values)
            kinds = {word for word in values if word is not None}
        if self.groups is None or len({*self.groups, *kinds}) > MOST_GROUPS:
            self.groups = None
            return
        for kind in kinds:
            mask = values == kind if isinstance(values, np.ndarray) else np.array([v == kind for v in values])
            part = weights.factors[mask].sum(axis=0, dtype=np.uint64)
            self.groups[kind] = self.groups.get(kind, np.zeros(2, dtype=np.uint64)) + part


def _as_label(value: str | float) -> str:
    """A group as sessions print it: whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _hex(sums: Sums) -> str:
    return sums.astype("<u8").tobytes().hex()


class Intake:
    """Collects the source table of one cohort; nothing is written before `register`."""

    def __init__(self, ledger: Handle) -> None:
        self._ledger = ledger
        self._key = ledger.signing_key()
        with ledger.store.read() as connection:
            self._steps = {r.name: float(r.step) for r in connection.execute(select(schema.steps))}
        self._new_steps: dict[str, float] = {}
        self._people: list[bytes] = []
        self._places: list[int] = []
        self._word = "row"
        self._tokens: list[Tokens] = []
        self._columns: dict[str, _Column] = {}

    def add(self, rows: Rows) -> None:
        """Take a block of rows.

        Raises
        ------
        InputError
            Two rows are of one person: their ids are the same once case, blanks, `.0` and invisible characters are
            left aside.
        """
        if not self._people:
            self._new_steps = {n: s for n, s in steps_of(rows.numbers).items() if n not in self._steps}
            self._steps = {**self._new_steps, **self._steps}
            kinds = {**dict.fromkeys(rows.numbers, "number"), **dict.fromkeys(rows.words, "text")}
            self._columns = {name: _Column(kind) for name, kind in kinds.items()}
        people = fingerprints(self._key, rows.ids)
        self._people += people
        self._places += rows.places
        self._word = rows.place
        if len(set(self._people)) < len(self._people):
            self._refuse_repeat()
        self._tokens.append(Tokeniser(self._key.secret("tokens"), self._steps).tokens(rows.numbers))
        weights = _Weights(self._key.secret("columns"), people)
        columns: Iterable[tuple[str, Floats | Words]] = [*rows.numbers.items(), *rows.words.items()]
        for name, values in columns:
            if isinstance(values, np.ndarray) != (self._columns[name].type == "number"):
                raise InputError(
                    "a column holds numbers in some rows and words in others",
                    place=f"{rows.place} {rows.places[0]} and on",
                    next_step="Give each column one type.",
                )
            self._columns[name].add(values, weights)

    def _refuse_repeat(self) -> None:
        seen: dict[bytes, int] = {}
        for place, person in zip(self._places, self._people, strict=True):
            if person in seen:
                raise InputError(
                    "a person stands in two rows: the ids are the same once case, blanks, '.0' and characters that do "
                    "not show are left aside. Nothing was registered",
                    place=f"{self._word}s {seen[person]} and {place}",
                    next_step="Keep one row a person, or give the two people different ids.",
                )
            seen[person] = place

    def register(self, cohort: str, *, who: str, units: Mapping[str, str] | None = None) -> CohortCheck:
        """Write the cohort down as its next version, tie it to every cohort that shares people with it.

        Raises
        ------
        InputError
            Nobody is in the table, one person's measurements stand under two ids, or a unit is given for no column.
        """
        name, who, units = partition_key(cohort), checked_text(who, "who"), dict(units or {})
        if not self._people:
            raise InputError("the cohort has no people", next_step="Give a table with one row per person.")
        if set(units) - self._columns.keys():
            raise InputError("a unit is given for a column that the table does not have", place="--unit")
        tokens = joined(self._tokens)
        self._refuse_twins(tokens)
        columns = self._columns_json(units)
        stored = packed_tokens(tokens)
        with writing(self._ledger.store, self._ledger.identity, self._key) as writer:
            connection = writer.connection
            last = latest(connection, name)
            version = 1 if last is None else last.version + 1
            body = {
                "columns": sha256_hex(columns), "tokens": sha256_hex(b"".join(stored)), "version": version,
            }  # fmt: skip
            found = found_by_tokens(connection, name, tokens)
            block = packed(self._people)
            check = check_in(writer, name, block, who, Finding(found, register=body))
            row = {
                "partition": name, "version": version, "seq": check.entry, "people": sha256_hex(block),
                "columns": columns,
            }  # fmt: skip
            connection.execute(insert(schema.register).values(**row))
            parts = [{"partition": name, "version": version, "number": n, "tokens": b} for n, b in enumerate(stored)]
            connection.execute(insert(schema.tokens), parts)
            known = set(connection.execute(select(schema.steps.c.name)).scalars())
            new = [{"name": n, "step": repr(s)} for n, s in self._new_steps.items() if n not in known]
            if new:
                connection.execute(insert(schema.steps), new)
        return check

    def _refuse_twins(self, tokens: Tokens) -> None:
        pair = twice(tokens)
        if pair is not None:
            raise InputError(
                "what was measured on two people is the same: one person stands under two ids. Nothing was registered",
                place=f"{self._word}s {self._places[pair[0]]} and {self._places[pair[1]]}",
                next_step="Keep one of the two rows.",
            )

    def _columns_json(self, units: Mapping[str, str]) -> str:
        listed = [
            {"name": name, "sum": _hex(column.sums), "type": column.type, "unit": units.get(name)}
            for name, column in sorted(self._columns.items())
        ]
        weights = _Weights(self._key.secret("columns"), ())
        groups = {
            name: {_hex(sums): weights.label(_as_label(value)).hex() for value, sums in column.groups.items()}
            for name, column in self._columns.items() if column.groups
        }  # fmt: skip
        return canonical_line({"columns": listed, "groups": groups})


def latest(connection: Connection, name: str) -> Any | None:
    """The newest version of a cohort in the register, without its tokens; None where nobody registered it."""
    table = schema.register
    columns = (table.c.version, table.c.seq, table.c.people, table.c.columns)
    query = select(*columns).where(table.c.partition == name).order_by(table.c.version.desc()).limit(1)
    return connection.execute(query).first()


def found_by_tokens(connection: Connection, name: str, tokens: Tokens) -> dict[str, int]:
    """Other cohorts of the register in which some of these rows are found, and how many of them (inside)."""
    table, found = schema.tokens, dict[str, set[int]]()
    if not tokens.any():
        return {}
    query = select(table.c.partition, table.c.tokens)
    for row in connection.execute(query, execution_options={"yield_per": 4}):
        if cohort_of(row.partition) != cohort_of(name):
            pairs = agreeing(tokens, unpacked_tokens(row.tokens))
            if pairs.size:
                found.setdefault(row.partition, set()).update(np.unique(pairs[:, 0]).tolist())
    return {other: len(rows) for other, rows in found.items()}


@dataclass(frozen=True)
class Registered:
    """The people of a session as the register knows them: all of a cohort, or a part by a registered column.

    Holds sums over these people and no key; says of a column which registered one it is.
    """

    version: int
    part: str | None  # the column that names the part; None: everybody
    columns: Mapping[str, str]  # keyed sum → name
    groups: Mapping[str, Mapping[str, str]]  # column → keyed sum of the people of a label → what stands for the label
    weights: _Weights
    described: bool = True  # False: people and at most their ages were registered, so no column can be compared

    def source(self, values: Floats | Words) -> str | None:
        """Name of the registered column that holds exactly these values of these people; None for any other."""
        if isinstance(values, np.ndarray):
            return self.columns.get(_hex(self.weights.of_numbers(values)))
        return self.columns.get(_hex(self.weights.of_words(values)))

    def is_column(self, name: str, values: Floats | Words) -> bool:
        """Whether these are the values of the registered column of that name (whatever its case and marks)."""
        source = self.source(values)
        return source is not None and column_key(source) == column_key(name)

    def part_of(self, mask: npt.NDArray[np.bool_]) -> str:
        """The keyed sum of some of these people."""
        return _hex(self.weights.factors[mask].sum(axis=0, dtype=np.uint64))

    def joined(self, parts: Iterable[str]) -> str:
        """The keyed sum of several parts that share nobody."""
        one = np.array([np.frombuffer(bytes.fromhex(part), dtype="<u8") for part in parts], dtype=np.uint64)
        return _hex(one.sum(axis=0, dtype=np.uint64))

    def label(self, text: str) -> str:
        """What stands for a label."""
        return self.weights.label(text).hex()


def registered(ledger: Handle, cohort: str, person_ids: Iterable[object]) -> Registered | None:
    """The register's view of these people (in their order), or None where it has no such cohort or part of one."""
    name, key = partition_key(cohort), ledger.signing_key()
    people = fingerprints(key, person_ids)
    with ledger.store.read() as connection:
        row = latest(connection, name)
    if row is None:
        return None
    known = {"columns": [], "groups": {}} if row.columns is None else parse(row.columns)
    weights, part = _Weights(key.secret("columns"), people), None
    if sha256_hex(packed(people)) != row.people:
        mine = _hex(weights.everybody())
        part = next((column for column, sums in known["groups"].items() if mine in sums), None)
        if part is None or len(set(people)) < len(people):
            return None
    columns = {} if part is not None else {c["sum"]: c["name"] for c in known["columns"]}
    groups = {} if part is not None else known["groups"]
    return Registered(row.version, part, columns, groups, weights, has_columns(row.columns))


def has_columns(columns: str | None) -> bool:
    """Whether a registered version holds columns to compare with, besides ages; where they were forgotten it did."""
    return columns is None or any(column_key(c["name"]) != "age" for c in parse(columns)["columns"])


def find_people(
    ledger: Handle, cohort: str, person_ids: Iterable[object], columns: Mapping[str, Floats], *, who: str
) -> CohortCheck | None:
    """Look for the people behind these columns in other cohorts of the register; those found share one budget.

    Returns
    -------
    CohortCheck or None
        None where nobody was found elsewhere.
    """
    name, key = partition_key(cohort), ledger.signing_key()
    with ledger.store.read() as connection:
        steps = {r.name: float(r.step) for r in connection.execute(select(schema.steps))}
        tokens = Tokeniser(key.secret("tokens"), steps).tokens(columns)
        found = found_by_tokens(connection, name, tokens)
    if not found:
        return None
    block = packed(fingerprints(key, person_ids))
    with writing(ledger.store, ledger.identity, key) as writer:
        return check_in(writer, name, block, checked_text(who, "who"), Finding(found))


def forget(ledger: Handle, cohort: str, *, who: str, version: int | None = None) -> Entry:
    """Erase tokens and column sums of a registered cohort (of one version, or of all but its budget).

    What was spent still counts, and so do the fingerprints that earlier releases rest on. People are then found by
    their ids only.
    """
    name, table = partition_key(cohort), schema.register
    with writing(ledger.store, ledger.identity, ledger.signing_key()) as writer:
        mine = (table.c.partition == name) & (table.c.version == version if version is not None else True)
        versions = list(writer.connection.execute(select(table.c.version).where(mine)).scalars())
        if not versions:
            raise InputError("the register has no such cohort or version", next_step="See `ledger history`.")
        writer.connection.execute(update(table).where(mine).values(columns=None))
        kept = schema.tokens
        gone = (kept.c.partition == name) & kept.c.version.in_(versions)
        writer.connection.execute(delete(kept).where(gone))
        return writer.append("forget", {"versions": sorted(versions)}, who=checked_text(who, "who"), partition=name)
