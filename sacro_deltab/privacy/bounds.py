"""Public bounds: what every contribution is clipped to, and how the numbers came to be public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base import schemas
from ..base.canonical import canonical_line, shown_json
from ..base.digests import sha256_hex
from ..base.errors import InputError, PrivacyError
from ..base.strict import DATA, read_object
from ..base.writing import write_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Provenance = Literal["ruleset", "basis", "registered_file", "unregistered"]
PROVENANCES: tuple[Provenance, ...] = ("ruleset", "basis", "registered_file", "unregistered")
SCHEMA_ID = "sacro_deltab/bounds/1"


def canonical_digest(data: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of sorted, compact JSON; floats as Python's shortest round-trip text."""
    return sha256_hex(canonical_line(data))


def _numbers(name: str, values: Any) -> tuple[float, ...] | None:
    if values is None:
        return None
    try:
        numbers = tuple(float(v) for v in values)
    except (TypeError, ValueError) as error:
        raise PrivacyError(f"bounds: {name} must be a list of numbers", next_step="correct the bounds") from error
    if not all(math.isfinite(v) for v in numbers):
        raise PrivacyError(f"bounds: {name} holds a value that is not finite", next_step="correct the bounds")
    return numbers


@dataclass(frozen=True)
class PublicBounds:
    """Bounds fixed without looking at the cohort.

    Parameters
    ----------
    age
        (low, high) in years; ages outside are clipped to it.
    feature_z
        Largest |z| of one feature after standardising with `centre` and `scale`; > 0.
    centre, scale
        Public centre and spread per feature, in the features' own units. Needed without a basis.
    confound_bounds
        (low, high) per confound column, in the confounds' own units.
    feature_names
        Names `centre` and `scale` belong to, in order; checked against the cohort's when given.
    radius
        L2 norm to which a standardised feature row is clipped on the node-basis path; None: √F.
    provenance
        Why the numbers are public: `ruleset` (age range and feature_z of the rule set), `basis` (all from the shared
        basis file), `registered_file` (a file whose digest was registered in the ledger before the data were opened),
        `unregistered` (somebody's word; the label is then at most `heuristic`).
    """

    age: tuple[float, float] = (40.0, 90.0)
    feature_z: float = 4.0
    centre: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None
    confound_bounds: tuple[tuple[float, float], ...] | None = None
    feature_names: tuple[str, ...] | None = None
    radius: float | None = None
    provenance: Provenance = "unregistered"

    def __post_init__(self) -> None:
        age = _numbers("age", self.age)
        if age is None or len(age) != 2 or not age[0] < age[1]:
            raise PrivacyError("bounds: age must be (low, high) with low < high", next_step="correct the age range")
        if not (math.isfinite(self.feature_z) and self.feature_z > 0):
            raise PrivacyError("bounds: feature_z must be above 0", next_step="give a public clip such as 4.0")
        if self.radius is not None and not (math.isfinite(self.radius) and self.radius > 0):
            raise PrivacyError("bounds: radius must be above 0", next_step="give a public norm or leave it out")
        if self.provenance not in PROVENANCES:
            raise PrivacyError(
                f"bounds: unknown provenance {self.provenance!r}", next_step="one of " + ", ".join(PROVENANCES)
            )
        centre, scale = _numbers("centre", self.centre), _numbers("scale", self.scale)
        if (centre is None) != (scale is None):
            raise PrivacyError("bounds: centre and scale come together", next_step="give both or neither")
        if centre is not None and scale is not None:
            if len(centre) != len(scale):
                raise PrivacyError("bounds: centre and scale differ in length", next_step="one number per feature")
            if not all(v > 0 for v in scale):
                raise PrivacyError("bounds: every scale must be above 0", next_step="leave constant features out")
        names = None if self.feature_names is None else tuple(str(n) for n in self.feature_names)
        if names is not None and centre is not None and len(names) != len(centre):
            raise PrivacyError("bounds: one centre per feature name is needed", next_step="correct the bounds file")
        pairs = None if self.confound_bounds is None else tuple(_pair(p) for p in self.confound_bounds)
        for key, value in (("age", age), ("centre", centre), ("scale", scale), ("feature_names", names)):
            object.__setattr__(self, key, value)
        object.__setattr__(self, "confound_bounds", pairs)
        object.__setattr__(self, "feature_z", float(self.feature_z))

    def values(self) -> dict[str, Any]:
        """The numbers alone, as JSON: what the digest covers. The provenance is a claim about them, not one of them."""
        return {
            "age": list(self.age),
            "feature_z": self.feature_z,
            "centre": None if self.centre is None else list(self.centre),
            "scale": None if self.scale is None else list(self.scale),
            "confound_bounds": None if self.confound_bounds is None else [list(p) for p in self.confound_bounds],
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "radius": self.radius,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the numbers, hex."""
        return canonical_digest(self.values())

    @property
    def age_mid(self) -> float:
        """Centre of the age range in years."""
        return (self.age[0] + self.age[1]) / 2

    @property
    def age_half(self) -> float:
        """Half the age range in years."""
        return (self.age[1] - self.age[0]) / 2

    def with_provenance(self, provenance: Provenance) -> PublicBounds:
        """The same numbers under another claim."""
        return replace(self, provenance=provenance)

    def to_json(self) -> dict[str, Any]:
        """Content of a bounds file (`schemas/bounds.schema.json`)."""
        return {"schema": SCHEMA_ID, **self.values(), "digest": self.digest}

    def save(self, path: str | Path) -> None:
        """Write a bounds file."""
        write_file(path, shown_json(self.to_json()))

    @classmethod
    def load(cls, path: str | Path, *, provenance: Provenance = "unregistered") -> PublicBounds:
        """Read a bounds file. It is `registered_file` only once a ledger says that its digest was registered."""
        data = read_public(path, "bounds")
        bounds = cls(
            age=tuple(data["age"]),
            feature_z=data["feature_z"],
            centre=data.get("centre"),
            scale=data.get("scale"),
            confound_bounds=data.get("confound_bounds"),
            feature_names=data.get("feature_names"),
            radius=data.get("radius"),
            provenance=provenance,
        )
        if data.get("digest") not in (None, bounds.digest):
            raise InputError(
                "the digest in the bounds file is not that of its numbers",
                path=path,
                place="digest",
                next_step="make the file again, or take the digest line out and register the new one",
            )
        return bounds

    def warn_if_data_extremes(self, age: ArrayLike) -> str | None:
        """A warning, for inside only, when the age range equals the data's extremes; changes nothing that leaves."""
        import numpy as np  # late: numpy is heavy

        values = np.asarray(age, dtype=float)
        values = values[np.isfinite(values)]
        if values.size and (float(values.min()), float(values.max())) == self.age:
            return "the age bounds equal the smallest and largest age of this cohort: were they read from the data?"
        return None


def _pair(pair: Sequence[float]) -> tuple[float, float]:
    numbers = _numbers("confound_bounds", pair)
    if numbers is None or len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise PrivacyError("bounds: each confound needs (low, high) with low < high", next_step="correct the bounds")
    return numbers[0], numbers[1]


def read_public(path: str | Path, schema_name: str) -> dict[str, Any]:
    """Read a JSON file and check it against `schemas/NAME.schema.json`; the first fault is named with its place."""
    data = read_object(path, bounds=DATA)
    schemas.check(
        data, schema_name, path=path, what=f"this {schema_name} file", next_step="correct it or make the file again"
    )
    return data


def clean(values: NDArray[np.float64], constant: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Map NaN and infinities to a public constant (per column or one for all); nothing is chosen from the data."""
    import numpy as np  # the ledger's light commands read bounds without it

    return np.where(np.isfinite(values), values, constant)
