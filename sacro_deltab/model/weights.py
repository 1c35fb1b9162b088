"""Brain-age weights as plain numbers: what a fit leaves behind once the people are gone.

All five models of Smith et al. 2019 (NeuroImage 200:528) share one shape. For one person, with standardised
features ``z = (x - x_mean) / x_std`` (or any public centre and scale), confounds ``c`` and ``u = age - y_mean``,

    delta = coef . z + conf_coef . c + p0 + p1 u + p2 u^2

so every delta and predicted age below depends on that person alone, never on who else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError
from .base import Array, ModelInputError, round_significant, round_to_step
from .linear import (
    MODELS,
    LinearForm,
    Model,
    ages_of,
    check_names,
    default_confound_names,
    matrix,
    polynomial,
    row_pinv,
)
from .predicting import Prediction, prepare
from .stored import stored_fields

_ALWAYS = ("feature_names", "x_mean", "x_std")
_ROWS = 2048  # rows worked on at once: bounds the temporary arrays at about 2048 x F


@dataclass(frozen=True, repr=False)
class Weights:
    """Frozen weights of one brain-age model; no per-subject value fits in here.

    Parameters
    ----------
    feature_names
        F names, in the order every array below follows.
    x_mean, x_std
        Centre and scale of each feature in its raw unit (length F, scale > 0). On the private path these are the
        public constants; `centre` and `scale` are other names for them.
    b1
        Years per component score (length J) or per standardised feature (length F, without components).
    y_mean
        Mean training age in years (on the private path its noisy estimate).
    components
        J x F, rows are components, or None.
    b2, b2sq, gamma, gammasq
        Shapes (1,), (2,), (1, J), (2, J). None where not released; models that need them then refuse.
    ysq_mean, ysq_slope
        Mean of ``(age - y_mean)^2`` and its projection on age: the quadratic regressor of a person is
        ``u^2 - ysq_mean - ysq_slope * u``.
    score_mean
        Mean of the scores in training (length J or F), subtracted before b1. Zero unless confounds are used or the
        basis was made elsewhere.
    conf_beta
        K x F: standardised features per unit of confound ``(c - conf_centre) / conf_scale``.
    """

    feature_names: tuple[str, ...]
    x_mean: Array
    x_std: Array
    b1: Array
    y_mean: float
    components: Array | None = None
    b2: Array | None = None
    b2sq: Array | None = None
    gamma: Array | None = None
    gammasq: Array | None = None
    ysq_mean: float | None = None
    ysq_slope: float | None = None
    score_mean: Array | None = None
    conf_names: tuple[str, ...] = ()
    conf_beta: Array | None = None
    conf_centre: Array | None = None
    conf_scale: Array | None = None
    explained_variance: Array | None = None

    def __post_init__(self) -> None:
        f = len(self.feature_names)
        if len(set(self.feature_names)) != f:
            raise ModelInputError("Feature names repeat.", next_step="Give every feature a name of its own.")
        self._fix("x_mean", (f,))
        self._fix("x_std", (f,))
        j = f
        if self.components is not None:
            j = np.atleast_2d(np.asarray(self.components)).shape[0]
            self._fix("components", (j, f))
        k = len(self.conf_names)
        if self.conf_beta is not None and k == 0:
            k = np.atleast_2d(np.asarray(self.conf_beta)).shape[0]
            object.__setattr__(self, "conf_names", default_confound_names(k))
        shapes: dict[str, tuple[int, ...]] = {
            "b1": (j,), "b2": (1,), "b2sq": (2,), "gamma": (1, j), "gammasq": (2, j), "score_mean": (j,),
            "conf_beta": (k, f), "conf_centre": (k,), "conf_scale": (k,),
        }  # fmt: skip
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                self._fix(name, shape)
        if self.explained_variance is not None:
            self._fix("explained_variance", np.asarray(self.explained_variance).shape)
        for name in ("y_mean", "ysq_mean", "ysq_slope"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, float(getattr(self, name)))
                if not np.isfinite(getattr(self, name)):
                    raise ModelInputError(f"Weight {name} is not finite.")
        if not bool((self.x_std > 0).all()):
            raise ModelInputError("x_std holds a scale that is not positive.")

    def _fix(self, name: str, shape: tuple[int, ...]) -> None:
        value = np.array(getattr(self, name), dtype=np.float64)  # a copy: nobody else can change it
        if value.size != int(np.prod(shape)):
            raise ModelInputError(f"Weight {name} has shape {value.shape}, expected {shape}.")
        if not np.isfinite(value).all():
            raise ModelInputError(f"Weight {name} holds a value that is not finite.")
        value = np.ascontiguousarray(value.reshape(shape))
        value.setflags(write=False)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        there = [f.name for f in fields(self) if f.name not in _ALWAYS and getattr(self, f.name) is not None]
        return f"Weights({len(self.feature_names)} features, J = {self.n_components}; {', '.join(there)})"

    @classmethod
    def load(cls, path: str | Path, *, parts: bool = False) -> Weights:
        """Weights from a session's or a pooled folder (its folded weights), or from a JSON file of their fields.

        Parameters
        ----------
        parts
            Take β₁ and the components where the folder has them: only the alternate models need them.

        Raises
        ------
        InputError
            Naming what is missing or does not fit.
        """
        try:
            return cls(**stored_fields(path, parts=parts))
        except TypeError as error:
            raise InputError("the file does not hold the fields of weights", path=path) from error
        except ModelInputError as error:
            raise InputError(error.what, path=path, next_step=error.next_step) from error

    def to_json(self) -> dict[str, Any]:
        """Every field as JSON; `load` reads it back."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in values.items() if v is not None}

    @property
    def best_model(self) -> Model:
        """The delta with the most of the age bias taken off that these weights can give."""
        if self.b2sq is not None and self.ysq_mean is not None and self.ysq_slope is not None:
            return "unbiased_quadratic"
        return "simple" if self.b2 is None else "unbiased"

    def predict(
        self,
        frame: Any,
        age: npt.ArrayLike | None = None,
        confounds: npt.ArrayLike | None = None,
        *,
        model: Model | str | None = None,
        aliases: bool = True,
    ) -> Prediction:
        """Brain age, and delta where ages are given, for each row of a table (per person: inside only).

        Features are found by name whatever their order, also under FreeSurfer's, ENIGMA's or UK Biobank's other names
        (`aliases`); a missing value or column becomes the model's centre, and is counted.

        Parameters
        ----------
        frame
            A data frame (pandas or polars) with named columns; others than the model's features are not looked at.
        age
            Ages in years, in the order of the rows, or the name of a column of the frame.
        model
            Which delta; by default the least biased one that these weights hold.
        """
        ready = prepare(frame, self.feature_names, self.x_mean, aliases=aliases)
        kind = str(model or (self.best_model if age is not None else "simple"))
        columns: dict[str, Any] = {}
        if age is None:
            columns["predicted_age"] = self.predict_age(ready.matrix, confounds=confounds, model=kind)
        else:
            ages = np.asarray(frame[age] if isinstance(age, str) else age, dtype=np.float64)
            delta = self.delta(ready.matrix, ages, confounds, kind)
            columns = {"predicted_age": ages + delta, "delta": delta}
        return Prediction.of(columns, ready, kind)

    @property
    def centre(self) -> Array:
        """Centre of each feature, raw unit; the same numbers as `x_mean`."""
        return self.x_mean

    @property
    def scale(self) -> Array:
        """Scale of each feature, raw unit; the same numbers as `x_std`."""
        return self.x_std

    @property
    def n_components(self) -> int:
        """J, or F without components."""
        return int(self.b1.shape[0])

    def form(self, model: Model | str = "simple") -> LinearForm:
        """Delta as a formula in standardised features (see the module docstring).

        Raises
        ------
        InputError
            For an unknown model, or one whose weights are not in this set.
        """
        v, p1, p2, p0 = self._score_vector(model)
        start = 0.0 if self.score_mean is None else -float(self.score_mean @ v)
        coef = v if self.components is None else v @ self.components
        conf = np.zeros(0)
        if self.conf_beta is not None:
            conf = -(self.conf_beta @ coef)
            if self.conf_scale is not None:
                conf = conf / self.conf_scale
            if self.conf_centre is not None:
                start -= float(conf @ self.conf_centre)
        return LinearForm(start + p0, coef, conf, (p1, p2), self.y_mean, "delta")

    def _score_vector(self, model: str) -> tuple[Array, float, float, float]:
        """(v, p1, p2, p0): delta = scores.v + p0 + p1 u + p2 u^2."""
        if model == "simple":
            return self.b1, -1.0, 0.0, 0.0
        if model == "unbiased":
            return self.b1, -1.0 - float(self._need("b2", model)[0]), 0.0, 0.0
        if model == "unbiased_quadratic":
            linear, square = (float(b) for b in self._need("b2sq", model))
            mean, slope = float(self._need("ysq_mean", model)), float(self._need("ysq_slope", model))
            return self.b1, -1.0 - linear + square * slope, -square, square * mean
        if model == "alternate":
            back = row_pinv(self._need("gamma", model)[0])
            return back, -float(self._need("gamma", model)[0] @ back), 0.0, 0.0
        if model == "alternate_quadratic":
            gamma = self._need("gammasq", model)
            mean, slope = float(self._need("ysq_mean", model)), float(self._need("ysq_slope", model))
            back = row_pinv(gamma[0])
            square = float(gamma[1] @ back)
            return back, -float(gamma[0] @ back) + square * slope, -square, square * mean
        raise ModelInputError(f"Unknown model {model!r}.", next_step=f"Use one of {', '.join(MODELS)}.")

    def _need(self, name: str, model: str) -> Any:
        value = getattr(self, name)
        if value is None:
            raise ModelInputError(
                f"Model {model!r} needs {name}, which is not among these weights.",
                next_step="Use another model, or ask for a release that holds it.",
            )
        return value

    def delta(
        self,
        X: npt.ArrayLike,
        age: npt.ArrayLike,
        confounds: npt.ArrayLike | None = None,
        model: Model | str = "unbiased_quadratic",
    ) -> Array:
        """Brain-age delta of each person, in years (per-subject: stays inside the TRE).

        Parameters
        ----------
        X
            n x F, raw units, in the order of `feature_names`; a DataFrame must carry exactly these names in order.
        age
            n ages in years.
        confounds
            n x K where the weights hold `conf_beta`, else None.
        """
        form = self.form(model)
        x, c = self._rows(X, confounds)
        ages = ages_of(age, x.shape[0])
        return self._linear(form, x, c) + polynomial(form, ages - form.y_mean)

    def predict_age(
        self,
        X: npt.ArrayLike,
        age: npt.ArrayLike | None = None,
        confounds: npt.ArrayLike | None = None,
        model: Model | str = "simple",
    ) -> Array:
        """Predicted (brain) age in years: age + delta. The simple model needs no age; every other one does."""
        if model == "simple":
            x, c = self._rows(X, confounds)
            return self._linear(self.form("simple"), x, c) + self.y_mean
        if age is None:
            raise ModelInputError(
                f"Model {model!r} corrects for age, so its predicted age needs the true ages.",
                next_step="Give ages, or use model='simple'.",
            )
        return np.asarray(self.delta(X, age, confounds, model) + np.asarray(age, dtype=np.float64).ravel())

    def _rows(self, X: npt.ArrayLike, confounds: npt.ArrayLike | None) -> tuple[Array, Array | None]:
        check_names(X, self.feature_names, "feature")
        x = matrix(X, len(self.feature_names), "features")
        if self.conf_beta is None:
            if confounds is not None:
                raise ModelInputError(
                    "Confounds were given to a model fitted without any.", next_step="Leave confounds out."
                )
            return x, None
        if confounds is None:
            raise ModelInputError(
                "This model was fitted with confounds.", next_step="Give the same confounds for every person."
            )
        check_names(confounds, self.conf_names, "confound")
        c = matrix(confounds, len(self.conf_names), "confounds")
        if c.shape[0] != x.shape[0]:
            raise ModelInputError("Features and confounds have different numbers of rows.")
        return x, c

    def _linear(self, form: LinearForm, x: Array, c: Array | None) -> Array:
        """Row sums instead of a matrix product: each row is added up alone, so the batch cannot change a bit."""
        out = np.empty(x.shape[0])
        for start in range(0, x.shape[0], _ROWS):
            block = x[start : start + _ROWS] - self.x_mean
            block /= self.x_std
            block *= form.coef
            out[start : start + _ROWS] = block.sum(axis=1)
        if c is not None:
            out += np.ascontiguousarray(c * form.conf_coef).sum(axis=1)
        return out + form.intercept

    def folded(self, model: Model | str = "simple", *, raw_units: bool = False) -> LinearForm:
        """Components (and, with `raw_units`, centre and scale) folded into one coefficient per feature.

        Without `raw_units` the coefficients go with ``(x - x_mean) / x_std``, which survives rounding; raw-unit
        coefficients need an intercept at full precision. For ``model="simple"`` the form gives predicted age,
        for the others delta.
        """
        form = self.form(model)
        if model == "simple":
            form = replace(form, intercept=form.intercept + self.y_mean, poly=(0.0, 0.0), target="age")
        if raw_units:
            coef = form.coef / self.x_std
            form = replace(form, coef=coef, intercept=form.intercept - float(coef @ self.x_mean))
        return form

    def map(self, change: Callable[[str, Array], npt.ArrayLike]) -> Weights:
        """New weights with `change(name, values)` applied to every numeric weight (for rounding, unit changes)."""
        changed: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or isinstance(value, tuple):
                continue
            new = np.asarray(change(field.name, np.asarray(value, dtype=np.float64)))
            changed[field.name] = float(new) if np.ndim(value) == 0 else new
        return replace(self, **changed)

    def round(
        self,
        significant_figures: int = 3,
        *,
        x_mean_step: float | None = 0.01,
        skip: Sequence[str] = ("conf_centre", "conf_scale", "explained_variance"),
    ) -> Weights:
        """Weights rounded half-even in decimal; the last step before they are certified.

        Parameters
        ----------
        significant_figures
            For every number but those below.
        x_mean_step
            `x_mean` is rounded to the power of ten at or below this share of each feature's scale: significant
            figures of a mean far from zero would move predictions more than all other rounding together. None rounds
            `x_mean` to `significant_figures` as well.
        skip
            Names left as they are.
        """
        keep = frozenset(skip)

        def change(name: str, values: Array) -> Array:
            if name in keep:
                return values
            if name == "x_mean" and x_mean_step is not None:
                return round_to_step(values, x_mean_step * self.x_std)
            return round_significant(values, significant_figures)

        return self.map(change)
