"""Cross-validation: each person's brain age and delta by a model of the other folds' people."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InputError
from .base import Array

if TYPE_CHECKING:
    from .algebra import Components

FOLDS = 10
IN_SAMPLE = "in-sample"


def validated_by(folds: int) -> str:
    """How a model was validated, in the words that are printed."""
    return f"{folds}-fold cross-validation"


def enough(people: int, folds: int = FOLDS) -> bool:
    """Whether so many people can be held out in folds: fewer are no validation."""
    return folds >= 2 and people >= 3 * folds


def out_of_fold(
    X: Array,
    age: Array,
    confounds: Array | None = None,
    *,
    people: Sequence[object] | None = None,
    n_components: Components = 10,
    folds: int = FOLDS,
    model: str = "unbiased_quadratic",
) -> tuple[Array, Array]:
    """(predicted age, delta) of each row, by models fitted to the other folds' people only.

    All rows of a person (`people`, one a row) stand in one fold; the folds are the same for everybody who asks the
    same. The correction for age bias is that of the other folds too.

    Raises
    ------
    InputError
        Too few people for so many folds.
    """
    from .brain_age import BrainAgeDelta  # late: brings scikit-learn

    codes = np.arange(len(age)) if people is None else np.unique(np.asarray(people), return_inverse=True)[1]
    n = int(codes.max(initial=-1)) + 1
    if not enough(n, folds):
        raise InputError("too few people with an age and every feature", next_step="Ask for fewer folds.")
    fold = (np.random.default_rng(0).permutation(n) % folds)[codes]
    predicted = np.full(len(age), np.nan)
    deltas = predicted.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(folds):
            train, test = fold != k, fold == k
            here, there = (None, None) if confounds is None else (confounds[train], confounds[test])
            size = n_components
            if isinstance(size, int):
                size = max(1, min(size, X.shape[1], int(train.sum()) - 1))
            fitted = BrainAgeDelta(size).fit(X[train], age[train], here)
            predicted[test] = fitted.predict(X[test], there)
            deltas[test] = fitted.delta(X[test], age[test], there, model=model)
    return predicted, deltas
