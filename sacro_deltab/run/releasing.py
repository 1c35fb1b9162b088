"""Everything a plan asks for, released into a session one after the other; what is impossible is said."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError, RefusedError
from ..cohort import Cohort, Repair
from ..cohort.people import Fill
from ..kinds.calibration import CALIBRATION
from ..kinds.prediction_error import ERRORS
from ..measure.grouping import AgeBands
from ..model.filling import (
    DEFAULT_COMPONENTS,
    fitted_deltas,
    given_deltas,
    public_constants,
)
from ..model.validation import IN_SAMPLE
from ..privacy import PublicBounds
from ..privacy.basis import Basis
from ..session.attacking import attack_training
from ..session.part import Where, part_of
from ..session.ready import refuse_beyond
from ..session.values import know_source
from .plan import BY_GROUP, Plan, Say, epsilons, parts_of

if TYPE_CHECKING:
    from ..session.acro_session import DeltabSession


def release_all(session: DeltabSession, plan: Plan, cohort: Cohort, say: Say) -> Iterator[str]:
    """Release everything the plan allows; yields what was impossible, with the way out."""
    model: Any = None
    if plan.deltas is not None:
        deltas, predicted = given_deltas(cohort, plan.deltas)
        session.release_n()
        yield "deltas were made elsewhere: whose model gave them is somebody's word, and no weights are asked for"
        if predicted is not None:
            validated = "people of this cohort; how the model was made is declared"
            yield from _errors(session, plan, predicted, cohort.age, validated)
        yield from _statistics(session, plan, cohort, deltas, None, say)
        return
    if plan.epsilon is None:
        yield "no private weights: no ε was given (--epsilon); weights leave only with noise"
    elif plan.recipe != "private":
        say("the documents' recipe: the budget is spent before any noise is drawn")
        size = DEFAULT_COMPONENTS if plan.n_components is None else plan.n_components
        model = session.train_documents(
            cohort.features_frame(), cohort.age, epsilon=plan.epsilon, delta_dp=plan.delta_dp, n_components=size,
            pca="exact" if plan.recipe == "documents" else "diffprivlib",
        )  # fmt: skip
        yield f"no guarantee: {model.statement.reason}"
    elif plan.basis is None and plan.bounds is None:
        yield (
            "no private weights: neither --basis nor --bounds was given, and without a public centre and scale of the "
            "features nothing may be chosen from the raw data"
        )
    else:
        refuse_beyond(session, epsilons(plan))
        say("private training: the budget is spent before any noise is drawn")
        model = yield from train(session, plan, cohort, say)
    if model is not None:
        yield from _after_the_spend(_of_model(session, plan, cohort, model, say))
        return
    say("fitting the model (it stays inside)")
    if session.budget.n_is_secret():
        yield "no N: an earlier release on these people was paid for under add_remove, which protects it"
    else:
        session.release_n()
    choice = {"n_components": plan.n_components, **plan.components}
    fill: Fill = "drop" if plan.feature_nans == "remove" else "median"
    where = where_of(plan, cohort)
    rows = None if where is None else part_of(session, where).rows
    fitted = fitted_deltas(cohort, choice, plan.model, fill, in_sample=plan.in_sample, train=rows,
                           share=float(session.parameters["features_share"]))  # fmt: skip
    know_source(session, fitted.deltas, cohort.feature_names, cohort.X, cohort.age)
    note_repairs(session, fitted.repairs)
    made_as = {"validated": fitted.validated, "model": plan.model, "n_components": fitted.n_components}
    session.remember_origin(fitted.deltas, "unprotected", made_as={k: v for k, v in made_as.items() if v is not None})
    by_construction = ", and their mean is 0 by construction" if fitted.validated == IN_SAMPLE else ""
    yield (
        f"deltas come from a model without noise, fitted to these people ({fitted.validated}): only statistics of them "
        f"are asked for{by_construction}"
    )
    if not session.budget.n_is_secret():
        yield from _errors(session, plan, fitted.predicted, cohort.age, fitted.validated, where)
    yield from _statistics(session, plan, cohort, fitted.deltas, None, say)


def _errors(
    session: DeltabSession, plan: Plan, predicted: Any, ages: Any, validated: str, where: Where = None
) -> Iterator[str]:
    """How well ages are predicted: errors, and calibration in bands of age."""
    for kind in (ERRORS, CALIBRATION):
        try:
            entry, *_ = session.release(kind, predicted, ages, validated=validated, where=where)
        except (InputError, RefusedError) as error:
            yield f"no {kind.replace('_', ' ')}: {error.what}"
            continue
        if plan.plots and kind == CALIBRATION and entry.document is not None:
            session.release_plot(entry)


def _of_model(session: DeltabSession, plan: Plan, cohort: Cohort, model: Any, say: Say) -> Iterator[str]:
    """Everything that is asked of a private model."""
    session.release_weights(model)
    if plan.moments and model.noisy_moments is not None:
        session.release_moments(model)
    deltas = session.deltas(model, cohort.features_frame(), cohort.age, confounds_of(cohort), kind=plan.model)
    yield from _statistics(session, plan, cohort, deltas, model, say)


def _after_the_spend(steps: Iterator[str]) -> Iterator[str]:
    """ε is spent: what fails now is said as not done, and what came before it stands."""
    try:
        yield from steps
    except OSError:
        raise  # a full disk: the result is sealed, and the run is repeated with --resume
    except Exception as error:
        yield f"not done, all that was still asked for: {type(error).__name__}"


def _statistics(session: DeltabSession, plan: Plan, cohort: Cohort, deltas: Any, model: Any, say: Say) -> Iterator[str]:
    say("judging tables and statistics")
    if plan.noised:
        yield from _noised(session, plan, cohort, deltas, model)
        return
    if session.budget.n_is_secret():
        yield (
            "no exact statistics or tables: they rest on an exact N, which an add_remove model protects; use "
            "--adjacency zero_out_N_public on people without such a model, or --epsilon-mean for a noised mean"
        )
        if plan.epsilon_mean is not None:
            session.release_private_mean(deltas, epsilon=plan.epsilon_mean, model=model)
        return
    try:
        session.deltas_of(deltas)
    except RefusedError as error:
        yield f"no statistics of delta: {error.what}"
        return
    if plan.epsilon_mean is None:
        session.release_mean(deltas)
    else:
        session.release_private_mean(deltas, epsilon=plan.epsilon_mean, model=model)
    session.release_sd(deltas)
    session.release_quantiles(deltas)
    yield from _tables(session, plan, cohort, deltas)


def _noised(session: DeltabSession, plan: Plan, cohort: Cohort, deltas: Any, model: Any) -> Iterator[str]:
    """The statistics that `--noised` names, and nothing without noise beside them."""
    yield "no exact statistics or tables: --noised asks for noised ones, and exact ones would end what they guarantee"
    basis = None if plan.basis is None else Basis.load(plan.basis)
    for statistic, epsilon in plan.noised:
        if statistic == "features":
            frame = cohort.features_frame()[list(basis.feature_names)] if basis is not None else None
            session.release_private(statistic, features=frame, basis=basis, epsilon=epsilon)
        elif statistic not in BY_GROUP:
            session.release_private(statistic, deltas, epsilon=epsilon, model=model)
        else:
            values = deltas if statistic == "group_means" else None
            bands = [_public_bands(cohort, width, basis) for width in plan.age_bands]
            tables: list[tuple[Any, tuple[str, ...]]] = [(band, ()) for band in bands]
            if cohort.groups is not None:
                tables += [(cohort.groups[column], tuple(groups)) for column, *groups in plan.labels]
            for by, groups in tables:
                session.release_private(statistic, values, by=by, groups=groups, epsilon=epsilon, model=model)


def _public_bands(cohort: Cohort, width: float, basis: Basis | None) -> AgeBands:
    """Bands over the ages of the basis; the rule set's where there is none."""
    if basis is None:
        return AgeBands(cohort.age, width)
    first, last = math.floor(basis.age[0] / width), math.ceil(basis.age[1] / width)
    return AgeBands(cohort.age, edges=tuple(round(width * k, 1) for k in range(first, last + 1)))


