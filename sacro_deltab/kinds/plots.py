"""A picture of an output already judged: its numbers are those that would leave."""

from __future__ import annotations

from typing import Any

from ..base.errors import InputError
from ..outputs import OutputDocument
from .documents import safe_name
from .kind import Inside, Kind, Made

PLOT = "plot"
_MAX_BARS = 200


def drawn(inside: Inside, of: Any, title: str | None) -> Made:
    """The plot of one recorded output with a document; withheld cells are named and left empty."""
    from ..measure.measure import computed  # late: brings numpy, and a record needs the name of this kind alone

    document: OutputDocument = of.document
    if len(document.rows) > _MAX_BARS:
        raise InputError("there are too many rows for a readable plot", next_step=f"At most {_MAX_BARS}.")
    made = OutputDocument(
        safe_name(f"{of.name}_plot"), PLOT, title or of.title, document.columns, document.rows,
        inside.about(plot_of=of.name),
    )  # fmt: skip
    return Made(made, computed(n=int(of.n or 0), plot__source_status=of.status, plot__per_subject_marks=False), of.n)


KINDS = (
    Kind(
        PLOT, "A PNG of a group table or of counts, drawn from the numbers that leave and with their verdict.",
        "drawn_table", rounded=False, says=("plot_of",),
    ),
)  # fmt: skip
