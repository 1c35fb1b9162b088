"""What several releases on the same people cost together.

The plain sum decides (it needs no assumption). Beside it stand the exact composition of Gaussians (√Σμ², Dong, Roth &
Su 2022), zCDP (Bun & Steinke 2016, converted as in Canonne, Kamath & Steinke 2020), the bound of Kairouz, Oh &
Viswanath 2015, and, on request, privacy-loss distributions through dp-accounting (the `accounting` extra).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..base.errors import PrivacyError
from .mechanisms import checked_delta, epsilon_of_mu, mu_of, number_of, positive


@dataclass(frozen=True)
class EpsilonDelta:
    """A pair (ε, δ); also readable as a mapping: `pair["epsilon"]`."""

    epsilon: float
    delta: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def __getitem__(self, key: str) -> float:
        if key not in ("epsilon", "delta"):
            raise KeyError(key)
        return float(getattr(self, key))


@dataclass(frozen=True)
class Release:
    """One release as the accountant sees it.

    Gaussian: `sigma` and `sensitivity_l2` (any unit), or `mu`. Laplace: `scale` and `sensitivity_l1`. `pure`: a release
    known only by its ε (δ = 0). `count` repeats it. ε and δ claimed are what the plain sum adds.
    """

    mechanism: str
    epsilon: float
    delta_dp: float = 0.0
    mu: float | None = None
    sigma: float | None = None
    sensitivity: float = 1.0
    scale: float | None = None
    count: int = 1

    @property
    def strength(self) -> float | None:
        """μ of one repetition, the larger where μ and σ are both stated; None where the mechanism is not Gaussian."""
        if not self.mechanism.startswith(("gaussian", "discrete_gaussian")):
            return None
        stated = [] if self.mu is None else [self.mu]
        if self.sigma is not None:
            stated.append(self.sensitivity / self.sigma)
        return max(stated, default=None)

    @property
    def rho(self) -> float | None:
        """zCDP of one repetition: μ²/2 for a Gaussian, ε²/2 for pure ε; None where neither holds."""
        strength = self.strength
        if strength is not None:
            return strength * strength / 2
        return self.pure_epsilon * self.pure_epsilon / 2 if self.delta_dp == 0 else None

    @property
    def pure_epsilon(self) -> float:
        """ε of the mechanism itself: sensitivity/scale for Laplace, the claim otherwise."""
        return self.sensitivity / self.scale if self.scale else self.epsilon

    def price(self, target_delta: float) -> tuple[float, float]:
        """(ε, δ) of one repetition for the plain sum: the claim, or what the noise itself costs where that is more.

        A claim below what σ or the scale gives is not believed; without a δ of its own a Gaussian is priced at the
        target.
        """
        strength = self.strength
        if strength is None:
            return (max(self.epsilon, self.pure_epsilon), self.delta_dp)
        small = self.delta_dp if self.delta_dp > 0 else target_delta
        real = epsilon_of_mu(strength, small)
        return (self.epsilon if self.epsilon >= real * (1 - 1e-9) else real, small)

    @classmethod
    def read(cls, source: Any) -> Release:
        """Read a `Release`, a `SpendRequest`, a privacy statement or a dictionary in the words of the cases."""
        if isinstance(source, cls):
            return source.checked()
        get = source.get if isinstance(source, Mapping) else lambda key, default=None: getattr(source, key, default)

        def first(*names: str, default: float | None = None) -> Any:
            return next((value for value in map(get, names) if value is not None), default)

        mechanism = first("mechanism")
        if not isinstance(mechanism, str) or not mechanism.strip():
            raise PrivacyError("a release names no mechanism", next_step='give "mechanism": "gaussian" or "laplace"')

        def above_zero(*names: str) -> float | None:
            found = first(*names)
            return None if found is None else positive(names[0], found)

        reach = above_zero("sensitivity_l2", "sensitivity_l1", "sensitivity")
        count = above_zero("count")
        return cls(
            mechanism=mechanism,
            epsilon=number_of("epsilon", first("epsilon_claimed", "epsilon", default=0.0)),
            delta_dp=number_of("delta", first("delta_claimed", "delta_dp", "delta", default=0.0)),
            mu=above_zero("mu"),
            sigma=above_zero("sigma", "sigma_unit"),
            sensitivity=1.0 if reach is None else reach,
            scale=above_zero("scale"),
            count=1 if count is None else count,  # type: ignore[arg-type]
        ).checked()

    def checked(self) -> Release:
        """The same release, where its numbers make sense."""
        count = positive("count", self.count)
        if not count.is_integer():
            raise PrivacyError("the count of a release must be whole", next_step="correct the release")
        if number_of("epsilon", self.epsilon) < 0 or not 0 <= number_of("delta", self.delta_dp) < 1:
            raise PrivacyError("a release has an ε below 0 or a δ outside [0, 1)", next_step="correct the release")
        for name in ("mu", "sigma", "scale", "sensitivity"):
            value = getattr(self, name)
            if value is not None:
                positive(name, value)
        for noise in (self.sigma, self.scale):
            if noise is not None and not 0 < self.sensitivity / noise < math.inf:
                raise PrivacyError("the noise of a release does not fit its sensitivity", next_step="correct the unit")
        return replace(self, count=int(count), mechanism=self.mechanism.strip().lower())


@dataclass(frozen=True)
class Composition:
    """Cost of all releases together at `target_delta`. None where a rule does not cover the mix."""

    basic: EpsilonDelta
    advanced_kov: EpsilonDelta
    target_delta: float
    mu_gdp_total: float | None
    rho_zcdp_total: float | None
    epsilon_exact_gdp: float | None
    epsilon_zcdp_cks: float | None
    epsilon_pld: float | None = None
    epsilon_mixed: float | None = None  # exact Gaussians beside a plain sum of pure ε
    count: int = 0

    @property
    def epsilon_smallest(self) -> float | None:
        """The least of the totals that are proved at `target_delta`."""
        plain = self.basic.epsilon if self.basic.delta <= self.target_delta else None
        found = (plain, self.epsilon_exact_gdp, self.epsilon_zcdp_cks, self.epsilon_pld, self.epsilon_mixed)
        return min((value for value in found if value is not None), default=None)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """ε of ρ-zCDP at δ, by the conversion of Canonne, Kamath & Steinke 2020 (corollary 13)."""
    from scipy.optimize import minimize_scalar  # late: scipy is heavy

    if rho <= 0:
        return 0.0

    def bound(log_excess: float) -> float:
        alpha = 1 + math.exp(log_excess)
        return rho * alpha + math.log(1 / (alpha * delta)) / (alpha - 1) + math.log1p(-1 / alpha)

    start = math.log(max(math.sqrt(math.log(1 / delta) / rho), 1e-3))
    best = minimize_scalar(bound, bounds=(start - 8, start + 8), method="bounded", options={"xatol": 1e-12})
    return max(0.0, float(best.fun))


def advanced(prices: Sequence[tuple[float, float, int]], slack: float) -> EpsilonDelta:
    """Kairouz, Oh & Viswanath 2015, theorem 3.5, for (ε, δ, how often); never above the plain sum of ε."""
    plain = sum(eps * count for eps, _, count in prices)
    squares = sum(eps * eps * count for eps, _, count in prices)
    drift = sum(eps * math.tanh(eps / 2) * count for eps, _, count in prices)
    delta = sum(small * count for _, small, count in prices) + slack
    if squares == 0:
        return EpsilonDelta(0.0, delta)
    first = drift + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / slack))
    second = drift + math.sqrt(2 * squares * math.log(1 / slack))
    return EpsilonDelta(min(plain, first, second), delta)


def compose(
    releases: Iterable[Any], delta: float, *, advanced_slack: float | None = None, pld: bool = False
) -> Composition:
    """Compose releases on the same people.

    Parameters
    ----------
    releases
        `Release`, `SpendRequest`, privacy statements, or dictionaries with `mechanism`, `sigma` or `scale`,
        `sensitivity_l2` or `sensitivity_l1`, `epsilon_claimed`, `delta_claimed`, `count`.
    delta
        δ at which the exact, zCDP and PLD totals are given.
    advanced_slack
        Slack δ of the KOV bound; `delta` when omitted.
    pld
        Also compute `epsilon_pld`, an upper bound, with dp-accounting.

    Raises
    ------
    PrivacyError
        A mechanism without a known cost: it never counts as free.
    """
    delta = checked_delta(delta)
    slack = delta if advanced_slack is None else checked_delta(advanced_slack)
    if isinstance(releases, Mapping | str | bytes) or not isinstance(releases, Iterable):
        raise PrivacyError("releases must be a list", next_step="give the releases as a list, one item each")
    read = [Release.read(item) for item in releases]
    for item in read:
        if item.strength is None and item.scale is None and item.epsilon <= 0:
            raise PrivacyError(f"the cost of a {item.mechanism!r} release is not known", next_step="give its ε and δ")
    prices = [(*item.price(delta), item.count) for item in read]
    basic = EpsilonDelta(sum(eps * count for eps, _, count in prices), sum(small * count for _, small, count in prices))
    strengths = [item.strength for item in read]
    mu = rho = exact = zcdp = None
    if all(value is not None for value in strengths):
        mu = math.sqrt(sum(item.count * (item.strength or 0.0) ** 2 for item in read))
        exact = epsilon_of_mu(mu, delta) if mu > 0 else 0.0
    pure = [item for item in read if item.strength is None]
    mixed = None
    if all(item.delta_dp == 0 for item in pure):
        gauss = math.sqrt(sum(item.count * item.strength**2 for item in read if item.strength is not None))
        mixed = (epsilon_of_mu(gauss, delta) if gauss > 0 else 0.0) + sum(i.count * i.pure_epsilon for i in pure)
    rhos = [item.rho for item in read]
    if all(value is not None for value in rhos):
        rho = sum(item.count * (item.rho or 0.0) for item in read)
        zcdp = epsilon_of_rho(rho, delta)
    return Composition(
        basic=basic,
        advanced_kov=advanced(prices, slack),
        target_delta=delta,
        mu_gdp_total=mu,
        rho_zcdp_total=rho,
        epsilon_exact_gdp=exact,
        epsilon_zcdp_cks=zcdp,
        epsilon_pld=epsilon_pld(read, delta) if pld else None,
        epsilon_mixed=mixed,
        count=sum(item.count for item in read),
    )


def epsilon_pld(releases: Iterable[Any], delta: float, *, discretisation: float = 1e-3) -> float:
    """Upper bound on ε by privacy-loss distributions; needs the `accounting` extra (dp-accounting).

    Sensitivities are folded into the noise first, and the neighbouring relation handed over is always add-or-remove:
    dp-accounting gives different answers for its replace relation depending on the accountant.
    """
    try:
        import dp_accounting
        from dp_accounting.pld import PLDAccountant
    except ImportError as error:
        raise PrivacyError(
            "privacy-loss distributions need dp-accounting", next_step="pip install 'sacro-deltab[accounting]'"
        ) from error
    accountant = PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=discretisation
    )
    for item in map(Release.read, releases):
        strength = item.strength
        if strength is not None:
            event = dp_accounting.GaussianDpEvent(1 / strength)
        elif item.scale is not None:
            event = dp_accounting.LaplaceDpEvent(item.scale / item.sensitivity)
        else:
            raise PrivacyError(f"no privacy-loss distribution for {item.mechanism!r}", next_step="use the plain sum")
        accountant.compose(event, item.count)
    return float(accountant.get_epsilon(delta))


def compose_nodes(nodes: Sequence[Any], *, disjoint_declared: bool, delta: float) -> Composition:
    """Cost for one person of releases made by several TREs.

    Parallel composition (the largest single cost) counts only where disjointness of the people has been *declared*:
    nobody is in two nodes and nobody has two sessions. Otherwise everything adds up. A node given as (ε, δ) alone
    is taken as an analytic Gaussian of that cost for the exact total.
    """
    if not nodes:
        raise PrivacyError("no nodes to compose", next_step="give at least one node")
    read = []
    for node in nodes:
        source = dict(node) if isinstance(node, Mapping) else node
        if isinstance(source, dict) and "mechanism" not in source:
            small = float(source.get("delta", source.get("delta_dp", 0.0)))
            eps = float(source["epsilon"])
            source = {"mechanism": "gaussian", "epsilon": eps, "delta_dp": small, "mu": mu_of(eps, small)}
        read.append(Release.read(source))
    if not disjoint_declared:
        return compose(read, delta)
    singles = [compose([item], delta) for item in read]
    worst = max(singles, key=lambda single: (single.basic.epsilon, single.basic.delta))
    top = EpsilonDelta(max(s.basic.epsilon for s in singles), max(s.basic.delta for s in singles))
    exact = [s.epsilon_exact_gdp for s in singles]
    return Composition(
        basic=top,
        advanced_kov=worst.advanced_kov,
        target_delta=delta,
        mu_gdp_total=max((s.mu_gdp_total or 0.0 for s in singles), default=None),
        rho_zcdp_total=max((s.rho_zcdp_total or 0.0 for s in singles), default=None),
        epsilon_exact_gdp=None if None in exact else max(value for value in exact if value is not None),
        epsilon_zcdp_cks=worst.epsilon_zcdp_cks,
        count=worst.count,
    )


def group_epsilon(mu: float, size: int, delta: float) -> float:
    """Exact ε for `size` rows of one person under a μ-private release of rows: a (size·μ)-private release of people."""
    if size < 1:
        raise PrivacyError("a group has at least one row", next_step="give the largest number of visits per person")
    return epsilon_of_mu(mu * size, delta)


def epsilon_by_adjacency(mu_zero_out: float, delta: float, *, exact_n: bool) -> dict[str, float | None]:
    """ε of one release under all three neighbouring relations, from its μ under zeroing a record.

    `replace_one` is twice as far by the triangle inequality (proved; the smaller constants one finds by search are
    not). `add_remove` is None when an exact N was used: then a person's presence shows in N itself and no ε holds.
    """
    zero = epsilon_of_mu(mu_zero_out, delta)
    return {
        "zero_out_N_public": zero,
        "add_remove": None if exact_n else zero,
        "replace_one": epsilon_of_mu(2 * mu_zero_out, delta),
    }
