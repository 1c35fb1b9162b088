"""Values that are not brain-age deltas in years are no output of the rule set (D-07).

Rounding to 0.1 years and a protection interval of 2 years mean nothing for deltas in other units (times a million), and
the mean of an indicator is a count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import RefusedError
from ..measure.columns import two_levels


def refuse_other_than_deltas(
    values: NDArray[np.float64], numbers: Any, ages: NDArray[np.float64] | None = None, *, own: bool = False
) -> None:
    """Refuse values that cannot be deltas in years.

    Parameters
    ----------
    values
        One per person, years; NaN where a person has none.
    numbers
        The rule set's parameters; `delta_plausible_years` (inclusive).
    ages
        Ages of the same people where the session knows them.
    own
        A model trained in this session gave exactly these for its own people: noise may make them large.

    Raises
    ------
    RefusedError
        When a value is infinite or beyond the limit, when the values spread wider than ages do, or when they are an
        indicator (two values only, or two tight clusters).
    """
    known = values[~np.isnan(values)]
    limit = float(numbers["delta_plausible_years"])
    if known.size and not own and not float(np.max(np.abs(known))) <= limit:
        raise RefusedError(
            f"the values are not brain-age deltas in years: at least one is beyond {limit:g} years",
            next_step="Release deltas in years as the model gives them; a private model may need more people.",
        )
    if two_levels(known) and known.size > 2:
        raise RefusedError(
            "the values are an indicator, not brain-age deltas: their mean would be a count",
            next_step="Use `release_counts` for numbers of people.",
        )
    if known.size > 1 and known[0] != 0 and np.ptp(known) == 0:
        raise RefusedError(
            "everybody has the same value, which a mean would tell of each", next_step="Check the column of values."
        )
    if own or ages is None or known.size <= numbers["spread_from"]:
        return
    refuse_ages(values, ages, numbers)
    if float(known.std()) > _widest(ages, numbers):
        raise RefusedError(
            "the values are not brain-age deltas in years: they spread wider than the ages themselves",
            next_step="Release deltas in years as the model gives them, not a multiple of them.",
        )


def refuse_ages(
    values: NDArray[np.float64], ages: NDArray[np.float64], numbers: Any, what: str = "brain-age delta"
) -> None:
    """Refuse values that are the ages, or follow them in a line or by rank.

    Predicted ages follow less closely, and deltas that are not corrected for age fall with it: neither reaches this.
    """
    both = np.isfinite(values) & np.isfinite(ages)
    x, y = values[both], ages[both]
    if x.size <= numbers["spread_from"] or np.ptp(x) == 0 or np.ptp(y) == 0:
        return
    if max(abs(np.corrcoef(x, y)[0, 1]), abs(np.corrcoef(_ranks(x), _ranks(y))[0, 1])) > numbers["follows_ages"]:
        raise RefusedError(
            f"the values are the ages of these people, or follow them: they are no {what}s",
            next_step="Release deltas corrected for age, as the model gives them; ages leave by groups, as counts.",
        )


def _ranks(column: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.unique(column, return_inverse=True)[1], dtype=np.float64)


def _widest(ages: NDArray[np.float64], numbers: Any) -> float:
    """SD in years that no useful model's deltas have: a model that says the mean age for everybody has the ages' own.

    Cohorts of one age still get the spread of a usual model.
    """
    known = ages[np.isfinite(ages)]
    usual, times = float(numbers["usual_spread_years"]), float(numbers["spread_over_ages"])
    return max(usual, times * float(known.std())) if known.size else np.inf


def own_deltas(X: NDArray[np.float64], ages: NDArray[np.float64], weights: Any, numbers: Any) -> bool:
    """Whether deltas of a training's own rows may be large for its noise alone: ages of people, features near the
    public bounds. Anything may be written into a training; its deltas would carry it out without rounding.
    """
    scale = np.where(weights.x_std > 0, weights.x_std, 1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        z = np.abs(X - weights.x_mean) / scale
    known = ages[np.isfinite(ages)]
    beyond = float(numbers["ages_beyond"])
    low, high = float(numbers["age_min"]) - beyond, float(numbers["age_max"]) + beyond
    human = bool(known.size and known.min() >= low and known.max() <= high and known.std() > 0)
    return human and bool(np.nanmax(z, initial=0.0) <= float(numbers["clips_allowed"]) * float(numbers["feature_z"]))
