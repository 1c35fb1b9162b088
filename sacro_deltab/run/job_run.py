"""A job at a node: everything that could make it refuse is looked at before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError, RefusedError
from ..cohort import Cohort, read_cohort
from ..federation.job import Job, check_basis, check_rule_set, load_job
from ..kinds.registry import KINDS
from ..measure.grouping import AgeBands
from ..outputs.parameters import MOMENTS
from ..privacy import PublicBounds
from ..privacy.basis import Basis
from ..rules import RuleSet
from ..rules.judging import judging_ruleset
from ..session.weights import ALL
from .pipeline import Outcome, carried_out
from .plan import Plan, Say, check_place
from .releasing import confounds_of, train

if TYPE_CHECKING:
    from ..session.acro_session import DeltabSession

_JOBS_OWN = (
    "by", "age_bands", "age_column", "ignore", "epsilon", "delta_dp", "n_components", "adjacency", "method", "model",
    "epsilon_mean", "noised", "labels", "plots", "moments", "declare",
)  # fmt: skip


def run_job(path: Path, plan: Plan, say: Say) -> Outcome:
    """Run a job on this node's files.

    Parameters
    ----------
    path
        The job file.
    plan
        What the node adds: files by role, out, ledger, trust, cohort id, profile, attestation, and the basis or bounds
        file whose digest the job names. Everything else comes from the job.

    Raises
    ------
    RefusedError, InputError
        With the reason; nothing was spent and nothing is left.
    """
    from ..certificate.law import committee  # late: brings sqlalchemy

    job = load_job(path)
    _refuse_conflicts(job, plan)
    check_place(plan)
    ruleset = judging_ruleset(plan.rules, profile=plan.profile, seals=committee(plan.trust))
    check_rule_set(job, ruleset)
    _check_public(job, plan)
    say("reading the cohort")
    cohort = _read(job, plan)
    _check_cohort(job, cohort, ruleset)
    _check_budget(job, plan, ruleset)
    done = replace(
        plan, age_column=job.age_column, epsilon=job.node_epsilon, delta_dp=job.delta_dp, adjacency=job.adjacency,
        n_components=job.n_components, method=job.method, model=job.delta_model, declare=job.said,  # type: ignore[arg-type]
    )  # fmt: skip
    return _run(job, done, cohort, say)


def _refuse_conflicts(job: Job, plan: Plan) -> None:
    """What the job fixes cannot be said again at a node."""
    blank = Plan(out=plan.out)
    said = [name for name in _JOBS_OWN if getattr(plan, name) != getattr(blank, name)]
    if said:
        raise InputError(f"job {job.id} fixes {said[0]!r}, and it was given again", path=job.path,
                         next_step="leave it out: the job is the same at every node.")  # fmt: skip


def _check_public(job: Job, plan: Plan) -> None:

    if job.basis_digest is not None:
        if plan.basis is None:
            raise InputError(f"job {job.id} uses a shared basis", place="--basis",
                             next_step="give the basis file that came with the job.")  # fmt: skip
        check_basis(job, Basis.load(plan.basis))
        return
    if plan.bounds is None:
        raise InputError(f"job {job.id} uses public bounds", place="--bounds",
                         next_step="give the bounds file that came with the job.")  # fmt: skip
    if PublicBounds.load(plan.bounds).digest != job.bounds_digest:
        raise RefusedError(f"these bounds are not those job {job.id} names: their digest differs", path=plan.bounds)


def _read(job: Job, plan: Plan) -> Cohort:

    if plan.ages is None or plan.features is None:
        raise InputError("the job needs this node's files", next_step="give --ages and --features.")
    groups = plan.groups if plan.groups is not None else (plan.features if job.groups else None)
    confounds = plan.confounds if plan.confounds is not None else (plan.features if job.confounds else None)
    try:
        return read_cohort(
            plan.ages,
            plan.features,
            confounds,
            groups,
            id_column=job.id_column if job.id_column is not None else plan.id_column,
            age_column=job.age_column,
            feature_columns=job.features,
            confound_columns=job.confounds or None,
            group_columns=job.groups or None,
            rows_per_person=plan.rows_per_person,
        )
    except InputError as error:
        raise type(error)(
            f"this node cannot honour job {job.id}: {error.what}",
            path=error.path,
            place=error.place,
            next_step=error.next_step,
            inside=error.inside,
        ) from error


def _check_cohort(job: Job, cohort: Cohort, ruleset: RuleSet) -> None:
    if tuple(cohort.feature_names) != job.features:
        lost = [n for n in job.features if n not in set(cohort.feature_names)]
        text = f"feature {lost[0]!r} is not here" if lost else "its features came in another order"
        raise RefusedError(f"this node cannot honour job {job.id}: {text}", path=job.path)
    people = int(cohort.age.size) if cohort.person_ids is None else len(set(cohort.person_ids))
    least = max(job.minimum_n, int(str(ruleset.parameters["n_min_dp"])))
    if people < least:
        raise RefusedError(
            f"this node cannot honour job {job.id}: it has fewer than the {least} people that are needed",
            path=job.path,
            inside=f"{people} people",
        )


def _check_budget(job: Job, plan: Plan, ruleset: RuleSet) -> None:
    from ..ledger import open_ledger  # late: brings sqlalchemy

    url = str(plan.ledger)
    name = url.removeprefix("sqlite:///")
    if "://" not in name and not Path(name).exists():
        return  # a fresh ledger holds the whole budget; the session makes it
    ledger = open_ledger(url, create=False, read_only=True)
    spent = float(ledger.totals(plan.cohort, unit="person").epsilon_sum)
    most = float(str(ruleset.parameters["epsilon_total"]))
    if spent + job.node_epsilon > most + 1e-9:
        raise RefusedError(
            f"this node cannot honour job {job.id}: its budget is spent (ε {spent:g} of {most:g}, the job needs "
            f"ε {job.node_epsilon:g})",
            path=job.path,
            next_step="nothing further may leave this partition.",
        )


def _run(job: Job, plan: Plan, cohort: Cohort, say: Say) -> Outcome:
    """As `run`, with exactly the outputs the job asks for."""

    def release(session: DeltabSession) -> Iterator[str]:
        session.not_checked.append(job.line)
        say("private training: the budget is spent before any noise is drawn")
        model = yield from train(session, plan, cohort, say)
        _release(job, plan, session, cohort, model)

    return carried_out(plan, cohort, say, release)


def _release(job: Job, plan: Plan, session: Any, cohort: Cohort, model: Any) -> None:

    weights = [name for name in job.outputs if name in ALL]
    if weights:
        session.release_weights(model, only=weights)
    if MOMENTS in job.outputs:
        session.release_moments(model)
    statistics = [name for name in job.outputs if KINDS[name].of_deltas]
    if not job.tables and not statistics:
        return
    deltas = session.deltas(model, cohort.features_frame(), cohort.age, confounds_of(cohort), kind=plan.model)
    for name in statistics:
        session.release(name, deltas)
    for table in job.tables:
        groups: Any
        if table.by == "age_band":
            groups = AgeBands(cohort.age, float(table.width or 0))
        else:
            assert cohort.groups is not None
            groups = cohort.groups[table.by]
        release = session.release_group_means if table.statistic == "mean" else session.release_group_sds
        release(deltas, groups)
