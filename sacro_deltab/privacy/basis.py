"""A shared basis: component axes, centre, scale, norms and bounds made once from public people."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, PrivacyError
from .bounds import PublicBounds, canonical_digest, clean, read_json

Array = NDArray[np.float64]
SCHEMA_ID = "sacro_deltab/basis/1"
_SAME = 1e-9  # agreement of centre and cohort mean at which a basis was made on the cohort in hand
_CHECKED = 32  # columns compared for that
_CHANCE = 1e-6  # of refusing a basis that was made from other people
_LEAST_BITS = 6  # of the grid of exact scores
_FLOOR = 1e-6  # components with less than this share of the largest variance are exact dependence, not axes


def _frozen(values: ArrayLike) -> Array:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Basis:
    """Public axes and bounds; every number in it comes from the public people it names.

    Parameters
    ----------
    feature_names, units
        F names in order, and a unit each.
    centre, scale
        Mean and SD per feature (F), raw unit.
    components
        J × F, orthonormal rows in standardised features, signs fixed (largest |loading| positive).
    score_sd
        SD of each score (J): scores divided by it are white in the public people ("whitening").
    radius
        `radius[j-1]`: 95 % quantile of the norm of the first j white scores (R95); length J.
    feature_radius
        95 % quantile of the norm of the standardised, clipped features: the clip of the node-basis path.
    age_b1, residual_sd
        Years per white score in the public people (J), and SD of the residual with the first j scores (J); the second
        sets the residual clips of the gradient path.
    age_mean, age_sd
        Mean and SD of public ages, years.
    age, feature_z, confounds
        Bounds handed on by `bounds()`: age range, |z| clip, and (low, high) per confound by name.
    made_on, how, n_people
        Who the public people are, how the file was made, how many they were.
    """

    feature_names: tuple[str, ...]
    units: tuple[str, ...]
    centre: Array
    scale: Array
    components: Array
    score_sd: Array
    radius: Array
    feature_radius: float
    age_b1: Array
    residual_sd: Array
    age_mean: float
    age_sd: float
    age: tuple[float, float]
    made_on: str
    how: str
    n_people: int
    feature_z: float = 4.0
    confounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        features, components = len(self.feature_names), np.atleast_2d(np.asarray(self.components)).shape[0]
        shapes: dict[str, tuple[int, ...]] = {
            "centre": (features,), "scale": (features,), "components": (components, features),
            "score_sd": (components,), "radius": (components,), "age_b1": (components,), "residual_sd": (components,),
        }  # fmt: skip
        for name, shape in shapes.items():
            value = _frozen(getattr(self, name))
            if value.shape != shape or not np.isfinite(value).all():
                raise InputError(
                    f"basis: {name} has the wrong shape or a value that is not finite",
                    place=name,
                    next_step="make the basis file again",
                )
            object.__setattr__(self, name, value)
        if len(self.units) != features or len(set(self.feature_names)) != features:
            raise InputError("basis: feature names repeat or units are missing", next_step="make the basis file again")
        if not (self.scale > 0).all() or not (self.score_sd > 0).all():
            raise InputError("basis: a scale is not positive", next_step="make the basis file again")
        gram = self.components @ self.components.T
        if np.abs(gram - np.eye(components)).max() > 1e-8:
            raise InputError(
                "basis: the components are not orthonormal", place="components", next_step="make the basis file again"
            )

    @property
    def n_components(self) -> int:
        """J of the file; a release may use fewer."""
        return int(self.components.shape[0])

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return canonical_digest(self._content())

    def bounds(self, confound_names: Sequence[str] = ()) -> PublicBounds:
        """The bounds this file holds, with provenance `basis`."""
        missing = [name for name in confound_names if name not in self.confounds]
        if missing:
            raise PrivacyError(
                f"the basis holds no bounds for confound {missing[0]!r}",
                next_step="make the basis with --confounds, or register a bounds file",
            )
        pairs = tuple(self.confounds[name] for name in confound_names) or None
        return PublicBounds(
            age=self.age,
            feature_z=self.feature_z,
            centre=tuple(self.centre),
            scale=tuple(self.scale),
            confound_bounds=pairs,
            feature_names=self.feature_names,
            radius=self.feature_radius,
            provenance="basis",
        )

    def check_features(self, names: Sequence[str]) -> None:
        """Refuse features that differ from the basis in name or order."""
        got = tuple(str(name) for name in names)
        if got == self.feature_names:
            return
        missing = [n for n in self.feature_names if n not in set(got)]
        extra = [n for n in got if n not in set(self.feature_names)]
        what = f"first: {(missing or extra)[0]!r}" if missing or extra else "the same names in another order"
        raise PrivacyError(
            f"the features are not those of the basis: {len(missing)} missing, {len(extra)} unknown ({what})",
            next_step="select the basis's feature_names in their order, or make a basis for these features",
        )

    def check_not_made_on(self, X: ArrayLike) -> None:
        """Refuse a basis that shows it was made on this cohort: it would be a second, unpaid release.

        Three signs: the centre is the cohort's own mean; the centre is a row of the cohort; or means and products of
        scores agree with the basis much better than those of other people can (chance below 1e-6 for a basis fixed
        without looking at the cohort). The last finds a copy that was disturbed a little, and one made from most of
        the cohort; from half of it, nobody can tell. A refusal is seen inside only.
        """
        values = np.asarray(X, dtype=float)
        if values.ndim != 2 or values.shape[1] != len(self.feature_names) or values.shape[0] < 2:
            return
        with np.errstate(all="ignore"):
            some = np.unique(np.linspace(0, values.shape[1] - 1, _CHECKED).astype(int))  # enough columns to tell
            centre, scale = self.centre[some], self.scale[some]
            mean = _finite_means(values, some, centre)
            own_mean = (np.abs(mean - centre) <= _SAME * (scale + np.abs(centre))).mean() > 0.5
            own_row = _is_a_row(values[:, some], centre, _SAME * (scale + np.abs(centre)))
        what = (
            "its centre is the cohort's own mean" if own_mean else "its centre is one person's row" if own_row else ""
        )
        if not what and self._agrees_too_well(values):
            what = "it agrees with the cohort much better than one made from other people can"
        if what:
            raise PrivacyError(
                f"this basis was made on the cohort itself: {what}",
                next_step="make the basis from other people, or use the node basis, which pays for its axes",
            )

    def _agrees_too_well(self, values: Array) -> bool:
        """Scaled squares of score means and of mean products of two scores: together at least χ² for other people.

        Only the cohort's own sampling error is counted, so the claimed size of the public sample plays no part.
        """
        size = self.n_components
        first, second, fourth = np.zeros(size), np.zeros((size, size)), np.zeros((size, size))
        for start in range(0, values.shape[0], 4096):
            u = self.white_scores(self.standardise(values[start : start + 4096]), size)
            first, second, fourth = first + u.sum(axis=0), second + u.T @ u, fourth + (u * u).T @ (u * u)
        n, upper = values.shape[0], np.triu_indices(size, 1)
        mean, product = first / n, (second / n)[upper]
        spread = np.concatenate([np.diag(second) / n - mean**2, (fourth / n)[upper] - product**2])
        gaps = np.concatenate([mean, product - (mean[:, None] * mean)[upper]])
        fine = spread > 1e-12
        if not fine.any():
            return False
        from scipy.stats import chi2

        statistic = n * (gaps[fine] ** 2 / spread[fine]).sum()
        return bool(statistic < chi2.ppf(_CHANCE, int(fine.sum())))

    def white_scores(self, z: Array, n_components: int) -> Array:
        """White scores (n × J) of standardised, clipped features (n × F)."""
        return np.asarray((z @ self.components[:n_components].T) / self.score_sd[:n_components])

    def exact_scores(self, z: Array, n_components: int, limit: float) -> Array:
        """White scores (n × J) of standardised features (n × F) clipped to ±`limit`, each a function of its row alone.

        Both factors go to a grid on which every partial sum is an integer below 2⁵³, so the product is exact and a
        person's scores are the same whoever else is there; a plain product differs in its last bit with their number.
        The scores change by a few millionths.
        """
        axes = self.components[:n_components]
        size = math.ceil(math.log2(max(limit, 1.0) * math.sqrt(axes.shape[1])))  # 2^size bounds the norm of a row
        fine = max((51 - 2 * size) // 2, (51 - size) // 3)
        if fine < _LEAST_BITS:
            raise PrivacyError("feature_z is too large for an exact sum", next_step="use a clip such as 4")
        axes_fine = 51 - size - fine
        exact = np.rint(z * 2.0**fine) @ np.rint(axes * 2.0**axes_fine).T
        return np.asarray(exact * 2.0 ** -(fine + axes_fine) / self.score_sd[:n_components])

    def standardise(self, X: Array) -> Array:
        """Standardised features clipped to ±feature_z; NaN and infinity become the public centre."""
        return standardise(X, self.centre, self.scale, self.feature_z)

    def _content(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA_ID,
            "feature_names": list(self.feature_names),
            "units": list(self.units),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "components": self.components.tolist(),
            "score_sd": self.score_sd.tolist(),
            "radius": self.radius.tolist(),
            "feature_radius": self.feature_radius,
            "age_fit": {
                "b1": self.age_b1.tolist(),
                "residual_sd": self.residual_sd.tolist(),
                "mean": self.age_mean,
                "sd": self.age_sd,
            },
            "age": list(self.age),
            "feature_z": self.feature_z,
            "confounds": {name: list(pair) for name, pair in self.confounds.items()},
            "made_on": self.made_on,
            "how": self.how,
            "n_people": self.n_people,
        }

    def to_json(self) -> dict[str, Any]:
        """Content of a basis file (`schemas/basis.schema.json`)."""
        return {**self._content(), "digest": self.digest}

    def save(self, path: str | Path) -> None:
        """Write a basis file."""
        Path(path).write_text(json.dumps(self.to_json(), ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Basis:
        """Read a basis file; schema, shapes and digest are checked."""
        data = read_json(path, "basis")
        fit = data["age_fit"]
        try:
            basis = cls(
                feature_names=tuple(data["feature_names"]), units=tuple(data["units"]), centre=data["centre"],
                scale=data["scale"], components=data["components"], score_sd=data["score_sd"], radius=data["radius"],
                feature_radius=float(data["feature_radius"]), age_b1=fit["b1"], residual_sd=fit["residual_sd"],
                age_mean=float(fit["mean"]), age_sd=float(fit["sd"]),
                age=(float(data["age"][0]), float(data["age"][1])),
                made_on=data["made_on"], how=data["how"], n_people=int(data["n_people"]),
                feature_z=float(data["feature_z"]),
                confounds={name: (float(pair[0]), float(pair[1])) for name, pair in data["confounds"].items()},
            )  # fmt: skip
        except ValueError as error:
            raise InputError(
                "the components are not a table of numbers", path=path, next_step="make it again"
            ) from error
        if basis.digest != data["digest"]:
            raise InputError(
                "the digest in the basis file is not that of its numbers",
                path=path,
                place="digest",
                next_step="fetch the file again from whoever made it",
            )
        return basis

    @classmethod
    def from_public(
        cls,
        X: ArrayLike,
        age: ArrayLike,
        feature_names: Sequence[str],
        units: Sequence[str] | None = None,
        n_components: int | None = None,
        made_on: str = "",
        *,
        age_range: tuple[float, float] | None = None,
        feature_z: float = 4.0,
        confounds: ArrayLike | None = None,
        confound_names: Sequence[str] = (),
        confound_bounds: Sequence[tuple[float, float]] | None = None,
    ) -> Basis:
        """Make a basis from public people.

        Parameters
        ----------
        X, age
            Public people: n × F features (raw units; missing values become the column mean) and ages in years.
        n_components
            J; None: 10, or fewer where the public people have fewer axes.
        made_on
            Who they are, in words; at least three characters.
        age_range
            Age bounds handed on; None: the public ages widened to whole multiples of five years.
        confounds, confound_names, confound_bounds
            Public confounds, whose range (widened by a tenth) becomes their bounds, or the bounds themselves.
        """
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
        low, high = age_range if age_range is not None else _round_range(ages)
        return cls(
            feature_names=tuple(str(n) for n in feature_names),
            units=tuple(units) if units is not None else ("",) * features,
            centre=centre, scale=scale, components=components, score_sd=sd,
            radius=np.quantile(norms, 0.95, axis=0),
            feature_radius=float(np.quantile(np.sqrt((z**2).sum(axis=1)), 0.95)),
            age_b1=b1, residual_sd=residual_sd, age_mean=float(ages.mean()), age_sd=float(ages.std()),
            age=(float(low), float(high)), feature_z=float(feature_z),
            confounds=_confound_ranges(confounds, confound_names, confound_bounds),
            made_on=made_on.strip(), n_people=people,
            how="column mean and SD (divisor n); eigenvectors of the public Gram, signs by largest loading; "
            "R95: 95 % quantile of the norm of white scores",
        )  # fmt: skip


def _finite_means(values: Array, columns: NDArray[np.int_], centre: Array) -> Array:
    """Means of some columns over finite values, in chunks of people, measured from `centre`."""
    count, first = np.zeros(columns.size), np.zeros(columns.size)
    for start in range(0, values.shape[0], 4096):
        part = values[start : start + 4096, columns] - centre
        fine = np.isfinite(part)
        count += fine.sum(axis=0)
        first += np.where(fine, part, 0.0).sum(axis=0)
    return np.asarray(centre + first / count)


def _is_a_row(values: Array, row: Array, tolerance: Array) -> bool:
    """Whether `row` is, in most columns, one of the rows of `values`."""
    near = np.zeros(values.shape[0], dtype=int)
    for j in range(row.size):
        near += np.abs(values[:, j] - row[j]) <= tolerance[j]
    return bool((near > row.size / 2).any())


def standardise(X: Array, centre: Array, scale: Array, feature_z: float) -> Array:
    """(X − centre)/scale clipped to ±feature_z; NaN and infinity become 0, the public centre, before clipping."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.subtract(X, centre)
        z /= scale
        if not np.isfinite(z.sum()):  # somewhere a value is missing, infinite or overflows: the careful way
            z[~np.isfinite(X)] = 0.0
            z = np.nan_to_num(z, nan=0.0, posinf=feature_z, neginf=-feature_z)
    return np.clip(z, -feature_z, feature_z, out=z)


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
    from scipy.linalg import eigh

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


def _confound_ranges(
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
