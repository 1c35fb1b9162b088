"""From the second-moment matrix to the weights: the algebra of `BrainAgeDelta` with people already summed out.

Every derived variable is z.a for a vector a computed from M, every inner product is a'Mb. Rank decisions are made on
Gram matrices, whose rounding squares the condition number: dependent columns need components here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg

from .algebra import CONDITION_REVIEW, Components, choose_components, fix_signs, wanted_components
from .base import Array, ModelInputError
from .weights import Weights

_RANK = 1e-13  # eigenvalues of a Gram matrix below this share of the largest are rounding
_CONSTANT = 1e-14  # variance below this share of the mean square: the column is constant


class Sums(Protocol):
    """What a fit reads of `Moments`: the scaled second moments and what they were scaled by."""

    @property
    def feature_names(self) -> tuple[str, ...]: ...
    @property
    def conf_names(self) -> tuple[str, ...]: ...
    @property
    def matrix(self) -> Array: ...
    @property
    def age_centre(self) -> float: ...
    @property
    def age_scale(self) -> float: ...
    @property
    def x_centre(self) -> Array: ...
    @property
    def x_scale(self) -> Array: ...
    @property
    def conf_centre(self) -> Array: ...
    @property
    def conf_scale(self) -> Array: ...


@dataclass(frozen=True)
class MomentsFit:
    """Weights with what the fit noticed."""

    weights: Weights
    repairs: tuple[str, ...]
    condition: float


@dataclass(frozen=True)
class _Parts:
    """Inner products of centred, standardised quantities. u = age - y_mean in years."""

    n: float
    x_mean: Array  # raw units
    x_std: Array
    gram: Array  # Z'Z, F x F
    xu: Array  # Z'u
    xq: Array  # Z'q, q the orthogonal quadratic regressor
    cc: Array  # C'C, raw confounds, K x K
    cz: Array  # C'Z, K x F
    c_mean: Array
    cu: Array
    cq: Array
    uu: float
    qq: float
    y_mean: float
    ysq_mean: float
    ysq_slope: float
    repairs: tuple[str, ...]


def _parts(moments: Sums) -> _Parts:
    f, k = len(moments.feature_names), len(moments.conf_names)
    m = moments.matrix
    n = float(m[0, 0])
    if n < 1.5:
        raise ModelInputError("Moments of fewer than two people cannot be fitted.")
    mean = m[0] / n
    cov = m - n * np.outer(mean, mean)  # centred inner products of the scaled z
    X, C = slice(1 + k, 1 + k + f), slice(1, 1 + k)
    repairs: tuple[str, ...] = ()
    spread = np.sqrt(np.maximum(cov.diagonal()[X], 0.0) / n)
    constant = spread**2 <= _CONSTANT * (m.diagonal()[X] / n)
    if constant.any():
        repairs = (f"{int(constant.sum())} constant feature column(s): scale 1 and weight 0.",)
    safe = np.where(constant, 1.0, spread)
    live = np.where(constant, 0.0, 1.0)
    weight = live / safe
    s = moments.age_scale
    uu, y_mean = float(cov[-2, -2]) * s * s, moments.age_centre + s * float(mean[-2])
    if not uu > 1e-14 * n * s * s * (1 + float(mean[-2]) ** 2):
        raise ModelInputError("All ages are equal: there is nothing to learn.", next_step="Check the age column.")
    # (age - y_mean)^2 = s^2 (u2 - 2 t u + t^2) with t = mean u: linear in z, so its products are rows of cov
    square = s * s * (cov[-1] - 2.0 * float(mean[-2]) * cov[-2])
    su = s * float(square[-2])
    ss = s * s * float(square[-1] - 2.0 * float(mean[-2]) * square[-2])
    slope = su / uu
    qrow = square - slope * s * cov[-2]
    qq = ss - slope * su
    has_square = qq > 1e-12 * ss
    if not has_square:
        repairs += ("Ages take two values only: the quadratic terms were set to zero.",)
    cs, cc0 = moments.conf_scale, moments.conf_centre
    c_mean = cc0 + cs * mean[C]
    cov_c = cov[C, C] * np.outer(cs, cs)
    return _Parts(
        n=n,
        x_mean=moments.x_centre + moments.x_scale * mean[X],
        x_std=np.where(constant, 1.0, spread * moments.x_scale),
        gram=cov[X, X] * np.outer(weight, weight),
        xu=cov[X, -2] * s * weight,
        xq=(qrow[X] if has_square else np.zeros(f)) * weight,
        cc=cov_c + n * np.outer(c_mean, c_mean),
        cz=cov[C, X] * cs[:, None] * weight,  # Z is centred, so raw C'Z equals centred C'Z
        c_mean=c_mean,
        cu=cov[C, -2] * cs * s,
        cq=(qrow[C] if has_square else np.zeros(k)) * cs,
        uu=uu,
        qq=qq if has_square else 0.0,
        y_mean=y_mean,
        ysq_mean=uu / n,
        ysq_slope=slope,
        repairs=repairs,
    )


def fit_moments(moments: Sums, n_components: Components) -> MomentsFit:
    """Weights from M; see `Moments.fit`."""
    p = _parts(moments)
    repairs = p.repairs
    gram, xu, xq, conf_beta, mean = p.gram, p.xu, p.xq, None, np.zeros(p.gram.shape[0])
    if moments.conf_names:
        conf_beta, dependent = _symmetric_solve(p.cc, p.cz)
        repairs += ("Dependent confounds: the minimum-norm solution was used.",) if dependent else ()
        gram = p.gram - conf_beta.T @ p.cz
        gram = (gram + gram.T) / 2
        xu, xq = p.xu - conf_beta.T @ p.cu, p.xq - conf_beta.T @ p.cq
        mean = -(p.c_mean @ conf_beta)
    reduces = n_components is not None
    f = gram.shape[0]
    if not reduces and f > p.n:
        raise ModelInputError(
            "More features than people, and no reduction is asked for.", next_step="Set n_components."
        )
    components = variances = None
    condition = float("inf")
    if reduces:
        components, variances, more = _components(gram - p.n * np.outer(mean, mean), p.n, n_components)
        repairs += more
        ru, rq = components @ xu, components @ xq
        rr = variances * (p.n - 1)
        b1 = ru / rr
        condition = float(np.sqrt(rr.max() / rr.min()))
    else:
        b1, dependent, condition = _full_solve(gram, xu)
        repairs += ("Dependent feature columns: the minimum-norm solution was used.",) if dependent else ()
        ru, rq = xu, xq
    b2 = (float(b1 @ ru) - p.uu) / p.uu
    gamma = ru / p.uu
    square = float(b1 @ rq) / p.qq if p.qq else 0.0
    gamma_square = rq / p.qq if p.qq else np.zeros_like(gamma)
    weights = Weights(
        feature_names=moments.feature_names,
        x_mean=p.x_mean,
        x_std=p.x_std,
        b1=b1,
        y_mean=p.y_mean,
        components=components,
        b2=np.array([b2]),
        b2sq=np.array([b2, square]),
        gamma=gamma[None, :],
        gammasq=np.vstack([gamma, gamma_square]),
        ysq_mean=p.ysq_mean,
        ysq_slope=p.ysq_slope,
        score_mean=None if conf_beta is None or components is None else components @ mean,
        conf_names=moments.conf_names,
        conf_beta=conf_beta,
        explained_variance=variances,
    )
    return MomentsFit(weights, repairs, condition)


def _components(gram: Array, n: float, choice: Components) -> tuple[Array, Array, tuple[str, ...]]:
    f = gram.shape[0]
    limit = int(min(round(n) - 1, f))
    wanted = wanted_components(choice, limit)
    size = limit if wanted is None else wanted
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=(f - size, f - 1), check_finite=False)
    values, vectors = values[::-1] / (n - 1), vectors[:, ::-1]
    if wanted is None:
        wanted = choose_components(np.maximum(values, 0.0), choice)
    real = max(1, int((values > _RANK * values[0]).sum()))
    more = (
        ("Fewer independent directions than components asked for: the empty ones were left out.",)
        if real < wanted
        else ()
    )
    wanted = min(wanted, real)
    return fix_signs(np.ascontiguousarray(vectors[:, :wanted].T)), values[:wanted].copy(), more


def _symmetric_solve(a: Array, b: Array) -> tuple[Array, bool]:
    """Minimum-norm solution of a w = b for a Gram matrix a; True where directions were dropped."""
    values, vectors = scipy.linalg.eigh(a, check_finite=False)
    keep = values > _RANK * values[-1]
    v = vectors[:, keep]
    return np.asarray(v @ ((v.T @ b) / values[keep].reshape(-1, *([1] * (b.ndim - 1))))), not bool(keep.all())


def _full_solve(gram: Array, xu: Array) -> tuple[Array, bool, float]:
    """b1 without components: (solution, directions dropped, condition number of the features before dropping)."""
    live = gram.diagonal() > 0.0  # constant columns: weight 0 without a rank decision
    values, vectors = scipy.linalg.eigh(gram[np.ix_(live, live)], check_finite=False)
    top = values[-1]
    keep = values > top / CONDITION_REVIEW**2
    if (np.abs(values[~keep]) > _RANK * top).any():
        raise ModelInputError(
            "The feature columns are nearly dependent; moments cannot resolve them.",
            next_step="Set n_components, or drop one of the nearly dependent columns.",
        )
    condition = float("inf") if values[0] <= 0 else float(np.sqrt(top / values[0]))
    b1 = np.zeros_like(xu)
    v, inverse = vectors[:, keep], 1.0 / values[keep]
    part = v @ (inverse * (v.T @ xu[live]))
    left = xu[live] - gram[np.ix_(live, live)] @ part
    b1[live] = part + v @ (inverse * (v.T @ left))  # one refinement step
    return b1, not bool(keep.all()), condition
