"""A picture of an output already judged: drawn from the numbers that would leave, with their verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import RefusedError
from ..build.picture import picture
from ..kinds.plots import drawn
from .common import build_facts
from .entries import Candidate, Entry

if TYPE_CHECKING:
    from .core import SessionCore


def plot_candidate(session: SessionCore, entry: Entry, title: str | None) -> Candidate:
    """The plot of one output; withheld cells are named and left empty.

    Raises
    ------
    RefusedError
        When the output's numbers stay inside: a picture of them does too.
    """
    if entry.document is None:
        raise RefusedError(
            f"the numbers of {entry.name!r} stay inside, and so does a picture of them",
            next_step=entry.merges[0] if entry.merges else "Change the table first.",
        )
    made = drawn(session, entry, title)
    built = build_facts(session, made.document, made.facts, file_format="png")
    return Candidate(made.document, built, picture=picture(made.document), format="png", n=made.n, made_of=entry.name)
