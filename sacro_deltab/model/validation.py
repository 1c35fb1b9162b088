"""k-fold validation from moments alone: one pass over the people, then one small fit per fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .base import Array, ModelInputError
from .moments import Moments
from .weights import Weights


@dataclass(frozen=True)
class FoldScore:
    """The simple model on the people it was not trained on. Inside only."""

    rmse: float  # years
    correlation: float  # of predicted and true age


def score_from_moments(weights: Weights, held_out: Moments) -> FoldScore:
    """Score of weights on people known only by their moments (same features and confounds)."""
    if weights.feature_names != held_out.feature_names or len(weights.conf_names) != len(held_out.conf_names):
        raise ModelInputError("Weights and moments have different features or confounds.")
    predicted, age = _age_vectors(weights, held_out)
    m, n = held_out.matrix, float(held_out.n)
    if n < 2:
        raise ModelInputError("A fold needs at least two people.")
    error = predicted - age
    centred = m - np.outer(m[0], m[0]) / n
    variance = float(predicted @ centred @ predicted) * float(age @ centred @ age)
    correlation = float(predicted @ centred @ age) / np.sqrt(variance) if variance > 0 else 0.0
    return FoldScore(float(np.sqrt(max(float(error @ m @ error), 0.0) / n)), float(correlation))


def _age_vectors(weights: Weights, moments: Moments) -> tuple[Array, Array]:
    """a and b with predicted age = z.a and age = z.b, for z of `moments`."""
    form = weights.folded("simple", raw_units=True)
    f, k = len(moments.feature_names), len(moments.conf_names)
    predicted, age = np.zeros(moments.size), np.zeros(moments.size)
    predicted[0] = form.intercept + float(form.coef @ moments.x_centre)
    predicted[1 + k : 1 + k + f] = form.coef * moments.x_scale
    if k:
        predicted[0] += float(form.conf_coef @ moments.conf_centre)
        predicted[1 : 1 + k] = form.conf_coef * moments.conf_scale
    age[0], age[-2] = moments.age_centre, moments.age_scale
    return predicted, age


def cross_validate(folds: Sequence[Moments], n_components: int | None = None) -> tuple[FoldScore, ...]:
    """Score of every fold by the fit on all the others.

    Parameters
    ----------
    folds
        Moments of disjoint groups of people (of one person's scans all in one fold), at least two.
    """
    if len(folds) < 2:
        raise ModelInputError("Cross-validation needs at least two folds.")
    everybody = folds[0].copy()
    for fold in folds[1:]:
        everybody.merge(fold)
    return tuple(score_from_moments((everybody - fold).fit(n_components), fold) for fold in folds)
