"""Repeated visits: one person, several rows. Numbers are about people, and of one visit.

Means over a person's visits beside those of single visits would tell what the few have who came once: in a session with
visits every statistic names one. A private training averages: its noise covers one person, whatever their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from ..measure.people import MISSING, group_labels

if TYPE_CHECKING:
    from .state import State

ONCE = "each person counts once"
AT_ONE = "of one visit"


def visits_of(column: Any, state: State) -> tuple[str, ...] | None:
    """(rows,) the visit of each row; None where `visit=` was not given.

    Raises
    ------
    InputError
        Without people's ids, for a missing label, or a person with two rows at one visit.
    """
    if column is None:
        return None
    if state.ids is None or state.people is None:
        raise InputError("visits are those of people who have ids", next_step="Pass people=, one id a row.")
    labels = group_labels(column, "visit")[0]
    if len(labels) != state.people.codes.size:
        raise InputError("visit= has another number of rows than people=", next_step="Give one label a row.")
    if MISSING in labels:
        raise InputError("a row has no visit", place=f"row {labels.index(MISSING) + 1}", next_step="Label every row.")
    seen: set[tuple[int, str]] = set()
    for row, pair in enumerate(zip(state.people.codes.tolist(), labels, strict=True)):
        if pair in seen:
            raise InputError(
                "a person has two rows at one visit", place=f"row {row + 1}", next_step="Keep one row a visit."
            )
        seen.add(pair)
    return tuple(labels)
