"""The numbers of a shared basis, worked out from public people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.errors import InputError
from .bounds import clean

Array = NDArray[np.float64]
LEAST_IN_BAND, _MOST_BANDS = 20, 8
_FLOOR = 1e-6  # components with less than this share of the largest variance are exact dependence, not axes


@dataclass(frozen=True)
class Band:
    """People of one age band: how many, mean and covariance of (age, J white scores)."""

    people: int
    mean: Array
    cov: Array

    def to_json(self) -> dict[str, Any]:
        """As the basis file holds it."""
        return {"people": self.people, "mean": self.mean.tolist(), "cov": self.cov.tolist()}


def public_numbers(
    X: ArrayLike,
    age: ArrayLike,
    feature_names: Sequence[str],
    *,
    n_components: int | None,
    made_on: str,
    age_range: tuple[float, float] | None,
    feature_z: float,
) -> dict[str, Any]:
    """Centre, scale, axes, norms and age fit, as `Basis` takes them; see `Basis.from_public`."""
    values, ages = _public_people(X, age, feature_names)
    if len(made_on.strip()) < 3:
        raise InputError("say on whom the basis was made", next_step="--made-on 'name of the public data set'")
    people, features = values.shape
    with np.errstate(all="ignore"):
        column = np.nanmean(np.where(np.isfinite(values), values, np.nan), axis=0)
    values = clean(values, np.where(np.isfinite(column), column, 0.0))
    centre, scale = values.mean(axis=0), values.std(axis=0)
    # A feature that never varies in public people keeps its place (names must match) and gets no loading.
    scale = np.where(scale > 1e-12 * np.maximum(1.0, np.abs(centre)), scale, 1.0)
    z = standardise(values, centre, scale, feature_z)
    wanted = min(10 if n_components is None else n_components, people - 1, features)
    components, sd = _axes(z, wanted, asked=n_components)
    white = (z @ components.T) / sd
    norms = np.sqrt(np.cumsum(white**2, axis=1))
    b1, residual_sd = _public_fit(white, ages)
    bands = _bands(ages, white)
    low, high = age_range if age_range is not None else _round_range(ages)
    return {
        "centre": centre, "scale": scale, "components": components, "score_sd": sd,
        "radius": np.quantile(norms, 0.95, axis=0),
        "feature_radius": float(np.quantile(np.sqrt((z**2).sum(axis=1)), 0.95)),
        "age_b1": b1, "residual_sd": residual_sd, "age_mean": float(ages.mean()), "age_sd": float(ages.std()),
        "age": (float(low), float(high)), "n_people": people, "bands": bands,
        "how": "column mean and SD (divisor n); eigenvectors of the public Gram, signs by largest loading; "
        "R95: 95 % quantile of the norm of white scores",
    }  # fmt: skip


def _bands(ages: Array, white: Array) -> tuple[Band, ...]:
    """Moments of (age, scores) in bands of about as many people each: never fewer than 20, nor than three a score."""
    least = max(LEAST_IN_BAND, 3 * white.shape[1])
    count = min(_MOST_BANDS, ages.size // least)
    if count < 1:
        return ()
    rows = np.column_stack([ages, white])[np.argsort(ages, kind="stable")]
    return tuple(
        Band(int(part.shape[0]), part.mean(axis=0), np.cov(part, rowvar=False, ddof=0))
        for part in np.array_split(rows, count)
    )


def _public_people(X: ArrayLike, age: ArrayLike, names: Sequence[str]) -> tuple[Array, Array]:
    try:
        values, ages = np.asarray(X, dtype=np.float64), np.asarray(age, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise InputError("features and ages must be numbers", next_step="leave text columns out") from error
    if values.ndim != 2 or values.shape[0] != ages.size:
        raise InputError("public features and ages have different numbers of rows", next_step="one row per person")
    if values.shape[1] != len(names):
        raise InputError("one name per feature is needed", next_step="give the header row")
    if values.shape[0] < 20:
        raise InputError("fewer than 20 public people make no basis", next_step="use a larger public data set")
    if not np.isfinite(ages).all() or float(ages.std()) == 0:
        raise InputError("public ages must be finite and not all equal", next_step="leave people without age out")
    return values, ages


def _axes(z: Array, wanted: int, asked: int | None) -> tuple[Array, Array]:
    from scipy.linalg import eigh  # late: scipy is heavy

    people, features = z.shape
    centred = z - z.mean(axis=0)
    wide = features > people
    gram = (centred @ centred.T if wide else centred.T @ centred) / people
    size = gram.shape[0]
    variances, vectors = eigh(gram, subset_by_index=(size - wanted, size - 1))
    variances, vectors = variances[::-1], vectors[:, ::-1]
    usable = int((variances > _FLOOR * variances[0]).sum())
    if asked is not None and usable < asked:
        raise InputError(
            f"the public people have only {usable} independent components", next_step=f"--n-components {usable}"
        )
    vectors, variances = vectors[:, :usable], variances[:usable]
    if wide:
        vectors = np.linalg.qr(centred.T @ vectors / np.sqrt(variances * people))[0]
    components = vectors.T
    signs = np.sign(components[np.arange(usable), np.abs(components).argmax(axis=1)])
    components = np.ascontiguousarray(components * np.where(signs == 0, 1.0, signs)[:, None])
    return components, np.asarray((centred @ components.T).std(axis=0))


def _public_fit(white: Array, ages: Array) -> tuple[Array, Array]:
    """Age on white scores: they are uncorrelated here, so each prefix of b1 is the fit with fewer components."""
    centred_age = ages - ages.mean()
    b1 = (white - white.mean(axis=0)).T @ centred_age / ages.size
    explained = np.cumsum(b1**2)
    floor = 0.01 * float(centred_age.var())
    degrees = 1 - np.arange(1, b1.size + 1) / ages.size
    left = np.maximum(float(centred_age.var()) - explained, floor)
    return b1, np.sqrt(left / np.maximum(degrees, 0.1))


def _round_range(ages: Array) -> tuple[float, float]:
    return float(np.floor(ages.min() / 5) * 5), float(np.ceil(ages.max() / 5) * 5 or 5.0)


def confound_ranges(
    values: ArrayLike | None, names: Sequence[str], bounds: Sequence[tuple[float, float]] | None
) -> dict[str, tuple[float, float]]:
    if bounds is not None:
        return {str(n): (float(p[0]), float(p[1])) for n, p in zip(names, bounds, strict=True)}
    if values is None:
        return {}
    table = np.asarray(values, dtype=np.float64)
    table = table.reshape(-1, 1) if table.ndim == 1 else table
    result = {}
    for name, column in zip(names, table.T, strict=True):
        finite = column[np.isfinite(column)]
        if finite.size == 0 or float(finite.min()) == float(finite.max()):
            raise InputError(f"confound {name!r} is constant or empty in the public people", next_step="leave it out")
        margin = 0.1 * float(finite.max() - finite.min())
        result[str(name)] = (float(finite.min()) - margin, float(finite.max()) + margin)
    return result


def standardise(X: Array, centre: Array, scale: Array, feature_z: float) -> Array:
    """(X − centre)/scale clipped to ±feature_z; NaN and infinity become 0, the public centre, before clipping."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.subtract(X, centre)
        z /= scale
        if not np.isfinite(z.sum()):  # somewhere a value is missing, infinite or overflows: the careful way
            z[~np.isfinite(X)] = 0.0
            z = np.nan_to_num(z, nan=0.0, posinf=feature_z, neginf=-feature_z)
    return np.clip(z, -feature_z, feature_z, out=z)
