"""The one noisy release of the moments, and what it can be turned into without touching the data again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.canonical import shown_json
from ..base.errors import InputError, PrivacyError
from ..base.strict import DATA, read_object
from ..base.writing import write_file
from .blocks import Array, Ints, Layout, add_noise, clip_rows

SCHEMA_ID = "sacro_deltab/noisy-moments/1"


@dataclass(frozen=True)
class Scaling:
    """Public numbers that turn normalised blocks into years and white scores.

    radius: R of the scores (‖u‖ ≤ R); conf_radius: √K; age_mid and age_half in years; digest: of basis and bounds.
    """

    radius: float
    age_mid: float
    age_half: float
    confounds: int = 0
    digest: str = ""

    @property
    def conf_radius(self) -> float:
        """Norm bound of a confound row whose entries lie in [−1, 1]."""
        return float(np.sqrt(max(self.confounds, 1)))

    def factor(self, name: str) -> float:
        """Natural value of a normalised block: R per score, √K per confound; t and q stay in [−1, 1]."""
        size = {"u": self.radius, "c": self.conf_radius}
        return float(np.prod([size.get(letter, 1.0) for letter in name]))


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy sums over people in natural units, with the SD of their noise. Post-processing of it is free.

    values: block → sum; sd: block → noise SD of one (diagonal) entry; n: public N, or None when it was noised.
    """

    layout: Layout
    scaling: Scaling
    values: Mapping[str, Array]
    sd: Mapping[str, float]
    n_public: int | None
    releases: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> float:
        """N where public, else its noisy estimate (at least 1)."""
        return float(self.n_public) if self.n_public is not None else max(1.0, float(self.values["n"]))

    def merge(self, other: NoisyMoments) -> NoisyMoments:
        """Sum over nodes: values and noise variances add. Basis, bounds and blocks must be the same."""
        if self.scaling != other.scaling or self.layout.names != other.layout.names or self.layout != other.layout:
            raise PrivacyError("these noisy moments were made with other bounds, basis or blocks",
                               next_step="use one basis and one job file at every node")  # fmt: skip
        if (self.n_public is None) != (other.n_public is None):
            raise PrivacyError(
                "one node made N public and the other noised it", next_step="use one neighbouring relation"
            )
        count = None if self.n_public is None or other.n_public is None else self.n_public + other.n_public
        return replace(
            self,
            values={name: np.asarray(self.values[name] + other.values[name]) for name in self.layout.names},
            sd={name: float(np.hypot(self.sd[name], other.sd[name])) for name in self.layout.names},
            n_public=count,
            releases=self.releases + other.releases,
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON; the numbers are already private."""
        layout = self.layout
        return {
            "schema": SCHEMA_ID,
            "layout": asdict(layout) | {"fractions": dict(layout.fractions)},
            "scaling": asdict(self.scaling),
            "values": {name: np.asarray(value).tolist() for name, value in self.values.items()},
            "sd": dict(self.sd),
            "n_public": self.n_public,
            "releases": self.releases,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NoisyMoments:
        """Inverse of `to_json`; shapes are checked."""
        if data.get("schema") != SCHEMA_ID:
            raise InputError("these are not noisy moments", next_step=f'expected "schema": "{SCHEMA_ID}"')
        try:
            layout, scaling = Layout(**data["layout"]), Scaling(**data["scaling"])
            values = {name: np.asarray(data["values"][name], dtype=np.float64) for name in layout.names}
            sd = {name: float(data["sd"][name]) for name in layout.names}
            count = None if data["n_public"] is None else int(data["n_public"])
            releases = int(data["releases"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                "the noisy moments are incomplete", next_step="take the file from its maker again"
            ) from error
        for name, value in values.items():
            if value.shape != layout.shape(name) or not np.isfinite(value).all():
                raise InputError(f"block {name} of the noisy moments has a wrong shape", place=name)
        return cls(layout, scaling, values, sd, count, releases)

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        write_file(path, shown_json(self.to_json()))

    @classmethod
    def load(cls, path: str | Path) -> NoisyMoments:
        """Read what `save` wrote."""
        return cls.from_json(read_object(path, bounds=DATA))


def release(
    layout: Layout,
    scaling: Scaling,
    chunks: Iterable[Array],
    t: Array,
    c: Array | None,
    *,
    mu: float,
    reach: int,
    n_public: int | None,
) -> NoisyMoments:
    """Draw the one release. chunks: scores or features of consecutive people (clipped here to R); t: ages in [−1, 1];
    c: confounds in [−1, 1]; n_public: the public N, which may be more than these people."""
    noisy, sd = add_noise(layout, exact_sums(layout, scaling, chunks, t, c), mu, reach)
    return natural(layout, scaling, noisy, sd, n_public)


def exact_sums(layout: Layout, scaling: Scaling, chunks: Iterable[Array], t: Array, c: Array | None) -> dict[str, Ints]:
    """Integer sums of clipped contributions, before any noise."""
    conf = None if c is None else clip_rows(c, scaling.conf_radius)
    sums = layout.sums(np.zeros((0, layout.width)), t[:0], None if conf is None else conf[:0])
    start = 0
    for u in chunks:
        rows = slice(start, start + u.shape[0])
        part = layout.sums(clip_rows(u, scaling.radius), t[rows], None if conf is None else conf[rows])
        sums = {name: sums[name] + part[name] for name in layout.names}
        start += u.shape[0]
    return sums


def natural(
    layout: Layout, scaling: Scaling, noisy: Mapping[str, Array], sd: Mapping[str, float], n_public: int | None
) -> NoisyMoments:
    """Noisy sums in natural units."""
    factor = {name: scaling.factor(name) for name in layout.names}
    return NoisyMoments(
        layout=layout,
        scaling=scaling,
        values={name: np.asarray(noisy[name] * factor[name]) for name in layout.names},
        sd={name: sd[name] * factor[name] for name in layout.names},
        n_public=n_public,
    )


def noise_table(layout: Layout, scaling: Scaling, mu: float, reach: int) -> dict[str, float]:
    """Noise SD of each block in natural units: public, known before anything is spent."""
    return {name: layout.sigma_int(name, mu, reach) * layout.unit(name) * scaling.factor(name) for name in layout.names}


def pool(parts: Sequence[NoisyMoments]) -> NoisyMoments:
    """Sum of several nodes' releases."""
    if not parts:
        raise PrivacyError("no noisy moments to pool", next_step="give at least one node's file")
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    return total
