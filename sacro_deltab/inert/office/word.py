"""Documents by python-docx: every table and paragraph of every part, changes, comments, hidden text, files inside."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

from docx import Document
from docx.oxml.ns import qn

from .found import Found

_CHANGES = {"ins": "inserted", "del": "deleted", "moveFrom": "moved away", "moveTo": "moved here"}
_TEXTS = {qn("w:t"), qn("w:delText")}


def read(data: bytes, found: Found, within: str) -> list[tuple[str, bytes]]:
    """A document; the files embedded in it are handed back."""
    inside: list[tuple[str, bytes]] = []
    for part in Document(io.BytesIO(data)).part.package.iter_parts():
        name = str(part.partname)
        for rel in part.rels.values():
            if rel.is_external and not rel.reltype.endswith("/hyperlink"):
                found.part(
                    "attached", f"{within}{name} loads something from outside ({rel.reltype.rsplit('/', 1)[-1]})."
                )
        if "/embeddings/" in name:
            inside.append((f"{within}{name}", part.blob))
        elif name.endswith("vbaProject.bin"):
            found.part("attached", f"{within}{name} stands in the document.")
        elif "/media/" in name:
            found.items.append(f"{within}{name}: a picture")
        elif name.startswith("/word/") and (root := _root(part)) is not None:
            _part(root, f"{within}{name.removeprefix('/word/').removesuffix('.xml')}", found)
    return inside


def _root(part: Any) -> Any:
    """The part as XML, where it is text that Word writes."""
    from docx.oxml.parser import parse_xml  # knows Word's elements

    if not str(part.partname).endswith(".xml") or any(w in str(part.partname) for w in ("theme", "styles", "settings")):
        return None
    return getattr(part, "element", None) if hasattr(part, "element") else parse_xml(part.blob)


def _text(element: Any) -> str:
    return "".join(node.text or "" for node in element.iter(*_TEXTS))


def _part(root: Any, place: str, found: Found) -> None:
    for number, table in enumerate(root.iter(qn("w:tbl")), start=1):
        rows = [[_text(cell) for cell in row.iter(qn("w:tc"))] for row in table.iterfind(qn("w:tr"))]
        found.items.append(f"{place}, table {number}: {len(rows)} rows")
        found.table(f"{place}, table {number}", rows)
    for number, paragraph in enumerate(root.iter(qn("w:p")), start=1):
        if not any(a.tag == qn("w:tc") for a in paragraph.iterancestors()):
            found.text(f"{place}, paragraph {number}", _text(paragraph))
        if any(True for _ in paragraph.iter(qn("w:vanish"))):
            found.part("hidden", f"{place}, paragraph {number} has hidden text.")
    for comment in root.iter(qn("w:comment")):
        found.part("comment", f"{place} has comment {comment.get(qn('w:id'))}.")
    marks: Counter[str] = Counter()
    for short, word in _CHANGES.items():
        marks[word] = sum(1 for e in root.iter(qn(f"w:{short}")) if _text(e) or e.getparent().tag == qn("w:trPr"))
    told = ", ".join(f"{n} {word}" for word, n in marks.items() if n)
    if told:
        found.part("tracked", f"{place} has tracked changes: {told}; what was deleted is still in the file.")
