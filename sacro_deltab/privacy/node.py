"""Node basis: component axes from the same noisy moments, where no shared basis exists. It needs a large N."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..base.errors import PrivacyError
from ..model.algebra import fix_signs
from ..model.weights import Weights
from .blocks import FRACTIONS, Array, Layout
from .fit import Axes, fit_moments
from .job import Job
from .moments import NoisyMoments

NODE_FRACTIONS = {**FRACTIONS, "ut": 0.27, "uq": 0.09, "uu": 0.50}
DEFAULT_COMPONENTS = 25  # asking for many costs nothing: those below the noise edge are dropped
EDGE = 1.05  # components need this many times the largest eigenvalue of pure noise
_UNIT_MU = 0.2367  # μ of ε = 1, δ = 1e-6, at which the thresholds below were measured


def least_n(features: int, mu: float, reach: int) -> int:
    """N below which a node basis is not worth its noise: about 90 % of the non-private correlation (simulation).

    Fits the measured 1,200 (F = 20), 1,300 (100), 2,100 (500) and 4,800 (2,000) at ε = 1, and scales with the noise.
    """
    return math.ceil(max(1200.0, 107 * math.sqrt(features)) * _UNIT_MU / mu * reach)


def radius_of(job: Job) -> float:
    """Public L2 clip of a standardised feature row: the bounds' own, else 1.2·√F."""
    if job.bounds.radius is not None:
        return job.bounds.radius
    return 1.2 * math.sqrt(job.X.shape[1])


def layout_of(job: Job) -> Layout:
    """Blocks of a node release: all F features, Gram included."""
    count = 0 if job.confounds is None else job.confounds.shape[1]
    return Layout(width=job.X.shape[1], confounds=count, gram=True, count=not job.exact_n, fractions=NODE_FRACTIONS)


def axes_from(moments: NoisyMoments, most: int) -> tuple[Array, Array]:
    """Components (J × F) and their variances: eigenvectors above the noise edge, eigenvalues freed of its inflation.

    Off-diagonal noise of SD s makes the eigenvalues of pure noise end at 2s√F; a true eigenvalue λ shows up at
    λ + F·s²/λ (Wigner noise, rank-one perturbation). At least one component is kept.
    """
    n, features = moments.n, moments.layout.width
    mean = moments.values["u"] / n
    values, vectors = np.linalg.eigh(moments.values["uu"] / n - np.outer(mean, mean))
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = moments.sd["uu"] / n / math.sqrt(2)
    edge = EDGE * 2 * noise * math.sqrt(features)
    size = int(np.clip((values > edge).sum(), 1, min(most, features)))
    inflated = np.maximum(values[:size], edge)
    freed = (inflated + np.sqrt(np.maximum(inflated**2 - 4 * features * noise**2, 0.0))) / 2
    return fix_signs(np.ascontiguousarray(vectors[:, :size].T)), np.asarray(freed)


def reduce(moments: NoisyMoments, components: Array, variances: Array) -> NoisyMoments:
    """The same release seen through J components; the Gram is what the axes say it is."""
    values = dict(moments.values)
    for name in ("u", "ut", "uq"):
        values[name] = components @ values[name]
    if moments.layout.confounds:
        values["cu"] = values["cu"] @ components.T
    mean = values["u"] / moments.n
    values["uu"] = moments.n * (np.diag(variances) + np.outer(mean, mean))
    return replace(moments, layout=replace(moments.layout, width=components.shape[0]), values=values)


def fit_node(moments: NoisyMoments, axes: Axes, most: int) -> Weights:
    """All five models on axes that the noisy moments themselves give."""
    components, variances = axes_from(moments, most)
    found = replace(axes, components=components, score_sd=np.ones(components.shape[0]))
    weights = fit_moments(reduce(moments, components, variances), found, white=False)
    return replace(weights, explained_variance=variances)


def wanted_components(job: Job) -> int:
    """Most components to keep."""
    wanted: int = DEFAULT_COMPONENTS if job.n_components is None else job.n_components
    if wanted < 1:
        raise PrivacyError("n_components must be at least 1", next_step="leave it out")
    return min(wanted, int(job.X.shape[1]))
