"""Tables that stand in plain text: LaTeX, and columns kept apart by spaces as programs print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_END = re.compile(r"\\end\{(?:tabular[x*]?|longtable)\}")
_COMMAND = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|cline\{[^}]{0,40}\}|cmidrule(?:\([^)]{0,9}\))?\{[^}]{0,40}\})"
)
_WORDS = re.compile(r"\\(?:textbf|textit|emph|multicolumn\{\d{1,3}\}\{[^}]{0,40}\}|text)\{([^{}]*)\}")


def tables_in_text(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Each table with its place."""
    yield from _latex(text)
    if "\\begin{" not in text:
        yield from _spaced(text.splitlines()[:200_000])


def _latex(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    parts = re.split(r"\\begin\{(?:tabular[x*]?|longtable)\}", text[:4_000_000])[1:2_000]
    for number, part in enumerate(parts, start=1):
        inner = _END.split(part, maxsplit=1)[0]
        body = re.sub(r"^(\[[^\]]{0,40}\])?(\{[^}]{0,400}\}){1,3}", "", _COMMAND.sub("", inner).strip())
        lines = [re.sub(r"(?<!\\)%[^\n]*", "", line).strip() for line in re.split(r"\\\\(?:\[[^\]]{0,20}\])?", body)]
        rows = [[_cell(cell) for cell in re.split(r"(?<!\\)&", line)] for line in lines if line]
        if rows:
            yield f"table {number}", rows


def _cell(text: str) -> str:
    return _WORDS.sub(r"\1", text).replace("\\", "").replace("$", "").strip()


def _spaced(lines: list[str]) -> Iterator[tuple[str, list[list[str]]]]:
    """Lines that split into equally many cells, and their header: the first, or one above it without the index."""
    taken = 0
    for split in (re.compile(r"\s{2,}|\t"), re.compile(r"\s+")):
        split_lines = [split.split(line.strip()) if line.strip() else [] for line in lines]
        at = 0
        for width, group in groupby(split_lines, len):
            end = at + len(list(group))
            above = at > 0 and len(split_lines[at - 1]) == width - 1 >= 1
            rows = [["", *split_lines[at - 1]], *split_lines[at:end]] if above else split_lines[at:end]
            if width > 1 and len(rows) >= 3 and at >= taken and any(c[:1].isdigit() for row in rows[1:] for c in row):
                yield f"lines {at + 1 - above}-{end}", rows
                taken = end
            at = end
