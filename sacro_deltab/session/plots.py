"""A picture of an output already judged: drawn from the numbers that would leave, with their verdict."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InputError, RefusedError
from ..measure.measure import computed
from ..outputs.build import safe_name
from ..outputs.document import MARK, OutputDocument
from .common import about, build_facts
from .entries import Candidate, Entry

if TYPE_CHECKING:
    from .core import SessionCore

_MAX_BARS = 200


def plot_candidate(session: SessionCore, entry: Entry, title: str | None) -> Candidate:
    """The plot of one output; withheld cells are named and left empty.

    Raises
    ------
    RefusedError
        When the output's numbers stay inside: a picture of them does too.
    """
    document = entry.document
    if document is None:
        raise RefusedError(
            f"the numbers of {entry.name!r} stay inside, and so does a picture of them",
            next_step=entry.merges[0] if entry.merges else "Change the table first.",
        )
    if len(document.rows) > _MAX_BARS:
        raise InputError("there are too many rows for a readable plot", next_step=f"At most {_MAX_BARS}.")
    drawn = OutputDocument(
        safe_name(f"{entry.name}_plot"),
        "plot",
        title or entry.title,
        document.columns,
        document.rows,
        about(session, plot_of=entry.name),
    )
    facts = computed(n=int(entry.n or 0), plot__source_status=entry.status, plot__per_subject_marks=False)
    built = build_facts(session, drawn, facts, file_format="png")
    return Candidate(drawn, built, picture=_draw(drawn), format="png", n=entry.n, made_of=entry.name)


def draws(document: OutputDocument, picture: bytes) -> bool:
    """Whether a PNG is exactly the picture of these numbers, pixel by pixel, as drawn here and now."""
    from matplotlib import image  # late: matplotlib is heavy

    try:
        found = image.imread(io.BytesIO(picture), format="png")
    except Exception:
        return False
    return bool(np.array_equal(found, image.imread(io.BytesIO(_draw(document)), format="png")))


def _draw(document: OutputDocument) -> bytes:
    """Points with their values, one a row. A PNG without metadata: pixels only."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # late: matplotlib is heavy
    from matplotlib.figure import Figure

    place = (
        next(i for i, c in enumerate(document.columns) if i and c.role == "value")
        if any(c.role == "value" for c in document.columns[1:])
        else 1
    )
    unit = document.columns[place].unit
    labels = [str(row[0]) for row in document.rows]
    values = [row[place] for row in document.rows]
    figure = Figure(figsize=(7.0, 1.6 + 0.32 * len(labels)), dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for y, value in enumerate(values):
        if isinstance(value, int | float):
            axes.plot([0, value], [y, y], color="#8aa4bd", linewidth=2, zorder=1)
            axes.plot([value], [y], "o", color="#1f4e79", zorder=2)
            axes.annotate(f"{value:g}", (value, y), textcoords="offset points", xytext=(7, -3), fontsize=8)
        elif value == MARK:
            axes.annotate("withheld", (0, y), textcoords="offset points", xytext=(7, -3), fontsize=8, color="#8a1c1c")
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel(f"{document.columns[place].name.replace('_', ' ')}{f' ({unit})' if unit else ''}", fontsize=9)
    axes.set_title(document.title, fontsize=10)
    axes.margins(x=0.15)
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
