"""Was this basis made on the cohort itself? What its numbers show; the rest is the word of who made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.errors import PrivacyError

if TYPE_CHECKING:
    from .basis import Basis

Array = NDArray[np.float64]
_SAME = 1e-9  # agreement of centre and cohort mean at which a basis was made on the cohort in hand
_CHECKED = 32  # columns compared for that
_CHANCE = 1e-6  # of refusing a basis that was made from other people


def refuse_own(basis: Basis, X: ArrayLike) -> None:
    """Refuse a basis that shows it was made on this cohort: it would be a second, unpaid release.

    Three signs: the centre is the cohort's own mean; the centre is a row of the cohort; or means and products of
    scores agree with the basis much better than those of other people can (chance below 1e-6 for a basis fixed
    without looking at the cohort). The last finds a copy that was disturbed a little, and one made from most of
    the cohort; from half of it, nobody can tell. A refusal is seen inside only.
    """
    values = np.asarray(X, dtype=float)
    if values.ndim != 2 or values.shape[1] != len(basis.feature_names) or values.shape[0] < 2:
        return
    with np.errstate(all="ignore"):
        some = np.unique(np.linspace(0, values.shape[1] - 1, _CHECKED).astype(int))  # enough columns to tell
        centre, scale = basis.centre[some], basis.scale[some]
        mean = _finite_means(values, some, centre)
        own_mean = (np.abs(mean - centre) <= _SAME * (scale + np.abs(centre))).mean() > 0.5
        own_row = _is_a_row(values[:, some], centre, _SAME * (scale + np.abs(centre)))
    what = "its centre is the cohort's own mean" if own_mean else "its centre is one person's row" if own_row else ""
    if not what and _agrees_too_well(basis, values):
        what = "it agrees with the cohort much better than one made from other people can"
    if what:
        raise PrivacyError(
            f"this basis was made on the cohort itself: {what}",
            next_step="make the basis from other people, or use the node basis, which pays for its axes",
        )


def _agrees_too_well(basis: Basis, values: Array) -> bool:
    """Scaled squares of score means and of mean products of two scores: together at least χ² for other people.

    Only the cohort's own sampling error is counted, so the claimed size of the public sample plays no part.
    """
    size = basis.n_components
    first, second, fourth = np.zeros(size), np.zeros((size, size)), np.zeros((size, size))
    for start in range(0, values.shape[0], 4096):
        u = basis.white_scores(basis.standardise(values[start : start + 4096]), size)
        first, second, fourth = first + u.sum(axis=0), second + u.T @ u, fourth + (u * u).T @ (u * u)
    n, upper = values.shape[0], np.triu_indices(size, 1)
    mean, product = first / n, (second / n)[upper]
    spread = np.concatenate([np.diag(second) / n - mean**2, (fourth / n)[upper] - product**2])
    gaps = np.concatenate([mean, product - (mean[:, None] * mean)[upper]])
    fine = spread > 1e-12
    if not fine.any():
        return False
    from scipy.stats import chi2  # late: scipy is heavy

    statistic = n * (gaps[fine] ** 2 / spread[fine]).sum()
    return bool(statistic < chi2.ppf(_CHANCE, int(fine.sum())))


def _finite_means(values: Array, columns: NDArray[np.int_], centre: Array) -> Array:
    """Means of some columns over finite values, in chunks of people, measured from `centre`."""
    count, first = np.zeros(columns.size), np.zeros(columns.size)
    for start in range(0, values.shape[0], 4096):
        part = values[start : start + 4096, columns] - centre
        fine = np.isfinite(part)
        count += fine.sum(axis=0)
        first += np.where(fine, part, 0.0).sum(axis=0)
    return np.asarray(centre + first / count)


def _is_a_row(values: Array, row: Array, tolerance: Array) -> bool:
    """Whether `row` is, in most columns, one of the rows of `values`."""
    near = np.zeros(values.shape[0], dtype=int)
    for j in range(row.size):
        near += np.abs(values[:, j] - row[j]) <= tolerance[j]
    return bool((near > row.size / 2).any())
