"""A vectorised, exact sampler of the discrete Gaussian, for blocks of thousands of entries.

It is algorithm 3 of Canonne, Kamath & Steinke 2020, array-wise. The one thing that is not integer arithmetic there is a
Bernoulli(exp(−γ)) draw. Here it is the decision "U < exp(−γ)" for a uniform real U whose first 64 bits come from the
operating system. Double precision gives exp(−γ) to a relative error far below 2⁻³⁸ (bounded below); if the 64 bits
decide the comparison with that margin, the decision is the exact one. If they do not (about once in 2³⁸ draws), further
bits of U are drawn and exp(−γ) is bounded by correctly rounded decimal arithmetic of growing precision until they do.
So every decision equals that of exact real arithmetic, and the output has the exact distribution.

Error of γ in doubles, σ < 2⁴⁸: U/t with t = 2ᵏ, k ≤ 48, is exact. In the last step d = |Y| − σ²/t has an absolute error
below 2⁻⁴⁷σ where |Y| < 40σ, and γ = d²/2σ² one below (|d|/σ)·2⁻⁴⁷ + γ·2⁻⁵⁰ < 2⁻³⁹ where γ ≤ 745; beyond, exp underflows
to 0 and only a U whose first 64 bits are all zero is looked at closer. exp itself adds a few units of 2⁻⁵³.
"""

from __future__ import annotations

import math
import os
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

LIMIT = 2.0**48
_MARGIN = 2.0**-38
_BATCH = 1 << 16


def _words(size: int) -> Words:
    """`size` words of 64 bits from the operating system."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def bernoulli_exp(gamma: Floats, exact: Callable[[int], Fraction]) -> NDArray[np.bool_]:
    """Independent draws that are True with probability exp(−γ), exactly.

    gamma: γ ≥ 0 in doubles, off by less than 2⁻³⁹ to exp(−γ); exact(i): the rational number γ of entry i.
    """
    word = _words(gamma.size)
    # word and word + 1 as doubles: rounding is monotone and below 2⁻⁵³ relative, which the margin covers
    low = word.astype(np.float64) * 2.0**-64
    middle = np.exp(-gamma)
    yes = low + 2.0**-63 <= middle * (1 - _MARGIN)
    no = low * (1 - 2.0**-50) >= middle * (1 + _MARGIN) + 2.0**-1000
    result: NDArray[np.bool_] = yes & ~no
    for index in np.flatnonzero(~yes & ~no):
        result[index] = _decide(int(word[index]), exact(int(index)))
    return result


def _decide(word: int, gamma: Fraction) -> bool:
    """U < exp(−γ) where the first 64 bits of U are `word`: draw more bits until the answer is certain."""
    bits, digits = 64, 40
    while True:
        extra = int.from_bytes(os.urandom(16), "big")
        word, bits = (word << 128) | extra, bits + 128
        low, high = exp_bounds(gamma, digits)
        if Fraction(word + 1, 1 << bits) <= low:
            return True
        if Fraction(word, 1 << bits) >= high:
            return False
        digits += 40


def exp_bounds(gamma: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rational numbers around exp(−γ), γ ≥ 0. Division rounds outwards; `Decimal.exp` is correctly rounded, and one
    unit in the last place is added on either side."""
    span = Context(prec=digits, Emin=-(10**9), Emax=10**9)
    down, up = span.copy(), span.copy()
    down.rounding, up.rounding = ROUND_FLOOR, ROUND_CEILING
    # copy_negate: the minus sign itself would round to the precision of the thread's own context
    top, bottom = Decimal(gamma.numerator), Decimal(gamma.denominator)
    low = span.next_minus(span.exp(up.divide(top, bottom).copy_negate()))
    high = span.next_plus(span.exp(down.divide(top, bottom).copy_negate()))
    return max(Fraction(0), Fraction(low)), min(Fraction(1), Fraction(high))


def discrete_gaussian(sigma: float, size: int) -> Ints:
    """`size` exact draws of the discrete Gaussian on ℤ with parameter σ, 1 ≤ σ < 2⁴⁸."""
    if not 1 <= sigma < LIMIT:
        raise ValueError("sigma is outside the range this sampler is proved for")
    parts: list[Ints] = []
    missing = size
    while missing > 0:
        part = _candidates(sigma, min(_BATCH, 2 * missing + 64))[:missing]
        parts.append(part)
        missing -= part.size
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _candidates(sigma: float, size: int) -> Ints:
    """Accepted draws out of `size` tries. Any integer t is right in the algorithm; a power of two makes U free of
    rejection and U/t exact."""
    bits = max(0, math.ceil(math.log2(sigma)))
    scale = 1 << bits
    laplace = _laplace(bits, size)
    variance = Fraction(sigma) ** 2
    shift = variance / scale
    gap = np.abs(laplace).astype(np.float64) - float(shift)
    gamma = gap * gap / (2 * sigma * sigma)
    accepted = bernoulli_exp(gamma, lambda i: (abs(int(laplace[i])) - shift) ** 2 / (2 * variance))
    return laplace[accepted]


def _laplace(bits: int, size: int) -> Ints:
    """Discrete Laplace with scale t = 2^bits, as many of `size` tries as are accepted."""
    scale = 1 << bits
    inner = (_words(size) >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(size, dtype=np.int64)
    kept = bernoulli_exp(inner / scale, lambda i: Fraction(int(inner[i]), scale))
    inner = inner[kept]
    value = inner + scale * _geometric(inner.size)
    negative = (_words(inner.size) & np.uint64(1)).astype(bool)
    valid = ~(negative & (value == 0))  # zero must not count twice
    return np.asarray(np.where(negative, -value, value)[valid], dtype=np.int64)


def _geometric(size: int) -> Ints:
    """Number of successes of Bernoulli(1/e) before the first failure."""
    count = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    while active.size:
        active = active[bernoulli_exp(np.ones(active.size), lambda _: Fraction(1))]
        count[active] += 1
    return count
