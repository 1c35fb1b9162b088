"""A mean delta with Laplace noise: integers, exact sampler, spend committed first."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from ..kinds.documents import safe_name, scalar
from ..kinds.whole import DELTA_MEAN
from ..measure.measure import computed, summary_facts
from ..measure.people import rows_of
from ..privacy import laplace_scale
from ..privacy.noisy_count import attempt_error, laplace_allowance, least
from ..privacy.spend import Adjacency, Receipt
from ..privacy.statistics import COUNT_SHARE, ModelSource, release_mean
from ..privacy.stored import statistic_json, statistic_of
from .common import ROWS_ARE_PEOPLE, build_facts, noised
from .entries import Candidate
from .paid_models import trained_here

if TYPE_CHECKING:
    from .core import SessionCore

_SOURCES: dict[str, ModelSource] = {
    "formal_release": "formally_released",
    "fixed_beforehand": "fixed_beforehand",
    "unprotected": "other",
}


def private_mean_candidate(
    session: SessionCore,
    values: Any,
    epsilon: float,
    bound_years: float | None,
    model: Any | None,
    title: str,
    name: str | None,
) -> Candidate:
    """Mean over the roster (a missing value counts as 0, a null record), each value clipped to ±bound.

    Relation `zero_out_N_public`: one person moves the sum by at most the bound, so the mean by bound/N. Beside a model
    trained under `add_remove`, here or in an earlier session, the same relation holds: sum and N are noised, and the
    facts use that model's noisy N, or this release's own. The noise is drawn by `privacy.statistics.release_mean`.
    """

    leaving = (e for e in session.entries if e.type == DELTA_MEAN and not e.kept_inside)
    exact = next((e for e in leaving if e.privacy is None), None)
    if exact is not None:
        raise InputError(
            f"{exact.name} of this session is the exact mean: a noised one beside it would be paid for and buy nothing",
            next_step=f"Take it back first with session.drop({exact.name!r}).",
        )
    people = session.state.roster(rows_of(values)).mean_by_person(values)
    noisy = next((t.n_least for t in session.models.values() if t.n_is_secret), None)
    secret = noisy is not None or session.budget.n_is_secret()
    n_public = None if secret else int(people.size)
    own = float(session.ruleset.parameters["delta_bound_years"])
    try:
        bound = own if bound_years is None else float(bound_years)
    except (TypeError, ValueError):
        bound = math.nan
    if not (math.isfinite(bound) and bound > 0):
        raise InputError("the clip must be above 0 years", next_step="Leave bound_years out for the rule set's own.")
    adjacency: Adjacency = "add_remove" if secret else "zero_out_N_public"
    scale = laplace_scale(-bound, bound, n_public, epsilon, adjacency)
    drawn_at = float(scale) / (1 - COUNT_SHARE) if secret else float(scale)
    origin = str(session.model_origin(values)["model.origin"].value)
    if model is not None and origin == "formal_release" and not _formal(session, model):
        origin = "unprotected"
    name = safe_name(name or "delta_mean_private")
    receipts: list[Receipt] = []
    released = release_mean(
        people, epsilon=epsilon, spend=session.orders.place(n_public, sha256(people.tobytes()).digest(), receipts),
        keep=session.orders.keep(receipts, statistic_json, statistic_of), lower=-bound, upper=bound,
        adjacency=adjacency, model_source=_SOURCES[origin], outputs=(name,),
        bounds_provenance="ruleset" if bound == own else "unregistered",
        people_registered=session.budget.people is not None,
    )  # fmt: skip
    own_n = None if released.n_noisy is None else _least_n(session, released.n_noisy, epsilon, receipts[-1])
    n = next(int(known) for known in (n_public, noisy, own_n) if known is not None)
    statement, value = released.statement.to_json(), float(released.value[0])
    statement["bounds"]["bound_years"] = bound
    if session.state.ids is None:
        statement["not_covered"].insert(0, ROWS_ARE_PEOPLE)
    said = {"privacy": statement["label"], "mechanism": "discrete_laplace", "noise_scale_years": drawn_at}
    if session.state.ids is None:
        said["unit"] = ROWS_ARE_PEOPLE
    document = scalar(
        DELTA_MEAN, name, title, "mean delta with noise", value, unit="years", about=session.about(**said)
    )
    noise_facts = noised(statement, sensitivity=float(scale.sensitivity), post_processing=False)
    noise_facts.pop("dp.sigma", None)
    noise_facts |= {
        "dp.mechanism": "discrete_laplace",
        "dp.scale": drawn_at,
        "dp.value_range": 2 * bound,
        "dp.value_max_abs": bound,
    }
    facts = summary_facts(people, session.ruleset.parameters) | computed(n=n, value=value, model__origin=origin)
    if secret:
        facts |= computed(n_node=n)
    built = build_facts(session, document, facts, noise=noise_facts, receipt=receipts[-1])
    # Noise covers what the difference from an earlier release tells; an exact N would be asked of it otherwise.
    return Candidate(document, built, privacy=statement, receipt=receipts[-1], n=None)


def _least_n(session: SessionCore, noisy: float, epsilon: float, receipt: Receipt) -> int:
    """Lower confidence limit of the count that a mean under `add_remove` noises itself."""

    error = attempt_error(float(session.ruleset.parameters["noisy_n_error"]), receipt.after.releases)
    return least(noisy, laplace_allowance(1 / (epsilon * COUNT_SHARE), error))


def _formal(session: SessionCore, model: Any | None) -> bool:

    trained = trained_here(session, model) if model is not None else None
    return trained is not None and trained.formal
