"""One session folder while it is being judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.findings import Finding
from ..inert.content import Content
from ..inert.snapshot import Snapshot
from ..judging.report import Report
from ..outputs import OutputDocument
from .context import Context
from .ledger_check import LedgerView
from .records import Record
from .tables_check import TableFindings


@dataclass
class Session:
    """One folder while it is being judged."""

    root: Path
    context: Context
    records: list[Record]
    files: dict[str, Snapshot]
    evidence: Mapping[str, Any] | None
    view: LedgerView
    strict_min_n: int
    report: Report
    results: bytes  # results.json, without what the viewer added
    documents: dict[str, OutputDocument] = field(default_factory=dict)
    contents: dict[str, Content] = field(default_factory=dict)
    read: dict[str, tuple[OutputDocument | None, list[Finding]]] = field(default_factory=dict)
    tables: TableFindings | None = None
    expected: dict[str, dict[str, Any]] = field(default_factory=dict)  # records as the evidence makes them
    _protected: bool | None = None
    _by_file: dict[str, Mapping[str, Any]] | None = None

    @property
    def problems(self) -> list[Mapping[str, Any]]:
        """Table problems of the evidence."""
        if self.evidence is None:
            return []
        return [p for p in (self.evidence["tables"], *self.evidence.get("tables_more", ())) if p]

    @property
    def n_protected(self) -> bool:
        """Whether an add_remove release on these people protects N: of this folder, as recorded, or in the ledger."""
        if self._protected is None:
            self._protected = self.evidence is not None and (
                any(_under_add_remove(entry) for entry in self.evidence["outputs"])
                or self.view.protects_n(str(self.evidence["session"]["cohort"]), self.evidence["session"]["unit"])
            )
        return self._protected

    def entry_of(self, record: Record) -> Mapping[str, Any] | None:
        """The evidence entry that names this record's files."""
        if self._by_file is None:
            listed = () if self.evidence is None else self.evidence["outputs"]
            self._by_file = {name: entry for entry in reversed(listed) for name in entry["files"]}
        found = (self._by_file.get(ref.name) for ref in record.files)
        return next((entry for entry in found if entry is not None), None)


def _under_add_remove(entry: Mapping[str, Any]) -> bool:
    said = {name: fact["value"] for name, fact in entry["facts"]["facts"].items()}
    stated = (entry["privacy"] or {}).get("adjacency")
    return "add_remove" in (said.get("dp.adjacency"), stated) or said.get("ledger.n_protected") is True
