"""Noised summary statistics of deltas: means of clipped values, whole cohort or by group.

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

    value and noise_sd: one number per group, or one for the whole cohort. n_noisy: the release's own noisy count,
    rounded, at least 1 (`add_remove` only): the one N that may be used beside it.
    """

    value: Array
    noise_sd: Array
    sensitivity: float
    statement: PrivacyStatement
    n_noisy: int | None = None


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
    one_group = np.zeros(v.size, dtype=np.int64)
    return _release(
        v, one_group, 1, epsilon=epsilon, spend=spend, delta_dp=delta_dp, lower=lower, upper=upper, mechanism=mechanism,
        library=library, adjacency=adjacency, model_source=model_source, bounds_provenance=bounds_provenance, unit=unit,
        outputs=outputs, keep=keep or just_drawn, people_registered=people_registered,
    )  # fmt: skip


def release_group_means(
    values: ArrayLike,
    groups: ArrayLike,
    n_groups: int,
    *,
    epsilon: float,
    spend: Spend,
    delta_dp: float | None = None,
    lower: float = -20.0,
    upper: float = 20.0,
    mechanism: Mechanism = "laplace",
    model_source: ModelSource = "other",
    bounds_provenance: Provenance = "unregistered",
    unit: Literal["person", "row"] = "person",
    outputs: tuple[str, ...] = ("delta_mean_other",),
) -> NoisyStatistic:
    """Noised means of disjoint groups, one ε for all of them: each person is in exactly one group.

    `groups` holds 0 … n_groups−1 per person; group sizes are public, so the relation is `zero_out_N_public`: replacing
    a person could move them to another group and change two sizes.
    """
    v = _clean(values, lower, upper)
    codes = np.asarray(groups)
    if codes.shape != v.shape or codes.dtype.kind not in "iu" or codes.size == 0:
        raise InputError("one whole group number per person is needed", next_step="code groups as 0 … n_groups−1")
    if codes.min() < 0 or codes.max() >= n_groups:
        raise InputError("a group number is out of range", next_step="code groups as 0 … n_groups−1")
    return _release(
        v, codes.astype(np.int64), n_groups, epsilon=epsilon, spend=spend, delta_dp=delta_dp, lower=lower, upper=upper,
        mechanism=mechanism, library="opendp", adjacency="zero_out_N_public", model_source=model_source,
        bounds_provenance=bounds_provenance, unit=unit, outputs=outputs,
    )  # fmt: skip


def _clean(values: ArrayLike, lower: float, upper: float) -> Array:
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise PrivacyError("lower must be below upper, both finite", next_step="give public clipping bounds")
    try:
        v = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise InputError("the values are not numbers", next_step="give one number per person") from error
    return np.clip(np.where(np.isfinite(v), v, 0.0), lower, upper)


def _release(
    v: Array,
    codes: Ints,
    n_groups: int,
    *,
    epsilon: float,
    spend: Spend,
    delta_dp: float | None,
    lower: float,
    upper: float,
    mechanism: Mechanism,
    library: str,
    adjacency: Adjacency,
    model_source: ModelSource,
    bounds_provenance: Provenance,
    unit: Literal["person", "row"],
    outputs: tuple[str, ...],
    keep: Callable[[Callable[[], NoisyStatistic]], NoisyStatistic] = just_drawn,
    people_registered: bool = True,
) -> NoisyStatistic:
    people = None if adjacency == "add_remove" else int(v.size)
    sizes = np.bincount(codes, minlength=n_groups).astype(float)
    if people is not None and (sizes == 0).any():
        raise InputError("a group is empty", next_step="leave empty groups out")
    scale = laplace_scale(lower, upper, people, epsilon, adjacency)  # checks ε, bounds and relation
    small = check_delta(delta_dp, people) if mechanism == "gaussian" else 0.0
    mu = mu_of(float(epsilon), small) if mechanism == "gaussian" else None
    label, reason = _label(model_source, library, bounds_provenance)
    if not people_registered:
        label, reason = "heuristic", UNREGISTERED
    request = SpendRequest(
        mechanism=mechanism, epsilon=float(epsilon), delta_dp=small, mu=mu, sigma=None if mu is None else 1 / mu,
        adjacency=adjacency, unit=unit, outputs=outputs, kind="statistic", label=label, n_public=people,
        detail={"lower": lower, "upper": upper, "model_source": model_source, "library": library},
    )  # fmt: skip
    receipt = spend(request)
    largest, full = max(abs(lower), abs(upper)), upper - lower

    def drawn() -> NoisyStatistic:
        if library == "diffprivlib":
            value, noise_sd = _diffprivlib(v, scale.sensitivity, request)
            count = None
        else:
            value, noise_sd, count = _exact(v, codes, sizes, request, largest, full)
        return NoisyStatistic(
            value, noise_sd, scale.sensitivity, claimed(float(noise_sd.max())), None if count is None else round(count)
        )

    def claimed(noise: float) -> PrivacyStatement:
        word, why = label, reason
        if word == "formal" and (receipt is None or not receipt.pinned):
            word = "heuristic"
            why = "no ledger holds the spend" if receipt is None else "the ledger is not one the TRE has pinned"
        statement = PrivacyStatement(
            label=word, reason=why, mechanism=mechanism, epsilon=request.epsilon, delta_dp=small, mu=mu,
            sigma_unit=request.sigma, adjacency=adjacency, unit=unit,
            epsilon_by_adjacency=_all_relations(request, lower, upper),
            bounds={"lower": lower, "upper": upper, "provenance": bounds_provenance},
            basis=None,
            sampler=sampler.SAMPLER if library == "opendp" else "diffprivlib, floating point",
            blocks={"mean": noise}, n_public=people,
            proof=PROOF_MEAN if word == "formal" else None,
        )  # fmt: skip
        return statement if receipt is None else statement.with_ledger(receipt)

    return keep(drawn)


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


def _exact(
    v: Array, codes: Ints, sizes: Array, request: SpendRequest, largest: float, full: float
) -> tuple[Array, Array, float | None]:
    """(means, SDs of their noise, noisy N under `add_remove`): sums on the integer grid of `largest`, discrete noise.

    Groups are disjoint, so each cell carries full noise.
    """
    ints = np.clip(np.rint(v / largest * _ONE), -_ONE, _ONE).astype(np.int64)
    sums = np.zeros(sizes.size, dtype=np.int64)
    np.add.at(sums, codes, ints)
    reach = math.ceil(full / largest * _ONE) + 1 if request.adjacency == "replace_one" else _ONE
    share = 1.0 - COUNT_SHARE if request.adjacency == "add_remove" else 1.0
    noise, sd = _draw(request, reach, share, sums.size)
    total, total_sd = (sums + noise) / _ONE * largest, sd / _ONE * largest
    if request.adjacency != "add_remove":
        return np.asarray(total / sizes), np.asarray(total_sd / sizes), None
    noise, count_sd = _draw(request, _ONE, COUNT_SHARE, 1)
    count = max(1.0, float(int(v.size * _ONE) + int(noise[0])) / _ONE)
    mean = np.clip(total / count, -largest, largest)
    return np.asarray(mean), np.sqrt(total_sd**2 + (mean * count_sd / _ONE) ** 2) / count, count


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
