"""The main job in one go: read, train, judge, write. Used by `sacro-deltab run` and `demo`."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError, RefusedError, SacroDeltabError
from ..model.filling import (
    DEFAULT_COMPONENTS,
    FOLDS,
    cross_validated_ages,
    fit_deltas,
    fitted_deltas,
    given_deltas,
    public_constants,
)
from ..session.ready import refuse_beyond

if TYPE_CHECKING:
    from ..cohort import Cohort, Repair
    from ..cohort.people import Fill
    from ..session.acro_session import DeltabSession

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """Everything `run` was asked for. Paths as given; `by` names columns, `site*sex` crosses two."""

    out: Path
    ages: Path | None = None
    features: Path | None = None
    deltas: Path | None = None  # made elsewhere: a column `delta` a person
    confounds: Path | None = None
    groups: Path | None = None
    by: tuple[str, ...] = ()
    age_bands: tuple[float, ...] = ()
    id_column: str | None = None
    age_column: str = "age"
    ignore: tuple[str, ...] = ()
    rows_per_person: int | None = None
    basis: Path | None = None
    bounds: Path | None = None
    epsilon: float | None = None
    delta_dp: float | None = None
    n_components: int | None = None
    feature_nans: str | None = None
    components: Mapping[str, Any] = field(default_factory=dict)  # other choices of J, read off the raw data
    adjacency: str = "zero_out_N_public"
    method: str = "auto"
    recipe: str = "private"  # or "documents": the governing documents' own, without a guarantee
    model: str = "unbiased_quadratic"
    epsilon_mean: float | None = None
    plots: bool = False
    moments: bool = False
    rules: str | None = None
    profile: str | None = None
    declare: Path | None = None
    attest: Path | None = None
    ledger: str = "budget.db"
    trust: Path | None = None
    cohort: str = "cohort"
    spend_anyway: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a run left: the finalised session, the folder, the checker's report on it, and what was impossible."""

    session: DeltabSession
    folder: Path
    report: Any
    impossible: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """That of `check`."""
        return int(self.report.exit_code)


def run(plan: Plan, say: Say) -> Outcome:
    """Do the whole job. On any error nothing is left at `plan.out`.

    Raises
    ------
    SacroDeltabError
        With exit code 1 or 2; the budget spent until then stays spent.
    """
    if plan.out.exists() or plan.out.is_symlink():
        raise InputError("the output folder exists", path=plan.out, next_step="Choose another name with --out.")
    if not plan.out.absolute().parent.is_dir():
        raise InputError("there is no such place", path=plan.out.absolute().parent, next_step="Make it first.")
    say("reading the cohort")
    cohort = read(plan)
    return run_cohort(plan, cohort, say)


def read(plan: Plan) -> Cohort:
    """The cohort of a plan; group columns are taken from the groups file, else from the features file."""
    from ..cohort import read_cohort

    columns = tuple(dict.fromkeys(part for name in plan.by for part in _parts(name)))
    return read_cohort(
        plan.ages,
        plan.features if plan.deltas is None else plan.deltas,
        plan.confounds,
        plan.groups,
        id_column=plan.id_column,
        age_column=plan.age_column,
        group_columns=columns or None,
        ignore_columns=plan.ignore,
        rows_per_person=plan.rows_per_person,
    )


def run_cohort(plan: Plan, cohort: Cohort, say: Say) -> Outcome:
    """The job on a cohort already read."""
    from ..check import check_paths

    with _working_folder(plan.out) as journal:
        session, impossible = judged(plan, cohort, journal, say)
        if not session.entries:
            raise RefusedError(
                f"there is nothing that could be asked to leave: {'; '.join(impossible)}",
                next_step="Ask for something else, or see `run --dry-run`.",
            )
        say("writing the folder")
        session.not_checked += [text for text in impossible if text not in session.not_checked]
        folder = session.finalise(plan.out)
        say("checking the folder as a checker would")
        report = check_paths(
            [folder],
            ruleset=session.ruleset,
            trust=plan.trust,
            ledger=plan.ledger if session.budget.pinned else None,
        )
        return Outcome(session, folder, report, tuple(impossible))


def judged(plan: Plan, cohort: Cohort, journal: Path, say: Say) -> tuple[DeltabSession, list[str]]:
    """A session with everything that the plan asks for judged, and what was impossible."""
    session = _session(plan, cohort, journal, say)
    return session, list(_release_all(session, plan, cohort, say))


