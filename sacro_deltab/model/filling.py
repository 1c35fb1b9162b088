"""What becomes of values that cannot be used as they are, on either path of `run`, and the fit that stays inside."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..base.errors import InputError
from ..cohort import Cohort, Repair
from ..cohort.people import Fill, have_values
from .validation import FOLDS, IN_SAMPLE, enough, out_of_fold, validated_by

DEFAULT_COMPONENTS = 10


@dataclass(frozen=True)
class Fitted:
    """Deltas of everybody by a model without noise (NaN for people left out), inside only, and how they were made."""

    deltas: Any
    predicted: Any
    validated: str
    n_components: int | None  # None where it was read off the data
    repairs: tuple[Repair, ...]


def fitted_deltas(
    cohort: Cohort,
    choice: Mapping[str, Any],
    model: str,
    fill: Fill,
    *,
    in_sample: bool = False,
    train: Any = None,
    share: float = 0.0,
) -> Fitted:
    """Cross-validated deltas and predicted ages; in-sample where asked, and for too few people to hold any out.

    train: (rows,) bool, those that the model is fitted to; everybody else is held out anyway. None for all. share: of
    the features, which a person needs to have a delta.
    """
    from .brain_age import BrainAgeDelta  # late: brings scikit-learn

    whole = cohort.filled(fill)
    kept = _complete(cohort) if fill == "drop" else slice(None)
    mine = np.ones(whole.n_rows, dtype=bool) if train is None else np.asarray(train)[kept]
    part = whole.take(mine)
    size = _components(choice, whole.X.shape[1])
    most = max(1, min(part.n_rows - 1, whole.X.shape[1]))
    if isinstance(size, int) and size > most:
        raise InputError(
            f"{size} components cannot come from this many people and features",
            place="--n-components",
            next_step="Choose fewer components than people and no more than features, or leave it out.",
        )
    size = min(DEFAULT_COMPONENTS, most) if size is None else size
    in_sample = in_sample or not enough(part.n_people)
    ages, found = np.full(whole.n_rows, np.nan), np.full(whole.n_rows, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if in_sample or train is not None:
            fitted = BrainAgeDelta(n_components=size).fit(part.X, part.age, confounds=part.confounds)
            ages = fitted.predict(whole.X, whole.confounds)
            found = fitted.delta(whole.X, whole.age, whole.confounds, model=model)
        if not in_sample:
            ages[mine], found[mine] = out_of_fold(
                part.X, part.age, part.confounds, people=part.person_ids, n_components=size, model=model
            )
    predicted, deltas = np.full(cohort.n_rows, np.nan), np.full(cohort.n_rows, np.nan)
    predicted[kept], deltas[kept] = ages, found
    deltas[~have_values(cohort.X, share)] = np.nan
    fixed = size if isinstance(size, int) else None
    validated = IN_SAMPLE if in_sample else validated_by(FOLDS)
    return Fitted(deltas, predicted, validated, fixed, whole.repairs[len(cohort.repairs) :])


def given_deltas(cohort: Cohort, path: object) -> tuple[Any, Any]:
    """(deltas, predicted ages or None) of a file made elsewhere, in the cohort's order.

    Raises
    ------
    InputError
        The file has no column of deltas.
    """
    names = [name.lower() for name in cohort.feature_names]
    if "delta" not in names and len(names) != 1:
        raise InputError(
            "there is no column of deltas", path=path, next_step="Give one value a person in a column called delta."
        )
    deltas = cohort.X[:, names.index("delta") if "delta" in names else 0]
    predicted = cohort.X[:, names.index("predicted_age")] if "predicted_age" in names else None
    return deltas, predicted


def _components(choice: Mapping[str, Any], n_features: int) -> int | float | Literal["kaiser_guttman"] | None:
    """Upstream's four ways to choose J as the estimator's one: a number, a share of the features or of the variance,
    Kaiser and Guttman's criterion."""
    if choice.get("feature_proportion") is not None:
        return max(1, int(choice["feature_proportion"] * n_features + 1e-9))
    if choice.get("feature_variance") is not None:
        return float(choice["feature_variance"])
    if choice.get("kaiser_guttman"):
        return "kaiser_guttman"
    number: int | None = choice.get("n_components")
    return number


def _complete(cohort: Cohort) -> Any:
    whole = np.isfinite(cohort.X).all(axis=1)
    return whole if cohort.confounds is None else whole & np.isfinite(cohort.confounds).all(axis=1)


def public_constants(told: Mapping[str, Any], public: Any, matrix: Any, ages: Any) -> list[Repair]:
    """What a private training did to values that it could not use as they are: public constants and clips.

    `told` are the bounds of its statement, `public` the basis or bounds that hold centre and scale.
    """

    with np.errstate(all="ignore"):
        far = np.abs((matrix - np.asarray(public.centre)) / np.asarray(public.scale)) > told["feature_z"]
    low, high = told["age"]
    counted = (
        ("missing_features", "Missing values became the public centre.", ~np.isfinite(matrix)),
        ("clipped_features", "Features beyond the public clip count as the clip.", far & np.isfinite(matrix)),
        ("clipped_ages", "Ages outside the public range count as its nearest end.", (ages < low) | (ages > high)),
    )
    return [Repair(kind, text, int(where.sum())) for kind, text, where in counted if where.any()]
