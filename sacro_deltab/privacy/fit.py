"""From noisy moments to the parameters of all five models. Post-processing only: nothing here sees a person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.weights import Weights
from .basis import Basis
from .blocks import Array
from .bounds import PublicBounds
from .moments import NoisyMoments, Scaling

_VAR_FLOOR = 0.02  # of t in [−1, 1]: a cohort of ages within ±14 % of the public range
_SQUARE_FLOOR = 0.004  # of the part of t² that t does not explain; 4/45 for uniform ages
_LEAST_SHRINK = 0.15
_SKEW = 0.5  # of t units: slope of the squared distance from the mean age on age, in skewed cohorts
_EIGEN_FLOOR = 0.05  # of the Gram of scores that are white in public people
_LEFT_FLOOR = 0.02  # of what age leaves of that Gram: public people whose age is known to 98 % at most


@dataclass(frozen=True)
class AgeMoments:
    """Moments of t in [−1, 1]: mean, variance, slope of (t − mean)² on t, variance of what is left of it."""

    mean: float
    var: float
    slope: float
    square_var: float


@dataclass(frozen=True)
class PublicFit:
    """Scores on age in the public people of a basis, in t units: slope per white score, mean and variance of t.

    What age leaves of their scores (`left`, J × J) is taken to be the same in a cohort; how scores and ages vary
    together is the cohort's own. That is milder than taking their whole Gram: a cohort of other ages has another.
    """

    slope: Array
    mean: float
    var: float

    @classmethod
    def of_basis(cls, basis: Basis, size: int, scaling: Scaling) -> PublicFit:
        """From the first `size` components; scores are white in public people, so b1 is their covariance with age."""
        half = scaling.age_half
        return cls(
            basis.age_b1[:size] / basis.age_sd**2 * half,
            (basis.age_mean - scaling.age_mid) / half,
            (basis.age_sd / half) ** 2,
        )

    @property
    def left(self) -> Array:
        """Gram of white scores without what age explains."""
        return psd(np.eye(self.slope.size) - self.var * np.outer(self.slope, self.slope), _LEFT_FLOOR)


@dataclass(frozen=True)
class Axes:
    """Where scores come from: z = (x − centre)/scale, score = components·z, white score = score/score_sd.

    public: what is known of age and scores in the public people; with it a fit shrinks to them, else to zero.
    """

    feature_names: tuple[str, ...]
    centre: Array
    scale: Array
    components: Array
    score_sd: Array
    conf_names: tuple[str, ...] = ()
    conf_centre: Array | None = None
    conf_scale: Array | None = None
    public: PublicFit | None = None


def age_moments(n: float, t: float, q: float, tq: float, qq: float) -> AgeMoments:
    """Age moments from noisy sums of t, q = 2t² − 1, tq and q²; floored to what a cohort can have."""
    mean = float(np.clip(t / n, -1, 1))
    q_mean = float(np.clip(q / n, -1, 1))
    var = max((q_mean + 1) / 2 - mean * mean, _VAR_FLOOR)
    cross = (tq / n - mean * q_mean) / 2  # cov(t, t²)
    square = (qq / n - q_mean * q_mean) / 4  # var(t²)
    slope = float(np.clip((cross - 2 * mean * var) / var, -2, 2))
    left = square - 4 * mean * cross + 4 * mean * mean * var - slope * slope * var
    return AgeMoments(mean, var, slope, max(left, _SQUARE_FLOOR))


def settled_age(
    age: AgeMoments, n: float, sd: Mapping[str, float], mean: float, var: float
) -> tuple[AgeMoments, float]:
    """Mean and spread of ages drawn to those of the public people as far as their noise explains the gap; and the error
    of the variance.

    With few people the noise of a variance is as large as the variance, and everything is divided by it.
    """
    own_mean = mean + (age.mean - mean) * weight(math.sqrt(var), sd["t"] / n)
    sd_var = math.hypot(sd["q"] / n / 2, 2 * age.mean * sd["t"] / n)
    own_var = max(var + (age.var - var) * weight(var, sd_var), min(var / 4, max(var / 100, sd_var)))
    sd_slope = (sd["tq"] / n / 2 + 2 * abs(age.mean) * sd_var) / own_var
    slope = age.slope * weight(_SKEW, sd_slope)
    usual = own_var * own_var  # between that of even ages (0.8) and that of a normal curve (2)
    sd_square = sd["qq"] / n / 4 + 2 * abs(age.mean) * sd["tq"] / n
    square = usual + (age.square_var - usual) * weight(usual, sd_square)
    kept = weight(var, sd_var)
    error = math.hypot(kept * sd_var, (1 - kept) * var)
    return AgeMoments(own_mean, own_var, slope, max(square, usual / 2)), error


def weight(tau: Any, sigma: float) -> Any:
    """Share of its own that an estimate with error σ keeps where truths lie τ (one, or one each) around public ones."""
    return tau * tau / (tau * tau + sigma * sigma)


def james_stein(vector: Array, noise_variance: float, *, spare: int = 0, least: float = 0.0) -> Array:
    """Positive-part James-Stein shrinkage to zero of a vector whose entries carry noise of this variance."""
    square = float(vector @ vector)
    if square <= 0:
        return vector
    return np.asarray(vector * max(least, 1 - max(vector.size - spare, 1) * noise_variance / square))


def shrunk_gram(gram: Array, noise_variance: float, target: Array) -> Array:
    """Noisy Gram of white scores, shrunk towards a public one as far as the noise explains the gap between them.

    The weight is 1 − E‖noise‖²/‖Gram − target‖², at least 0; then the eigenvalues are floored (positive semidefinite).
    """
    size = gram.shape[0]
    gap = gram - target
    noise = noise_variance * (size + size * (size - 1) / 2)  # off-diagonal entries carry half the variance, twice
    weight = max(0.0, 1 - noise / max(float((gap * gap).sum()), 1e-300))
    return psd(target + weight * gap, _EIGEN_FLOOR)


def psd(matrix: Array, floor: float = 0.0) -> Array:
    """Nearest symmetric matrix with eigenvalues of at least `floor`."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def fit_moments(moments: NoisyMoments, axes: Axes, *, white: bool = True) -> Weights:
    """All five models from one release.

    white: the scores are white in public people, so that a public Gram stands in for one that was not released and is
    what a released one shrinks to: the identity, or with `axes.public` what age leaves of it plus the cohort's own.
    """
    v, n, sd = moments.values, moments.n, moments.sd
    age = age_moments(n, float(v["t"]), float(v["q"]), float(v["tq"]), float(v["qq"]))
    u_mean, q_mean = v["u"] / n, float(np.clip(float(v["q"]) / n, -1, 1))
    cov_t = v["ut"] / n - u_mean * age.mean
    cov_sq = (v["uq"] / n - u_mean * q_mean) / 2
    noise_t = (sd["ut"] / n) ** 2 + (sd["u"] / n * age.mean) ** 2
    if white:
        gram = _gram(moments, axes.public, u_mean, _shrunk(cov_t, noise_t, age, axes.public), age)
    else:
        gram = psd(v["uu"] / n - np.outer(u_mean, u_mean), _EIGEN_FLOOR)
    beta, conf_mean = None, None
    if moments.scaling.confounds:
        beta, conf_mean, cov_t, cov_sq, gram = _deconfound(moments, u_mean, age, q_mean, cov_t, cov_sq, gram)
        u_mean = u_mean - conf_mean @ beta
    cov_q = cov_sq - (2 * age.mean + age.slope) * cov_t
    noise_q = ((sd["uq"] / n) ** 2 + (sd["u"] / n * q_mean) ** 2) / 4 + (2 * age.mean + age.slope) ** 2 * noise_t
    if axes.public is not None:
        here = axes.public.slope * (age.mean - axes.public.mean)  # mean scores of public people of the cohort's age
        u_mean = here + james_stein(u_mean - here, (sd["u"] / n) ** 2)
    shrunk = _shrunk(cov_t, noise_t, age, axes.public)
    b: Array = np.asarray(np.linalg.solve(gram, shrunk), dtype=np.float64)
    gamma = shrunk / age.var
    if axes.public is not None:  # what makes deltas unbiased is not shrunk: along b it is the cohort's own
        gamma = gamma + b * (float(b @ (cov_t - shrunk)) / max(float(b @ b), 1e-300) / age.var)
    curve = shrink_along(cov_q / age.square_var, b, noise_q / age.square_var**2)
    return finish(moments, axes, age, b, gamma, curve, u_mean, beta)


