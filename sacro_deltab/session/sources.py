"""Where a column comes from: the TRE's register, a stated function of what is there, or the researcher's own making.

What is of somebody's own making can hold anything about people: means of invented features, labels that are ages. It is
asked about. Whether a column is a registered one the ledger says, by a keyed sum over these people.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import InputError, RefusedError
from ..ledger.register import Registered
from ..ledger.tokens import column_key
from ..measure.grouping import AgeBands, is_column
from ..measure.measure import computed
from ..measure.people import MISSING, Floats, Roster, group_labels, numbers
from ..rules.facts import Fact
from .plausible import refuse_ages
from .state import State, is_part

_DELTA = re.compile(r"delta|gap|\bpad\b|brain.?age|bag\b", re.IGNORECASE)
_JOINED = re.compile(r"\s*(?:\+|/|,|\bor\b|\band\b)\s*")
_BANDS = ("age_band", "age band", "age")  # names of bands of age
_MOST_MERGED = 14  # levels of a column of which sums are searched for a merged group


def own(
    state: State,
    known: Registered | None,
    parameters: Any,
    *,
    values: Floats | None = None,
    columns: tuple[Sequence[str], Floats] | None = None,
    terms: Sequence[tuple[str, Any, bool]] | None = None,
    groups: tuple[Any, Roster] | None = None,
) -> dict[str, Fact]:
    """`columns.own` of an output: of people whom nobody registered no column is known; that is asked about as a whole
    (FB-19). Where the TRE registered people without columns nothing can be compared, and the session says so.

    Raises
    ------
    RefusedError
        A column is the ages of these people under another name, or follows them; or the values are a registered column
        of another name: BMI is no brain-age delta.
    """
    found = [
        values is not None and _own_values(state, known, values),
        columns is not None and _own_columns(state, known, parameters, *columns),
        terms is not None and _own_named(state, known, [(name, column) for name, column, _ in terms]),
        groups is not None and _own_named(state, known, _parts(groups[0]), groups[1]),
    ]
    return computed(columns__own=known is not None and known.described and any(found))


def _own_columns(state: State, known: Registered | None, parameters: Any, names: Sequence[str], matrix: Floats) -> bool:
    ages, mine = state.ages(), False
    for name, values in zip(names, matrix.T, strict=True):
        if known is None or not known.is_column(name, values):
            mine = True
            if ages is not None and column_key(name) != "age":  # under their own name they are what they are
                refuse_ages(values, ages, parameters, "feature")
    return mine


def _own_named(
    state: State, known: Registered | None, parts: Sequence[tuple[object, Any]], roster: Roster | None = None
) -> bool:
    """Numbers and labels with their names: predictors, covariates; labels, their merges and crossings, age bands."""
    roster = roster or state.people
    if roster is None or known is None:
        return True
    return any(not _is_known(known, column, roster, name) for name, column in parts)


def _parts(by: Any) -> list[tuple[object, Any]]:
    """The columns of a grouping, with their names."""
    if hasattr(by, "columns") and hasattr(by, "iloc"):
        by = [by.iloc[:, i] for i in range(by.shape[1])]
    if isinstance(by, Mapping):
        return list(by.items())
    crossed = isinstance(by, list | tuple) and bool(by) and all(is_column(part) for part in by)
    return [(getattr(part, "name", None), part) for part in (by if crossed else [by])]


def _own_values(state: State, known: Registered | None, values: Floats) -> bool:
    """Whether values are neither deltas that the session made of registered columns (of some people) nor a registered
    column of deltas."""
    name = None if known is None else known.source(values)
    if name is not None and not _DELTA.search(name):
        raise RefusedError(
            f"the values are the registered column {name!r}, not brain-age deltas",
            next_step="Release deltas in years as a model gives them; other columns leave as a feature summary.",
        )
    made = any(is_part(values, one) for one in state.sound)
    return not (made or name is not None or (known is not None and known.is_column("delta", values)))


def _is_known(known: Registered, column: Any, roster: Roster, name: object) -> bool:
    if isinstance(column, AgeBands):
        return column.name in _BANDS and known.is_column("age", roster.mean_by_person(column.ages))
    title = "group" if name is None else str(name)
    values = _as_numbers(column)
    if values is not None and known.is_column(title, roster.mean_by_person(values)):
        return True
    rows, labels, _ = group_labels(column, title)
    people = roster.labels_by_person(rows, title)
    words = [None if label == MISSING else label for label in people]
    return known.is_column(title, words) or _is_merged(known, people, labels, title)


def _as_numbers(column: Any) -> Floats | None:
    try:
        return numbers(column)
    except InputError:  # words
        return None


def _is_merged(known: Registered, people: Sequence[str], labels: Sequence[str], title: str) -> bool:
    """Whether each group is one registered group, or several of one column, named after them."""
    codes = np.array(people, dtype=object)
    groups = {label: known.part_of(codes == label) for label in labels if label != MISSING}
    return any(
        _fits(known, levels, groups)
        for name, levels in known.groups.items()
        if column_key(title) in (column_key(name), f"{column_key(name)}merged", "group")
    )


def _fits(known: Registered, levels: Mapping[str, str], groups: Mapping[str, str]) -> bool:
    left = {label: part for label, part in groups.items() if levels.get(part) != known.label(label)}
    if not left:
        return True
    used = {part for label, part in groups.items() if label not in left}
    free = [part for part in levels if part not in used]
    if len(free) > _MOST_MERGED:
        return False
    sums = {
        known.joined(some): {levels[part] for part in some}
        for size in range(2, len(free) + 1) for some in itertools.combinations(free, size)
    }  # fmt: skip
    return all(
        part in sums and {known.label(word) for word in _JOINED.split(label)} <= sums[part]
        for label, part in left.items()
    )
