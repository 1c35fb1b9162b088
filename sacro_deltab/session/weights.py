"""Documents and facts of model weights: one record for each parameter, one file for each decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..measure.measure import computed, dof_check
from ..outputs import build
from ..outputs.document import OutputDocument
from ..rules.facts import Fact, FactValue, Provider
from .attacking import reported
from .common import ROWS_ARE_PEOPLE, about, build_facts, noised, not_noised
from .entries import Candidate
from .statistics import n_candidate
from .training import GONE, GONE_STEP, trained_here

if TYPE_CHECKING:
    from .core import SessionCore

ALL = (
    "beta1", "beta2", "beta2sq", "gamma", "gammasq", "pca_components", "x_mean", "x_std", "y_mean", "ysq_mean",
    "ysq_slope", "conf_beta", "folded_weights", "n_subjects",
)  # fmt: skip


@dataclass(frozen=True)
class _Source:
    """Where weights come from: their numbers, what was noised, and how many people they rest on."""

    weights: Any
    statement: Mapping[str, Any] | None
    receipt: Any
    n: int
    shared: bool
    n_basis: int | None  # people of a registered public basis
    facts: Mapping[str, Fact]
    context: Mapping[str, Any]


def weight_candidates(session: SessionCore, model: Any, title: str, only: Sequence[str] | None) -> list[Candidate]:
    """Every parameter of a model as a candidate of its own."""
    if isinstance(only, str):
        only = (only,)
    if only is not None and not all(isinstance(kind, str) for kind in only):
        raise InputError("only= is a list of output types", next_step="For example only=['beta1', 'gamma'].")
    wanted = tuple(only) if only is not None else ALL
    unknown = sorted(set(wanted) - set(ALL))
    if unknown:
        raise InputError(f"{unknown[0]!r} is no parameter of a model", next_step=f"Use some of {', '.join(ALL)}.")
    source = _source(session, model)
    documents = [d for d in _documents(session, source, title) if d.type in wanted]
    out = [_candidate(session, source, document) for document in documents]
    if "n_subjects" in wanted and (_n_is_secret(source) or session.budget.n_is_secret()):
        if only is not None:
            raise InputError(
                "under add_remove N is not public: printing it beside this model would void its ε",
                next_step="Leave n_subjects out, or train with adjacency='zero_out_N_public'.",
            )
    elif "n_subjects" in wanted and not any(e.type == "n_subjects" for e in session.entries):
        out.append(n_candidate(session, "Number of subjects"))
    return out


def _n_is_secret(source: _Source) -> bool:
    return source.statement is not None and source.statement["adjacency"] == "add_remove"


def moments_candidate(session: SessionCore, model: Any, title: str) -> Candidate:
    """The noisy moments as a flat table: one row an entry, at the precision of the public grid."""
    source = _source(session, model)
    moments = model.noisy_moments
    if moments is None:
        raise InputError("this training released no moments", next_step="Train with method='moments'.")
    data = moments.to_json()
    labels, values = [], []
    for block, value in moments.values.items():
        array = np.asarray(value, dtype=np.float64)
        for index in np.ndindex(array.shape):
            labels.append(f"{block}[{','.join(str(i + 1) for i in index)}]" if index else block)
            values.append(float(array[index]))
    context = {
        **source.context,
        "layout": _flat(data["layout"]),
        "scaling": _flat(data["scaling"]),
        "sd": _flat(data["sd"]),
        "n_public": data["n_public"],
        "releases": data["releases"],
    }
    document = build.vector(
        "noised_moments", "noised_moments", title, labels, values, label_column="entry", about=about(session, **context)
    )
    return _candidate(session, source, document)


def _source(session: SessionCore, model: Any) -> _Source:
    people = session.state.people
    n = people.n_people if people is not None else 0
    statement = getattr(model, "statement", None)
    if statement is not None or id(model) in session.models:
        record = trained_here(session, model)
        if record is None and session.resumed:
            raise InputError(GONE, next_step=GONE_STEP)
        if record is None:
            raise InputError(
                "this private model was not trained in this session",
                next_step="Train it with session.train_private, so that its budget is known.",
            )
        data = record.statement
        n = n if record.n_least is None else record.n_least  # under add_remove: a limit on the release's own count
        context = {
            "privacy": data["label"],
            "mechanism": data["mechanism"],
            "basis": None if data["basis"] is None else data["basis"]["digest"],
            "bounds": data["bounds"]["digest"],
            "n_components": int(model.weights.n_components),
            **({} if session.state.ids is not None else {"unit": ROWS_ARE_PEOPLE}),
            **record.intervals,
        }
        return _Source(
            model.weights, data, record.receipt, n, data["basis"] is not None, record.n_basis, record.facts, context
        )
    weights = getattr(model, "weights_", None)
    if weights is None:
        raise InputError("this is no fitted model", next_step="Fit it first, or train with session.train_private.")
    context = {"privacy": "none", "n_components": int(weights.n_components)}
    origin = {"pca.origin": Fact("pca.origin", "node_specific", Provider.DECLARED)}
    return _Source(weights, None, None, n, False, None, origin, context)


def _documents(session: SessionCore, source: _Source, title: str) -> list[OutputDocument]:
    w, context = source.weights, about(session, **source.context)
    features = [str(name) for name in w.feature_names]
    scores = [f"component {j + 1}" for j in range(len(w.b1))] if w.components is not None else features
    out: list[OutputDocument] = []

    def vector(kind: str, what: str, labels: Sequence[str], values: Any, unit: str = "") -> None:
        out.append(build.vector(kind, kind, f"{title}: {what}", labels, values, unit=unit, about=context))

    vector("beta1", "β1, years per component score", scores, w.b1, "years")
    if w.b2 is not None:
        vector("beta2", "β2, bias correction", ["age"], w.b2)
    if w.b2sq is not None:
        vector("beta2sq", "β2sq, quadratic bias correction", ["age", "age squared"], w.b2sq)
    if w.gamma is not None:
        vector("gamma", "γ, alternate model", scores, w.gamma[0])
    if w.gammasq is not None:
        out.append(
            build.matrix("gammasq", "gammasq", f"{title}: γsq, alternate quadratic model", scores,
                         [("age", ""), ("age squared", "")], w.gammasq.T, label_column="component", about=context)
        )  # fmt: skip
    if w.components is not None:
        out.append(
            build.matrix("pca_components", "pca_components", f"{title}: components", features,
                         [(s, "") for s in scores], w.components.T, about=context)
        )  # fmt: skip
    vector("x_mean", "centre of each feature", features, w.x_mean)
    vector("x_std", "scale of each feature", features, w.x_std)
    out.append(
        build.scalar("y_mean", "y_mean", f"{title}: mean training age", "y_mean", w.y_mean, unit="years", about=context)
    )
    if w.ysq_mean is not None:
        out.append(
            build.scalar("ysq_mean", "ysq_mean", f"{title}: mean squared age", "ysq_mean", w.ysq_mean, about=context)
        )
    if w.ysq_slope is not None:
        out.append(
            build.scalar(
                "ysq_slope", "ysq_slope", f"{title}: slope of squared age", "ysq_slope", w.ysq_slope, about=context
            )
        )
    if w.conf_beta is not None:
        out.append(
            build.matrix("conf_beta", "conf_beta", f"{title}: confounds", features,
                         [(str(c), "") for c in w.conf_names], w.conf_beta.T, about=context)
        )  # fmt: skip
    out.append(_folded(w, title, context))
    return out


def _folded(w: Any, title: str, context: Mapping[str, Any]) -> OutputDocument:
    """predicted age = intercept + Σ weight · (x − centre) / scale: all that a prediction needs."""
    form = w.folded("simple")
    rows: list[list[float | None]] = [
        [float(c), float(s), float(b)] for c, s, b in zip(w.x_mean, w.x_std, form.coef, strict=True)
    ]
    labels = [*[str(n) for n in w.feature_names], "(intercept)"]
    rows.append([None, None, float(form.intercept)])
    for name, coefficient in zip(w.conf_names, form.conf_coef, strict=True):
        labels.append(f"confound {name}")
        rows.append([None, None, float(coefficient)])
    return build.matrix(
        "folded_weights",
        "folded_weights",
        f"{title}: one weight a feature and an intercept",
        labels,
        [("centre", ""), ("scale", ""), ("weight", "years")],
        rows,
        about=context,
    )


def _candidate(session: SessionCore, source: _Source, document: OutputDocument) -> Candidate:
    kind = document.type
    public = source.n_basis is not None and kind in ("pca_components", "x_mean", "x_std")
    statement = source.statement
    if statement is not None and kind in statement["outside_budget"]:
        statement = None  # an exact number beside noised ones: judged as such
    noise: dict[str, FactValue] = (
        not_noised() if statement is None else noised(statement, sensitivity=1.0, post_processing=True)
    )
    if kind == "noised_moments":
        noise["moments.on_grid"] = True
    n = source.n if source.n_basis is None or not public else source.n_basis
    jn = int(source.weights.n_components)
    least = int(session.ruleset.parameters["min_residual_dof"])
    facts = {
        **source.facts,
        **computed(
            n=int(n),
            shape__length=sum(len(row) - 1 for row in document.rows),
            residual_dof=max(int(source.n) - jn, 0),
            acro__regression_check=dof_check(int(source.n) - jn, least),
        ),
    }
    facts |= computed(evidence__attack_report=reported(session, source.weights))
    secret = _n_is_secret(source)
    if secret:
        facts |= computed(n_node=int(source.n))
    if public:  # constants of a public file: nobody in this cohort contributes to them
        facts |= computed(largest_share=0.0, idp__largest_share=0.0, n__origin="public_bound")
    if len(document.rows) == 1 and isinstance(document.rows[0][1], int | float):
        facts |= computed(value=document.rows[0][1])
    built = build_facts(session, document, facts, noise=noise, receipt=source.receipt)
    # Differences with earlier releases are asked of exact sets of people: not where N itself is protected.
    return Candidate(document, built, privacy=statement, receipt=source.receipt, n=None if secret else int(n))


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Nested public settings as one level, for `about`."""
    out: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            out |= {f"{key}.{k}": v for k, v in value.items()}
        elif isinstance(value, list | tuple):
            out[key] = " ".join(str(v) for v in value)
        else:
            out[key] = value
    return out
