"""The ways to spend one (ε, δ) on a model, and the choice between them. Public quantities only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..base.errors import PrivacyError
from ..model.weights import Weights
from . import node
from .blocks import Array, Layout
from .fit import Axes, PublicFit, age_moments, fit_moments
from .gradient import Purse, Schedule, descend, plan_schedule
from .intervals import errors_of_moments
from .job import Job
from .moments import NoisyMoments, Scaling, noise_table, release

Method = Literal["auto", "moments", "gradient"]
# The line of fitted values on age needs no clip of features (what is clipped there is the residual): a prediction has
# none. A wide one keeps the sums of scores exact.
WIDER = 4.0
OPTIONS = frozenset({"gram", "tau", "rounds", "clip", "decay", "first", "last", "start"})
_REASON = {
    "gradient": "on a shared basis the descent needs the least noise, and its deltas are unbiased on other people too",
    "node": "there is no shared basis: the axes must come from the noisy moments",
}


@dataclass(frozen=True)
class Path:
    """One way to train: name, what it says of itself, and the function that draws the noise."""

    name: str
    mechanism: str
    public: Mapping[str, Any]
    warnings: tuple[str, ...]
    run: Callable[[Job], tuple[Weights, NoisyMoments | None]]


def clip_warnings(job: Job) -> tuple[str, ...]:
    """Clips so tight that over half the people would be clipped, judged from public quantities alone."""
    found = []
    features, z = job.X.shape[1], job.bounds.feature_z
    touched = -math.expm1(features * math.log1p(-math.erfc(z / math.sqrt(2))))
    if touched > 0.5:
        found.append(
            f"feature_z = {z:g} would clip a feature of about {touched:.0%} of people (normal features): use more"
        )
    basis = job.basis
    if basis is not None:
        low, high = ((edge - basis.age_mean) / basis.age_sd / math.sqrt(2) for edge in job.bounds.age)
        outside = 1 - (math.erf(high) - math.erf(low)) / 2
        if outside > 0.5:
            found.append(f"about {outside:.0%} of people like the basis's are outside the age range: widen it")
    elif job.bounds.radius is not None and job.bounds.radius < 0.9 * math.sqrt(features):
        found.append("the radius is below the usual norm of a standardised row: over half the people would be clipped")
    return tuple(found)


def choose(job: Job, method: Method, n_public: int | None) -> Path:
    """The path for a job; `auto` decides from N (where public), J and the basis alone."""
    unknown = sorted(set(job.options) - OPTIONS)
    if unknown:
        raise PrivacyError(f"unknown option {unknown[0]!r}", next_step="use " + ", ".join(sorted(OPTIONS)))
    path = _choose(job, method, n_public)
    if method == path.public["method"]:
        why = "asked for"
    elif job.basis is None:
        why = _REASON["node"]
    else:
        why = preferred()[1]
    return replace(path, public={**path.public, "why": why}, warnings=(*clip_warnings(job), *path.warnings))


def preferred() -> tuple[Literal["moments", "gradient"], str]:
    """The path on a shared basis that is taken, and why."""
    return "gradient", _REASON["gradient"]


def _choose(job: Job, method: Method, n_public: int | None) -> Path:
    if method not in ("auto", "moments", "gradient"):
        raise PrivacyError(f"unknown method {method!r}", next_step='use "auto", "moments" or "gradient"')
    if job.basis is None:
        if method == "gradient":
            raise PrivacyError("the gradient path needs a shared basis", next_step='give one, or use method="moments"')
        return node_moments(job, n_public)
    if method == "auto":
        method = preferred()[0]
    return shared_moments(job, n_public) if method == "moments" else shared_gradient(job)


def shared_gradient(job: Job) -> Path:
    """DP gradient descent on a shared basis; one Gaussian account."""

    size, schedule, start = gradient_plan(job)
    count = 0 if job.confounds is None else job.confounds.shape[1]

    def run(job: Job) -> tuple[Weights, None]:
        assert job.basis is not None
        purse = Purse(job.mu, job.reach)
        scores = job.scores(job.basis, size)
        axes = job.basis.components[:size], job.basis.score_sd[:size]
        whole = job.scores(job.basis, size, wider=WIDER)
        return descend(job, purse, schedule, scores, *axes, start, whole=whole), None

    public = {
        "method": "gradient",
        "n_components": size,
        "rounds": len(schedule.rounds),
        "start": "zero" if start is None else "public",
        "noise_sd": schedule.noise_sd(size, count, job.mu, job.reach),
    }
    return Path("gradient", "gaussian", public, (), run)


def gradient_plan(job: Job) -> tuple[int, Schedule, Array | None]:
    """(J, schedule, b1 to begin from) of a descent: public."""

    size, basis = components_of(job), job.basis
    assert basis is not None
    half = job.bounds.age_half
    residual = min(float(basis.residual_sd[size - 1]) / half, 1.0)
    spread = min(basis.age_sd / half, 1.0)
    start = _start(job, size)
    schedule = plan_schedule(
        size,
        score_radius=float(basis.radius[size - 1]),
        age_sd=spread if start is None else min(spread, 2 * residual),
        residual_sd=residual,
        conf=0 if job.confounds is None else job.confounds.shape[1],
        count=not job.exact_n,
        **{k: v for k, v in job.options.items() if k in ("rounds", "clip", "decay", "first", "last")},
    )
    return size, schedule, start


def _start(job: Job, size: int) -> Array | None:
    """Where the descent begins: zero, or the public people's own b1 (`options={"start": "public"}`)."""
    word = job.options.get("start", "zero")
    if word not in ("zero", "public"):
        raise PrivacyError("start is neither zero nor public", next_step='options={"start": "public"} or leave it out')
    if word == "zero" or job.basis is None:
        return None
    return np.asarray(job.basis.age_b1[:size] / job.bounds.age_half)


