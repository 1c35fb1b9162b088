"""`--cohort FILE`: every fact measured again from the data, inside the TRE, and held against what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...base.findings import Effect, Finding, note
from ...judging.documents import marked_rows
from ...judging.judge import Judged
from ...kinds.kind import Measured
from ...kinds.registry import KINDS
from ...measure.context import Context
from ...measure.linked import LinkedTables
from ...outputs import OutputDocument
from ...rules.facts import Facts, Part
from ...tables import TablePolicy
from .cohort_deltas import DeltaSources, Source
from .cohort_file import CohortFile, is_noised, read_cohort_file
from .cohort_measure import measurements
from .cohort_tables import groupings, linked_findings, printed_cells

_STEP = "Find out whether the cohort or the evidence was changed, then run the session again."
# measured on the file itself, whatever was recorded
_OWN = frozenset(
    {
        *("output.known", "output.format", "output.rows", "shape.length", "rounding.done", "cell.complementary"),
        *(
            "table.interior_cells",
            "table.suppressed_cells",
            "table.suppressed_share",
            "table.primary_share",
            "table.mark_untrue",
        ),
    }
)
_ATTACKED = frozenset({"table.recoverable_cells", "package.recoverable_cells"})


@dataclass
class CohortFacts:
    """A cohort read for checking, and what was found so far. Stays in the TRE."""

    file: CohortFile
    parameters: Mapping[str, Any] = field(default_factory=dict)
    measured: dict[str, list[str]] = field(default_factory=dict)  # output → facts measured again
    unmeasured: dict[str, list[str]] = field(default_factory=dict)  # output → facts nothing here answers
    sources: DeltaSources = field(init=False)
    members: dict[str, Any] = field(default_factory=dict)  # `output|row` → (people,) bool
    values: dict[str, Any] = field(default_factory=dict)  # output → (people,) deltas behind it

    def __post_init__(self) -> None:
        self.sources = DeltaSources(self.file, float(self.parameters.get("features_share", 0.0)))

    @property
    def n(self) -> int:
        """People in the file."""
        return self.file.n

    def read(self, raw: OutputDocument, facts: Facts | None) -> tuple[Measured | None, Source | None, list[Finding]]:
        """The reading of the cohort that agrees best with one output, where its deltas come from, and what differs.

        Whoever forges numbers agrees with no reading; the best one then names what differs.
        """
        best: tuple[int, int, Measured | None, Source | None, list[Finding]] = (1, 0, None, None, [])
        private = facts is not None and self._must_be_private(facts)
        for source, found in self.readings(raw, facts):
            if private and source is not None and not source.private:
                continue  # said to come from the noised model, whose weights are here
            agree, differ = compare(raw, facts, found)
            rank = (len(differ) > 0, -agree)
            if best[2] is None or rank < best[:2]:
                best = (*rank, found, source, differ)
            if not differ:
                break
        return best[2:]

    def readings(self, raw: OutputDocument, facts: Facts | None) -> Iterator[tuple[Source | None, Measured]]:
        """Every way the cohort can be read as this output, the likely ones first; of a part, its people only."""
        file = self._file_of(raw)
        if file is None:
            return
        for source in self.sources if KINDS[raw.type].of_deltas else (None,):
            if source is not None and file.inside is not None:
                source = replace(source, values=np.where(file.inside, source.values, np.nan))
            deltas = None if source is None else source.values
            for found in measurements(file, raw, facts, deltas, self.sources, self.parameters):
                yield source, found

    def _file_of(self, raw: OutputDocument) -> CohortFile | None:
        if "visits" in raw.about:
            return None  # a file of one row a person does not hold them
        where = raw.about.get("where")
        return self.file if where is None else self.file.part([str(word) for word in where])

    def compare(self, name: str, facts: Facts, raw: OutputDocument, *, attacked: bool = False) -> Iterator[Finding]:
        """Every fact and raw number of one output that the cohort answers differently.

        attacked: the tables of the evidence were attacked again; `linked` holds those against the cohort.
        """
        found, source, differ = self.read(raw, facts)
        done = set(_OWN | _ATTACKED if attacked else _OWN)
        if found is not None and self._counts(found, source, facts, raw):
            done |= set(found.facts) | {key for part in found.parts.values() for key in part}
            done |= {f"value of {key}" for key in found.rows}
            self.members |= {f"{name}|{key}": people for key, people in found.members.items()}
            if source is not None and found.statistic is not None:
                self.values[name] = source.values
            yield from differ
        else:
            visits = "visits" in raw.about  # what nobody here can measure goes to a person, whatever it says
            foreign = [] if found is not None or visits else list(self.not_of_the_cohort(raw, facts))
            yield from foreign
            if not foreign and (visits or not is_noised(facts)):
                yield _unmeasured(of_deltas=KINDS[raw.type].of_deltas)
        said = {f.name for f in facts if f.by.value in ("recorded", "declared", "computed")}
        self.measured[name] = sorted(key for key in done if key in said or key.startswith("value of"))
        self.unmeasured[name] = sorted(said - done)

    def _counts(self, found: Measured, source: Source | None, facts: Facts, raw: OutputDocument) -> bool:
        """Whether a reading speaks for this output: any one does, but deltas and predictions worked out here must fit
        somewhere."""
        if not found.proposed and (source is None or self.sources.has_column):
            return True
        # a mean of zero is that of every fitted model: it speaks for none
        return any(abs(a - b) <= 1e-6 * abs(b) for a, b in _floats(raw, facts, found) if abs(b) > 1e-3)

    def _must_be_private(self, facts: Facts) -> bool:
        """Whether every delta of the noised model can be made again: a subset of its weights makes some kinds only."""
        origin = facts.get("model.origin")
        return origin is not None and origin.value == "formal_release" and self.sources.whole

    def not_of_the_cohort(self, raw: OutputDocument, facts: Facts | None) -> Iterator[Finding]:
        """Rows that name no column, and groups that stand in no column: nothing to compare is not agreement."""
        names = [str(row[0]) for row in raw.rows]
        if self._file_of(raw) is None:
            yield _foreign(Effect.BLOCK, "no column has the groups of this part", raw.name)
            return
        if KINDS[raw.type].of_groups:
            if next(groupings(self.file, raw, facts), None) is None:
                yield _foreign(Effect.BLOCK, "groups of these names stand in no column", raw.name)
            return
        lost = [name for name in names if self.file.column(name) is None] if KINDS[raw.type].of_columns else []
        if lost:
            effect = Effect.REVIEW if KINDS[raw.type].of_deltas else Effect.BLOCK
            yield _foreign(effect, f"it has no column for {len(lost)} of {len(names)} rows", lost[0])

    def beside(self, raw: OutputDocument, found: Measured, source: Source | None) -> Context:
        """The table engine's view of one file beside the files judged before it."""

        if source is not None:
            self.tables.values[source.name] = source.values
        self.tables.retract(raw.name)  # a CSV and a JSON document of one output are one output
        return Context(self.tables, printed_cells(raw, found, source))

    def publish(self, raw: OutputDocument, found: Measured, source: Source | None, judged: Judged) -> None:
        """Remember what a judged file prints."""
        marked = marked_rows(raw)
        self.tables.publish(printed_cells(raw, found, source), marked, judged.complementary)

    @cached_property
    def tables(self) -> LinkedTables:
        """The files judged so far as one system of tables."""

        return LinkedTables(TablePolicy.from_parameters(self.parameters), ages=lambda: self.file.ages)

    def linked(self, problems: list[Mapping[str, Any]]) -> Iterator[Finding]:
        """The tables of the evidence taken together, counted again."""
        yield from linked_findings(problems, self.members, self.values)


