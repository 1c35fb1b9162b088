"""Which fraction a mean is: the number of people behind it, found from its digits. Standard library only."""

from __future__ import annotations

import math
from fractions import Fraction

LARGEST_N = 5_000
_DIGITS = 12  # a value with fewer fits many fractions
_LARGEST_VALUE = 1e9


def denominator(value: float, *, least: int = 10, largest: int = LARGEST_N) -> int | None:
    """Denominator of the fraction that a full-precision mean of whole numbers is, by continued fractions.

    None when the value is whole, rounded (few digits fit many fractions) or hits no fraction to its last bits: by
    chance a value lies within 1/(q·largest) of some fraction with denominator q; a mean hits it. Denominators below
    `least` say nothing.
    """
    if not math.isfinite(value) or value == 0 or abs(value) > _LARGEST_VALUE:
        return None
    if len(repr(abs(value)).replace(".", "").lstrip("0").split("e")[0]) < _DIGITS:
        return None
    fraction = Fraction(value).limit_denominator(largest)
    near = abs(float(fraction) - value) <= 8 * math.ulp(value)
    return fraction.denominator if near and fraction.denominator >= least else None
