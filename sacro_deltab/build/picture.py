"""The picture of judged numbers, in the one byte form in which a picture leaves: pixels and nothing beside them.

A PNG file has room in its text chunks, in the lengths of its data chunks, in its filter bytes and in how it is
compressed. Here there is one chunk of data, no filter and no text, so the same pixels give the same bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..kinds.plots import PLOT
from ..outputs import OutputDocument, is_mark


def source_of(entry: Mapping[str, Any]) -> str:
    """The output whose numbers a plot draws, by name."""
    return str(((entry["raw"] or {}).get("about") or {}).get("plot_of"))


def plotted(entry: Mapping[str, Any], source: OutputDocument) -> OutputDocument:
    """The document behind a plot: the released one that it is made of, under the plot's own name and title."""
    return replace(source, name=entry["name"], title=entry["title"], type=PLOT)


def picture(document: OutputDocument) -> bytes:
    """The PNG of a document's first column of values: points with their numbers, one a row."""
    return png(*_pixels(document))


def png(width: int, height: int, rgb: bytes) -> bytes:
    """8-bit colour pixels, row by row, as a PNG of three chunks."""
    row = 3 * width
    data = b"".join(b"\0" + rgb[at : at + row] for at in range(0, row * height, row))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(data, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _pixels(document: OutputDocument) -> tuple[int, int, bytes]:
    import numpy as np  # matplotlib takes half a second: only those who draw pay for it
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure  # late: matplotlib is heavy

    place = (
        next(i for i, c in enumerate(document.columns) if i and c.role == "value")
        if any(c.role == "value" for c in document.columns[1:])
        else 1
    )
    unit = document.columns[place].unit
    labels = [str(row[0]) for row in document.rows]
    values = [row[place] for row in document.rows]
    figure = Figure(figsize=(7.0, 1.6 + 0.32 * len(labels)), dpi=110)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for y, value in enumerate(values):
        if isinstance(value, int | float):
            axes.plot([0, value], [y, y], color="#8aa4bd", linewidth=2, zorder=1)
            axes.plot([value], [y], "o", color="#1f4e79", zorder=2)
            axes.annotate(f"{value:g}", (value, y), textcoords="offset points", xytext=(7, -3), fontsize=8)
        elif is_mark(value):
            axes.annotate("withheld", (0, y), textcoords="offset points", xytext=(7, -3), fontsize=8, color="#8a1c1c")
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel(f"{document.columns[place].name.replace('_', ' ')}{f' ({unit})' if unit else ''}", fontsize=9)
    axes.set_title(document.title, fontsize=10)
    axes.margins(x=0.15)
    figure.tight_layout()
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]  # type: ignore[no-untyped-call]
    return pixels.shape[1], pixels.shape[0], pixels.tobytes()
