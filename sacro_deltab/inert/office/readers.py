"""Which reader a kind has; a file inside a file is read once more, no deeper."""

from __future__ import annotations

from ..everyday import KINDS
from ..reading import kind_of
from . import excel, frames, pages, word
from .found import Found


def read(kind: str, data: bytes) -> Found:
    """What a file holds, and what the files embedded in it hold."""
    found = Found()
    inner = _one(kind, data, found, "")
    for place, blob in inner[:20]:
        what = kind_of(blob, place)
        found.part("attached", f"{place} is embedded: {len(blob)} bytes, kind {what}.")
        if what in KINDS:
            _one(what, blob, found, f"{place}, ")
    return found


def _one(kind: str, data: bytes, found: Found, within: str) -> list[tuple[str, bytes]]:
    if kind == "xlsx":
        return excel.read(data, found, within)
    if kind == "docx":
        return word.read(data, found, within)
    if kind in ("parquet", "stata"):
        (frames.read_parquet if kind == "parquet" else frames.read_stata)(data, found, within)
    else:
        {"html": pages.read_html, "markdown": pages.read_markdown, "notebook": pages.read_notebook}[kind](
            data.decode("utf-8", "replace"), found, within
        )
    return []
