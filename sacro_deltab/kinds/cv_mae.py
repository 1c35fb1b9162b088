"""Cross-validated mean absolute error of predicted age: each person by a model of the other folds' people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..measure.measure import carriers, computed
from ..measure.numbers import Moment, Rows, Trace
from ..model.validation import out_of_fold, validated_by
from ..rules.facts import Part
from .asked import column, matrix
from .documents import safe_name, scalar
from .kind import Inside, Kind, Made, called
from .regressions import tells as moments_of

CV_MAE = "cv_mae"
LABEL = "cross-validated MAE"


def make(
    inside: Inside,
    X: Any,
    age: Any,
    n_components: int = 10,
    folds: int = 10,
    title: str = "Cross-validated error of predicted age",
    name: str | None = None,
) -> list[Made]:
    """Mean |predicted − true age| in years, over people with an age and every feature.

    All visits of a person are one person here, so nobody stands in two folds; which fold somebody is in is fixed.
    """
    names, features = matrix(inside, X)
    ages = column(inside, age)
    mine = np.flatnonzero(np.isfinite(ages) & np.isfinite(features).all(axis=1))
    predicted = np.full(ages.size, np.nan)
    predicted[mine] = out_of_fold(features[mine], ages[mine], n_components=n_components, folds=folds)[0]
    error = np.abs(predicted - ages)
    value, few = float(error[mine].mean()), carriers(error[mine])
    document = scalar(
        CV_MAE, safe_name(name or CV_MAE), title, LABEL, value, unit="years",
        about=inside.about(validated=validated_by(folds), n_components=n_components),
    )  # fmt: skip
    known = np.where(np.isfinite(error)[:, None], np.column_stack([predicted, ages, error]), np.nan)
    trace = Trace(document.name, CV_MAE, ("predicted age", "age", LABEL), known, ((0, 1),))
    facts = computed(n=few, value=value) | inside.own(columns=(["age", *names], np.column_stack([ages, features])))
    return [Made(document, facts, few, (Part("row", LABEL, {}, value),), trace=trace)]


def tells(trace: Trace, rows: Sequence[Rows]) -> Iterator[Moment]:
    """The sum of the absolute errors, read as if the reader had the moments of ages and predictions too: no linear row
    says how they hang together."""
    for name, people, shifted in rows[2]:
        yield Moment(trace.output, LABEL, (name,), np.flatnonzero(people), digits=True, shifted=shifted)
    yield from moments_of(trace, rows)


KINDS = (
    Kind(
        CV_MAE, "Mean absolute error of predicted age in years, each person by a model of the others' folds.",
        "one_row", make, tells, reads=called(LABEL.lower()),
    ),
)  # fmt: skip
