"""Text, logs and read-me files: what gives people away in prose. Text without a type never passes."""

from __future__ import annotations

import re

from ..base.findings import Effect, Finding, note
from .content import Content, Item
from .limits import DEFAULT, Limits
from .tabular import _text_remarks, decode_text

_ROWS = re.compile(
    r"\b(?:rows?|lines?|subjects?|participants?|persons?|people|patients?|index(?:es)?|indices|records?|ids?)\b[^\n\d]{0,40}"
    r"(?:\[|\(|:|=|\s)\s*\d+",
    re.I,
)
_PATH = re.compile(r"(?<![\w:/])/(?:[\w.@+-]+/)+[\w.@+-]+|\b[A-Za-z]:\\[^\s\"']+|\\\\[\w.-]+\\\w+")
_COUNTS = re.compile(r"\b(\d+)\s+(?:nan|missing|null)\b|\bn(?:an)?\s*[=:]\s*\d+|\bshape\b[^\n]{0,20}\d+", re.I)


def text_remarks(text: str) -> list[Finding]:
    """Row numbers, input paths and counts in prose."""
    out = []
    if _ROWS.search(text):
        out.append(
            note(
                "row-numbers",
                Effect.BLOCK,
                "It names rows or people by number.",
                outside="It names rows or people by number.",
            )
        )
    if _PATH.search(text):
        out.append(
            note("paths", Effect.BLOCK, "It names absolute paths of the TRE.", outside="It names absolute paths.")
        )
    if _COUNTS.search(text):
        out.append(
            note("counts", Effect.BLOCK, "It states counts of rows or missing values.", outside="It states counts.")
        )
    return out


def read_log(data: bytes, name: str, limits: Limits = DEFAULT) -> Content:
    """A text that is not a table."""
    text = decode_text(data, name, limits)
    remarks = [*_text_remarks(text, data), *text_remarks(text[:4_000_000])]
    lines = text.count("\n") + 1
    return Content(
        "text", items=(Item("text", "lines", (lines,)),), strings=(("text", text[:20_000]),), remarks=tuple(remarks)
    )