def _tables(session: DeltabSession, plan: Plan, cohort: Cohort, deltas: Any) -> Iterator[str]:

    if cohort.groups is None:
        yield "no tables by group: no groups were given (--groups, --by)"
        names: Sequence[str] = ()
    else:
        names = plan.by or tuple(str(c) for c in cohort.groups.columns)
    made = []
    for name in names:
        assert cohort.groups is not None
        columns = [cohort.groups[part] for part in parts_of(name)]
        made.append(session.release_group_means(deltas, columns[0] if len(columns) == 1 else columns))
    for width in sorted(plan.age_bands, reverse=True):
        bands = AgeBands(cohort.age, width)
        made.append(
            session.release_group_means(deltas, bands, title=f"Mean delta by age band of {width:g} years",
                                        name=f"mean_delta_by_age_band_{width:g}")
        )  # fmt: skip
    if plan.plots:
        for entry in [session.find(table.name) for table in made]:  # as they stand beside one another
            if entry.document is not None:
                session.release_plot(entry)


def train(session: DeltabSession, plan: Plan, cohort: Cohort, say: Say) -> Generator[str, None, Any]:

    basis = None if plan.basis is None else Basis.load(plan.basis)
    bounds = None
    if plan.bounds is not None:
        bounds = PublicBounds.load(plan.bounds)
        if session.budget.ledger.bounds_registered(bounds.digest, before=session.cohort):
            bounds = bounds.with_provenance("registered_file")
    frame = cohort.features_frame()
    if basis is not None:
        missing = [n for n in basis.feature_names if n not in set(frame.columns)]
        if not missing and set(frame.columns) == set(basis.feature_names):
            frame = frame[list(basis.feature_names)]
    confounds, ages, where = confounds_of(cohort), cohort.age, where_of(plan, cohort)
    model = session.train_private(
        frame,
        ages,
        confounds=confounds,
        bounds=bounds,
        basis=basis,
        epsilon=float(plan.epsilon or 0.0),
        delta_dp=plan.delta_dp,
        adjacency=plan.adjacency,
        n_components=plan.n_components,
        method=plan.method,
        spend_anyway=plan.spend_anyway,
        where=where,
        membership_test=False,  # made below, with its progress told
    )
    if where is not None:
        part = part_of(session, where)
        frame, ages, confounds = part.only(frame), part.only(ages), part.only(confounds)
    public = basis if basis is not None else bounds
    note_repairs(session, public_constants(model.statement.bounds, public, frame.to_numpy(dtype=np.float64), ages))
    if plan.components or plan.feature_nans is not None:
        yield (
            "--feature-nans, --feature-proportion, --feature-var and --kaiser-guttmann choose from the raw data: the "
            "private training did not use them (missing values became the public centre, J was fixed beforehand)"
        )
    missing_test = attack_training(session, model, frame, ages, confounds, basis=basis, bounds=bounds, say=say)
    if missing_test is not None:
        yield missing_test
    return model


def where_of(plan: Plan, cohort: Cohort) -> Where:
    """The part that a plan trains on."""
    if not plan.train_where or cohort.groups is None:
        return None
    column, *labels = plan.train_where
    return cohort.groups[column], labels


def confounds_of(cohort: Cohort) -> Any:
    if cohort.confounds is None:
        return None
    import pandas as pd  # late: pandas is heavy

    return pd.DataFrame(cohort.confounds, columns=list(cohort.confound_names))


def note_repairs(session: DeltabSession, repairs: Iterable[Repair]) -> None:
    """Repairs of the input with their counts, for the evidence: none is silent, no count leaves."""
    session.repairs += [{"kind": r.kind, "text": r.text, "count": r.count} for r in repairs]
