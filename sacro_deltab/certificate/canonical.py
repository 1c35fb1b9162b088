"""The one byte form of a record: canonical JSON and canonical base64, and nothing else is read.

Canonical JSON here: UTF-8, keys sorted, one-space indent (the viewer shows the bytes as they are), shortest numbers,
no NaN, `<`, `>` and `&` written as escapes (no viewer takes them for markup), one newline at the end. Parsing and
writing again must give the same bytes; so duplicate keys, other spellings of a number or an escape, a byte-order
mark and trailing bytes are all refused. What is signed is these bytes; nothing is ever re-serialised to verify.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, NoReturn

from ..base.errors import CertificateError, UnreadableError

MAX_DATA_BYTES = 512 * 1024 * 1024  # evidence and outputs of the largest sessions
MAX_BYTES = 16 * 1024 * 1024  # OpenSAFELY's airlock stops at 16 MB too; a record is a few hundred kB at most


def canonical_json(value: Any) -> bytes:
    """Bytes of `value`; equal values give equal bytes.

    Raises
    ------
    ValueError
        For NaN, infinity or a string that is not valid Unicode.
    """
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return (text + "\n").encode("utf-8")


def read_json(data: bytes, *, path: object, what: str, limit: int = MAX_BYTES) -> Any:
    """Parse JSON bytes strictly: UTF-8, no duplicate key, no NaN, a size limit.

    Raises
    ------
    UnreadableError
        With the place of the first problem.
    """
    if len(data) > limit:
        raise UnreadableError(f"the {what} is larger than {limit} bytes.", path=path)

    def no_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) != len(items):
            raise ValueError("an object has the same key twice")
        return out

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=no_constant)
    except UnicodeDecodeError as error:
        raise UnreadableError(f"the {what} is not UTF-8 text.", path=path, place=f"byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise UnreadableError(
            f"the {what} is not JSON: {error.msg}.", path=path, place=f"line {error.lineno}, column {error.colno}"
        ) from None
    except (ValueError, RecursionError) as error:
        detail = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UnreadableError(f"the {what} is not acceptable JSON: {detail}.", path=path) from None


def read_canonical(data: bytes, *, path: object, what: str) -> Any:
    """Parse canonical JSON; anything that would be written differently is refused.

    Raises
    ------
    UnreadableError
        Not JSON at all.
    CertificateError
        JSON, but not in canonical form.
    """
    value = read_json(data, path=path, what=what)
    try:
        again = canonical_json(value)
    except (ValueError, RecursionError):
        again = b""
    if again != data:
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
