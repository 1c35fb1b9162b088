"""A noised N against a minimum: a noisy number is no proof unless its noise is allowed for.

What decides is a lower confidence limit. Its error holds over all attempts on one partition: attempt k gets
error/(k(k + 1)), and those add up to the error however many attempts there are. All of it is post-processing.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from ..base.errors import PrivacyError

PEOPLE = "people"  # name of the count of people with values in a table of noise SDs
# Of μ², for that count: the other sums get 2.6 % more noise, and at ε = 1 about 200 people show that they are 100.
PEOPLE_SHARE = 0.05


def attempt_error(error: float, attempt: int) -> float:
    """Chance of error that the attempt-th release on a partition may take; all of them together take `error`."""
    return error / (max(attempt, 1) * (max(attempt, 1) + 1))


def gaussian_allowance(sd: float, error: float) -> float:
    """By how much a noised N may lie above N with chance `error` or less."""
    return NormalDist().inv_cdf(1 - error) * sd


def laplace_allowance(scale: float, error: float) -> float:
    """The same for Laplace noise."""
    return scale * math.log(1 / (2 * error))


def least(noisy: float, allowance: float) -> int:
    """Lower confidence limit of N, at least 0."""
    return max(0, math.floor(noisy - allowance))


def refuse_hopeless(expected: int, minimum: int, allowance: float) -> None:
    """Before anything is spent: refuse where the count's noise hides the minimum at the N that is expected.

    Raises
    ------
    PrivacyError
        The lower limit would more likely than not lie below the minimum. Rests on public numbers and a declared N.
    """
    if expected - allowance < minimum:
        raise PrivacyError(
            f"with this noise about {math.ceil(minimum + allowance)} people are needed to show that there are at least "
            f"{minimum}, and {expected} are expected; nothing was spent",
            next_step="Use a larger ε, or adjacency='zero_out_N_public' where N may be public.",
        )
