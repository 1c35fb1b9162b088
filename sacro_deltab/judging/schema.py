"""Checking a document against `schemas/output.schema.json` before it is written and after it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import InputError
from ..base.schemas import faults
from ..kinds.registry import KINDS
from ..outputs import OutputDocument

_PLAIN = frozenset({str, int, float, type(None)})


def known_types() -> frozenset[str]:
    """Kinds of output that are a table."""
    return frozenset(name for name, kind in KINDS.items() if kind.shape)


def document_errors(data: Mapping[str, Any]) -> list[str]:
    """Every fault of a machine form, as `place: what`. Cell values are never echoed.

    The common shape comes first; only when it holds is the shape of the document's own kind looked up.
    """
    rows = data.get("rows")
    shell = {**data, "rows": []} if isinstance(rows, list) else data  # cells are checked below: 10⁵ of them in time
    errors = [str(fault) for fault in faults(shell, "output", most=100)]
    if errors:
        return errors
    if data["type"] not in known_types():
        return [f"type: {data['type']!r} is not an output type this schema knows"]
    errors = [str(fault) for fault in faults(data, "output", "$defs", KINDS[data["type"]].shape, most=100)]
    width = len(data["columns"])
    labels: set[str] = set()
    for number, row in enumerate(data["rows"], start=1):
        if not isinstance(row, list) or len(row) != width:
            errors.append(f"rows/{number}: not one cell for each of the {width} columns")
        elif not _PLAIN.issuperset(map(type, row)):
            errors.append(f"rows/{number}: a cell is neither text nor a number")
        elif not isinstance(row[0], str) or not row[0]:
            errors.append(f"rows/{number}: the first cell must be a name")
        elif row[0] in labels:
            errors.append(f"rows/{number}: the name stands twice")
        else:
            labels.add(row[0])
    names = [column["name"] for column in data["columns"]]
    if len(set(names)) != len(names):
        errors.append("columns: two columns have the same name")
    return errors


def check_document(document: OutputDocument) -> None:
    """Refuse a document that does not match its schema.

    Raises
    ------
    InputError
        Naming the first fault and how many there are.
    """
    errors = document_errors(document.to_data())
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InputError(
            f"output {document.name!r} does not match its schema: {errors[0]}{more}",
            next_step="Check the names of rows and columns, then release it again.",
        )
