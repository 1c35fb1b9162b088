"""Applying a model to other people's tables: features found by name, holes filled with the model's public centre.

Everything per person in here stays inside the TRE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .aliases import match_names
from .base import Array, ModelInputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Recalibration:
    """What brings deltas to mean 0 and no slope on age at another scanner: three numbers, made of its people.

    ``delta' = scale (delta - intercept - slope (age - centre))``. They are statistics of the people they were fitted
    on, so they stay inside like any statistic until the rules have judged them.
    """

    intercept: float
    slope: float
    centre: float
    scale: float = 1.0

    def __repr__(self) -> str:
        return "Recalibration(intercept, slope, scale; inside only)"

    @classmethod
    def fit(cls, delta: Any, age: Any, *, sd: float | None = None) -> Recalibration:
        """Least squares of delta on age over the people with both; with `sd` (years) the spread is brought to it."""
        d, a = np.asarray(delta, dtype=np.float64), np.asarray(age, dtype=np.float64)
        both = np.isfinite(d) & np.isfinite(a)
        d, a = d[both], a[both]
        if d.size < 3 or float(np.ptp(a)) == 0.0:
            raise ModelInputError(
                "There are too few people, or ages, to recalibrate on.",
                next_step="Recalibrate on more people of different ages, or leave it out.",
            )
        centre = float(a.mean())
        u = a - centre
        slope = float(u @ d) / float(u @ u)
        left = d - d.mean() - slope * u
        spread = float(np.sqrt(left @ left / (d.size - 2)))
        if sd is not None and not (sd > 0 and spread > 0):
            raise ModelInputError("A spread must be a number of years above 0.", next_step="For example sd=5.")
        return cls(float(d.mean()), slope, centre, 1.0 if sd is None else sd / spread)

    def apply(self, delta: Array, age: Array) -> Array:
        """Recalibrated deltas."""
        return np.asarray(self.scale * (delta - self.intercept - self.slope * (age - self.centre)))


@dataclass(frozen=True)
class Prepared:
    """Features in the model's order without holes, and what was done for it."""

    matrix: Array
    index: Any
    filled: tuple[tuple[str, int], ...]
    renamed: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Prediction:
    """What a model says of each person of a table. Per person: inside only.

    Attributes
    ----------
    table
        `predicted_age` and, where ages were given, `delta` in years, with the rows and the index of the table given.
    model
        Which delta.
    filled
        Features with the people for whom the model's public centre stood in (all of them: the column is not there).
    renamed
        (given, wanted) names of columns that were recognised under another name.
    """

    table: pd.DataFrame
    model: str
    filled: tuple[tuple[str, int], ...]
    renamed: tuple[tuple[str, str], ...]
    recalibration: Recalibration | None = None

    @classmethod
    def of(cls, columns: Mapping[str, Array], ready: Prepared, model: str) -> Prediction:
        """The columns as a table with the rows of the frame they were made from."""
        import pandas as pd  # private training uses the weights without it

        return cls(pd.DataFrame(dict(columns), index=ready.index), model, ready.filled, ready.renamed)

    def __repr__(self) -> str:
        """No value and no count: a notebook is often mailed."""
        said = f"{len(self.filled)} features filled, {len(self.renamed)} renamed"
        return f"Prediction({self.model}; {', '.join(self.table.columns)} a person, inside only; {said})"

    def _repr_html_(self) -> str:

        return f"<code>{escape(repr(self))}</code>"

    @property
    def predicted_age(self) -> pd.Series[float]:
        """Brain age of each person in years."""
        return self.table["predicted_age"]

    @property
    def delta(self) -> pd.Series[float]:
        """Brain-age delta of each person in years."""
        if "delta" not in self.table:
            raise ModelInputError("A delta needs the true ages.", next_step="Give age= (on the command line --ages).")
        return self.table["delta"]

    def recalibrated(self, age: Any, *, where: Any | None = None, sd: float | None = None) -> Prediction:
        """Deltas with the mean and the slope on age of some of these people (`where`, a mask; else all) taken off.

        Raises
        ------
        ModelInputError
            Too few people or ages.
        """
        ages = np.asarray(age, dtype=np.float64)
        delta = np.asarray(self.delta, dtype=np.float64)
        rows = np.ones(delta.size, bool) if where is None else np.asarray(where, dtype=bool)
        found = Recalibration.fit(delta[rows], ages[rows], sd=sd)
        new = found.apply(delta, ages)
        table = self.table.assign(delta=new, predicted_age=ages + new)
        return replace(self, table=table, recalibration=found)


def prepare(frame: Any, names: Sequence[str], centre: Array, *, aliases: bool = True) -> Prepared:
    """Columns of a data frame as a model wants them; a missing value or column becomes the model's centre.

    Raises
    ------
    ModelInputError
        No feature is there at all, a column is not of numbers, or two columns are one feature.
    """
    if hasattr(frame, "to_pandas"):  # polars, arrow
        frame = frame.to_pandas()
    if not hasattr(frame, "columns"):
        raise ModelInputError("The features are no data frame.", next_step="Give a table with named columns.")
    matched = match_names(names, [str(c) for c in frame.columns], aliases=aliases)
    if not matched.found:
        raise ModelInputError(
            f"The table has none of the model's features (first: {names[0]!r}).",
            next_step="Check the header, or the names of the columns.",
        )
    given = {str(c): c for c in frame.columns}
    out = np.empty((len(frame), len(names)))
    filled = []
    for j, (name, column) in enumerate(zip(names, matched.columns, strict=True)):
        values = np.full(len(frame), np.nan) if column is None else _numbers(frame[given[column]], column)
        holes = ~np.isfinite(values)
        if holes.any():
            filled.append((name, int(holes.sum())))
        out[:, j] = np.where(holes, centre[j], values)
    return Prepared(out, getattr(frame, "index", None), tuple(filled), matched.renamed)


def _numbers(column: Any, name: str) -> Array:
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelInputError(
            f"The column {name!r} holds text where numbers are needed.", next_step="Check its decimal points."
        ) from None
