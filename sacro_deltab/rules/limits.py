"""Named limits: the only arithmetic of the rule language, in plain `math`, each with its own tests.

A limit that is undefined for the facts given (N = 0, δ = 0 for a Gaussian) is None, and a condition on it fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Facts = Callable[[str], Any]  # returns a checked value or raises MissingFactError
Parameters = Mapping[str, Any]


class MissingFactError(Exception):
    """A limit needs a fact that nobody supplied."""

    def __init__(self, fact: str) -> None:
        super().__init__(fact)
        self.fact = fact


@dataclass(frozen=True)
class NamedLimit:
    """One limit: the facts it may need and how it is worked out."""

    name: str
    needs: tuple[str, ...]
    work_out: Callable[[Facts, Parameters], float | None]
    symbol: str  # how it reads where numbers may not be shown


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _delta_of_mu(mu: float, epsilon: float) -> float:
    """δ at which a μ-GDP mechanism is (ε, δ)-DP (Balle and Wang 2018, theorem 8; Dong et al. 2022)."""
    a, b = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    return _normal_cdf(a) - math.exp(epsilon) * _normal_cdf(b)


def analytic_sigma(sensitivity: float, epsilon: float, delta: float) -> float | None:
    """Smallest σ for (ε, δ) at L2 sensitivity `sensitivity`; None where there is none (δ = 0, ε > 700)."""
    if not (0.0 < epsilon <= 700.0 and 0.0 < delta < 1.0 and sensitivity > 0.0):
        return None
    low, high = 0.0, 1.0
    while _delta_of_mu(high, epsilon) < delta:
        low, high = high, high * 2.0
        if high > 1e6:
            return None
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if middle > 0.0 and _delta_of_mu(middle, epsilon) > delta:
            high = middle
        else:
            low = middle
    return sensitivity / low if low > 0.0 else None


def classical_sigma(sensitivity: float, epsilon: float, delta: float) -> float | None:
    """The documents' σ = Δ √(2 ln(1.25/δ)) / ε; None for δ = 0 or δ ≥ 1.25."""
    if not (epsilon > 0.0 and 0.0 < delta < 1.25):
        return None
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def _one_over_n_squared(fact: Facts, _p: Parameters) -> float | None:
    n = fact("n")
    return 1.0 / (n * n) if n > 0 else None


def _one_over_n(fact: Facts, _p: Parameters) -> float | None:
    n = fact("n")
    return 1.0 / n if n > 0 else None


def _certified_delta(fact: Facts, p: Parameters) -> float | None:
    square = _one_over_n_squared(fact, p)
    return None if square is None else min(float(p["delta_dp_cap"]), square)


def _gaussian_analytic(fact: Facts, _p: Parameters) -> float | None:
    return analytic_sigma(fact("dp.sensitivity"), fact("dp.epsilon"), fact("dp.delta"))


def _gaussian_classical(fact: Facts, _p: Parameters) -> float | None:
    return classical_sigma(fact("dp.sensitivity"), fact("dp.epsilon"), fact("dp.delta"))


def _laplace_scale(fact: Facts, _p: Parameters) -> float | None:
    return float(fact("dp.sensitivity") / fact("dp.epsilon"))


def _mean_sensitivity(fact: Facts, _p: Parameters) -> float | None:
    relation, n = fact("dp.adjacency"), fact("n")
    if relation == "add_remove":
        return float(fact("dp.value_max_abs"))
    if n <= 0 or relation not in ("replace_one", "zero_out_N_public"):
        return None
    return float(fact("dp.value_range" if relation == "replace_one" else "dp.value_max_abs") / n)


def _two_clip_over_n(fact: Facts, _p: Parameters) -> float | None:
    relation, n, clip = fact("dp.adjacency"), fact("n"), fact("dp.clip_norm")
    if relation == "add_remove":
        return float(clip)
    if n <= 0 or relation not in ("replace_one", "zero_out_N_public"):
        return None
    return float((2.0 if relation == "replace_one" else 1.0) * clip / n)


_GAUSS = ("dp.sensitivity", "dp.epsilon", "dp.delta")

LIMITS: dict[str, NamedLimit] = {
    limit.name: limit
    for limit in (
        NamedLimit("one_over_n_squared", ("n",), _one_over_n_squared, "1/N²"),
        NamedLimit("one_over_n", ("n",), _one_over_n, "1/N"),
        NamedLimit("certified_delta", ("n",), _certified_delta, "the smaller of the δ cap and 1/N²"),
        NamedLimit("gaussian_sigma_analytic", _GAUSS, _gaussian_analytic, "the exact Gaussian σ"),
        NamedLimit("gaussian_sigma_classical", _GAUSS, _gaussian_classical, "the classical Gaussian σ"),
        NamedLimit("laplace_scale", ("dp.sensitivity", "dp.epsilon"), _laplace_scale, "sensitivity ÷ ε"),
        NamedLimit(
            "mean_sensitivity",
            ("dp.adjacency", "n", "dp.value_range", "dp.value_max_abs"),
            _mean_sensitivity,
            "what one person can move the clipped mean",
        ),
        NamedLimit(
            "two_clip_over_n",
            ("dp.adjacency", "n", "dp.clip_norm"),
            _two_clip_over_n,
            "what one person can move the clipped average",
        ),
    )
}

OTHER_FACT = "fact "  # a limit `fact NAME` is the value of another fact


def named_limit(name: str) -> NamedLimit:
    """The limit of this name, or the value of another fact; KeyError for neither."""
    if not name.startswith(OTHER_FACT):
        return LIMITS[name]
    other = name.removeprefix(OTHER_FACT)
    return NamedLimit(name, (other,), lambda fact, _numbers: fact(other), other)


# (stricter, looser) for "at least": the classical σ is never below the analytic one where ε ≤ 1, the most a release
# may spend; for "at most": min(cap, 1/N²) ≤ 1/N² ≤ 1/N.
AT_LEAST_ORDER = (("gaussian_sigma_classical", "gaussian_sigma_analytic"),)
AT_MOST_ORDER = (
    ("certified_delta", "one_over_n_squared"),
    ("one_over_n_squared", "one_over_n"),
    ("certified_delta", "one_over_n"),
)
