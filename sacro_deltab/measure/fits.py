"""The statistics of a results section on plain columns: least squares, contrasts, correlations, errors of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..base.errors import InputError
from .measure import carriers
from .people import Floats

LEVEL = 0.95  # of every interval
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
        terms=("(intercept)", *kept),
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


@dataclass(frozen=True)
class Correlated:
    """Pearson's r of one column with another over the people who have both."""

    n: int
    r: float
    low: float
    high: float
    p: float
    behind: int  # people that the number rests on


def correlate(y: Floats, x: Floats) -> Correlated | None:
    """r with Fisher's interval; None where it is not defined."""
    both = np.isfinite(y) & np.isfinite(x)
    a, b = y[both], x[both]
    n = int(both.sum())
    if n < 4 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    found = stats.pearsonr(a, b)
    r = float(found.statistic)
    half = float(stats.norm.ppf((1 + LEVEL) / 2)) / np.sqrt(n - 3)
    z = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
    ends = float(np.tanh(z - half)), float(np.tanh(z + half))
    return Correlated(n, r, *ends, float(found.pvalue), min(n, carriers(a), carriers(b)))


def false_discovery(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p-values."""
    order = np.argsort(p)[::-1]
    ranks = np.arange(p.size, 0, -1)
    out = np.empty(p.size)
    out[order] = np.minimum.accumulate(np.minimum(p[order] * p.size / ranks, 1.0))
    return out


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
