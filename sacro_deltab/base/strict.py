"""The one JSON reader: one meaning, bounded, finite, with the place of the first fault.

Refused: not UTF-8, a byte-order mark, a name twice in one object, NaN and Infinity, numbers beyond a double, integers
over 18 digits, lone surrogates, nesting or items over the bounds, anything after the value. Two readers of such a text
would see two different things. No message repeats a value or a name: they may be about people.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .errors import UnreadableError
from .opening import LARGE, SMALL, read_file

_STEP = "Write it with the package's own export, or repair the place named."
_SLOW = re.compile(r"\d{19}|[eE]\+?\d{3}")  # only such a text can hold an integer or a number that is too long
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|NaN|-?Infinity|-?\d[\d.eE+-]*')


@dataclass(frozen=True)
class Bounds:
    """What one JSON text may take."""

    size: int = SMALL
    items: int = 2_000_000
    depth: int = 64
    digits: int = 18


USUAL = Bounds()
DATA = Bounds(size=LARGE, items=3_000_000)  # evidence and outputs of the largest sessions


class _Fault(Exception):
    pass


def parse(data: bytes | str, *, path: object | None = None, bounds: Bounds = USUAL) -> Any:
    """The value of a JSON text.

    Parameters
    ----------
    path
        How messages name the file.

    Raises
    ------
    UnreadableError
        With the line and column of the first fault.
    """
    text = _decoded(data, path, bounds)
    if text.count(",") + text.count("[") + text.count("{") > bounds.items:
        raise UnreadableError("it holds more items than such a file needs", path=path, next_step=_STEP)
    try:
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant, **_hooks(text, bounds))
        if text.count("[") + text.count("{") > bounds.depth:
            _check_depth(value, bounds.depth)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except _Fault as fault:
        raise UnreadableError(str(fault), path=path, place=_place(text, bounds), next_step=_STEP) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UnreadableError(f"it is not JSON: {error.msg}", path=path, place=place, next_step=_STEP) from None
    except RecursionError:
        raise UnreadableError("it is nested too deeply", path=path, next_step=_STEP) from None
    except UnicodeEncodeError:
        raise UnreadableError("it holds half a character (a lone surrogate)", path=path, next_step=_STEP) from None
    except ValueError as error:
        raise UnreadableError(f"it is not JSON ({type(error).__name__})", path=path, next_step=_STEP) from None
    return value


def parse_object(data: bytes | str, *, path: object | None = None, bounds: Bounds = USUAL) -> dict[str, Any]:
    """The value of a JSON text that is one object."""
    value = parse(data, path=path, bounds=bounds)
    if not isinstance(value, dict):
        raise UnreadableError("it is JSON, but not one object", path=path, next_step=_STEP)
    return value


def read_json(path: str | Path, *, bounds: Bounds = USUAL) -> Any:
    """The value of a JSON file that somebody named; a byte-order mark, as some editors write it, is passed over."""
    return parse(_file(path, bounds), path=path, bounds=bounds)


def read_object(path: str | Path, *, bounds: Bounds = USUAL) -> dict[str, Any]:
    """As `read_json`, for a file that holds one object."""
    return parse_object(_file(path, bounds), path=path, bounds=bounds)


def _file(path: str | Path, bounds: Bounds) -> bytes:
    return read_file(path, limit=bounds.size).removeprefix(codecs.BOM_UTF8)


def _decoded(data: bytes | str, path: object | None, bounds: Bounds) -> str:
    if len(data) > bounds.size:
        raise UnreadableError(f"it is larger than {bounds.size} bytes", path=path, next_step="Give a smaller file.")
    if isinstance(data, str):
        text = data
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            place = f"byte {error.start}"
            raise UnreadableError("it is not UTF-8", path=path, place=place, next_step="Save it as UTF-8.") from None
    if text.startswith("\ufeff"):
        step = "Save it as UTF-8 without a byte-order mark."
        raise UnreadableError("it starts with a byte-order mark", path=path, next_step=step)
    return text


def _hooks(text: str, bounds: Bounds) -> dict[str, Any]:
    """Checks of single numbers, where the text can hold one that is too long: each costs a call for every number."""
    if _SLOW.search(text) is None:
        return {}

    def integer(literal: str) -> int:
        if len(literal.lstrip("-")) > bounds.digits:
            raise _Fault(f"it holds an integer of more than {bounds.digits} digits")
        return int(literal)

    def real(literal: str) -> float:
        value = float(literal) if len(literal) < 400 else math.inf
        if not math.isfinite(value):
            raise _Fault("it holds a number that is not finite")
        return value

    return {"parse_int": integer, "parse_float": real}


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(items)
    if len(out) != len(items):
        raise _Fault("a key stands twice in one object")
    return out


def _constant(_: str) -> NoReturn:
    raise _Fault("it holds NaN or Infinity, which are not JSON")


def _check_depth(value: Any, most: int) -> None:
    level = [value]
    for _ in range(most):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list) and child
        ]
        if not level:
            return
    raise _Fault("it is nested too deeply")


def _place(text: str, bounds: Bounds) -> str | None:
    """Line and column of the first thing that `parse` refuses; worked out only when something was refused."""
    names: list[set[str] | None] = []
    expects_name = False
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in "{[":
            names.append(set() if word == "{" else None)
            if len(names) > bounds.depth:
                return _spot(text, token.start())
        elif word in "}]":
            if names:
                names.pop()
        elif expects_name and word[0] == '"' and names and (seen := names[-1]) is not None:
            name = json.loads(word, strict=False)
            if name in seen:
                return _spot(text, token.start())
            seen.add(name)
        elif word[0] not in '"{}[],:' and _bad_number(word, bounds):
            return _spot(text, token.start())
        expects_name = word == "{" or (word == "," and bool(names) and names[-1] is not None)
    return None


def _bad_number(word: str, bounds: Bounds) -> bool:
    if word[-1] in "yN":
        return True
    if word.lstrip("-").isdigit():
        return len(word.lstrip("-")) > bounds.digits
    try:
        return not math.isfinite(float(word[:400]))
    except ValueError:
        return False


def _spot(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"
