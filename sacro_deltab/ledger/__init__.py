"""A privacy budget that cannot be overspent: see `docs/ledger.md`."""

from __future__ import annotations

from .book import Ledger
from .canonical import partition_key
from .opening import open_ledger
from .values import (
    CohortCheck,
    EarlierCell,
    EarlierCells,
    Entry,
    Gap,
    Overlap,
    Pin,
    Problem,
    Release,
    ReleaseCell,
    VerifyReport,
)

__all__ = [
    "CohortCheck",
    "EarlierCell",
    "EarlierCells",
    "Entry",
    "Gap",
    "Ledger",
    "Overlap",
    "Pin",
    "Problem",
    "Release",
    "ReleaseCell",
    "VerifyReport",
    "open_ledger",
    "partition_key",
]
