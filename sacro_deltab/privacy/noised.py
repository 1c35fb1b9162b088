"""Noised SD, quantiles, tables by group and feature summaries. Every count of people in them is noised as well.

What one person adds is clipped to public bounds and counts in one group of a table, one bin of a histogram: disjoint
groups cost one ε. A person without a value, or in no group, adds exactly nothing, so that the same noise covers a
person who is not there and one whose record is empty. Groups and bins are fixed without the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..base.errors import InputError
from . import sampler
from .blocks import GRID_BITS, Array, Ints, clip_rows
from .gradient import Purse
from .job import check_delta
from .mechanisms import NUMERIC_SLACK, mu_of
from .spend import SpendRequest
from .statistics import Drawn, NoisyStatistic, Terms, paid

_ONE = 1 << GRID_BITS
BIN_YEARS = 0.5  # of the histogram behind quantiles
_REACH = 1.96
_SD_SHARES = (0.1, 0.35, 0.55)  # of ε: people, values, squares
_TABLE_SHARES = (0.2, 0.8)  # people, values
_FEATURE_SHARES = {"n": 0.1, "x": 0.45, "xx": 0.45}  # of μ²


def noised_sd(values: ArrayLike, bound: float, terms: Terms) -> NoisyStatistic:
    """SD (n − 1) of values clipped to ±bound, from noised sums of people, values and squares."""
    v, known = _scaled(values, bound)

    def draw(request: SpendRequest) -> Drawn:
        columns = np.column_stack([known, v, v * v])
        sums, sd = _sums(columns, np.zeros(v.size, dtype=np.int64), 1, request.epsilon, _SD_SHARES)
        n = max(2.0, float(sums[0, 0]))
        mean, square = float(sums[0, 1]) / n, float(sums[0, 2]) / n
        variance = min(max((square - mean * mean) * n / (n - 1), 0.0), 1.0)
        off = math.hypot(sd[2], 2 * mean * sd[1], (square - 2 * mean * mean) * sd[0]) / n
        spread = math.sqrt(variance)
        left = off / 2 / spread if spread > math.sqrt(off) else math.sqrt(off)  # near 0 the noise is all there is
        return Drawn(np.array([bound * spread]), np.array([bound * left]), np.array([n]), sd[0])

    return paid(terms, draw, mechanism="laplace", delta_dp=0.0, sensitivity=1.0, bounds=(-bound, bound))


def noised_quantiles(values: ArrayLike, percents: Sequence[float], bound: float, terms: Terms) -> NoisyStatistic:
    """Percentiles of values clipped to ±bound, from noised counts in bins of half a year; noise_sd from their ranks."""
    v, known = _scaled(values, bound)
    edges = np.linspace(-bound, bound, math.ceil(2 * bound / BIN_YEARS) + 1)
    codes = np.clip(np.searchsorted(edges, v * bound, side="right") - 1, 0, edges.size - 2)
    asked = np.array(percents, dtype=np.float64) / 100

    def draw(request: SpendRequest) -> Drawn:
        counted, (sd,) = _sums(known[:, None], codes, edges.size - 1, request.epsilon, (1.0,))
        total = max(1.0, float(counted.sum()))
        rising = np.maximum.accumulate(np.cumsum(counted[:, 0]))
        falling = np.minimum.accumulate(np.cumsum(counted[:, 0])[::-1])[::-1]
        below = np.concatenate([[0.0], np.clip((rising + falling) / 2, 0.0, total)])
        below += np.arange(below.size) * 1e-9  # rises strictly
        places = asked * total
        found = np.interp(places, below, edges)
        left = (found + bound) / (2 * bound) * (edges.size - 1)  # bins whose noise counts (1 − p)², the others p²
        reach = _REACH * sd * np.sqrt(left * (1 - asked) ** 2 + (edges.size - 1 - left) * asked**2)
        low, high = (np.interp(places + shift, below, edges) for shift in (-reach, reach))
        return Drawn(
            found,
            np.hypot((high - low) / 2 / _REACH, BIN_YEARS / math.sqrt(12)),
            np.array([total]),
            sd * math.sqrt(edges.size - 1),
        )

    return paid(terms, draw, mechanism="laplace", delta_dp=0.0, sensitivity=1.0, bounds=(-bound, bound))


def noised_table(
    values: ArrayLike | None, codes: ArrayLike, n_groups: int, bound: float, terms: Terms
) -> NoisyStatistic:
    """People, and the mean of values clipped to ±bound, by group: one ε for all groups, which are disjoint.

    codes: 0 … n_groups − 1 per person, −1 for nobody's group; the groups are fixed without the data.
    """
    groups = np.asarray(codes)
    if groups.dtype.kind not in "iu" or n_groups < 1 or ((groups < -1) | (groups >= n_groups)).any():
        raise InputError("a group number is out of range", next_step="code groups as 0 … n_groups−1, −1 for none")
    v, known = (np.zeros(groups.size), np.ones(groups.size)) if values is None else _scaled(values, bound)
    if v.shape != groups.shape:
        raise InputError("one group number per person is needed", next_step="code groups as 0 … n_groups−1")

    def draw(request: SpendRequest) -> Drawn:
        if values is None:
            counts, (one,) = _sums(known[:, None], groups, n_groups, request.epsilon, (1.0,))
            return Drawn(counts[:, 0], np.full(n_groups, one), counts[:, 0], one)
        sums, sd = _sums(np.column_stack([known, v]), groups, n_groups, request.epsilon, _TABLE_SHARES)
        n = np.maximum(1.0, sums[:, 0])
        mean = np.clip(sums[:, 1] / n, -1.0, 1.0)
        off = np.hypot(sd[1], mean * sd[0]) / n
        return Drawn(bound * mean, bound * off, sums[:, 0], sd[0])

    return paid(terms, draw, mechanism="laplace", delta_dp=0.0, sensitivity=1.0, bounds=(-bound, bound))


def noised_features(
    X: ArrayLike, centre: Array, scale: Array, radius: float, z: float, terms: Terms, delta_dp: float | None = None
) -> NoisyStatistic:
    """Means and SDs of features (one after the other in `value`), from sums of standardised values and their squares.

    Values are clipped to ±z and rows to norm `radius`, all public; a missing value counts as the public centre. The
    SD is around the noised mean.
    """
    raw = np.asarray(X, dtype=np.float64)
    there = np.asarray(np.isfinite(raw).any(axis=1), dtype=np.float64)
    rows = np.clip(np.where(np.isfinite(raw), (np.nan_to_num(raw) - centre) / scale, 0.0), -z, z)
    rows = clip_rows(rows, radius) * radius

    def draw(request: SpendRequest) -> Drawn:
        purse = Purse(request.mu or 0.0, 1)
        n = max(2.0, float(purse.sum("n", there[:, None], 1.0, _FEATURE_SHARES["n"])[0]))
        mean = purse.sum("x", rows, radius, _FEATURE_SHARES["x"]) / n
        square = purse.sum("xx", rows * rows, z * radius, _FEATURE_SHARES["xx"]) / n
        spread = np.sqrt(np.maximum(square - mean * mean, 0.0))
        off = np.hypot(purse.sd["x"], mean * purse.sd["n"]) / n
        wide = np.hypot(purse.sd["xx"], 2 * mean * purse.sd["x"]) / n / 2 / np.maximum(spread, 0.1)
        value, sd = np.concatenate([centre + scale * mean, scale * spread]), np.concatenate([scale * off, scale * wide])
        return Drawn(value, sd, np.array([n]), purse.sd["n"])

    small = check_delta(delta_dp, terms.n_public)
    mu_of(terms.epsilon, small)
    return paid(terms, draw, mechanism="gaussian", delta_dp=small, sensitivity=1.0, bounds=(-z, z))


def _scaled(values: ArrayLike, bound: float) -> tuple[Array, Array]:
    """Values over the bound, clipped to ±1, and 1 for who has one; 0 and 0 for who has none."""
    if not (math.isfinite(bound) and bound > 0):
        raise InputError("the clip must be above 0", next_step="give a public bound")
    v = np.asarray(values, dtype=np.float64).ravel()
    known = np.isfinite(v)
    return np.clip(np.where(known, v, 0.0) / bound, -1.0, 1.0), known.astype(np.float64)


def _sums(
    columns: Array, codes: Ints, n_groups: int, epsilon: float, shares: Sequence[float]
) -> tuple[Array, list[float]]:
    """(groups × columns) noised sums of entries in [−1, 1], and the SD of each column's noise.

    One person adds at most 1 to each column, in one group: each column is a Laplace release at its share of ε.
    """
    ints = np.clip(np.rint(columns * _ONE), -_ONE, _ONE).astype(np.int64)
    exact = np.zeros((n_groups, ints.shape[1]), dtype=np.int64)
    np.add.at(exact, codes[codes >= 0], ints[codes >= 0])
    scales = [_ONE / (epsilon * share) * (1 + NUMERIC_SLACK) for share in shares]
    noise = np.column_stack([sampler.discrete_laplace(scale, n_groups) for scale in scales])
    return np.asarray((exact + noise) / _ONE), [math.sqrt(2) * scale / _ONE for scale in scales]
