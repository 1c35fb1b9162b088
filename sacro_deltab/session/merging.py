"""What would let a withheld table out: the smallest merges of groups. Inside view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..measure.grouping import SEPARATOR
from ..tables import suggest_merges
from .entries import Candidate

if TYPE_CHECKING:
    from .core import SessionCore

MERGE_CELLS = 60  # above this, suggestions would take longer than the table itself
MERGE_TRIES = 12


def merges(session: SessionCore, candidate: Candidate) -> tuple[str, ...]:
    """The smallest merges of groups that would get a withheld table out (inside view).

    Neighbours only where groups are age bands; in a crossed table two groups of one column are merged everywhere.
    """
    grouping = candidate.grouping
    if grouping is None or len(grouping) > MERGE_CELLS:
        return ()

    variable = next((c.variable for c in candidate.cells), None)
    problem = session.state.linked.problem(variable, candidate.cells)
    if problem is None:
        return ()
    labels = {cell.id: tuple(cell.key.split(SEPARATOR)) for cell in candidate.cells}
    if len({len(parts) for parts in labels.values()}) > 1:
        labels = {cell.id: (cell.key,) for cell in candidate.cells}
    people: list[dict[str, int]] = [{} for _ in next(iter(labels.values()))]
    for cell in candidate.cells:
        for dimension, part in enumerate(labels[cell.id]):
            people[dimension][part] = people[dimension].get(part, 0) + int(cell.members.size)
    declared = None if grouping.widths is not None else _small_first(people)
    found = suggest_merges(problem, candidate.document.name, labels=labels, declared=declared, tries=MERGE_TRIES)
    return tuple(str(merge) for merge in found[:2])


def _small_first(people: Sequence[dict[str, int]]) -> list[tuple[str, ...]]:
    """Groups worth merging where order means nothing: the smallest ones together, or the smallest with the next."""
    out: list[tuple[str, ...]] = []
    for sizes in people:
        rising = sorted(sizes, key=lambda label: (sizes[label], label))
        out += [tuple(rising[:k]) for k in range(2, min(5, len(rising)))]
        out += [(rising[0], other) for other in rising[2:4]]
    return list(dict.fromkeys(out))
