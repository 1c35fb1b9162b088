"""From the researcher's columns to groups of people: dtypes, bands, crossings, and which table type it is."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.errors import InputError
from .people import MISSING, Floats, Grouping, Roster, group_labels, label_text, numbers, printed_labels

SEPARATOR = " × "
MAX_CELLS = 20000
OPEN_YEARS = 120.0  # an open age band has no end that a reader could see; no human life is longer
_AGE = re.compile(r"\d+(?:\.\d+)?")
_OVER = re.compile(r"\+|>|≥|\b(?:over|above|older|from|plus|at least)\b", re.IGNORECASE)
_UNDER = re.compile(r"<|≤|\b(?:under|below|younger|up to|at most)\b", re.IGNORECASE)


@dataclass(frozen=True)
class AgeBands:
    """Half-open age bands: a width in years, or edges from low to high (every band has two ends
    here). `ages` are the ages of the rows."""

    ages: Any
    width: float | None = None
    edges: tuple[float, ...] | None = None
    name: str = "age_band"

    def grouping(self, roster: Roster) -> Grouping:
        """Bands anchored at multiples of the width, from the first to the last band with somebody in it."""
        age = roster.mean_by_person(self.ages)
        finite = age[np.isfinite(age)]
        if not finite.size:
            raise InputError("no age is a number", next_step="Give the ages in years.")
        if (self.width is None) == (self.edges is None):
            raise InputError("age bands need a width or edges", next_step="For example AgeBands(age, width=10).")
        edges = self._edges(finite)
        if len(edges) < 2 or any(b <= a for a, b in pairwise(edges)):
            raise InputError("the edges of age bands must rise", next_step="For example edges=(45, 55, 65, 75).")
        codes = np.where(np.isfinite(age), np.searchsorted(edges, age, side="right") - 1, -2)
        outside = np.isfinite(age) & ((codes < 0) | (codes >= len(edges) - 1))
        if outside.any():
            raise InputError("an age lies outside the given edges", next_step="Give edges that hold every age.")
        labels = [f"{_number(a)} to under {_number(b)}" for a, b in pairwise(edges)]
        widths = [b - a for a, b in pairwise(edges)]
        if (codes == -2).any():
            labels, widths = [*labels, MISSING], [*widths, edges[-1] - edges[0]]
            codes = np.where(codes == -2, len(labels) - 1, codes)
        name = label_text(self.name, "name")
        return Grouping(name, tuple(labels), codes.astype(np.int64), widths=tuple(widths))

    def _edges(self, ages: Floats) -> list[float]:
        try:
            edges = [] if self.edges is None else [float(e) for e in self.edges]
            width = 0.0 if self.width is None else float(self.width)
        except (TypeError, ValueError):
            raise InputError("age bands are given in years", next_step="For example AgeBands(age, width=10).") from None
        if any(not math.isfinite(e) or abs(e) > 1000 or round(e, 1) != e for e in edges):
            raise InputError(
                "the edges of age bands must be ages of at most one decimal place",
                next_step="For example edges=(45, 55, 65, 75).",
            )
        if self.edges is not None:
            return edges
        if not (math.isfinite(width) and 0 < width <= 1000) or round(width, 1) != width:
            raise InputError("the width of an age band must be above 0", next_step="Use 5 or 10.")
        low = math.floor(float(ages.min()) / width)
        high = math.floor(float(ages.max()) / width)
        if high - low > 1000:
            raise InputError("the age bands are too narrow", next_step="Use 5 or 10 years.")
        return [round(width * k, 1) for k in range(low, high + 2)]


def make_grouping(by: Any, roster: Roster, ages: Floats | None, structural: Sequence[str] = ()) -> Grouping:
    """One grouping from a column, `AgeBands`, or a crossing of several (a list, or a DataFrame's columns)."""
    if hasattr(by, "columns") and hasattr(by, "iloc"):
        by = [by.iloc[:, i] for i in range(by.shape[1])]
    if isinstance(by, Mapping):
        by = [_named(column, name) for name, column in by.items()]
    crossed = isinstance(by, list | tuple) and bool(by) and all(is_column(part) for part in by)
    groupings = [_one(part, roster, ages) for part in by] if crossed else [_one(by, roster, ages)]
    grouping = groupings[0] if len(groupings) == 1 else _cross(groupings)
    structural = () if structural is None else structural
    if not isinstance(structural, list | tuple | set | frozenset) or not all(isinstance(n, str) for n in structural):
        raise InputError("structural zeros are a list of group names", next_step="For example structural_zeros=['x'].")
    unknown = sorted(set(structural) - set(grouping.labels))
    if unknown:
        raise InputError(f"no group is called {unknown[0]!r}", next_step="Name groups as they are printed.")
    taken = {label for i, label in enumerate(grouping.labels) if (grouping.codes == i).any()}
    if set(structural) & taken:
        raise InputError("a group that is empty by definition has people in it")
    return Grouping(grouping.name, grouping.labels, grouping.codes, frozenset(structural), grouping.widths)


def fixed_grouping(by: Any, labels: Sequence[str], roster: Roster, ages: tuple[float, float]) -> Grouping:
    """Groups that are named beforehand, so that which there are tells nothing of the people: code −1 is none of them.

    by: a column, of which `labels` are the groups; or `AgeBands`, over `ages` where they have a width and no edges.
    """
    if isinstance(by, AgeBands):
        edges = by._edges(np.array(ages))
        age = roster.mean_by_person(by.ages)
        codes = np.searchsorted(edges, np.where(np.isfinite(age), age, -math.inf), side="right") - 1
        names = tuple(f"{_number(a)} to under {_number(b)}" for a, b in pairwise(edges))
        inside = np.where(codes < len(names), codes, -1).astype(np.int64)
        return Grouping(label_text(by.name, "name"), names, inside, widths=tuple(b - a for a, b in pairwise(edges)))
    names = tuple(label_text(label, "groups") for label in labels)
    if not names or len(set(names)) != len(names):
        raise InputError(
            "a noised table needs its groups named beforehand, each once: which there are would tell of people",
            next_step="For example groups=['F', 'M'].",
        )
    title = label_text(str(getattr(by, "name", None) or "group"), "name")
    people = roster.labels_by_person(printed_labels(by, title), title)
    index = {label: i for i, label in enumerate(names)}
    found, ends = np.array([index.get(label, -1) for label in people], dtype=np.int64), _label_ends(names)
    widths = None if ends is None or len(names) < 3 else tuple(high - low for low, high in ends)
    return Grouping(title, names, found, widths=widths)


def is_column(part: Any) -> bool:
    """Whether one member of a list of groups is itself a column (else the list is one column of labels)."""
    return isinstance(part, AgeBands) or (hasattr(part, "__len__") and not isinstance(part, str | bytes))


@dataclass(frozen=True)
class _Named:
    column: Any
    name: str

    def __len__(self) -> int:
        return len(self.column)


def _named(column: Any, name: object) -> _Named:
    return _Named(column, str(name))


def _one(by: Any, roster: Roster, ages: Floats | None) -> Grouping:
    if isinstance(by, AgeBands):
        return by.grouping(roster)
    column, name = (by.column, by.name) if isinstance(by, _Named) else (by, getattr(by, "name", None))
    title = str(name) if name is not None and str(name).strip() else "group"
    rows, labels, _ = group_labels(column, title)
    people = roster.labels_by_person(rows, title)
    index = {label: i for i, label in enumerate(labels)}
    codes = np.array([index[label] for label in people], dtype=np.int64)
    return Grouping(title, tuple(labels), codes, widths=_hidden_bands(codes, labels, ages))


def _hidden_bands(codes: Any, labels: Sequence[str], ages: Floats | None) -> tuple[float, ...] | None:
    """Widths where the groups are age bands under another name: at least three, each an interval of ages.

    A band is as wide as its reader sees it: by the ends that its label names where everybody in it fits them, and
    without end where it names one. Only bands that no label explains take a width from the ages, and then the first and
    the last are open: how old the oldest person is decides nothing (D-73).
    """
    n_groups = len(labels)
    if ages is None or n_groups < 3:
        return None
    spans = []
    for i in range(n_groups):
        mine = ages[(codes == i) & np.isfinite(ages)]
        if mine.size:
            spans.append((float(mine.min()), float(mine.max()), i))
    spans.sort()
    if len(spans) < 3 or any(a[1] >= b[0] for a, b in pairwise(spans)):
        return None
    ends = _label_ends(labels)
    if ends is not None and all(ends[i][0] <= low and high <= ends[i][1] for low, high, i in spans):
        return tuple(high - low for low, high in ends)
    widths = [OPEN_YEARS] * n_groups
    for (low, _, i), following in pairwise(spans[1:]):
        widths[i] = following[0] - low
    return tuple(widths)


def _label_ends(labels: Sequence[str]) -> list[tuple[float, float]] | None:
    """The half-open interval of ages that each label names; None where one names none.

    "60-64" followed by "65-69" ends under 65. "80+", "under 50" and "65 and over" are open at one side.
    """
    found: list[tuple[float, float]] = []
    for label in labels:
        numbers_in = [float(text) for text in _AGE.findall(label)]
        if len(numbers_in) == 2 and numbers_in[0] < numbers_in[1]:
            found.append((numbers_in[0], numbers_in[1]))
        elif len(numbers_in) == 1 and _UNDER.search(label):
            found.append((numbers_in[0] - OPEN_YEARS, numbers_in[0]))
        elif len(numbers_in) == 1 and _OVER.search(label):
            found.append((numbers_in[0], numbers_in[0] + OPEN_YEARS))
        else:
            return None
    lows = {low for low, _ in found}
    inclusive = any(high + 1 in lows for _, high in found) and not any(high in lows for _, high in found)
    return [(low, high + 1) if inclusive and high - low < OPEN_YEARS else (low, high) for low, high in found]


def _cross(groupings: Sequence[Grouping]) -> Grouping:
    size = math.prod(len(g) for g in groupings)
    if size > MAX_CELLS:
        raise InputError(f"the crossed table has more than {MAX_CELLS} cells", next_step="Use fewer, larger groups.")
    names = [g.name for g in groupings]
    if len(set(names)) != len(names):
        raise InputError("two of the crossed columns have the same name", next_step="Rename one of them.")
    labels, widths = [""], None
    codes = np.zeros_like(groupings[0].codes)
    for g in groupings:
        joined = [f"{left}{SEPARATOR if left else ''}{label}" for left in labels for label in g.labels]
        if g.widths is not None:
            spread = [w for _ in labels for w in g.widths]
            widths = (
                spread if widths is None else [min(a, b) for a, b in zip(_repeat(widths, len(g)), spread, strict=True)]
            )
        elif widths is not None:
            widths = _repeat(widths, len(g))
        codes = codes * len(g) + g.codes
        labels = joined
    if len(set(labels)) != len(labels):
        raise InputError("two crossed groups would be printed alike", next_step="Rename a group.")
    return Grouping(SEPARATOR.join(names), tuple(labels), codes, widths=None if widths is None else tuple(widths))


def _repeat(widths: Sequence[float], times: int) -> list[float]:
    return [w for w in widths for _ in range(times)]


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


__all__ = ["AgeBands", "make_grouping", "numbers"]
