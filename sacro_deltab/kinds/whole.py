"""Numbers of the whole cohort: N, mean and SD of delta."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import InputError
from ..measure.measure import computed, count, statistic_of, summary_facts
from ..measure.numbers import PrintedCell
from ..outputs.parameters import N_SUBJECTS
from . import anew, documents
from .kind import Inside, Kind, Made, Measured, Reading, called

DELTA_MEAN = "delta_mean"
DELTA_SD = "delta_sd"


def n(
    inside: Inside, title: str = "Number of subjects", name: str | None = None, among: Any | None = None
) -> list[Made]:
    """N of the cohort: distinct people; `among` (people,) is true for those of a part."""
    if inside.n_is_secret:
        raise InputError(
            "under add_remove N is not public: printing it beside a release on these people would void its ε",
            next_step="Leave N out, or train with adjacency='zero_out_N_public'.",
        )
    everybody = np.arange(inside.roster().n_people)
    members = everybody if among is None else everybody[among]
    people = int(members.size)
    document = documents.scalar(
        N_SUBJECTS, documents.safe_name(name or N_SUBJECTS), title, "N", people, unit="people", about=inside.about()
    )
    cell = PrintedCell(document.name, "N", members, "grand")
    return [Made(document, computed(n=people, value=people), people, cells=(cell,))]


def n_again(asked: Reading) -> Measured:
    """Everybody, or everybody with an age where the session's reader left the others out."""
    found, members = asked.people("n"), dict.fromkeys(asked.keys, asked.members)
    return Measured({"n": found, "value": found}, {}, dict.fromkeys(asked.keys, (found,)),
                    members if found == int(asked.members.sum()) else {})  # fmt: skip


def mean(inside: Inside, values: Any, title: str = "Mean brain-age delta", name: str | None = None) -> list[Made]:
    """Whole-cohort mean of delta in years, over people with a value."""
    return [_summary(inside, values, title, name, DELTA_MEAN, "mean", "mean delta")]


def sd(inside: Inside, values: Any, title: str = "SD of brain-age delta", name: str | None = None) -> list[Made]:
    """Whole-cohort SD of delta in years (n − 1), over people with a value."""
    return [_summary(inside, values, title, name, DELTA_SD, "sd", "SD of delta")]


def _summary(inside: Inside, values: Any, title: str, name: str | None, kind: str, statistic: str, label: str) -> Made:
    people = inside.deltas_of(values)
    finite = np.isfinite(people)
    value = statistic_of(people[finite], statistic)
    if value is None:
        raise InputError("too few people have a value for this statistic", next_step="Check the column of values.")
    stem = documents.safe_name(name or kind)
    document = documents.scalar(kind, stem, title, label, value, unit="years", about=inside.about(values))
    facts = summary_facts(people, inside.parameters, statistic) | computed(value=value) | inside.model_origin(values)
    facts |= inside.own(values=people)
    if kind == DELTA_MEAN:
        facts |= computed(mean__noised_beside=inside.noised_beside(kind))
    cell = PrintedCell(
        document.name, label, np.flatnonzero(finite), "grand", inside.variable(people), statistic, shows_n=False
    )
    return Made(document, facts, count(people), cells=(cell,))


def summary_again(asked: Reading) -> Measured:
    """Mean or SD of the cohort's deltas; of a noised mean only who is behind it."""
    statistic = "sd" if asked.raw.type == DELTA_SD else "mean"
    facts = anew.summary(asked.deltas, asked.numbers, statistic)
    if asked.noised:  # the mean is over the roster, and its value is not the data's
        return Measured(facts | {"n": asked.people("n")})
    finite = np.isfinite(asked.deltas)
    value = anew.statistic(anew.known(asked.deltas), statistic)
    rows: dict[str, tuple[float | None, ...]] = {}
    if value is not None and len(asked.keys) == 1:
        facts["value"] = value
        rows[asked.keys[0]] = (value,)
    return Measured(facts, {}, rows, {asked.keys[0]: finite} if asked.keys else {}, statistic)


KINDS = (
    Kind(
        N_SUBJECTS, "Distinct people of the cohort. Not where a training under `add_remove` protects N itself.",
        "one_row", n, again=n_again, reads=called("n"),
    ),
    Kind(
        DELTA_MEAN, "Mean delta in years over everybody with a value. In-sample it is 0 by construction.",
        "one_row", mean, again=summary_again, reads=called("mean delta", "mean"), statistic="mean", of_deltas=True,
        says=("noise_scale_years",),
    ),
    Kind(
        DELTA_SD, "SD of delta in years (n − 1) over everybody with a value.",
        "one_row", sd, again=summary_again, reads=called("sd of delta", "sd"), statistic="sd", of_deltas=True,
        earlier="sd",
    ),
)  # fmt: skip
