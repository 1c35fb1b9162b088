"""Regressions of delta and differences between groups: estimates with intervals, N and degrees of freedom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ..base.errors import InputError
from ..measure.measure import carriers, computed, dof_check
from ..measure.numbers import Moment, Rows, Trace, products, sides
from ..measure.people import MISSING, Floats
from ..measure.terms import design, level_of, read_formula, terms_of
from ..outputs import Column, OutputDocument
from ..outputs.parameters import INTERCEPT
from ..rules.facts import Fact
from . import anew, documents
from .asked import column
from .kind import Inside, Kind, Made, Measured, Reading, headed

REGRESSION = "regression_table"
CONTRAST = "group_contrast"
LEVEL = 0.95  # of every interval
R_SQUARED = "R squared"
HEADS = (
    Column("term", "label"), Column("n", "n", "people"), Column("df", "n"), Column("estimate", "value"),
    Column("low_95", "value"), Column("high_95", "value"), Column("p", "p"),
)  # fmt: skip
_DEPENDENT = 1e-9  # of a column's length left after those before it


@dataclass(frozen=True)
class Fit:
    """Ordinary least squares with an intercept: one row a term, the intercept first."""

    terms: tuple[str, ...]
    estimates: Floats
    low: Floats
    high: Floats
    p: Floats
    n: int
    dof: int
    r_squared: float
    omitted: tuple[str, ...]  # terms that the ones before them give
    rarest: tuple[str, int]  # the term that rests on the fewest people, and how many
    residual_sd: float

    @property
    def rows(self) -> list[tuple[float | None, ...]]:
        """n, residual degrees of freedom, estimate, ends of the 95 % interval and p of each term; R² last."""
        columns = zip(self.estimates, self.low, self.high, self.p, strict=True)
        out: list[tuple[float | None, ...]] = [(self.n, self.dof, *(float(v) for v in row)) for row in columns]
        return [*out, (self.n, self.dof, self.r_squared, None, None, None)]


def least_squares(y: Floats, x: Floats, names: Sequence[str]) -> Fit:
    """Fit `y` on the columns of `x` (complete rows).

    Raises
    ------
    InputError
        Nothing is left to estimate: too few people, a constant outcome, an exact fit.
    """

    n = y.size
    spread = float(((y - y.mean()) ** 2).sum()) if n else 0.0
    if n < 3 or np.ptp(y) == 0:
        raise InputError(
            "the regression has no solution: too few people, or the values are all equal",
            next_step="Check who has every value that the regression needs.",
        )
    kept, omitted, design, back = _independent(x, names)
    dof = n - len(kept) - 1
    if dof < 1 or not kept:
        raise InputError(
            "the regression has no solution: too few people, or no term varies", next_step="Give fewer terms."
        )
    found, *_ = np.linalg.lstsq(design, y, rcond=None)
    residual = y - design @ found
    left = float(residual @ residual)
    errors = np.sqrt(np.diag(back @ np.linalg.inv(design.T @ design) @ back.T) * left / dof)
    if not (errors > 0).all() or left <= 1e-18 * spread:
        raise InputError(
            "the predictors give the values exactly: there is nothing to estimate",
            next_step="Drop the predictor that is a copy of the values.",
        )
    estimates = back @ found
    half = float(stats.t.ppf((1 + LEVEL) / 2, dof)) * errors
    people = {name: carriers(x[:, list(names).index(name)]) for name in kept}
    people["values"] = carriers(y)
    rarest = min(people, key=lambda name: people[name])
    return Fit(
        terms=(INTERCEPT, *kept),
        estimates=estimates,
        low=estimates - half,
        high=estimates + half,
        p=2 * stats.t.sf(np.abs(estimates / errors), dof),
        n=n,
        dof=dof,
        r_squared=1 - left / spread,
        omitted=omitted,
        rarest=(rarest, min(n, people[rarest])),
        residual_sd=float(np.sqrt(left / dof)),
    )


def _independent(x: Floats, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], Floats, Floats]:
    """(kept, omitted, standardised design, the way back to raw units): in the order given, what is new."""
    n = x.shape[0]
    basis = [np.full(n, 1 / np.sqrt(n))]
    kept: list[int] = []
    for j in range(x.shape[1]):
        column = x[:, j] - x[:, j].mean()
        length = float(np.linalg.norm(column))
        rest = column.copy()
        for _ in range(2):  # twice is enough (Kahan)
            for direction in basis:
                rest -= direction * (direction @ rest)
        size = float(np.linalg.norm(rest))
        if (
            length > 1e-12 * max(1.0, float(np.abs(x[:, j]).max(initial=0.0))) * np.sqrt(n)
            and size > _DEPENDENT * length
        ):
            kept.append(j)
            basis.append(rest / size)
    chosen = x[:, kept]
    centre, scale = (chosen.mean(axis=0), chosen.std(axis=0)) if kept else (np.zeros(0), np.zeros(0))
    design = np.column_stack([np.ones(n), (chosen - centre) / scale])
    back = np.diag(np.r_[1.0, 1.0 / scale])
    back[0, 1:] = -centre / scale
    left_out = tuple(names[j] for j in range(x.shape[1]) if j not in kept)
    return tuple(names[j] for j in kept), left_out, design, back


def make(
    inside: Inside,
    values: Any = None,
    predictors: Any = None,
    formula: str | None = None,
    data: Any = None,
    title: str = "Regression of delta",
    name: str | None = None,
) -> list[Made]:
    """Ordinary least squares with an intercept; categories as indicators against their commonest level."""
    said: dict[str, Any] = {}
    if formula is not None:
        values, terms = read_formula(formula, data)
        said["formula"] = " ".join(formula.split())
    elif predictors is None:
        raise InputError("nothing to regress on was given", next_step="Give predictors, or formula= and data=.")
    else:
        terms = terms_of(predictors)
    fit, columns, names, against = _fit(inside, values, terms)
    said |= inside.about(values, interval=LEVEL, against=dict(against), omitted=list(fit.omitted))
    own = inside.own(values=column(inside, values), terms=terms)
    return _estimates(inside, REGRESSION, name or "regression", title, [*fit.terms, R_SQUARED], fit.rows, fit,
                      (names, columns), said, own)  # fmt: skip


def contrast(
    inside: Inside,
    values: Any,
    group: Any,
    covariates: Any = None,
    title: str = "Difference in delta between groups",
    name: str | None = None,
) -> list[Made]:
    """Each group against the commonest one: adjusted difference with interval and p, and Cohen's d (the difference in
    residual SDs)."""
    own = terms_of(group)
    if len(own) != 1:
        raise InputError("one column of groups is needed", next_step="Cross two columns into one first.")
    terms = [(own[0][0], own[0][1], True), *([] if covariates is None else terms_of(covariates))]
    fit, columns, names, against = _fit(inside, values, terms)
    base = against[own[0][0]]
    rows: list[tuple[float | None, ...]] = []
    labels: list[str] = []
    for k, term in enumerate(fit.terms):
        if term.startswith(f"{own[0][0]}["):
            labels += [f"{term} minus {base}", f"{term} minus {base}: Cohen's d"]
            rows += [fit.rows[k], (fit.n, fit.dof, float(fit.estimates[k]) / fit.residual_sd, None, None, None)]
    if not rows:
        raise InputError("there is only one group", next_step="Give a column with at least two groups.")
    said = inside.about(values, interval=LEVEL, against=dict(against), adjusted_for=[t[0] for t in terms[1:]])
    stem = name or f"contrast_by_{own[0][0]}"
    made = inside.own(values=column(inside, values), terms=terms)
    return _estimates(inside, CONTRAST, stem, title, labels, rows, fit, (names, columns), said, made)


def _fit(
    inside: Inside, values: Any, terms: list[tuple[str, Any, bool]]
) -> tuple[Fit, Floats, tuple[str, ...], Mapping[str, str]]:
    people = column(inside, values)
    made = design(inside.roster(len(values)), terms)
    whole = np.isfinite(people) & np.isfinite(made.matrix).all(axis=1)
    fit = least_squares(people[whole], made.matrix[whole], made.names)
    columns = np.where(whole[:, None], np.column_stack([people, made.matrix]), np.nan)
    return fit, columns, made.names, made.against


def _estimates(
    inside: Inside,
    kind: str,
    stem: str,
    title: str,
    labels: Sequence[str],
    rows: Sequence[tuple[float | None, ...]],
    fit: Fit,
    columns: tuple[tuple[str, ...], Floats],
    said: dict[str, Any],
    own: dict[str, Fact],
) -> list[Made]:
    """`n` is the smallest number of people that any term rests on: of an indicator, those with the rarer value. A term
    that is 1 for a single person returns that person's value, whatever the degrees of freedom."""
    body = tuple((label, *row) for label, row in zip(labels, rows, strict=True))
    context = {key: value for key, value in said.items() if value not in ({}, [], None)}
    document = OutputDocument(documents.safe_name(stem), kind, title, HEADS, body, context)
    check = dof_check(fit.dof, int(inside.parameters["min_residual_dof"]))
    facts = own | computed(n=fit.rarest[1], residual_dof=fit.dof, acro__regression_check=check)
    names = ("delta", *columns[0])
    trace = Trace(document.name, kind, names, columns[1], (tuple(range(len(names))),))
    few = fit.rarest[1] < int(inside.parameters["min_n"])
    advice = (f"the term {fit.rarest[0]} rests on too few people: merge that category with another, or leave it out",)
    return [Made(document, facts, fit.rarest[1], trace=trace, advice=advice if few else ())]


