"""`sacro-deltab predict`: a model applied to a table; what comes out per person goes to a private file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InputError
from ..base.writing import write_file
from ..cohort.aligning import align, person_ids
from ..cohort.reading import id_column
from ..cohort.sources import as_table
from ..cohort.table import Array, Table
from ..model.predicting import Prediction
from ..model.weights import Weights
from ..rules import load_ruleset

if TYPE_CHECKING:
    import pandas as pd

_RELEASED = ("results.json", "certificate.json", "certificate.dsse.json")


@dataclass(frozen=True)
class PredictPlan:
    """What `predict` was asked for; see its help."""

    weights: Path
    features: Path
    out: Path
    ages: Path | None = None
    confounds: Path | None = None
    id_column: str | None = None
    age_column: str = "age"
    model: str | None = None
    aliases: bool = True
    recalibrate: bool = False
    reference: str | None = None  # COLUMN=VALUE: the people to recalibrate on


@dataclass(frozen=True)
class Predicted:
    """What was written, in words that name features and no person."""

    prediction: Prediction
    out: Path
    said: tuple[str, ...]


def run_predict(plan: PredictPlan) -> Predicted:
    """Read, predict, write. Nothing is written on any error.

    Raises
    ------
    InputError
        With file, column and next step; also where the file would stand in a folder that leaves.
    """
    _refuse_leaving(plan.out)
    weights = Weights.load(plan.weights)
    table = as_table(plan.features, "features")
    if table.names is None:
        raise table.error("The features have no header.", next_step="Give a first line with the features' names.")
    ids = person_ids(table, _id_at(table, plan.id_column))
    ages = _ages(plan, table, ids)
    confounds = _confounds(plan, table, ids, weights.conf_names)
    found = weights.predict(_frame(table), ages, confounds, model=plan.model, aliases=plan.aliases)
    if plan.recalibrate:
        if ages is None:
            raise InputError("recalibration needs the true ages", place="--recalibrate", next_step="Give --ages.")
        found = found.recalibrated(ages, where=_reference(plan.reference, table))
    write_file(plan.out, _csv(found, ids), mode=0o600, new=True)
    return Predicted(found, plan.out, tuple(_said(plan, found)))


def _refuse_leaving(out: Path) -> None:
    folder = out.absolute().parent
    for place in (folder, *folder.parents):
        if any((place / name).exists() for name in _RELEASED):
            raise InputError(
                "values of single people do not belong into a folder that may leave",
                path=out,
                next_step="Name a file outside every output folder with --out.",
            )


def _id_at(table: Table, wanted: str | None) -> int | None:
    if wanted is not None:
        return table.need(wanted, "identifiers")
    return id_column(table)


def _frame(table: Table) -> pd.DataFrame:
    """Every column of numbers; columns of words become missing, so that only a feature among them is refused."""
    import pandas as pd  # kept out of commands that need no tables

    assert table.names is not None
    data = {
        name: column.values if column.values is not None else np.full(table.n, None, dtype=object)
        for name, column in zip(table.names, table.columns, strict=True)
    }
    return pd.DataFrame(data)


def _beside(table: Table, ids: tuple[str, ...] | None, source: Path, role: str, wanted: str | None) -> Table | None:
    """Another file's table, with the order of its rows checked against the features'; None where it is the same."""
    if Path(source).resolve() == (table.path or Path()).resolve():
        return None
    other = as_table(source, role)
    given = {id(table): ids, id(other): person_ids(other, _id_at(other, wanted if ids is not None else None))}
    orders, _ = align({"features": table, role: other}, given)
    if not np.array_equal(orders[id(other)], np.arange(table.n)):
        raise other.error(
            f"The {role} stand in another order than the features.", next_step="Sort both files by the identifier."
        )
    return other


def _ages(plan: PredictPlan, table: Table, ids: tuple[str, ...] | None) -> Array | None:
    if plan.ages is None:
        at = table.find(plan.age_column)
        return None if at is None else table.numbers(at, "ages")
    other = _beside(table, ids, plan.ages, "ages", plan.id_column) or table
    at = other.find(plan.age_column)
    if at is None and len(other.columns) == 1:
        at = 0
    return other.numbers(other.need(plan.age_column, "ages") if at is None else at, "ages")


def _confounds(plan: PredictPlan, table: Table, ids: tuple[str, ...] | None, names: Sequence[str]) -> Array | None:
    if not names:
        return None
    other = table if plan.confounds is None else _beside(table, ids, plan.confounds, "confounds", plan.id_column)
    other = other or table
    return np.column_stack([other.numbers(other.need(name, "confounds"), "confounds") for name in names])


def _reference(text: str | None, table: Table) -> object:
    if text is None:
        return None
    column, _, value = text.partition("=")
    if not value:
        raise InputError(
            "the people to recalibrate on are not named", place="--reference", next_step="For example dx=HC."
        )
    (cells,) = table.texts([table.need(column.strip(), "reference people")])
    return np.array([cell is not None and cell.strip() == value.strip() for cell in cells])


def _csv(found: Prediction, ids: tuple[str, ...] | None) -> str:
    import pandas as pd  # see _frame

    rows = range(1, len(found.table) + 1) if ids is None else ids
    table = found.table.set_axis(pd.Index(rows, name="row" if ids is None else "participant_id"))
    return str(table.to_csv(lineterminator="\n"))


def _said(plan: PredictPlan, found: Prediction) -> list[str]:
    lines = [f"Model: {found.model}; {', '.join(found.table.columns)} for each person in {plan.out} (readable by you)."]
    lines.append("These are values of single people: the file stays inside the TRE, outside every output folder.")
    few = int(load_ruleset().parameters["min_n"])  # below it nobody is told how many: terminals are copied
    for name, count in found.filled:
        how = f"{count} people" if count >= few else f"fewer than {few} people"
        whole = "every row (the column is not there)" if count == len(found.table) and count >= few else how
        lines.append(f"  {name}: the model's public centre stands in for {whole}")
    lines += [f"  {given} was read as {wanted}" for given, wanted in found.renamed]
    if found.recalibration is not None:
        lines.append(
            "Recalibrated: mean and age slope of the reference people were taken off; these two numbers are statistics "
            "of people and stay inside like any other."
        )
    return lines
