"""The linear algebra of a fit: components with fixed signs, least squares with a stated rank, the age regressors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg

from .base import Array, ModelInputError

Solver = Literal["auto", "svd", "eigh"]
Components = int | float | Literal["kaiser_guttman"] | None  # how many: see `wanted_components`

RANK_TOLERANCE = 1e-8  # singular values below this share of the largest are exact dependence, not information
CONDITION_REVIEW = 1e6  # above: weights lose more than half their digits (moments path: 3e-3 relative at 2e6)
CONDITION_REFUSE = 1e8  # above: rounding the weights to 3 figures can ruin predictions altogether
_SMALL = 2e8  # N*F*min(N,F): below, a full SVD costs nothing worth saving
_EIGH_FLOOR = 1e-6  # an eigenvalue below this share of the largest is taken from a full SVD instead


def fix_signs(components: Array) -> Array:
    """Make the largest |loading| of each component positive (scikit-learn's convention since 1.5).

    Loadings equal to rounding count as equal and the first of them decides, so that two routes to the same
    components agree: two features always have loadings of equal size.
    """
    size = np.abs(components)
    largest = (size >= size.max(axis=1, keepdims=True) * (1 - 1e-9)).argmax(axis=1)
    signs = np.sign(components[np.arange(components.shape[0]), largest])
    signs[signs == 0] = 1.0
    return np.ascontiguousarray(components * signs[:, None])


def spectrum(x: Array, n_components: int | None, solver: Solver) -> tuple[Array, Array]:
    """Components (rows, signs fixed) and variances (divisor N-1) of a centred N x F matrix, largest first.

    Exact solvers only: a full SVD, or `eigh` of the smaller Gram matrix (N x N or F x F). `auto` takes the SVD where
    it is cheap and falls back to it where a Gram matrix would lose the digits of the smallest component asked for.
    """
    n, f = x.shape
    size = min(n, f) if n_components is None else min(n_components, n, f)
    if solver == "svd" or (solver == "auto" and float(n) * f * min(n, f) <= _SMALL):
        return _by_svd(x, size)
    if solver not in ("auto", "eigh"):
        raise ModelInputError(f"Unknown solver {solver!r}.", next_step="Use 'auto', 'svd' or 'eigh'.")
    wide = f > n
    gram = x @ x.T if wide else x.T @ x
    m = gram.shape[0]
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=(m - size, m - 1), overwrite_a=True, check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    if solver == "auto" and not values[-1] > _EIGH_FLOOR * values[0]:
        return _by_svd(x, size)
    if wide:  # from people space to feature space, then make the rows orthonormal again
        positive = np.sqrt(np.maximum(values, np.finfo(float).tiny))
        vectors = np.linalg.qr((x.T @ vectors) / positive)[0]
    return fix_signs(np.ascontiguousarray(vectors.T)), np.maximum(values, 0.0) / max(n - 1, 1)


def _by_svd(x: Array, size: int) -> tuple[Array, Array]:
    _, s, vt = scipy.linalg.svd(x, full_matrices=False, check_finite=False, lapack_driver="gesdd")
    return fix_signs(vt[:size]), s[:size] ** 2 / max(x.shape[0] - 1, 1)


@dataclass(frozen=True)
class Solution:
    """Least squares by SVD. `condition` is largest over smallest singular value (inf when the smallest is 0);
    `used_condition` the same over the directions used."""

    coef: Array
    rank: int
    condition: float
    used_condition: float


def least_squares(a: Array, b: Array, tolerance: float = RANK_TOLERANCE) -> Solution:
    """Minimum-norm solution of ``a w = b`` over the directions with singular value > tolerance * largest."""
    u, s, vt = scipy.linalg.svd(a, full_matrices=False, check_finite=False)
    keep = s > tolerance * (s[0] if s.size else 0.0)
    rank = int(keep.sum())
    if rank == 0:
        return Solution(np.zeros((a.shape[1], *b.shape[1:])), 0, float("inf"), float("inf"))
    coef = (vt[:rank].T / s[:rank]) @ (u[:, :rank].T @ b)
    condition = float("inf") if s[-1] == 0 else float(s[0] / s[-1])
    return Solution(coef, rank, condition, float(s[0] / s[rank - 1]))


@dataclass(frozen=True)
class AgeTerms:
    """Centred age u, and u^2 centred and projected off u: the two regressors, with what rebuilds them."""

    y_mean: float
    u: Array
    q: Array
    ysq_mean: float
    ysq_slope: float
    has_square: bool  # False where ages take two values only: u^2 is then a function of u


def age_terms(y: Array) -> AgeTerms:
    """Both age regressors of a training set (ages in years, not all equal)."""
    y_mean = float(y.mean())
    u = y - y_mean
    square = u * u
    ysq_mean = float(square.mean())
    centred = square - ysq_mean
    slope = float(u @ centred) / float(u @ u)
    q = centred - slope * u
    has_square = bool(float(q @ q) > 1e-20 * float(square @ square))
    return AgeTerms(y_mean, u, q, ysq_mean, slope, has_square)


def condition_word(condition: float) -> str:
    """`ok`, `review` (> 1e6) or `refuse` (> 1e8): what a rule may do with these weights."""
    if condition > CONDITION_REFUSE:
        return "refuse"
    return "review" if condition > CONDITION_REVIEW else "ok"


def wanted_components(choice: Any, limit: int) -> int | None:
    """J where the choice names it, None where the spectrum has to decide (`choose_components`).

    A whole number is J; a float in (0, 1] the share of the variance to be held, as in scikit-learn's PCA;
    `kaiser_guttman` keeps eigenvalues above 1, as upstream deltab does.

    Raises
    ------
    ModelInputError
        For any other choice, and for more components than `limit`.
    """
    if isinstance(choice, str) and choice == "kaiser_guttman":
        return None
    if isinstance(choice, (float, np.floating)) and 0.0 < choice <= 1.0:
        return None
    whole = isinstance(choice, (int, np.integer)) and not isinstance(choice, bool)
    if not whole or choice < 1:
        raise ModelInputError(
            "n_components must be a whole number of at least 1, a share of variance above 0 and at most 1.0, "
            "'kaiser_guttman' or None.",
            next_step="For example n_components=10.",
        )
    if choice > limit:
        raise ModelInputError(
            f"{choice} components cannot come from these people and features.", next_step="Ask for fewer components."
        )
    return int(choice)


def choose_components(variances: Array, choice: Any) -> int:
    """J for a choice that needs the spectrum (variances with divisor N - 1, largest first)."""
    if choice == "kaiser_guttman":
        return max(1, int((variances > 1.0).sum()))
    share = np.cumsum(variances) / variances.sum()
    return min(int(np.searchsorted(share, float(choice) - 1e-12)) + 1, int(variances.size))
