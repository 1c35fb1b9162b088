"""Private training: check, price, spend, and only then draw noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, PrivacyError
from ..model.weights import Weights
from . import sampler
from .accounting import epsilon_by_adjacency
from .basis import Basis, standardise
from .blocks import CHUNK, Array
from .bounds import PublicBounds
from .fit import Axes
from .mechanisms import mu_of
from .moments import NoisyMoments
from .spend import Adjacency, Receipt, SpendRequest
from .statement import PROOF, PrivacyStatement, label_of

Method = Literal["auto", "moments", "gradient"]
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)
DELTA_CAP = 1e-6  # δ used when none is given, or 1/N² where that is smaller and N is public
WEIGHT_OUTPUTS = (
    "beta1", "beta2", "beta2sq", "gamma", "gammasq", "pca_components", "x_mean", "x_std", "y_mean", "ysq_mean",
    "ysq_slope", "conf_beta", "folded_weights", "noised_moments",
)  # fmt: skip


@dataclass(frozen=True)
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
        The release's own noisy count of people, rounded, at least 1 (`add_remove` only): the one N that may be used,
        tested or printed with it. None where N is public.
    """

    weights: Weights
    statement: PrivacyStatement
    noisy_moments: NoisyMoments | None
    public: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    inside: Mapping[str, Any] = field(default_factory=dict)
    n_noisy: int | None = None


@dataclass(frozen=True)
class Job:
    """A training that has been checked and priced: what a path needs to run. Holds people; never leaves."""

    X: Array
    age: Array
    confounds: Array | None
    bounds: PublicBounds
    basis: Basis | None
    n_components: int | None
    adjacency: Adjacency
    mu: float
    centre: Array
    scale: Array
    axes_names: tuple[str, ...]
    conf_names: tuple[str, ...]
    options: Mapping[str, Any]
    drawn: dict[str, float] = field(default_factory=dict)  # noisy scalars of the release that no weight shows

    @property
    def exact_n(self) -> bool:
        """Whether N is public and used as it is."""
        return self.adjacency != "add_remove"

    @property
    def reach(self) -> int:
        """How far one person moves the unit statistic: 2 when replaced (triangle inequality), else 1."""
        return 2 if self.adjacency == "replace_one" else 1

    def ages(self) -> Array:
        """Ages as t in [−1, 1]; NaN and infinity become the middle of the public range, then clipped."""
        return scaled(self.age, self.bounds.age_mid, self.bounds.age_half)

    def features(self) -> Iterator[Array]:
        """Standardised, clipped features, a chunk of people at a time: memory does not grow with N."""
        for start in range(0, self.X.shape[0], CHUNK):
            yield standardise(self.X[start : start + CHUNK], self.centre, self.scale, self.bounds.feature_z)

    def scores(self, basis: Basis, size: int) -> Array:
        """White scores (n × J) on a shared basis."""
        parts = [basis.exact_scores(part, size, self.bounds.feature_z) for part in self.features()]
        return np.concatenate(parts) if parts else np.zeros((0, size))

    def conf(self) -> Array | None:
        """Confounds scaled to [−1, 1] by their public bounds; missing values become the middle."""
        if self.confounds is None or self.bounds.confound_bounds is None:
            return None
        low, high = np.array(self.bounds.confound_bounds).T
        return scaled(self.confounds, (low + high) / 2, (high - low) / 2)

    def axes(self, components: Array, score_sd: Array) -> Axes:
        """Where the scores of this job live."""
        centre = half = None
        if self.bounds.confound_bounds is not None and self.confounds is not None:
            low, high = np.array(self.bounds.confound_bounds).T
            centre, half = (low + high) / 2, (high - low) / 2
        names = self.conf_names if self.confounds is not None else ()
        return Axes(self.axes_names, self.centre, self.scale, components, score_sd, names, centre, half)


