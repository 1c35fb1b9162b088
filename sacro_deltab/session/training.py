"""Private training inside a session: bounds, budget, and the facts the rules ask of the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError, PrivacyError
from ..cohort.sources import need_pandas
from ..measure.measure import computed, max_abs_z, training_facts
from ..measure.people import columns_of, numbers, plausible_ages
from ..privacy import Basis, PublicBounds, train_private
from ..privacy.heuristic import documents_recipe
from ..privacy.job import check_delta, contributing
from ..privacy.noisy_count import attempt_error, gaussian_allowance, refuse_hopeless
from ..privacy.plan.choosing import best_path
from ..privacy.spend import Receipt
from ..privacy.stored import model_json, model_of
from .paid_models import remembered
from .part import PartOfCohort
from .plausible import own_deltas
from .ready import refuse_in_vain
from .trained import Training

if TYPE_CHECKING:
    from .core import SessionCore

_ROWS = 256  # rows digested at once


def people_digest(matrix: Any, ages: Any, confounds: Any | None) -> bytes:
    """SHA-256 of the rows of a training; stays in memory."""

    extra = [] if confounds is None else [np.column_stack([numbers(column) for column in columns_of(confounds)])]
    blocks = (matrix, ages, *extra)
    if any(len(block) != len(ages) for block in blocks):
        return b""  # of no training
    digest = sha256()
    for start in range(0, len(ages), _ROWS):  # no second copy of the whole
        some = np.column_stack([block[start : start + _ROWS] for block in blocks])
        digest.update(np.ascontiguousarray(some, dtype=np.float64).tobytes())
    return digest.digest()


def matrix_of(X: Any) -> Any:
    """The columns of a table as one float64 matrix; an array of floats in one step, as `numbers` would."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        matrix = X.astype(np.float64)
        matrix[~np.isfinite(matrix)] = np.nan
        return matrix
    return np.column_stack([numbers(column) for column in columns_of(X)])


def ruleset_bounds(session: SessionCore) -> PublicBounds:
    """The rule set's public age range and feature clip."""

    p: Mapping[str, Any] = session.ruleset.parameters
    return PublicBounds(
        age=(float(p["age_min"]), float(p["age_max"])), feature_z=float(p["feature_z"]), provenance="ruleset"
    )


def train(
    session: SessionCore,
    X: Any,
    age: Any,
    *,
    confounds: Any | None,
    feature_names: Sequence[str] | None,
    bounds: Any | None,
    basis: Any | None,
    epsilon: float,
    delta_dp: float | None,
    adjacency: str,
    n_components: int | None,
    method: str,
    expected_n: int | None = None,
    spend_anyway: bool = False,
    part: PartOfCohort | None = None,
) -> Any:
    """See `SessionCore.train_private`."""

    _refuse_mixed_n(session, adjacency)
    names = names_of(X, feature_names)
    ages = plausible_ages(age)
    roster = session.state.roster(ages.size)
    if roster.n_people != ages.size and session.visits is None:
        raise InputError(
            "a person has several rows: one person's contribution would not be bounded",
            next_step="Say visit= at the session (each person's rows are averaged), or keep one row a person.",
        )
    session.state.set_ages(ages)
    matrix = matrix_of(X)
    public, share = ruleset_bounds(session), float(session.ruleset.parameters["features_share"])
    if bounds is None and basis is None:
        bounds = public
    receipts: list[Receipt] = []

    def before_spend(told: Mapping[str, Any]) -> None:
        _refuse_hopeless(session, told, expected_n)
        if not spend_anyway:
            refuse_in_vain(session, adjacency)

    _look_elsewhere(session, matrix, names)
    matrix, ages, confounds = one_row_each(session, part, matrix, ages, confounds)
    people = people_digest(matrix, ages, confounds)
    n_public = None if adjacency == "add_remove" else ages.size
    small = check_delta(delta_dp, n_public, expected_n)
    if method == "auto":
        method = _path(basis, n_public or expected_n, n_components, epsilon, small, adjacency)
    model = train_private(
        matrix,
        ages,
        confounds=confounds,
        feature_names=names,
        bounds=bounds,
        basis=basis,
        epsilon=epsilon,
        delta_dp=small,
        adjacency=adjacency,  # type: ignore[arg-type]
        n_components=n_components,
        method=method,  # type: ignore[arg-type]
        spend=session.orders.place(n_public, people, receipts),
        keep=session.orders.keep(receipts, model_json, model_of),
        registered=session.budget.registered,
        ruleset_bounds=public,
        people_registered=session.budget.people is not None and (part is None or part.known),
        before_spend=before_spend,
        count_people=share,
    )
    public_people = int(basis.n_people) if basis is not None and session.budget.registered(basis.digest) else None
    plain = own_deltas(matrix, ages, model.weights, session.ruleset.parameters) and _within(
        confounds, bounds, basis, float(session.ruleset.parameters["clips_allowed"])
    )
    origin = "shared_normative" if basis is not None else "node_specific"
    facts = training_facts(matrix, ages, origin=origin, max_z=_largest_z(model, matrix, ages, confounds, share))
    where = () if part is None else tuple(part.where)
    return remembered(
        session,
        model,
        receipts[-1],
        Training(
            facts, people, int(ages.size), where, public_people, plain, int(contributing(matrix, ages, share).sum())
        ),
    )


