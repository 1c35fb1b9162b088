"""The integer grid: exact sums, exact sensitivity, and noise that is there and as large as claimed."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sacro_deltab.privacy import blocks, moments, sampler, train_private
from sacro_deltab.privacy.blocks import (
    FRACTIONS,
    GRID_BITS,
    Layout,
    clip_rows,
    norm_bound,
    quantise,
    svec,
)
from sacro_deltab.privacy.mechanisms import mu_of

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases" / "dp"
MU = mu_of(1.0, 1e-6)
LAYOUTS = [
    Layout(5), Layout(5, gram=True, count=True), Layout(7, confounds=2, gram=True), Layout(3, tau=0.35),
    Layout(1, gram=True),
    Layout(40, gram=True, count=True, confounds=1),
]  # fmt: skip


def case(name: str) -> dict:
    return json.loads((CASES / f"{name}.json").read_text())


def test_svec_case() -> None:
    data = case("svec_isometry")
    vector = svec(np.array(data["inputs"]["A"]))
    np.testing.assert_allclose(vector, data["expected"]["svec"], atol=1e-12)
    assert np.linalg.norm(vector) == pytest.approx(data["expected"]["norm"], abs=1e-12)


def contribution(layout: Layout, u: np.ndarray, t: float, c: np.ndarray | None) -> dict[str, np.ndarray]:
    return layout.sums(u[None, :], np.array([t]), None if c is None else c[None, :])


def weighted_square(layout: Layout, parts: dict[str, np.ndarray]) -> float:
    """Squared norm of a contribution in units in which the whole release has noise σ and claimed sensitivity 1."""
    return sum(
        layout.share[name] * float(np.square(np.asarray(parts[name], dtype=np.float64)).sum()) / layout.bound(name) ** 2
        for name in layout.names
    )


def hostile(rng: np.random.Generator, width: int) -> np.ndarray:
    """A record made to get past a clip: infinities, NaN, huge, subnormal, aligned, sparse."""
    kind = rng.integers(8)
    row = rng.normal(size=width) * 10.0 ** rng.uniform(-320, 308)
    if kind == 0:
        row = np.full(width, rng.choice([np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -0.0]))
    elif kind == 1:
        row[rng.integers(width)] = rng.choice([np.inf, -np.inf, np.nan])
    elif kind == 2:
        row = np.zeros(width)
        row[rng.integers(width)] = rng.choice([1e308, -1.0, 1.0])
    elif kind == 3:
        row = np.sign(rng.normal(size=width)) / math.sqrt(width)
    elif kind == 4:
        row = rng.choice([1e200, -1e200, 1e-200], size=width)
    return row


def test_four_thousand_hostile_records_never_exceed_the_sensitivity() -> None:
    rng = np.random.default_rng(7)
    worst = dict.fromkeys(range(len(LAYOUTS)), 0.0)
    with np.errstate(all="ignore"):
        for k in range(4000):
            layout = LAYOUTS[k % len(LAYOUTS)]
            row, conf = hostile(rng, layout.width), None
            row = row if k % 5 == 0 else clip_rows(row[None, :], 1.0)[0]  # also rows that skipped the float clip
            if layout.confounds:
                conf = hostile(rng, layout.confounds)
            age = float(rng.choice([-1.0, 1.0, 0.0, np.nan, np.inf, 1e300, -1e300, rng.uniform(-1, 1)]))
            square = weighted_square(layout, contribution(layout, row, age, conf))
            assert square <= 1 + 1e-12
            worst[k % len(LAYOUTS)] = max(worst[k % len(LAYOUTS)], square)
    assert min(worst.values()) > 0.9  # the bound is attained, so a looser clip would show


def test_the_fuzz_fails_when_a_clip_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unclipped(values: np.ndarray, bound: int | None = None) -> np.ndarray:
        return np.rint(values * float(1 << GRID_BITS)).astype(np.int64)

    monkeypatch.setattr(blocks, "quantise", unclipped)
    layout = Layout(5)
    assert weighted_square(layout, contribution(layout, np.full(5, 3.0), 1.0, None)) > 1


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 60), st.booleans())
def test_sums_are_exact_integers(seed: int, width: int, people: int, gram: bool) -> None:
    rng = np.random.default_rng(seed)
    layout = Layout(width, confounds=2, gram=gram, count=True)
    u, t, c = (
        clip_rows(rng.normal(size=(people, width)), 1.0),
        rng.uniform(-1, 1, people),
        rng.uniform(-0.7, 0.7, (people, 2)),
    )
    got = layout.sums(u, t, c)
    wide, first = quantise(u).tolist(), quantise(t[:, None])[:, 0].tolist()
    second, conf = quantise((2 * t * t - 1)[:, None])[:, 0].tolist(), quantise(c).tolist()
    assert got["ut"].tolist() == [sum(row[j] * a for row, a in zip(wide, first, strict=True)) for j in range(width)]
    assert int(got["qq"]) == sum(b * b for b in second)
    assert got["cu"].tolist() == [
        [sum(conf[i][k] * wide[i][j] for i in range(people)) for j in range(width)] for k in range(2)
    ]
    if gram:
        assert int(got["uu"][0, -1]) == sum(row[0] * row[-1] for row in wide)
    assert int(got["n"]) == people << GRID_BITS


@pytest.mark.parametrize("kind", ["spread", "one corner", "signs"])
def test_float_products_equal_the_integer_sums(kind: str) -> None:
    """Double-precision BLAS over whole chunks gives the int64 sums to the last bit, also where they are largest."""
    rng, people, width = np.random.default_rng(4), 2 * blocks.CHUNK + 5, 3
    u = {
        "spread": clip_rows(rng.normal(size=(people, width)), 1.0),
        "one corner": np.tile([1.0, 0.0, -0.0], (people, 1)),
        "signs": np.where(rng.random((people, 1)) < 0.5, -1, 1) * np.full((people, width), width**-0.5),
    }[kind]
    t = np.ones(people) if kind == "one corner" else rng.uniform(-1, 1, people)
    got = Layout(width, confounds=1, gram=True).sums(u, t, t[:, None])
    wide, first, second = quantise(u), quantise(t[:, None]), quantise((2 * t * t - 1)[:, None])
    for name, value in {
        "uu": wide.T @ wide, "ut": (wide.T @ first)[:, 0], "uq": (wide.T @ second)[:, 0], "cu": first.T @ wide,
        "cc": first.T @ first, "cq": (first.T @ second)[:, 0], "u": wide.sum(axis=0), "qq": (second * second).sum(),
    }.items():  # fmt: skip
        assert value.dtype == np.int64
        assert np.array_equal(got[name], value), name


def test_grid_rows_are_the_same_however_wide_and_however_broken() -> None:
    """The norm check is exact on both sides of the width where doubles would round; hostile entries become zero."""
    top = blocks._EXACT_WIDTH
    for width in (top, top + 1):
        rows = np.zeros((3, width))
        rows[0, :2], rows[1, 0], rows[2, :] = (1.0, 1.0), 1.0, 1.0
        ints = quantise(rows)
        assert not ints[0].any() and not ints[2].any() and ints[1, 0] == 1 << GRID_BITS
        # exactly at the bound a row stays, one above it goes
        assert quantise(rows[1:2], 1 << GRID_BITS).any() and not quantise(rows[1:2], (1 << GRID_BITS) - 1).any()
    broken = np.array([[np.nan, 0.5], [np.inf, 0.5], [-np.inf, 0.5], [5.0, 0.0], [-7.0, 0.0]])
    one = 1 << GRID_BITS
    assert quantise(broken).tolist() == [[0, one // 2]] * 3 + [[one, 0], [-one, 0]]


def test_sums_over_nodes_and_chunks_are_bit_equal() -> None:
    rng = np.random.default_rng(0)
    layout = Layout(6, gram=True)
    u, t = clip_rows(rng.normal(size=(9000, 6)), 1.0), rng.uniform(-1, 1, 9000)
    whole, left, right = layout.sums(u, t), layout.sums(u[:777], t[:777]), layout.sums(u[777:], t[777:])
    for name in layout.names:
        assert np.array_equal(whole[name], left[name] + right[name])


def test_overflow_wraps_and_one_person_still_moves_it_by_their_own_contribution() -> None:
    """Sums live modulo 2⁶⁴: a wrapped sum differs between neighbours by exactly what one person contributes."""
    near = np.array([2**63 - 5], dtype=np.int64)
    with np.errstate(over="ignore"):
        moved = near + np.array([1 << 40], dtype=np.int64)
    assert int(moved[0]) < 0
    assert int((moved - near)[0]) == 1 << 40


def test_rounding_to_the_grid_is_inside_the_bound() -> None:
    rng = np.random.default_rng(1)
    for width in (1, 2, 50, 2000):
        rows = clip_rows(rng.normal(size=(200, width)), 1e-9)
        ints = quantise(rows)
        norms = (ints.astype(object) ** 2).sum(axis=1)
        assert max(norms) <= norm_bound(width) ** 2
        assert min(norms) > 0  # honest rows are never zeroed


def standard_scores(layout: Layout, people: int = 300) -> np.ndarray:
    """(release − truth)/σ of one release of random people, off-diagonal entries included once."""
    rng = np.random.default_rng(3)
    scaling = moments.Scaling(2.0, 60.0, 15.0, layout.confounds)
    u, t = rng.normal(size=(people, layout.width)), rng.uniform(-1, 1, people)
    c = rng.uniform(-1, 1, (people, layout.confounds)) if layout.confounds else None
    conf = None if c is None else clip_rows(c, scaling.conf_radius)
    truth = layout.sums(clip_rows(u, 2.0), t, conf)
    n = None if layout.count else t.size
    got = moments.release(layout, scaling, [u[:100], u[100:]], t, c, mu=MU, reach=1, n_public=n)
    claimed = moments.noise_table(layout, scaling, MU, 1)
    scores = []
    for name in layout.names:
        gap = (got.values[name] - truth[name].astype(float) * layout.unit(name) * scaling.factor(name)) / claimed[name]
        if name in blocks.SYMMETRIC:
            gap = svec(gap)
        scores.append(np.ravel(gap))
    return np.concatenate(scores)


def noise_is_as_claimed(scores: np.ndarray, alpha: float = 1e-9) -> bool:
    square = float((scores**2).sum())
    return bool(chi2.ppf(alpha / 2, scores.size) <= square <= chi2.isf(alpha / 2, scores.size))


@pytest.mark.parametrize(
    "layout", [Layout(25, gram=True, count=True), Layout(40, confounds=2), Layout(30, tau=0.5, gram=True)]
)
def test_white_box_noise(layout: Layout) -> None:
    assert noise_is_as_claimed(standard_scores(layout))


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_white_box_fails_when_sigma_is_halved_or_doubled(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = sampler.discrete_gaussian
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda scale, size: honest(scale * factor, size))
    assert not noise_is_as_claimed(standard_scores(Layout(25, gram=True, count=True)))


def test_block_shares_sum_to_one_and_sigma_gives_the_whole_release_its_mu() -> None:
    for layout in LAYOUTS:
        assert sum(layout.share.values()) == pytest.approx(1.0)
        for reach in (1, 2):
            strength = sum((reach * layout.bound(n) / layout.sigma_int(n, MU, reach)) ** 2 for n in layout.names)
            assert strength <= MU**2
            assert strength == pytest.approx(MU**2, rel=1e-6)
    assert set(FRACTIONS) >= set(Layout(2, confounds=1, gram=True, count=True).names)


def test_no_seed_on_the_certified_path() -> None:
    for function in (train_private, sampler.discrete_gaussian, blocks.add_noise, moments.release):
        assert not {"seed", "rng", "random_state", "draw"} & set(inspect.signature(function).parameters)
    assert "default_rng" not in inspect.getsource(blocks) + inspect.getsource(sampler) + inspect.getsource(moments)
