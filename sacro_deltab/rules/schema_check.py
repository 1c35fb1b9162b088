"""JSON Schema messages that a governance officer can read: the schema is chosen by verb first, so never a union."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from ..base.resources import schema
from ..base.schemas import Fault, faults
from .marked_yaml import MarkedFile, Problem

VERBS = ("require", "forbid", "do", "flag")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where nothing is near."""
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if not near and len(word) <= 2:  # too short for a likeness: the known words of that length
        near = [one for one in words if len(one) == len(word)][:1]
    return f"; did you mean {near[0]!r}?" if near else ""


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
    found = faults(data, name, *(("$defs", definition) if definition else ()), most=200)
    for fault in found:
        _report(marked, fault, (*path, *fault.path), rule)
    return not found


def _report(marked: MarkedFile, fault: Fault, where: tuple[Any, ...], rule: str | None) -> None:
    if fault.keyword == "additionalProperties":
        for key in fault.instance:
            if key not in fault.known:
                hint = ""
                if fault.instance[key] is None:
                    hint = " (a comma in unquoted text inside { } starts a new key: put the text in quotes)"
                place = marked.key_place(*where, key)
                text = f"unknown key {key!r}{did_you_mean(key, fault.known)}{hint}"
                marked.problems.append(Problem(place, text, rule))
        return
    if fault.keyword == "propertyNames" and isinstance(fault.instance, dict):
        known = [*schema("ruleset")["$defs"]["conditions"]["properties"]]
        for key in (k for k in fault.instance if not _NAME.fullmatch(str(k))):
            text = f"no fact {key!r}{did_you_mean(key, known)}"
            marked.problems.append(Problem(marked.key_place(*where, key), text, rule))
        return
    if fault.keyword == "type" and isinstance(fault.instance, str) and fault.wanted == "object" and _is_fact(where):
        text = f"{where[-1]!r} needs a comparator and a limit: write {{{_comparison(fault.instance)}}}"
        marked.problems.append(Problem(marked.place(*where), text, rule))
        return
    place = marked.key_place(*where) if fault.keyword == "required" else marked.place(*where)
    marked.problems.append(Problem(place, _sentence(fault, where), rule))


_NAME = re.compile(r"[a-z_]+(\.[a-z_]+)*")
_SIGNS = {">=": "at_least", "<=": "at_most", ">": "more_than", "<": "less_than", "=": "is", "==": "is"}


def _is_fact(where: tuple[Any, ...]) -> bool:
    return len(where) > 1 and where[-2] in ("when", "require")


def _comparison(text: str) -> str:
    """`>= 20` as the language says it."""
    found = re.fullmatch(r"(>=|<=|==|=|>|<)\s*(\S+)", text.strip())
    return f"{_SIGNS[found[1]]}: {found[2]}" if found else "at_least: …"


def _sentence(fault: Fault, where: tuple[Any, ...]) -> str:
    name = f"{where[-1]!r}" if where else "the file"
    value, instance = fault.wanted, fault.instance
    if fault.keyword == "required":
        return f"misses {value!r}"
    if fault.keyword in ("enum", "const"):
        allowed = value if fault.keyword == "enum" else [value]
        words = ", ".join(str(one) for one in allowed)
        return f"{name} must be {'one of ' if len(allowed) > 1 else ''}{words}{_near(instance, allowed)}"
    if fault.keyword == "type":
        kinds = value if isinstance(value, list) else [value]
        got = "nothing" if instance is None else _kind(instance)
        return f"{name} must be {' or '.join(_article(kind) for kind in kinds)}, not {got}"
    texts = {
        "anyOf": "is not written as a name must be",
        "pattern": f"is not written as it must be ({value})",
        "minItems": "must not be empty" if value == 1 else f"needs {value} entries",
        "maxItems": f"takes {value} entries",
        "minProperties": "must not be empty" if value == 1 else f"needs {value} keys",
        "maxProperties": f"takes {value} keys",
        "minLength": "must not be empty",
        "maxLength": f"is longer than {value} characters",
        "dependentRequired": "needs 'require' and 'otherwise' together",
    }
    return f"{name} {texts.get(fault.keyword, fault.said)}"


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
