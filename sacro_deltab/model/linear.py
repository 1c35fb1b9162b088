"""The formula that every model is, and the checks of what is put into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .base import Array, ModelInputError

Model = Literal["simple", "unbiased", "unbiased_quadratic", "alternate", "alternate_quadratic"]
MODELS: tuple[str, ...] = get_args(Model)


@dataclass(frozen=True)
class LinearForm:
    """One model as a formula: ``intercept + coef.x + conf_coef.c + poly[0] + poly[1] u + poly[2] u^2``.

    `coef` is per standardised feature, or per raw feature unit after `Weights.folded(raw_units=True)`;
    `conf_coef` per raw confound unit; `poly` in years per power of ``u = age - y_mean`` (years).
    With ``target="age"`` the value is the predicted (brain) age, with ``"delta"`` the delta; both in years.
    """

    intercept: float
    coef: Array
    conf_coef: Array
    poly: tuple[float, float]
    y_mean: float
    target: Literal["age", "delta"]


def default_confound_names(k: int) -> tuple[str, ...]:
    """Names of confounds that came without any: `confound_1`, ...; these are not enforced."""
    return tuple(f"confound_{i + 1}" for i in range(k))


def row_pinv(row: Array) -> Array:
    """Pseudo-inverse of one row vector (F-vector); zero for a zero row."""
    square = float(row @ row)
    return np.zeros_like(row) if square == 0.0 else np.asarray(row / square)


def polynomial(form: LinearForm, u: Array) -> Array:
    return np.asarray(form.poly[0] * u + form.poly[1] * (u * u))


def matrix(values: npt.ArrayLike, columns: int, what: str) -> Array:
    try:
        out = np.ascontiguousarray(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ModelInputError(f"The {what} are not all numbers.") from error
    if out.ndim == 1 and columns == 1 and what == "confounds":
        out = out.reshape(-1, 1)
    if out.ndim != 2 or out.shape[1] != columns:
        raise ModelInputError(
            f"The {what} are not a table of {columns} column(s), which the model knows.",
            next_step="Give the columns the model was fitted on, in that order.",
        )
    if not np.isfinite(out).all():
        raise ModelInputError(f"The {what} hold NaN or infinity.", next_step="Impute or drop before predicting.")
    return out


def ages_of(age: npt.ArrayLike, rows: int) -> Array:
    out = np.asarray(age, dtype=np.float64).ravel()
    if out.shape[0] != rows:
        raise ModelInputError("Ages and features have different numbers of rows.")
    if not np.isfinite(out).all():
        raise ModelInputError("The ages hold NaN or infinity.")
    return out


def check_names(X: Any, names: tuple[str, ...], what: str) -> None:
    columns = getattr(X, "columns", None)
    if columns is None:
        return
    got = tuple(str(c) for c in columns)
    if got == names or (what == "confound" and names == default_confound_names(len(names))):
        return
    missing = [n for n in names if n not in set(got)]
    extra = [n for n in got if n not in set(names)]
    detail = "in another order" if not missing and not extra else f"{len(missing)} missing, {len(extra)} unknown"
    first = f" (first: {(missing + extra)[0]!r})" if missing or extra else ""
    raise ModelInputError(
        f"The {what} columns are not those of the model: {detail}{first}.",
        next_step="Select the model's columns, in their order.",
    )
