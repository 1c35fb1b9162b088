"""JSON Schemas compiled to Python once: what is valid, as nearly everything is, need not wait for jsonschema.

Only the keywords that our schemas use are known; any other keyword is an error when the schema is compiled, so that
none can be ignored by accident. Nothing passes here that jsonschema refuses; where numbers are compared with `const` or
`enum` this is the stricter of the two. The tests compare both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from .resources import schema

Check = Callable[[Any, str], Iterator[str]]
_SAID = frozenset({"$schema", "$id", "$comment", "$defs", "title", "description"})
_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: (isinstance(v, int) and not isinstance(v, bool)) or (isinstance(v, float) and v.is_integer()),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}


def shape_problems(value: Any, name: str, part: str | None = None) -> list[str]:
    """Places where `value` departs from `schemas/NAME.schema.json` (or one of its $defs), at most five.

    Values are not repeated: they may be what must not leave.
    """
    found: list[str] = []
    for problem in _compiled(name, part)(value, "$"):
        found.append(problem)
        if len(found) == 5:
            break
    return found


def fits(value: Any, name: str, part: str | None = None) -> bool:
    """Whether `value` is certainly valid. False says nothing: jsonschema decides then, and finds the words."""
    return next(_compiled(name, part)(value, "$"), None) is None


@cache
def _compiled(name: str, part: str | None) -> Check:
    whole = schema(name)
    return Compiler(whole).compile(whole["$defs"][part] if part else whole)


class Compiler:
    """Makes a check of a schema or one of its nodes; `whole` holds the `$defs` that references point to."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self.whole = whole
        self.done: dict[str, Check] = {}

    def compile(self, node: Mapping[str, Any]) -> Check:
        """A function that yields the problems of a value."""
        checks = [self._keyword(key, node) for key in node if key not in _SAID]

        def run(value: Any, path: str) -> Iterator[str]:
            for check in checks:
                yield from check(value, path)

        return run

    def _keyword(self, key: str, node: Mapping[str, Any]) -> Check:
        make = getattr(self, f"_{key.lstrip('$')}", None)
        if make is None:
            raise ValueError(f"schema keyword {key!r} is not known here")
        made: Check = make(node[key], node)
        return made

    def _ref(self, target: str, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        if target not in self.done:
            self.done[target] = self.compile(self.whole["$defs"][target.removeprefix("#/$defs/")])
        return self.done[target]

    def _type(self, names: str | list[str], node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        tests = [_TYPES[n] for n in ([names] if isinstance(names, str) else names)]
        return _when(lambda v: not any(test(v) for test in tests), f"is not of type {names}")

    def _const(self, wanted: Any, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: type(v) is not type(wanted) or v != wanted, f"is not {wanted!r}")

    def _enum(self, wanted: list[Any], node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: not any(type(v) is type(w) and v == w for w in wanted), f"is none of {wanted}")

    def _pattern(self, text: str, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        # `$` in Python also matches before a final newline, which JSON Schema's does not
        pattern = re.compile(text.removesuffix("$") + r"\Z" if text.endswith("$") else text)
        return _when(lambda v: isinstance(v, str) and pattern.search(v) is None, "has another form")

    def _minLength(self, least: int, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: isinstance(v, str) and len(v) < least, "is too short")

    def _minItems(self, least: int, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: isinstance(v, list) and len(v) < least, "has too few items")

    def _maxLength(self, most: int, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: isinstance(v, str) and len(v) > most, "is too long")

    def _maxItems(self, most: int, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: isinstance(v, list) and len(v) > most, "has too many items")

    def _maxProperties(self, most: int, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: isinstance(v, dict) and len(v) > most, "has too many entries")

    def _uniqueItems(self, wanted: bool, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        def repeats(value: Any) -> bool:
            if not wanted or not isinstance(value, list):
                return False
            if all(type(item) is str for item in value):
                return len(set(value)) < len(value)
            return any(item in value[:place] for place, item in enumerate(value))

        return _when(repeats, "says the same twice")

    def _minProperties(self, least: int, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: isinstance(v, dict) and len(v) < least, "has too few entries")

    def _minimum(self, least: float, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: _TYPES["number"](v) and v < least, f"is below {least}")

    def _maximum(self, most: float, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: _TYPES["number"](v) and v > most, f"is above {most}")

    def _exclusiveMinimum(self, least: float, node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: _TYPES["number"](v) and v <= least, f"is not above {least}")

    def _required(self, names: list[str], node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(lambda v: isinstance(v, dict) and any(n not in v for n in names), "lacks an entry")

    def _dependentRequired(self, needs: Mapping[str, list[str]], node: Mapping[str, Any]) -> Check:  # noqa: ARG002
        return _when(
            lambda v: isinstance(v, dict) and any(k in v and any(n not in v for n in needs[k]) for k in needs),
            "lacks an entry that another one needs",
        )

    def _items(self, node: Mapping[str, Any], parent: Mapping[str, Any]) -> Check:
        check, first = self.compile(node), len(parent.get("prefixItems", ()))
        plain = node.get("type") == "number" and not set(node) - _SAID - {"type"}

        def run(value: Any, path: str) -> Iterator[str]:
            if not isinstance(value, list) or (plain and {int, float}.issuperset(map(type, value))):
                return
            for index in range(first, len(value)):
                yield from check(value[index], f"{path}[{index}]")

        return run

    def _prefixItems(self, nodes: list[Mapping[str, Any]], _parent: Mapping[str, Any]) -> Check:
        checks = [self.compile(node) for node in nodes]

        def run(value: Any, path: str) -> Iterator[str]:
            if isinstance(value, list):
                for index, (check, item) in enumerate(zip(checks, value, strict=False)):
                    yield from check(item, f"{path}[{index}]")

        return run

    def _anyOf(self, nodes: list[Mapping[str, Any]], _parent: Mapping[str, Any]) -> Check:
        checks = [self.compile(node) for node in nodes]

        def run(value: Any, path: str) -> Iterator[str]:
            if all(next(check(value, path), None) is not None for check in checks):
                yield f"{path} has none of the forms it may have"

        return run

    def _properties(self, nodes: Mapping[str, Any], _parent: Mapping[str, Any]) -> Check:
        checks = {name: self.compile(node) for name, node in nodes.items()}

        def run(value: Any, path: str) -> Iterator[str]:
            if isinstance(value, dict):
                for name, check in checks.items():
                    if name in value:
                        yield from check(value[name], f"{path}.{name}")

        return run

    def _additionalProperties(self, node: bool | Mapping[str, Any], parent: Mapping[str, Any]) -> Check:
        known = frozenset(parent.get("properties", ()))
        check = None if isinstance(node, bool) else self.compile(node)

        def run(value: Any, path: str) -> Iterator[str]:
            for name in value if isinstance(value, dict) else ():
                if name in known or node is True:
                    continue
                if check is None:
                    yield f"{path} has an entry that has no place there"
                else:
                    yield from check(value[name], f"{path}.*")

        return run

    def _propertyNames(self, node: Mapping[str, Any], _parent: Mapping[str, Any]) -> Check:
        check = self.compile(node)

        def run(value: Any, path: str) -> Iterator[str]:
            for name in value if isinstance(value, dict) else ():
                yield from check(name, f"{path} (a name)")

        return run


def _when(wrong: Callable[[Any], bool], text: str) -> Check:
    def run(value: Any, path: str) -> Iterator[str]:
        if wrong(value):
            yield f"{path} {text}"

    return run
