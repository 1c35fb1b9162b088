"""What the cohort says about one output: its facts, its numbers, and who stands behind each row. Inside only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import InputError
from ...kinds.kind import Measured
from ...kinds.registry import KINDS
from ...model.validation import FOLDS, validated_by
from ...outputs import OutputDocument
from ...rules.facts import Facts
from .cohort_deltas import DeltaSources
from .cohort_file import CohortFile, is_noised
from .cohort_tables import tables


def measurements(
    cohort: CohortFile,
    raw: OutputDocument,
    facts: Facts | None,
    deltas: Any,
    sources: DeltaSources,
    parameters: Mapping[str, Any],
) -> Iterator[Measured]:
    """Every way the cohort can be read as this output: one, or one for each column that its groups could be.

    Parameters
    ----------
    raw
        The document: its type, its rows' names. Its numbers are not looked at.
    facts
        What was recorded, for what the document does not say (noise, where N comes from); None for nothing.
    deltas
        (people,) deltas, or None.
    sources
        The recorded weights, for facts about training.
    """
    kind = KINDS[raw.type]
    if kind.of_deltas and deltas is None:
        return
    asked = Asked(cohort, raw, facts, deltas, sources, parameters)
    if kind.of_groups and kind.again is None:  # groups that a column of the cohort names
        for table in tables(cohort, raw, facts, deltas, parameters):
            table.facts |= asked.about_the_cohort()
            yield table
        return
    one = None if kind.again is None else kind.again(asked)
    if one is not None:
        one.facts |= asked.about_the_cohort()
        yield one


@dataclass(frozen=True)
class Asked:
    """One document beside the cohort, as the kinds read it (`kinds.Reading`)."""

    cohort: CohortFile
    raw: OutputDocument
    said: Facts | None
    deltas: Any
    sources: DeltaSources
    numbers: Mapping[str, Any]

    @property
    def keys(self) -> list[str]:
        """Names of its rows."""
        return [str(row[0]) for row in self.raw.rows]

    @property
    def noised(self) -> bool:
        """Whether noise was recorded."""
        return is_noised(self.said)

    @property
    def members(self) -> Any:
        """(people,) bool: everybody in the cohort, or those of a part."""
        return np.ones(self.cohort.n, dtype=bool) if self.cohort.inside is None else self.cohort.inside

    @property
    def ages(self) -> Any:
        """(people,) ages or None."""
        return self.cohort.ages

    def column(self, name: str) -> Any:
        """(people,) numbers of a column, or None."""
        return self.cohort.column(name)

    def matrix(self, names: Sequence[str]) -> Any:
        """(people, names) numbers, or None where one is not there."""
        return self.cohort.matrix(names)

    def labels(self, name: str) -> list[str] | None:
        """A column as group labels, or None."""
        try:
            return self.cohort.labels(name.strip().lower())
        except (InputError, KeyError, ValueError):
            return None

    def trained_on(self) -> list[str]:
        """Features of the recorded weights."""
        return self.sources.trained_on()

    def prediction(self) -> Any:
        """(people,) ages predicted as the document says: out of fold, else by the recorded weights; or None."""
        if self.raw.about.get("validated") == validated_by(FOLDS):
            return self.sources.held_out()
        return self.sources.prediction()

    def about_the_cohort(self) -> dict[str, Any]:
        """What holds for every output of these people."""
        noisy = self.value("n.origin") == "noisy"
        facts: dict[str, Any] = {} if noisy else {"n_node": self.people("n_node")}
        if not self.noised:
            facts["n.origin"] = "exact"
        if self.cohort.ids is not None:
            facts["cohort.unit"] = "person"
        return facts

    def value(self, name: str) -> Any:
        """A recorded fact's value."""
        fact = None if self.said is None else self.said.get(name)
        return None if fact is None else fact.value

    def people(self, name: str) -> int:
        """N: everybody, or everybody with an age where the session's reader left the others out."""

        ages, inside = self.cohort.ages, self.cohort.inside
        everybody = self.cohort.n if inside is None or name == "n_node" else int(inside.sum())
        known = everybody if ages is None else int(np.isfinite(ages).sum())
        return known if self.value(name) == known else everybody
