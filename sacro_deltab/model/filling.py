"""What becomes of values that cannot be used as they are, on either path of `run`, and the fit that stays inside."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ..base.errors import InputError
from ..cohort import Cohort, Repair
from ..cohort.people import Fill

DEFAULT_COMPONENTS = 10


def fit_deltas(cohort: Cohort, n_components: int | None, model: str) -> Any:
    """Deltas of a model without noise, fitted to the cohort with medians for missing values (inside only)."""
    return fitted_deltas(cohort, {"n_components": n_components}, model, "median")[0]


def fitted_deltas(cohort: Cohort, choice: Mapping[str, Any], model: str, fill: Fill) -> tuple[Any, tuple[Repair, ...]]:
    """Deltas of everybody (NaN for people left out) and the repairs made for the fit."""
    from .brain_age import BrainAgeDelta  # late: brings scikit-learn

    whole = cohort.filled(fill)
    n_components = _components(choice, whole.X.shape[1])
    most = max(1, min(whole.X.shape[0] - 1, whole.X.shape[1]))
    if isinstance(n_components, int) and n_components > most:
        raise InputError(
            f"{n_components} components cannot come from this many people and features",
            place="--n-components",
            next_step="Choose fewer components than people and no more than features, or leave it out.",
        )
    fitted = BrainAgeDelta(n_components=min(DEFAULT_COMPONENTS, most) if n_components is None else n_components)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(whole.X, whole.age, confounds=whole.confounds)
        found = fitted.delta(whole.X, whole.age, whole.confounds, model=model)
    deltas = np.full(cohort.n_rows, np.nan)
    deltas[_complete(cohort) if fill == "drop" else slice(None)] = found
    deltas[~np.isfinite(cohort.X).any(axis=1)] = np.nan  # imputed throughout is no value
    return deltas, whole.repairs[len(cohort.repairs) :]


FOLDS = 10
_LEAST = 3 * FOLDS  # people below whom folds are no validation


def cross_validated_ages(cohort: Cohort, choice: Mapping[str, Any], fill: Fill) -> Any:
    """Age of each row predicted by the model of the other nine tenths of the people; None for very few people.

    All rows of a person stand in one fold; the folds are the same for everybody who asks the same.
    """
    from .brain_age import BrainAgeDelta  # late: brings scikit-learn

    whole = cohort.filled(fill)
    names = whole.person_ids or tuple(str(i) for i in range(whole.n_rows))
    people = sorted(set(names))
    if len(people) < _LEAST:
        return None
    order = np.random.default_rng(0).permutation(len(people))
    fold_of = {person: int(order[k]) % FOLDS for k, person in enumerate(people)}
    folds = np.array([fold_of[name] for name in names])
    n_components = _components(choice, whole.X.shape[1])
    least = min(int((folds != k).sum()) for k in range(FOLDS)) - 1
    most = max(1, min(least, whole.X.shape[1]))
    if n_components is None or (isinstance(n_components, int) and n_components > most):
        n_components = min(DEFAULT_COMPONENTS if n_components is None else n_components, most)
    found = np.full(whole.n_rows, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(FOLDS):
            train, test = folds != k, folds == k
            confounds = whole.confounds
            model = BrainAgeDelta(n_components).fit(
                whole.X[train], whole.age[train], None if confounds is None else confounds[train]
            )
            found[test] = model.predict(whole.X[test], None if confounds is None else confounds[test])
    out = np.full(cohort.n_rows, np.nan)
    out[_complete(cohort) if fill == "drop" else slice(None)] = found
    return out


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
