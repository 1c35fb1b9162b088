"""What a session knows of its people and of everything it has printed. Per-subject data stays in here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, RefusedError
from ..facts.linked import LinkedTables
from ..facts.people import Floats, Roster, numbers
from ..tables import TablePolicy

if TYPE_CHECKING:
    from ..rules import RuleSet


class State:
    """People, known ages, private models and printed cells of one session."""

    def __init__(self, ruleset: RuleSet, *, people: Any | None, ages: Any | None) -> None:
        self.policy = TablePolicy.from_parameters(ruleset.parameters)
        self.linked = LinkedTables(self.policy)
        self._ids = people
        self._ages = ages
        self._roster: Roster | None = None
        self.n_known: set[int] = set()
        self.groupings: dict[str, Any] = {}
        self.foreign: list[str] = []
        known = people if people is not None else ages
        if known is not None:
            self.roster(len(known), people)

    def roster(self, rows: int, people: Any | None = None) -> Roster:
        """The session's people; the first array fixes how many rows there are.

        Raises
        ------
        InputError
            When an array has another number of rows than the cohort.
        """
        if self._roster is None:
            self._roster = Roster.of(rows, people)
        if self._roster.codes.size != rows:
            raise InputError(
                f"there are {rows} rows, but the session's cohort has {self._roster.codes.size}",
                next_step="Give one value for each row of the cohort (missing where there is none), in the same order.",
            )
        self.n_known.update((self._roster.n_people, self._roster.codes.size))
        return self._roster

    @property
    def people(self) -> Roster | None:
        """The roster once it is known."""
        return self._roster

    @property
    def ids(self) -> list[object] | None:
        """Distinct person ids in order of first appearance, where there are ids."""
        if self._ids is None:
            return None
        ids = self._ids.tolist() if hasattr(self._ids, "tolist") else list(self._ids)
        return list(dict.fromkeys(ids))

    def ages(self) -> Floats | None:
        """(people,) ages in years where the session was told them."""
        if self._ages is None:
            return None
        return self.roster(len(self._ages)).mean_by_person(self._ages)

    def set_ages(self, ages: Any) -> None:
        """Remember the ages of a training, so that age bands under another name are recognised."""
        if self._ages is None:
            self._ages = numbers(ages)

    def variable(self, values: Floats) -> str:
        """A name for one per-person variable.

        Values that agree wherever both are known are one variable, whoever is missing from either: otherwise a table
        without one person and a mean with that person would not be seen as linked. Values that agree for most people
        and differ for some are refused: a mean with and one without the changed people is their sum.
        """
        for name, known in self.linked.values.items():
            both = np.isfinite(known) & np.isfinite(values)
            if both.any() and np.array_equal(known[both], values[both]):
                self.linked.values[name] = np.where(np.isfinite(known), known, values)
                return name
            if both.any() and 2 * int((known[both] == values[both]).sum()) > int(both.sum()) and np.ptp(values[both]):
                raise RefusedError(
                    "these values are those of an earlier output with some people's changed",
                    next_step="Release one of the two; mark people who do not count as missing.",
                )
        name = f"v{len(self.linked.values) + 1}"
        self.linked.values[name] = np.array(values, dtype=np.float64)
        return name


def config_digest(config: Mapping[str, Any], own_key: str) -> dict[str, str]:
    """Each entry of `acro.config` as text, without ours, to notice changes."""
    return {str(key): json.dumps(value, sort_keys=True, default=str) for key, value in config.items() if key != own_key}


def config_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Sentences about entries that changed, appeared or went. Settings are public: their values may be told."""
    out = []
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            out.append(f"acro.config {key!r} changed from {before.get(key, 'nothing')} to {now.get(key, 'nothing')}")
    return out
