"""HTML by Beautiful Soup, Markdown by markdown-it (made HTML first), notebooks by nbformat, cell by cell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import nbformat
from bs4 import BeautifulSoup, Comment, Tag
from markdown_it import MarkdownIt

from ..layouts import tables_in_text
from .found import Found

_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d])", re.I)
_RULE = re.compile(r"([.#][\w-]+)\s*\{([^}]*)\}")
_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")
_LOADED = ("img", "script", "iframe", "link", "object", "embed", "source")


def read_html(text: str, found: Found, within: str) -> None:
    """Tables, prose, and what the browser does not show."""
    soup = BeautifulSoup(text, "lxml")
    unseen = [e for e in soup.find_all(True) if _is_unseen(e)]
    for sheet in soup.find_all("style"):
        for selector, body in _RULE.findall(sheet.get_text()):
            unseen += soup.select(selector) if _UNSEEN.search(body) else []
    for element in unseen:
        content = element.get_text(" ", strip=True) or str(element.get("value") or "")
        if content:
            found.part("hidden", f"{within}<{element.name}> is not shown but holds {len(content.split())} words.")
    for number, comment in enumerate(soup.find_all(string=lambda s: isinstance(s, Comment)), start=1):
        if comment.strip():
            found.part("comment", f"{within}comment {number} of the page: {len(comment.split())} words.")
            found.text(f"{within}comment {number}", str(comment))
            _plain(str(comment), found, f"{within}comment {number}, ")
    for script in soup.find_all("script"):
        if numbers := len(_NUMBERS.findall(script.get_text())):
            found.part("attached", f"{within}a script holds {numbers} numbers.")
        found.text(f"{within}script", script.get_text())
        script.extract()
    for element in soup.find_all(_LOADED):
        source = str(element.get("src") or element.get("href") or element.get("data") or "")
        if source.startswith("data:") and not source.startswith("data:image/"):
            found.part("attached", f"{within}<{element.name}> embeds a file ({source[5:40].split(';')[0]}).")
        elif re.match(r"(?:https?:)?//", source):
            found.part("attached", f"{within}<{element.name}> loads something from outside.")
    for link in soup.find_all("a", href=re.compile(r"^data:")):
        found.part("attached", f"{within}a link embeds a file ({str(link['href'])[5:40].split(';')[0]}).")
    for number, table in enumerate(soup.find_all("table"), start=1):
        away = any(table is e or e in table.parents for e in unseen)
        rows = [_row(row) for row in table.find_all("tr") if row.find_parent("table") is table]
        place = f"{within}table {number}{' (not shown)' if away else ''}"
        found.items.append(f"{place}: {len(rows)} rows")
        found.table(place, rows)
    for table in soup.find_all("table"):
        table.extract()
    for block in soup.find_all("pre"):
        _plain(block.get_text(), found, f"{within}text, ")
    found.text(f"{within}text", soup.get_text(" "))


def _is_unseen(element: Tag) -> bool:
    style = str(element.get("style") or "")
    return (
        element.has_attr("hidden")
        or bool(_UNSEEN.search(style))
        or element.name == "template"
        or (element.name == "input" and element.get("type") == "hidden")
    )


def _row(row: Tag) -> list[str]:
    """Cells, one that spans columns with empty ones after it."""
    out: list[str] = []
    for cell in row.find_all(["td", "th"]):
        if cell.find_parent("tr") is row:
            span = str(cell.get("colspan") or "1")
            out += [cell.get_text(" ", strip=True), *[""] * (min(int(span), 100) - 1 if span.isdigit() else 0)]
    return out


def read_markdown(text: str, found: Found, within: str) -> None:
    """Markdown is made the page that a reader sees, and that is read."""
    read_html(MarkdownIt("commonmark", {"html": True}).enable("table").render(text), found, within)


def _plain(text: str, found: Found, within: str) -> None:
    for place, rows in tables_in_text(text):
        found.table(f"{within}{place}", rows)


def read_notebook(text: str, found: Found, within: str) -> None:
    """Sources, outputs, attachments and states of a notebook."""
    book: Any = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    if book.metadata.get("widgets"):
        found.part("attached", f"{within}the notebook keeps the state of widgets.")
        found.text(f"{within}widgets", json.dumps(book.metadata["widgets"])[:20_000])
    for number, cell in enumerate(book.cells, start=1):
        place = f"{within}cell {number}"
        tags = [t for t in cell.metadata.get("tags", ()) if re.match(r"(hide|remove)[-_]", str(t))]
        jupyter = cell.metadata.get("jupyter") or {}
        if tags or cell.metadata.get("collapsed") or jupyter.get("source_hidden") or jupyter.get("outputs_hidden"):
            found.part("hidden", f"{place} or its output is hidden.")
        for name in cell.get("attachments") or ():
            found.part("attached", f"{place} has the attachment {name!r}.")
        if cell.cell_type == "markdown":
            read_markdown(cell.source, found, f"{place}, ")
        else:
            found.text(f"{place}, source", cell.source)
        for output in cell.get("outputs") or ():
            _output(output, found, f"{place}, output ")
    found.items.append(f"{within}notebook: {len(book.cells)} cells")


def _output(output: Mapping[str, Any], found: Found, place: str) -> None:
    bundle = dict(output.get("data") or {})
    for text in (output.get("text"), "\n".join(output.get("traceback") or ())):
        if text:
            bundle.setdefault("text/plain", text)
    before = len(found.tables)
    if "text/html" in bundle:
        read_html(str(bundle.pop("text/html")), found, place)
    for mime, value in bundle.items():
        if mime.startswith("image/"):
            found.items.append(f"{place}: a picture")
        elif "json" in mime:
            if mime != "application/json":
                found.part("attached", f"{place}keeps the data of a picture or widget ({mime}).")
            _json(value, found, place)
        else:
            found.text(f"{place}{mime}", str(value))
            if len(found.tables) == before:  # the same table, shown a second time
                _plain(str(value), found, place)


def _flat(row: Mapping[str, Any]) -> bool:
    return not any(isinstance(inner, list | dict) for inner in row.values())


def _json(value: Any, found: Found, place: str) -> None:
    """Lists of objects, and lists under names: the tables that JSON holds."""
    if isinstance(value, list) and value and all(isinstance(row, dict) and _flat(row) for row in value):
        names = list(dict.fromkeys(name for row in value for name in row))
        found.table(f"{place}data", [names, *([row.get(name) for name in names] for row in value)])
    elif isinstance(value, dict):
        columns = {k: v for k, v in value.items() if isinstance(v, list) and v and not isinstance(v[0], list | dict)}
        if columns:
            longest = max(map(len, columns.values()))
            rows = [[v[i] if i < len(v) else None for v in columns.values()] for i in range(longest)]
            found.table(f"{place}data", [list(columns), *rows])
        for inner in value.values():
            if isinstance(inner, list | dict):
                _json(inner, found, place)
    elif isinstance(value, list):
        for inner in value[:1_000]:
            if isinstance(inner, list | dict):
                _json(inner, found, place)
