"""What a training works on: people, public bounds and axes, checked; and δ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ..base.errors import InputError, PrivacyError
from ..cohort.people import have_values
from .basis import Basis
from .basis_check import refuse_own
from .basis_making import standardise
from .blocks import CHUNK, Array
from .bounds import PublicBounds
from .fit import Axes
from .spend import Adjacency

DELTA_CAP = 1e-6  # δ used when none is given, or 1/N² where that is smaller and N is public
DELTA_SECRET_N = 1e-9  # the same under `add_remove`, where nothing is said of N


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
    people: int | None  # the public N, rows without any value included; None under `add_remove`
    drawn: dict[str, float] = field(default_factory=dict)  # noisy scalars of the release that no weight shows

    @property
    def exact_n(self) -> bool:
        """Whether N is public and used as it is."""
        return self.people is not None

    @property
    def reach(self) -> int:
        """How far one person moves the unit statistic: 2 when replaced (triangle inequality), else 1."""
        return 2 if self.adjacency == "replace_one" else 1

    def ages(self) -> Array:
        """Ages as t in [−1, 1]; NaN and infinity become the middle of the public range, then clipped."""
        return scaled(self.age, self.bounds.age_mid, self.bounds.age_half)

    def features(self, limit: float | None = None) -> Iterator[Array]:
        """Standardised, clipped features, a chunk of people at a time: memory does not grow with N."""
        top = self.bounds.feature_z if limit is None else limit
        for start in range(0, self.X.shape[0], CHUNK):
            yield standardise(self.X[start : start + CHUNK], self.centre, self.scale, top)

    def scores(self, basis: Basis, size: int, *, wider: float = 1.0) -> Array:
        """White scores (n × J) on a shared basis; `wider`: with features clipped so many times later."""
        limit = wider * self.bounds.feature_z
        parts = [basis.exact_scores(part, size, limit) for part in self.features(limit)]
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


def check_delta(delta_dp: float | None, n_public: int | None, expected: int | None = None) -> float:
    """δ to use: the one given, or min(1e-6, 1/N²). Refused above 1/N² (N public) or above 1e-6 (N not to be used).

    Where N may not be used, the default is one that rules accept of up to twice the people that are expected, or of
    30,000 where nothing is: a larger one would be paid for, and its model blocked.
    """
    most = DELTA_CAP if n_public is None else 1.0 / max(n_public, 1) ** 2
    if delta_dp is None:
        usual = most if n_public is not None else DELTA_SECRET_N if expected is None else 1.0 / (2 * expected) ** 2
        return min(DELTA_CAP, usual)
    value = float(delta_dp)
    if not (math.isfinite(value) and 0 < value < 1):
        raise PrivacyError("delta_dp must lie strictly between 0 and 1", next_step="leave it out for the default")
    if value > most * (1 + 1e-12):
        limit = "1e-6, since N may not be looked at under add_remove" if n_public is None else "1/N²"
        raise PrivacyError(f"delta_dp is above {limit}", next_step=f"use at most {most:.3g}")
    return value


def people_arrays(
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


def contributing(values: Array, ages: Array, share: float = 0.0) -> npt.NDArray[np.bool_]:
    """(n,) rows with an age, at least one feature and at least this share of them.

    The empty record that a person may become adds exactly nothing to a sum. A row that is filled with constants
    throughout does add something (1 to an intercept, −1 to 2t² − 1), so that it would lie further from the empty record
    than one person's noise covers.
    """
    return np.asarray(np.isfinite(ages) & have_values(values, share))


def confound_names_of(names: Sequence[str] | None, conf: Array | None, source: Any) -> tuple[str, ...]:
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


def effective_bounds(
    bounds: PublicBounds | None,
    basis: Basis | None,
    X: Array,
    names: Sequence[str],
    conf: Array | None,
    conf_names: tuple[str, ...],
) -> tuple[PublicBounds, PublicBounds | None]:
    """Bounds with every number filled in, and the basis's own for checking the label."""
    own = None
    if basis is not None:
        basis.check_features(names)
        refuse_own(basis, X)
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