def _path(basis: Any | None, n: int | None, n_components: Any, epsilon: float, delta_dp: float, adjacency: str) -> str:
    """What a plan would choose; the trainer's own choice where there is nothing to simulate from."""
    if not isinstance(basis, Basis) or n is None:
        return "auto"
    size = basis.n_components if n_components is None else n_components
    if type(size) is not int or not 1 <= size <= basis.n_components or not isinstance(epsilon, int | float):
        return "auto"  # refused by the trainer, in its own words
    return best_path(basis, n, size, epsilon, delta_dp, adjacency)[0]


def one_row_each(session: SessionCore, part: PartOfCohort | None, X: Any, ages: Any, confounds: Any) -> tuple[Any, ...]:
    """Features, ages and confounds of the people who take part; several visits of a person are averaged."""
    roster = session.state.people
    if session.visits is None or roster is None or roster.codes.size == roster.n_people:
        return (X, ages, confounds) if part is None else tuple(map(part.only, (X, ages, confounds)))
    rows = None if part is None else part.rows
    extra: Any = None
    if confounds is not None:
        import pandas as pd  # late: pandas is heavy

        names = getattr(confounds, "columns", None)
        extra = roster.one_row_each(np.column_stack([numbers(c) for c in columns_of(confounds)]), rows)
        extra = extra if names is None else pd.DataFrame(extra, columns=names)
    return roster.one_row_each(X, rows), roster.one_row_each(ages, rows), extra


def train_documents(
    session: SessionCore,
    X: Any,
    age: Any,
    *,
    feature_names: Sequence[str] | None,
    n_components: int,
    epsilon: float,
    delta_dp: float | None,
    pca: str,
) -> Any:
    """See `SessionCore.train_documents`."""

    _refuse_mixed_n(session, "replace_one")
    ages, matrix = plausible_ages(age), matrix_of(X)
    roster = session.state.roster(ages.size)
    if roster.n_people != ages.size:
        raise InputError("a person has several rows", next_step="Keep one row a person before training.")
    session.state.set_ages(ages)
    receipts: list[Receipt] = []
    people = people_digest(matrix, ages, None)
    model = documents_recipe(
        matrix, ages, feature_names=names_of(X, feature_names), n_components=n_components, epsilon=epsilon,
        delta_dp=delta_dp, feature_bound=1.0, pca=pca,  # type: ignore[arg-type]
        spend=session.orders.place(roster.n_people, people, receipts),
        keep=session.orders.keep(receipts, model_json, model_of),
    )  # fmt: skip
    share = float(session.ruleset.parameters["features_share"])
    facts = computed(n__shown=int(contributing(matrix, ages, share).sum()))  # exact: this recipe claims nothing formal
    facts |= training_facts(matrix, ages, origin="node_specific", max_z=_largest_z(model, matrix, ages, None, share))
    return remembered(session, model, receipts[-1], Training(facts, people, roster.n_people))


