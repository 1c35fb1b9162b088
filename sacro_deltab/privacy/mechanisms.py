"""Noise scales: analytic and classical Gaussian, Laplace, and the correction for integer Gaussian noise.

Everything here is arithmetic on public numbers. δ of differential privacy is `delta` in the signatures (the names the
public functions were given) and `delta_dp` everywhere else.

Sources: Balle & Wang 2018 (analytic Gaussian); Dwork & Roth 2014, theorem A.1 (classical Gaussian); Dong, Roth & Su
2022 (Gaussian differential privacy); Canonne, Kamath & Steinke 2020 (discrete Gaussian).
"""

from __future__ import annotations

import math
from typing import Literal

from ..base.errors import PrivacyError

Method = Literal["analytic", "classical"]

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
_SMALL_STEP = 0.1
_LARGEST_MU = 1e6  # ε is then about 5e11
# Gauss-Legendre on [0, 1], six points: exact to double precision for an analytic function on a step this small
_GAUSS = tuple(
    (0.5 + sign * x, w)
    for x, w in (
        (0.1193095930415985, 0.2339569672863455),
        (0.3306046932331323, 0.1803807865240693),
        (0.46623475710157603, 0.08566224618958517),
    )
    for sign in (-1, 1)
)

# Variance, in grid units squared, that the integer noise carries on top of the continuous one (see `integer_sigma`).
SMOOTHING_VARIANCE = 16.0
# Slack that covers double rounding in the root finder and in the scaling of blocks; ten thousand times their error.
NUMERIC_SLACK = 1e-9


class Sigma(float):
    """A noise standard deviation that knows whether it delivers its claim; otherwise an ordinary float.

    Attributes
    ----------
    valid
        True when noise of this size gives (ε, δ) for the sensitivity asked.
    delta_exact
        The δ that this σ really delivers at ε.
    theorem_applies
        For the classical formula: whether the textbook theorem (ε < 1) covers it. Always True for the analytic one.
    """

    valid: bool
    delta_exact: float
    theorem_applies: bool
    method: Method

    def __new__(cls, value: float, *, valid: bool, delta_exact: float, theorem_applies: bool, method: Method) -> Sigma:
        self = super().__new__(cls, value)
        self.valid = valid
        self.delta_exact = delta_exact
        self.theorem_applies = theorem_applies
        self.method = method
        return self

    @property
    def sigma(self) -> float:
        """The standard deviation as a plain float."""
        return float(self)


class LaplaceScale(float):
    """A Laplace scale b with the sensitivity it rests on; `sd` is √2·b."""

    sensitivity: float
    adjacency: str

    def __new__(cls, value: float, *, sensitivity: float, adjacency: str) -> LaplaceScale:
        self = super().__new__(cls, value)
        self.sensitivity = sensitivity
        self.adjacency = adjacency
        return self

    @property
    def scale(self) -> float:
        """The scale as a plain float."""
        return float(self)

    @property
    def sd(self) -> float:
        """Standard deviation of the noise."""
        return math.sqrt(2.0) * float(self)


def number_of(name: str, value: object) -> float:
    """A finite number, from anything that is one; a truth value or a text is none."""
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise PrivacyError(f"{name} must be a number", next_step=f"give {name} as a number")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise PrivacyError(f"{name} must be one number", next_step=f"give {name} as a number") from None
    if not math.isfinite(number):
        raise PrivacyError(f"{name} must be finite", next_step=f"give {name} as a number")
    return number


def positive(name: str, value: object) -> float:
    """A finite number above 0."""
    number = number_of(name, value)
    if number <= 0:
        raise PrivacyError(f"{name} must be above 0", next_step=f"give a positive {name}")
    return number


def checked_delta(delta: object) -> float:
    """δ strictly between 0 and 1."""
    number = number_of("delta", delta)
    if not 0 < number < 1:
        raise PrivacyError("delta must lie strictly between 0 and 1", next_step="use at most 1/N², for example 1e-6")
    return number


def _quotient(above: float, below: float, what: str) -> float:
    """above/below where it is a number that noise can be scaled to."""
    value = above / below if below > 0 else math.inf
    if not 0 < value < math.inf:
        raise PrivacyError(f"{what} is beyond the numbers of a computer", next_step="use another unit")
    return value


