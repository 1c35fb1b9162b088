"""The line of fitted values on age in the cohort, from noised sums of clipped residuals around a line already known.

"Unbiased" means that the slope of delta on age is taken out, so that slope must be the cohort's own, whatever its ages
and tails. Residuals clipped around zero cannot give it: at the ends of the age range the fit is off by far more than
its scatter, and the clip eats the very slope that is to be measured. So the clip is laid around a line, first that of
the public people, then what each round found: what it cuts is scatter, as often above as below (a Huber estimate).
How many people the clip spares is noised too: it says how wide the scatter is here, and sets the next clip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from .blocks import Array
from .fit import AgeMoments, weight

ROUNDS = 3
_SPARE, _SLOPE, _CURVE = 0.2, 0.2, 0.5  # how far a cohort may lie from the public people: share spared, slope, curve
_FIRST, _LATER = 3.0, 1.5  # clip over the scatter's SD, as it is in public people, then as it was found here
_FINE = 0.02  # noise of the slope, years a year, that is taken into the bargain for a wider last clip
_WIDEST = 6.0  # of the last clip over the usual one: nine SDs of scatter
_CUT = 0.018  # years a year: SD of what the usual clip leaves of a slope (measured: IXI), less as it is wider
_SPARED = (0.2, 0.995)  # of people inside a clip: outside these the noise speaks, not the people
_LEFT = 0.08  # of an error that a step leaves because its clip cuts the error too
_WIDER = 3.0  # a clip changes by this factor at most from round to round
# Share of μ² of each sum: (in every round before the last, in the last).
SHARES: Mapping[str, tuple[float, float]] = {
    "in": (0.005, 0.005), "d": (0.01, 0.05), "dt": (0.02, 0.13), "dq": (0.0, 0.03),
}  # fmt: skip


def shares() -> dict[str, float]:
    """Share of μ² of every sum, by name and round."""
    table = {
        f"{name}_{k}": (first if k < ROUNDS else last)
        for k in range(1, ROUNDS + 1)
        for name, (first, last) in SHARES.items()
    }
    return {name: share for name, share in table.items() if share > 0}


@dataclass(frozen=True)
class Line:
    """Fitted value = mean + slope·(t − mean t) + curve·(orthogonal square), in t units, with the SDs of their errors.

    sd_mean, sd_slope, sd_curve: noise of this release, worked out from noised and public numbers; of the slope also
    what a clip leaves of it.
    """

    mean: float
    slope: float
    curve: float
    sd_mean: float
    sd_slope: float
    sd_curve: float
    clip: float
    wide: float = 1.0  # the clip over the usual one

    def at(self, t: Array, age: AgeMoments) -> Array:
        """The line at each age."""
        gap = t - age.mean
        return np.asarray(self.mean + self.slope * gap + self.curve * (gap * gap - age.slope * gap - age.var))


def find_line(
    fitted: Array, t: Array, age: AgeMoments, n: float, q_mean: float, *, slope: float, scatter: float, sd_var: float,
    draw: Callable[[str, Array, float], tuple[float, float]],
) -> Line:  # fmt: skip
    """The cohort's line.

    Parameters
    ----------
    fitted, t
        One per person: fitted age and age, in t units.
    slope, scatter
        What public people have: slope of the fitted value on age, SD around it.
    sd_var
        Error of the variance of age, by which every slope is divided.
    draw
        (name, rows, bound) → (noised sum, SD of its noise): takes the share of `name` from the account.
    """
    line = Line(0.0, slope, 0.0, scatter, _SLOPE, math.inf, _FIRST * scatter)
    for k in range(1, ROUNDS + 1):
        line = _round(line, k, fitted, t, age, n, q_mean, sd_var / age.var, draw)
    return line


def _round(
    line: Line, k: int, fitted: Array, t: Array, age: AgeMoments, n: float, q_mean: float,
    doubt: float, draw: Callable[[str, Array, float], tuple[float, float]],
) -> Line:  # fmt: skip
    """One step. Steps before the last are weighed against their noise; the last one is not shrunk."""
    gap, last = fitted - line.at(t, age), k == ROUNDS
    inside, sd_inside = draw(f"in_{k}", (np.abs(gap) <= line.clip).astype(np.float64), 1.0)
    usual = 2 * NormalDist().cdf(_FIRST if k == 1 else _LATER) - 1
    spared = float(np.clip(usual + (inside / n - usual) * weight(_SPARE, sd_inside / n), *_SPARED))
    cut = np.clip(gap, -line.clip, line.clip)
    (d, sd_d), (dt, sd_t) = (draw(f"{name}_{k}", cut * by, line.clip) for name, by in (("d", 1.0), ("dt", t)))
    shift, sd_shift = d / n / spared, sd_d / n / spared
    sd_slope = math.hypot(sd_t / n / spared, sd_shift * age.mean) / age.var
    # what a step leaves of the error before it: the variance of age and the share spared are known only so well
    left = math.hypot(doubt, sd_inside / n / spared, _LEFT)
    slope = (dt / n / spared - shift * age.mean) / age.var
    if not last:
        clip = line.clip / NormalDist().inv_cdf((1 + spared) / 2) * _LATER
        clip, wide = float(np.clip(clip, line.clip / _WIDER, line.clip * _WIDER)), 1.0
        if k == ROUNDS - 1:  # as wide as its noise allows: what no clip touches has no bias of it
            noise = sd_t / line.clip * math.sqrt(SHARES["dt"][0] / SHARES["dt"][1]) / n / age.var  # a unit of clip
            usual_clip, clip = clip, min(max(clip, _FINE / noise), clip * _WIDEST)
            wide = clip / usual_clip
        kept = weight(_SLOPE, sd_slope)
        after = math.hypot(kept * sd_slope, (1 - kept * (1 - left)) * line.sd_slope)
        shift, slope = shift * weight(line.clip, sd_shift), slope * kept
        return Line(line.mean + shift, line.slope + slope, 0.0, sd_shift, after, math.inf, clip, wide)
    dq, sd_q = draw(f"dq_{k}", cut * (2 * t * t - 1), line.clip)
    cross = (dq / n / spared - shift * q_mean) / 2 - (2 * age.mean + age.slope) * slope * age.var
    sd_curve = sd_q / n / 2 / age.square_var / spared
    curve = cross / age.square_var * weight(_CURVE, sd_curve)
    after = math.hypot(sd_slope, left * line.sd_slope, _CUT / line.wide)
    return Line(line.mean + shift, line.slope + slope, curve, sd_shift, after, sd_curve, line.clip)
