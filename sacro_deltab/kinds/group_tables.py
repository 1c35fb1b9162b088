"""Tables by group: mean and SD of delta, and people counted. One maker for all: the groups decide which mean it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import RefusedError
from ..measure.grouping import SEPARATOR, AgeBands, is_column, make_grouping
from ..measure.measure import cell_parts, computed, table_facts
from ..measure.numbers import PrintedCell
from ..measure.people import Floats, Grouping, label_text, rows_of
from ..rules.facts import Fact
from . import documents
from .kind import Inside, Kind, Made, Reads

BY_AGE, BY_SITE, BY_OTHER = "delta_mean_by_age_band", "delta_mean_by_site", "delta_mean_by_other"
DELTA_SD_BY_GROUP = "delta_sd_by_group"
COUNT_TABLE = "count_table"
# names of groupings that make a kind of their own
BY_NAME = {
    "delta_mean_by_diagnosis": ("diagnosis", "dx", "diag", "diagnostic_group", "dx_group", "disease", "clinical_group"),
    "delta_mean_by_sex": ("sex", "gender"),
    BY_SITE: ("site", "scanner", "scanner_site", "site_id", "centre", "center", "scan_site"),
}
SAYS = ("statistic", "groups")
_WORDS = {"mean": ("Mean delta", "mean_delta"), "sd": ("SD of delta", "sd_delta"), "count": ("People", "n")}


def means(
    inside: Inside,
    values: Any,
    by: Any | AgeBands,
    title: str | None = None,
    name: str | None = None,
    structural_zeros: Sequence[str] = (),
) -> list[Made]:
    """Mean delta by group, with the people behind each mean."""
    return _table(inside, values, by, "mean", title, name, structural_zeros)


def sds(
    inside: Inside,
    values: Any,
    by: Any | AgeBands,
    title: str | None = None,
    name: str | None = None,
    structural_zeros: Sequence[str] = (),
) -> list[Made]:
    """SD of delta by group (n − 1)."""
    return _table(inside, values, by, "sd", title, name, structural_zeros)


def counts(
    inside: Inside,
    by: Any | AgeBands,
    title: str | None = None,
    name: str | None = None,
    structural_zeros: Sequence[str] = (),
) -> list[Made]:
    """People by group."""
    return _table(inside, None, by, "count", title, name, structural_zeros)


def _table(
    inside: Inside,
    values: Any | None,
    by: Any,
    statistic: str,
    title: str | None,
    name: str | None,
    structural: Sequence[str],
) -> list[Made]:
    """Measured on people with a value."""
    roster = inside.roster(_rows(values, by))
    people: Floats | None = None if values is None else inside.deltas_of(values)
    grouping = make_grouping(by, roster, inside.ages(), structural)
    if people is not None:
        _refuse_one_value(grouping, people, int(inside.parameters["min_n"]))
    kind = {"mean": table_type(grouping), "sd": DELTA_SD_BY_GROUP, "count": COUNT_TABLE}[statistic]
    words, column = _WORDS[statistic]
    title = title or f"{words} by {grouping.name.replace('_', ' ')}"
    stem = documents.safe_name(name or f"{column if people is not None else statistic}_by_{grouping.name}")
    facts = site_facts(grouping) if kind in (BY_SITE, BY_OTHER) else {}
    origin: dict[str, Fact] = {} if people is None else inside.model_origin(values)
    more = {**inside.own(values=people, groups=(by, roster)), **computed(**facts), **origin}
    return [measured(inside, kind, stem, title, grouping, people, statistic, more, of=values)]


def measured(
    inside: Inside,
    kind: str,
    stem: str,
    title: str,
    grouping: Grouping,
    people: Floats | None,
    statistic: str,
    more: Mapping[str, Fact],
    of: Any | None = None,
    column: str | None = None,
    said: Mapping[str, str] | None = None,
) -> Made:
    """The document, facts and cells of one statistic by some groups; without values people are counted."""
    parts = cell_parts(grouping, people, statistic)
    facts = {**table_facts(grouping, people, parts, inside.parameters), **more}
    document = documents.group_table(
        kind, stem, title, grouping.labels, [int(part.facts["cell.n"].value) for part in parts],
        None if people is None else [part.value for part in parts], group_column=_column(grouping),
        value_column=column or _WORDS[statistic][1],
        about=inside.about(of, statistic=statistic, groups=grouping.name, **(said or {})),
    )  # fmt: skip
    variable = None if people is None else inside.variable(people)
    counted = grouping.codes >= 0 if people is None else np.isfinite(people)
    cells = tuple(
        PrintedCell(
            stem,
            label,
            np.flatnonzero((grouping.codes == index) & counted),
            "interior",
            variable,
            None if people is None else statistic,
            any_rounded=bool(facts["table.any_n_rounded"].value),
            structural=label in grouping.structural,
        )
        for index, label in enumerate(grouping.labels)
    )
    return Made(document, facts, int(facts["n"].value), parts, cells, grouping=grouping)


def table_type(grouping: Grouping) -> str:
    """Which kind a table of mean deltas by this grouping is."""
    return kind_by(grouping.name, bands=grouping.widths is not None)


def kind_by(name: str, *, bands: bool) -> str:
    """Which kind a table of mean deltas by a column of this name is; `bands`: its groups are age bands."""
    if bands and SEPARATOR not in name:
        return BY_AGE
    name = name.strip().lower().replace(" ", "_").replace("-", "_")
    return next((kind for kind, names in BY_NAME.items() if name in names), BY_OTHER)


def site_facts(grouping: Grouping) -> dict[str, bool | int]:
    """Facts about scanner sites where they are among the groups: how many, and whether they are crossed with others."""
    names = [name.strip().lower().replace(" ", "_").replace("-", "_") for name in grouping.name.split(SEPARATOR)]
    at = next((i for i, name in enumerate(names) if name in BY_NAME[BY_SITE]), None)
    if at is None:
        return {}
    if len(names) == 1:
        return {"site.count": len(grouping)}
    split = [label.split(SEPARATOR) for label in grouping.labels]
    counted = all(len(labels) == len(names) for labels in split)  # else a label holds the separator: count them all
    return {
        "table.by_site": True,
        "site.count": len({labels[at] for labels in split}) if counted else len(grouping),
    }


def _column(grouping: Grouping) -> str:
    """Name of the label column; never that of a column of numbers."""
    text = label_text(grouping.name, "name")
    return f"{text} (group)" if text in {"n", *(column for _, column in _WORDS.values())} else text


def _refuse_one_value(grouping: Grouping, people: Floats, least: int) -> None:
    """A group in which everybody has the same value: its mean is each member's own. All zeros tell nothing."""
    for index, label in enumerate(grouping.labels):
        mine = people[(grouping.codes == index) & np.isfinite(people)]
        if mine.size >= least and mine[0] != 0 and np.ptp(mine) == 0:
            raise RefusedError(
                f"everybody in group {label!r} has the same value, which its mean would tell of each",
                next_step="Use other groups, or release the whole-cohort mean.",
            )