def _session(plan: Plan, cohort: Cohort, journal: Path, say: Say) -> DeltabSession:
    from ..session.acro_session import DeltabSession

    say("starting ACRO")
    session = DeltabSession(
        quiet_acro(),
        cohort=plan.cohort,
        rules=plan.rules,
        profile=plan.profile,
        ledger=plan.ledger,
        trust=plan.trust,
        declare=plan.declare,
        attest=plan.attest,
        people=cohort.person_ids,
        ages=cohort.age,
        journal=journal,
    )
    session.not_checked += list(cohort.declared)
    _note(session, cohort.repairs)
    return session


def _note(session: DeltabSession, repairs: Iterable[Repair]) -> None:
    """Repairs of the input with their counts, for the evidence: none is silent, no count leaves."""
    session.repairs += [{"kind": r.kind, "text": r.text, "count": r.count} for r in repairs]


def quiet_acro() -> Any:
    """A live ACRO without its log of risk tables on the terminal."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        import acro

        logging.getLogger("acro").setLevel(logging.WARNING)
        for name in ("records", "tables", "regression", "summary"):
            logging.getLogger(f"acro:{name}").setLevel(logging.WARNING)
        return acro.ACRO()


def _release_all(session: DeltabSession, plan: Plan, cohort: Cohort, say: Say) -> Iterator[str]:
    """Release everything the plan allows; yields what was impossible, with the way out."""
    model: Any = None
    if plan.deltas is not None:
        deltas, predicted = given_deltas(cohort, plan.deltas)
        session.release_n()
        yield "deltas were made elsewhere: whose model gave them is somebody's word, and no weights are asked for"
        if predicted is not None:
            validated = "people of this cohort; how the model was made is declared"
            session.release_prediction_error(predicted, cohort.age, validated=validated)
        yield from _statistics(session, plan, cohort, deltas, None, say)
        return
    if plan.epsilon is None:
        yield "no private weights: no ε was given (--epsilon); weights leave only with noise"
    elif plan.recipe == "documents":
        say("the documents' recipe: the budget is spent before any noise is drawn")
        size = DEFAULT_COMPONENTS if plan.n_components is None else plan.n_components
        model = session.train_documents(
            cohort.features_frame(), cohort.age, epsilon=plan.epsilon, delta_dp=plan.delta_dp, n_components=size
        )
        yield f"no guarantee: {model.statement.reason}"
    elif plan.basis is None and plan.bounds is None:
        yield (
            "no private weights: neither --basis nor --bounds was given, and without a public centre and scale of the "
            "features nothing may be chosen from the raw data"
        )
    else:
        refuse_beyond(session, (plan.epsilon, plan.epsilon_mean))
        say("private training: the budget is spent before any noise is drawn")
        model = yield from _train(session, plan, cohort, say)
    if model is not None:
        session.release_weights(model)
        if plan.moments and model.noisy_moments is not None:
            session.release_moments(model)
        confounds = _confounds(cohort)
        deltas = session.deltas(model, cohort.features_frame(), cohort.age, confounds, kind=plan.model)
    else:
        say("fitting the model (it stays inside)")
        if session.budget.n_is_secret():
            yield "no N: an earlier release on these people was paid for under add_remove, which protects it"
        else:
            session.release_n()
        choice = {"n_components": plan.n_components, **plan.components}
        fill: Fill = "drop" if plan.feature_nans == "remove" else "median"
        deltas, repairs = fitted_deltas(cohort, choice, plan.model, fill)
        _note(session, repairs)
        yield (
            "deltas come from a model without noise, fitted to these people: only statistics of them are asked for, "
            "and their mean is 0 by construction; the error of the model is that of a 10-fold cross-validation"
        )
        if not session.budget.n_is_secret():
            predicted = cross_validated_ages(cohort, choice, fill)
            if predicted is not None:
                session.release_prediction_error(predicted, cohort.age, validated=f"{FOLDS}-fold cross-validation")
    yield from _statistics(session, plan, cohort, deltas, model, say)


def _statistics(session: DeltabSession, plan: Plan, cohort: Cohort, deltas: Any, model: Any, say: Say) -> Iterator[str]:
    say("judging tables and statistics")
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


def _tables(session: DeltabSession, plan: Plan, cohort: Cohort, deltas: Any) -> Iterator[str]:
    from ..measure.grouping import AgeBands

    if cohort.groups is None:
        yield "no tables by group: no groups were given (--groups, --by)"
        names: Sequence[str] = ()
    else:
        names = plan.by or tuple(str(c) for c in cohort.groups.columns)
    made = []
    for name in names:
        assert cohort.groups is not None
        columns = [cohort.groups[part] for part in _parts(name)]
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


def _train(session: DeltabSession, plan: Plan, cohort: Cohort, say: Say) -> Generator[str, None, Any]:
    from ..privacy import PublicBounds
    from ..privacy.basis import Basis
    from ..session.attacking import attack_training

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
    confounds = _confounds(cohort)
    model = session.train_private(
        frame,
        cohort.age,
        confounds=confounds,
        bounds=bounds,
        basis=basis,
        epsilon=float(plan.epsilon or 0.0),
        delta_dp=plan.delta_dp,
        adjacency=plan.adjacency,
        n_components=plan.n_components,
        method=plan.method,
        spend_anyway=plan.spend_anyway,
        membership_test=False,  # made below, with its progress told
    )
    public = basis if basis is not None else bounds
    _note(session, public_constants(model.statement.bounds, public, frame.to_numpy(dtype=np.float64), cohort.age))
    if plan.components or plan.feature_nans is not None:
        yield (
            "--feature-nans, --feature-proportion, --feature-var and --kaiser-guttmann choose from the raw data: the "
            "private training did not use them (missing values became the public centre, J was fixed beforehand)"
        )
    missing_test = attack_training(session, model, frame, cohort.age, confounds, basis=basis, bounds=bounds, say=say)
    if missing_test is not None:
        yield missing_test
    return model


def _confounds(cohort: Cohort) -> Any:
    if cohort.confounds is None:
        return None
    import pandas as pd

    return pd.DataFrame(cohort.confounds, columns=list(cohort.confound_names))


def _parts(name: str) -> list[str]:
    return [part.strip() for part in name.split("*") if part.strip()]


@contextlib.contextmanager
def _working_folder(out: Path) -> Iterator[Path]:
    """A private working folder beside the output, gone afterwards; a killed run leaves it for `resume`."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".session", dir=out.absolute().parent))
    except OSError as error:
        raise InputError(f"cannot write here ({error.strerror})", path=out.absolute().parent) from error
    import shutil

    try:
        yield folder
    except OSError as error:
        raise InputError(
            f"the run could not be written ({error.strerror or type(error).__name__})",
            path=out,
            next_step="Free some space and run again; what was spent stays spent.",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def account(outcome: Outcome) -> list[str]:
    """The run in words: what meets the rules, what a person must decide, what stays inside, and what was impossible."""
    return [*heading(outcome.session), f"Folder: {outcome.folder}", *told(outcome.session, outcome.impossible)]


def heading(session: DeltabSession) -> list[str]:
    """Which rules judged."""
    rule_set = session.ruleset
    return [f"Rules: {rule_set.id} {rule_set.version}, sha256 {rule_set.sha256[:16]}…"]


def told(session: DeltabSession, impossible: Sequence[str]) -> list[str]:
    """What was judged how, what it waits for, and what was impossible."""
    lines: list[str] = []
    words = {
        "pass": "MEETS THE RULES (a person still releases it)",
        "review": "A PERSON MUST DECIDE",
        "fail": "STAYS INSIDE",
    }
    for status, heading in words.items():
        mine = [e for e in session.entries if e.status == status]
        if not mine:
            continue
        lines += ["", f"{heading}: {len(mine)}"]
        for entry in mine:
            marked = f", {len(entry.suppressed)} marked *" if entry.suppressed and not entry.kept_inside else ""
            lines.append(f"  {entry.name}: {entry.title}{marked}")
            lines += [f"      {reason}" for reason in entry.reasons[:3]]
            lines += [f"      to get it out: {merge}" for merge in entry.merges[:2]]
    totals = session.budget.totals_json()
    most = session.ruleset.parameters["epsilon_total"]
    lines += ["", f"Privacy budget {session.budget.url}: ε {totals['epsilon_sum']:g} of {most} spent"]
    if not session.budget.pinned:
        lines.append("  The TRE has not pinned this ledger: nothing counts as formal, and a person reviews everything.")
    if session.repairs:
        lines += ["", "Repairs of the input (counted in inside/evidence.json):"]
        lines += [f"  {text}" for text in dict.fromkeys(r["text"] for r in session.repairs)]
    lines += _missing(session)
    if impossible:
        lines += ["", "Not done:", *(f"  {text}" for text in impossible)]
    return lines


def _missing(session: DeltabSession) -> list[str]:
    """Facts that somebody still has to supply, by who may say them."""
    ways = {"declared": "--declare FILE", "attested": "--attest FILE or a site profile", "ledger": "the ledger"}
    wanted: dict[str, list[str]] = {}
    for entry in session.entries:
        for name in entry.decision["missing"]:
            wanted.setdefault(session.ruleset.facts[name].by, []).append(name)
    lines = [
        f"  {who} ({ways[who]}): {', '.join(dict.fromkeys(names))}" for who, names in wanted.items() if who in ways
    ]
    return ["", "Facts that nobody supplied, and that a rule needs:", *lines] if lines else []


__all__ = ["Outcome", "Plan", "SacroDeltabError", "account", "fit_deltas", "quiet_acro", "read", "run", "run_cohort"]
