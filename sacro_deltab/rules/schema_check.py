"""JSON Schema messages that a governance officer can read: the schema is chosen by verb first, so never a union."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ..base import resources
from ..base.shape import Check, Compiler
from .marked_yaml import MarkedFile, Problem

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

VERBS = ("require", "forbid", "do", "flag")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where nothing is near."""
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if not near and len(word) <= 2:  # too short for a likeness: the known words of that length
        near = [one for one in words if len(one) == len(word)][:1]
    return f"; did you mean {near[0]!r}?" if near else ""


@cache
def _schema(name: str, definition: str | None) -> Any:
    whole = resources.schema(name)
    chosen = whole if definition is None else whole["$defs"][definition]
    return _flat(chosen, whole.get("$defs", {}))


@cache
def _quick(name: str, definition: str | None) -> Check:
    return Compiler({}).compile(_schema(name, definition))


@cache
def _validator(name: str, definition: str | None) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_schema(name, definition))


def _flat(schema: Any, defs: Mapping[str, Any]) -> Any:
    """The schema with local references put in place and what only editors need left out: a third of the time.

    Left out: `$defs`, names to complete (the loader knows them all) and texts to hover over.
    """
    if isinstance(schema, list):
        return [_flat(one, defs) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _flat(defs[schema["$ref"].removeprefix("#/$defs/")], defs)
    if "anyOf" in schema:
        return _flat(schema["anyOf"][-1], defs)
    out = {}
    for key, value in schema.items():
        if key in ("$defs", "description") and not isinstance(value, bool):
            continue
        if key == "properties" and not any(k in schema for k in ("required", "minProperties", "additionalProperties")):
            continue
        if key == "properties" and isinstance(schema.get("additionalProperties"), dict):
            continue
        out[key] = {k: _flat(v, defs) for k, v in value.items()} if key == "properties" else _flat(value, defs)
    return out


def check(
    marked: MarkedFile, name: str, *path: Any, definition: str | None = None, rule: str | None = None, skip: str = ""
) -> bool:
    """Check the data at `path` of a file against a schema (or one `$defs` entry); True if nothing is wrong.

    `skip` names a top-level key whose content is checked elsewhere.
    """
    data = marked.data
    for step in path:
        data = data[step]
    if skip and isinstance(data, dict):
        data = {key: value for key, value in data.items() if key != skip}
    if next(_quick(name, definition)(data, ""), None) is None:
        return True
    before = len(marked.problems)
    found = _validator(name, definition).iter_errors(data)
    for error in sorted(found, key=lambda e: [str(p) for p in e.absolute_path]):
        _report(marked, error, (*path, *error.absolute_path), rule)
    return len(marked.problems) == before


def _report(marked: MarkedFile, error: ValidationError, where: tuple[Any, ...], rule: str | None) -> None:
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {})) if isinstance(error.schema, Mapping) else []
        instance: Any = error.instance
        for key in instance:
            if key not in known:
                hint = ""
                if instance[key] is None:
                    hint = " (a comma in unquoted text inside { } starts a new key: put the text in quotes)"
                place = marked.key_place(*where, key)
                marked.problems.append(Problem(place, f"unknown key {key!r}{did_you_mean(key, known)}{hint}", rule))
        return
    place = marked.key_place(*where) if error.validator == "required" else marked.place(*where)
    marked.problems.append(Problem(place, _sentence(error, where), rule))


def _sentence(error: ValidationError, where: tuple[Any, ...]) -> str:
    name = f"{where[-1]!r}" if where else "the file"
    value: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "required":
        missing = [key for key in value if key not in instance]
        return f"misses {', '.join(repr(key) for key in missing)}"
    if error.validator in ("enum", "const"):
        allowed = value if error.validator == "enum" else [value]
        words = ", ".join(str(one) for one in allowed)
        return f"{name} must be {'one of ' if len(allowed) > 1 else ''}{words}{_near(instance, allowed)}"
    if error.validator == "type":
        kinds = value if isinstance(value, list) else [value]
        got = "nothing" if instance is None else _kind(instance)
        return f"{name} must be {' or '.join(_article(kind) for kind in kinds)}, not {got}"
    if error.validator == "anyOf":
        return f"{name} is not written as a name must be"
    if error.validator == "pattern":
        return f"{name} is not written as it must be ({value})"
    if error.validator == "propertyNames" or error.parent is not None:
        return f"{name}: {error.message}"
    texts = {
        "minItems": "must not be empty" if value == 1 else f"needs {value} entries",
        "maxItems": f"takes {value} entries",
        "minProperties": "must not be empty" if value == 1 else f"needs {value} keys",
        "maxProperties": f"takes {value} keys",
        "uniqueItems": "says the same twice",
        "minimum": f"must be at least {value}",
        "maximum": f"must be at most {value}",
        "minLength": "must not be empty",
        "maxLength": f"is longer than {value} characters",
        "dependentRequired": "needs 'require' and 'otherwise' together",
    }
    return f"{name} {texts.get(str(error.validator), error.message)}"


def _near(instance: Any, allowed: Iterable[Any]) -> str:
    return did_you_mean(instance, [str(one) for one in allowed]) if isinstance(instance, str) else ""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "a mapping", list: "a list", str: "text", int: "a number", float: "a number"}
    return names.get(type(value), "that")


def _article(kind: str) -> str:
    words = {
        "object": "a mapping",
        "array": "a list",
        "string": "text",
        "number": "a number",
        "integer": "a whole number",
        "boolean": "true or false",
        "null": "null",
    }
    return words.get(kind, kind)