def _unmeasured(*, of_deltas: bool) -> Finding:
    """Nothing to compare with is not agreement."""
    if of_deltas:
        return note(
            "cohort-deltas",
            Effect.REVIEW,
            "Its deltas could not be made again from the cohort: nothing about them was measured.",
            next_step="Give a cohort with a column `delta`, or with ages and all features of the model.",
            asks=("Where do these deltas come from, and are they of these people?",),
        )
    return note(
        "cohort-lacks",
        Effect.REVIEW,
        "The cohort does not say what it was worked out from: nothing of it was measured again.",
        outside="What it was worked out from is not in the cohort.",
        next_step="Have its numbers worked out again where the data are.",
        asks=("Are these the numbers that the cohort and the named method give?",),
    )


def _foreign(effect: Effect, what: str, target: str) -> Finding:
    return note(
        "cohort-lacks",
        effect,
        f"The cohort does not have this: {what}.",
        target=target,
        outside="The cohort does not have what this output is about.",
        next_step="Give the cohort's own table with these columns, or leave the output out.",
        asks=() if effect is Effect.BLOCK else ("Where do these columns come from?",),
    )


def compare(raw: OutputDocument, facts: Facts | None, found: Measured) -> tuple[int, list[Finding]]:
    """How many recorded numbers agree with a reading of the cohort, and a finding for each that differs."""
    agree, out = 0, []
    for place, recorded, now, target, by in _pairs(raw, facts, found):
        if _same(recorded, now):
            agree += 1
        else:
            out.append(_difference(place, _text(recorded), _text(now), target, by))
    return agree, out