def scaled(values: Array, middle: Array | float, half: Array | float) -> Array:
    """(values − middle)/half clipped to [−1, 1]; NaN and infinity become 0 before clipping."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip(np.nan_to_num((np.where(np.isfinite(values), values, middle) - middle) / half), -1.0, 1.0)


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
    outputs: Sequence[str] = WEIGHT_OUTPUTS,
    options: Mapping[str, Any] | None = None,
) -> PrivateModel:
    """Train with differential privacy under one (ε, δ).

    Parameters
    ----------
    X, age, confounds
        People: n × F raw features, n ages in years, n × K confounds. Missing and infinite values become public
        constants. Nothing about the path taken depends on their values.
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
        Whether a ledger had registered a bounds digest before the data were opened (`registered_file`).
    ruleset_bounds
        The rule set's own age range and clip, to check a `ruleset` provenance against.

    Raises
    ------
    InputError, PrivacyError, BudgetError
        Before anything is spent.
    """
    job, price = prepare(
        X, age, confounds=confounds, feature_names=feature_names, confound_names=confound_names, bounds=bounds,
        basis=basis, epsilon=epsilon, delta_dp=delta_dp, adjacency=adjacency, unit=unit, n_components=n_components,
        method=method, registered=registered, ruleset_bounds=ruleset_bounds, outputs=outputs, options=options or {},
    )  # fmt: skip
    receipt = spend(price.request)
    weights, moments = price.run(job)
    noisy = moments.n if moments is not None else job.drawn.get("n", 1.0)
    return PrivateModel(
        weights=weights,
        statement=_statement(job, price, receipt),
        noisy_moments=moments,
        public=price.public,
        warnings=price.warnings,
        inside={"bounds_warning": job.bounds.warn_if_data_extremes(job.age)},
        n_noisy=None if job.exact_n else round(noisy),
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
) -> tuple[Job, Price]:
    """Check and price a training; nothing is spent and no noise is drawn."""
    from .paths import choose

    if adjacency not in ADJACENCIES:
        raise PrivacyError(f"unknown neighbouring relation {adjacency!r}", next_step="one of " + ", ".join(ADJACENCIES))
    if n_components is not None and (isinstance(n_components, bool) or not hasattr(n_components, "__index__")):
        raise InputError("n_components must be a whole number", next_step="for example n_components=5")
    values, ages, conf = _arrays(X, age, confounds, feature_names)
    conf_names = _confound_names(confound_names, conf, confounds)
    people = None if adjacency == "add_remove" else int(ages.size)
    if people is not None and people < 2:
        raise InputError("fewer than two people cannot train a model", next_step="check the cohort files")
    small = check_delta(delta_dp, people)
    mu, eps = mu_of(epsilon, small), float(epsilon)
    effective, basis_bounds = _bounds(bounds, basis, values, feature_names, conf, conf_names)
    label, reason = label_of(
        bounds if bounds is not None else effective, basis_bounds, registered=registered, ruleset_bounds=ruleset_bounds
    )
    job = Job(
        X=values, age=ages, confounds=conf, bounds=effective, basis=basis, n_components=n_components,
        adjacency=adjacency, mu=mu, centre=np.array(effective.centre), scale=np.array(effective.scale),
        axes_names=tuple(str(n) for n in feature_names), conf_names=conf_names, options=dict(options),
    )  # fmt: skip
    path = choose(job, method, people)
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
    return job, Price(request, reason, path.public, path.warnings, declared, path.run)


def check_delta(delta_dp: float | None, n_public: int | None) -> float:
    """δ to use: the one given, or min(1e-6, 1/N²). Refused above 1/N² (N public) or above 1e-6 (N not to be used)."""
    most = DELTA_CAP if n_public is None else 1.0 / max(n_public, 1) ** 2
    if delta_dp is None:
        return min(DELTA_CAP, most)
    value = float(delta_dp)
    if not (math.isfinite(value) and 0 < value < 1):
        raise PrivacyError("delta_dp must lie strictly between 0 and 1", next_step="leave it out for the default")
    if value > most * (1 + 1e-12):
        limit = "1e-6, since N may not be looked at under add_remove" if n_public is None else "1/N²"
        raise PrivacyError(f"delta_dp is above {limit}", next_step=f"use at most {most:.3g}")
    return value


def _arrays(
    X: ArrayLike, age: ArrayLike, confounds: ArrayLike | None, names: Sequence[str]
) -> tuple[Array, Array, Array | None]:
    columns = getattr(X, "columns", None)
    if columns is not None and tuple(map(str, columns)) != tuple(map(str, names)):
        raise InputError("feature_names are not the columns of X", next_step="pass list(X.columns)")
    try:
        values = np.asarray(X, dtype=np.float64)
        ages = np.asarray(age, dtype=np.float64).ravel()
        conf = None if confounds is None else np.asarray(confounds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("features, ages and confounds must be numbers", next_step="leave text columns out") from error
    if values.ndim != 2 or values.shape[0] != ages.size:
        raise InputError("features and ages have different numbers of rows", next_step="one row per person in both")
    if values.shape[1] != len(names) or len(set(map(str, names))) != len(names):
        raise InputError("feature names must be distinct, one per column", next_step="correct feature_names")
    if conf is not None:
        conf = conf.reshape(-1, 1) if conf.ndim == 1 else conf
        if conf.ndim != 2 or conf.shape[0] != ages.size:
            raise InputError("confounds and ages have different numbers of rows", next_step="one row per person")
        if conf.shape[1] == 0:
            conf = None
    return values, ages, conf


def _confound_names(names: Sequence[str] | None, conf: Array | None, source: Any) -> tuple[str, ...]:
    if conf is None:
        return ()
    columns = getattr(source, "columns", None)
    given = names if names is not None else columns
    result = (
        tuple(str(n) for n in given) if given is not None else tuple(f"confound_{i + 1}" for i in range(conf.shape[1]))
    )
    if len(result) != conf.shape[1]:
        raise InputError("one name per confound is needed", next_step="correct confound_names")
    return result


def _bounds(
    bounds: PublicBounds | None,
    basis: Basis | None,
    X: Array,
    names: Sequence[str],
    conf: Array | None,
    conf_names: tuple[str, ...],
) -> tuple[PublicBounds, PublicBounds | None]:
    """Bounds with every number filled in, and the basis's own for checking the label."""
    from dataclasses import replace

    own = None
    if basis is not None:
        basis.check_features(names)
        basis.check_not_made_on(X)
        own = basis.bounds(conf_names if _knows(basis, conf_names) else ())
    if bounds is None:
        if own is None:
            raise PrivacyError("without a basis, public bounds are needed", next_step="give bounds= or basis=")
        bounds = own
    if bounds.feature_names is not None and tuple(map(str, names)) != bounds.feature_names:
        raise PrivacyError("the features are not those of the bounds, in that order", next_step="correct the order")
    if bounds.centre is not None and len(bounds.centre) != X.shape[1]:
        raise PrivacyError("the bounds have another number of features", next_step="use the bounds of these features")
    effective = bounds
    if own is not None:
        if bounds.centre is not None and (bounds.centre, bounds.scale) != (own.centre, own.scale):
            raise PrivacyError("bounds and basis have different centres or scales", next_step="leave the bounds' out")
        conf_bounds = bounds.confound_bounds if bounds.confound_bounds is not None else own.confound_bounds
        effective = replace(
            bounds, centre=own.centre, scale=own.scale, feature_names=own.feature_names, confound_bounds=conf_bounds,
            radius=own.radius if bounds.radius is None else bounds.radius,
        )  # fmt: skip
    if effective.centre is None:
        raise PrivacyError(
            "no public centre and scale for the features: nothing may be chosen from the raw data",
            next_step="give a basis (sacro-deltab basis) or a registered bounds file with centre and scale",
        )
    count = 0 if conf is None else conf.shape[1]
    if count and (effective.confound_bounds is None or len(effective.confound_bounds) != count):
        raise PrivacyError("every confound needs public (low, high) bounds", next_step="add confound_bounds")
    if not count and effective.confound_bounds is not None:
        effective = replace(effective, confound_bounds=None)
    return effective, own


def _knows(basis: Basis, names: tuple[str, ...]) -> bool:
    return all(name in basis.confounds for name in names)


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
