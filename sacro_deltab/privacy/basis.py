"""A shared basis: component axes, centre, scale, norms and bounds made once from public people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.canonical import shown_json
from ..base.errors import InputError, PrivacyError
from ..base.writing import write_file
from .basis_making import Band, confound_ranges, public_numbers, standardise
from .bounds import PublicBounds, canonical_digest, read_public

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


@dataclass(frozen=True, repr=False)
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
    bands
        Moments of (age, white scores) by age band, each of at least 20 people: what a plan draws its people from.
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
    bands: tuple[Band, ...] = ()

    def __repr__(self) -> str:
        return f"Basis({len(self.feature_names)} features, J = {len(self.components)}, {self.digest[:12]}…)"

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
            **({"bands": [band.to_json() for band in self.bands]} if self.bands else {}),
        }

    def to_json(self) -> dict[str, Any]:
        """Content of a basis file (`schemas/basis.schema.json`)."""
        return {**self._content(), "digest": self.digest}

    def save(self, path: str | Path) -> None:
        """Write a basis file."""
        write_file(path, shown_json(self.to_json()))

    @classmethod
    def load(cls, path: str | Path) -> Basis:
        """Read a basis file; schema, shapes and digest are checked."""
        data = read_public(path, "basis")
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
                bands=tuple(_band(band, len(fit["b1"])) for band in data.get("bands", ())),
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
        numbers = public_numbers(
            X, age, feature_names, n_components=n_components, made_on=made_on, age_range=age_range, feature_z=feature_z
        )
        return cls(
            feature_names=tuple(str(n) for n in feature_names),
            units=tuple(units) if units is not None else ("",) * len(feature_names),
            feature_z=float(feature_z),
            confounds=confound_ranges(confounds, confound_names, confound_bounds),
            made_on=made_on.strip(),
            **numbers,
        )


def _band(data: Mapping[str, Any], size: int) -> Band:
    mean, cov = _frozen(data["mean"]), _frozen(data["cov"])
    if mean.shape != (size + 1,) or cov.shape != (size + 1, size + 1):
        raise ValueError("a band of another size")
    return Band(int(data["people"]), mean, cov)
