"""The one byte form of a value: what is signed, compared or hashed is these bytes and no others.

Keys sorted, shortest numbers, no NaN. In a file, one pair a line, UTF-8, `<`, `>` and `&` as escapes (no viewer takes
them for markup), one newline at the end; on one line, no blanks, ASCII. Both are fixed for good: earlier certificates
and ledgers are verified by them. Nothing is ever re-serialised to verify.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from .errors import CertificateError, InputError
from .opening import MIB
from .strict import Bounds, parse

MAX_BYTES = 16 * MIB  # OpenSAFELY's airlock stops at 16 MB too; a record is a few hundred kB at most
RECORD = Bounds(size=MAX_BYTES)


def canonical_json(value: Any) -> bytes:
    """The file form of `value`; equal values give equal bytes.

    Raises
    ------
    ValueError
        For NaN, infinity or a string that is not valid Unicode.
    """
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return (text + "\n").encode("utf-8")


def canonical_line(value: Any) -> str:
    """The one-line form of `value`, for digests and ledger entries.

    Raises
    ------
    InputError
        For NaN, infinity, and what JSON cannot hold. NumPy scalars and read-only mappings count as what they hold.
    """
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=_plain
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"only plain JSON values have a canonical form ({error})") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    raise TypeError(f"{type(value).__name__} is none")


def shown_json(value: Any) -> str:
    """JSON for a person or a pipe, in the order in which it was made; never signed or hashed."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


_WIDTH = (
    100  # characters: the viewer shows a file as it is written, and a wide line moves its buttons out of the window
)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # `json.dumps` makes an encoder for each call


def narrow_json(value: Mapping[str, Any], *, by_line: str) -> str:
    """`value` in lines of at most 100 characters, a longer text alone excepted; `<`, `>` and `&` as escapes.

    One pair a line; what fits on its line stays on it. The items of the list `by_line` have a line each.
    """
    parts = [f" {_flat(key)}: {_narrow(item, 2, len(_flat(key)) + 3)}" for key, item in value.items() if key != by_line]
    items = ",\n  ".join(_narrow(item, 3, 2) for item in value[by_line])
    return "{\n" + ",\n".join([*parts, f" {_flat(by_line)}: [\n  {items}\n ]"]) + "\n}\n"


def _flat(value: Any) -> str:
    return _encode(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _narrow(value: Any, depth: int, used: int) -> str:
    """`value` where `used` characters stand on the line already; what it is broken into is indented by `depth`."""
    flat, pad = _flat(value), " " * depth
    if used + len(flat) < _WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    if isinstance(value, dict):
        heads = [(f"{pad}{_flat(key)}: ", item) for key, item in value.items()]
        body = ",\n".join(head + _narrow(item, depth + 1, len(head)) for head, item in heads)
        return f"{{\n{body}\n{pad[:-1]}}}"
    if any(isinstance(item, dict | list) for item in value):
        body = ",\n".join(pad + _narrow(item, depth + 1, depth) for item in value)
        return f"[\n{body}\n{pad[:-1]}]"
    lines, at = [""], depth
    for word in (f"{_flat(item)}," for item in value):
        if lines[-1] and at + len(word) >= _WIDTH:
            lines.append("")
            at = depth
        lines[-1] += f" {word}" if lines[-1] else word
        at += len(word) + 1
    body = "\n".join(pad + line for line in lines)
    return f"[\n{body[:-1]}\n{pad[:-1]}]"


def read_canonical(data: bytes, *, path: object, what: str) -> Any:
    """Parse the file form; anything that would be written differently is refused.

    Raises
    ------
    UnreadableError
        Not JSON at all.
    CertificateError
        JSON, but not in canonical form.
    """
    value = parse(data, path=path, bounds=RECORD)
    if canonical_json(value) != data:
        raise CertificateError(
            f"the {what} is not in canonical form: its bytes were changed after it was written.",
            path=path,
            next_step="ask for the file as it was written; do not open and save it in an editor.",
        )
    return value


def encode_base64(data: bytes) -> str:
    """Standard base64 with padding."""
    return base64.b64encode(data).decode("ascii")


def decode_base64(text: object, *, path: object, what: str) -> bytes:
    """Decode standard base64; other alphabets, spaces, missing padding and stray bits are refused.

    Raises
    ------
    CertificateError
        When `text` is not exactly what `encode_base64` writes.
    """
    if isinstance(text, str):
        try:
            data = base64.b64decode(text.encode("ascii"), validate=True)
        except (binascii.Error, ValueError):
            data = None
        if data is not None and encode_base64(data) == text:
            return data
    raise CertificateError(f"the {what} is not canonical base64.", path=path)
