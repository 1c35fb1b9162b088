"""Reconstruction checks: what a set of weights gives away about itself, without any shadow model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.weights import Weights
from ..mean_fractions import denominator

_EXACT = 1e-9  # relative: numbers of one fit agree to this, rounded or separately noised ones do not
_ROUNDED = 0.01  # relative error of a product of two numbers of three significant figures


@dataclass(frozen=True)
class Reconstruction:
    """One check. `outcome`: holds | broken | recovered | nothing | not_applicable; `value` is a number it found."""

    check: str
    outcome: str
    text: str
    value: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As in `schemas/attack-report.schema.json`."""
        return {"check": self.check, "outcome": self.outcome, "text": self.text, "value": self.value}


def reconstruction(weights: Weights, n: int | None = None, *, public_scale: bool = False) -> list[Reconstruction]:
    """All checks on one set of weights.

    n: the true number of people, to say whether it was recovered. public_scale: centre and scale are public constants.
    """
    found = [_b2(weights), _b2sq(weights), _explained_variance(weights)]
    means = [weights.y_mean, *([] if public_scale else weights.x_mean[:50])]
    return [*found, *_n_from_shape(weights, n), *_n_from_spectrum(weights, n), *_n_from_means(means, n)]


def b2_identity_gap(weights: Weights) -> float | None:
    """|b2 + (1 − b1·γ)|: zero in every fit, and in every release that is one release."""
    if weights.b2 is None or weights.gamma is None:
        return None
    return abs(float(weights.b2[0]) + 1 - float(weights.b1 @ weights.gamma[0]))


def _b2(weights: Weights) -> Reconstruction:
    gap = b2_identity_gap(weights)
    if gap is None or weights.gamma is None:
        return Reconstruction("b2_identity", "not_applicable", "b2 or gamma is not among these weights")
    outcome, how = _holds(gap, float(np.abs(weights.b1 * weights.gamma[0]).sum()))
    text = f"b2 = −(1 − b1·gamma){how}: b2 adds nothing to what b1 and gamma tell"
    if outcome == "broken":
        text = "b2 ≠ −(1 − b1·gamma): noised one by one, or changed; the difference is a second look at the noise"
    return Reconstruction("b2_identity", outcome, text, gap)


def _b2sq(weights: Weights) -> Reconstruction:
    if weights.b2sq is None or weights.gammasq is None:
        return Reconstruction("b2sq_identity", "not_applicable", "b2sq or gammasq is not among these weights")
    expected = np.array([float(weights.b1 @ weights.gammasq[0]) - 1, float(weights.b1 @ weights.gammasq[1])])
    gap = float(np.abs(weights.b2sq - expected).max())
    outcome, how = _holds(gap, float(np.abs(weights.b1 * weights.gammasq[0]).sum()))
    word = "follows" if outcome == "holds" else "does not follow"
    return Reconstruction("b2sq_identity", outcome, f"b2sq {word} from b1 and gammasq{how}", gap)


def _holds(gap: float, size: float) -> tuple[str, str]:
    """Exactly, as far as three significant figures can tell, or not."""
    if gap <= _EXACT * max(1.0, size):
        return "holds", ""
    return ("holds", " (to rounding)") if gap <= _ROUNDED * (1 + size) else ("broken", "")


def variance_ratio(weights: Weights) -> float | None:
    """gamma·ysq_mean / (b1·explained variance), if it is the same for every component; (N − 1)/N in a fit."""
    w = weights
    if w.explained_variance is None or w.gamma is None or w.ysq_mean is None or w.components is None:
        return None
    variance = np.asarray(w.explained_variance)[: w.b1.size]
    if variance.size != w.b1.size:
        return None
    below = w.b1 * variance
    if float(np.abs(below).min(initial=1.0)) == 0:
        return None
    ratios = w.gamma[0] * w.ysq_mean / below
    middle = float(np.median(ratios))
    return middle if float(np.abs(ratios - middle).max()) <= 1e-7 * abs(middle) else math.nan


def _explained_variance(weights: Weights) -> Reconstruction:
    ratio = variance_ratio(weights)
    name = "explained_variance_identity"
    if ratio is None:
        return Reconstruction(name, "not_applicable", "explained variances are not among these weights")
    if math.isnan(ratio):
        return Reconstruction(
            name, "broken", "b1, gamma and explained variance disagree as they do after noise or rounding"
        )
    if 0 < 1 - ratio < 0.1:
        n = 1 / (1 - ratio)
        return Reconstruction(
            name,
            "recovered",
            "b1, gamma and explained variance agree to the last digit: no noise was added to them, and they give N",
            float(round(n)),
        )
    return Reconstruction(name, "holds", "b1, gamma and explained variance come from one statistic", ratio)


def _said(n: int | None, found: float) -> str:
    if n is None:
        return "a candidate for N"
    return "the true N" if round(found) == n else "not the true N"


def _n_from_shape(weights: Weights, n: int | None) -> Iterator[Reconstruction]:
    size = weights.n_components
    if n is not None and size in (n, n - 1):
        yield Reconstruction("n_from_shape", "recovered", "there are as many components as people", float(n))
    elif n is not None:
        yield Reconstruction("n_from_shape", "nothing", "no array has as many rows or columns as there are people")


def _n_from_spectrum(weights: Weights, n: int | None) -> Iterator[Reconstruction]:
    """Standardised features have total variance F·N/(N − 1): a full spectrum gives N."""
    variance, features = weights.explained_variance, len(weights.feature_names)
    if variance is None or variance.size < features:
        yield Reconstruction("n_from_spectrum", "not_applicable", "the spectrum is absent or not complete")
        return
    total = float(variance.sum())
    if total - features <= 1e-9 * features:
        yield Reconstruction("n_from_spectrum", "nothing", "the total variance gives no N")
        return
    found = total / (total - features)
    yield Reconstruction(
        "n_from_spectrum", "recovered", f"the total variance gives {_said(n, found)}", float(round(found))
    )


def _n_from_means(means: list[float], n: int | None) -> Iterator[Reconstruction]:
    """Means of values with d decimals are fractions over N·10ᵈ: their denominators give N or a divisor of it."""
    tried = (denominator(float(value) * 10**decimals) for value in means for decimals in range(4))
    found = Counter(q for q in tried if q is not None)
    if n is not None:
        best = max((q for q in found if n % q == 0 and q >= n / 4), default=None)
    else:
        best = max(found, key=lambda q: (found[q], q), default=None)
    if best is None:
        yield Reconstruction("n_from_means", "nothing", "no mean is a fraction that gives N")
        return
    word = _said(n, best) if n is None or best == n else "a divisor of N"
    yield Reconstruction("n_from_means", "recovered", f"continued fractions of the means give {word}", float(best))
