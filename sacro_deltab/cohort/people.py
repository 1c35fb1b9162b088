"""The cohort itself: people with ages, IDPs, confounds and groups, and every repair made on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError
from .table import Array

if TYPE_CHECKING:
    import pandas as pd

Fill = Literal["median", "drop", "constant"]


@dataclass(frozen=True)
class Repair:
    """One repair. `text` may leave the TRE and holds no count; `count` (rows, cells or columns) stays inside."""

    kind: str  # missing_features | missing_confounds | infinite | repeated_rows | outside_age_range | decimal_comma
    text: str
    count: int


@dataclass(frozen=True)
class Cohort:
    """One row per person (or per capped scan), in file order. Per-subject data: never leaves the TRE.

    Attributes
    ----------
    age
        Years, finite.
    X
        n x F in raw units; NaN where a feature is missing (see `filled`).
    feature_names, confound_names
        Names in column order.
    confounds
        n x K or None; NaN where missing.
    groups
        Data frame of text labels (None/NaN where missing) with one column per grouping, or None.
    person_ids
        Identifiers as text, or None where the input has none (then rows are people by declaration).
    unit
        "person". Rows per person are at most `rows_per_person`; the sensitivity of a person grows with it.
    repairs
        What was changed in the data (counts inside only).
    declared
        Sentences the researcher vouches for because nothing could check them.
    notes
        What was read as what (column roles, columns left out); holds column names, no values.
    """

    age: Array
    X: Array
    feature_names: tuple[str, ...]
    confounds: Array | None = None
    confound_names: tuple[str, ...] = ()
    groups: pd.DataFrame | None = None
    person_ids: tuple[str, ...] | None = None
    unit: str = "person"
    rows_per_person: int = 1
    repairs: tuple[Repair, ...] = ()
    declared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """No count and no value: a cohort may be printed into a log by accident."""
        return f"Cohort({len(self.feature_names)} features, {len(self.confound_names)} confounds, inside only)"

    @property
    def n_rows(self) -> int:
        """Rows (inside only)."""
        return int(self.age.shape[0])

    @property
    def n_people(self) -> int:
        """People: distinct identifiers, or rows where there are none (inside only)."""
        return self.n_rows if self.person_ids is None else len(set(self.person_ids))

    @property
    def checked_people(self) -> bool:
        """True where identifiers showed that rows are people; False where that is declared."""
        return self.person_ids is not None

    @property
    def missing(self) -> int:
        """Missing feature and confound cells (inside only)."""
        cells = int(np.isnan(self.X).sum())
        return cells + (0 if self.confounds is None else int(np.isnan(self.confounds).sum()))

    def features_frame(self) -> pd.DataFrame:
        """X with its names, as scikit-learn keeps and enforces them."""
        import pandas as pd  # late: pandas is heavy

        return pd.DataFrame(self.X, columns=list(self.feature_names))

    def take(self, rows: npt.ArrayLike) -> Cohort:
        """The same cohort with some rows (mask or index array)."""
        picked = np.arange(self.n_rows)[np.asarray(rows)]
        return replace(
            self,
            age=self.age[picked],
            X=self.X[picked],
            confounds=None if self.confounds is None else self.confounds[picked],
            groups=None if self.groups is None else self.groups.iloc[picked].reset_index(drop=True),
            person_ids=None if self.person_ids is None else tuple(self.person_ids[i] for i in picked),
        )

    def select(self, feature_names: Sequence[str]) -> Cohort:
        """Exactly these features in this order, as a basis or another model wants them.

        Raises
        ------
        InputError
            A wanted feature is not among the cohort's.
        """
        at = {name: j for j, name in enumerate(self.feature_names)}
        lost = [name for name in feature_names if name not in at]
        if lost:
            raise InputError(
                f"{len(lost)} of the features wanted are not in the features file (first: {lost[0]!r}).",
                next_step="Compare the column names; spelling and case count.",
            )
        return replace(self, X=self.X[:, [at[name] for name in feature_names]], feature_names=tuple(feature_names))

    def filled(
        self,
        method: Fill,
        *,
        centre: npt.ArrayLike | None = None,
        confound_centre: npt.ArrayLike | None = None,
    ) -> Cohort:
        """A cohort without missing values; the repair is recorded and counted.

        Parameters
        ----------
        method
            "median": column median of the people at hand; "drop": leave the person out. Both choose from raw data and
            are for the non-private path only. "constant": the public `centre` (and `confound_centre`): the only
            method that nothing is chosen by, so the only one a formal privacy claim allows.
        """
        if self.missing == 0:
            return self
        if method == "drop":
            return self._dropped()
        if method == "median":
            x, c = self._medians(self.X, self.feature_names), None
            if self.confounds is not None:
                c = self._medians(self.confounds, self.confound_names)
            text = "Missing values became the column median."
        elif method == "constant":
            x = _constant(self.X, centre, "features")
            c = None if self.confounds is None else _constant(self.confounds, confound_centre, "confounds")
            text = "Missing values became the public centre."
        else:
            raise InputError(f"Unknown way of filling {method!r}.", next_step="Use 'median', 'drop' or 'constant'.")
        repair = Repair("missing_features", text, self.missing)
        return replace(self, X=x, confounds=c, repairs=(*self.repairs, repair))

    def _medians(self, values: Array, names: Sequence[str]) -> Array:
        empty = np.isnan(values).all(axis=0)
        if empty.any():
            raise InputError(
                f"Column {names[int(np.argmax(empty))]!r} has no value at all.", next_step="Leave the column out."
            )
        return np.where(np.isnan(values), np.nanmedian(values, axis=0), values)

    def _dropped(self) -> Cohort:
        lost = np.isnan(self.X).any(axis=1)
        if self.confounds is not None:
            lost |= np.isnan(self.confounds).any(axis=1)
        if lost.sum() > self.n_rows - 2:
            raise InputError(
                "Dropping people with missing values leaves nobody to learn from.",
                next_step="Fill with medians, or leave out the columns that are mostly missing.",
            )
        out = self.take(~lost)
        repair = Repair("missing_features", "People with missing values were left out.", int(lost.sum()))
        return replace(out, repairs=(*self.repairs, repair))


def have_values(X: Array, share: float = 0.0) -> npt.NDArray[np.bool_]:
    """(n,) people with at least one feature and at least this share of them: imputed is no value (`features_share`)."""
    finite = np.isfinite(X)
    return np.asarray(finite.any(axis=1) & (finite.mean(axis=1) >= share))


def _constant(values: Array, centre: npt.ArrayLike | None, what: str) -> Array:
    if not np.isnan(values).any():
        return values
    if centre is None:
        raise InputError(
            f"Missing {what} need a public centre to become.", next_step="Give --bounds or --basis with one."
        )
    middle = np.broadcast_to(np.asarray(centre, dtype=np.float64), values.shape[1:])
    if not np.isfinite(middle).all():
        raise InputError(f"The public centre of the {what} is not finite.")
    return np.where(np.isnan(values), middle, values)