def node_moments(job: Job, n_public: int | None) -> Path:
    """One release of the F-dimensional moments; the component axes come from it too."""

    layout, scaling = node.layout_of(job), scaling_of(job, node.radius_of(job))
    most, least = node.wanted_components(job), node.least_n(layout.width, job.mu, job.reach)
    warnings: tuple[str, ...] = ()
    if n_public is not None and n_public < least:
        warnings = (
            f"a node basis of {layout.width} features needs about N = {least}: expect noise; use a shared basis",
        )

    def run(job: Job) -> tuple[Weights, NoisyMoments]:
        moments = release(
            layout, scaling, job.features(), job.ages(), job.conf(), mu=job.mu, reach=job.reach, n_public=job.people
        )
        weights = node.fit_node(moments, job.axes(np.zeros((1, layout.width)), np.ones(1)), most)
        assert weights.components is not None
        along = weights.components.T @ weights.b1 / job.bounds.age_half  # age on standardised features
        job.drawn.update(_moment_errors(moments, along))
        return weights, moments

    public = {
        "method": "moments",
        "n_components": most,
        "gram": True,
        "radius": scaling.radius,
        "least_n": least,
        "noise_sd": noise_table(layout, scaling, job.mu, job.reach),
    }
    return Path("node_moments", "gaussian", public, warnings, run)


def components_of(job: Job) -> int:
    """J: what was asked, at most what the basis has."""
    if job.basis is None:
        raise PrivacyError("no basis", next_step="give a shared basis")
    top = job.basis.n_components
    wanted = top if job.n_components is None else int(job.n_components)
    if not 1 <= wanted <= top:
        raise PrivacyError(f"the basis has {top} components", next_step=f"use n_components between 1 and {top}")
    return wanted


def scaling_of(job: Job, radius: float) -> Scaling:
    """Public scaling of a job's blocks."""
    digest = job.bounds.digest if job.basis is None else f"{job.basis.digest}:{job.bounds.digest}"
    count = 0 if job.confounds is None else job.confounds.shape[1]
    return Scaling(radius, job.bounds.age_mid, job.bounds.age_half, count, digest)


def shared_moments(job: Job, n_public: int | None) -> Path:
    """One release of the moments of (1, c, scores, t, q) on a shared basis."""
    layout, scaling = moments_plan(job, n_public)
    size = layout.width

    def run(job: Job) -> tuple[Weights, NoisyMoments]:
        assert job.basis is not None
        scores = job.scores(job.basis, size)
        moments = release(
            layout, scaling, [scores], job.ages(), job.conf(), mu=job.mu, reach=job.reach, n_public=job.people
        )
        weights = fit_moments(moments, public_axes(job, scaling, size))
        job.drawn.update(_moment_errors(moments, weights.b1 * job.basis.score_sd[:size] / job.bounds.age_half))
        return weights, moments

    public = {
        "method": "moments",
        "n_components": size,
        "gram": layout.gram,
        "radius": scaling.radius,
        "noise_sd": noise_table(layout, scaling, job.mu, job.reach),
    }
    return Path("moments", "gaussian", public, (), run)


def _moment_errors(moments: NoisyMoments, b: Array) -> dict[str, float]:
    """SDs of what a release of moments leaves open; b: age on white scores, t units."""
    v, sd, n = moments.values, moments.sd, moments.n
    age = age_moments(n, float(v["t"]), float(v["q"]), float(v["tq"]), float(v["qq"]))
    sd_var = math.hypot(sd["q"] / n / 2, 2 * age.mean * sd["t"] / n)
    return errors_of_moments(moments, b, age, sd_var)


def public_axes(job: Job, scaling: Scaling, size: int) -> Axes:
    """Where the scores live, with what is known of age and scores in the public people: the fit shrinks to them."""
    assert job.basis is not None
    axes = job.axes(job.basis.components[:size], job.basis.score_sd[:size])
    return replace(axes, public=PublicFit.of_basis(job.basis, size, scaling))


def moments_plan(job: Job, n_public: int | None) -> tuple[Layout, Scaling]:
    """Blocks and scaling of one release on a shared basis: public."""
    size = components_of(job)
    assert job.basis is not None
    scaling = scaling_of(job, float(job.basis.radius[size - 1]))
    layout = Layout(
        width=size,
        confounds=scaling.confounds,
        gram=bool(job.options.get("gram", n_public is not None and n_public >= gram_from(size))),
        count=not job.exact_n,
        tau=float(job.options.get("tau", 1.0)),
    )
    return layout, scaling


def gram_from(size: int) -> int:
    """N from which the noisy Gram is worth its budget: above it the public Gram's mismatch is the larger error."""
    return math.ceil(600 * math.pow(size, 1.1))
