"""The trainer audits itself through its front door, and every audit fails on the mutant it is there for.

White box: (release − truth)/σ against χ². Black box: 8 canaries, 200 releases a side, a lower bound on μ. Fuzz: 4,000
hostile records, each at most the sensitivity. Two releases differ. Mutants: σ halved, the clip removed, a bound read
from the data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import beta, chi2

from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis, blocks, moments, paths, sampler, train_private, training
from sacro_deltab.privacy.blocks import SYMMETRIC, svec
from sacro_deltab.privacy.mechanisms import mu_of

FEATURES, SIZE, PEOPLE = 12, 4, 60
CANARIES, RUNS = 8, 200
MU = mu_of(1.0, 1e-6)
Sampler = Callable[[float, int], Any]


@pytest.fixture(scope="module")
def basis() -> Basis:
    public = smith_cohort(1000, FEATURES, seed=90)
    return Basis.from_public(
        public.X, public.age, public.feature_names, n_components=SIZE, made_on="simulated people", age_range=(45, 75)
    )


def job_of(basis: Basis, X: Any, age: Any, **change: Any) -> Any:
    call: dict[str, Any] = {
        "confounds": None, "feature_names": basis.feature_names, "confound_names": None, "bounds": None,
        "basis": basis, "epsilon": 1.0, "delta_dp": 1e-6, "adjacency": "add_remove", "unit": "person",
        "n_components": None, "method": "moments", "registered": None, "ruleset_bounds": None, "outputs": (),
        "options": {"gram": True},
    } | change  # fmt: skip
    return training.prepare(X, age, **call)


def released(job: Any, price: Any) -> np.ndarray:
    """One release, all blocks in units of the σ that was public beforehand."""
    noisy = price.run(job)[1]
    parts = []
    for name, value in noisy.values.items():
        part = np.asarray(value, dtype=float)
        parts.append((svec(part) if name in SYMMETRIC else part.ravel()) / price.public["noise_sd"][name])
    return np.concatenate([np.atleast_1d(part) for part in parts])


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Sampler | None], None]]:
    """Replace the sampler: None for the exact one, else a stand-in."""
    honest = sampler.discrete_gaussian

    def use(stand_in: Sampler | None) -> None:
        monkeypatch.setattr(sampler, "discrete_gaussian", honest if stand_in is None else stand_in)

    yield use


def silent(scale: float, size: int) -> np.ndarray:
    return np.zeros(size, dtype=np.int64)


def quick(seed: int, factor: float = 1.0) -> Sampler:
    """A fast stand-in of the same distribution, for the many runs of mutants and rates."""
    rng = np.random.default_rng(seed)
    return lambda scale, size: np.rint(rng.normal(0.0, scale * factor, size)).astype(np.int64)


def batched(honest: Sampler) -> Sampler:
    """The exact sampler, asked for the noise of 500 releases at once: 400 releases then take a second."""
    stores: dict[tuple[float, int], list[np.ndarray]] = {}

    def draw(scale: float, size: int) -> np.ndarray:
        store = stores.setdefault((scale, size), [])
        if not store:
            store.extend(honest(scale, size * 500).reshape(500, size))
        return store.pop()

    return draw


# --- white box -------------------------------------------------------------------------------------------------------


def white_box(basis: Basis, use: Callable[[Sampler | None], None], noise: Sampler | None, alpha: float = 1e-8) -> bool:
    """Whether the noise of three releases is as large as was public beforehand."""
    people = smith_cohort(PEOPLE, FEATURES, seed=1)
    job, price = job_of(basis, people.X, people.age)
    use(silent)
    truth = released(job, price)
    use(noise)
    square = sum(float(((released(job, price) - truth) ** 2).sum()) for _ in range(3))
    degrees = 3 * truth.size
    return bool(chi2.ppf(alpha / 2, degrees) <= square <= chi2.isf(alpha / 2, degrees))


def test_white_box(basis: Basis, quiet: Any) -> None:
    assert white_box(basis, quiet, None)
    assert white_box(basis, quiet, quick(1))


def test_white_box_catches_half_the_noise(basis: Basis, quiet: Any) -> None:
    assert not white_box(basis, quiet, quick(2, 0.5))


def from_data(layout: Any, scaling: Any, chunks: Any, *rest: Any, **more: Any) -> Any:
    """Mutant: the clip is the largest norm in the data."""
    rows = list(chunks)
    radius = max(float(np.linalg.norm(part, axis=1).max()) for part in rows)
    return moments.release(layout, dataclasses.replace(scaling, radius=radius), rows, *rest, **more)


def test_white_box_catches_a_bound_read_from_the_data(
    basis: Basis, quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "release", from_data)
    assert not white_box(basis, quiet, quick(3))


def noise_of_neighbours(basis: Basis) -> list[dict[str, float]]:
    """σ of the release with and without one far-out person."""
    people = smith_cohort(PEOPLE, FEATURES, seed=1)
    X = people.X.copy()
    X[0] *= 1000
    jobs = (job_of(basis, X[first:], people.age[first:]) for first in (0, 1))
    return [dict(price.run(job)[1].sd) for job, price in jobs]


def test_noise_is_the_same_for_neighbours(basis: Basis, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = noise_of_neighbours(basis)
    assert one == other
    monkeypatch.setattr(paths, "release", from_data)
    one, other = noise_of_neighbours(basis)
    assert one != other


# --- black box -------------------------------------------------------------------------------------------------------


def far_out(basis: Basis, people: int) -> tuple[np.ndarray, np.ndarray]:
    """People beyond every clip, all in one direction: the most that anybody can do to the sums."""
    direction = basis.components[0] * 400.0 * basis.score_sd[0]
    limited = np.sign(direction) * np.minimum(np.abs(direction), 1e6)
    X = basis.centre + basis.scale * limited
    return np.tile(X, (people, 1)), np.full(people, 1e6)


class Canaries:
    """Releases with and without canaries, projected on what the canaries add (in units of σ)."""

    def __init__(self, basis: Basis, use: Callable[[Sampler | None], None]) -> None:
        people = smith_cohort(PEOPLE, FEATURES, seed=2)
        X, age = far_out(basis, CANARIES)
        self.use = use
        self.sides = [
            job_of(basis, people.X, people.age),
            job_of(basis, np.vstack([people.X, X]), np.concatenate([people.age, age])),
        ]
        use(silent)
        self.base, with_them = (released(*side) for side in self.sides)
        self.added = with_them - self.base
        self.strength = float(np.linalg.norm(self.added))

    def scores(self, noise: Sampler | None, runs: int = RUNS) -> np.ndarray:
        """2 × runs projections: without and with canaries."""
        self.use(noise)
        direction = self.added / self.strength
        return np.array([[(released(*side) - self.base) @ direction for _ in range(runs)] for side in self.sides])

    def lower_bound(self, noise: Sampler | None) -> float:
        """What 200 releases a side prove of μ."""
        return self.proved(self.scores(noise))

    def proved(self, scores: np.ndarray, level: float = 0.9999) -> float:
        """μ per person that the releases prove at this level (Clopper-Pearson on both error rates)."""
        cut, runs = self.strength / 2, scores.shape[1]
        wrong = [int((scores[0] > cut).sum()), int((scores[1] <= cut).sum())]
        most = [float(beta.ppf(level, k + 1, runs - k)) if k < runs else 1.0 for k in wrong]
        return float(-ndtri(most[0]) - ndtri(most[1])) / CANARIES


def test_canaries_move_the_release_by_no_more_than_claimed(basis: Basis, quiet: Any) -> None:
    canaries = Canaries(basis, quiet)
    assert 0.9 * CANARIES * MU < canaries.strength <= CANARIES * MU  # at the clip: the test is as sharp as it can be


def test_black_box(basis: Basis, quiet: Any) -> None:
    exact = batched(sampler.discrete_gaussian)
    assert Canaries(basis, quiet).lower_bound(exact) <= MU


def test_black_box_catches_half_the_noise(basis: Basis, quiet: Any) -> None:
    assert Canaries(basis, quiet).lower_bound(quick(4, 0.5)) > MU


def unclipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: neither the float clip nor the integer check behind it."""
    monkeypatch.setattr(moments, "clip_rows", lambda values, radius: np.asarray(values) / radius)
    monkeypatch.setattr(
        blocks, "quantise", lambda values, bound=None: np.rint(np.clip(values, -1e4, 1e4) * 2.0**20).astype(np.int64)
    )


