"""Tables of the ledger. `ledger_entries` is the truth, `ledger_partitions` a running sum that entries vouch for."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, Index, LargeBinary, MetaData, Table
from sqlalchemy import Integer as SqlInteger
from sqlalchemy import Text as SqlText
from sqlalchemy.types import TypeEngine

from ..base.errors import LedgerError

SCHEMA_VERSION = 3


def _read_as(column: type[TypeEngine[Any]], kind: type) -> type[TypeEngine[Any]]:
    """A column type that reads back its own kind and nothing else.

    SQLite keeps any value in any column, and SQLAlchemy's `bytes(number)` would make that many bytes.
    """

    def checked(value: Any) -> Any:
        if value is None or type(value) is kind:
            return value
        raise LedgerError(
            "the ledger was changed: a column holds a value of another kind than a ledger writes",
            next_step="Spend nothing; restore the newest copy, then run `sacro-deltab ledger verify`.",
        )

    return type(column.__name__, (column,), {"result_processor": lambda *_: checked})


Integer, Text, Block = _read_as(SqlInteger, int), _read_as(SqlText, str), _read_as(LargeBinary, bytes)
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
    Column("people", Block, nullable=False),  # sorted fingerprints, 16 bytes each
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
    Column("mask", Block),  # one bit per person of that set, first person highest; NULL without ids
)

register = Table(  # each version of a cohort as TRE staff registered it from the source table; since version 3
    "ledger_register",
    metadata,
    Column("partition", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("seq", Integer, nullable=False),  # the entry that vouches for it
    Column("people", Text, nullable=False),  # digest of the set in `ledger_cohorts`
    Column("columns", Text),  # canonical JSON: names, types, units, keyed sums of values; NULL once forgotten
)

tokens = Table(  # keyed tokens of a registered version, some people a row; deleted once forgotten
    "ledger_tokens",
    metadata,
    Column("partition", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("tokens", Block, nullable=False),
)

steps = Table(  # rounding step of a column in tokens, by its name: the first table that had it decides
    "ledger_steps",
    metadata,
    Column("name", Text, primary_key=True),
    Column("step", Text, nullable=False),  # a power of two
)

_OWN = {table.name: {column.name for column in table.columns} for table in metadata.sorted_tables}
_INDEXES = {str(index.name) for table in metadata.sorted_tables for index in table.indexes}
_SQLITE_OBJECTS = "SELECT type, name, rootpage FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name LIMIT 100"
_SERVER_TRIGGERS = (
    "SELECT 'trigger', t.tgname, 0 FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
    " WHERE NOT t.tgisinternal AND c.relname IN ('{}')"
).format("', '".join(_OWN))


def foreign(connection: Connection) -> list[str]:
    """What stands in the database beside a ledger's own tables: triggers, views, tables that compute, more columns.

    A trigger changes what is written; a view or a virtual table in a table's place need never end.
    """
    if connection.dialect.name != "sqlite":
        return [f"{kind} {name!r}" for kind, name, _ in connection.exec_driver_sql(_SERVER_TRIGGERS)]
    found = []
    for kind, name, page in connection.exec_driver_sql(_SQLITE_OBJECTS).all():
        if kind == "table" and name in _OWN and page:
            columns = connection.exec_driver_sql(f"PRAGMA table_xinfo({name})").all()
            if any(row[6] for row in columns) or {row[1] for row in columns} != _OWN[name]:
                found.append(f"columns of {name!r}")
        elif kind != "index" or name not in _INDEXES:
            found.append(f"{kind} {name!r}")
            if name in _OWN:
                raise LedgerError(f"this database holds no ledger: its {name!r} is no stored table")
    return found
