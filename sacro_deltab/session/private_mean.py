"""A mean delta with Laplace noise: integers, exact sampler, spend committed first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..facts.measure import computed, summary_facts
from ..outputs import build
from ..privacy.spend import Receipt, SpendRequest
from .common import about, build_facts, noised
from .entries import Candidate

if TYPE_CHECKING:
    from ..acro_session import DeltabSession

GRID = 2.0**-20  # years: values are rounded to this public grid before they are summed


def private_mean_candidate(
    session: DeltabSession,
    values: Any,
    epsilon: float,
    bound_years: float | None,
    model: Any | None,
    title: str,
    name: str | None,
) -> Candidate:
    """Mean over the roster (a missing value counts as 0, a null record), each value clipped to ±bound.

    Relation `zero_out_N_public`: one person moves the sum by at most the bound, so the mean by bound/N. The noise is
    discrete Laplace on the integer grid of the sum, b = bound/ε in years.
    """
    from ..privacy import laplace_scale, sampler

    people = session.state.roster(len(values)).mean_by_person(values)
    n = people.size
    bound = float(session.ruleset.parameters["delta_bound_years"]) if bound_years is None else float(bound_years)
    if not (math.isfinite(bound) and bound > 0):
        raise InputError("the clip must be above 0 years", next_step="Leave bound_years out for the rule set's own.")
    adjacency = "zero_out_N_public"
    scale = laplace_scale(-bound, bound, n, epsilon, adjacency)
    origin = str(session.model_origin(values)["model.origin"].value)
    if model is not None and origin == "formal_release" and not _formal(session, model):
        origin = "unprotected"
    public = bound_years is None or bound == float(session.ruleset.parameters["delta_bound_years"])
    formal = public and origin in ("formal_release", "fixed_beforehand")
    request = SpendRequest(
        mechanism="discrete_laplace",
        epsilon=float(epsilon),
        delta_dp=0.0,
        mu=None,
        sigma=None,
        adjacency="zero_out_N_public",
        unit="person",
        outputs=(build.safe_name(name or "delta_mean_private"),),
        kind="statistic",
        label="formal" if formal else "heuristic",
        n_public=int(n),
        detail={"bound_years": bound},
    )
    receipts: list[Receipt] = []
    session.budget.spender(n, receipts)(request)
    receipt = receipts[-1]
    session.journal.write("spend", {"entry": receipt.entry, "epsilon": float(epsilon)})
    limit = int(bound / GRID)
    steps = np.clip(np.rint(np.nan_to_num(people) / GRID), -limit, limit).astype(np.int64)
    noise = int(sampler.discrete_laplace(limit / float(epsilon), 1)[0])
    value = (int(steps.sum()) + noise) * GRID / n
    statement = _statement(request, receipt, formal and receipt.pinned, bound, float(scale), public)
    document = build.scalar(
        "delta_mean",
        request.outputs[0],
        title,
        "mean delta with noise",
        value,
        unit="years",
        about=about(session, privacy=statement["label"], mechanism="discrete_laplace", noise_scale_years=float(scale)),
    )
    noise_facts = noised(statement, sensitivity=float(scale.sensitivity), post_processing=False)
    noise_facts.pop("dp.sigma", None)
    noise_facts |= {"dp.scale": float(scale), "dp.value_range": 2 * bound, "dp.value_max_abs": bound}
    facts = summary_facts(people, session.ruleset.parameters) | computed(n=int(n), value=value, model__origin=origin)
    built = build_facts(session, document, facts, noise=noise_facts, receipt=receipt)
    return Candidate(document, built, privacy=statement, receipt=receipt, n=int(n))


def _formal(session: DeltabSession, model: Any | None) -> bool:
    trained = session.models.get(id(model)) if model is not None else None
    return trained is not None and trained.model.statement.label == "formal"


def _statement(
    request: SpendRequest, receipt: Receipt, formal: bool, bound: float, scale: float, public: bool
) -> dict[str, Any]:
    if formal:
        reason = "values are clipped to the rule set's public bound and the model was formally released"
    elif not receipt.pinned:
        reason = "the ledger that holds the spend is not one the TRE has pinned"
    elif not public:
        reason = "the clip is not the rule set's own"
    else:
        reason = "the model behind the deltas was neither fixed beforehand nor formally released"
    return {
        "label": "formal" if formal else "heuristic",
        "reason": reason,
        "mechanism": request.mechanism,
        "epsilon": request.epsilon,
        "delta_dp": 0.0,
        "mu": None,
        "sigma_unit": None,
        "adjacency": request.adjacency,
        "unit": request.unit,
        "epsilon_by_adjacency": {
            "zero_out_N_public": request.epsilon,
            "replace_one": 2 * request.epsilon,
            "add_remove": None,
        },
        "bounds": {"digest": None, "provenance": "ruleset" if public else "unregistered", "bound_years": bound},
        "basis": None,
        "sampler": "OpenDP discrete Laplace (exact, int64), operating-system randomness",
        "blocks": {"scale_years": scale},
        "ledger": {"id": receipt.ledger_id, "entry": receipt.entry, "head": receipt.head, "pinned": receipt.pinned},
        "outside_budget": [],
        "n_public": request.n_public,
    }
