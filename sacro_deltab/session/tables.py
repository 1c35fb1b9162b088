"""Group tables of a session: means, SDs and counts by group, with the cells they would print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import RefusedError
from ..measure.grouping import SEPARATOR, AgeBands, is_column, make_grouping, site_facts, table_type
from ..measure.measure import cell_parts, table_facts
from ..measure.numbers import PrintedCell
from ..measure.people import Floats, Grouping, label_text, rows_of
from ..outputs import build
from ..rules.facts import Fact, Provider
from ..tables import suggest_merges
from .common import about, build_facts
from .entries import Candidate

if TYPE_CHECKING:
    from .core import SessionCore

MERGE_CELLS = 60  # above this, suggestions would take longer than the table itself
MERGE_TRIES = 12
_WORDS = {"mean": ("Mean delta", "mean_delta"), "sd": ("SD of delta", "sd_delta"), "count": ("People", "n")}


def table_candidate(
    session: SessionCore,
    values: Any | None,
    by: Any,
    statistic: str,
    title: str | None,
    name: str | None,
    structural: Sequence[str],
) -> Candidate:
    """A table of one statistic by group, measured on people with a value."""
    state = session.state
    roster = state.roster(_rows(values, by))
    people: Floats | None = None if values is None else roster.mean_by_person(values)
    if people is not None:
        session.refuse_other_than_deltas(values, people)
    grouping = make_grouping(by, roster, state.ages(), structural)
    state.groupings[grouping.name] = grouping
    if people is not None:
        _refuse_one_value(grouping, people, int(session.ruleset.parameters["min_n"]))
    kind = {"mean": table_type(grouping), "sd": "delta_sd_by_group", "count": "count_table"}[statistic]
    words, column = _WORDS[statistic]
    title = title or f"{words} by {grouping.name.replace('_', ' ')}"
    stem = build.safe_name(name or f"{column if statistic != 'count' else 'count'}_by_{grouping.name}")
    parts = cell_parts(grouping, people, statistic)
    counts = [int(part.facts["cell.n"].value) for part in parts]
    facts = table_facts(grouping, people, parts, session.ruleset.parameters)
    if kind in ("delta_mean_by_site", "delta_mean_by_other"):
        facts |= {name: Fact(name, value, Provider.COMPUTED) for name, value in site_facts(grouping).items()}
    if statistic != "count":
        facts |= session.model_origin(values)
    context = about(session, statistic=statistic, groups=grouping.name)
    if statistic == "count":
        document = build.count_table(
            stem, title, grouping.labels, counts, group_column=_column(grouping), about=context
        )
    else:
        document = build.group_table(
            kind,
            stem,
            title,
            grouping.labels,
            counts,
            [part.value for part in parts],
            group_column=_column(grouping),
            value_column=column,
            about=context,
        )
    variable = None if people is None else state.variable(people)
    cells = cells_of(
        stem,
        grouping,
        people,
        variable,
        None if statistic == "count" else statistic,
        bool(facts["table.any_n_rounded"].value),
    )
    return Candidate(
        document,
        build_facts(session, document, facts, parts),
        cells,
        n=int(facts["n"].value),
        values={"grouping": grouping},
    )


def cells_of(
    output: str,
    grouping: Grouping,
    values: Floats | None,
    variable: str | None,
    statistic: str | None,
    any_rounded: bool,
) -> tuple[PrintedCell, ...]:
    """The cells a table would print, over the people who contribute to them."""
    counted = np.ones(grouping.codes.size, dtype=bool) if values is None else np.isfinite(values)
    return tuple(
        PrintedCell(
            output,
            label,
            np.flatnonzero((grouping.codes == index) & counted),
            "interior",
            variable,
            statistic,
            any_rounded=any_rounded,
            structural=label in grouping.structural,
        )
        for index, label in enumerate(grouping.labels)
    )


def merges(session: SessionCore, candidate: Candidate) -> tuple[str, ...]:
    """The smallest merges of groups that would get a withheld table out (inside view).

    Neighbours only where groups are age bands; in a crossed table two groups of one column are merged everywhere.
    """
    grouping = candidate.values.get("grouping")
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


def _column(grouping: Grouping) -> str:
    """Name of the label column; never that of a column of numbers."""
    text = label_text(grouping.name, "name")
    return f"{text} (group)" if text in {"n", *(column for _, column in _WORDS.values())} else text


def _refuse_one_value(grouping: Grouping, people: Floats, least: int) -> None:
    """A group in which everybody has the same value: its mean is each member's own. All zeros tell nothing."""
    for index, label in enumerate(grouping.labels):
        mine = people[(grouping.codes == index) & np.isfinite(people)]
        if mine.size >= least and mine[0] != 0 and np.ptp(mine) == 0:
            raise RefusedError(
                f"everybody in group {label!r} has the same value, which its mean would tell of each",
                next_step="Use other groups, or release the whole-cohort mean.",
            )


def _rows(values: Any | None, by: Any) -> int:
    """Rows of the values, or of the first group column where only people are counted."""
    if values is not None:
        return rows_of(values)
    first = by
    if isinstance(by, Mapping):
        first = next(iter(by.values()), None)
    elif not hasattr(by, "columns") and isinstance(by, list | tuple) and by and all(is_column(part) for part in by):
        first = by[0]
    return rows_of(first.ages if isinstance(first, AgeBands) else first)
