"""BrainAgeDelta: brain age and brain-age delta by linear regression on components (Smith et al. 2019).

    x_norm = (x - x_mean) / x_std                    population SD
    x_d    = x_norm - confounds . conf_beta          confounds as given, not centred
    scores = (x_d - mean) . components'              PCA by an exact solver, or x_d itself without components
    u      = age - y_mean,   q = u^2 - ysq_mean - ysq_slope u     (q is orthogonal to u and to 1)

    simple               d1 = scores b1 - u                   b1 = pinv(scores) u
    unbiased             d1 - u b2                            b2 = pinv(u) d1
    unbiased_quadratic   d1 - [u q] b2sq                      b2sq = pinv([u q]) d1
    alternate            (scores - u gamma) pinv(gamma)       gamma = pinv(u) scores
    alternate_quadratic  (scores - [u q] gammasq) pinv(gammasq[0])

q uses the training set's ysq_mean and ysq_slope, so a person's delta is the same alone and in any batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .algebra import (
    AgeTerms,
    Components,
    Solution,
    Solver,
    age_terms,
    choose_components,
    condition_word,
    least_squares,
    spectrum,
    wanted_components,
)
from .base import Array, ModelInputError, one_blas_thread
from .linear import Model
from .weights import Weights


class BrainAgeDelta(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Scikit-learn estimator of brain age; `predict` is the simple model's brain age in years.

    Parameters
    ----------
    n_components
        J, number of components (1 <= J <= min(N - 1, F)); a float in (0, 1]: the smallest J whose components hold this
        share of the variance; "kaiser_guttman": eigenvalues above 1; None fits on the features themselves.
    kaiser_guttman
        True is another way to say n_components="kaiser_guttman"; a number in `n_components` wins, and `repairs_`
        says so.
    svd_solver
        "svd" (full), "eigh" (of the smaller Gram matrix) or "auto"; all are exact and repeatable.

    Attributes
    ----------
    b1_, b2_, b2sq_, gamma_, gammasq_, components_, x_mean_, x_std_, y_mean_, ysq_mean_, ysq_slope_, conf_beta_,
    explained_variance_, n_features_in_, feature_names_in_
        As in the module docstring; shapes as in `Weights`. `components_`, `explained_variance_` and `conf_beta_`
        are None where the fit has none. `feature_names_in_` exists where X had string column names.
    n_components_
        J used (F without components).
    rank_, condition_number_, used_condition_number_, conditioning_
        Rank used by the fit; condition number of the scores before and after dropping dependent directions;
        `ok`, `review` (above 1e6) or `refuse` (above 1e8) of the former.
    confound_names_
        Column names of the confounds, where they came as a data frame; then enforced when predicting.
    repairs_
        Tuple of sentences: every repair the fit made (constant columns, dependent columns, ...). Inside only.

    Raises
    ------
    ModelInputError
        (an InputError and a ValueError) all ages equal, F > N without a reduction, J out of range.

    Notes
    -----
    No minimum N: rules judge, not the estimator. Smith et al. 2019, NeuroImage 200:528.
    """

    def __init__(
        self,
        n_components: Components = None,
        *,
        kaiser_guttman: bool = False,
        svd_solver: Solver = "auto",
    ) -> None:
        self.n_components = n_components
        self.kaiser_guttman = kaiser_guttman
        self.svd_solver = svd_solver

    # --- fitting -------------------------------------------------------------------------------------------------

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, confounds: npt.ArrayLike | None = None) -> BrainAgeDelta:
        """Fit on N people: X (N x F, raw units), y ages in years, confounds (N x K) or None."""
        x, ages = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        names = list(getattr(self, "feature_names_in_", ()))
        if len(set(names)) < len(names):
            raise ModelInputError("Two features have the same name.", next_step="Rename or drop one of them.")
        ages = np.asarray(ages, dtype=np.float64)
        conf = _confounds(confounds, x.shape[0])
        columns = getattr(confounds, "columns", ())
        self.confound_names_ = tuple(str(c) for c in columns)
        if float(ages.max()) == float(ages.min()):
            raise ModelInputError("All ages are equal: there is nothing to learn.", next_step="Check the age column.")
        if x.shape[1] > x.shape[0] and self._choice is None:
            raise ModelInputError(
                "More features than people, and no reduction is asked for.",
                next_step="Set n_components.",
            )
        with one_blas_thread():
            self._fit(np.asarray(x), ages, conf)
        return self

    @property
    def _choice(self) -> Components:
        if self.n_components is None and self.kaiser_guttman is True:
            return "kaiser_guttman"
        if self.kaiser_guttman not in (True, False):
            raise ModelInputError("kaiser_guttman must be True or False.", next_step="Or use n_components.")
        return self.n_components

    def __sklearn_tags__(self) -> Any:
        """A few components of made-up data need not predict well: scikit-learn's checks ask that of no such model."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._choice is not None
        return tags

    def _fit(self, x: Array, y: Array, conf: Array | None) -> None:
        self.repairs_: tuple[str, ...] = ()
        z = self._standardise(x)
        self.conf_beta_: Array | None = None
        if conf is not None:
            solved = least_squares(conf, z)
            if solved.rank < conf.shape[1]:
                self._repair("Dependent confounds: the minimum-norm solution was used.")
            self.conf_beta_ = solved.coef
            z = z - conf @ self.conf_beta_
        scores = self._reduce(z)
        terms = age_terms(y)
        if not terms.has_square:
            self._repair("Ages take two values only: the quadratic terms were set to zero.")
        self.y_mean_, self.ysq_mean_, self.ysq_slope_ = terms.y_mean, terms.ysq_mean, terms.ysq_slope
        solved = least_squares(scores, terms.u)
        self._judge(solved, scores.shape[1])
        self.b1_ = solved.coef
        self._age_regressions(scores, terms)

    def _standardise(self, x: Array) -> Array:
        self.x_mean_ = x.mean(axis=0)
        z = x - self.x_mean_
        self.x_std_ = np.sqrt(np.einsum("ij,ij->j", z, z) / x.shape[0])
        low, high = x.min(axis=0), x.max(axis=0)
        constant = (high - low <= 8 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))) | (self.x_std_ == 0)
        if constant.any():
            self._repair(f"{int(constant.sum())} constant feature column(s): scale 1 and weight 0.")
            self.x_std_[constant] = 1.0
            z[:, constant] = 0.0
        z /= self.x_std_
        return np.asarray(z)

    def _reduce(self, z: Array) -> Array:
        self.components_: Array | None = None
        self.explained_variance_: Array | None = None
        self.score_mean_: Array | None = None
        if self._choice is None:
            return z
        if self.kaiser_guttman and self.n_components is not None:
            self._repair("n_components was given, so Kaiser and Guttman's criterion was not asked.")
        n, f = z.shape
        mean = z.mean(axis=0) if self.conf_beta_ is not None else None
        centred = z if mean is None else z - mean
        self.components_, self.explained_variance_ = self._pick(centred, n, f)
        if mean is not None:
            self.score_mean_ = self.components_ @ mean
        return np.asarray(centred @ self.components_.T)

    def _pick(self, centred: Array, n: int, f: int) -> tuple[Array, Array]:
        limit = min(n - 1, f)
        wanted = wanted_components(self._choice, limit)
        components, variances = spectrum(centred, wanted, self.svd_solver)
        if wanted is None:
            wanted = min(choose_components(variances, self._choice), limit)
        real = int((variances > RANK_VARIANCE * variances[0]).sum())
        if real < wanted:
            self._repair("Fewer independent directions than components asked for: the empty ones were left out.")
        wanted = max(1, min(wanted, real))
        return components[:wanted].copy(), variances[:wanted].copy()

    def _judge(self, solved: Solution, columns: int) -> None:
        self.n_components_ = columns
        self.rank_ = solved.rank
        self.condition_number_, self.used_condition_number_ = solved.condition, solved.used_condition
        self.conditioning_ = condition_word(solved.condition)
        if solved.rank < columns:
            self._repair("Dependent feature columns: the minimum-norm solution was used.")

    def _age_regressions(self, scores: Array, terms: AgeTerms) -> None:
        u, q = terms.u, terms.q
        uu, qq = float(u @ u), float(q @ q)
        d1 = scores @ self.b1_ - u
        b2 = float(u @ d1) / uu
        gamma = (u @ scores) / uu
        square = float(q @ d1) / qq if terms.has_square else 0.0
        gamma_square = (q @ scores) / qq if terms.has_square else np.zeros_like(gamma)
        self.b2_ = np.array([b2])
        self.b2sq_ = np.array([b2, square])
        self.gamma_ = gamma[None, :]
        self.gammasq_ = np.vstack([gamma, gamma_square])

    def _repair(self, sentence: str) -> None:
        self.repairs_ = (*self.repairs_, sentence)

    # --- using ---------------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Weights:
        """The fitted numbers as frozen `Weights` (names `feature_1`, ... where the fit saw none)."""
        check_is_fitted(self, "b1_")
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"feature_{i + 1}" for i in range(self.n_features_in_)]
        return Weights(
            feature_names=tuple(str(n) for n in names),
            x_mean=self.x_mean_,
            x_std=self.x_std_,
            b1=self.b1_,
            y_mean=self.y_mean_,
            components=self.components_,
            b2=self.b2_,
            b2sq=self.b2sq_,
            gamma=self.gamma_,
            gammasq=self.gammasq_,
            ysq_mean=self.ysq_mean_,
            ysq_slope=self.ysq_slope_,
            score_mean=self.score_mean_,
            conf_names=self.confound_names_,
            conf_beta=self.conf_beta_,
            explained_variance=self.explained_variance_,
        )

    def predict(self, X: npt.ArrayLike, confounds: npt.ArrayLike | None = None) -> Array:
        """Brain age by the simple model, in years; needs no age, so pipelines and cross-validation work."""
        return self.weights_.predict_age(self._x(X), confounds=confounds)

    def predict_age(
        self,
        X: npt.ArrayLike,
        age: npt.ArrayLike | None = None,
        confounds: npt.ArrayLike | None = None,
        model: Model | str = "simple",
    ) -> Array:
        """Brain age (age + delta) in years. Every model but the simple one needs the true ages."""
        return self.weights_.predict_age(self._x(X), age, confounds, model)

    def score(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        confounds: npt.ArrayLike | None = None,
    ) -> float:
        """R² of the predicted brain age; `confounds` as in `fit` (metadata routing passes them on)."""
        return float(r2_score(y, self.predict(X, confounds), sample_weight=sample_weight))

    def delta(
        self,
        X: npt.ArrayLike,
        age: npt.ArrayLike,
        confounds: npt.ArrayLike | None = None,
        model: Model | str = "unbiased_quadratic",
    ) -> Array:
        """Delta of each person in years, the same alone and in any batch."""
        return self.weights_.delta(self._x(X), age, confounds, model)

    def _x(self, X: npt.ArrayLike) -> Array:
        """Checked features; scikit-learn compares names and their order and refuses others."""
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))


RANK_VARIANCE = 1e-20  # a component with less than this share of the first one's variance is rounding error


def _confounds(confounds: npt.ArrayLike | None, rows: int) -> Array | None:
    if confounds is None:
        return None
    out = check_array(confounds, dtype=np.float64, ensure_2d=False)
    out = out.reshape(-1, 1) if out.ndim == 1 else out
    if out.shape[0] != rows:
        raise ModelInputError("Features and confounds have different numbers of rows.")
    return np.asarray(out)
