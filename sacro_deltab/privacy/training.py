"""Private training: check, price, spend, and only then draw noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..base.errors import InputError, PrivacyError
from ..model.weights import Weights
from ..outputs.parameters import TRAINED
from . import sampler
from .accounting import epsilon_by_adjacency
from .basis import Basis
from .bounds import PublicBounds
from .gradient import Purse, noise_sd_of
from .intervals import intervals_of
from .job import Job, check_delta, confound_names_of, contributing, effective_bounds, people_arrays
from .mechanisms import mu_of
from .moments import NoisyMoments
from .noisy_count import PEOPLE, PEOPLE_SHARE
from .paths import Method, choose
from .spend import Adjacency, Receipt, SpendRequest, just_drawn
from .statement import PROOF, PrivacyStatement, label_of

ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)


@dataclass(frozen=True, repr=False)
class PrivateModel:
    """What one private training gives.

    weights
        Parameters of all five models, every one post-processing of the noisy statistic or a public constant.
    statement
        What may be said about the noise.
    noisy_moments
        The release itself (None on the gradient path): it may be summed over nodes.
    public
        Noise SD per block, J, bounds, method: known before anything was spent.
    warnings
        Seen before spending, from public quantities only.
    inside
        For people inside the TRE only; may depend on the data without noise.
    n_noisy
        The release's own noisy count of people, rounded, at least 1. Under `add_remove` the one N that may be used,
        tested or printed with it. Where N is public, how many of those people have values (`count_people`), else None.
    intervals
        95 % intervals from noised and public numbers: `age_slope` of the unbiased delta (years a year), errors of mean
        age, predicted age and b1 (years); each says what it covers.
    """

    weights: Weights
    statement: PrivacyStatement
    noisy_moments: NoisyMoments | None
    public: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    inside: Mapping[str, Any] = field(default_factory=dict)
    n_noisy: int | None = None
    intervals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Public numbers and the word for the noise; nothing of `inside`."""
        said = self.statement
        return f"PrivateModel({said.label}, ε = {said.epsilon:g}, {said.adjacency}; {self.weights!r})"


def train_private(
    X: ArrayLike,
    age: ArrayLike,
    *,
    confounds: ArrayLike | None = None,
    feature_names: Sequence[str],
    confound_names: Sequence[str] | None = None,
    bounds: PublicBounds | None = None,
    basis: Basis | None = None,
    epsilon: float,
    delta_dp: float | None = None,
    adjacency: Adjacency = "zero_out_N_public",
    unit: Literal["person", "row"] = "person",
    n_components: int | None = None,
    method: Method = "auto",
    spend: Callable[[SpendRequest], Receipt | None],
    registered: Callable[[str], bool] | None = None,
    ruleset_bounds: PublicBounds | None = None,
    people_registered: bool = True,
    before_spend: Callable[[Mapping[str, Any]], None] | None = None,
    count_people: float | None = None,
    keep: Callable[[Callable[[], PrivateModel]], PrivateModel] = just_drawn,
    outputs: Sequence[str] = TRAINED,
    options: Mapping[str, Any] | None = None,
) -> PrivateModel:
    """Train with differential privacy under one (ε, δ).

    Parameters
    ----------
    X, age, confounds
        People: n × F raw features, n ages in years, n × K confounds. Missing and infinite values become public
        constants; a row without an age or without any feature adds exactly nothing (N stays the rows where it is
        public). Nothing about the path taken depends on their values.
    feature_names
        F names; they must be the basis's, in its order.
    bounds
        Public bounds; None takes the basis's.
    basis
        Shared basis. None: a node basis is computed from the same noisy moments, which needs `bounds.centre`/`scale`.
    epsilon, delta_dp
        Privacy parameters of the whole training. δ defaults to min(1e-6, 1/N²); above 1/N² it is refused (under
        `add_remove`, where N may not be looked at, above 1e-6).
    adjacency
        `zero_out_N_public` (a person's record becomes empty, N stays public), `add_remove` (N is noised and used
        nowhere exactly), `replace_one` (a record becomes any other; noise doubles).
    method
        `moments`: one release of clipped moments. `gradient`: DP gradient descent on b1 plus scalars. `auto`: the
        better one by public quantities.
    spend
        Called with the price before any noise is drawn, and must return before it is: the budget's receipt, or None
        where no ledger holds it, which makes the label at most `heuristic`.
    registered
        Whether a ledger had registered the digest of a basis or bounds file before the data were opened.
    ruleset_bounds
        The rule set's own age range and clip, to check a `ruleset` provenance against; None: not believed.
    people_registered
        False where no register of the TRE holds these people: the label is at most `heuristic`.
    before_spend
        Sees what is public of the training (noise SDs, J, method) and may refuse it; nothing is spent then.
    count_people
        Where N is public, also count the people with an age and this share of the features, with noise, for
        `PEOPLE_SHARE` of μ². None: nobody is counted.
    keep
        Given the function that draws: calls it once and gives back what it returned, or gives back what an earlier call
        on the same spend returned without drawing again.

    Raises
    ------
    InputError, PrivacyError, BudgetError
        Before anything is spent.
    """
    job, price = prepare(
        X, age, confounds=confounds, feature_names=feature_names, confound_names=confound_names, bounds=bounds,
        basis=basis, epsilon=epsilon, delta_dp=delta_dp, adjacency=adjacency, unit=unit, n_components=n_components,
        method=method, registered=registered, ruleset_bounds=ruleset_bounds,
        people_registered=people_registered, outputs=outputs, options=options or {}, count_people=count_people,
    )  # fmt: skip
    if before_spend is not None:
        before_spend(price.public)
    receipt = spend(price.request)
    return keep(lambda: _drawn(job, price, receipt))


