"""The parameters of a model, one output each: a vector, a matrix or one number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..cohort.people import have_values
from ..outputs import OutputDocument
from ..outputs.parameters import (
    BETA1,
    BETA2,
    BETA2SQ,
    COMPONENTS,
    CONF_BETA,
    CONFOUND,
    FOLDED,
    GAMMA,
    GAMMASQ,
    INTERCEPT,
    X_MEAN,
    X_STD,
    Y_MEAN,
    YSQ_MEAN,
    YSQ_SLOPE,
)  # fmt: skip
from . import anew
from . import documents as build
from .kind import Kind, Measured, Reading

PUBLIC_IN_A_BASIS = frozenset({COMPONENTS, X_MEAN, X_STD})  # constants of a registered file


def documents(w: Any, title: str, about: Mapping[str, Any]) -> list[OutputDocument]:
    """Every parameter that a model has, each as a table of its own."""
    features = [str(name) for name in w.feature_names]
    scores = [f"component {j + 1}" for j in range(len(w.b1))] if w.components is not None else features
    out: list[OutputDocument] = []

    def vector(kind: str, what: str, labels: Sequence[str], values: Any, unit: str = "") -> None:
        if values is not None:
            out.append(build.vector(kind, kind, f"{title}: {what}", labels, values, unit=unit, about=about))

    def number(kind: str, what: str, value: float | None, unit: str = "") -> None:
        if value is not None:
            out.append(build.scalar(kind, kind, f"{title}: {what}", kind, value, unit=unit, about=about))

    def matrix(kind: str, what: str, labels: Sequence[str], columns: Sequence[str], values: Any, label: str) -> None:
        if values is not None:
            heads = [(column, "") for column in columns]
            out.append(build.matrix(kind, kind, f"{title}: {what}", labels, heads, values.T, label_column=label,
                                    about=about))  # fmt: skip

    vector(BETA1, "β1, years per component score", scores, w.b1, "years")
    vector(BETA2, "β2, bias correction", ["age"], w.b2)
    vector(BETA2SQ, "β2sq, quadratic bias correction", ["age", "age squared"], w.b2sq)
    vector(GAMMA, "γ, alternate model", scores, None if w.gamma is None else w.gamma[0])
    matrix(GAMMASQ, "γsq, alternate quadratic model", scores, ["age", "age squared"], w.gammasq, "component")
    matrix(COMPONENTS, "components", features, scores, w.components, "feature")
    vector(X_MEAN, "centre of each feature", features, w.x_mean)
    vector(X_STD, "scale of each feature", features, w.x_std)
    number(Y_MEAN, "mean training age", w.y_mean, "years")
    number(YSQ_MEAN, "mean squared age", w.ysq_mean)
    number(YSQ_SLOPE, "slope of squared age", w.ysq_slope)
    matrix(CONF_BETA, "confounds", features, [str(c) for c in w.conf_names], w.conf_beta, "feature")
    form = w.folded("simple")
    out.append(folded(FOLDED, FOLDED, title, w, (w.x_mean, w.x_std, form.coef, form.intercept), about))
    return out


def folded(
    kind: str, name: str, title: str, w: Any, numbers: tuple[Any, Any, Any, float], about: Mapping[str, Any]
) -> OutputDocument:
    """predicted age = intercept + Σ weight · (x − centre) / scale: all that a prediction needs.

    `numbers` are centre, scale and weight of each feature, and the intercept.
    """
    centre, scale, coef, intercept = numbers
    rows: list[list[float | None]] = [[float(v) for v in row] for row in zip(centre, scale, coef, strict=True)]
    labels = [*map(str, w.feature_names), INTERCEPT, *(f"{CONFOUND}{name}" for name in w.conf_names)]
    rows += [[None, None, float(value)] for value in (intercept, *w.folded("simple").conf_coef)]
    heads = [("centre", ""), ("scale", ""), ("weight", "years")]
    return build.matrix(kind, name, f"{title}: one weight a feature and an intercept", labels, heads, rows, about=about)


def again(asked: Reading) -> Measured | None:
    """Facts about the people a model was trained on; the weights themselves were noised."""
    found = Measured()
    origin = asked.value("n.origin")
    if origin not in ("public_bound", "noisy"):
        found.facts["n"] = asked.people("n")
    components = asked.raw.about.get("n_components")
    if origin != "noisy" and type(components) is int:
        n = found.facts.get("n", asked.people("n" if "where" in asked.raw.about else "n_node"))
        found.facts["residual_dof"] = max(n - components, 0)
        found.facts["acro.regression_check"] = anew.freedom(n - components, asked.numbers)
    ages = asked.ages
    if ages is None or not np.isfinite(ages).any():
        return found if found.facts else None
    found.facts["y.range_years"] = float(np.nanmax(ages) - np.nanmin(ages))
    if asked.raw.type == Y_MEAN and not asked.noised and len(asked.keys) == 1:
        found.facts["value"] = float(np.nanmean(ages))
        found.rows[asked.keys[0]] = (found.facts["value"],)
        return found
    matrix = None if origin == "public_bound" else asked.matrix(asked.trained_on())
    if matrix is not None:
        made = anew.features(matrix)
        shown = asked.value("n.shown")
        if isinstance(shown, int):  # a lower limit: no more people with values than there are
            share = float(asked.numbers.get("features_share", 0.0))
            found.facts["n.shown"] = min(shown, int((np.isfinite(ages) & have_values(matrix, share)).sum()))
        found.facts["idp.largest_share"] = made["idp.largest_share"]
        found.facts["largest_share"] = max(made["largest_share"], anew.share(anew.known(ages)))
    predicted = asked.prediction() if asked.noised else None
    if predicted is not None:
        found.facts["outlier.max_abs_z"] = anew.farthest(anew.known(predicted - ages))
    return found


def _weight(name: str, shape: str, page: str) -> Kind:
    return Kind(name, page, shape, again=again)


KINDS = (
    _weight(BETA1, "vector", "β₁: years per component score (or feature)."),
    _weight(BETA2, "short_vector", "β₂: bias correction, on age."),
    _weight(BETA2SQ, "short_vector", "β₂sq: quadratic bias correction, on age and its square."),
    _weight(GAMMA, "vector", "γ of the alternate model."),
    _weight(GAMMASQ, "feature_rows", "γsq of the alternate quadratic model."),
    _weight(COMPONENTS, "feature_rows", "PCA components, features × J."),
    _weight(X_MEAN, "vector", "Centre of each feature."),
    _weight(X_STD, "vector", "Scale of each feature."),
    _weight(Y_MEAN, "one_row", "Mean training age in years."),
    _weight(YSQ_MEAN, "one_row", "Mean squared centred age."),
    _weight(YSQ_SLOPE, "one_row", "Slope of squared age on age."),
    _weight(CONF_BETA, "feature_rows", "Confound coefficients, features × confounds."),
    _weight(FOLDED, "feature_rows", "A weight, centre and scale of each feature, and an intercept."),
)