def log_delta_of_mu(mu: float, epsilon: float) -> float:
    """Natural log of the exact δ of a μ-Gaussian-DP release at ε (Balle & Wang 2018, eq. 6).

    Uses φ(a) = e^ε φ(b), so that δ = φ(a)·(Mills(−a) − Mills(b)): no cancellation of two nearly equal tails of
    very different size, relative error about 1e-14 where the textbook form loses four digits. For a small μ the two
    Mills ratios agree in nearly every digit; their difference is then the integral of the derivative.
    """
    from scipy.special import erfcx  # late: scipy is heavy

    a = mu / 2 - epsilon / mu
    b = mu / 2 + epsilon / mu
    if a > 8:  # δ is 1 to double precision or close; erfcx(−a/√2) would overflow from a = 37
        from scipy.special import log_ndtr

        upper = float(log_ndtr(a))
        lower = epsilon + float(log_ndtr(-b))
        return upper + math.log1p(-math.exp(min(lower - upper, -1e-300)))
    low, step = -a / math.sqrt(2), mu / math.sqrt(2)
    if step < _SMALL_STEP:
        gap = step * sum(w * (_TWO_BY_ROOT_PI - 2 * (t := low + step * x) * float(erfcx(t))) for x, w in _GAUSS)
    else:
        gap = float(erfcx(low) - erfcx(b / math.sqrt(2)))
    if gap <= 0:
        return -math.inf
    return -a * a / 2 + math.log(gap) - math.log(2)


def delta_of_mu(mu: float, epsilon: float) -> float:
    """Exact δ of a μ-Gaussian-DP release at ε ≥ 0."""
    eps = number_of("epsilon", epsilon)
    if eps < 0:
        raise PrivacyError("epsilon must be at least 0", next_step="give a positive epsilon")
    return math.exp(log_delta_of_mu(positive("mu", mu), eps))


