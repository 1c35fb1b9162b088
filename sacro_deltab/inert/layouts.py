"""Tables that stand in plain text: LaTeX, and columns kept apart by spaces as programs print them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TABULAR = re.compile(
    r"\\begin\{(?:tabular[x*]?|longtable|array)\}(.*?)\\end\{(?:tabular[x*]?|longtable|array)\}", re.S
)
_COMMAND = re.compile(r"\\(?:hline|toprule|midrule|bottomrule|cline\{[^}]*\}|cmidrule(?:\([^)]*\))?\{[^}]*\})")
_WORDS = re.compile(r"\\(?:textbf|textit|emph|multicolumn\{\d+\}\{[^}]*\}|text)\{([^{}]*)\}")


def tables_in_text(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Each table with its place."""
    yield from _latex(text)
    if "\\begin{" not in text:
        yield from _spaced(text.splitlines()[:200_000])


def _latex(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    for number, found in enumerate(_TABULAR.finditer(text), start=1):
        body = re.sub(r"^(\[[^\]]*\])?(\{[^}]*\})+", "", _COMMAND.sub("", found.group(1)).strip())
        lines = [re.sub(r"(?<!\\)%[^\n]*", "", line).strip() for line in re.split(r"\\\\(?:\[[^\]]*\])?", body)]
        rows = [[_cell(cell) for cell in re.split(r"(?<!\\)&", line)] for line in lines if line]
        if rows:
            yield f"table {number}", rows


def _cell(text: str) -> str:
    return _WORDS.sub(r"\1", text).replace("\\", "").replace("$", "").strip()


def _spaced(lines: list[str]) -> Iterator[tuple[str, list[list[str]]]]:
    """Three lines or more that split into equally many cells; a first line one cell short has an unnamed index."""
    at = 0
    while at < len(lines):
        for split in (r"\s{2,}|\t", r"\s+"):
            width = len(_cells(lines[at + 1], split)) if at + 1 < len(lines) else 0
            end = at + 1
            while width > 1 and end < len(lines) and len(_cells(lines[end], split)) == width:
                end += 1
            head = _cells(lines[at], split)
            if end - at >= 3 and width - 1 <= len(head) <= width and len(head) >= 1:
                rows = [_cells(line, split) for line in lines[at + 1 : end]]
                if any(re.search(r"\d", cell) for row in rows for cell in row):
                    yield f"lines {at + 1}-{end}", [head if len(head) == width else ["", *head], *rows]
                    at = end - 1
                    break
        at += 1


def _cells(line: str, split: str) -> list[str]:
    return re.split(split, line.strip()) if line.strip() else []
