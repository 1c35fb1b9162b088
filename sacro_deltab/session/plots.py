"""A picture of an output already judged: drawn from the numbers that would leave, with their verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import InputError, RefusedError
from ..build.picture import picture
from ..measure.measure import computed
from ..outputs.build import safe_name
from ..outputs.document import OutputDocument
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
    return Candidate(drawn, built, picture=picture(drawn), format="png", n=entry.n, made_of=entry.name)
