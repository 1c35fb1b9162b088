"""Training of simulated people for a plan, with noise from a seeded generator, so that everybody gets the same answer.

The clipping, the sums and all that follows the noise are the trainer's own functions; the noise is drawn here and
nowhere else. The trainer has no way in for another source of noise: it makes its own purse and calls its own sampler.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ...model.weights import Weights
from .. import node
from ..basis import Basis
from ..blocks import SYMMETRIC, Array, Ints, Layout
from ..bounds import PublicBounds
from ..fit import fit_moments
from ..gradient import Purse, descend
from ..job import Job
from ..moments import NoisyMoments, Scaling, exact_sums, natural
from ..paths import WIDER, gradient_plan, moments_plan, public_axes, scaling_of
from ..spend import Adjacency
from ..training import Price, prepare

Rng = np.random.Generator


def settings_at(request: Mapping[str, Any], n: int) -> dict[str, Any]:
    """ε, δ and relation at another N: δ follows N, as it would in training."""
    given = float(request["delta_dp"])
    most = 1e-6 if request["adjacency"] == "add_remove" else min(1.0, 1 / n**2)
    return {
        "epsilon": float(request["epsilon"]),
        "delta_dp": min(given, most),
        "adjacency": cast(Adjacency, request["adjacency"]),
    }


def priced(
    X: Array, age: Array, names: tuple[str, ...], basis: Basis | None, bounds: PublicBounds | None, method: str,
    request: Mapping[str, Any],
) -> tuple[Job, Price]:  # fmt: skip
    """A training of these people, checked and priced by the trainer; nothing is drawn."""
    return prepare(
        X, age, confounds=None, feature_names=names, confound_names=None, bounds=bounds, basis=basis, unit="person",
        n_components=None if basis is None else int(request["n_components"]), method=method,  # type: ignore[arg-type]
        registered=None, ruleset_bounds=None, outputs=(), options={}, count_people=0.0,
        **settings_at(request, age.size),
    )  # fmt: skip


def trained(job: Job, method: str, rng: Rng, *, lean: bool = True) -> Weights:
    """What the trainer would give with this noise; without `lean`, what the cohort's own data give of it."""
    if job.basis is None:
        layout, scaling = node.layout_of(job), scaling_of(job, node.radius_of(job))
        moments = _released(job, layout, scaling, job.features(), rng)
        return node.fit_node(moments, job.axes(np.zeros((1, layout.width)), np.ones(1)), node.wanted_components(job))
    if method == "gradient":
        size, schedule, start = gradient_plan(job)
        axes = job.basis.components[:size], job.basis.score_sd[:size]
        purse = _SimulatedPurse(job.mu, job.reach, rng=rng)
        whole = job.scores(job.basis, size, wider=WIDER)
        return descend(job, purse, schedule, job.scores(job.basis, size), *axes, start, lean=lean, whole=whole)
    layout, scaling = moments_plan(job, job.people)
    size = layout.width
    moments = _released(job, layout, scaling, [job.scores(job.basis, size)], rng)
    own = job.axes(job.basis.components[:size], job.basis.score_sd[:size])
    return fit_moments(moments, public_axes(job, scaling, size) if lean else own)


@dataclass
class _SimulatedPurse(Purse):
    """The same account, with rounded normal noise of the same size."""

    rng: Rng = field(kw_only=True)

    def _noisy(self, total: Ints, sigma: float) -> Ints:
        return np.asarray(total + np.rint(self.rng.normal(0.0, sigma, total.size)).astype(np.int64))


def _released(job: Job, layout: Layout, scaling: Scaling, chunks: Any, rng: Rng) -> NoisyMoments:
    noisy, sd = {}, {}
    for name, total in exact_sums(layout, scaling, chunks, job.ages(), job.conf()).items():
        unit = layout.unit(name)
        sd[name] = layout.sigma_int(name, job.mu, job.reach) * unit
        noise = rng.normal(0.0, sd[name], np.shape(total))
        if name in SYMMETRIC:
            upper = np.triu(noise, 1) / math.sqrt(2)
            noise = upper + upper.T + np.diag(np.diag(noise))
        noisy[name] = np.asarray(np.asarray(total, dtype=np.float64) * unit + noise)
    return natural(layout, scaling, noisy, sd, job.people)
