"""What the child tells: tables with their places, texts with their places, and parts that a reader does not see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

KEEP_CELLS = 200_000
KEEP_TEXTS = 5_000


@dataclass(frozen=True)
class Rows:
    """One table: where it stands, its cells as text, and how many rows the file has of it."""

    place: str
    rows: list[list[str]]
    n_rows: int


@dataclass(frozen=True)
class Part:
    """A part that a reader of the shown page does not see: `code` is the rule about form that speaks of it."""

    code: str
    text: str


@dataclass
class Found:
    """What one file holds; `cells` is what may still be kept."""

    tables: list[Rows] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    cells: int = KEEP_CELLS

    def table(self, place: str, rows: Iterable[Sequence[object]], n_rows: int | None = None) -> None:
        """Keep a table; lines of one cell above it are its title, and text."""
        written = [[_shown(cell) for cell in row] for row in rows]
        while len(written) > 1 and sum(map(bool, written[0])) < 2 <= max(sum(map(bool, row)) for row in written):
            self.text(place, " ".join(written.pop(0)))
        if not written or not any(map(any, written)):
            return
        width = max(map(len, written))
        kept = [row + [""] * (width - len(row)) for row in written[: max(self.cells // max(width, 1), 0)]]
        self.cells -= width * len(kept)
        self.tables.append(Rows(place, kept, len(written) if n_rows is None else n_rows))

    def text(self, place: str, text: str) -> None:
        """Keep a text."""
        if text.strip() and len(self.texts) < KEEP_TEXTS:
            self.texts.append((place, text.strip()[:20_000]))

    def part(self, code: str, text: str) -> None:
        """Name a part that is not seen."""
        if (one := Part(code, text)) not in self.parts:
            self.parts.append(one)

    def to_json(self) -> dict[str, Any]:
        """What the parent reads."""
        return {**asdict(self), "cut": self.cells <= 0}


def _shown(cell: object) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return " ".join(str(cell).split())
