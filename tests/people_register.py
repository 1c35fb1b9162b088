"""Cohorts registered as TRE staff do it, for tests that are about something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def register_people(
    ledger: Path | str, cohort: str, ids: Iterable[object], columns: Mapping[str, Any] | None = None
) -> None:
    """Enter a cohort that is not in the register yet; `columns` are arrays or lists, one value a person."""
    from sacro_deltab.ledger import open_ledger, partition_key
    from sacro_deltab.ledger.register import Intake, Rows, latest

    book = open_ledger(ledger)
    with book.store.read() as connection:
        if latest(connection, partition_key(cohort)) is not None:
            return
    people = list(dict.fromkeys(ids))
    numbers = {
        name: np.asarray(v, dtype=float) for name, v in (columns or {}).items() if np.asarray(v).dtype.kind in "biuf"
    }
    words = {name: [str(x) for x in v] for name, v in (columns or {}).items() if name not in numbers}
    intake = Intake(book)
    intake.add(Rows(people, numbers, words, range(1, len(people) + 1)))
    intake.register(cohort, who="TRE staff")


def register_frame(ledger: Path | str, cohort: str, frame: Any, *, id_column: str = "participant_id") -> None:
    """Enter a data frame with one row a person."""
    columns = {name: frame[name].tolist() for name in frame.columns if name != id_column}
    register_people(ledger, cohort, frame[id_column], columns)
