"""Simulated cohorts: Smith-type latent mixtures for measuring, and a small realistic study for the demonstration.

Everything is drawn from `numpy.random.default_rng(seed)`: the same seed gives the same people. Nobody here is real.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Simulated:
    """Simulated people: X (n x F), age and true_delta in years, feature_names."""

    X: Array
    age: Array
    true_delta: Array
    feature_names: tuple[str, ...]

    def take(self, rows: Any) -> Simulated:
        """The same population, other rows (an index array, mask or slice)."""
        return Simulated(self.X[rows], self.age[rows], self.true_delta[rows], self.feature_names)


def smith_cohort(
    n: int,
    n_features: int,
    *,
    seed: int,
    n_latent: int = 5,
    noise_x: float = 0.5,
    delta_sd: float = 2.0,
    yquad: float = 0.01,
    age: tuple[float, float] = (45.0, 75.0),
    loading_seed: int = 0,
) -> Simulated:
    """A cohort as in the first simulation of Smith et al. 2019 (sections 2.8 and 3.1).

    The first of `n_latent` latents is brain age, ``age + true_delta`` with
    ``true_delta ~ N(0, delta_sd^2) + yquad * ((age - mid)^2 - mean)``; the others are standard normal. They are mixed
    by loadings ``N(0, 1)^5`` (a few strong, most weak), brought to unit variance, and get noise of SD `noise_x`.

    Parameters
    ----------
    n, n_features
        People and features, both at least 1.
    seed
        Of the people. Two seeds give independent people of one population.
    loading_seed
        Of the mixing, the property of the population: cohorts with the same value share their features' meaning.
    age
        Bounds in years; ages are uniform between them.
    """
    mixing = np.random.default_rng([loading_seed, n_latent, n_features]).normal(size=(n_latent, n_features)) ** 5
    mixing /= np.sqrt((mixing**2).sum(axis=0))
    rng = np.random.default_rng(seed)
    middle, half = (age[0] + age[1]) / 2, (age[1] - age[0]) / 2
    ages = rng.uniform(age[0], age[1], n)
    delta = rng.normal(0.0, delta_sd, n) + yquad * ((ages - middle) ** 2 - half**2 / 3)
    latent = rng.normal(size=(n, n_latent))
    latent[:, 0] = (ages + delta - middle) / np.sqrt(half**2 / 3 + delta_sd**2)
    x = latent @ mixing + noise_x * rng.normal(size=(n, n_features))
    return Simulated(x, ages, delta, tuple(f"feature_{i + 1}" for i in range(n_features)))


@dataclass(frozen=True)
class SmithSim1:
    """Simulation 1 as in the reference cases: people, true delta (years) and a fold (0 to 9) per person."""

    people: Simulated
    fold: npt.NDArray[np.int64]


def smith_sim1(seed: int, *, n: int, n_latent: int, n_features: int, noise_x: float = 0.5) -> SmithSim1:
    """Simulation 1 of Smith et al. 2019 with the draw order of the reference cases `smith_sim1_*`.

    Ages ``45 + 25 U + 0.5 N`` years, delta of SD 2 years; the first latent is age + delta; latents and mixed features
    are standardised on the whole sample before noise of SD `noise_x` is added.
    """
    rng = np.random.default_rng(seed)
    uniform, age_noise, delta = rng.random(n), rng.normal(size=n), 2.0 * rng.normal(size=n)
    latent = rng.normal(size=(n, n_latent))
    mixing = rng.normal(size=(n_latent, n_features)) ** 5
    noise = rng.normal(size=(n, n_features))
    fold = rng.integers(10, size=n)
    age = 45.0 + 25.0 * uniform + 0.5 * age_noise
    latent[:, 0] = age + delta
    mixed = _standardised(_standardised(latent) @ mixing)
    names = tuple(f"feature_{i + 1}" for i in range(n_features))
    return SmithSim1(Simulated(mixed + noise_x * noise, age, delta, names), fold)


def _standardised(a: Array) -> Array:
    return np.asarray((a - a.mean(axis=0)) / a.std(axis=0))


# --- the demonstration study ---------------------------------------------------------------------------------------

_REGIONS = (
    "bankssts", "caudalanteriorcingulate", "caudalmiddlefrontal", "cuneus", "entorhinal", "fusiform",
    "inferiorparietal", "inferiortemporal", "isthmuscingulate", "lateraloccipital", "lateralorbitofrontal", "lingual",
    "medialorbitofrontal", "middletemporal", "parahippocampal", "paracentral", "parsopercularis", "parsorbitalis",
    "parstriangularis", "pericalcarine", "postcentral", "posteriorcingulate", "precentral", "precuneus",
    "rostralanteriorcingulate", "rostralmiddlefrontal", "superiorfrontal", "superiorparietal", "superiortemporal",
    "supramarginal", "frontalpole", "temporalpole", "transversetemporal", "insula",
)  # fmt: skip
_VOLUMES = {  # mean volume in mm3 (one hemisphere)
    "Lateral-Ventricle": 9500.0, "Thalamus": 7100.0, "Caudate": 3500.0, "Putamen": 4900.0, "Pallidum": 1950.0,
    "Hippocampus": 3900.0, "Amygdala": 1600.0, "Accumbens-area": 520.0,
}  # fmt: skip
SITES = {"Aberdeen": 230, "Bangor": 38, "Cardiff": 190, "Dundee": 120, "Swansea": 85, "Wrexham": 13, "Oban": 4}
_DIAGNOSES = (("control", 0.70, 0.0), ("MCI", 0.20, 2.0), ("AD", 0.082, 5.0), ("FTD", 0.018, 4.0))
DEMO_AGES = (45.0, 85.0)
_POPULATION = 2019  # seed of the population: study and reference people share it


@dataclass(frozen=True)
class DemoCohort:
    """A simulated study as tables, one row a person.

    `table` holds participant_id, age, sex, diagnosis, site, two confounds and all IDPs; the other attributes name its
    columns. Some IDP values are missing; one IDP is the exact sum of two others, and one is constant, as in real data.
    """

    table: pd.DataFrame
    feature_names: tuple[str, ...]
    confound_names: tuple[str, ...]
    group_names: tuple[str, ...]
    true_delta: Array

    @property
    def age(self) -> Array:
        """Ages in years."""
        return self.table["age"].to_numpy(dtype=np.float64)

    @property
    def features(self) -> pd.DataFrame:
        """The IDPs (n x F)."""
        return self.table[list(self.feature_names)]

    @property
    def confounds(self) -> pd.DataFrame:
        """The confounds (n x 2)."""
        return self.table[list(self.confound_names)]

    @property
    def groups(self) -> pd.DataFrame:
        """Sex, diagnosis and site."""
        return self.table[list(self.group_names)]


def demo_feature_names() -> tuple[str, ...]:
    """IDP names of the simulated study in FreeSurfer's style, in order."""
    thickness = [f"{h}_{r}_thickness" for h in ("lh", "rh") for r in _REGIONS]
    volumes = [f"{h}-{v}" for h in ("Left", "Right") for v in _VOLUMES]
    return (*thickness, *volumes, "Total-Hippocampus", "Left-non-WM-hypointensities")


