"""Exact sums of what was spent: decimals, so that forty releases at ε = 0.1 cost 4 and not 4.000000000000002."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Context, Decimal
from typing import Any

from ..base.errors import InputError, PrivacyError
from ..privacy.mechanisms import delta_of_mu, epsilon_of_mu
from ..privacy.spend import BudgetLimits, SpendRequest, Totals

# Sums of shortest-form doubles are exact at this length for every budget anybody could hold; beyond it, they round up.
_EXACT = Context(prec=120, rounding=ROUND_UP)
_ADJACENCIES = ("zero_out_N_public", "add_remove", "replace_one")
_SAME_NOISE = 1e-3  # relative; printed numbers are rounded
_TOLERANCE = Decimal("1.000000001")  # for δ: 1/N² computed in floating point must pass (D-66)


def decimal(value: float | int) -> Decimal:
    """The number as written: Decimal of its shortest form."""
    return Decimal(repr(float(value)))


@dataclass(frozen=True)
class Tally:
    """What one partition has spent."""

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)
    mu_squared: Decimal = Decimal(0)
    gaussian: int = 0
    other: int = 0  # releases without a Gaussian-DP parameter
    exports: int = 0
    relations: tuple[str, ...] = ()  # neighbouring relation and unit of each Gaussian release, distinct

    def plus(self, request: SpendRequest) -> Tally:
        """With one more release."""
        mu = None if request.mu is None else decimal(request.mu)
        relation = () if mu is None else (f"{request.adjacency}/{request.unit}",)
        return Tally(
            _EXACT.add(self.epsilon, decimal(request.epsilon)),
            _EXACT.add(self.delta, decimal(request.delta_dp)),
            self.mu_squared if mu is None else _EXACT.add(self.mu_squared, _EXACT.multiply(mu, mu)),
            self.gaussian + (mu is not None),
            self.other + (mu is None),
            self.exports + (request.kind == "model"),
            tuple(sorted({*self.relations, *relation})),
        )

    def merged(self, other: Tally) -> Tally:
        """With everything another partition has spent."""
        return Tally(
            _EXACT.add(self.epsilon, other.epsilon),
            _EXACT.add(self.delta, other.delta),
            _EXACT.add(self.mu_squared, other.mu_squared),
            self.gaussian + other.gaussian,
            self.other + other.other,
            self.exports + other.exports,
            tuple(sorted({*self.relations, *other.relations})),
        )

    def totals(self, at_delta: float | None, known_exact: float | None = None) -> Totals:
        """As the rest of the package sees it; the exact ε is stated at `at_delta`.

        `known_exact` is what a spend entry says it is for these sums, so that showing a ledger loads no scipy.
        """
        mu = math.sqrt(self.mu_squared)
        if not self.gaussian and not self.other:
            exact: float | None = 0.0
        elif self.other or len(self.relations) != 1 or not at_delta or not 0 < at_delta < 1:
            exact = None
        elif known_exact is not None:
            exact = known_exact
        else:
            exact = epsilon_of_mu(mu, at_delta)
        return Totals(
            float(self.epsilon),
            float(self.delta),
            mu,
            exact,
            releases=self.gaussian + self.other,
            model_exports=self.exports,
        )

    def to_json(self) -> dict[str, Any]:
        """Decimal texts, so that nothing is lost."""
        return {
            "delta_dp": str(self.delta),
            "epsilon": str(self.epsilon),
            "exports": self.exports,
            "gaussian": self.gaussian,
            "mu_squared": str(self.mu_squared),
            "other": self.other,
            "relations": list(self.relations),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tally:
        """Inverse of `to_json`."""
        return cls(
            Decimal(data["epsilon"]),
            Decimal(data["delta_dp"]),
            Decimal(data["mu_squared"]),
            int(data["gaussian"]),
            int(data["other"]),
            int(data["exports"]),
            tuple(data["relations"]),
        )


def total(tallies: Iterable[Tally]) -> Tally:
    """Sum over partitions that share people."""
    summed = Tally()
    for tally in tallies:
        summed = summed.merged(tally)
    return summed


def checked_request(request: SpendRequest) -> SpendRequest:
    """Refuse a price that is no price, or that is below what the mechanism costs.

    Raises
    ------
    InputError
        ε not finite or not above 0, δ outside [0, 1), μ or σ not above 0, an unknown relation, unit, kind or label.
    PrivacyError
        (ε, δ) understates a Gaussian release of the stated μ, or σ one of the stated μ; or a formal Gaussian release
        states no μ, without which its price cannot be checked.
    """
    number = _number
    epsilon = number(request.epsilon, "epsilon", above=0)
    delta_dp = number(request.delta_dp, "delta_dp", below=1)
    mu = None if request.mu is None else number(request.mu, "mu", above=0)
    sigma = None if request.sigma is None else number(request.sigma, "sigma", above=0)
    for value, allowed, what in (
        (request.adjacency, _ADJACENCIES, "adjacency"),
        (request.unit, ("person", "row"), "unit"),
        (request.kind, ("model", "statistic"), "kind"),
        (request.label, ("formal", "heuristic"), "label"),
    ):
        if value not in allowed:
            raise InputError(f"{what} must be one of {', '.join(allowed)}")
    if request.n_public is not None and not number(request.n_public, "n_public", above=0).is_integer():
        raise InputError("n_public must be a whole number of people")
    if mu is not None and not covers(mu, epsilon, delta_dp):
        raise PrivacyError(
            "ε and δ are smaller than what a Gaussian release of this μ costs",
            next_step="Ask `privacy.gaussian_epsilon` for the ε of this noise, or add more noise.",
        )
    if mu is None and request.label == "formal" and "laplace" not in str(request.mechanism).lower():
        raise PrivacyError(
            "a formal release that is not Laplace must state its μ, or nobody can check its price",
            next_step="Give mu (sensitivity over σ), or call the release heuristic.",
        )
    if mu is not None and sigma is not None and sigma * mu < 1 - _SAME_NOISE:
        raise PrivacyError(
            "σ for unit sensitivity is below 1/μ: the noise is less than what is paid for",
            next_step="Give mu and sigma of the same release.",
        )
    return replace(request, epsilon=epsilon, delta_dp=delta_dp, mu=mu, sigma=sigma)


def covers(mu: float, epsilon: float, delta_dp: float) -> bool:
    """True when (ε, δ) is at least what a Gaussian release of parameter `mu` costs (relative tolerance 1e-6 in δ)."""

    return delta_of_mu(mu, epsilon) <= delta_dp * (1 + 1e-6)


def checked_limits(limits: BudgetLimits) -> BudgetLimits:
    """Limits as finite numbers; a limit that is NaN would let everything through."""
    return BudgetLimits(
        _number(limits.epsilon_per_release, "the limit of ε per release"),
        _number(limits.epsilon_total, "the limit of total ε"),
        _number(limits.delta_per_release, "the limit of δ per release"),
        _number(limits.delta_total, "the limit of total δ"),
    )


def _number(value: object, what: str, *, above: float | None = None, below: float | None = None) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise InputError(f"{what} must be a number")
    plain = float(value)  # numpy scalars become plain doubles
    if not math.isfinite(plain) or plain < 0 or (above is not None and plain <= above):
        raise InputError(f"{what} must be a finite number {'above' if above is not None else 'of at least'} 0")
    if below is not None and plain >= below:
        raise InputError(f"{what} must be below {below}")
    return plain


def refusal(request: SpendRequest, before: Tally, limits: BudgetLimits) -> str | None:
    """Why the limits do not cover the request, or None. All limits are inclusive; the plain sum decides (D-60)."""
    after = before.plus(request)
    if decimal(request.epsilon) > decimal(limits.epsilon_per_release):
        return f"ε {request.epsilon:g} is above the limit of {limits.epsilon_per_release:g} for one release"
    if decimal(request.delta_dp) > decimal(limits.delta_per_release) * _TOLERANCE:
        return f"δ {request.delta_dp:g} is above the limit of {limits.delta_per_release:g} for one release"
    if after.epsilon > decimal(limits.epsilon_total):
        return f"total ε would be {float(after.epsilon):g}, above the limit of {limits.epsilon_total:g}"
    if after.delta > decimal(limits.delta_total) * _TOLERANCE:
        return f"total δ would be {float(after.delta):g}, above the limit of {limits.delta_total:g}"
    return None


def remaining(spent: Tally, limits: BudgetLimits) -> tuple[float, float]:
    """(ε, δ) left, each at least 0 and rounded down, so that asking for exactly this much is granted."""
    left = []
    for limit, used in ((limits.epsilon_total, spent.epsilon), (limits.delta_total, spent.delta)):
        value = float(max(Decimal(0), decimal(limit) - used))
        while value > 0 and decimal(value) + used > decimal(limit):
            value = math.nextafter(value, 0.0)
        left.append(value)
    return left[0], left[1]


def request_of(body: Mapping[str, Any]) -> tuple[SpendRequest, BudgetLimits]:
    """Request and limits as a spend entry's body holds them."""
    names = SpendRequest.__dataclass_fields__
    fields = {name: body[name] for name in names}
    return SpendRequest(**{**fields, "outputs": tuple(body["outputs"])}), BudgetLimits(**body["limits"])