def mu_of(epsilon: float, delta: float) -> float:
    """Largest μ whose Gaussian release is (ε, δ)-private: 1/σ for sensitivity 1."""
    from scipy.optimize import brentq  # late: scipy is heavy

    eps, log_target = positive("epsilon", epsilon), math.log(checked_delta(delta))
    low, high = 1e-3, 1.0
    while log_delta_of_mu(low, eps) > log_target:
        low, high = low / 10, low
        if low < 1e-18:
            raise PrivacyError("epsilon and delta are too small to calibrate noise for", next_step="raise epsilon")
    while log_delta_of_mu(high, eps) < log_target:
        low, high = high, high * 10
    root: float = brentq(
        lambda mu: log_delta_of_mu(mu, eps) - log_target, low, high, xtol=1e-300, rtol=9e-16, maxiter=999
    )
    return root


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Smallest ε ≥ 0 at which a μ-Gaussian-DP release has the given δ (exact conversion)."""
    from scipy.optimize import brentq  # late: scipy is heavy

    strength, log_target = positive("mu", mu), math.log(checked_delta(delta))
    if strength > _LARGEST_MU:
        raise PrivacyError("this noise is too small to give any ε", next_step="add noise")
    if log_delta_of_mu(strength, 0.0) <= log_target:
        return 0.0
    high = 1.0
    while log_delta_of_mu(strength, high) > log_target:
        high *= 2
    root: float = brentq(
        lambda eps: log_delta_of_mu(strength, eps) - log_target, 0.0, high, xtol=1e-30, rtol=9e-16, maxiter=999
    )
    return root


def gaussian_sigma(sensitivity: float, epsilon: float, delta: float, method: Method = "analytic") -> Sigma:
    """Standard deviation of Gaussian noise for an L2 sensitivity.

    Parameters
    ----------
    sensitivity
        L2 sensitivity, > 0, in the unit of the statistic.
    epsilon, delta
        Privacy parameters; ε > 0, 0 < δ < 1.
    method
        `"analytic"`: smallest σ that gives (ε, δ) (Balle & Wang 2018). `"classical"`: the governing documents' formula
        sensitivity·√(2 ln(1.25/δ))/ε, returned as it is; `.valid` is False where it does not deliver its δ.

    Raises
    ------
    PrivacyError
        A parameter is not positive, not finite, or δ is not below 1.
    """
    reach, eps, small = positive("sensitivity", sensitivity), positive("epsilon", epsilon), checked_delta(delta)
    if method == "analytic":
        value = _quotient(reach, mu_of(eps, small), "sigma")
        return Sigma(value, valid=True, delta_exact=small, theorem_applies=True, method=method)
    if method != "classical":
        raise PrivacyError(f"unknown method {method!r}", next_step='use "analytic" or "classical"')
    value = _quotient(reach * math.sqrt(2 * math.log(1.25 / small)), eps, "sigma")
    exact = delta_of_mu(reach / value, eps)
    return Sigma(value, valid=exact <= small, delta_exact=exact, theorem_applies=eps < 1, method=method)


def gaussian_epsilon(sigma: float, sensitivity: float, delta: float) -> float:
    """Exact ε of Gaussian noise σ for an L2 sensitivity at δ; the inverse of `gaussian_sigma(method="analytic")`."""
    return epsilon_of_mu(_quotient(positive("sensitivity", sensitivity), positive("sigma", sigma), "mu"), delta)


# the word of the neighbouring relation → (a replaced person moves the full range?, divided by N?)
_LAPLACE_WORDS = {
    "substitute_one_N_public": (True, True),
    "replace_one": (True, True),
    "zero_out_N_public": (False, True),
    "add_remove_sum_only": (False, False),
    "add_remove": (False, False),
    "substitute_one_sum_only": (True, False),
}


def laplace_scale(lower: float, upper: float, n: int | None, epsilon: float, adjacency: str) -> LaplaceScale:
    """Laplace scale for a mean (N public) or a sum (`*_sum_only`, `add_remove`) of values clipped to [lower, upper].

    Parameters
    ----------
    lower, upper
        Clipping bounds in the unit of the values, public, lower < upper.
    n
        Number of people, public, ≥ 1; not used (may be None) where only the sum is released.
    epsilon
        ε > 0.
    adjacency
        `substitute_one_N_public` or `replace_one`: mean, (upper−lower)/N. `zero_out_N_public`: mean, a missing person
        counts 0, max(|lower|, |upper|)/N. `add_remove_sum_only` or `add_remove`: sum, max(|lower|, |upper|).
        `substitute_one_sum_only`: sum, upper−lower.

    The model behind the values must be fixed beforehand or itself formally released: otherwise one person of the
    training set moves every value and this sensitivity is void.
    """
    eps = positive("epsilon", epsilon)
    low, high = number_of("lower", lower), number_of("upper", upper)
    if not low < high:
        raise PrivacyError("lower must be below upper", next_step="give public clipping bounds")
    if not isinstance(adjacency, str) or adjacency not in _LAPLACE_WORDS:
        raise PrivacyError(
            f"unknown neighbouring relation {adjacency!r}", next_step="use one of " + ", ".join(sorted(_LAPLACE_WORDS))
        )
    full_range, divided = _LAPLACE_WORDS[adjacency]
    reach = high - low if full_range else max(abs(low), abs(high))
    if divided:
        people = positive("n", n)
        if not people.is_integer():
            raise PrivacyError("n must be a whole number of people", next_step="give the public N")
        reach /= people
    return LaplaceScale(_quotient(reach, eps, "the scale"), sensitivity=reach, adjacency=adjacency)


def integer_sigma(sensitivity_int: int, mu: float) -> float:
    """σ of integer (discrete) Gaussian noise, in grid units, that is at least μ-private for an integer sensitivity.

    Proof. Let D(s) be the discrete Gaussian on ℤᵈ with variance parameter s². Take Z = x + N(0, s₁²I), a continuous
    Gaussian release, and post-process it to Y drawn from the discrete Gaussian with parameter τ centred at Z. Then
    P(Y = y) ∝ exp(−‖y−x‖²/2(s₁²+τ²)) up to the factor ∏ 1/θ(Zⱼ), θ being the periodic Gaussian sum, which by Poisson
    summation is constant to 1 ± 2.1·exp(−2π²τ²). So D(√(s₁²+τ²)) is a post-processing of the continuous release
    with σ = s₁ up to a factor (1 ± 4.3·exp(−2π²τ²))ᵈ. With τ² = 16 that is 1 ± 1e-136·d: for any d that fits in a
    computer it changes δ by less than 1e-120. Hence σ² = (Δ/μ)² + 16 makes the integer release as private as the
    continuous one, adaptively and under every composition rule that is stable under post-processing.
    """
    if sensitivity_int < 1:
        raise PrivacyError("the integer grid is too coarse for this bound", next_step="use a finer grid")
    spread = sensitivity_int / positive("mu", mu) * (1 + NUMERIC_SLACK)
    return math.sqrt(spread * spread + SMOOTHING_VARIANCE)