def test_black_box_catches_a_missing_clip(basis: Basis, quiet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unclipped(monkeypatch)
    canaries = Canaries(basis, quiet)
    assert canaries.strength > 2 * CANARIES * MU
    assert canaries.lower_bound(quick(5)) > MU


def test_the_integer_check_stands_behind_the_clip(basis: Basis, quiet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "clip_rows", lambda values, radius: np.asarray(values) / radius)
    assert Canaries(basis, quiet).strength <= CANARIES * MU


@pytest.mark.soak
@pytest.mark.parametrize(("factor", "least", "most"), [(1.0, 0.0, 0.01), (0.5, 0.99, 1.0), (2 / 3, 0.3, 1.0)])
def test_power_and_false_alarms(basis: Basis, quiet: Any, factor: float, least: float, most: float) -> None:
    """Share of alarms over 1,000 audits of 200 releases a side, drawn from 1,500 a side."""
    canaries = Canaries(basis, quiet)
    scores, rng = canaries.scores(quick(1000, factor), 1500), np.random.default_rng(0)
    alarms = [canaries.proved(scores[:, rng.choice(1500, RUNS, replace=False)]) > MU for _ in range(1000)]
    assert least <= np.mean(alarms) <= most


# --- sensitivity fuzz ------------------------------------------------------------------------------------------------

ODD = (np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -0.0, 1e16, -1e16)


def hostile(rng: np.random.Generator, width: int) -> np.ndarray:
    row = rng.normal(size=width) * 10.0 ** rng.uniform(-300, 300)
    kind = rng.integers(5)
    if kind == 0:
        row = np.full(width, rng.choice(ODD))
    elif kind == 1:
        row[rng.integers(0, width, 3)] = rng.choice(ODD, 3)
    elif kind == 2:
        row = rng.normal(size=width) * 10.0 ** rng.uniform(-1, 3)
    return row


def largest_contribution(basis: Basis, records: int) -> float:
    """Most that one hostile raw record moves the release, in units of σ (add or remove; the claim is μ)."""
    rng = np.random.default_rng(11)
    X = np.array([hostile(rng, FEATURES) for _ in range(records)])
    age = np.where(rng.random(records) < 0.5, rng.choice(ODD, records), rng.normal(60, 30, records))
    job, price = job_of(basis, X, age)
    with np.errstate(all="ignore"):
        scores, t = job.scores(basis, SIZE), job.ages()
        layout = blocks.Layout(SIZE, gram=True, count=True)
        scaling = paths.scaling_of(job, float(basis.radius[SIZE - 1]))
        worst = 0.0
        for k in range(records):
            sums = layout.sums(moments.clip_rows(scores[k : k + 1], scaling.radius), t[k : k + 1])
            square = 0.0
            for name, value in sums.items():
                natural = np.asarray(value, dtype=float) * layout.unit(name) * scaling.factor(name)
                part = svec(natural) if name in SYMMETRIC else natural.ravel()
                square += float((np.atleast_1d(part) ** 2).sum()) / price.public["noise_sd"][name] ** 2
            worst = max(worst, square)
    return float(np.sqrt(worst))


def test_four_thousand_hostile_records(basis: Basis) -> None:
    worst = largest_contribution(basis, 4000)
    assert 0.9 * MU < worst <= MU * (1 + 1e-12)


def test_fuzz_catches_a_missing_clip(basis: Basis, monkeypatch: pytest.MonkeyPatch) -> None:
    unclipped(monkeypatch)
    assert largest_contribution(basis, 300) > 2 * MU


# --- fresh randomness ------------------------------------------------------------------------------------------------


def differ(basis: Basis, method: str) -> bool:
    people = smith_cohort(PEOPLE, FEATURES, seed=1)
    b1 = []
    for _ in range(2):
        np.random.seed(1)  # noqa: NPY002 (a seed set by anybody must not matter)
        private = train_private(
            people.X, people.age, feature_names=people.feature_names, basis=basis, epsilon=1.0, method=method,
            spend=lambda request: None,
        )  # fmt: skip
        b1.append(private.weights.b1)
    return not np.array_equal(*b1)


@pytest.mark.parametrize("method", ["moments", "gradient"])
def test_two_releases_differ(basis: Basis, quiet: Any, method: str) -> None:
    assert differ(basis, method)
    quiet(lambda scale, size: np.random.normal(0, scale, size).astype(np.int64))  # noqa: NPY002 (the mutant)
    assert not differ(basis, method)
