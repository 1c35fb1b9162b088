"""Mean and SD of every feature (IDP), over the people who have a value for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..measure.measure import feature_facts, statistic_of
from ..measure.numbers import Moment, Rows, Trace
from . import anew, documents
from .asked import matrix
from .kind import Inside, Kind, Made, Measured, Reading, headed

FEATURES = "idp_summary"


def make(
    inside: Inside,
    X: Any,
    feature_names: Sequence[str] | None = None,
    title: str = "Mean and SD per IDP",
    name: str | None = None,
) -> list[Made]:
    """Mean and SD of every feature over the cohort."""
    names, columns = matrix(inside, X, feature_names)
    finite = [column[np.isfinite(column)] for column in columns.T]
    rows = [[statistic_of(column, "mean"), statistic_of(column, "sd")] for column in finite]
    document = documents.matrix(
        FEATURES, documents.safe_name(name or FEATURES), title, names, [("mean", ""), ("sd", "")], rows,
        about=inside.about(),
    )  # fmt: skip
    facts = feature_facts(columns) | inside.own(columns=(names, columns))
    return [Made(document, facts, int(facts["n"].value), trace=Trace(document.name, FEATURES, tuple(names), columns))]


def tells(trace: Trace, rows: Sequence[Rows]) -> Iterator[Moment]:
    """The sum and the sum of squares of every column, over the people who have a value."""
    for label, columns in zip(trace.labels, rows, strict=True):
        for name, people, shifted in columns:
            members = np.flatnonzero(people)
            yield Moment(trace.output, label, (name,), members, digits=True, shifted=shifted)
            yield Moment(trace.output, label, (name, name), members, digits=True)


def again(asked: Reading) -> Measured | None:
    """The same of the cohort's columns."""
    columns = asked.matrix(asked.keys)
    if columns is None or asked.noised:
        return None
    rows: dict[str, tuple[float | None, ...]] = {}
    if [column.name for column in asked.raw.columns[1:]] == ["mean", "sd"]:
        for name, column in zip(asked.keys, columns.T, strict=True):
            known = anew.known(column)
            rows[name] = (anew.statistic(known, "mean"), anew.statistic(known, "sd"))
    return Measured(anew.features(columns), {}, rows)


KINDS = (
    Kind(
        FEATURES, "Mean and SD of each IDP over the people who have it, to significant figures.",
        "feature_rows", make, tells, again, headed("feature", "mean", "sd"), of_columns=True, earlier="features",
    ),
)  # fmt: skip
