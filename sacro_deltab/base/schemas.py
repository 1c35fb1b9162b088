"""Checking plain JSON values against our schemas: the place and the keyword of each fault, never a value.

`jsonschema_rs` decides: on evidence of 300 outputs it takes 0.7 ms where the `jsonschema` package takes 285. Its own
messages repeat what was found, so none of them is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError

from .errors import InputError
from .resources import schema

_WANTED = ("limit", "options", "expected_value", "types", "property", "pattern")
_WORDS = {
    "type": "must be of type {}",
    "const": "must be {}",
    "enum": "must be one of {}",
    "required": "lacks {}",
    "additionalProperties": "has an entry that has no place there",
    "pattern": "has another form",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be above {}",
    "exclusiveMaximum": "must be below {}",
    "minLength": "is too short",
    "maxLength": "is too long",
    "minItems": "needs at least {} entries",
    "maxItems": "has more than {} entries",
    "minProperties": "needs at least {} entries",
    "maxProperties": "has more than {} entries",
    "uniqueItems": "says the same twice",
    "dependentRequired": "lacks an entry that another one needs",
    "anyOf": "has none of the forms it may have",
    "propertyNames": "has a name of another form",
}


@dataclass(frozen=True)
class Fault:
    """One departure from a schema. `wanted` is what the schema says; `instance` is for the caller's eyes only."""

    path: tuple[str | int, ...]
    keyword: str
    wanted: Any = None
    instance: Any = field(default=None, repr=False, compare=False)
    known: tuple[str, ...] = ()  # entries that may stand there, for `additionalProperties`

    @property
    def place(self) -> str:
        """`rows/3/name`, or `document` for the whole."""
        return "/".join(str(part) for part in self.path) or "document"

    @property
    def said(self) -> str:
        """What is wrong, in words: what the schema wants, never what was found."""
        wanted = ", ".join(map(repr, self.wanted)) if isinstance(self.wanted, list) else repr(self.wanted)
        return _WORDS.get(self.keyword, f"breaks {self.keyword!r}").format(wanted)

    def __str__(self) -> str:
        return f"{self.place}: {self.said}"


@cache
def _validator(name: str, *way: str) -> tuple[Draft202012Validator, dict[str, Any]]:
    """The validator of `schemas/NAME.schema.json`, or of the part of it that `way` leads to, and its schema."""
    whole = part = schema(name)
    for step in way:
        part = part[step]
    kept = {"$schema": whole["$schema"], "$defs": whole.get("$defs", {}), **part}
    kept.pop("$id", None)
    return Draft202012Validator(kept), kept


def faults(value: Any, name: str, *way: str, most: int = 5) -> list[Fault]:
    """Where `value` departs from a schema, the first `most` places in the order of the document.

    Examples
    --------
    >>> [str(f) for f in faults({"schema": 1}, "declare")][:1]
    ["schema: must be 'sacro_deltab/declare/1'"]
    """
    try:
        validator, whole = _validator(name, *way)
        if validator.is_valid(value):
            return []
        found = [_fault(error, whole) for error in validator.iter_errors(value)]
    except (ValueError, UnicodeEncodeError):  # no JSON value: another type, a key that is no text, half a character
        return [Fault((), "type", "JSON")]
    return sorted(found, key=lambda fault: [str(part) for part in fault.path])[:most]


def fits(value: Any, name: str, *way: str) -> bool:
    """Whether `value` follows a schema."""
    return not faults(value, name, *way, most=1)


def check(value: Any, name: str, *, path: object | None = None, what: str, next_step: str) -> None:
    """Refuse a value that does not follow `schemas/NAME.schema.json`.

    Raises
    ------
    InputError
        Naming all places found, up to five.
    """
    found = faults(value, name)
    if found:
        rest = "; ".join(str(fault) for fault in found[1:])
        raise InputError(
            f"{what} does not follow its schema: {found[0].said}{'; ' if rest else ''}{rest}",
            path=path,
            place=found[0].place,
            next_step=next_step,
        )


def _fault(error: ValidationError, whole: Any) -> Fault:
    said, keyword = error.kind.as_dict(), str(error.kind.name)
    wanted = next((said[name] for name in _WANTED if name in said), None)
    if keyword == "type" and isinstance(wanted, list) and len(wanted) == 1:
        wanted = wanted[0]
    if error.schema_path[-1] == "dependentRequired":
        keyword = "dependentRequired"
    known: tuple[str, ...] = ()
    if keyword == "additionalProperties":
        for step in error.schema_path[:-1]:
            whole = whole[step]
        known = tuple(whole.get("properties", ()))
    return Fault(tuple(error.instance_path), keyword, wanted, error.instance, known)
