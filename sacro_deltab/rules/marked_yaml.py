"""Strict YAML with line marks: what a governance file may contain, and where each piece of it stands.

A subset of YAML 1.2 in which every value means what it looks like: no anchors, aliases, merge keys, tags or
duplicate keys; `no`, `1e-5`, `010`, `12:30` and bare dates are refused with the way to write them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from ..base.errors import UnreadableError
from ..base.opening import read_file
from .model import Place

MAX_BYTES = 2_000_000
MAX_NODES = 200_000
MAX_DEPTH = 24

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]+([eE][-+]?[0-9]+)?)\Z")
_TRAPS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)(yes|no|on|off)\Z"), "is a boolean to some readers: write true or false, or put it in quotes"),
    (re.compile(r"(?i)(true|false|null|~)\Z"), "write true, false or null in small letters, or put it in quotes"),
    (
        re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+\Z"),
        "is text to YAML: write a point and a digit, as in 1.0e-5",
    ),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.)([eE][-+]?[0-9]+)?\Z"), "write a digit on both sides of the point"),
    (re.compile(r"[-+]?0[0-9_]+\Z"), "is an octal number to some readers: drop the leading 0, or put it in quotes"),
    (re.compile(r"(?i)[-+]?0(x[0-9a-f_]+|o[0-7_]+|b[01_]+)\Z"), "write plain decimal numbers, or put it in quotes"),
    (re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?\Z"), "write numbers without underscores"),
    (
        re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?\Z"),
        "is a base-60 number to some readers: put it in quotes",
    ),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*\Z"), "is a date to some readers: put it in quotes"),
    (re.compile(r"(?i)[-+]?\.(inf|nan)\Z"), "infinity and NaN are no limits"),
    (re.compile(r"=\Z"), "put it in quotes"),
)


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a file; `str()` is `file:line:column: rule: what`."""

    place: Place
    what: str
    rule: str | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.rule}: {self.what}" if self.rule else f"{self.place}: {self.what}"


@dataclass
class MarkedFile:
    """Plain data of one file, the place of every key and value by path, and what is wrong with it."""

    path: str
    data: Any = None
    places: dict[tuple[Any, ...], Place] = field(default_factory=dict)
    key_places: dict[tuple[Any, ...], Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    named: dict[tuple[Any, ...], str] = field(default_factory=dict)  # numbers written as a constant's name
    text: str = field(default="", repr=False)
    as_text: bool = False

    def name_entries(self, pattern: re.Pattern[str]) -> None:
        """Give each problem without a name that of the entry it stands in: the last line up to it that `pattern` finds.

        For problems of the text itself (a duplicate key, an alias), which are found before there are entries.
        """
        names = [(i, m[1]) for i, line in enumerate(self.text.splitlines(), 1) if (m := pattern.search(line))]
        for index, problem in enumerate(self.problems):
            above = [name for line, name in names if line <= problem.place.line]
            if problem.rule is None and above:
                self.problems[index] = replace(problem, rule=above[-1])

    def place(self, *path: Any) -> Place:
        """Place of the value at `path`, else of the nearest parent that has one."""
        for cut in range(len(path), -1, -1):
            found = self.places.get(tuple(path[:cut]))
            if found is not None:
                return found
        return Place(self.path, 1, 1)

    def key_place(self, *path: Any) -> Place:
        """Place of the key that leads to `path`, else of the value."""
        return self.key_places.get(tuple(path)) or self.place(*path)


def read_marked(path: Path, name: str, *, raw: bytes | None = None, as_text: bool = False) -> MarkedFile:
    """Read one YAML file; nothing is raised for bad content, all of it is listed in `problems`.

    `as_text` leaves every value as it is written, for files in which people write words (`no` is then the word).
    """
    marked = MarkedFile(name, as_text=as_text)
    start = Place(name, 1, 1)
    if raw is None:
        try:
            raw = read_file(path)
        except UnreadableError as error:
            marked.problems.append(Problem(start, f"cannot be read: {error.what}"))
            return marked
    if len(raw) > MAX_BYTES:
        marked.problems.append(Problem(start, f"is larger than {MAX_BYTES} bytes"))
        return marked
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        marked.problems.append(Problem(Place(name, line, 1), "is not UTF-8"))
        return marked
    if text.startswith("\ufeff"):
        marked.problems.append(Problem(start, "begins with a byte-order mark: save it as UTF-8 without one"))
        text = text[1:]
    marked.text = text
    try:
        _build(_compose(text, marked), marked)
    except yaml.YAMLError as error:
        marked.problems.append(_syntax_problem(error, name, text))
    except (ValueError, RecursionError) as error:
        marked.problems.append(Problem(start, f"cannot be read as YAML: {type(error).__name__}"))
    return marked


def _syntax_problem(error: yaml.YAMLError, name: str, text: str) -> Problem:
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = Place(name, mark.line + 1, mark.column + 1) if mark is not None else Place(name, 1, 1)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "is not YAML"
    lines = text.splitlines()
    if mark is not None and mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]:
        what = "a tab; indent with spaces"
    return Problem(place, f"is not YAML here: {what}")


