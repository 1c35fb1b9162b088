"""Values of people: deltas of a model, cross-validated ones, and columns called by their names. They stay inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..measure.people import columns_of, numbers, plausible_ages
from ..model.predicting import Prediction, Prepared
from ..model.validation import IN_SAMPLE, out_of_fold, validated_by
from ..privacy.job import contributing
from .core import SessionCore
from .guard import measured
from .paid_models import trained_here
from .part import PartOfCohort, Where, part_of
from .training import matrix_of, names_of, one_row_each, people_digest


class Values(SessionCore):
    """What a session makes of its people, one value each; nothing of it leaves as it is."""

    @measured
    def deltas(
        self,
        model: Any,
        X: Any,
        age: Any,
        confounds: Any | None = None,
        *,
        kind: str = "unbiased_quadratic",
        where: Where = None,
    ) -> Any:
        """Per-person deltas of a model (they stay inside), remembered as that model's.

        `where=` leaves out everybody else; of a model trained on that part, these are the deltas of its own people.
        """
        age = self.rows.named(age)
        rows = self.rows.of(age)
        part = None if where is None else part_of(self, where)
        found = deltas_of_model(self, model, rows.placed(X), rows.placed(age), rows.placed(confounds), kind, part)
        if rows is self.rows:
            self.rows.call("delta", found)
        return rows.framed(found)

    @measured
    def cross_validated(
        self,
        X: Any,
        age: Any,
        confounds: Any | None = None,
        *,
        n_components: int = 10,
        folds: int = 10,
        kind: str = "unbiased_quadratic",
    ) -> Prediction:
        """Predicted age and delta of each person by a model of the other folds' people: `.predicted_age`, `.delta`.

        All rows of a person stand in one fold, the correction for age bias is that of the other folds, and what is
        asked of these values says how they were validated. People without an age or some feature have no value.
        """
        self.require_open()
        X, age, confounds = self.rows.placed(X), self.rows.placed(age), self.rows.placed(confounds)
        found = _cross_validated(self, X, age, confounds, n_components, folds, kind)
        for name, values in found.table.items():
            self.rows.call(str(name), values.to_numpy())
        return found

    def use_table(self, table: Any) -> None:
        """Columns of this table (one row for each of people=, found by index) are called by their names from now on:
        `session.release_group_means("delta", by=["site", "sex"], where="diagnosis == 'HC'")`.

        `"delta"` is then also what `session.deltas` or `session.cross_validated` gave last.
        """
        self.rows.know(table)


def deltas_of_model(
    session: SessionCore, model: Any, X: Any, age: Any, confounds: Any | None, kind: str, part: PartOfCohort | None
) -> Any:
    """Deltas in years, (rows,), NaN where a person cannot be predicted (features or age are missing) or is not of the
    part.

    With a private model missing features become the public centre, as in its training. Only the rows of the training
    itself count as a formal release's: of other rows nobody knows how they were made (a column centred on its own
    mean moves every delta with one person).
    """
    ages = plausible_ages(age)
    trained = trained_here(session, model)
    weights: Any = getattr(model, "weights", None) or getattr(model, "weights_", None)
    if not hasattr(weights, "feature_names"):
        raise InputError("this is no fitted model", next_step="Fit it first, or train with session.train_private.")
    matrix = matrix_of(_in_order(X, weights.feature_names))
    some = one_row_each(session, part, matrix, ages, confounds)
    same = trained is not None and people_digest(*some) == trained.training.people
    if matrix.shape[0] != ages.size:
        raise InputError("features and ages have different numbers of rows", next_step="Give one row a person in both.")
    conf = None if confounds is None else np.column_stack([numbers(column) for column in columns_of(confounds)])
    share = float(session.ruleset.parameters["features_share"])
    whole = contributing(matrix, ages, share)  # imputed is no value
    matrix_given = matrix
    if trained is not None:
        matrix = np.where(np.isfinite(matrix), matrix, weights.x_mean)
    whole &= np.isfinite(matrix).all(axis=1)
    if conf is not None:
        whole &= np.isfinite(conf).all(axis=1)
    if part is not None:
        whole &= part.rows
    out = np.full(ages.size, np.nan)
    out[whole] = weights.delta(matrix[whole], ages[whole], None if conf is None else conf[whole], model=kind)
    if trained is not None and not same:
        note = "deltas of rows that are not those of the training: their origin is not that of the formal release"
        session.not_checked += [] if note in session.not_checked else [note]
    formal = trained is not None and trained.formal and same
    know_source(session, out, weights.feature_names, matrix_given, ages)
    session.remember_origin(
        out, "formal_release" if formal else "unprotected", own=trained is not None and same and trained.training.plain,
        made_as=None if trained is not None else _in_sample(weights, matrix[whole], ages[whole]),
    )  # fmt: skip
    return out


def _in_sample(weights: Any, X: Any, ages: Any) -> Mapping[str, str] | None:
    """Whether a model without noise was fitted to these very people: their mean delta is 0 by construction."""
    means = np.r_[X.mean(axis=0), ages.mean()] if ages.size else np.zeros(0)
    fitted = np.r_[weights.x_mean, weights.y_mean]
    same = means.size == fitted.size and bool(np.allclose(means, fitted, rtol=1e-9, atol=1e-12))
    return {"validated": IN_SAMPLE} if same else None


def _cross_validated(
    session: SessionCore, X: Any, age: Any, confounds: Any | None, n_components: int, folds: int, kind: str
) -> Prediction:
    """See `DeltabSession.cross_validated`."""
    names, matrix, ages = names_of(X, None), matrix_of(X), plausible_ages(age)
    conf = None if confounds is None else np.column_stack([numbers(column) for column in columns_of(confounds)])
    roster = session.state.roster(ages.size)
    if matrix.shape[0] != ages.size:
        raise InputError("features and ages have different numbers of rows", next_step="Give one row a person in both.")
    whole = np.isfinite(ages) & np.isfinite(matrix).all(axis=1)
    if conf is not None:
        whole &= np.isfinite(conf).all(axis=1)
    predicted, found = np.full(ages.size, np.nan), np.full(ages.size, np.nan)
    predicted[whole], found[whole] = out_of_fold(
        matrix[whole], ages[whole], None if conf is None else conf[whole], people=roster.codes[whole],
        n_components=n_components, folds=folds, model=kind,
    )  # fmt: skip
    know_source(session, found, names, matrix, ages)
    know_source(session, predicted - ages, names, matrix, ages)
    made_as = {"validated": validated_by(folds), "model": kind, "n_components": n_components}
    session.remember_origin(found, "unprotected", made_as=made_as)
    session.remember_origin(predicted, "unprotected", made_as=made_as)
    index = getattr(session.rows.framed(found), "index", None)
    return Prediction.of({"predicted_age": predicted, "delta": found}, Prepared(matrix, index, (), ()), kind)


def know_source(session: SessionCore, deltas: Any, names: Sequence[str], matrix: Any, ages: Any) -> None:
    """Remember deltas that a model of this package made of registered columns: nobody need ask where they come from."""
    roster, registered = session.state.people, session.budget.people
    if roster is None or registered is None or roster.codes.size != ages.size:
        return
    columns = [*zip(names, matrix.T, strict=True), ("age", ages)]
    if all(registered.is_column(name, roster.mean_by_person(values)) for name, values in columns):
        session.state.sound.append(roster.mean_by_person(deltas))


def _in_order(X: Any, names: Sequence[str]) -> Any:
    """A table with its columns in the order of the model's features."""
    columns = getattr(X, "columns", None)
    if columns is None or [str(c) for c in columns] == [str(n) for n in names]:
        return X
    where = {str(c): i for i, c in enumerate(columns)}
    if len(where) != len(columns) or set(where) != {str(n) for n in names}:
        raise InputError("the features are not those of the model", next_step="Give the columns it was trained on.")
    return X.iloc[:, [where[str(n)] for n in names]]