def _shrunk(cov_t: Array, noise: float, age: AgeMoments, public: PublicFit | None) -> Array:
    """cov(u, t) with the stretch that noise gives it taken back: towards the public people's, else towards zero.

    Shrinking to zero changes no direction: deltas keep theirs, predicted ages lose the stretch. Never to nothing:
    where noise explains it all, the direction is the best guess there is. With public people their slopes are.
    """
    if public is None:
        return james_stein(cov_t, noise, least=_LEAST_SHRINK)
    target = public.slope * age.var
    return np.asarray(target + james_stein(cov_t - target, noise))


def _gram(moments: NoisyMoments, public: PublicFit | None, u_mean: Array, cov_t: Array, age: AgeMoments) -> Array:
    """Gram of white scores: public, shrunk to where it was released."""
    target = np.eye(u_mean.size)
    if public is not None:
        target = public.left + np.outer(cov_t, cov_t) / age.var
    if "uu" not in moments.values:
        return target
    n = moments.n
    raw = moments.values["uu"] / n - np.outer(u_mean, u_mean)
    return shrunk_gram(raw, (moments.sd["uu"] / n) ** 2, target)


def shrink_along(vector: Array, direction: Array, noise_variance: float) -> Array:
    """James-Stein in two parts: the coordinate along `direction`, which is all the models use, and the rest."""
    length = float(np.sqrt(direction @ direction))
    if length == 0:
        return james_stein(vector, noise_variance)
    unit = direction / length
    along = float(vector @ unit)
    rest = vector - along * unit
    kept = along * max(0.0, 1 - noise_variance / max(along * along, 1e-300))
    return np.asarray(kept * unit + james_stein(rest, noise_variance, spare=1))


