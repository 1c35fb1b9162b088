"""How far a private model may be off, from noised and public numbers only: free post-processing of the release.

Every interval says what it covers. None covers who was selected, or a change of scanner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .blocks import Array
from .fit import AgeMoments
from .moments import NoisyMoments

# 1.96, and a little more: the SDs are themselves worked out from noised numbers. Measured: docs/privacy.md.
_TIMES = 2.1
_FIGURES = 3
_CLIPPED = (
    0.02  # years a year: SD of what the clip of scores leaves of a slope (measured on people like the public ones)
)


def intervals_of(drawn: Mapping[str, float], age_half: float, width: int) -> dict[str, dict[str, Any]]:
    """What `descend` or `errors_of_moments` left in a job's `drawn`, as 95 % intervals in years.

    age_slope: of the unbiased delta on age, in years a year, over the people of the training.
    """
    out: dict[str, dict[str, Any]] = {}
    if "sd_slope" in drawn:
        reach = _reach(drawn["sd_slope"])
        out["age_slope"] = {
            "low": -reach, "high": reach, "unit": "years a year",
            "says": f"the unbiased delta is unbiased to ± {_round(10 * reach):g} years per decade of age",
            "covers": drawn_words(drawn),
        }  # fmt: skip
    if "sd_mean_age" in drawn:
        reach = _reach(drawn["sd_mean_age"] * age_half)
        out["y_mean_error"] = {"low": -reach, "high": reach, "unit": "years", "covers": "noise of this release"}
    if "sd_b" in drawn:
        one = drawn["sd_b"] * age_half
        reach = _reach(math.hypot(drawn["sd_offset"] * age_half, one * math.sqrt(width)))
        out["predicted_age_error"] = {
            "low": -reach, "high": reach, "unit": "years",
            "covers": "noise, sampling and the pull to the public model, for a usual person; not their own delta",
        }  # fmt: skip
        out["b1_error"] = {
            "low": -_reach(one), "high": _reach(one), "unit": "years per standardised component score",
            "covers": "noise, sampling and the pull to the public model",
        }  # fmt: skip
    return out


def noised_error(sd: float, unit: str) -> dict[str, Any]:
    """The interval of one noised statistic, or of the least certain number of several."""
    reach = _reach(sd)
    return {"low": -reach, "high": reach, "unit": unit, "covers": "noise of this release, in its least certain number"}


def drawn_words(drawn: Mapping[str, float]) -> str:
    """What an interval of the slope covers: a release of clipped products has no way to tell what its clip cut."""
    if "clipped" in drawn:
        return "noise of this release, its clip of people like the public ones; not what it takes from unlike people"
    return "noise of this release, and what its clip leaves as far as measured on other cohorts"


def errors_of_moments(moments: NoisyMoments, b: Array, age: AgeMoments, sd_var: float) -> dict[str, float]:
    """SDs of slope and mean age after one release of moments; b: age on white scores, t units."""
    n, sd = moments.n, moments.sd
    length = math.sqrt(float(b @ b))
    noise = length * math.hypot(sd["ut"] / n, sd["u"] / n * age.mean) / age.var
    return {"sd_slope": math.hypot(noise, sd_var / age.var, _CLIPPED), "sd_mean_age": sd["t"] / n, "clipped": 1.0}


def _reach(sd: float) -> float:
    return _round(_TIMES * sd)


def _round(value: float) -> float:
    return float(f"{value:.{_FIGURES}g}")
