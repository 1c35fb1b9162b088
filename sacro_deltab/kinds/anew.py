"""Facts of people's values as a checker measures them again: written apart from `measure/`, in longer floating point.

Nothing here is used to make an output, and nothing of `measure/` is used here: a fault of one would not be the other's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..measure.people import Grouping


def known(values: Any) -> Any:
    """The finite values, ascending, with a range in which no square overflows."""
    return np.sort(values[np.isfinite(values)].astype(np.longdouble))


def statistic(column: Any, which: str) -> float | None:
    """Count, mean or SD (n − 1) of known values; None where there are too few."""
    if which == "count":
        return float(len(column))
    if len(column) < 1 + (which == "sd"):
        return None
    centre = column.sum() / len(column)
    return float(centre if which == "mean" else np.sqrt(np.square(column - centre).sum() / (len(column) - 1)))


def quantile(column: Any, percent: float) -> float:
    """A percentile by linear interpolation between neighbours."""
    place = (len(column) - 1) * percent / 100
    low = int(place)
    return float(column[low] + (column[min(low + 1, len(column) - 1)] - column[low]) * (place - low))


def share(column: Any, which: str = "mean") -> float:
    """The largest part of one person in the sum: of squared deviations for an SD, else of absolute values."""
    if not len(column):
        return 1.0
    parts = np.square(column - column.sum() / len(column)) if which == "sd" else np.abs(column)
    total = parts.sum()
    if not total or column[0] == column[-1]:
        return 0.0 if which == "sd" else 1 / len(column)
    return float(parts.max() / total)


def farthest(column: Any) -> float:
    """The largest distance from the mean in SDs; 0 where nothing varies."""
    if len(column) < 2 or column[0] == column[-1]:
        return 0.0
    ends = np.abs(column[[0, -1]] - column.sum() / len(column))
    return float(ends.max()) / (statistic(column, "sd") or 1.0)


def dominance(column: Any, numbers: Mapping[str, Any]) -> str:
    """Whether a few people hold most of the total of absolute values."""
    sizes = np.sort(np.abs(column))[::-1]
    top = sizes[: int(numbers["nk_n"])].sum()
    return "fail" if top > 0 and top > float(numbers["nk_k"]) * sizes.sum() else "pass"


def freedom(dof: int, numbers: Mapping[str, Any]) -> str:
    """Whether enough degrees of freedom are left."""
    return "pass" if dof >= int(numbers["min_residual_dof"]) else "fail"


def carried(column: Any) -> int:
    """People who make a column vary: those apart from a value that most share, the rarer of two values, or all."""
    size = len(column)
    if not size or column[0] == column[-1]:
        return size
    low, high = int(np.searchsorted(column, column[0], "right")), int(np.searchsorted(column, column[-1]))
    rarer = min(low, size - high) if low == high else size
    middle = (column[(size - 1) // 2] + column[size // 2]) / 2
    apart = int((np.abs(column - middle) > np.sqrt(np.square(column - column.sum() / size).sum() / size) / 20).sum())
    return min(rarer, apart) if 2 * apart < size else rarer


def summary(values: Any, numbers: Mapping[str, Any], which: str = "mean") -> dict[str, Any]:
    """Facts of a whole-cohort statistic."""
    column = known(values)
    return {
        "n": len(column),
        "largest_share": share(column, which),
        "outlier.max_abs_z": farthest(column),
        "acro.dominance_check": dominance(column, numbers),
    }


def features(matrix: Any) -> dict[str, Any]:
    """Facts over the columns of a (people, features) matrix: the fewest people, the largest shares."""
    columns = [known(one) for one in matrix.T]
    return {
        "n": min(map(carried, columns), default=0),
        "largest_share": max(map(share, columns), default=1.0),
        "idp.largest_share": max((share(one, "sd") for one in columns), default=1.0),
    }


def cells(grouping: Grouping, values: Any, which: str) -> dict[str, tuple[dict[str, Any], float | None]]:
    """Facts and statistic of each group; without values its people are counted."""
    out: dict[str, tuple[dict[str, Any], float | None]] = {}
    for i, label in enumerate(grouping.labels):
        mine = grouping.codes == i
        column = np.ones(np.count_nonzero(mine), np.longdouble) if values is None else known(values[mine])
        facts: dict[str, Any] = {"cell.n": len(column), "cell.largest_share": share(column, which)}
        facts["cell.structural_zero"] = label in grouping.structural
        if grouping.widths is not None:
            facts |= {"cell.age_band": True, "band.width_years": float(grouping.widths[i])}
        out[label] = facts, statistic(column, which)
    return out


def table(grouping: Grouping, values: Any, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of a table as a whole; what ACRO checks is checked on the groups of enough people."""
    inside = np.isfinite(np.zeros(len(grouping.codes)) if values is None else values) & (grouping.codes >= 0)
    counts = np.bincount(grouping.codes[inside], minlength=len(grouping.labels))
    shown = [i for i, n in enumerate(counts.tolist()) if n >= int(numbers["min_n"])]
    facts: dict[str, Any] = {
        "n": int(inside.sum()),
        "acro.frequency_check": "pass",  # of groups that are shown
        "table.any_n_rounded": any(counts[i] < int(numbers["round_n_below"]) for i in shown),
    }
    if values is None:
        return facts
    checks = {dominance(known(values[grouping.codes == i]), numbers) for i in shown}
    column = known(values[inside])
    facts |= {"acro.dominance_check": "fail" if "fail" in checks else "pass", "largest_share": share(column)}
    return facts | {"outlier.max_abs_z": farthest(column)}
