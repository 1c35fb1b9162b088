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

_WANTED = ("limit", "options", "expected_value", "types", "property")
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

    @property
    def place(self) -> str:
        """`rows/3/name`, or `document` for the whole."""
        return "/".join(str(part) for part in self.path) or "document"

    def __str__(self) -> str:
        wanted = self.wanted
        said = ", ".join(map(repr, wanted)) if isinstance(wanted, list) else repr(wanted)
        return f"{self.place}: {_WORDS.get(self.keyword, f'breaks {self.keyword!r}').format(said)}"


@cache
def validator(name: str, *way: str) -> Draft202012Validator:
    """The validator of `schemas/NAME.schema.json`, or of the part of it that `way` leads to."""
    whole = schema(name)
    part = whole
    for step in way:
        part = part[step]
    kept = {"$schema": whole["$schema"], "$defs": whole.get("$defs", {}), **part} if way else whole
    return Draft202012Validator({k: v for k, v in kept.items() if k != "$id"})


def faults(value: Any, name: str, *way: str, most: int = 5) -> list[Fault]:
    """Where `value` departs from a schema, the first `most` places in the order of the document.

    Examples
    --------
    >>> [str(f) for f in faults({"schema": 1}, "declare")][:1]
    ["schema: must be 'sacro_deltab/declare/1'"]
    """
    try:
        check = validator(name, *way)
        if check.is_valid(value):
            return []
        found = [_fault(error) for error in check.iter_errors(value)]
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
            f"{what} does not follow its schema: {str(found[0]).partition(': ')[2]}{'; ' if rest else ''}{rest}",
            path=path,
            place=found[0].place,
            next_step=next_step,
        )


def _fault(error: ValidationError) -> Fault:
    said = error.kind.as_dict()
    wanted = next((said[name] for name in _WANTED if name in said), None)
    if wanted is not None and error.kind.name == "type" and len(wanted) == 1:
        wanted = wanted[0]
    return Fault(tuple(error.instance_path), str(error.kind.name), wanted, error.instance)
