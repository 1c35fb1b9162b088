"""One JSON reader: what two readers could understand differently is refused, with its place and without its content."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.canonical import canonical_json, canonical_line, read_canonical
from sacro_deltab.base.errors import CertificateError, InputError, UnreadableError
from sacro_deltab.base.strict import Bounds, parse, parse_object, read_json

REFUSED: dict[str, tuple[bytes, str]] = {
    "a key twice": (b'{"a": 1,\n "b": {"P0001": 2, "P0001": 3}}', "line 2, column 20"),
    "a key twice, spelt in another way": (b'{"a": 1, "\\u0061": 2}', "line 1, column 10"),
    "NaN": (b"[1,\n NaN]", "line 2, column 2"),
    "-Infinity": (b"[-Infinity]", "line 1, column 2"),
    "beyond a double": (b'{"x": 1e999}', "line 1, column 7"),
    "19 digits": (b"[1, 1234567890123456789]", "line 1, column 5"),
    "too deep": (b"[" * 70 + b"]" * 70, "line 1, column 65"),
    "far too deep": (b"[" * 100_000, ""),
    "a lone surrogate": (b'{"x": "\\ud83d"}', ""),
    "a lone surrogate in a key": (b'{"\\uDE00": 1}', ""),
    "bytes of a surrogate": (b'"\xed\xa0\x80"', "byte 1"),
    "latin-1": ("é".encode("latin-1"), "byte 0"),
    "a byte-order mark": (b"\xef\xbb\xbf{}", ""),
    "something after": (b"{} {}", "line 1, column 4"),
    "nothing": (b"", "line 1, column 1"),
    "a control character": (b'"a\x00b"', "line 1, column 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_place(name: str) -> None:
    data, place = REFUSED[name]
    with pytest.raises(UnreadableError) as caught:
        parse(data, path="x.json")
    assert (caught.value.place or "") == place
    assert "P0001" not in str(caught.value) and "123456789" not in str(caught.value)


def test_bounds() -> None:
    with pytest.raises(UnreadableError, match="larger than 5 bytes"):
        parse(b'"aaaaaa"', bounds=Bounds(size=5))
    with pytest.raises(UnreadableError, match="more items"):
        parse(json.dumps(list(range(50))), bounds=Bounds(items=20))
    with pytest.raises(UnreadableError, match="not one object"):
        parse_object(b"[]")
    assert parse("[" * 64 + "]" * 64) is not None


TEXT = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(value=JSON)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert parse(canonical_json(value)) == value
    assert parse(canonical_line(value)) == value
    assert parse(json.dumps(value)) == value  # pairs of surrogates are one character
    assert read_canonical(canonical_json(value), path="x", what="value") == value


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=60) | st.text('{}[]",:ae019.-+N\\u d8\n', max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = parse(data)
    except UnreadableError:
        return
    assert parse(canonical_json(value)) == value == json.loads(data)


@pytest.mark.parametrize(
    "other", [b'{"a":1}\n', b'{\n "b": 1,\n "a": 1\n}\n', b'{\n "a": 1\n}', b'{\n "a": 1.0e0\n}\n']
)
def test_another_form_of_a_record_is_refused(other: bytes) -> None:
    with pytest.raises(CertificateError, match="canonical form"):
        read_canonical(other, path="x", what="statement")


def test_what_has_no_canonical_form() -> None:
    for bad in (float("nan"), {1, 2}, object()):
        with pytest.raises(InputError):
            canonical_line({"x": bad})
    with pytest.raises(ValueError):
        canonical_json(float("inf"))


def test_a_file_is_read_by_the_guarded_opener(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "none"):
        with pytest.raises(UnreadableError):
            read_json(path)
    (tmp_path / "x.json").write_text("[1, 2]")
    assert read_json(tmp_path / "x.json") == [1, 2]
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(tmp_path / "x.json") == [1]
