"""`--cohort FILE`: every fact measured again from the data, inside the TRE, and held against what was recorded."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..facts.types import Fact, Facts, Part
from ..outputs import OutputDocument
from .report import Noted, note

_DELTA_NAMES = ("delta", "brain_age_delta", "delta_unbiased_quadratic", "delta_unbiased", "delta_simple")
_WHOLE = {"delta_mean": "mean", "delta_sd": "sd", "delta_quantiles": None}
_TRAINED = frozenset(
    {"n_subjects", "y_mean", "beta1", "beta2", "beta2sq", "gamma", "gammasq", "pca_components", "folded_weights"}
)
_FEATURES = frozenset({"x_mean", "x_std", "idp_summary"})
_CROSS = " × "  # as the session joins the names of crossed groups
_BAND = re.compile(r"(\d+(?:\.\d+)?)\s*(?:-|–|to under|to)\s*(\d+(?:\.\d+)?)\b")


@dataclass
class CohortFacts:
    """A cohort read for checking: columns of numbers and of groups, one row a person.

    Every numeric column is also what the detectors compare files with. Stays in the TRE.
    """

    path: str
    n: int
    numbers: dict[str, Any]
    groups: dict[str, list[str]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    measured: dict[str, list[str]] = field(default_factory=dict)  # output → facts measured again
    unmeasured: dict[str, list[str]] = field(default_factory=dict)  # output → computed facts nothing here answers

    def sorted_columns(self) -> dict[str, array[float]]:
        """Per-subject columns, sorted, for the detectors."""
        import numpy as np

        out = {}
        for name, values in self.numbers.items():
            finite = np.sort(values[np.isfinite(values)])
            if len(finite) >= 5 and float(finite.std()) > 0:
                out[name] = array("d", finite)
        return out

    def compare(self, name: str, facts: Facts, raw: OutputDocument) -> Iterator[Noted]:
        """Every fact and raw number of one output that the cohort answers differently."""
        again = dict(self._again(facts, raw))
        done = self.measured.setdefault(name, [])
        for fact in facts.facts.values():
            if fact.name in again:
                done.append(fact.name)
                yield from _differs(fact.name, fact, again[fact.name], "output")
        if not _noised(facts):
            yield from self._values(raw, done)
        for part in facts.parts:
            yield from self._part(part, facts, raw, done)
        self.measured[name] = done = sorted(set(done))
        said = {f.name for f in facts if f.by.value in ("recorded", "declared", "computed")}
        self.unmeasured[name] = sorted(said - set(done))

    @property
    def delta(self) -> Any:
        """Deltas, if the file has them."""
        return next((self.numbers[name] for name in _DELTA_NAMES if name in self.numbers), None)

    def _again(self, facts: Facts, raw: OutputDocument) -> Iterator[tuple[str, Any]]:
        import numpy as np

        from ..facts.measure import feature_facts, summary_facts

        if raw.type in _WHOLE and self.delta is not None:
            again = summary_facts(self.delta, self.parameters).values()
            yield from ((fact.name, fact.value) for fact in again if fact.name != "n" or not _public(facts))
        elif raw.type in _FEATURES and not _noised(facts):
            names = [str(row[0]).strip().lower() for row in raw.rows]
            if names and all(name in self.numbers for name in names):
                matrix = np.column_stack([self.numbers[name] for name in names])
                yield from ((fact.name, fact.value) for fact in feature_facts(matrix).values())
        elif raw.type in _TRAINED and not _public(facts):
            ages = self.numbers.get("age")
            yield "n", self.n if ages is None else int(np.isfinite(ages).sum())
        elif self._labels(facts) is not None:
            yield "n", sum(int(self._member(part, facts, raw).sum()) for part in facts.parts if part.kind == "cell")

    def _values(self, raw: OutputDocument, done: list[str]) -> Iterator[Noted]:
        import numpy as np

        finite = None if self.delta is None else self.delta[np.isfinite(self.delta)]
        for row in raw.rows:
            now = None
            if raw.type == "delta_mean" and finite is not None and len(finite):
                now = float(finite.mean())
            elif raw.type == "delta_sd" and finite is not None and len(finite) > 1:
                now = float(finite.std(ddof=1))
            elif raw.type == "delta_quantiles" and finite is not None and len(finite):
                now = float(np.percentile(finite, float(str(row[0]))))
            elif raw.type == "y_mean" and "age" in self.numbers:
                now = float(np.nanmean(self.numbers["age"]))
            value = row[1] if len(row) > 1 else None
            if now is not None and isinstance(value, int | float):
                done.append(f"value of {row[0]}")
                yield from _differs_number(f"{raw.type} ({row[0]})", float(value), now, str(row[0]))

    def _labels(self, facts: Facts) -> Any:
        """Each person's label in the table's grouping: a column, age bands, or a crossing of them; None if unknown."""
        import numpy as np

        keys = [part.key for part in facts.parts if part.kind == "cell"]
        if not keys:
            return None
        crossed = [key.split(_CROSS) for key in keys]
        if len({len(parts) for parts in crossed}) != 1:
            return None
        columns = [self._column({parts[i] for parts in crossed}) for i in range(len(crossed[0]))]
        if any(column is None for column in columns):
            return None
        rows = [_CROSS.join(labels) for labels in zip(*columns, strict=True)]
        return np.asarray(rows, dtype=object)

    def _column(self, keys: set[str]) -> Sequence[str] | None:
        """The labels of every person in the column whose groups have these names."""
        best: Sequence[str] | None = None
        most = 0.5
        for labels in self.groups.values():
            share = len(keys & set(labels)) / len(keys)
            if share > most:
                best, most = labels, share
        return best if best is not None else self._bands(keys)

    def _bands(self, keys: set[str]) -> Sequence[str] | None:
        ages = self.numbers.get("age")
        bands = {key: _BAND.match(key) for key in keys}
        if ages is None or not all(bands.values()):
            return None
        edges = sorted((float(match.group(1)), float(match.group(2)), key) for key, match in bands.items() if match)
        ends = [low for low, _, _ in edges[1:]] + [float("inf")]
        return [
            next((key for (low, _, key), end in zip(edges, ends, strict=True) if low <= age < end), "outside the bands")
            for age in ages
        ]

    def _member(self, part: Part, facts: Facts, raw: OutputDocument) -> Any:
        import numpy as np

        member = self._labels(facts) == part.key
        if raw.type != "count_table" and self.delta is not None:
            member = member & np.isfinite(self.delta)
        return member

    def _part(self, part: Part, facts: Facts, raw: OutputDocument, done: list[str]) -> Iterator[Noted]:
        from ..facts.measure import largest_share, statistic_of

        if part.kind != "cell" or self._labels(facts) is None:
            return
        member = self._member(part, facts, raw)
        again: dict[str, Any] = {"cell.n": int(member.sum())}
        if self.delta is not None and raw.type != "count_table":
            inside = self.delta[member]
            again["cell.largest_share"] = largest_share(inside)
            statistic = "sd" if raw.type == "delta_sd_by_group" else "mean"
            now = statistic_of(inside, statistic)
            if now is not None and part.value is not None and not _noised(facts):
                yield from _differs_number(f"the {statistic} of row {part.key!r}", part.value, now, part.key)
        for name, value in again.items():
            fact = part.facts.get(name)
            if fact is not None:
                done.append(name)
                yield from _differs(f"{name} of row {part.key!r}", fact, value, part.key)


def _public(facts: Facts) -> bool:
    """Whether N is not this cohort's own: a public basis's people (D-18), or the noisy count of the release itself."""
    origin = facts.get("n.origin")
    return origin is not None and (origin.value == "public_bound" or (origin.value == "noisy" and _noised(facts)))


def _noised(facts: Facts) -> bool:
    applied = facts.get("dp.applied")
    return applied is not None and applied.value is True


def _differs(name: str, recorded: Fact, now: Any, target: str) -> Iterator[Noted]:
    if isinstance(now, float) and isinstance(recorded.value, int | float):
        yield from _differs_number(name, float(recorded.value), now, target, by=recorded.by.value)
    elif recorded.value != now:
        yield _difference(name, str(recorded.value), str(now), target, recorded.by.value)


def _differs_number(name: str, recorded: float, now: float, target: str, *, by: str = "recorded") -> Iterator[Noted]:
    if abs(recorded - now) > 1e-6 * max(1.0, abs(now)):
        yield _difference(name, f"{recorded:.6g}", f"{now:.6g}", target, by)


def _difference(name: str, recorded: str, now: str, target: str, by: str) -> Noted:
    return note(
        "cohort-differs",
        "block",
        f"{name} is {by} as {recorded}; the cohort gives {now}.",
        target=target,
        outside="A recorded fact differs from the cohort.",
        next_step="Find out whether the cohort or the evidence was changed, then run the session again.",
    )


def read_cohort_facts(path: str | Path, parameters: Mapping[str, Any]) -> CohortFacts:
    """Read a CSV of one row a person with any of: age, delta, features, groups.

    Raises
    ------
    InputError
        When the file cannot be read as such a table, or a person stands in it twice.
    """
    import numpy as np
    import pandas as pd

    try:
        frame = pd.read_csv(path, keep_default_na=True, low_memory=False)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise InputError(
            f"the cohort cannot be read ({type(error).__name__})",
            path=path,
            next_step="Give a CSV with a header row, one row a person.",
        ) from None
    if not len(frame):
        raise InputError("the cohort has no rows", path=path)
    numbers: dict[str, Any] = {}
    groups: dict[str, list[str]] = {}
    for name in frame.columns:
        column = frame[name]
        key = str(name).strip().lower()
        if key in ("participant_id", "subject_id", "person_id", "id", "eid") and column.duplicated().any():
            raise InputError("a person stands in the cohort twice", path=path, place=f"column {name}")
        if pd.api.types.is_numeric_dtype(column):
            numbers[key] = np.asarray(column, dtype=float)
        if column.nunique() <= 200:
            groups[key] = _group(column, str(name))
    return CohortFacts(str(path), len(frame), numbers, groups, parameters)


def _group(column: Any, name: str) -> list[str]:
    """Labels as a session prints them."""
    from ..facts.people import group_labels

    try:
        return group_labels(column, name)[0]
    except InputError:  # a label that no session would print: no table can be about it
        return ["" for _ in range(len(column))]
