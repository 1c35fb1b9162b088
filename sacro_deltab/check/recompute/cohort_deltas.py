"""Deltas of the cohort's people, from wherever a session could have them: a column, the recorded weights, a plain fit.

Each source is only a proposal: facts are compared with the source that agrees with an output, and forged facts agree
with none. Per-subject values; nothing here leaves the TRE.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...base.errors import SacroDeltabError
from ...cohort import read_cohort
from ...cohort.people import have_values
from ...cohort.reading import ID_NAMES
from ...kinds.features import FEATURES
from ...model.filling import fitted_deltas
from ...model.linear import MODELS
from ...model.validation import FOLDS, validated_by
from ...outputs import OutputDocument
from ...outputs.parameters import BETA2, BETA2SQ, FOLDED, X_MEAN, Y_MEAN, YSQ_MEAN, YSQ_SLOPE
from .cohort_file import CohortFile

NAMES = ("delta", "brain_age_delta", "delta_unbiased_quadratic", "delta_unbiased", "delta_simple")
_KINDS = ("unbiased_quadratic", "unbiased", "simple")
_CONFOUND = "confound "
_MOST_NUMBERS = 100_000_000  # people × features that are fitted again; a minute's work


@dataclass(frozen=True)
class Source:
    """One proposal: where the deltas come from, and one value a person (NaN where there is none)."""

    name: str
    values: Any
    private: bool = False
    predicted: Any = None  # the ages that came with them, where they came from a fit to the cohort


@dataclass
class DeltaSources:
    """Every way of getting deltas from one cohort, worked out once each and only when asked for."""

    cohort: CohortFile
    share: float = 0.0  # of the features, which a person needs to have a delta
    documents: dict[str, OutputDocument] = field(default_factory=dict)  # recorded, unrounded, by type
    n_components: int | None = None
    validated: str | None = None  # the model whose cross-validated deltas the package says it is about
    _made: dict[str, list[Source]] = field(default_factory=dict)

    def learn(self, evidence: Mapping[str, Any] | None) -> None:
        """Take the unrounded documents of the evidence: weights to apply, names of features."""
        for entry in () if evidence is None else evidence["outputs"]:
            try:
                document = OutputDocument.from_json(entry["raw"])
            except (KeyError, TypeError, ValueError):
                continue
            noised = (entry["facts"]["facts"].get("dp.applied") or {}).get("value") is True
            if document.type not in self.documents or noised:
                self.documents[document.type] = document
            components = document.about.get("n_components")
            if type(components) is int and 0 < components < 100_000:
                self.n_components = components
            if document.about.get("validated") == validated_by(FOLDS) and document.about.get("model") in MODELS:
                self.validated = str(document.about["model"])

    def __iter__(self) -> Iterator[Source]:
        for step in (self._columns, self._weights, self._fits):
            if step.__name__ not in self._made:
                self._made[step.__name__] = list(step())
            yield from self._made[step.__name__]

    @property
    def has_column(self) -> bool:
        """Whether the file itself has deltas."""
        return any(name in self.cohort.numbers for name in NAMES)

    @property
    def whole(self) -> bool:
        """Whether the recorded weights make deltas of every kind."""
        parts = (Y_MEAN, BETA2, BETA2SQ, YSQ_MEAN, YSQ_SLOPE)
        return all(kind in self.documents for kind in parts) and self.prediction() is not None

    def _columns(self) -> Iterator[Source]:
        yield from (Source(name, self.cohort.numbers[name]) for name in NAMES if name in self.cohort.numbers)

    def _weights(self) -> Iterator[Source]:
        """Deltas that the recorded private weights give: predicted age from the folded ones, then the corrections."""

        form, ages = self.prediction(), self.cohort.ages
        y_mean = self._one(Y_MEAN)
        if form is None or ages is None or y_mean is None:
            return
        u = ages - y_mean
        simple = form - ages
        yield Source("the recorded weights", simple, True)
        b2, b2sq = self._column(BETA2), self._column(BETA2SQ)
        mean, slope = self._one(YSQ_MEAN), self._one(YSQ_SLOPE)
        if b2 is not None and len(b2) == 1:
            yield Source("the recorded weights", simple - b2[0] * u, True)
        if b2sq is not None and len(b2sq) == 2 and mean is not None and slope is not None:
            square = np.square(u) - mean - slope * u
            yield Source("the recorded weights", simple - b2sq[0] * u - b2sq[1] * square, True)

    def held_out(self) -> Any:
        """(people,) ages predicted by models of the other folds, where the package is about such; else None."""
        return None if self.validated is None else next((s.predicted for s in self if s.predicted is not None), None)

    def prediction(self) -> Any:
        """(people,) ages predicted by the recorded folded weights; a missing feature counts as its centre."""

        document = self.documents.get(FOLDED)
        if document is None or len(document.columns) != 4:
            return None
        rows = {str(row[0]): row[1:] for row in document.rows}
        features = [name for name in rows if name != "(intercept)" and not name.startswith(_CONFOUND)]
        x = self.cohort.matrix(features)
        c = [(name, rows[name][2]) for name in rows if name.startswith(_CONFOUND)]
        extra = self.cohort.matrix([name.removeprefix(_CONFOUND) for name, _ in c]) if c else None
        if x is None or "(intercept)" not in rows or (c and extra is None):
            return None
        try:
            centre, scale, weight = (np.array([rows[name][i] for name in features], dtype=float) for i in range(3))
            start = float(rows["(intercept)"][2])  # type: ignore[arg-type]
            out = np.where(np.isfinite(x), (x - centre) / scale, 0.0) @ weight + start
            out[~have_values(x, self.share)] = np.nan
            return out if extra is None else out + extra @ np.array([b for _, b in c], dtype=float)
        except (TypeError, ValueError):
            return None

    def _fits(self) -> Iterator[Source]:
        """Deltas of a model without noise, fitted to these people as `run` does where no ε is given."""

        names = self.features()
        if self.cohort.ages is None or not names or self.cohort.n * len(names) > _MOST_NUMBERS:
            return
        keep = {*names, "age"}
        others = tuple(str(column.name) for key, column in self.cohort.raw.items() if key not in keep)
        age = str(self.cohort.raw["age"].name)
        others = tuple(name for name in others if name.strip().lower() not in ID_NAMES)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                one = 1 if self.cohort.ids is not None else None
                people = read_cohort(
                    self.cohort.path, self.cohort.path, age_column=age, ignore_columns=others, rows_per_person=one
                )
                if people.X.shape[0] != self.cohort.n:
                    return
                choice = {"n_components": self.n_components}
                for kind in _KINDS if self.validated is None else (self.validated,):
                    made = fitted_deltas(people, choice, kind, "median", in_sample=self.validated is None,
                                          share=self.share)  # fmt: skip
                    yield Source("a model fitted without noise", made.deltas, predicted=made.predicted)
        except (SacroDeltabError, ValueError, ArithmeticError):
            return

    def trained_on(self) -> list[str]:
        """Features of the recorded weights; empty where none were recorded."""
        for kind in (X_MEAN, FOLDED):
            document = self.documents.get(kind)
            if document is not None:
                names = [str(row[0]) for row in document.rows]
                return [name for name in names if name != "(intercept)" and not name.startswith(_CONFOUND)]
        return []

    def features(self) -> Sequence[str]:
        """Lower-case names of the features: those that a recorded document lists, else every other number."""
        for kind in (X_MEAN, FOLDED, FEATURES):
            document = self.documents.get(kind)
            if document is not None:
                found = [str(row[0]).removeprefix("'").strip().lower() for row in document.rows]
                found = [name for name in found if name in self.cohort.numbers]
                if found:
                    return found
        return [name for name in self.cohort.numbers if name != "age" and name not in NAMES]

    def _column(self, kind: str) -> list[float] | None:
        document = self.documents.get(kind)
        if document is None:
            return None
        values = [row[1] for row in document.rows]
        return [float(v) for v in values if isinstance(v, int | float)]

    def _one(self, kind: str) -> float | None:
        values = self._column(kind)
        return values[0] if values and len(values) == 1 else None
