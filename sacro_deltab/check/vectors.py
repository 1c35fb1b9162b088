"""One column of numbers, or one table of rows: does it read as one value per person? From the numbers alone."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..kinds.per_subject import AGES, AGES_MOVED, DELTAS, NORMALISED, RAW, REDUCED

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

MIN_LENGTH = 20  # shorter vectors are judged by the rules on contributors, not by their looks


@dataclass(frozen=True)
class Guess:
    """What an array most likely is: a type of the rule set and the reason."""

    type: str
    inside: str
    outside: str
    strong: bool


def as_array(values: Sequence[float] | array[float]) -> Floats:
    """Numbers as float64, without a copy where they are an array."""
    import numpy as np  # late: numpy is heavy

    return np.frombuffer(values, dtype="<f8") if isinstance(values, array) else np.asarray(values, dtype="<f8")


def is_lattice(values: Floats) -> float | None:
    """Step of the grid that all differences stand on (whole years, tenths, months in years), if there is one.

    A scaled or shifted vector of whole-year ages stays on a grid; a per-subject statistic does not.
    """
    import numpy as np  # late: numpy is heavy

    distinct = np.unique(values)
    if len(distinct) < 2:
        return None
    gaps = np.diff(distinct)
    step = float(gaps.min())
    if step <= 0 or not math.isfinite(step):
        return None
    ratio = gaps / step
    span = (float(distinct[-1]) - float(distinct[0])) / step
    off = float(np.abs(ratio - np.round(ratio)).max())
    return step if off < 1e-4 and span < 1e5 else None


def looks_like_ages(values: Floats) -> str | None:
    """How a vector reads as human ages: in years, months or days; None when it does not."""
    low, high, mean, spread = float(values.min()), float(values.max()), float(values.mean()), float(values.std())
    for unit, scale in (("years", 1.0), ("months", 12.0), ("days", 365.25)):
        if low / scale >= 3.0 and high / scale <= 110 and 15 <= mean / scale <= 95 and spread / scale >= 1.0:
            return unit
    return None


def guess_vector(values: array[float] | Sequence[float]) -> Guess | None:
    """Recognise one column of 20 or more numbers as one value per subject, from its numbers alone."""
    v = as_array(values)
    if len(v) < MIN_LENGTH or not bool((v == v).all()):
        return None
    spread = float(v.std())
    if spread == 0:
        return None
    mean = float(v.mean())
    step = is_lattice(v)
    unit = looks_like_ages(v)
    if unit is not None:
        strong = step is not None and abs(step * {"years": 1, "months": 1, "days": 1}[unit] - 1) < 1e-6
        return Guess(AGES, f"{len(v)} values that read as ages in {unit}", "values that read as ages", strong)
    distinct = len(set(v.tolist()))
    span = 0 if step is None else round((float(v.max()) - float(v.min())) / step)
    # whole years span at most 110 steps, whole months 1,300; a feature rounded to a thousandth often spans more
    years = span <= 150 or abs(step or 0) in (1.0, 1 / 12) or abs(mean) < 1e-6 * spread
    if step is not None and 5 <= span <= 1_300 and years and distinct < len(v) and distinct >= 5:
        what = "demeaned" if abs(mean) < 1e-6 * spread + 1e-9 else "shifted or scaled"
        return Guess(
            AGES_MOVED,
            f"{len(v)} values on a grid of {span + 1} steps, as {what} whole-year ages are",
            "values that read as shifted ages",
            strong=abs(step - 1) < 1e-6 or abs(mean) < 1e-6 * spread,
        )
    if abs(mean) < 1e-6 * spread and spread > 1e-9:
        return Guess(AGES_MOVED, f"{len(v)} values centred exactly on zero", "values centred on zero", strong=True)
    if (
        float(v.min()) < 0 < float(v.max())
        and 1.0 <= spread <= 30
        and float(abs(v).max()) <= 120
        and abs(mean) < spread
    ):
        return Guess(DELTAS, f"{len(v)} signed values spread like brain-age deltas", "values spread like deltas", False)
    return None


def guess_matrix(values: array[float], shape: tuple[int, ...]) -> Guess:
    """Recognise a table of rows by columns as per-subject features: raw, normalised or reduced."""
    import numpy as np  # late: numpy is heavy

    m = as_array(values).reshape(shape)
    mean, spread = m.mean(axis=0), m.std(axis=0)
    centred = bool(np.all(np.abs(mean) < 1e-6 * (spread + 1e-12) + 1e-9))
    if centred and bool(np.all(np.abs(spread - 1) < 0.05)):
        return Guess(NORMALISED, "centred and scaled columns, one row a person", "normalised rows", True)
    if centred:
        return Guess(REDUCED, "centred columns, one row a person", "reduced rows", True)
    return Guess(RAW, "one row a person and one column a feature", "rows of features", False)
