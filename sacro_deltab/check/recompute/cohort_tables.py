"""Group tables of the cohort, and the linked system of all tables, counted again from the people. Inside only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...base.errors import InputError
from ...base.findings import Effect, Finding, note
from ...kinds import anew
from ...kinds.group_tables import BY_SITE
from ...kinds.kind import Measured
from ...kinds.registry import KINDS
from ...measure.grouping import AgeBands, make_grouping
from ...measure.numbers import PrintedCell
from ...measure.people import MISSING, Grouping, Roster
from ...outputs import OutputDocument
from ...outputs.parameters import N_SUBJECTS
from ...rules.facts import Facts
from .cohort_deltas import Source
from .cohort_file import CohortFile, band_edges, is_noised

CROSS = " × "  # as the session joins the names of crossed groups
_NA = frozenset({"na", "nan", "null", "none", "n/a", "."})
_MOST_READINGS = 24


def tables(
    cohort: CohortFile, raw: OutputDocument, facts: Facts | None, deltas: Any, parameters: Mapping[str, Any]
) -> Iterator[Measured]:
    """The table for each way its groups can be read from the columns of the cohort."""
    kind = KINDS[raw.type]
    for grouping in groupings(cohort, raw, facts):
        yield _table(raw, facts, grouping, deltas if kind.of_deltas else None, kind.statistic, parameters)


def groupings(cohort: CohortFile, raw: OutputDocument, facts: Facts | None) -> Iterator[Grouping]:
    """People by row of the table; a person in none of its rows has code −1."""

    keys = [str(row[0]) for row in raw.rows]
    crossed = [key.split(CROSS) for key in keys]
    if not keys or len({len(parts) for parts in crossed}) != 1:
        return
    said = str(raw.about.get("groups") or raw.columns[0].name).split(CROSS)
    width = len(crossed[0])
    names: list[str | None] = [*said] if len(said) == width else [None] * width
    choices = [cohort.grouped({parts[i] for parts in crossed}, names[i]) for i in range(width)]
    index = {key: i for i, key in enumerate(keys)}
    # one column is read at a time: the one that the table names is nearly always right
    every = ((labels,) for labels in choices[0]) if width == 1 else itertools.product(*choices)
    for labels in itertools.islice(every, _MOST_READINGS):
        each = [_missing_words(column, {parts[i] for parts in crossed}) for i, column in enumerate(labels)]
        codes = np.array([index.get(CROSS.join(parts), -1) for parts in zip(*each, strict=True)], dtype=np.int64)
        empty = {p.key for p in (facts.parts if facts else ()) if _structural(p)}
        here = {keys[i] for i in set(codes.tolist()) if i >= 0}
        yield Grouping("groups", tuple(keys), codes, frozenset(empty - here), _widths(cohort, each, keys, names))


def _structural(part: Any) -> bool:
    fact = part.facts.get("cell.structural_zero")
    return fact is not None and fact.value is True


def _missing_words(labels: list[str], keys: set[str]) -> list[str]:
    """Where the table has a group of missing labels, words that some readers take for missing are in it."""
    if MISSING not in keys:
        word = next((key for key in keys if key.lower() in _NA), None)  # a group called NA, which a reader takes so
        return labels if word is None else [word if label == MISSING else label for label in labels]
    return [MISSING if label not in keys and label.lower() in _NA else label for label in labels]


def _widths(
    cohort: CohortFile, columns: list[list[str]], keys: list[str], names: list[str | None]
) -> tuple[float, ...] | None:
    """Band widths as the session measures them: from the bands, or where groups are age bands by another name."""
    import pandas as pd  # late: pandas is heavy

    parts = []
    for i, column in enumerate(columns):
        edges = band_edges({key.split(CROSS)[i] for key in keys})
        series = pd.Series(column, name=names[i] or f"group {i + 1}")
        parts.append(series if edges is None or cohort.ages is None else AgeBands(cohort.ages, None, edges))
    try:
        made = make_grouping(parts if len(parts) > 1 else parts[0], Roster.of(cohort.n, None), cohort.ages)
    except InputError:
        return None
    if made.widths is None:
        return None
    width = dict(zip(made.labels, made.widths, strict=True))
    return tuple(width.get(key, 0.0) for key in keys)


def _table(
    raw: OutputDocument,
    facts: Facts | None,
    grouping: Grouping,
    deltas: Any,
    statistic: str,
    parameters: Mapping[str, Any],
) -> Measured:
    parts = anew.cells(grouping, deltas, statistic)
    whole = anew.table(grouping, deltas, parameters)
    if raw.type == BY_SITE:
        whole["site.count"] = len(grouping)
    n_at = [column.role == "n" for column in raw.columns[1:]]
    rows: dict[str, tuple[float | None, ...]] = {}
    members: dict[str, Any] = {}
    for i, (key, (found, value)) in enumerate(parts.items()):
        if not is_noised(facts):
            rows[key] = tuple(found["cell.n"] if counts else value for counts in n_at)
        inside = grouping.codes == i
        members[key] = inside if deltas is None else inside & np.isfinite(deltas)
    return Measured(
        whole, {key: found for key, (found, _) in parts.items()}, rows, members, None if deltas is None else statistic
    )


def printed_cells(raw: OutputDocument, found: Measured, source: Source | None) -> tuple[PrintedCell, ...]:
    """What a file prints over groups of people, for the attack over all files named together."""

    role = "interior" if found.parts else "grand"
    return tuple(
        PrintedCell(
            raw.name,
            key,
            np.flatnonzero(people),
            role,
            None if source is None else source.name,
            found.statistic,
            shows_n=raw.type == N_SUBJECTS or role == "interior",
            any_rounded=bool(found.facts.get("table.any_n_rounded", False)),
            structural=bool(found.parts.get(key, {}).get("cell.structural_zero", False)),
        )
        for key, people in found.members.items()
    )


def linked_findings(
    problems: list[Mapping[str, Any]], members: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[Finding]:
    """The atoms of the evidence against the people: sets of people in the same cells, their counts and sums.

    Parameters
    ----------
    members
        Cell id (`output|row`) → (people,) bool, for every cell that the cohort answers.
    values
        Output → (people,) deltas behind it.
    """
    for data in problems:
        cells, atoms = data.get("cells", {}), data.get("atoms", {})
        known = [name for name in cells if name in members]
        if not known:
            continue
        try:
            recorded = _recorded(cells, atoms, known)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # a damaged problem blocks elsewhere
        deltas = next((values[output] for output in _with_statistic(cells, known) if output in values), None)
        counted = _counted(members, known, deltas)
        if {key: n for key, (n, _) in recorded.items() if n} != {key: n for key, (n, _) in counted.items()}:
            yield _not_these("groups of people that its tables have in common are not those of the cohort")
        elif deltas is not None and any(
            total is not None and abs(total - counted[key][1]) > 1e-6 * max(1.0, abs(total))
            for key, (n, total) in recorded.items()
            if n
        ):
            yield _not_these("sums of its groups of people are not those of the cohort")


def _with_statistic(cells: Mapping[str, Any], known: list[str]) -> Iterator[str]:
    """Outputs that print a statistic of the problem's own variable."""
    for name in known:
        if cells[name].get("mean") is not None or cells[name].get("sd") is not None:
            yield name.partition("|")[0]


