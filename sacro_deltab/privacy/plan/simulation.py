"""People made up from public quantities, and what each path makes of them. No person's data and no budget is touched.

Scores of the simulated people are linear in their brain age, u = w·b + e with Gaussian e, where w and the covariance of
e come from a shared basis file (its public people's age fit), or from the first simulation of Smith et al. 2019. The
trainer itself is run on them, noise and all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...cohort.simulate import smith_cohort
from ..basis import Basis
from ..basis_making import Band

Array = NDArray[np.float64]
DELTA_SD = 2.0  # years; Smith et al. 2019
YQUAD = 0.01
PUBLIC = 2_000
TEST = 2_000
MOST_FEATURES = 300  # simulated; more features change the scores of a shared basis hardly
_NO_CLIP = 50.0


@dataclass(frozen=True)
class Population:
    """Where simulated people come from.

    loading (J), spread (J × J Cholesky factor): white scores are loading·b + spread·N(0, I), b the standardised brain
    age; age: range in years, uniform; delta_sd in years; basis: with J pseudo-features, whose scores are the features
    themselves.
    """

    loading: Array
    spread: Array
    age: tuple[float, float]
    delta_sd: float
    basis: Basis
    words: str
    bands: tuple[Band, ...] = ()

    def people(self, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """(X, age, true delta) of n people; X has J columns. Of bands there is no true delta: that of a model fitted
        to all such people stands for it."""
        if self.bands:
            return self._from_bands(n, rng)
        low, high = self.age
        middle, half = (low + high) / 2, (high - low) / 2
        age = rng.uniform(low, high, n)
        bend = YQUAD * (15.0 / half) ** 2 * ((age - middle) ** 2 - half**2 / 3)
        delta = rng.normal(0.0, self.delta_sd, n) + bend
        brain = (age + delta - middle) / np.sqrt(half**2 / 3 + self.delta_sd**2)
        noise = rng.normal(size=(n, self.loading.size)) @ self.spread.T
        return np.outer(brain, self.loading) + noise, age, delta

    def _from_bands(self, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        size = self.loading.size
        counts = rng.multinomial(n, np.array([b.people for b in self.bands]) / sum(b.people for b in self.bands))
        rows = np.concatenate([
            band.mean[: size + 1] + rng.normal(size=(count, size + 1)) @ _factor(band.cov[: size + 1, : size + 1]).T
            for band, count in zip(self.bands, counts, strict=True)
        ])  # fmt: skip
        rng.shuffle(rows)
        age, X = np.clip(rows[:, 0], *self.age), rows[:, 1:]
        return X, age, (X - self.mean[1:]) @ self.b1 - (age - self.mean[0]) * self.slope

    @property
    def mean(self) -> Array:
        """Mean of (age, scores) over all bands."""
        shares = np.array([b.people for b in self.bands], dtype=np.float64)
        return np.asarray(shares @ np.array([b.mean[: self.loading.size + 1] for b in self.bands]) / shares.sum())

    @property
    def _cov(self) -> Array:
        size, total = self.loading.size + 1, sum(b.people for b in self.bands)
        gaps = [(b, b.mean[:size] - self.mean) for b in self.bands]
        return np.asarray(sum(b.people * (b.cov[:size, :size] + np.outer(g, g)) for b, g in gaps) / total)

    @property
    def b1(self) -> Array:
        """Age on scores over all bands."""
        cov = self._cov
        return np.asarray(np.linalg.solve(cov[1:, 1:], cov[1:, 0]))

    @property
    def slope(self) -> float:
        """Of the age so fitted on age."""
        cov = self._cov
        return float(self.b1 @ cov[1:, 0] / cov[0, 0])


def from_smith(n_features: int, n_components: int, seed: int = 0) -> Population:
    """Smith-type people and a shared basis of 2,000 public ones."""
    features = min(n_features, MOST_FEATURES)
    size = min(n_components, features)
    public = smith_cohort(PUBLIC, features, seed=1_000_003 + seed)
    basis = Basis.from_public(
        public.X, public.age, public.feature_names, n_components=size, made_on="simulated people", age_range=(45, 75)
    )
    others = smith_cohort(2 * PUBLIC, features, seed=2_000_003 + seed)  # not those of the basis: it never fits exactly
    scores = basis.white_scores(basis.standardise(others.X), size)
    brain = (others.age + others.true_delta - 60.0) / np.sqrt(75.0 + DELTA_SD**2)
    centred = scores - scores.mean(axis=0)
    loading = centred.T @ (brain - brain.mean()) / float(((brain - brain.mean()) ** 2).sum())
    left = centred - np.outer(brain - brain.mean(), loading)
    words = f"simulated people (Smith et al. 2019, {features} features), not yours"
    return Population(loading, _factor(left.T @ left / left.shape[0]), (45.0, 75.0), DELTA_SD, _flat(basis), words)


def from_basis(basis: Basis, n_components: int) -> Population:
    """People like the public ones of a basis file, as far as its age fit tells.

    The file cannot say how much of the residual is true delta: 2 years are assumed, less where it leaves less room.
    """
    size = min(n_components, basis.n_components)
    b1 = np.array(basis.age_b1[:size])
    if basis.bands:
        words = f"simulated from the moments by age band of the basis ({basis.made_on})"
        flat = _flat(basis, size)
        return Population(b1, np.eye(size), basis.age, 0.0, flat, words, basis.bands)
    share = float(b1 @ b1) / basis.age_sd**2
    room = basis.age_sd**2 * (1 / max(share, 1e-6) - 1)
    delta_sd = float(np.sqrt(min(DELTA_SD**2, 0.9 * room)))
    loading = b1 * np.sqrt(basis.age_sd**2 + delta_sd**2) / basis.age_sd**2
    half = basis.age_sd * np.sqrt(3.0)
    age = (max(basis.age[0], basis.age_mean - half), min(basis.age[1], basis.age_mean + half))
    words = f"simulated from the age fit of the basis ({basis.made_on}); delta of SD {delta_sd:.1f} years is assumed"
    spread = _factor(np.eye(size) - np.outer(loading, loading))
    return Population(loading, spread, age, delta_sd, _flat(basis, size), words)


def _factor(cov: Array) -> Array:
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 1e-9)))


def _flat(basis: Basis, n_components: int | None = None) -> Basis:
    """A basis whose features are the white scores: same norms, same age fit."""
    size = basis.n_components if n_components is None else n_components
    return Basis(
        feature_names=tuple(f"score_{j + 1}" for j in range(size)), units=("",) * size, centre=np.zeros(size),
        scale=np.ones(size), components=np.eye(size), score_sd=np.ones(size), radius=basis.radius[:size],
        feature_radius=basis.feature_radius, age_b1=basis.age_b1[:size], residual_sd=basis.residual_sd[:size],
        age_mean=basis.age_mean, age_sd=basis.age_sd, age=basis.age, made_on=basis.made_on, how="planning",
        n_people=basis.n_people, feature_z=_NO_CLIP, confounds={},
    )  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """Over simulated studies: mean correlation of the unbiased delta with the true one, with its standard error; mean
    absolute error of the predicted age (simple model, years); correlation with the delta of the same study without
    noise; slope of the unbiased delta on age. Each of the last three with the interval that nine draws in ten keep."""

    correlation: float
    error_years: float
    standard_error: float
    with_no_noise: float
    with_no_noise_interval: tuple[float, float]
    error_interval: tuple[float, float]
    age_slope: tuple[float, float]

    @classmethod
    def of(cls, rows: list[Row]) -> Figures:
        """From one row a study."""
        values = np.array(rows)
        spread = float(values[:, 0].std(ddof=1) / np.sqrt(values.shape[0])) if values.shape[0] > 1 else 0.0
        means = values.mean(axis=0)
        keep = [(_shown(a), _shown(b)) for a, b in np.quantile(values, (0.05, 0.95), axis=0).T]
        return cls(_shown(means[0]), _shown(means[1]), _shown(spread), _shown(means[2]), keep[2], keep[1], keep[3])


def _shown(value: float) -> float:
    """Four decimals: what is left out differs between linear algebra libraries."""
    return round(float(value), 4)


Row = tuple[float, float, float, float]


def scored(delta: Array, predicted: Array, age: Array, truth: Array, plain: Array) -> Row:
    """(correlation with the true delta, mean absolute error of age, correlation without noise, slope on age)."""

    def with_(other: Array) -> float:
        return 0.0 if min(float(delta.std()), float(other.std())) == 0 else float(np.corrcoef(delta, other)[0, 1])

    return with_(truth), float(np.abs(predicted - age).mean()), with_(plain), float(np.polyfit(age, delta, 1)[0])


def without_noise(X: Array, age: Array, test: tuple[Array, Array, Array]) -> tuple[Row, Array]:
    """Least squares on the scores, unbiased delta: the model that noise is measured against; its row and its deltas."""
    middle = age.mean()
    design = np.column_stack([X - X.mean(axis=0), np.ones(age.size)])
    b = np.linalg.lstsq(design, age - middle, rcond=None)[0]
    gap = design @ b - (age - middle)
    slope = float(gap @ (age - middle) / ((age - middle) @ (age - middle)))
    fitted = np.column_stack([test[0] - X.mean(axis=0), np.ones(test[1].size)]) @ b
    delta = fitted - (test[1] - middle) * (1 + slope)
    return scored(delta, fitted + middle, test[1], test[2], delta), delta


def null_rows(basis: Basis, test: tuple[Array, Array, Array], plain: Array) -> dict[str, Row]:
    """What no private data at all would give: the public people's model alone, and the median age for everybody."""
    predicted = basis.age_mean + test[0] @ basis.age_b1
    slope = float(np.polyfit(test[1], predicted, 1)[0])
    delta = predicted - basis.age_mean - (test[1] - basis.age_mean) * slope
    constant = np.full(test[1].size, float(np.median(test[1])))
    return {
        "public_only": scored(delta, predicted, test[1], test[2], plain),
        "constant": scored(np.zeros(test[1].size), constant, test[1], test[2], plain),
    }
