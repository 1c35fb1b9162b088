"""Quantiles of delta: by linear interpolation, over everybody with a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..base.findings import Effect, Finding, note
from ..measure.measure import computed, count, summary_facts
from ..measure.numbers import Moment, Rows, Trace
from ..outputs import OutputDocument
from ..rules.facts import Part
from . import anew, documents
from .kind import STEP, Inside, Kind, Made, Measured, Reading, headed

QUANTILES = "delta_quantiles"
CUSTOMARY = (5, 25, 50, 75, 95)  # asked for where nobody says which


def make(
    inside: Inside,
    values: Any,
    percents: Sequence[float] = CUSTOMARY,
    title: str = "Quantiles of delta",
    name: str | None = None,
) -> list[Made]:
    """Quantiles of delta (linear interpolation), in years."""
    people = inside.deltas_of(values)
    finite = people[np.isfinite(people)]
    try:
        asked = sorted({float(p) for p in percents})
    except (TypeError, ValueError):
        asked = []
    if not asked or any(not 0 <= p <= 100 for p in asked):
        raise InputError("percentiles must lie between 0 and 100", next_step="For example (5, 25, 50, 75, 95).")
    if not finite.size:
        raise InputError("nobody has a value", next_step="Check the column of values.")
    least = int(inside.parameters["min_n"])
    # The customary ones of few people go to the rules, which block them with a record that says so.
    if len(asked) > len(CUSTOMARY) and len(asked) * least > finite.size + least and finite.size > least:
        raise InputError(
            "so many quantiles of so few people are nearly the people themselves",
            next_step="Ask for at most one quantile for each group of the minimum size.",
        )
    labels = [documents.percent_label(p) for p in asked]
    found = [float(v) for v in np.percentile(finite, asked)]
    document = documents.vector(
        QUANTILES, documents.safe_name(name or QUANTILES), title, labels, found,
        label_column="percentile", value_column="delta", unit="years", about=inside.about(values),
    )  # fmt: skip
    parts = tuple(
        Part("quantile", label, computed(quantile__percent=percent), value)
        for label, percent, value in zip(labels, asked, found, strict=True)
    )
    facts = summary_facts(people, inside.parameters) | inside.model_origin(values)
    facts |= inside.own(values=people)
    inside.variable(people)  # refuses copies in other units or with some people's changed
    trace = Trace(document.name, QUANTILES, ("delta",), people[:, None].copy(), percents=tuple(asked))
    return [Made(document, facts, count(people), parts, trace=trace)]


def tells(trace: Trace, rows: Sequence[Rows]) -> Iterator[Moment]:
    """Bounds on the values of their people: they cannot be subtracted, and near sets go to a person."""
    mine = np.flatnonzero(np.isfinite(trace.matrix[:, 0]))
    for name, *_ in rows[0]:
        yield Moment(trace.output, "quantiles", (name,), mine, exact=False)


def again(asked: Reading) -> Measured:
    """The same percentiles of the cohort's deltas."""
    column = anew.known(asked.deltas)
    found = Measured(anew.summary(asked.deltas, asked.numbers))
    for key in asked.keys if len(column) else ():
        percent = _percent(key)
        if percent is not None:
            found.parts[key] = {"quantile.percent": percent}
            found.rows[key] = (anew.quantile(column, percent),)
    return found


def _percent(key: str) -> float | None:
    try:
        percent = float(key)
    except ValueError:
        return None
    return percent if 0 <= percent <= 100 else None


def doubts(document: OutputDocument, n: int | None, least: int) -> Iterator[Finding]:
    """Quantiles that fall, are no percentages, or are nearly the people themselves."""
    percents = [_percent(str(row[0])) for row in document.rows]
    known = sorted(p for p in percents if p is not None)
    pairs = sorted(
        (p, float(row[1]))
        for p, row in zip(percents, document.rows, strict=True)
        if p is not None and len(row) > 1 and isinstance(row[1], int | float)
    )
    if any(b[1] < a[1] for a, b in pairwise(pairs)):
        yield note("impossible-value", Effect.BLOCK, "A higher quantile is smaller than a lower one.", next_step=STEP)
    if len(pairs) > 1 and pairs[0][1] == pairs[-1][1] != 0:
        what = "All quantiles are one number, which is then the value of nearly everybody."
        yield note("impossible-value", Effect.BLOCK, what, next_step=STEP)
    if n is None:
        return
    if None in percents:
        name = str(document.rows[percents.index(None)][0])
        yield note("quantile-name", Effect.BLOCK, f"A quantile is called {name[:40]!r}, not a percentage.")
    elif len(percents) * least > n + least:
        yield note(
            "too-many-quantiles",
            Effect.BLOCK,
            f"{len(percents)} quantiles of {n} people are nearly the people themselves.",
            next_step="Release at most one quantile for each group of the minimum size.",
        )
    elif any((b - a) * n < 100 * least for a, b in pairwise(known)):
        yield note(
            "close-quantiles",
            Effect.REVIEW,
            "Two quantiles are so close that few people lie between them.",
            asks=("Do neighbouring quantiles enclose fewer than the minimum number of people?",),
        )


KINDS = (
    Kind(
        QUANTILES, "Percentiles of delta in years. At most one for each group of the minimum size; no extremes.",
        "vector", make, tells, again, headed("percentile", "delta"), part="quantile", of_deltas=True,
        doubts=doubts,
    ),
)  # fmt: skip