def _not_these(what: str) -> Finding:
    return note(
        "cohort-differs",
        Effect.BLOCK,
        f"Table problem of the evidence: {what}.",
        outside="A recorded fact differs from the cohort.",
        next_step="Run the session again on this cohort.",
    )


def _recorded(
    cells: Mapping[str, Any], atoms: Mapping[str, Any], known: list[str]
) -> dict[frozenset[str], tuple[int, float | None]]:
    inside: dict[str, set[str]] = {}
    for name in known:
        for atom in cells[name]["atoms"]:
            inside.setdefault(atom, set()).add(name)
    out: dict[frozenset[str], tuple[int, float | None]] = {}
    for atom, names in inside.items():
        n, total = out.get(frozenset(names), (0, 0.0))
        add = atoms[atom].get("sum")
        both = None if add is None or total is None else total + float(add)
        out[frozenset(names)] = (n + int(atoms[atom]["n"]), both)
    return out


def _counted(members: Mapping[str, Any], known: list[str], deltas: Any) -> dict[frozenset[str], tuple[int, float]]:

    whole = np.column_stack([members[name] for name in known])
    patterns, inverse = np.unique(whole, axis=0, return_inverse=True)
    inverse = np.asarray(inverse).reshape(-1)
    counts = np.bincount(inverse, minlength=len(patterns))
    value = np.zeros(len(whole)) if deltas is None else np.where(np.isfinite(deltas), deltas, 0.0)
    sums = np.bincount(inverse, weights=value, minlength=len(patterns))
    return {
        frozenset(name for name, there in zip(known, row, strict=True) if there): (int(n), float(total))
        for row, n, total in zip(patterns, counts, sums, strict=True)
        if row.any()
    }