def _look_elsewhere(session: SessionCore, matrix: Any, names: Sequence[str]) -> None:
    """People of other cohorts of the register under these ids share one budget: found before anything is spent."""
    known, ids = session.budget.people, session.state.ids
    columns = dict(zip(names, matrix.T, strict=True))
    roster = session.state.people
    if ids is None or roster is None:
        return
    if known is None or any(known.source(roster.mean_by_person(values)) is None for values in columns.values()):
        session.budget.look_elsewhere(ids, columns)


def _refuse_hopeless(session: SessionCore, told: Mapping[str, Any], expected_n: int | None) -> None:
    """Refuse a training whose noised N could not show the minimum at the N that is expected; public numbers only."""
    sd = told["noise_sd"].get("n")
    if sd is None or expected_n is None:
        return
    attempt = session.budget.releases() + 1
    allowance = gaussian_allowance(sd, attempt_error(float(session.ruleset.parameters["noisy_n_error"]), attempt))
    refuse_hopeless(expected_n, int(session.ruleset.parameters["n_min_dp"]), allowance)


def _refuse_mixed_n(session: SessionCore, adjacency: str) -> None:
    """N is public to every release on these people or to none: refused before anything is spent."""
    if adjacency != "add_remove":
        if session.budget.n_is_secret():
            raise PrivacyError(
                "an earlier release on these people was paid for under add_remove, which protects N; this training "
                "would use N as public",
                next_step="Train with adjacency='add_remove'.",
            )
        return
    public = "Train with adjacency='zero_out_N_public'."
    for entry in session.entries:
        if entry.rests_on_exact_n:
            raise PrivacyError(
                f"{entry.name} of this session rests on the exact N, which add_remove protects",
                next_step=f"Take it back first with session.drop({entry.name!r}). Or: {public}",
            )
    used = session.budget.exact_n_used()
    if used is not None:
        raise PrivacyError(f"the exact N, which add_remove protects, is out: {used}", next_step=public)


def _within(confounds: Any | None, bounds: Any | None, basis: Any | None, clips: float) -> bool:
    """Whether every confound lies near its public bounds."""
    if confounds is None:
        return True
    pairs = getattr(bounds, "confound_bounds", None)
    if pairs is None and basis is not None:
        names = [str(name) for name in getattr(confounds, "columns", ())]
        pairs = [basis.confounds.get(name) for name in names]
    columns = [numbers(column) for column in columns_of(confounds)]
    if not pairs or len(pairs) != len(columns) or any(pair is None for pair in pairs):
        return False
    return all(
        bool((np.abs(c[np.isfinite(c)] - (low + high) / 2) <= clips * (high - low) / 2).all())
        for c, (low, high) in zip(columns, pairs, strict=True)
    )


def _largest_z(model: Any, matrix: Any, ages: Any, confounds: Any, share: float) -> float | None:
    """Largest standardised delta of the training people under the private weights (a query; stays inside)."""
    weights = model.weights
    filled = np.where(np.isfinite(matrix), matrix, weights.x_mean)
    whole = contributing(matrix, ages, share)
    conf = None
    if weights.conf_beta is not None and confounds is not None:
        conf = np.column_stack([np.nan_to_num(numbers(column)) for column in columns_of(confounds)])[whole]
    deltas = weights.delta(filled[whole], ages[whole], conf, model="simple")
    return max_abs_z(deltas)


def names_of(X: Any, feature_names: Sequence[str] | None) -> list[str]:
    need_pandas(X, "features")
    columns = getattr(X, "columns", None)
    if feature_names is not None:
        names = [str(n) for n in feature_names]
        if columns is not None and [str(c) for c in columns] != names:
            raise InputError("feature_names and the columns of X differ", next_step="Leave feature_names out.")
        return names
    if columns is None:
        raise InputError("the features have no names", next_step="Pass a DataFrame, or feature_names=.")
    return [str(c) for c in columns]
