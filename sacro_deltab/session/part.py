"""A part of the cohort by the labels of one column: everybody else counts as somebody without a value.

A table, a statistic or a training of a part is one of the same people: it shares their budget, and is attacked beside
everything else that is said of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError
from ..kinds import group_tables, whole
from ..kinds.asked import matrix
from ..kinds.kind import Made, Make
from ..measure.grouping import AgeBands
from ..measure.measure import computed
from ..measure.people import Roster, group_labels, label_text, numbers, rows_of
from .visits import AT_ONE

if TYPE_CHECKING:
    from .core import SessionCore

Where = tuple[Any, Any] | str | None  # a column of labels, and one of them or several; or "column == 'label'"


@dataclass(frozen=True)
class PartOfCohort:
    """Who takes part: `rows` (rows,) and `people` (people,) are true for them; `known` where the TRE registered the
    column under its name, `own` where it registered others and not this one."""

    column: str
    labels: tuple[str, ...]
    rows: npt.NDArray[np.bool_]
    people: npt.NDArray[np.bool_]
    known: bool
    own: bool
    visit: bool = False  # of one visit: other rows of the same people do not count

    @property
    def where(self) -> list[str]:
        """As it stands in `about`: the column, then the labels."""
        return [self.column, *self.labels]

    @property
    def words(self) -> str:
        """For a title."""
        return f"{self.column}: {', '.join(self.labels)}"

    def kept(self, values: Any) -> Any:
        """A column or table with everybody else's values missing."""
        if hasattr(values, "columns") and hasattr(values, "iloc"):
            return values.where(np.broadcast_to(self.rows[:, None], values.shape))
        if getattr(values, "ndim", 1) == 2:
            return np.where(self.rows[:, None], np.asarray(values, dtype=np.float64), np.nan)
        return np.where(self.rows, numbers(values), np.nan)

    def measured(self, session: SessionCore, make: Make, columns: list[Any], options: dict[str, Any]) -> list[Made]:
        """What a kind measures on the people of the part."""
        own = True if self.own else None  # None: as the kind finds it
        if make is whole.n:
            options = {**options, "among": self.people}
        elif "formula" in options:
            data, outcome = options["data"], str(options["formula"]).partition("~")[0].strip()
            data = self._at_visit(data) if self.visit else data
            options = {**options, "data": data.assign(**{outcome: self._same_deltas(session, data[outcome])})}
        elif make is group_tables.counts or not columns:
            raise InputError(
                "people are not counted in a part", next_step="Cross the columns: release_counts([diagnosis, site])."
            )
        else:
            if getattr(columns[0], "ndim", 1) == 2:  # compared with the register as they are of everybody
                named = matrix(session, columns[0], options.get("feature_names"))
                own = self.own or session.own(columns=named)["columns.own"].value is True
            rest = [self._at_visit(column) for column in columns[1:]] if self.visit else columns[1:]
            columns = [self._same_deltas(session, columns[0]), *rest]
        return [self._said_of(made, own) for made in make(session, *columns, **options)]

    def _at_visit(self, column: Any) -> Any:
        """Numbers as they were at the visit; labels are the same on all rows of a person."""
        if isinstance(column, AgeBands):
            return replace(column, ages=self.kept(column.ages))
        if isinstance(column, dict):
            return {name: self._at_visit(one) for name, one in column.items()}
        if isinstance(column, list | tuple) and not all(isinstance(one, int | float | str) for one in column):
            return type(column)(self._at_visit(one) for one in column)
        if hasattr(column, "columns"):
            return column.assign(**{str(name): self._at_visit(column[name]) for name in column.columns})
        return self.kept(column) if np.asarray(column).dtype.kind in "fiu" and np.ndim(column) else column

    def _same_deltas(self, session: SessionCore, values: Any) -> Any:
        """The values of the part; where they come from stays known."""
        kept = self.kept(values)
        if getattr(kept, "ndim", 1) == 1:
            session.same_origin(values, kept)
        return kept

    def only(self, values: Any) -> Any:
        """The rows of the part alone, of a column or table."""
        if values is None:
            return None
        return values[self.rows] if hasattr(values, "shape") else np.asarray(values)[self.rows]

    def _said_of(self, made: Made, own: bool | None) -> Made:
        """An output of the part: its title and its description name it."""
        document = replace(
            made.document,
            title=f"{made.document.title}, {self.words}",
            about={**made.document.about, "where": self.where, **({"visits": AT_ONE} if self.visit else {})},
        )
        facts = made.facts if own is None else {**made.facts, **computed(columns__own=own)}
        return replace(made, document=document, facts=facts)


def part_of(session: SessionCore, where: Any) -> PartOfCohort:
    """Read `where=(column, label)` or `(column, [label, …])`; the column has one label a row.

    Raises
    ------
    InputError
        For another form, a label that nobody has, or a person in two groups.
    """
    if isinstance(where, str):
        where = session.rows.where(where)
    if not isinstance(where, tuple) or len(where) != 2:
        raise InputError(
            "where= is a column of labels and one label, or several",
            next_step="For example where=(table['diagnosis'], 'HC').",
        )
    column, wanted = session.rows.placed(where[0]), where[1]
    name = str(getattr(column, "name", None) or "group")
    roster: Roster = session.roster(rows_of(column))
    rows, labels, _ = group_labels(column, name)
    chosen = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Collection) else list(wanted)
    names = tuple(dict.fromkeys(label_text(label, name) for label in chosen))
    lacking = [label for label in names if label not in labels]
    if lacking or not names:
        raise InputError(
            f"column {name!r} has no group {lacking[0]!r}" if names else "where= names no label",
            next_step=f"It has: {', '.join(labels[:12])}.",
        )
    chosen_rows = np.isin(rows, names)
    if session.visits is not None and tuple(rows) == session.visits:
        people = np.bincount(roster.codes[chosen_rows], minlength=roster.n_people) > 0
        if len(names) > 1:
            raise InputError("several visits are no one row a person", next_step="Ask for each visit alone.")
        return PartOfCohort(name, names, chosen_rows, people, known=False, own=True, visit=True)
    by_person = roster.labels_by_person(rows, name)
    registered = session.budget.people
    known = registered is not None and registered.described
    own = session.own(groups=(column, roster))["columns.own"].value is True
    return PartOfCohort(name, names, chosen_rows, np.isin(by_person, names), known and not own, own)
