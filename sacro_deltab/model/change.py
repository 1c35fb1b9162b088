"""How far rounding (or noise) can move a predicted age, from weights and public bounds alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .base import ModelInputError
from .linear import LinearForm, Model
from .weights import Weights


@dataclass(frozen=True)
class AgeChange:
    """How far two sets of weights can differ for anybody inside public bounds. `years` is an exact maximum over
    the box (features, confounds, ages); no person's data entered it."""

    years: float
    model: str
    feature_z: float
    age: tuple[float, float]


def max_age_change(
    before: Weights,
    after: Weights,
    *,
    centre: npt.ArrayLike,
    scale: npt.ArrayLike,
    feature_z: float,
    age: tuple[float, float],
    confound_bounds: npt.ArrayLike | None = None,
    model: Model | str = "simple",
) -> AgeChange:
    """Largest change of a predicted age (years) between two sets of weights, from weights and public bounds only.

    The box is ``|x - centre| <= feature_z * scale`` for every feature, ages in `age`, confounds in `confound_bounds`
    (K x 2). Both formulas are affine in features and confounds and quadratic in age, so the maximum is exact.

    Parameters
    ----------
    before, after
        Say, weights before and after rounding; same features in the same order.
    centre, scale
        Public centre and scale in raw units (length F).
    feature_z
        Clip in scale units, > 0.

    Returns
    -------
    AgeChange
        `years` >= 0.
    """
    if before.feature_names != after.feature_names or before.conf_names != after.conf_names:
        raise ModelInputError("The two sets of weights have different features or confounds.")
    one, two = before.folded(model, raw_units=True), after.folded(model, raw_units=True)
    c = np.asarray(centre, dtype=np.float64)
    s = np.asarray(scale, dtype=np.float64)
    coef = one.coef - two.coef
    # intercepts at the centre of the box, term by term: small coefficients do not drown in large raw offsets
    middle = (one.intercept - two.intercept) + float(coef @ c)
    reach = feature_z * float(np.abs(coef) @ s)
    if before.conf_names:
        if confound_bounds is None:
            raise ModelInputError("These weights use confounds.", next_step="Give confound_bounds (K x 2).")
        box = np.asarray(confound_bounds, dtype=np.float64).reshape(-1, 2)
        difference = one.conf_coef - two.conf_coef
        middle += float(difference @ box.mean(axis=1))
        reach += float(np.abs(difference) @ (box[:, 1] - box[:, 0])) / 2
    low, high = _poly_range(one, two, age)
    return AgeChange(max(middle + reach + high, -(middle - reach + low), 0.0), str(model), feature_z, age)


def _poly_range(one: LinearForm, two: LinearForm, age: tuple[float, float]) -> tuple[float, float]:
    """Least and greatest difference of the two age polynomials over the age range."""
    (a1, a2), (b1, b2) = one.poly, two.poly
    m, n = one.y_mean, two.y_mean
    quadratic = a2 - b2
    linear = (a1 - b1) - 2 * (a2 * m - b2 * n)
    constant = (a2 * m * m - b2 * n * n) - (a1 * m - b1 * n)
    points = [age[0], age[1]]
    if quadratic != 0.0 and age[0] < -linear / (2 * quadratic) < age[1]:
        points.append(-linear / (2 * quadratic))
    values = [constant + linear * a + quadratic * a * a for a in points]
    return min(values), max(values)
