"""The attack command's work: read people, basis and weights, train shadows, report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...cohort import Cohort, read_cohort
from ...model.weights import Weights
from ..basis import Basis
from ..bounds import PublicBounds
from ..job import check_delta
from ..mechanisms import mu_of
from .membership import SHADOWS, AttackReport, attack_report, plain_trainer, private_trainer
from .shadows import Trainer

Say = Callable[[str], None]


@dataclass(frozen=True)
class AttackPlan:
    """Everything the command was asked for; see its help."""

    ages: Path
    features: Path
    confounds: Path | None = None
    held_out_ages: Path | None = None
    held_out_features: Path | None = None
    held_out_confounds: Path | None = None
    weights: Path | None = None
    basis: Path | None = None
    bounds: Path | None = None
    epsilon: float = 1.0
    delta_dp: float | None = None
    adjacency: str = "zero_out_N_public"
    method: str = "auto"
    n_components: int | None = None
    id_column: str | None = None
    age_column: str = "age"
    ignore: tuple[str, ...] = ()
    shadows: int = SHADOWS
    seed: int = 0


def run_attack(plan: AttackPlan, say: Say) -> AttackReport:
    """Do it. Nothing is spent and nothing is written."""
    cohort = _read(plan, plan.ages, plan.features, plan.confounds)
    weights = None if plan.weights is None else Weights.load(plan.weights, parts=True)
    if weights is not None:
        cohort = cohort.select(weights.feature_names)
    trainer, statement = _trainer(plan, cohort)
    held_out = None
    if plan.held_out_ages is not None and plan.held_out_features is not None:
        if weights is None:
            raise InputError("held-out people are of use only with weights", next_step="Give --weights too.")
        others = _read(plan, plan.held_out_ages, plan.held_out_features, plan.held_out_confounds)
        others = others.select(weights.feature_names)
        held_out = (others.X, others.age, others.confounds)
    return attack_report(
        weights, cohort.X, cohort.age, confounds=cohort.confounds, trainer=trainer, held_out=held_out,
        statement=statement, shadows=plan.shadows, seed=plan.seed, say=say,
    )  # fmt: skip


def _read(plan: AttackPlan, ages: Path, features: Path, confounds: Path | None) -> Cohort:

    return read_cohort(
        ages, features, confounds, id_column=plan.id_column, age_column=plan.age_column, ignore_columns=plan.ignore
    )


def _trainer(plan: AttackPlan, cohort: Cohort) -> tuple[Trainer, Mapping[str, Any] | None]:
    """The procedure to attack, and what it promises: a bound on every attack, whatever the ledger says of the label."""
    if plan.basis is None and plan.bounds is None:
        return plain_trainer(plan.n_components), None

    basis = None if plan.basis is None else Basis.load(plan.basis)
    bounds = None if plan.bounds is None else PublicBounds.load(plan.bounds)
    if basis is not None:
        cohort = cohort.select(basis.feature_names)
    n = None if plan.adjacency == "add_remove" else int(cohort.age.size)
    small = check_delta(plan.delta_dp, n)
    trainer = private_trainer(
        feature_names=cohort.feature_names, confound_names=cohort.confound_names or None, basis=basis, bounds=bounds,
        epsilon=plan.epsilon, delta_dp=small, adjacency=plan.adjacency, method=plan.method,
        n_components=plan.n_components,
    )  # fmt: skip
    mu = mu_of(plan.epsilon, small)
    if not math.isfinite(mu):
        raise InputError("this ε gives no noise", next_step="Use a finite ε.")
    label = "formal" if basis is not None else "heuristic"
    return trainer, {
        "label": label, "epsilon": plan.epsilon, "delta_dp": small, "mu": mu, "adjacency": plan.adjacency,
    }  # fmt: skip
