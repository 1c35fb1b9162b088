"""Tables of the ledger. `ledger_entries` is the truth, `ledger_partitions` a running sum that entries vouch for."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Table, Text

SCHEMA_VERSION = 2

metadata = MetaData()

meta = Table(
    "ledger_meta",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),  # always 1; the row that a spend locks
    Column("schema_version", Integer, nullable=False),
    Column("id", Text, nullable=False),
    Column("head_key", Text, nullable=False),
)

entries = Table(
    "ledger_entries",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("partition", Text),
    Column("ref", Integer),
    Column("token", Text, nullable=False, unique=True),
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("prev", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),
    Column("signature", Text, nullable=False),
)
Index("ledger_entries_partition", entries.c.partition, entries.c.kind, entries.c.seq)
Index("ledger_entries_ref", entries.c.ref, entries.c.kind)
Index("ledger_entries_kind", entries.c.kind, entries.c.seq)

partitions = Table(
    "ledger_partitions",
    metadata,
    Column("partition", Text, primary_key=True),
    Column("tally", Text, nullable=False),  # canonical JSON: own sums, links, limits last used
)

cohorts = Table(  # each distinct set of people that was registered for a partition
    "ledger_cohorts",
    metadata,
    Column("partition", Text, primary_key=True),
    Column("digest", Text, primary_key=True),  # SHA-256 of `people`
    Column("seq", Integer, nullable=False),  # the entry that registered it first
    Column("people", LargeBinary, nullable=False),  # sorted fingerprints, 16 bytes each
)

cells = Table(  # published numbers of people, for differencing; since version 2
    "ledger_cells",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),  # the release entry
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("n", Integer, nullable=False),
    Column("published", Text, nullable=False),  # canonical JSON
    Column("people", Text),  # digest of the registered set that `mask` points into
    Column("mask", LargeBinary),  # one bit per person of that set, first person highest; NULL without ids
)
