"""`--cohort FILE`: every fact measured again from the data, inside the TRE, and held against what was recorded."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..facts.types import Facts
from ..outputs import OutputDocument
from .report import Noted, note

_DELTA_NAMES = ("delta", "brain_age_delta", "delta_unbiased_quadratic", "delta_unbiased", "delta_simple")
_GROUPS = {
    "delta_mean_by_diagnosis": ("diagnosis", "dx", "group"),
    "delta_mean_by_sex": ("sex", "gender"),
    "delta_mean_by_site": ("site", "scanner", "centre"),
}


@dataclass
class CohortFacts:
    """A cohort read for checking: columns of numbers and of groups, one row a person.

    `ages`, `deltas` and every numeric column are also what detectors compare files with. Stays in the TRE.
    """

    path: str
    n: int
    numbers: dict[str, Any]
    groups: dict[str, list[str]]
    min_n: int = 20
    measured: list[str] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)

    def sorted_columns(self) -> dict[str, array[float]]:
        """Per-subject columns, sorted, for the detectors."""
        import numpy as np

        out = {}
        for name, values in self.numbers.items():
            finite = np.sort(values[np.isfinite(values)])
            if len(finite) >= 5 and float(finite.std()) > 0:
                out[name] = array("d", finite)
        return out

    def compare(self, entry: Mapping[str, Any], facts: Facts, raw: OutputDocument) -> Iterator[Noted]:
        """Every fact of one output that the cohort answers differently."""
        done = 0
        for finding in (*self._groups(facts, raw), *self._whole(facts, raw)):
            if finding is None:
                done += 1
            else:
                yield finding
        (self.measured if done else self.unmeasured).append(str(entry["name"]))

    def _delta(self) -> Any:
        return next((self.numbers[name] for name in _DELTA_NAMES if name in self.numbers), None)

    def _groups(self, facts: Facts, raw: OutputDocument) -> Iterator[Noted | None]:
        import numpy as np

        cells = {part.key: part for part in facts.parts if part.kind == "cell"}
        if not cells:
            return
        column = self._column_of(set(cells))
        if column is None:
            return
        labels = np.asarray(self.groups[column])
        delta = self._delta()
        for key, part in cells.items():
            member = labels == key
            recorded = part.facts.get("cell.n")
            finite = (
                member & np.isfinite(delta)
                if delta is not None and part.value is not None and raw.type != "count_table"
                else member
            )
            yield _differs(f"cell.n of row {key!r}", recorded, int(finite.sum()), key)
            if delta is not None and finite.any() and part.value is not None and raw.type.startswith("delta_mean"):
                yield _differs_value(f"the mean of row {key!r}", part.value, float(delta[finite].mean()), key)
            if delta is not None and finite.sum() > 1 and raw.type == "delta_sd_by_group" and part.value is not None:
                yield _differs_value(f"the SD of row {key!r}", part.value, float(delta[finite].std(ddof=1)), key)
            share = part.facts.get("cell.largest_share")
            if share is not None and delta is not None and finite.any() and float(np.abs(delta[finite]).sum()) > 0:
                now = float(np.abs(delta[finite]).max() / np.abs(delta[finite]).sum())
                yield _differs_value(f"cell.largest_share of row {key!r}", float(share.value), now, key)

    def _whole(self, facts: Facts, raw: OutputDocument) -> Iterator[Noted | None]:
        import numpy as np

        delta, ages = self._delta(), self.numbers.get("age")
        recorded = facts.get("n")
        if raw.type in ("delta_mean", "delta_sd", "delta_quantiles") and delta is not None:
            finite = delta[np.isfinite(delta)]
            yield _differs("n", recorded, len(finite), "output")
            now = {"delta_mean": float(finite.mean()), "delta_sd": float(finite.std(ddof=1))}.get(raw.type)
            value = raw.rows[0][1] if raw.rows else None
            if now is not None and isinstance(value, int | float):
                yield _differs_value(raw.type, float(value), now, "output")
        elif recorded is not None and raw.type in (
            "y_mean",
            "n_subjects",
            "beta1",
            "x_mean",
            "x_std",
            "pca_components",
        ):
            if type(recorded.value) is int and recorded.value > self.n:
                yield note(
                    "cohort-differs",
                    "block",
                    f"n is recorded as {recorded.value}; the cohort has only {self.n} people.",
                )
            else:
                yield None
            if raw.type == "y_mean" and ages is not None and recorded.value == int(np.isfinite(ages).sum()):
                value = raw.rows[0][1] if raw.rows else None
                applied = facts.get("dp.applied")
                if isinstance(value, int | float) and (applied is None or applied.value is False):
                    yield _differs_value("y_mean", float(value), float(np.nanmean(ages)), "output")

    def _column_of(self, keys: set[str]) -> str | None:
        best, most = None, 0
        for name, labels in self.groups.items():
            share = len(keys & set(labels))
            if share > most and share * 2 >= len(keys):
                best, most = name, share
        return best


def _differs(name: str, recorded: Any, now: int, target: str) -> Noted | None:
    if recorded is None or recorded.value == now:
        return None
    return note(
        "cohort-differs",
        "block",
        f"{name} is recorded as {recorded.value}; the cohort says {now} ({recorded.by.value}).",
        target=target,
        outside="A recorded fact differs from the cohort.",
    )


def _differs_value(name: str, recorded: float, now: float, target: str) -> Noted | None:
    if abs(recorded - now) <= 1e-6 * max(1.0, abs(now)):
        return None
    return note(
        "cohort-differs",
        "block",
        f"{name} is recorded as {recorded:.6g}; the cohort gives {now:.6g}.",
        target=target,
        outside="A recorded fact differs from the cohort.",
    )


def read_cohort_facts(path: str | Path, min_n: int) -> CohortFacts:
    """Read a CSV of one row a person with any of: age, delta, features, groups.

    Raises
    ------
    InputError
        When the file cannot be read as such a table.
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
    numbers: dict[str, Any] = {}
    groups: dict[str, list[str]] = {}
    for name in frame.columns:
        column = frame[name]
        key = str(name).strip().lower()
        if pd.api.types.is_numeric_dtype(column):
            numbers[key] = np.asarray(column, dtype=float)
            if column.nunique() <= 200:
                groups[key] = [_label(value) for value in column]
        elif column.nunique() <= 5_000:
            groups[key] = [_label(value) for value in column]
    if not len(frame):
        raise InputError("the cohort has no rows", path=path)
    return CohortFacts(str(path), len(frame), numbers, groups, min_n)


def _label(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "missing"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
