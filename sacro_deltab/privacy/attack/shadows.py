"""Shadow models and the three membership scores. Everything here sees people and stays inside the TRE.

Shadow models are trained by the same procedure on random parts of a pool of people. What a person's residual looks like
with and without that person in the training set gives the likelihood ratio of Carlini et al. 2022 (LiRA), here for a
regression: the residual itself is the statistic, Gaussian per person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...model.weights import Weights

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Trainer = Callable[[Array, Array, "Array | None"], Weights]
_SHRINK = 0.2  # of the pool's covariance towards its diagonal, for the attack on means


@dataclass(frozen=True)
class Pool:
    """People an attacker knows: members of some training sets, not of others.

    X (n × F, raw units, no missing values), age (years), confounds (n × K) or None.
    """

    X: Array
    age: Array
    confounds: Array | None = None

    @property
    def size(self) -> int:
        """Number of people."""
        return int(self.age.size)

    def take(self, rows: Array | NDArray[np.int64] | Mask) -> Pool:
        """Some of them."""
        chosen: NDArray[np.int64] | Mask = rows  # type: ignore[assignment]
        return Pool(self.X[chosen], self.age[chosen], None if self.confounds is None else self.confounds[chosen])


def membership(people: int, left_out: int, models: int, rng: np.random.Generator) -> Mask:
    """models × people: who is in each training set. Everybody is left out equally often.

    With `left_out` half of the people, models 2k and 2k + 1 have complementary training sets.
    """
    inside = np.ones((models, people), dtype=bool)
    row = 0
    while row < models:
        order = rng.permutation(people)
        for start in range(0, people - left_out + 1, left_out):
            if row == models:
                break
            inside[row, order[start : start + left_out]] = False
            row += 1
    return inside


def residuals(weights: Weights, pool: Pool) -> Array:
    """Predicted minus true age in years, simple model."""
    conf = pool.confounds if weights.conf_beta is not None else None
    return weights.delta(pool.X, pool.age, conf, model="simple")


def train_shadows(pool: Pool, inside: Mask, trainer: Trainer) -> list[Weights]:
    """One model per row of `inside`."""
    models = []
    for rows in inside:
        part = pool.take(rows)
        models.append(trainer(part.X, part.age, part.confounds))
    return models


def likelihood_ratio(target: Array, shadows: Array, inside: Mask) -> Array:
    """log p(residual | member) − log p(residual | not), per person.

    Parameters
    ----------
    target
        Residuals of the people under the attacked model.
    shadows, inside
        Residuals under each shadow model, and who was in it (models × people). Means are per person; the spread is
        half a person's own, half everybody's: with sixteen models a side a person's own alone is too rough.
    """
    count_in = inside.sum(axis=0)
    count_out = (~inside).sum(axis=0)
    mean_in = np.where(inside, shadows, 0.0).sum(axis=0) / np.maximum(count_in, 1)
    mean_out = np.where(inside, 0.0, shadows).sum(axis=0) / np.maximum(count_out, 1)
    gap = shadows - np.where(inside, mean_in, mean_out)
    degrees = max(shadows.shape[0] - 2, 1)
    own = (gap**2).sum(axis=0) / degrees
    variance = 0.5 * own + 0.5 * float(np.median(own)) + 1e-12
    ratio = ((target - mean_out) ** 2 - (target - mean_in) ** 2) / (2 * variance)
    return np.where((count_in > 0) & (count_out > 0), ratio, 0.0)


def leave_pair_out(shadows: Array, inside: Mask) -> Array:
    """Likelihood ratios with every model attacked in turn by the others.

    The complementary model is left out too: everybody then has as many models with as without, and the attack cannot
    find its own bookkeeping instead of a member.
    """
    scores = np.empty_like(shadows)
    for row in range(shadows.shape[0]):
        first = row - row % 2
        others = np.ones(shadows.shape[0], dtype=bool)
        others[first : first + 2] = False
        scores[row] = likelihood_ratio(shadows[row], shadows[others], inside[others])
    return scores


def normalisation_scores(means: Array, pool: Pool) -> Array | None:
    """Membership scores from x_mean alone: z' C⁻¹ (x_mean − mean of all), models × people.

    None when every model has the same x_mean: then it is a public constant, and says nothing about anybody.
    """
    if means.shape[0] > 1 and bool((means == means[0]).all()):
        return None
    centre, sd = pool.X.mean(axis=0), pool.X.std(axis=0)
    used = sd > 0
    z = (pool.X[:, used] - centre[used]) / sd[used]
    move = (means[:, used] - centre[used]) / sd[used]
    cov = (1 - _SHRINK) * (z.T @ z) / pool.size
    cov[np.diag_indices_from(cov)] += _SHRINK
    return np.asarray((z @ np.linalg.solve(cov, move.T)).T)