def _drawn(job: Job, price: Price, receipt: Receipt | None) -> PrivateModel:
    """Draw the noise, once the price is paid."""
    weights, moments = price.run(job)
    counted: float | None = None
    if not job.exact_n:
        counted = moments.n if moments is not None else job.drawn.get("n", 1.0)
    elif PEOPLE in price.public["noise_sd"]:
        purse = Purse(cast(float, price.request.mu), job.reach)
        people = contributing(job.X, job.age, price.count_people or 0.0).astype(np.float64)
        counted = max(1.0, float(purse.sum(PEOPLE, people[:, None], 1.0, PEOPLE_SHARE)[0]))
    return PrivateModel(
        weights=weights,
        statement=_statement(job, price, receipt),
        noisy_moments=moments,
        public=price.public,
        warnings=price.warnings,
        inside={"bounds_warning": job.bounds.warn_if_data_extremes(job.age)},
        n_noisy=None if counted is None else round(counted),
        intervals=intervals_of(job.drawn, job.bounds.age_half, int(price.public["n_components"])),
    )


@dataclass(frozen=True)
class Price:
    """What a training will cost and how it will run; public."""

    request: SpendRequest
    reason: str
    public: Mapping[str, Any]
    warnings: tuple[str, ...]
    declared: PublicBounds
    run: Callable[[Job], tuple[Weights, NoisyMoments | None]]
    count_people: float | None = None


