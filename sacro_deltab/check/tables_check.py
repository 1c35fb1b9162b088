"""Attack every table of a folder together: what was printed, with what was printed beside it and before."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.errors import SacroDeltabError
from ..base.findings import Effect, Finding, note
from ..kinds.registry import KINDS
from ..outputs import OutputDocument, is_mark


@dataclass
class TableFindings:
    """Result of the attack: per output what falls (inside), findings of the whole folder, and what to print."""

    recoverable: dict[str, int] = field(default_factory=dict)
    package: int = 0
    findings: list[Finding] = field(default_factory=list)
    summary: dict[str, Any] | None = None
    complete: bool = False


def attack(problems: Sequence[Mapping[str, Any]], documents: Mapping[str, OutputDocument], min_n: int) -> TableFindings:
    """Audit the recorded problems against the marks and numbers found in the files.

    Parameters
    ----------
    problems
        Table problems from the evidence: cells `output|row`, atoms with counts and sums.
    documents
        The documents as they arrived, by output name.
    """
    out = TableFindings()
    started = time.monotonic()
    summary: list[dict[str, Any]] = []
    for index, data in enumerate(problems):
        try:
            summary.append(_one(data, documents, min_n, out))
        except (SacroDeltabError, KeyError, TypeError, ValueError, IndexError) as error:
            what = error.what if isinstance(error, SacroDeltabError) else type(error).__name__
            out.findings.append(
                note("tables", Effect.BLOCK, f"Table problem {index + 1} of the evidence cannot be read: {what}.")
            )
    out.complete = bool(problems) and not out.findings
    out.summary = {
        "problems": summary,
        "recoverable": out.recoverable,
        "package_recoverable": out.package,
        "seconds": round(time.monotonic() - started, 3),
    }
    return out


def _one(
    data: Mapping[str, Any], documents: Mapping[str, OutputDocument], min_n: int, out: TableFindings
) -> dict[str, Any]:
    from ..tables import audit_pattern, problem_from_json  # late: brings jsonschema_rs, numpy

    problem = problem_from_json(dict(data))
    rows = {(name, str(row[0])): (document, row) for name, document in documents.items() for row in document.rows}
    hidden = set()
    for cell in problem.cells:
        output, _, key = cell.partition("|")
        place = rows.get((output, key))
        if (place is not None and all(map(is_mark, place[1][1:]))) or (place is None and output in documents):
            hidden.add(cell)
    found = audit_pattern(problem, frozenset(hidden))
    fallen = (set(found.exactly_disclosed) & set(problem.primary)) | set(found.narrow) | set(found.unprinted)
    union = found.smallest_derivable_union
    small = union is not None and 0 < union.n < min_n
    for cell in sorted(fallen):
        output = cell.partition("|")[0]
        out.recoverable[output] = out.recoverable.get(output, 0) + 1
    out.package = max(out.package, len(fallen) + small)
    if fallen or small:
        named = ", ".join(sorted(fallen)[:6]) or "a group of people that is no cell of its own"
        out.findings.append(
            note(
                "tables",
                Effect.BLOCK,
                f"Suppressed numbers can be worked out from the published ones: {named}.",
                outside="Suppressed numbers can be worked out from the published ones.",
                next_step="Suppress more cells or drop one of the linked outputs; the session suggests merges.",
            )
        )
    return {
        "cells": len(problem.cells),
        "suppressed": len(hidden),
        "fallen": len(fallen),
        "small_group": bool(small),
    }


def number_findings(problems: Sequence[Mapping[str, Any]], documents: Mapping[str, OutputDocument]) -> list[Finding]:
    """Published Ns and means against the groups of people they are recorded to be about."""
    out: list[Finding] = []
    for data in problems:
        atoms = data.get("atoms", {})
        cells = data.get("cells", {})
        if not isinstance(atoms, dict) or not isinstance(cells, dict):
            continue
        for name, document in documents.items():
            kind = KINDS.get(document.type)
            if kind is not None and kind.tells is not None:
                continue  # a row is a term or a column there; what it tells of a group is a sum, and not its N
            n_at = [i for i, column in enumerate(document.columns) if column.role == "n"]
            for row in document.rows:
                cell = cells.get(f"{name}|{row[0]}")
                if not isinstance(cell, dict) or not n_at:
                    continue
                try:
                    n = sum(int(atoms[atom]["n"]) for atom in cell["atoms"])
                except (KeyError, TypeError, ValueError):
                    continue
                shown = row[n_at[0]]
                if isinstance(shown, int | float) and not _rounds_to(n, float(shown)):
                    out.append(
                        note(
                            "tables",
                            Effect.BLOCK,
                            f"{name}: the N of row {row[0]!r} is not what the evidence records.",
                            target=str(row[0]),
                        )
                    )
    return out[:50]


def _rounds_to(n: int, shown: float) -> bool:
    return n == shown or (shown % 5 == 0 and abs(n - shown) <= 2.5)