def tells(trace: Trace, rows: Sequence[Rows]) -> Iterator[Moment]:
    """Coefficients, standard errors and R² together give every first and second moment; a coefficient of an indicator
    is a group's mean, and is read as one."""
    ((values, *predictors),) = trace.sets
    whole: Any = np.asarray(np.isfinite(trace.matrix).all(axis=1), dtype=np.bool_)
    for j in (values, *predictors):
        for name, people, _ in rows[j]:
            yield Moment(trace.output, _term(trace, j), (name,), np.flatnonzero(people & whole))
    for i, one in enumerate((values, *predictors)):
        for other in (values, *predictors)[i:]:
            yield from products(trace, _term(trace, other), rows[one], rows[other], whole)
    for j in predictors:
        for members in sides(trace.matrix[:, j], whole):
            label = _term(trace, j)
            for name, people, _ in rows[values]:
                told = members[people[members]]
                yield Moment(trace.output, label, (name,), told, shows_n=told.size == members.size)


def _term(trace: Trace, j: int) -> str:
    return INTERCEPT if j == trace.sets[0][0] else trace.labels[j]


def again(asked: Reading) -> Measured | None:
    """Least squares by a QR decomposition: other code than the session's."""

    names = [key for key in asked.keys if key not in (INTERCEPT, R_SQUARED)]
    columns = [_again_term(asked, name) for name in names]
    if not columns or any(one is None for one in columns):
        return None
    matrix = np.column_stack(columns)
    whole = np.isfinite(asked.deltas) & np.isfinite(matrix).all(axis=1)
    y, x = asked.deltas[whole], matrix[whole]
    n, dof = len(y), len(y) - len(names) - 1
    if dof <= 0:
        return None
    q, r = np.linalg.qr(np.column_stack([np.ones(n), x]))
    if float(np.abs(np.diag(r)).min()) == 0:
        return None
    b = np.linalg.solve(r, q.T @ y)
    residual = y - np.column_stack([np.ones(n), x]) @ b
    errors = np.sqrt(np.square(np.linalg.inv(r)).sum(axis=1) * float(residual @ residual) / dof)
    tails = 2 * stats.t.sf(np.abs(b / errors), dof)
    half = stats.t.ppf(0.975, dof) * errors
    found = Measured({"n": min(anew.carried(anew.known(one)) for one in (y, *x.T)), "residual_dof": dof})
    found.facts["acro.regression_check"] = anew.freedom(dof, asked.numbers)
    for name, value, around, tail in zip([INTERCEPT, *names], b, half, tails, strict=True):
        found.rows[name] = (n, dof, float(value), float(value - around), float(value + around), float(tail))
    spread = float(np.square(y - y.mean()).sum())
    found.rows[R_SQUARED] = (n, dof, 1 - float(residual @ residual) / spread, None, None, None)
    found.rows = {key: value for key, value in found.rows.items() if key in asked.keys}
    return found


def _again_term(asked: Reading, name: str) -> Any:
    """A column of numbers, or the indicator that a term such as `sex[M]` names; None where the file has neither."""
    found, level = asked.column(name), level_of(name)
    labels = None if found is not None or level is None else asked.labels(level[0])
    if labels is None or level is None:
        return found
    known = [label != MISSING for label in labels]
    return np.where(known, [float(label == level[1]) for label in labels], np.nan)


KINDS = (
    Kind(
        REGRESSION, "Least squares of delta: estimate, 95 % interval and p of each term, with N, df and R².",
        "result_rows", make, tells, again, headed("term", "n", "df", "estimate", "low_95", "high_95", "p"),
        of_deltas=True, says=("formula", "interval", "against", "omitted"),
    ),
    Kind(
        CONTRAST, "Each group against the largest: adjusted difference with interval and p, and Cohen's d.",
        "result_rows", contrast, tells, says=("interval", "against", "adjusted_for"),
    ),
)  # fmt: skip