def demo_cohort(seed: int = 1, n: int = 680) -> DemoCohort:
    """The study of the demonstration: sites below 20, one of them of a handful, a rare diagnosis, missing values.

    With the default `n` the sites have the sizes in `SITES`; other `n` scale the large ones.
    """
    rng = np.random.default_rng([seed, 11])
    return _study(rng, n, _site_list(n, rng), missing=0.004, prefix="P")


def demo_public_reference(seed: int = 2, n: int = 400) -> DemoCohort:
    """Simulated volunteers of a public data set: other people of the same population, healthy, nothing missing.

    They stand for people whose data may be used freely: the shared basis and the public bounds are made on them.
    """
    rng = np.random.default_rng([seed, 22])
    return _study(rng, n, np.full(n, "Public"), missing=0.0, prefix="R", healthy=True)


def _site_list(n: int, rng: np.random.Generator) -> npt.NDArray[np.str_]:
    small = [(s, k) for s, k in SITES.items() if k < 50]
    large = [(s, k) for s, k in SITES.items() if k >= 50]
    rest = max(n - sum(k for _, k in small), 0)
    share = np.array([k for _, k in large], dtype=float)
    counts = np.floor(rest * share / share.sum()).astype(int)
    counts[0] += rest - counts.sum()
    names = [s for s, k in small for _ in range(k)] + [
        s for (s, _), k in zip(large, counts, strict=True) for _ in range(k)
    ]
    return rng.permutation(np.array(names[:n]))


