"""People by bins of delta that were fixed without looking: multiples of a width, open at both ends."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..measure.people import Floats, Grouping
from . import anew
from .documents import safe_name
from .group_tables import SAYS, measured
from .kind import Inside, Kind, Made, Measured, Reading

HISTOGRAM = "delta_histogram"
NAME = "delta, years"
_NUMBER = re.compile(r"-?\d+")


def make(
    inside: Inside,
    values: Any,
    width: int = 3,
    reach: int = 6,
    title: str = "People by delta",
    name: str | None = None,
) -> list[Made]:
    """N of each bin of `width` years from −`reach` to `reach`, and of what lies beyond at either side."""
    if type(width) is not int or type(reach) is not int or not 0 < width <= reach <= 50 or reach % width:
        raise InputError("bins are whole years, and the reach a multiple of their width", next_step="width=3, reach=6")
    people = inside.deltas_of(values)
    inside.variable(people)  # refuses copies in other units or with some people's changed
    edges = list(range(-reach, reach + 1, width))
    grouping = _grouping(people, edges)
    return [measured(inside, HISTOGRAM, safe_name(name or HISTOGRAM), title, grouping, None, "count",
                     {**inside.own(values=people), **inside.model_origin(values)}, of=values)]  # fmt: skip


def _grouping(people: Floats, edges: list[int]) -> Grouping:
    """People without a delta stand in no bin."""
    inner = [f"from {low} to under {high}" for low, high in pairwise(edges)]
    labels = (f"under {edges[0]}", *inner, f"{edges[-1]} and over")
    codes = np.where(np.isfinite(people), np.searchsorted(edges, people, side="right"), -1)
    return Grouping(NAME, labels, codes.astype(np.int64))


def again(asked: Reading) -> Measured | None:
    """The cohort's deltas counted between the edges that the rows name."""
    edges = sorted({int(number) for key in asked.keys for number in _NUMBER.findall(key)})
    if len(edges) < 2 or len(asked.keys) != len(edges) + 1:
        return None
    grouping = _grouping(asked.deltas, edges)
    if list(grouping.labels) != asked.keys:
        return None
    found = Measured(anew.table(grouping, None, asked.numbers))
    for i, (key, (facts, _)) in enumerate(anew.cells(grouping, None, "count").items()):
        found.parts[key], found.members[key], found.rows[key] = facts, grouping.codes == i, (facts["cell.n"],)
    return found


def _reads(head: tuple[str, ...], _: tuple[str, ...]) -> bool:
    return head == (NAME, "n")


KINDS = (
    Kind(
        HISTOGRAM, "People by bins of delta whose edges were fixed without looking; `release_plot` draws it.",
        "counts", make, again=again, reads=_reads, statistic="count", part="cell", of_deltas=True, says=SAYS,
    ),
)  # fmt: skip
