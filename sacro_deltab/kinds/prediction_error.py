"""Errors of predicted age: MAE, RMSE, R², correlation and age slope, over the people with both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..measure.measure import carriers, computed
from ..measure.numbers import Trace
from ..measure.people import Floats
from ..outputs import Column, OutputDocument
from ..rules.facts import Part
from . import anew, documents
from .asked import both, column
from .kind import Inside, Kind, Made, Measured, Reading, headed
from .regressions import tells

ERRORS = "prediction_error"
LABELS = ("MAE", "RMSE", "R squared", "correlation with age", "age slope")
HEADS = (Column("statistic", "label"), Column("n", "n", "people"), Column("value", "value"))


@dataclass(frozen=True)
class Errors:
    """How well ages were predicted, over the people with both."""

    n: int
    mae: float
    rmse: float
    r_squared: float
    r: float
    slope: float  # of the error (predicted minus true age) on age: 0 for no age bias


def prediction_errors(predicted: Floats, age: Floats) -> Errors | None:
    """MAE, RMSE, R², correlation and age slope of the error; None where ages or predictions do not vary."""
    both = np.isfinite(predicted) & np.isfinite(age)
    found, true = predicted[both], age[both]
    n = int(both.sum())
    if n < 4 or np.ptp(true) == 0 or np.ptp(found) == 0:
        return None
    error, u = found - true, true - true.mean()
    return Errors(
        n,
        float(np.abs(error).mean()),
        float(np.sqrt((error**2).mean())),
        1 - float(error @ error) / float(u @ u),
        float(np.corrcoef(found, true)[0, 1]),
        float(u @ error) / float(u @ u),
    )


def make(
    inside: Inside,
    predicted: Any,
    age: Any,
    validated: str = "in-sample",
    title: str = "Error of predicted age",
    name: str | None = None,
) -> list[Made]:
    """MAE, RMSE, R², correlation and age slope of predicted ages; `validated` says on whom they were predicted."""
    found, ages = column(inside, predicted), column(inside, age)
    errors = prediction_errors(found, ages)
    if errors is None:
        raise InputError("these predictions have no error to speak of: too few people, or all ages are equal")
    values = (errors.mae, errors.rmse, errors.r_squared, errors.r, errors.slope)
    numbers = dict(zip(LABELS, values, strict=True))
    rows = tuple((label, errors.n, value) for label, value in numbers.items())
    context = inside.about(validated=validated)
    document = OutputDocument(documents.safe_name(name or ERRORS), ERRORS, title, HEADS, rows, context)
    known = both(found, ages)
    mine = known[np.isfinite(known[:, 0])]
    few = min(errors.n, carriers(mine[:, 0]), carriers(mine[:, 1]), carriers(np.abs(mine[:, 0] - mine[:, 1])))
    parts = tuple(Part("row", label, {}, value) for label, value in numbers.items())
    # The absolute error is told of the same people as the squared one, which the moments of these two columns give.
    trace = Trace(document.name, ERRORS, ("predicted age", "age"), known, ((0, 1),))
    own = inside.own(values=found - ages, columns=(["age"], ages[:, None]))
    return [Made(document, own | computed(n=few), few, parts, trace=trace)]


def again(asked: Reading) -> Measured | None:
    """The same sums by other code: one pass of products, no correlation routine."""
    predicted, ages = asked.prediction(), asked.ages
    if predicted is None or ages is None:
        return None
    whole = np.isfinite(predicted) & np.isfinite(ages) & asked.members
    p, a = predicted[whole], ages[whole]
    n, error = len(p), p - a
    centred = np.stack([p, a, error]) - np.stack([p, a, error]).mean(axis=1, keepdims=True)
    (pp, pa, _), (_, aa, ae), _ = centred @ centred.T
    squares = float(error @ error)
    if not pp or not aa:
        return None
    numbers = (np.abs(error).sum() / n, (squares / n) ** 0.5, 1 - squares / aa, pa / (pp * aa) ** 0.5, ae / aa)
    found = Measured({"n": min(anew.carried(anew.known(one)) for one in (p, a, np.abs(error)))}, proposed=True)
    for key, value in zip(LABELS, numbers, strict=True):
        found.rows[key] = (n, float(value))
    return found


KINDS = (
    Kind(
        ERRORS, "MAE, RMSE, R², correlation and age slope of predicted ages, and on whom the model was validated.",
        "result_rows", make, tells, again, reads=headed("statistic", "n", "value"),
    ),
)  # fmt: skip
