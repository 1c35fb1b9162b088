"""Checking a document against `schemas/output.schema.json` before it is written and after it is read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..base.errors import InputError
from ..base.resources import schema
from ..base.shape import Check, Compiler
from .document import OutputDocument

_PLAIN = frozenset({str, int, float, type(None)})


def _schema(output_type: str | None) -> dict[str, Any]:
    """The common shape, or the shape of one type."""
    base = schema("output")
    if output_type is None:
        return {k: v for k, v in base.items() if k != "types"}
    return {"$schema": base["$schema"], "$defs": base["$defs"], **base["types"][output_type]}


@cache
def _quick(output_type: str | None) -> Check:
    return Compiler(schema("output")).compile(_schema(output_type))


@cache
def _validator(output_type: str | None) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_schema(output_type))


def _faults(output_type: str | None, data: Any) -> list[str]:
    if next(_quick(output_type)(data, ""), None) is None:
        return []
    return [_message(error) for error in _validator(output_type).iter_errors(data)]


def known_types() -> frozenset[str]:
    """Output types that have a shape of their own in the schema."""
    return frozenset(schema("output")["types"])


def document_errors(data: Mapping[str, Any]) -> list[str]:
    """Every fault of a machine form, as `place: what`. Cell values are never echoed.

    The common shape comes first; only when it holds is the entry of the document's own type looked up.
    """
    rows = data.get("rows")
    shell = {**data, "rows": []} if isinstance(rows, list) else data  # cells are checked below: 10⁵ of them in time
    errors = _faults(None, shell)
    if errors:
        return errors
    if data["type"] not in known_types():
        return [f"type: {data['type']!r} is not an output type this schema knows"]
    errors = _faults(data["type"], data)
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


def _message(error: Any) -> str:
    place = "/".join(str(part) for part in error.absolute_path) or "document"
    reasons = {
        "pattern": "has a character that may not stand there",
        "maxLength": "is too long",
        "minLength": "is empty",
        "const": f"must be {error.validator_value!r}",
        "enum": f"must be one of {error.validator_value!r}",
        "type": f"must be {error.validator_value!r}",
        "minItems": f"needs at least {error.validator_value} entries",
        "maxItems": f"has more than {error.validator_value} entries",
        "required": f"lacks one of {error.validator_value!r}",
        "additionalProperties": "has an entry the schema does not know",
    }
    return f"{place}: {reasons.get(error.validator, f'breaks {error.validator!r}')}"