def _pairs(raw: OutputDocument, facts: Facts | None, found: Measured) -> Iterator[tuple[str, Any, Any, str, str]]:
    """(what, recorded, now, row, who said it) for everything that both sides answer."""
    noised = is_noised(facts)
    rows = {str(row[0]): row[1:] for row in raw.rows}
    names = [column.name for column in raw.columns[1:]]
    if facts is not None:
        for name, now in found.facts.items():
            fact = facts.get(name)
            if fact is not None and not (noised and name == "value"):
                yield name, fact.value, now, "output", fact.by.value
        for part in facts.parts:
            yield from _part(part, found, noised)
    for key, values in found.rows.items():
        for name, recorded, now in zip(names, rows.get(key, ()), values, strict=False):
            if isinstance(recorded, int | float) and now is not None:
                yield f"{_value_name(raw, name, len(names), key)}", recorded, now, key, "recorded"


def _part(part: Part, found: Measured, noised: bool) -> Iterator[tuple[str, Any, Any, str, str]]:
    now = found.parts.get(part.key, {})
    for name, fact in part.facts.items():
        if name in now:
            yield f"{name} of row {part.key!r}", fact.value, now[name], part.key, fact.by.value
    values = found.rows.get(part.key, ())
    if part.value is not None and values and values[-1] is not None and not noised and len(values) <= 2:
        what = f"the {found.statistic} of row {part.key!r}" if found.statistic else f"the value of row {part.key!r}"
        yield what, part.value, values[-1], part.key, "recorded"


def _value_name(raw: OutputDocument, column: str, width: int, key: str) -> str:
    return f"{raw.type} ({key})" if width == 1 else f"{column} of row {key!r}"


def _floats(raw: OutputDocument, facts: Facts, found: Measured) -> Iterator[tuple[float, float]]:
    for _, recorded, now, _, _ in _pairs(raw, facts, found):
        if isinstance(recorded, float) and isinstance(now, float) and not float(now).is_integer():
            yield recorded, now


def _same(recorded: Any, now: Any) -> bool:
    numbers = (isinstance(v, int | float) and not isinstance(v, bool) for v in (recorded, now))
    if all(numbers):
        return bool(abs(recorded - now) <= 1e-6 * max(1.0, abs(now)))
    return bool(recorded == now)


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _difference(name: str, recorded: str, now: str, target: str, by: str) -> Finding:
    return note(
        "cohort-differs",
        Effect.BLOCK,
        f"{name} is {by} as {recorded}; the cohort gives {now}.",
        target=target,
        outside="A recorded fact differs from the cohort.",
        next_step=_STEP,
    )


def read_cohort_facts(path: str | Path, parameters: Mapping[str, Any]) -> CohortFacts:
    """Read `--cohort`.

    Raises
    ------
    InputError
        When the file cannot be read as one row a person, or a person stands in it twice.
    """
    return CohortFacts(read_cohort_file(path), parameters)


__all__ = ["CohortFacts", "compare", "read_cohort_facts"]
