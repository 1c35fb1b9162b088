"""What a session knows of its people and of everything it has printed. Per-subject data stays in here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.errors import InputError, RefusedError
from ..kinds.registry import KINDS
from ..measure.columns import Known, copy_of, near
from ..measure.linked import LinkedTables
from ..measure.numbers import Book, Moment, Trace, moments
from ..measure.people import Floats, Roster, plausible_ages, rows_of
from ..rules import RuleSet
from ..tables import TablePolicy
from .entries import Candidate


class State:
    """People, known ages, private models and printed cells of one session."""

    def __init__(self, ruleset: RuleSet, *, people: Any | None, ages: Any | None) -> None:
        self.policy = TablePolicy.from_parameters(ruleset.parameters)
        self.linked = LinkedTables(self.policy, ages=self.ages)
        self.book = Book(self.linked.values)
        self._ids = people
        self._ages = None if ages is None else plausible_ages(ages)
        self._roster: Roster | None = None
        self.n_known: set[int] = set()
        self.groupings: dict[str, Any] = {}
        self.foreign: list[str] = []
        self.traces: list[Trace] = []  # of everything asked for; `linked` knows what of it leaves
        self.weights_out = False  # in an earlier session
        self.wanted: dict[str, Candidate] = {}  # outputs asked for that say numbers to be attacked, by name
        self.earlier: list[tuple[str, Any, Any]] = []  # (release, its cell, its people) of other sessions
        self.first_head = ""  # head of the ledger when the session began
        self.history_head = ""  # … when its releases were read last
        self.own_releases: set[int] = set()  # entries that this session wrote
        self.known: list[Floats] = []  # deltas that `session.deltas` gave, printed or not
        self.sound: list[Floats] = []  # those of them that were made of registered columns
        known = people if people is not None else ages
        if known is not None:
            self.roster(rows_of(known), people)
            self.ages()

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
                next_step="Give one value for each row of the cohort, in order; where=(column, label) takes a part.",
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
        return self.roster(rows_of(self._ages)).mean_by_person(self._ages)

    def told(self, trace: Trace | None) -> tuple[Moment, ...]:
        """What an output without cells says, in the session's variables."""
        tells = None if trace is None else KINDS[trace.kind].tells
        if trace is None or tells is None:
            return ()
        return moments(trace, tells, self.book, self.linked.live(), self.linked.variables())

    def set_ages(self, ages: Any) -> None:
        """Remember the ages of a training, so that age bands under another name are recognised."""
        if self._ages is None:
            self._ages = plausible_ages(ages)

    def variable(self, values: Floats) -> str:
        """A name for one per-person variable.

        Values that agree wherever both are known are one variable, whoever is missing from either: otherwise a table
        without one person and a mean with that person would not be seen as linked. Rounded and slightly blurred copies
        are the same variable too.

        Raises
        ------
        RefusedError
            For values of an earlier output, or of `session.deltas`, in another unit or with an offset: rounding is to
            0.1 years, and copies give more digits. For those of an earlier output with some people's changed: a mean
            with and one without the changed people is their sum.
        """
        for known in self.known:
            copy = copy_of(known, values)
            if copy is not None and copy.share == 1.0 and not copy.identical:
                raise RefusedError(_UNIT, next_step=_AS_THEY_ARE)
        live = self.linked.live()
        deltas = {c.variable for c in self.linked.cells.values()} | {
            m.variables[0] for told in self.linked.moments.values() for m in told if not m.exact
        }
        names = [name for name in self.book.values if name in live]
        for name in names:
            if name in deltas and is_part(values, self.book.values[name]):
                return name
        columns = [name for name in names if name not in deltas]
        like = Known([self.book.values[name] for name in columns]).like(values) if columns else []
        found: str | None = None
        for name in [*(name for name in names if name in deltas), *(columns[j] for j in like)]:
            found = self._same(name, values, as_delta=name in deltas) or found
        return found or self.book.new(values)

    def _same(self, name: str, values: Floats, *, as_delta: bool) -> str | None:
        """The name of a variable where these are its values; a feature's column takes the units of the deltas."""
        known = self.book.values[name]
        copy = copy_of(known, values)
        if copy is None:
            return None
        if as_delta and not copy.identical and copy.share > 0.5:
            raise RefusedError(_UNIT, next_step=_AS_THEY_ARE)
        if copy.share < 1.0 and not near(copy, known, values):
            raise RefusedError(
                "these values are those of an earlier output with some people's changed",
                next_step="Release one of the two; mark people who do not count as missing.",
            )
        here = known if copy.identical else copy.slope * known + copy.offset
        self.book.values[name] = np.where(np.isfinite(known), here, values)
        return name


def is_part(values: Floats, known: Floats) -> bool:
    """Whether these are known values with nobody added: whatever they are copies of was found before."""
    mine = np.isfinite(values)
    return bool(mine.any() and np.array_equal(values[mine], known[mine]))


_UNIT = "these values are those of an earlier output or of a model's deltas, in another unit or shifted"
_AS_THEY_ARE = "Release the deltas in years as the model gives them, each time the same ones."


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
