"""A results section: regressions, contrasts, many correlations in one table, errors of a model.

Each says its numbers to the attack as an association of the columns it rests on: a coefficient of an indicator is a
group's mean, and is read as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..measure.fits import LEVEL, Fit, correlate, false_discovery, least_squares, prediction_errors
from ..measure.measure import carriers, computed, dof_check
from ..measure.numbers import Trace
from ..measure.people import Floats
from ..measure.terms import design, read_formula, terms_of
from ..outputs import build
from ..outputs.document import Cell, Column, OutputDocument
from ..rules.facts import Part
from .common import about, build_facts
from .core import SessionCore
from .entries import Candidate
from .statistics import _matrix, _pairs_trace, _people

ESTIMATES = (
    Column("n", "n", "people"), Column("df", "n"), Column("estimate", "value"), Column("low_95", "value"),
    Column("high_95", "value"), Column("p", "p"),
)  # fmt: skip
CORRELATIONS = (
    Column("n", "n", "people"), Column("r", "value"), Column("low_95", "value"), Column("high_95", "value"),
    Column("p", "p"), Column("p_fdr", "p"),
)  # fmt: skip
ERRORS = (("MAE", "years"), ("RMSE", "years"), ("R squared", ""), ("correlation with age", ""), ("age slope", ""))


def regression_candidate(
    session: SessionCore,
    values: Any,
    predictors: Any,
    formula: str | None,
    data: Any,
    title: str,
    name: str | None,
) -> Candidate:
    """Ordinary least squares with an intercept; categories as indicators against their commonest level.

    `n` is the smallest number of people that any term rests on: of an indicator, those with the rarer value. A term
    that is 1 for a single person returns that person's value, whatever the degrees of freedom.
    """
    said: dict[str, Any] = {}
    if formula is not None:
        values, terms = read_formula(formula, data)
        said["formula"] = " ".join(formula.split())
    elif predictors is None:
        raise InputError("nothing to regress on was given", next_step="Give predictors, or formula= and data=.")
    else:
        terms = terms_of(predictors)
    fit, matrix, names, against = _fit(session, values, terms)
    said |= {"interval": LEVEL, "against": against, "omitted": list(fit.omitted)}
    labels = [*fit.terms, "R squared"]
    return _estimates(session, "regression_table", name or "regression", title, labels, fit.rows, fit,
                      (("delta", *names), matrix), said)  # fmt: skip


def contrast_candidate(
    session: SessionCore, values: Any, group: Any, covariates: Any, title: str, name: str | None
) -> Candidate:
    """Each group against the commonest one: adjusted difference with interval and p, and Cohen's d (the difference in
    residual SDs)."""
    own = terms_of(group)
    if len(own) != 1:
        raise InputError("one column of groups is needed", next_step="Cross two columns into one first.")
    terms = [(own[0][0], own[0][1], True), *([] if covariates is None else terms_of(covariates))]
    fit, matrix, names, against = _fit(session, values, terms)
    base = against[own[0][0]]
    rows: list[tuple[float | None, ...]] = []
    labels: list[str] = []
    for k, term in enumerate(fit.terms):
        if term.startswith(f"{own[0][0]}["):
            labels += [f"{term} minus {base}", f"{term} minus {base}: Cohen's d"]
            rows += [fit.rows[k], (fit.n, fit.dof, float(fit.estimates[k]) / fit.residual_sd, None, None, None)]
    if not rows:
        raise InputError("there is only one group", next_step="Give a column with at least two groups.")
    said = {"interval": LEVEL, "against": against, "adjusted_for": [t[0] for t in terms[1:]]}
    stem = name or f"contrast_by_{own[0][0]}"
    return _estimates(session, "group_contrast", stem, title, labels, rows, fit, (("delta", *names), matrix), said)


def _fit(session: SessionCore, values: Any, terms: list[tuple[str, Any, bool]]) -> tuple[Fit, Floats, Any, Any]:
    people = _people(session, values)
    made = design(session.state.roster(len(values)), terms)
    whole = np.isfinite(people) & np.isfinite(made.matrix).all(axis=1)
    fit = least_squares(people[whole], made.matrix[whole], made.names)
    columns = np.where(whole[:, None], np.column_stack([people, made.matrix]), np.nan)
    return fit, columns, made.names, dict(made.against)


def _estimates(
    session: SessionCore,
    kind: str,
    stem: str,
    title: str,
    labels: Sequence[str],
    rows: Sequence[tuple[float | None, ...]],
    fit: Fit,
    columns: tuple[tuple[str, ...], Floats],
    said: dict[str, Any],
) -> Candidate:
    body = tuple((label, *row) for label, row in zip(labels, rows, strict=True))
    context = about(session, **{key: value for key, value in said.items() if value not in ({}, [], None)})
    document = OutputDocument(build.safe_name(stem), kind, title, (Column("term", "label"), *ESTIMATES), body, context)
    least = int(session.ruleset.parameters["min_residual_dof"])
    facts = computed(n=fit.rarest[1], residual_dof=fit.dof, acro__regression_check=dof_check(fit.dof, least))
    trace = Trace(document.name, "regression", columns[0], columns[1], (tuple(range(len(columns[0]))),))
    few = fit.rarest[1] < int(session.ruleset.parameters["min_n"])
    advice = (f"the term {fit.rarest[0]} rests on too few people: merge that category with another, or leave it out",)
    return Candidate(document, build_facts(session, document, facts), n=fit.rarest[1], trace=trace,
                     advice=advice if few else ())  # fmt: skip


def correlations_candidate(session: SessionCore, values: Any, others: Any, title: str, name: str | None) -> Candidate:
    """Pearson's r of `values` with each column, with n, interval, p and Benjamini and Hochberg's p over the table."""
    people = _people(session, values)
    names, matrix = _matrix(session, others, None)
    found = [correlate(people, column) for column in matrix.T]
    bad = next((label for label, one in zip(names, found, strict=True) if one is None), None)
    if bad is not None:
        raise InputError(
            f"no correlation with {bad!r}: too few people, or one column is constant", next_step="Leave it out."
        )
    good = [one for one in found if one is not None]
    adjusted = false_discovery(np.array([one.p for one in good]))
    rows: list[tuple[Cell, ...]] = [
        (label, one.n, one.r, one.low, one.high, one.p, float(q))
        for label, one, q in zip(names, good, adjusted, strict=True)
    ]
    context = about(session, interval=LEVEL, adjusted=f"Benjamini-Hochberg over {len(rows)} correlations")
    heads = (Column("variable", "label"), *CORRELATIONS)
    document = OutputDocument(
        build.safe_name(name or "correlations"), "correlation_table", title, heads, tuple(rows), context
    )
    few, dof = min(one.behind for one in good), min(one.n for one in good) - 2
    least = int(session.ruleset.parameters["min_residual_dof"])
    facts = computed(n=few, residual_dof=dof, acro__regression_check=dof_check(dof, least))
    pairs = [
        np.where((np.isfinite(people) & np.isfinite(column))[:, None], np.column_stack([people, column]), np.nan)
        for column in matrix.T
    ]
    trace = _pairs_trace(document.name, names, pairs)
    return Candidate(document, build_facts(session, document, facts), n=few, trace=trace)


def errors_candidate(
    session: SessionCore, predicted: Any, age: Any, validated: str, title: str, name: str | None
) -> Candidate:
    """MAE, RMSE, R², correlation and age slope of predicted ages; `validated` says on whom they were predicted."""
    found = _people(session, predicted)
    ages = _people(session, age)
    errors = prediction_errors(found, ages)
    if errors is None:
        raise InputError("these predictions have no error to speak of: too few people, or all ages are equal")
    both = np.isfinite(found) & np.isfinite(ages)
    size = np.where(both, np.abs(found - ages), np.nan)
    numbers = (errors.mae, errors.rmse, errors.r_squared, errors.r, errors.slope)
    rows = tuple((label, errors.n, value) for (label, _), value in zip(ERRORS, numbers, strict=True))
    heads = (Column("statistic", "label"), Column("n", "n", "people"), Column("value", "value"))
    document = OutputDocument(
        build.safe_name(name or "prediction_error"), "prediction_error", title, heads, rows,
        about(session, validated=validated),
    )  # fmt: skip
    few = min(errors.n, carriers(found[both]), carriers(ages[both]), carriers(size[both]))
    parts = tuple(Part("row", str(row[0]), {}, float(row[2])) for row in rows)
    # The absolute error is told of the same people as the squared one, which the moments of these two columns give.
    matrix = np.where(both[:, None], np.column_stack([found, ages]), np.nan)
    trace = Trace(document.name, "regression", ("predicted age", "age"), matrix, ((0, 1),))
    return Candidate(document, build_facts(session, document, computed(n=few), parts), n=few, trace=trace)
