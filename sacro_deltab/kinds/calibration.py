"""How predicted ages lie to true ones: the mean predicted age of each band of true age; `release_plot` draws it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..measure.grouping import AgeBands
from ..measure.people import Roster
from . import anew
from .asked import column
from .documents import safe_name
from .group_tables import SAYS, measured
from .kind import Inside, Kind, Made, Measured, Reading, headed

CALIBRATION = "calibration"
MEAN = "mean_predicted_age"
_EDGE = re.compile(r"-?\d+(?:\.\d+)?")


def make(
    inside: Inside,
    predicted: Any,
    age: Any,
    width: float = 10,
    validated: str | None = None,
    title: str = "Predicted age by true age",
    name: str | None = None,
) -> list[Made]:
    """Mean predicted age by bands of `width` years of true age; `validated` as in `prediction_error`."""
    found, ages = column(inside, predicted), column(inside, age)
    inside.deltas_of(np.asarray(predicted, dtype=float) - np.asarray(age, dtype=float))
    inside.own(columns=(["predicted age"], found[:, None]))  # refuses the ages themselves
    grouping = AgeBands(age, width).grouping(inside.roster())
    facts = inside.own(values=found - ages, columns=(["age"], ages[:, None]))
    said = {} if validated is None else {"validated": validated}
    return [measured(inside, CALIBRATION, safe_name(name or CALIBRATION), title, grouping, found, "mean", facts,
                     of=predicted, column=MEAN, said=said)]  # fmt: skip


def again(asked: Reading) -> Measured | None:
    """Ages that the recorded weights predict, between the edges that the rows name."""
    predicted, ages = asked.prediction(), asked.ages
    edges = tuple(sorted({float(number) for key in asked.keys for number in _EDGE.findall(key)}))
    if predicted is None or ages is None or len(edges) < 2:
        return None
    try:
        grouping = AgeBands(ages, None, edges).grouping(Roster.of(len(ages), None))
    except InputError:
        return None
    found = Measured(anew.table(grouping, predicted, asked.numbers), proposed=True)
    for i, (key, (facts, value)) in enumerate(anew.cells(grouping, predicted, "mean").items()):
        found.parts[key], found.rows[key] = facts, (facts["cell.n"], value)
        found.members[key] = (grouping.codes == i) & np.isfinite(predicted)
    return found


KINDS = (
    Kind(
        CALIBRATION, "Mean predicted age by bands of true age (a calibration plot in judged bins).",
        "group_table", make, again=again, reads=headed("age_band", "n", MEAN), statistic="mean", part="cell",
        says=SAYS,
    ),
)  # fmt: skip
