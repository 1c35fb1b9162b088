"""The gradient path: DP gradient descent on b1 with clipped residuals, then a few scalars for the other parameters.

On scores that are white in public people the Hessian of least squares is close to the identity, so a handful of full
steps converge; what matters is the clip. A person's gradient is residual × scores, and as the fit improves residuals
shrink: the clip follows a public schedule from the SD of public ages down to the public residual SD, and the noise with
it. Every sum is an integer Gaussian release; together they are one Gaussian account of μ (adaptive composition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..base.errors import PrivacyError
from ..model.weights import Weights
from . import debias, sampler
from .blocks import GRID_BITS, Array, Ints, clip_rows, norm_bound, quantise, row_sums
from .debias import find_line
from .fit import AgeMoments, age_moments, finish_weights, psd, settled_age, weight
from .job import Job
from .mechanisms import integer_sigma

_UNIT = 2.0**-GRID_BITS
TAU = 0.5  # of the size of a public coefficient: how far a cohort's own may lie from it (measured on real cohorts)
_CENTRE = 0.5  # of a white score: how far a cohort's mean score may lie from what public people of its age have
_OFFSET = 0.5  # of the scatter of fitted values: how far a cohort's mean may lie from the public line
_APART = 0.5  # of the scatter of ages around the public fit: how far a cohort's mean may lie from it
_OWN_ERROR = 2.0  # measured: error of b1 over that of noise and sampling (clipping and unfinished rounds add as much)
_REIN = 4.0  # times τ: how far the rounds may carry a coefficient


@dataclass
class Purse:
    """Hands out noisy sums until the account is empty. Shares of μ² are public and add up to at most one."""

    mu: float
    reach: int
    left: float = 1.0
    sd: dict[str, float] = field(default_factory=dict)

    def sum(self, name: str, rows: Array, radius: float, share: float) -> Array:
        """Noisy sum over people of rows clipped to norm `radius` (n × d)."""
        if share <= 0 or share > self.left + 1e-9:
            raise PrivacyError("the shares of this release exceed its budget", next_step="lower the shares")
        self.left -= share
        ints = quantise(clip_rows(rows, radius))
        sigma = integer_sigma(self.reach * norm_bound(rows.shape[1]), self.mu * math.sqrt(share))
        self.sd[name] = sigma * _UNIT * radius
        return np.asarray(self._noisy(ints.sum(axis=0), sigma).astype(np.float64) * _UNIT * radius)

    def _noisy(self, total: Ints, sigma: float) -> Ints:
        """The sum with exact integer noise."""
        return np.asarray(total + sampler.discrete_gaussian(sigma, total.size))


def noise_sd_of(size: int, share: float, mu: float, reach: int) -> float:
    """Noise SD of each entry of a sum of `size` entries whose rows have norm 1 at most, for a share of μ²."""
    return integer_sigma(reach * norm_bound(size), mu * math.sqrt(share)) * _UNIT


@dataclass(frozen=True)
class Schedule:
    """Public plan of a descent: clip radius, share of μ² and step of each round; shares of the scalars.

    All radii in t units (half the age range is 1); `residual` is the clip of the final residual.
    """

    radii: tuple[float, ...]
    rounds: tuple[float, ...]
    steps: tuple[float, ...]
    scalars: Mapping[str, float]
    residual: float
    score_radius: float

    def noise_sd(self, width: int, conf: int, mu: float, reach: int) -> dict[str, float]:
        """Noise SD of every sum, known beforehand."""

        def one(size: int, radius: float, share: float) -> float:
            return noise_sd_of(size, share, mu, reach) * radius

        reach_of = self.scalar_radii(conf)
        sizes = {name: width if name == "u" else conf_width(name, conf) for name in self.scalars}
        table = {name: one(sizes[name], reach_of.get(name, 1.0), share) for name, share in self.scalars.items()}
        for k, (radius, share) in enumerate(zip(self.radii, self.rounds, strict=True), start=1):
            table[f"step_{k}"] = one(width + conf + 1, radius, share)
        return table

    def scalar_radii(self, conf: int) -> dict[str, float]:
        """Norm bound of each scalar sum."""
        root = math.sqrt(max(conf, 1))
        return {
            "n": 1.0, "t": 1.0, "q": 1.0, "tq": 1.0, "qq": 1.0, "c": root, "cc": float(max(conf, 1)), "cp": root,
            "u": self.score_radius,
        }  # fmt: skip


def conf_width(name: str, conf: int) -> int:
    """Number of entries of a scalar block."""
    return {"c": conf, "cp": conf, "cc": conf * (conf + 1) // 2}.get(name, 1)


def plan_schedule(
    width: int,
    *,
    score_radius: float,
    age_sd: float,
    residual_sd: float,
    conf: int = 0,
    count: bool = False,
    rounds: int = 10,
    clip: float = 0.65,
    decay: float = 0.5,
    first: float = 1.0,
    last: float = 0.6,
) -> Schedule:
    """Schedule from public quantities (`age_sd`, `residual_sd` in t units). Constants measured in simulation."""
    if not (rounds >= 1 and clip > 0 and 0 < decay <= 1 and 0 < last <= 2 and 0 < first <= 2):
        raise PrivacyError("the gradient schedule is out of range", next_step="leave the options out")
    scalars = {"t": 0.04, "q": 0.03, "tq": 0.01, "qq": 0.01, "u": 0.04, **debias.shares()}
    if count:
        scalars["n"] = 0.01
    if conf:
        scalars |= {"c": 0.02, "cc": 0.03, "cp": 0.05}
    length = math.sqrt(width + conf)
    sizes = [max(1.2 * residual_sd, age_sd * decay**k) * clip * length for k in range(rounds)]
    weights = [math.sqrt(size) for size in sizes]
    free = 1.0 - sum(scalars.values())
    shares = [free * weight / sum(weights) for weight in weights]
    steps = [first * (last / first) ** (k / max(rounds - 1, 1)) for k in range(rounds)]
    return Schedule(tuple(sizes), tuple(shares), tuple(steps), scalars, 2 * residual_sd, score_radius)


def descend(
    job: Job,
    purse: Purse,
    schedule: Schedule,
    scores: Array,
    components: Array,
    score_sd: Array,
    start: Array | None = None,
    *,
    lean: bool = True,
    whole: Array | None = None,
) -> Weights:
    """Run the descent on white scores and derive all parameters; only products with residuals are clipped.

    purse: a full one, which every noisy sum is taken from; start: b1 to begin from, in t per white score (public);
    None: zero; lean: whether b1 is drawn to the public people's; whole: scores as a prediction will see them, without
    the clip of the features, for the line that makes deltas unbiased.
    """
    t, c = job.ages(), job.conf()
    conf = np.zeros((t.size, 0)) if c is None else c
    radii = schedule.scalar_radii(conf.shape[1])

    def scalar(name: str, rows: Array) -> Array:
        return purse.sum(name, rows if rows.ndim == 2 else rows[:, None], radii[name], schedule.scalars[name])

    n = float(job.people) if job.people is not None else max(1.0, float(scalar("n", np.ones(t.size))[0]))
    job.drawn["n"] = n
    q = 2 * t * t - 1
    sums = {name: float(scalar(name, v)[0]) for name, v in (("t", t), ("q", q), ("tq", t * q), ("qq", q * q))}
    age = age_moments(n, sums["t"], sums["q"], sums["tq"], sums["qq"])
    age, sd_var = _settled(job, age, n, purse.sd)
    target = t - age.mean
    centre = _centre(purse, schedule, job, scores, n, age)
    rows = np.column_stack([scores - centre, conf, np.ones(t.size)])
    b = np.zeros(rows.shape[1])
    if start is not None:
        b[: scores.shape[1]] = start
    public, tau = _public_slopes(job, scores.shape[1], rows.shape[1])
    width = scores.shape[1]
    variance = (float(job.basis.residual_sd[width - 1]) / job.bounds.age_half) ** 2 / n if job.basis else 0.0
    b, own = _steps(purse, schedule, rows, target, b, n, variance, (public, tau, width) if lean else None)
    b1, intercept = b[:width], float(b[-1])
    fitted = row_sums(((scores if whole is None else whole) - centre) * b1) + intercept
    by_conf, conf_mean = np.zeros(conf.shape[1]), np.zeros(conf.shape[1])
    if conf.shape[1]:
        by_conf, conf_mean = _confound_slope(scalar, conf, fitted, n)
        fitted = fitted - row_sums((conf - conf_mean) * by_conf)
    slope, scatter = _public_line(job, b1)

    def draw(name: str, rows: Array, bound: float) -> tuple[float, float]:
        total = purse.sum(name, rows[:, None], bound, schedule.scalars[name])
        return float(total[0]), purse.sd[name]

    q_mean = float(np.clip(sums["q"] / n, -1, 1))
    line = find_line(fitted, t, age, n, q_mean, slope=slope, scatter=scatter, sd_var=sd_var, draw=draw)
    offset_kept = weight(_OFFSET * scatter, line.sd_mean)
    job.drawn.update(
        sd_slope=line.sd_slope,
        sd_mean_age=purse.sd["t"] / n,
        sd_b=_settled_error(float(tau[0]), own),
        sd_offset=math.hypot(_settled_error(_OFFSET * scatter, line.sd_mean), purse.sd["t"] / n / 2),
    )
    return finish_weights(
        job.axes(components, score_sd),
        job.bounds,
        age,
        b1,
        line.slope - 1,
        line.curve,
        offset=intercept - line.mean * offset_kept - float(centre @ b1),
        by_conf=by_conf,
        conf_mean=conf_mean,
    )


def _steps(
    purse: Purse,
    schedule: Schedule,
    rows: Array,
    target: Array,
    b: Array,
    n: float,
    variance: float,
    lean: tuple[Array, Array, int] | None,
) -> tuple[Array, float]:
    """The noisy steps from `b`, and the standard error of their end; `lean`: public b, spread and width to draw to."""
    error = own = 0.0
    for k, (radius, share, step) in enumerate(zip(schedule.radii, schedule.rounds, schedule.steps, strict=True), 1):
        gap = target - row_sums(rows * b)
        b = b + step / n * purse.sum(f"step_{k}", gap[:, None] * rows, radius, share)
        error = (1 - step) ** 2 * error + (step * purse.sd[f"step_{k}"] / n) ** 2
        own = _OWN_ERROR * math.sqrt(error + variance)
        if lean is not None:  # never far beyond what a cohort can be: noise alone would carry the next rounds away
            public, tau, width = lean
            b = public + (b - public) * _kept(b - public, _REIN * tau, own, width)
    if lean is not None:
        public, tau, width = lean
        b = public + (b - public) * _kept(b - public, tau, own, width)
    return b, own


def _kept(gap: Array, tau: Array, sigma: float, width: int) -> Array:
    """Share of its own that each coefficient keeps: τ²/(τ² + σ²), more where the gap to the public people as a whole is
    clearly larger than its error (a cohort of another relation loses little)."""
    kept = np.asarray(weight(tau, sigma), dtype=np.float64)
    size = float(gap[:width] @ gap[:width])
    kept[:width] = np.maximum(kept[:width], 1 - width * sigma * sigma / max(size, 1e-300))
    return kept


def _settled_error(tau: float, sigma: float) -> float:
    """SD of an estimate that keeps τ²/(τ² + σ²) of its own: its noise, and what the pull leaves of the truth."""
    kept = weight(tau, sigma)
    return math.hypot(kept * sigma, (1 - kept) * tau)


def _settled(job: Job, age: AgeMoments, n: float, sd: Mapping[str, float]) -> tuple[AgeMoments, float]:
    basis, half = job.basis, job.bounds.age_half
    assert basis is not None
    return settled_age(age, n, sd, (basis.age_mean - job.bounds.age_mid) / half, (basis.age_sd / half) ** 2)


def _public_line(job: Job, b1: Array) -> tuple[float, float]:
    """Slope of the fitted value on age, and SD around it, that public people would show with these b1."""
    basis = job.basis
    assert basis is not None
    half, width = job.bounds.age_half, b1.size
    slope = float(b1 @ (basis.age_b1[:width] / basis.age_sd**2 * half))
    length = float(b1 @ b1)
    spread = length - (basis.age_sd / half) ** 2 * slope * slope
    return slope, math.sqrt(max(spread, 0.05 * length, 1e-8))


def _public_slopes(job: Job, width: int, columns: int) -> tuple[Array, Array]:
    """What public people have for every column of the descent (0 for confounds and intercept), and τ of each.

    τ is how far a cohort's coefficient may lie from theirs, public: of a score a share of the size theirs have, of the
    intercept a share of the scatter, of confounds the spread of ages. With error σ it keeps τ²/(τ² + σ²) of its own.
    """
    basis, half = job.basis, job.bounds.age_half
    assert basis is not None
    own = basis.age_b1[:width] / half
    public = np.concatenate([own, np.zeros(columns - width)])
    tau = np.full(columns, basis.age_sd / half)
    tau[:width] = TAU * math.sqrt(float(own @ own) / width)
    tau[-1] = _APART * float(basis.residual_sd[width - 1]) / half  # around the scores that people of its mean age have
    return public, tau


def _centre(purse: Purse, schedule: Schedule, job: Job, scores: Array, n: float, age: AgeMoments) -> Array:
    """Mean score of the cohort: what public people of this mean age have, corrected by a noisy mean where it says more.

    A cohort off the public centre couples intercept and slopes, and the descent then crawls.
    """
    width, basis = scores.shape[1], job.basis
    assert basis is not None
    years = job.bounds.age_mid + job.bounds.age_half * age.mean - basis.age_mean
    expected = basis.age_b1[:width] / basis.age_sd**2 * years
    noisy = purse.sum("u", scores, schedule.score_radius, schedule.scalars["u"]) / n
    return np.asarray(expected + (noisy - expected) * weight(_CENTRE, purse.sd["u"] / n))


def _confound_slope(scalar: Callable[[str, Array], Array], conf: Array, fitted: Array, n: float) -> tuple[Array, Array]:
    """Slope of the fitted age on confounds, with an intercept: what deconfounding the features takes out of it."""
    upper = np.triu_indices(conf.shape[1])
    mean = np.clip(scalar("c", conf) / n, -1, 1)
    packed = conf[:, upper[0]] * conf[:, upper[1]] * np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    entries = scalar("cc", packed) / n / np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    second = np.zeros((conf.shape[1], conf.shape[1]))
    second[upper] = entries
    second = second + np.triu(second, 1).T
    cross = scalar("cp", conf * np.clip(fitted, -1, 1)[:, None]) / n
    return np.asarray(np.linalg.solve(psd(second - np.outer(mean, mean), 1e-2), cross)), mean
