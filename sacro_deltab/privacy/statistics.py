"""Noised mean of deltas, and how any noised statistic is priced, paid and spoken of (`noised` has the others).

A mean of deltas has the sensitivity of a clipped mean only when the model behind the deltas does not itself move with
the person: it was fixed beforehand, or it is formally released. One training person was measured to move another set's
mean by four times the claimed sensitivity; then the label is `heuristic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..base.errors import InputError, PrivacyError
from . import sampler
from .accounting import epsilon_by_adjacency
from .blocks import GRID_BITS, Array, Ints
from .bounds import Provenance
from .job import check_delta
from .mechanisms import NUMERIC_SLACK, epsilon_of_mu, gaussian_sigma, integer_sigma, laplace_scale, mu_of
from .spend import Adjacency, Receipt, SpendRequest, just_drawn
from .statement import UNREGISTERED, PrivacyStatement

Mechanism = Literal["laplace", "gaussian"]
ModelSource = Literal["fixed_beforehand", "formally_released", "other"]
Spend = Callable[[SpendRequest], Receipt | None]
_ONE = 1 << GRID_BITS
PROOF_MEAN = "clipped values on an integer grid, exact discrete noise, a fixed or formally private model"
COUNT_SHARE = 0.2  # of ε (Laplace) or of μ² (Gaussian) that goes to N under add_remove


@dataclass(frozen=True)
class NoisyStatistic:
    """Noised means, the SD of their noise (same unit), and what may be said of it.

    n_noisy: the release's own noisy count of people, rounded, at least 1: the one N that may be used beside it; None
    where the exact, public N was. counts, count_sd: that of each group, with the SD of its noise.
    """

    value: Array
    noise_sd: Array
    sensitivity: float
    statement: PrivacyStatement
    n_noisy: int | None = None
    counts: Array | None = None
    count_sd: float = 0.0


def release_mean(
    values: ArrayLike,
    *,
    epsilon: float,
    spend: Spend,
    delta_dp: float | None = None,
    lower: float = -20.0,
    upper: float = 20.0,
    mechanism: Mechanism = "laplace",
    library: Literal["opendp", "diffprivlib"] = "opendp",
    adjacency: Adjacency = "replace_one",
    model_source: ModelSource = "other",
    bounds_provenance: Provenance = "unregistered",
    people_registered: bool = True,
    unit: Literal["person", "row"] = "person",
    outputs: tuple[str, ...] = ("delta_mean",),
    keep: Callable[[Callable[[], NoisyStatistic]], NoisyStatistic] | None = None,
) -> NoisyStatistic:
    """Noised mean of one value per person, clipped to [lower, upper] (years, for deltas).

    Parameters
    ----------
    values
        One per person; NaN and infinity become the value of [lower, upper] nearest 0.
    epsilon, delta_dp
        Budget. Laplace needs no δ (pure ε); Gaussian defaults to min(1e-6, 1/N²).
    adjacency
        `replace_one`: sensitivity (upper − lower)/N. `zero_out_N_public`: max(|lower|, |upper|)/N. `add_remove`: the
        sum and N are both noised and the mean is their ratio.
    library
        `opendp`: exact discrete noise on an integer grid. `diffprivlib`: floating-point noise, `heuristic`.
    model_source
        How the model behind the values came about; see the module.
    bounds_provenance
        Where [lower, upper] come from; only `ruleset` and `registered_file` allow `formal`.
    people_registered
        False where no register of the TRE holds these people: the label is at most `heuristic`.
    keep
        See `training.train_private`.
    """
    v = _clean(values, lower, upper)
    if adjacency != "add_remove" and v.size < 2:
        raise InputError("a mean needs at least two people", next_step="use a larger group")
    people = None if adjacency == "add_remove" else int(v.size)
    scale = laplace_scale(lower, upper, people, epsilon, adjacency)  # checks ε, bounds and relation
    small = check_delta(delta_dp, people) if mechanism == "gaussian" else 0.0
    largest, full = max(abs(lower), abs(upper)), upper - lower
    terms = Terms(
        float(epsilon), spend, adjacency, people, outputs, model_source, bounds_provenance, people_registered, unit,
        keep or just_drawn,
    )  # fmt: skip

    def drawn(request: SpendRequest) -> Drawn:
        if library == "diffprivlib":
            value, noise_sd = _diffprivlib(v, scale.sensitivity, request)
            return Drawn(value, noise_sd)
        return _exact(v, request, largest, full)

    return paid(
        terms, drawn, mechanism=mechanism, delta_dp=small, sensitivity=scale.sensitivity, bounds=(lower, upper),
        library=library,
    )  # fmt: skip


@dataclass(frozen=True)
class Terms:
    """What a noised statistic is asked for with; see `release_mean`. `n_public`: N where the relation takes it so."""

    epsilon: float
    spend: Spend
    adjacency: Adjacency
    n_public: int | None
    outputs: tuple[str, ...]
    model_source: ModelSource = "other"
    bounds_provenance: Provenance = "unregistered"
    people_registered: bool = True
    unit: Literal["person", "row"] = "person"
    keep: Callable[[Callable[[], NoisyStatistic]], NoisyStatistic] = just_drawn


@dataclass(frozen=True)
class Drawn:
    """What the noise gave: values with the SDs of their noise, noised counts of people with theirs."""

    value: Array
    noise_sd: Array
    counts: Array | None = None
    count_sd: float = 0.0


def paid(
    terms: Terms,
    draw: Callable[[SpendRequest], Drawn],
    *,
    mechanism: Mechanism,
    delta_dp: float,
    sensitivity: float,
    bounds: tuple[float, float],
    library: str = "opendp",
) -> NoisyStatistic:
    """Name the price, let it be paid, draw, and say what may be said; bounds: what each value was clipped to."""
    lower, upper = bounds
    mu = mu_of(terms.epsilon, delta_dp) if mechanism == "gaussian" else None
    label, reason = _label(terms.model_source, library, terms.bounds_provenance)
    if not terms.people_registered:
        label, reason = "heuristic", UNREGISTERED
    request = SpendRequest(
        mechanism=mechanism, epsilon=terms.epsilon, delta_dp=delta_dp, mu=mu, sigma=None if mu is None else 1 / mu,
        adjacency=terms.adjacency, unit=terms.unit, outputs=terms.outputs, kind="statistic", label=label,
        n_public=terms.n_public,
        detail={"lower": lower, "upper": upper, "model_source": terms.model_source, "library": library},
    )  # fmt: skip
    receipt = terms.spend(request)

    def drawn() -> NoisyStatistic:
        found = draw(request)
        word, why = label, reason
        if word == "formal" and (receipt is None or not receipt.pinned):
            word = "heuristic"
            why = "no ledger holds the spend" if receipt is None else "the ledger is not one the TRE has pinned"
        statement = PrivacyStatement(
            label=word, reason=why, mechanism=mechanism, epsilon=request.epsilon, delta_dp=delta_dp, mu=mu,
            sigma_unit=request.sigma, adjacency=terms.adjacency, unit=terms.unit,
            epsilon_by_adjacency=_all_relations(request, lower, upper),
            bounds={"lower": lower, "upper": upper, "provenance": terms.bounds_provenance},
            basis=None,
            sampler=sampler.SAMPLER if library == "opendp" else "diffprivlib, floating point",
            blocks={"noise": float(found.noise_sd.max())}, n_public=terms.n_public,
            proof=PROOF_MEAN if word == "formal" else None,
        )  # fmt: skip
        whole = None if found.counts is None else round(max(1.0, float(found.counts.sum())))
        return NoisyStatistic(
            found.value, found.noise_sd, sensitivity, statement if receipt is None else statement.with_ledger(receipt),
            whole, found.counts, found.count_sd,
        )  # fmt: skip

    return terms.keep(drawn)


def _clean(values: ArrayLike, lower: float, upper: float) -> Array:
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise PrivacyError("lower must be below upper, both finite", next_step="give public clipping bounds")
    try:
        v = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise InputError("the values are not numbers", next_step="give one number per person") from error
    return np.clip(np.where(np.isfinite(v), v, 0.0), lower, upper)


def _label(source: ModelSource, library: str, provenance: Provenance) -> tuple[Literal["formal", "heuristic"], str]:
    if source not in ("fixed_beforehand", "formally_released"):
        return "heuristic", (
            "the model behind the values was trained on these people without noise: one person moves every value, so "
            "the sensitivity of a clipped mean does not hold"
        )
    if library != "opendp":
        return "heuristic", "the noise was drawn in floating point, not by an exact discrete sampler"
    if provenance not in ("ruleset", "registered_file"):
        return "heuristic", "the clipping bounds are nobody's public record"
    return "formal", "clipped mean of values from a model that does not move with the person"


def _all_relations(request: SpendRequest, lower: float, upper: float) -> dict[str, float | None]:
    """ε of the same noise under each relation; a replaced person moves the mean by (upper−lower), a zeroed one less."""
    zeroed, replaced = max(abs(lower), abs(upper)), upper - lower
    own = replaced if request.adjacency == "replace_one" else zeroed
    if request.mu is not None:
        table = epsilon_by_adjacency(request.mu * zeroed / own, request.delta_dp, exact_n=request.n_public is not None)

        factor = 2.0 if request.n_public is None else replaced / own
        return {**table, "replace_one": epsilon_of_mu(request.mu * factor, request.delta_dp)}
    zero = request.epsilon * zeroed / own
    factor = 2.0 if request.n_public is None else replaced / own
    return {
        "zero_out_N_public": zero,
        "add_remove": zero if request.n_public is None else None,
        "replace_one": request.epsilon * factor,
    }


def _exact(v: Array, request: SpendRequest, largest: float, full: float) -> Drawn:
    """The mean (under `add_remove` of a noised N): a sum on the integer grid of `largest`, discrete noise."""
    ints = np.clip(np.rint(v / largest * _ONE), -_ONE, _ONE).astype(np.int64)
    reach = math.ceil(full / largest * _ONE) + 1 if request.adjacency == "replace_one" else _ONE
    share = 1.0 - COUNT_SHARE if request.adjacency == "add_remove" else 1.0
    noise, sd = _draw(request, reach, share, 1)
    total, total_sd = (ints.sum() + noise) / _ONE * largest, sd / _ONE * largest
    if request.adjacency != "add_remove":
        return Drawn(np.asarray(total / v.size), np.array([total_sd / v.size]))
    noise, count_sd = _draw(request, _ONE, COUNT_SHARE, 1)
    count = max(1.0, float(int(v.size * _ONE) + int(noise[0])) / _ONE)
    mean = np.clip(total / count, -largest, largest)
    spread = np.sqrt(total_sd**2 + (mean * count_sd / _ONE) ** 2) / count
    return Drawn(np.asarray(mean), np.asarray(spread), np.array([count]), count_sd / _ONE)


def _draw(request: SpendRequest, reach: int, share: float, size: int) -> tuple[Ints, float]:
    if request.mu is not None:
        sigma = integer_sigma(reach, request.mu * math.sqrt(share))
        return sampler.discrete_gaussian(sigma, size), sigma
    scale = reach / (request.epsilon * share) * (1 + NUMERIC_SLACK)
    return sampler.discrete_laplace(scale, size), math.sqrt(2) * scale


def _diffprivlib(v: Array, sensitivity: float, request: SpendRequest) -> tuple[Array, Array]:
    """diffprivlib's own mechanisms, for those who must use them."""
    import diffprivlib.mechanisms as dpl  # late: diffprivlib is heavy

    if request.n_public is None:
        raise PrivacyError("diffprivlib's mean needs a public N", next_step='use library="opendp" under add_remove')
    if request.mu is None:
        machine = dpl.Laplace(epsilon=request.epsilon, sensitivity=sensitivity)
        sd = math.sqrt(2) * sensitivity / request.epsilon
    else:
        machine = dpl.GaussianAnalytic(epsilon=request.epsilon, delta=request.delta_dp, sensitivity=sensitivity)
        sd = float(gaussian_sigma(sensitivity, request.epsilon, request.delta_dp))
    return np.array([float(machine.randomise(float(v.mean())))]), np.array([sd])