def _rows(values: Any | None, by: Any) -> int:
    """Rows of the values, or of the first group column where only people are counted."""
    if values is not None:
        return rows_of(values)
    first = by
    if isinstance(by, Mapping):
        first = next(iter(by.values()), None)
    elif not hasattr(by, "columns") and isinstance(by, list | tuple) and by and all(is_column(part) for part in by):
        first = by[0]
    return rows_of(first.ages if isinstance(first, AgeBands) else first)


def _headed(column: str, kind: str) -> Reads:
    """CSVs of groups with these numbers; a mean's first column decides which of the means it is."""

    def reads(head: tuple[str, ...], _: tuple[str, ...]) -> bool:
        if not head or head[1:] != (("n",) if column == "n" else ("n", column)):
            return False
        return column != "mean_delta" or kind_by(head[0], bands=head[0] in ("age_band", "age band")) == kind

    return reads


def _mean(kind: str, of: str) -> Kind:
    return Kind(
        kind, f"Mean delta by {of}, with the people behind each mean; small groups are marked.",
        "group_table", means, reads=_headed("mean_delta", kind), statistic="mean", part="cell", of_deltas=True,
        says=SAYS,
    )  # fmt: skip


KINDS = (
    _mean("delta_mean_by_diagnosis", "diagnostic group"),
    _mean(BY_AGE, "age band"),
    _mean("delta_mean_by_sex", "sex"),
    _mean(BY_SITE, "scanner site"),
    _mean(BY_OTHER, "any other group, or several crossed"),
    Kind(
        DELTA_SD_BY_GROUP, "SD of delta (n − 1) by group.",
        "group_table", sds, reads=_headed("sd_delta", DELTA_SD_BY_GROUP), statistic="sd", part="cell", of_deltas=True,
        earlier="sd",
        says=SAYS,
    ),
    Kind(
        COUNT_TABLE, "People by group.",
        "counts", counts, reads=_headed("n", COUNT_TABLE), statistic="count", part="cell", says=SAYS,
    ),
)  # fmt: skip
