"""What a person adds to a sum is a function of that person alone: not of who else is there, nor of where they stand."""

from __future__ import annotations

import numpy as np
import pytest

from sacro_deltab.base.errors import PrivacyError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis
from sacro_deltab.privacy.blocks import clip_rows, row_sums

PLACES = (slice(1, 4096), slice(5, 4000), slice(3, 4), slice(0, 17), slice(2, 4095))


@pytest.fixture(scope="module")
def basis() -> Basis:
    public = smith_cohort(600, 300, seed=1)
    return Basis.from_public(public.X, public.age, public.feature_names, n_components=25, made_on="public people")


@pytest.mark.parametrize("limit", [4.0, 1.0, 50.0])
def test_scores_do_not_depend_on_who_else_is_there(basis: Basis, limit: float) -> None:
    z = np.clip(3 * np.random.default_rng(0).normal(size=(4096, 300)), -limit, limit)
    whole = basis.exact_scores(z, 25, limit)
    for place in PLACES:
        assert np.array_equal(basis.exact_scores(z[place], 25, limit), whole[place])
    assert np.abs(whole - basis.white_scores(z, 25)).max() < 1e-4


def test_an_exact_sum_is_exact(basis: Basis) -> None:
    """Every partial sum is an integer below 2⁵³: the float product equals the one in unbounded integers."""
    z = np.where(np.random.default_rng(1).integers(0, 2, size=(50, 300)) == 1, 4.0, -4.0)
    z[0] = 4.0 * np.sign(basis.components[0])  # the longest row along an axis
    size = int(np.ceil(np.log2(4 * np.sqrt(300))))
    fine = (51 - 2 * size) // 2
    rest = 51 - size - fine
    left = [[int(v) for v in row] for row in np.rint(z * 2.0**fine)]
    axes = [[int(v) for v in row] for row in np.rint(basis.components * 2.0**rest)]
    exact = [[sum(a * b for a, b in zip(row, axis, strict=True)) for axis in axes] for row in left]
    assert max(sum(abs(a * b) for a, b in zip(row, axes[0], strict=True)) for row in left) < 2**53
    wanted = np.array(exact, dtype=float) * 2.0 ** -(fine + rest) / basis.score_sd
    assert np.array_equal(basis.exact_scores(z, 25, 4.0), wanted)


def test_a_clip_too_large_for_exact_sums_is_refused(basis: Basis) -> None:
    with pytest.raises(PrivacyError, match="too large"):
        basis.exact_scores(np.zeros((2, 300)), 25, 1e12)


def test_norms_and_products_do_not_depend_on_who_else_is_there() -> None:
    rng = np.random.default_rng(2)
    for width in (1, 3, 26, 301):
        rows, vector = rng.normal(size=(4096, width)), rng.normal(size=width)
        clipped, product = clip_rows(rows, 1.0), row_sums(rows * vector)
        for place in PLACES:
            assert np.array_equal(clip_rows(rows[place].copy(), 1.0), clipped[place])
            assert np.array_equal(row_sums(rows[place] * vector), product[place])