def _deconfound(
    moments: NoisyMoments, u_mean: Array, age: AgeMoments, q_mean: float, cov_t: Array, cov_sq: Array, gram: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Regress confounds (with an intercept) out of the scores, as far as noise lets their covariance be inverted."""
    v, n, sd = moments.values, moments.n, moments.sd
    c_mean = np.clip(v["c"] / n, -1, 1)
    noise = sd["cc"] / n
    cov_c = psd(v["cc"] / n - np.outer(c_mean, c_mean), 0.0) + max(2 * noise, 1e-3) * np.eye(c_mean.size)
    cov_cu = v["cu"] / n - np.outer(c_mean, u_mean)
    beta: Array = np.asarray(np.linalg.solve(cov_c, cov_cu), dtype=np.float64)
    cov_t = cov_t - beta.T @ (v["ct"] / n - c_mean * age.mean)
    cov_sq = cov_sq - beta.T @ (v["cq"] / n - c_mean * q_mean) / 2
    gram = psd(gram - beta.T @ cov_c @ beta, _EIGEN_FLOOR)
    return beta, c_mean, cov_t, cov_sq, gram


def finish(
    moments: NoisyMoments,
    axes: Axes,
    age: AgeMoments,
    b: Array,
    gamma: Array,
    curve: Array,
    score_mean: Array,
    beta: Array | None,
) -> Weights:
    """Weights in years and feature units, mutually consistent: b2 = b1·gamma − 1 and b2sq₂ = b1·gammasq₂ exactly.

    b, gamma, curve: per white score, in t units: age on scores, scores on age, scores on the orthogonal square.
    """
    scaling = moments.scaling
    return _in_years(axes, scaling.age_mid, scaling.age_half, age, b, gamma, curve, score_mean, beta)


def _in_years(
    axes: Axes,
    middle: float,
    half: float,
    age: AgeMoments,
    b: Array,
    gamma: Array,
    curve: Array,
    score_mean: Array,
    beta: Array | None,
) -> Weights:
    """Weights in years and raw scores, of coefficients of scaled ages and white scores."""
    sd = axes.score_sd
    b1 = b * half / sd
    gamma_years = gamma / half * sd
    curve_years = curve / half**2 * sd
    b2 = float(b1 @ gamma_years) - 1
    return Weights(
        feature_names=axes.feature_names,
        x_mean=axes.centre,
        x_std=axes.scale,
        components=axes.components,
        b1=b1,
        y_mean=middle + half * age.mean,
        b2=np.array([b2]),
        b2sq=np.array([b2, float(b1 @ curve_years)]),
        gamma=gamma_years[None, :],
        gammasq=np.stack([gamma_years, curve_years]),
        ysq_mean=half**2 * age.var,
        ysq_slope=half * age.slope,
        score_mean=score_mean * sd,
        conf_names=axes.conf_names,
        conf_beta=None if beta is None else (beta * sd) @ axes.components,
        conf_centre=axes.conf_centre,
        conf_scale=axes.conf_scale,
    )


def finish_weights(
    axes: Axes,
    bounds: PublicBounds,
    age: AgeMoments,
    b: Array,
    linear: float,
    square: float,
    *,
    offset: float,
    by_conf: Array,
    conf_mean: Array,
) -> Weights:
    """Weights from b (t per white score) and the two slopes of its residual on age, which fix everything else.

    b2 = b1·gamma − 1 leaves gamma free across b1; with white scores its least-squares completion is along b1, and the
    same holds for the curve, the confound slopes and the offset (as a mean score).
    """
    length = float(b @ b)
    along = b / length if length > 0 else np.zeros_like(b)
    return _in_years(
        axes,
        bounds.age_mid,
        bounds.age_half,
        age,
        b,
        (1 + linear) * along,
        square * along,
        -(offset + float(conf_mean @ by_conf)) * along,
        None if by_conf.size == 0 else np.outer(by_conf, along),
    )
