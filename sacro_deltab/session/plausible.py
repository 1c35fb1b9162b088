"""Values that are not brain-age deltas in years are no output of the rule set (D-07).

Rounding to 0.1 years and a protection interval of 2 years mean nothing for deltas in other units (times a million), and
the mean of an indicator is a count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import RefusedError


def refuse_other_than_deltas(values: NDArray[np.float64], numbers: Any) -> None:
    """Refuse values that cannot be deltas in years.

    Parameters
    ----------
    values
        One per person, years; NaN where a person has none.
    numbers
        The rule set's parameters; `delta_plausible_years` (inclusive).

    Raises
    ------
    RefusedError
        When a value is infinite or beyond the limit, or when the values are an indicator (two values only).
    """
    known = values[~np.isnan(values)]
    limit = float(numbers["delta_plausible_years"])
    if known.size and not float(np.max(np.abs(known))) <= limit:
        raise RefusedError(
            f"the values are not brain-age deltas in years: at least one is beyond {limit:g} years",
            next_step="Release deltas in years as the model gives them; a private model may need more people.",
        )
    if known.size > 2 and np.unique(known).size == 2:
        raise RefusedError(
            "the values are an indicator, not brain-age deltas: their mean would be a count",
            next_step="Use `release_counts` for numbers of people.",
        )
