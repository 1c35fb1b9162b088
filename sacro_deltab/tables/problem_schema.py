"""Whether a problem file has the shape of one: the schema, and keys that nothing would read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from ..base.errors import InputError
from ..base.resources import schema
from ..base.schemas import Fault, faults
from .table import ROLES

_PLAIN_ATOM = {"n", "sum", "sumsq"}
_PLAIN_CELL = {"table", "role", "atoms", "n", "n_published", "sum", "mean", "n_rounding"}
_ROUNDINGS = ("exact", "rule", "all", "hidden")


def _number(value: object, optional: bool = False) -> bool:
    return type(value) in (int, float) or (optional and value is None)


def _plain_atom(entry: object) -> bool:
    if type(entry) is not dict or not _number(entry.get("n")) or not entry.keys() <= _PLAIN_ATOM:
        return False
    return _number(entry.get("sum"), True) and _number(entry.get("sumsq"), True)


def _plain_cell(entry: object) -> bool:
    if type(entry) is not dict or not entry.keys() <= _PLAIN_CELL:
        return False
    atoms = entry.get("atoms")
    return (
        type(atoms) is list
        and len(atoms) > 0
        and all(type(a) is str for a in atoms)
        and type(entry.get("table", "")) is str
        and entry.get("role", "interior") in ROLES
        and entry.get("n_rounding", "rule") in _ROUNDINGS
        and _number(entry.get("n", 0))
        and _number(entry.get("n_published", 0))
        and _number(entry.get("sum"), True)
        and _number(entry.get("mean"), True)
    )


def _without_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """The file without entries that plainly fit the schema: a validator that walks 10⁵ of them takes half a minute."""
    shown = dict(data)
    for key, plain in (("atoms", _plain_atom), ("cells", _plain_cell)):
        block = data.get(key)
        if type(block) is dict and len(block) > 50:
            odd = {name: entry for name, entry in block.items() if not plain(entry)}
            shown[key] = odd or dict(list(block.items())[:1])
    return shown


_SEE = "see schemas/table-problem.schema.json"
_NOTES = {"symbol", "note", "comment", "why", "title", "label", "description"}  # said to people, read by nobody
_ANSWERS = {
    "id", "title", "why", "tags", "withhold_at_minimum", "min_complementary_exact", "min_complementary_policy",
    "everything_published", "protection", "facts", "safe",
}  # fmt: skip


def check_schema(data: Mapping[str, Any], path: object | None = None) -> None:
    """Validate against `schemas/table-problem.schema.json`; the first fault is the one shown.

    Raises
    ------
    InputError
        Another shape, or a key that nothing would read where it may have been meant to change the answer.
    """
    shown = _without_plain(data)
    if found := faults(shown, "table-problem", most=1):
        raise InputError(
            f"does not fit the schema of a problem: {_said(found[0])}",
            path=path,
            place=".".join(str(part) for part in found[0].path) or "the file",
            next_step=_SEE,
        )
    for place, key, instead in _unread(shown):
        step = f"was {instead!r} meant?" if instead else f"take it out, or {_SEE}"
        raise InputError(f"the key {key!r} is not known here", path=path, place=place, next_step=step)


def _said(fault: Fault) -> str:
    """A keyword of the schema, in words."""
    if fault.keyword == "anyOf":  # value_bounds
        return "it must be null or a list of two numbers"
    return f"it {fault.said}"[:300]


def _unread(data: Mapping[str, Any]) -> Iterable[tuple[str, str, str | None]]:
    """(place, key, what it resembles) of the keys that would go unread: all in policy and attacker; numbers and lists
    in atoms and cells; and whatever looks like a misspelt name anywhere."""
    known = schema("table-problem")["properties"]
    for key in data:
        if key not in known and key not in _ANSWERS and (near := _resembles(key, known)):
            yield "the file", key, near
    for block in ("policy", "attacker"):
        names = known[block]["properties"]
        for key in data.get(block, {}):
            if key not in names and key not in _NOTES:
                yield block, key, _resembles(key, names)
    for block in ("atoms", "cells"):
        names = known[block]["additionalProperties"]["properties"]
        for name, entry in data[block].items():
            for key in entry.keys() - names.keys() - _NOTES:
                near = _resembles(key, names)
                if near or not isinstance(entry[key], str):
                    yield f"{block}.{name}", key, near


def _resembles(key: str, names: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(key.lower(), list(names), 1, 0.8)), None)
