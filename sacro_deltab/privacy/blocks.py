"""The certified path: clipped contributions on a public integer grid, exact integer sums, integer Gaussian noise.

One person contributes the products of four clipped things: white scores (or features) u, confounds c, age t in
[−1, 1] and q = 2t² − 1. Each is rounded to integers first and its integer norm is *checked in integers*; the products
are then integers too, and so are the sums. The sensitivity of a block is therefore an integer known exactly: no
double-precision argument is needed anywhere (a person whose check fails contributes nothing, which is also a function
of that person alone). Sums are taken modulo 2⁶⁴, noise included, so that even an overflow cannot break privacy.

Blocks are weighted so that the whole release is one Gaussian mechanism: block b has μ_b = μ·√f_b with Σ f_b = 1.
Symmetric blocks are released as upper triangles whose off-diagonal noise has half the variance: exactly iid noise on
the svec form, whose norm is the Frobenius norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..base.errors import PrivacyError
from . import sampler
from .mechanisms import SMOOTHING_VARIANCE, integer_sigma

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

GRID_BITS = 20
# Rows per exact product: (2²⁰+1500)²·1024 < 2⁵³, so a double-precision BLAS sum is an exact integer; few enough that
# the copies of a few hundred columns stay near the CPU.
CHUNK = 1024
_EXACT_WIDTH = 1 << (53 - 2 * GRID_BITS)  # so many squares of at most 2⁴⁰ sum below 2⁵³: exact in double precision

# Share of μ² per block, measured in simulation; see docs/privacy.md. Renormalised over the blocks a release has.
FRACTIONS: Mapping[str, float] = {
    "n": 0.01, "u": 0.03, "t": 0.03, "q": 0.05, "tq": 0.01, "qq": 0.02, "ut": 0.65, "uq": 0.20,
    "uu": 0.1765, "c": 0.02, "cc": 0.03, "ct": 0.04, "cq": 0.02, "cu": 0.12,
}  # fmt: skip
SYMMETRIC = frozenset({"uu", "cc"})


def svec(matrix: Array) -> Array:
    """Upper triangle row by row, off-diagonal entries times √2: its L2 norm is the Frobenius norm."""
    rows, columns = np.triu_indices(matrix.shape[0])
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2)))


def shares(names: Iterable[str], table: Mapping[str, float] = FRACTIONS) -> dict[str, float]:
    """Fractions of the named blocks, renormalised to sum to one."""
    chosen = {name: table[name] for name in names}
    total = sum(chosen.values())
    return {name: value / total for name, value in chosen.items()}


def norm_bound(width: int) -> int:
    """Largest integer norm of a row of `width` numbers of norm ≤ 1 after rounding to the grid."""
    return int((1 << GRID_BITS) + (0 if width == 1 else math.ceil(math.sqrt(width) / 2)))


def quantise(values: Array, bound: int | None = None) -> Ints:
    """Rows of norm ≤ 1 on the integer grid. A row whose exact integer norm exceeds the bound becomes zero."""
    width = values.shape[1]
    top = norm_bound(width) if bound is None else bound
    if not np.isfinite(values).all():
        values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    grid = np.clip(values, -1.0, 1.0) * float(1 << GRID_BITS)
    np.rint(grid, out=grid)
    ints = grid.astype(np.int64)
    if width == 0:
        return ints
    whole = grid if width <= _EXACT_WIDTH else ints
    ints[np.einsum("ij,ij->i", whole, whole) > top * top] = 0
    return np.asarray(ints)


def clip_rows(values: Array, radius: float) -> Array:
    """Rows scaled down to norm `radius` where longer, then divided by it; the zero row stays."""
    norms = np.sqrt(row_sums(values * values))
    return np.asarray(values / np.maximum(norms, radius)[:, None])


def row_sums(values: Array) -> Array:
    """Sum of each row (n × d), in an order that d alone decides.

    A BLAS product sums a row in an order that depends on where it stands and on how many rows there are. Its last bit
    would then move with another person's presence, and with it what this person adds to an integer sum.
    """
    return np.asarray(np.add.reduce(np.ascontiguousarray(values), axis=1))


@dataclass(frozen=True)
class Layout:
    """Which blocks a release has; public.

    width: number of scores or features J; confounds: K; gram: whether Σuu' is released; count: whether N is (under
    `add_remove`); tau: product clip, ‖u·t‖ ≤ tau·R.
    """

    width: int
    confounds: int = 0
    gram: bool = False
    count: bool = False
    tau: float = 1.0
    fractions: Mapping[str, float] = field(default_factory=lambda: dict(FRACTIONS))

    def __post_init__(self) -> None:
        if not 0 < self.tau <= 1:
            raise PrivacyError("tau must lie in (0, 1]", next_step="use 1 for clipping each record alone")

    @property
    def names(self) -> tuple[str, ...]:
        """Blocks in a fixed order."""
        wanted = ["n"] if self.count else []
        wanted += ["t", "q", "tq", "qq", "u", "ut", "uq"]
        wanted += ["uu"] if self.gram else []
        wanted += ["c", "ct", "cq", "cc", "cu"] if self.confounds else []
        return tuple(wanted)

    @property
    def share(self) -> dict[str, float]:
        """Fraction of μ² per block; sums to one."""
        return shares(self.names, self.fractions)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a block's sum; a symmetric block is a full matrix here."""
        size = {"u": self.width, "c": self.confounds}
        return tuple(size[letter] for letter in name if letter in size)

    def bound(self, name: str) -> int:
        """Exact integer L2 bound of one person's contribution to a block."""
        one, wide, conf = 1 << GRID_BITS, norm_bound(self.width), norm_bound(self.confounds or 1)
        if name in ("ut", "uq") and self.tau < 1:
            return wide
        letters = {"n": one, "t": one, "q": one, "u": wide, "c": conf}
        return math.prod(letters[letter] for letter in name)

    def unit(self, name: str) -> float:
        """Value of one integer step in normalised units (u/R, c/√K, t, q)."""
        if name in ("ut", "uq") and self.tau < 1:
            return self.tau * 2.0**-GRID_BITS
        return float(2.0 ** (-GRID_BITS * len(name)))

    def sums(self, u: Array, t: Array, c: Array | None = None) -> dict[str, Ints]:
        """Exact integer sums over people. u: rows of norm ≤ 1; t in [−1, 1]; c: rows of norm ≤ 1."""
        total = {name: np.zeros(self.shape(name), dtype=np.int64) for name in self.names}
        for start in range(0, t.size, CHUNK):
            rows = slice(start, start + CHUNK)
            part = self._part(u[rows], t[rows], None if c is None else c[rows])
            for name, value in part.items():
                total[name] = total[name] + value  # int64: wraps modulo 2⁶⁴, on purpose
        return total

    def _part(self, u: Array, t: Array, c: Array | None) -> dict[str, Ints]:
        age = np.clip(np.nan_to_num(t, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)
        wide, first = quantise(u), quantise(age[:, None])[:, 0]
        second = quantise((2 * age * age - 1)[:, None])[:, 0]
        part: dict[str, Ints] = {
            "t": first.sum(keepdims=False), "q": second.sum(), "tq": (first * second).sum(),
            "qq": (second * second).sum(), "u": wide.sum(axis=0),
        }  # fmt: skip
        if self.count:
            part["n"] = np.int64(t.size << GRID_BITS)  # type: ignore[assignment]
        for name, factor, real in (("ut", first, age), ("uq", second, 2 * age * age - 1)):
            if self.tau < 1:
                part[name] = quantise(clip_rows(u * real[:, None], self.tau)).sum(axis=0)
            else:
                part[name] = _product(wide, factor[:, None])[:, 0]
        if self.gram:
            part["uu"] = _product(wide, wide)
        if self.confounds and c is not None:
            conf = quantise(c)
            part["c"] = conf.sum(axis=0)
            part["ct"], part["cq"] = _product(conf, first[:, None])[:, 0], _product(conf, second[:, None])[:, 0]
            part["cc"], part["cu"] = _product(conf, conf), _product(conf, wide)
        return part

    def sigma_int(self, name: str, mu: float, reach: int) -> float:
        """σ of a block's integer noise; `reach` is 2 where one person is replaced, else 1."""
        return integer_sigma(reach * self.bound(name), mu * math.sqrt(self.share[name]))


def _product(left: Ints, right: Ints) -> Ints:
    """left'·right, exact: every partial sum is an integer below 2⁵³, which double precision holds."""
    if left.shape[0] > CHUNK:
        raise AssertionError("a chunk this long could round")
    first = left.astype(np.float64)
    second = first if right is left else right.astype(np.float64)  # the same array: BLAS computes one triangle only
    return np.asarray((first.T @ second).astype(np.int64))


def add_noise(
    layout: Layout, sums: Mapping[str, Ints], mu: float, reach: int
) -> tuple[dict[str, Array], dict[str, float]]:
    """One release: integer sums plus integer Gaussian noise, in normalised units, and the noise SD of each block.

    Returns
    -------
    noisy, sd
        Per block the noisy sum (symmetric blocks as full matrices) and the SD of a (diagonal) entry's noise.
    """
    noisy: dict[str, Array] = {}
    sd: dict[str, float] = {}
    for name in layout.names:
        sigma, unit, total = layout.sigma_int(name, mu, reach), layout.unit(name), sums[name]
        if name in SYMMETRIC:
            released = _noisy_symmetric(total, sigma)
        else:
            noise = sampler.discrete_gaussian(sigma, int(np.prod(layout.shape(name))))
            released = np.asarray(total + noise.reshape(layout.shape(name)))
        noisy[name] = np.asarray(released.astype(np.float64) * unit)
        sd[name] = sigma * unit
    return noisy, sd


def _noisy_symmetric(total: Ints, sigma: float) -> Ints:
    size = total.shape[0]
    rows, columns = np.triu_indices(size, 1)
    half = math.sqrt((sigma * sigma - SMOOTHING_VARIANCE) / 2 + SMOOTHING_VARIANCE)
    result = np.zeros_like(total)
    result[rows, columns] = total[rows, columns] + sampler.discrete_gaussian(half, rows.size)
    result = result + result.T
    result[np.diag_indices(size)] = np.diag(total) + sampler.discrete_gaussian(sigma, size)
    return np.asarray(result)
