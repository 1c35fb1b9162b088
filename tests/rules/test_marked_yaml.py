"""Strict YAML: every value means what it looks like, and every problem has a line and a column."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.rules.marked_yaml import MAX_BYTES, read_marked


def read(text: str | bytes):
    raw = text if isinstance(text, bytes) else text.encode()
    return read_marked(Path("f.yaml"), "f.yaml", raw=raw)


def problems(text):
    return [str(p) for p in read(text).problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", 1),
        ("a: -3", -3),
        ("a: 0", 0),
        ("a: 0.10", 0.1),
        ("a: 1.0e-5", 1e-5),
        ("a: 4.0E+2", 400.0),
        ("a: true", True),
        ("a: false", False),
        ("a: null", None),
        ("a:", None),
        ("a: n", "n"),
        ("a: 'no'", "no"),
        ('a: "1e-5"', "1e-5"),
        ('a: "2026-01-01"', "2026-01-01"),
        ("a: N ≥ 20", "N ≥ 20"),
        ("a: |\n  no\n", "no\n"),
    ],
)
def test_values(text, value):
    marked = read(text)
    assert marked.problems == []
    assert marked.data == {"a": value}
    assert type(marked.data["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: no", "boolean"),
        ("a: Yes", "boolean"),
        ("a: on", "boolean"),
        ("a: OFF", "boolean"),
        ("a: True", "small letters"),
        ("a: NULL", "small letters"),
        ("a: ~", "small letters"),
        ("a: 1e-5", "1.0e-5"),
        ("a: 1.e5", "1.0e-5"),
        ("a: 4E6", "1.0e-5"),
        ("a: .5", "both sides"),
        ("a: 5.", "both sides"),
        ("a: 010", "octal"),
        ("a: 0o17", "decimal"),
        ("a: 0x1F", "decimal"),
        ("a: 0b101", "decimal"),
        ("a: 1_000", "underscores"),
        ("a: 12:30", "base-60"),
        ("a: 2026-09-01", "date"),
        ("a: 2026-09-01T10:00:00Z", "date"),
        ("a: .inf", "infinity"),
        ("a: -.INF", "infinity"),
        ("a: .nan", "infinity"),
        ("a: 1.0e999", "too large"),
        ("a: 99999999999999999999", "too large"),
        ("a: 1\na: 2", "stands twice"),
        ("a: &x 1", "anchors"),
        ("a: &x 1\nb: *x", "aliases"),
        ("a: {<<: {b: 1}}", "merge keys"),
        ("a: !!python/object:os.system x", "tags"),
        ("a: !!str 1", "tags"),
        ("[a]: 1", "a key must be a word"),
        ("--- 1\n--- 2", "one document"),
        ("", "is empty"),
        ("a: [1", "not YAML"),
        ("a: b: c", "not YAML"),
        ("\ta: 1", "not YAML"),
        (b"a: \xff", "not UTF-8"),
    ],
)
def test_traps(text, says):
    found = problems(text)
    assert any(says in p for p in found), found
    assert all(p.startswith("f.yaml:") for p in found)


def test_a_digest_is_text_however_it_begins():
    """One digest in 256 begins like a binary number; a job file bore one and could not be read."""
    for start in ("0b2479a4", "0bff", "0c12"):
        assert problems(f"sha256: {start.ljust(64, 'a')}") == []


def test_place_is_line_and_column():
    assert problems("a: 1\nb: {c: no}\n") == [
        "f.yaml:2:8: 'no' is a boolean to some readers: write true or false, or put it in quotes"
    ]


def test_all_problems_at_once():
    assert len(problems("a: no\nb: 1e-5\nc: 010\na: 3\n")) == 4


def test_depth_and_size_are_limited():
    assert "is nested more than" in problems("a: " + "[" * 40 + "]" * 40)[0]
    assert "nest" in problems("a: " + "[" * 3000 + "]" * 3000)[0]
    assert "larger" in problems(b"a" * (MAX_BYTES + 1))[0]
    assert "pieces" in problems("a: [" + "1," * 210_000 + "1]")[0]


def test_billion_laughs_is_refused_before_it_is_built():
    text = "a: &a [x,x]\n" + "".join(f"b{i}: &b{i} [*a,*a,*a,*a]\n" for i in range(30))
    assert problems(text)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80))
def test_bytes_never_raise(raw):
    read(raw)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:{}[]-,&*!<>|'\"#\n \t0129.eE~no", max_size=60))
def test_text_never_raises(text):
    read(text)