def _compose(text: str, marked: MarkedFile) -> yaml.Node | None:
    """The tree of the first document, built from events, which are iterative: depth and aliases do no harm.

    An alias is noted and stands as an empty text, so that one run still names every other mistake of the file; None
    where the file is too deep, too large or holds a second document.
    """
    root: yaml.Node | None = None
    open_nodes: list[Any] = []  # collections being read; a mapping's key waits in `keys` for its value
    keys: list[yaml.Node | None] = []
    event: Any
    for nodes, event in enumerate(yaml.parse(text, Loader=_Loader)):
        place = Place(marked.path, event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            marked.problems.append(Problem(place, "a file holds one document"))
            return None
        if nodes > MAX_NODES:
            marked.problems.append(Problem(place, f"holds more than {MAX_NODES} pieces"))
            return None
        _refuse_marks(event, place, marked)
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            open_nodes.pop()
            keys.pop()
            continue
        node = _node(event)
        if node is None:
            continue
        if not open_nodes:
            root = node
        elif isinstance(open_nodes[-1], yaml.SequenceNode):
            open_nodes[-1].value.append(node)
        elif keys[-1] is None:
            keys[-1] = node
        else:
            open_nodes[-1].value.append((keys[-1], node))
            keys[-1] = None
        if isinstance(node, (yaml.MappingNode, yaml.SequenceNode)):
            open_nodes.append(node)
            keys.append(None)
            if len(open_nodes) > MAX_DEPTH:
                marked.problems.append(Problem(place, f"is nested more than {MAX_DEPTH} deep"))
                return None
    return root


def _refuse_marks(event: Any, place: Place, marked: MarkedFile) -> None:
    if isinstance(event, yaml.AliasEvent):
        marked.problems.append(Problem(place, "aliases (*name) are not allowed: write the value out"))
    elif getattr(event, "anchor", None):
        marked.problems.append(Problem(place, "anchors (&name) are not allowed: write the value out"))
    if getattr(event, "tag", None):
        marked.problems.append(Problem(place, "tags (!name) are not allowed"))


def _node(event: Any) -> yaml.Node | None:
    """An empty node for an event that starts one; None for the rest."""
    start: Any = event.start_mark
    end: Any = event.end_mark
    if isinstance(event, yaml.ScalarEvent):
        return yaml.ScalarNode("", event.value, start, end, style=event.style)
    if isinstance(event, yaml.AliasEvent):
        return yaml.ScalarNode("", "", start, end, style='"')
    if isinstance(event, yaml.MappingStartEvent):
        return yaml.MappingNode("", [], start, end)
    if isinstance(event, yaml.SequenceStartEvent):
        return yaml.SequenceNode("", [], start, end)
    return None


def _build(node: yaml.Node | None, marked: MarkedFile) -> None:
    if node is not None:
        marked.data = _value(node, (), marked)
    elif not marked.problems:
        marked.problems.append(Problem(Place(marked.path, 1, 1), "is empty"))


def _place(node: yaml.Node, marked: MarkedFile) -> Place:
    return Place(marked.path, node.start_mark.line + 1, node.start_mark.column + 1)


def _value(node: yaml.Node, path: tuple[Any, ...], marked: MarkedFile) -> Any:
    marked.places[path] = _place(node, marked)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, marked)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), marked) for i, item in enumerate(node.value)]
    return _mapping(node, path, marked)


def _mapping(node: yaml.Node, path: tuple[Any, ...], marked: MarkedFile) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key_node, value_node in node.value:
        place = _place(key_node, marked)
        if not isinstance(key_node, yaml.ScalarNode):
            marked.problems.append(Problem(place, "a key must be a word"))
            continue
        key = str(key_node.value)
        if not key_node.style and key == "<<":
            marked.problems.append(Problem(place, "merge keys (<<) are not allowed: write the values out"))
            continue
        if key in out:
            first = marked.key_places[(*path, key)]
            marked.problems.append(Problem(place, f"the key {key!r} stands twice (first in line {first.line})"))
            continue
        marked.key_places[(*path, key)] = place
        out[key] = _value(value_node, (*path, key), marked)
    return out


def _scalar(node: yaml.ScalarNode, marked: MarkedFile) -> Any:
    text = str(node.value)
    if node.style or marked.as_text:  # quoted, literal or folded: always text (plain is None or "")
        return text
    if text in ("true", "false"):
        return text == "true"
    if text in ("", "null"):
        return None
    if _INTEGER.match(text):
        if len(text) > 18:
            marked.problems.append(Problem(_place(node, marked), "is too large a number"))
            return 0
        return int(text)
    if _FLOAT.match(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            marked.problems.append(Problem(_place(node, marked), "is too large a number"))
            return 0.0
        return number
    for pattern, advice in _TRAPS:
        if pattern.match(text):
            marked.problems.append(Problem(_place(node, marked), f"{text!r} {advice}"))
            break
    return text