def _study(
    rng: np.random.Generator, n: int, site: npt.NDArray[np.str_], *, missing: float, prefix: str, healthy: bool = False
) -> DemoCohort:
    import pandas as pd  # late: pandas is heavy

    age = np.round(rng.uniform(DEMO_AGES[0], DEMO_AGES[1], n), 1)
    sex = np.where(rng.random(n) < 0.52, "F", "M")
    names = [d for d, _, _ in _DIAGNOSES]
    # diagnoses become commoner with age, the rare one stays rare
    draw = rng.random(n) * np.where(age < 60, 0.85, 1.0)
    edges = np.cumsum([p for _, p, _ in _DIAGNOSES])
    which = np.zeros(n, dtype=int) if healthy else np.minimum(np.searchsorted(edges, draw), len(names) - 1)
    shift = np.array([s for _, _, s in _DIAGNOSES])[which]
    delta = rng.normal(0.0, 4.0, n) + shift + 0.005 * ((age - 65) ** 2 - 133)
    confounds = np.column_stack([rng.gamma(2.0, 0.09, n).round(3), (rng.normal(0, 1, n) + (sex == "M")).round(3)])
    x = _idps(rng, age + delta, confounds)
    feature_names = demo_feature_names()
    confound_names = ("head_motion_mm", "head_size_z")
    if missing:
        x[rng.random(x.shape) < missing] = np.nan
    table = pd.DataFrame(
        {
            "participant_id": [f"{prefix}{i + 1:04d}" for i in range(n)],
            "age": age,
            "sex": sex,
            "diagnosis": np.array(names)[which],
            "site": site,
        }
    )
    table = pd.concat(
        [table, pd.DataFrame(confounds, columns=list(confound_names)), pd.DataFrame(x, columns=list(feature_names))],
        axis=1,
    )
    return DemoCohort(table, feature_names, confound_names, ("sex", "diagnosis", "site"), delta)


def _idps(rng: np.random.Generator, brain_age: Array, confounds: Array) -> Array:
    """Thicknesses (mm) and volumes (mm3) that thin, shrink or (ventricles) grow with brain age."""
    population = np.random.default_rng(_POPULATION)
    f = len(demo_feature_names()) - 2
    n_thick = 2 * len(_REGIONS)
    n_latent = 6
    loading = population.normal(size=(n_latent, f)) * np.array([0.8, 0.6, 0.5, 0.4, 0.3, 0.3])[:, None]
    ageing = -np.abs(population.normal(0.55, 0.2, f))
    centre = np.concatenate([population.uniform(1.8, 3.4, n_thick), np.tile(list(_VOLUMES.values()), 2)])
    spread = np.concatenate([population.uniform(0.09, 0.2, n_thick), 0.11 * centre[n_thick:]])
    ventricle = np.array([i for i in range(n_thick, f) if (i - n_thick) % len(_VOLUMES) == 0])
    ageing[ventricle] *= -1.5
    spread[ventricle] *= 2.5
    by_confound = population.normal(0, 0.15, size=(2, f))
    by_confound[1, n_thick:] += 0.5  # larger heads, larger volumes
    z = np.outer((brain_age - 65) / 12, ageing) + rng.normal(size=(brain_age.size, n_latent)) @ loading
    z += confounds @ by_confound + rng.normal(0, 0.5, size=(brain_age.size, f))
    x = centre + spread * z / np.sqrt(1.6)
    x[:, :n_thick] = x[:, :n_thick].round(3)
    x[:, n_thick:] = np.maximum(x[:, n_thick:], 0.03 * centre[n_thick:]).round(1)
    hippocampus = [n_thick + h * len(_VOLUMES) + list(_VOLUMES).index("Hippocampus") for h in (0, 1)]
    total = x[:, hippocampus].sum(axis=1)
    return np.column_stack([x, total, np.zeros(brain_age.size)])