def prepare(
    X: ArrayLike,
    age: ArrayLike,
    *,
    confounds: ArrayLike | None,
    feature_names: Sequence[str],
    confound_names: Sequence[str] | None,
    bounds: PublicBounds | None,
    basis: Basis | None,
    epsilon: float,
    delta_dp: float | None,
    adjacency: Adjacency,
    unit: Literal["person", "row"],
    n_components: int | None,
    method: Method,
    registered: Callable[[str], bool] | None,
    ruleset_bounds: PublicBounds | None,
    outputs: Sequence[str],
    options: Mapping[str, Any],
    people_registered: bool = True,
    count_people: float | None = None,
) -> tuple[Job, Price]:
    """Check and price a training; nothing is spent and no noise is drawn."""
    if adjacency not in ADJACENCIES:
        raise PrivacyError(f"unknown neighbouring relation {adjacency!r}", next_step="one of " + ", ".join(ADJACENCIES))
    if n_components is not None and (isinstance(n_components, bool) or not hasattr(n_components, "__index__")):
        raise InputError("n_components must be a whole number", next_step="for example n_components=5")
    values, ages, conf = people_arrays(X, age, confounds, feature_names)
    conf_names = confound_names_of(confound_names, conf, confounds)
    people = None if adjacency == "add_remove" else int(ages.size)
    if people is not None and people < 2:
        raise InputError("fewer than two people cannot train a model", next_step="check the cohort files")
    small = check_delta(delta_dp, people)
    mu, eps = mu_of(epsilon, small), float(epsilon)
    effective, basis_bounds = effective_bounds(bounds, basis, values, feature_names, conf, conf_names)
    label, reason = label_of(
        bounds if bounds is not None else effective, basis_bounds, registered=registered, ruleset_bounds=ruleset_bounds,
        basis_digest=None if basis is None else basis.digest, people_registered=people_registered,
    )  # fmt: skip
    there = contributing(values, ages)
    counted = count_people is not None and people is not None
    job = Job(
        X=values[there], age=ages[there], confounds=None if conf is None else conf[there], bounds=effective,
        basis=basis, n_components=n_components,
        adjacency=adjacency, mu=mu * math.sqrt(1 - PEOPLE_SHARE) if counted else mu,
        centre=np.array(effective.centre), scale=np.array(effective.scale), conf_names=conf_names,
        axes_names=tuple(str(n) for n in feature_names), options=dict(options),
        people=people,
    )  # fmt: skip
    path = choose(job, method, people)
    public = dict(path.public)
    if counted:
        public["noise_sd"] = {**public["noise_sd"], PEOPLE: noise_sd_of(1, PEOPLE_SHARE, mu, job.reach)}
    request = SpendRequest(
        mechanism=path.mechanism,
        epsilon=eps,
        delta_dp=small,
        mu=mu,
        sigma=1 / mu,
        adjacency=adjacency,
        unit=unit,
        outputs=tuple(outputs),
        kind="model",
        label=label,
        n_public=people,
        detail={
            "bounds": effective.digest,
            "provenance": effective.provenance,
            "basis": None if basis is None else basis.digest,
            "method": path.name,
            "warnings": list(path.warnings),
        },
    )
    declared = effective if bounds is None else bounds
    return job, Price(request, reason, public, path.warnings, declared, path.run, count_people)


def _basis_words(job: Job, public: Mapping[str, Any]) -> dict[str, Any] | None:
    if job.basis is None:
        return None
    start = {"start": public["start"]} if "start" in public else {}
    return {"digest": job.basis.digest, "origin": "shared", "made_on": job.basis.made_on, **start}


def _statement(job: Job, price: Price, receipt: Receipt | None) -> PrivacyStatement:
    request = price.request
    label, reason = request.label, price.reason
    if label == "formal" and receipt is None:
        label, reason = "heuristic", "no ledger holds the spend"
    elif label == "formal" and receipt is not None and not receipt.pinned:
        label, reason = "heuristic", "the ledger that holds the spend is not one the TRE has pinned"
    mu_zero_out = cast(float, request.mu) / job.reach
    statement = PrivacyStatement(
        label=label,
        reason=reason,
        mechanism=request.mechanism,
        epsilon=request.epsilon,
        delta_dp=request.delta_dp,
        mu=request.mu,
        sigma_unit=request.sigma,
        adjacency=job.adjacency,
        unit=request.unit,
        epsilon_by_adjacency=epsilon_by_adjacency(mu_zero_out, request.delta_dp, exact_n=job.exact_n),
        bounds={
            "digest": job.bounds.digest,
            "provenance": job.bounds.provenance,
            "declared_digest": price.declared.digest,
            "age": list(job.bounds.age),
            "feature_z": job.bounds.feature_z,
        },
        basis=_basis_words(job, price.public),
        sampler=sampler.SAMPLER,
        blocks=dict(price.public["noise_sd"]),
        n_public=request.n_public,
        proof=PROOF if label == "formal" else None,
        method=str(price.public["method"]),
    )
    return statement if receipt is None else statement.with_ledger(receipt)
