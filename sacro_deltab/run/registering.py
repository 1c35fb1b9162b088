"""A cohort's source table into the TRE's register, read by the reader that `run` and `check` use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..base.opening import ordinary
from ..cohort.aligning import person_ids
from ..cohort.sources import as_batches
from ..cohort.table import Table
from ..ledger import CohortCheck, Ledger
from ..ledger.register import Intake, Rows


def register_table(
    ledger: Ledger,
    file: Path,
    cohort: str,
    *,
    id_column: str,
    who: str,
    units: Mapping[str, str] | None = None,
    say: Callable[[str], None] | None = None,
) -> CohortCheck:
    """Register the people of a table (CSV or Parquet, one row a person), as TRE staff do.

    Raises
    ------
    InputError
        The table cannot be read, has no such column, or holds a person twice; nothing is registered then.
    """
    intake = Intake(ledger)
    for table in as_batches(ordinary(file), "cohort"):
        intake.add(_rows(table, id_column))
        if say is not None:
            say(f"read to {table.row_word} {table.rows[-1]}")
    return intake.register(cohort, who=who, units=units)


def _rows(table: Table, id_column: str) -> Rows:
    """A block of the source table as the register takes it."""
    person = table.need(id_column, "identifiers")
    ids = person_ids(table, person)
    assert ids is not None and table.names is not None
    words = [j for j, column in enumerate(table.columns) if column.values is None and j != person]
    numbers = {c.name: c.values for j, c in enumerate(table.columns) if c.values is not None and j != person}
    texts = dict(zip((table.names[j] for j in words), table.texts(words), strict=True))
    return Rows(ids, numbers, texts, table.rows, table.row_word)
