"""Membership inference on deltab weights: would the weights tell whether somebody was in the study?

Three attacks, by an adversary who knows the people's features and ages and the whole training procedure: a residual
threshold, a likelihood ratio with shadow models, and the normalisation statistics alone. The report stays inside the
TRE (`inside/attack.json`); the rules ask whether there is one, a certificate carries its salted digest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import schemas
from ...base.canonical import shown_json
from ...base.digests import sha256_hex
from ...base.errors import InputError
from ...base.writing import write_file
from ...model.base import one_blas_thread
from ...model.weights import Weights
from .checks import Reconstruction, reconstruction
from .shadows import (
    Pool,
    Trainer,
    leave_pair_out,
    likelihood_ratio,
    membership,
    normalisation_scores,
    residuals,
    train_shadows,
)
from .stats import FPR, Success, many_targets, max_auc, max_tpr, one_target
from .trainers import plain_trainer, private_trainer

__all__ = [
    "SHADOWS",
    "AttackReport",
    "AttackResult",
    "attack_report",
    "check_report",
    "plain_trainer",
    "private_trainer",
]

SCHEMA_ID = "sacro_deltab/attack-report/1"
SHADOWS = 32
LEAST_PEOPLE = 20  # a side: below it the intervals span nearly everything
MOST_PEOPLE = 2_000  # of the pool: an attack only gets weaker with N, so a part of a large cohort is the harder test
_NAMES = {
    "residual_threshold": "people the model fits better are taken for members",
    "likelihood_ratio": "each person's residual against those of shadow models with and without that person",
    "normalisation_statistics": "feature means alone",
}


@dataclass(frozen=True)
class AttackResult:
    """One attack. success is None where there is nothing to attack; `note` then says why."""

    name: str
    success: Success | None
    note: str

    def to_json(self) -> dict[str, Any]:
        """As in the schema."""
        figures = {"auc": None, "auc_ci": None, "tpr_at_fpr": None} if self.success is None else self.success.to_json()
        return {"name": self.name, "how": _NAMES[self.name], **figures, "note": self.note}


@dataclass(frozen=True)
class AttackReport:
    """What the attacks found; stays inside.

    subject: `weights` (these weights, members against held-out people) or `procedure` (every half of the cohort trained
    the same way and attacked in turn, which needs no held-out people and is the harder test, since N is halved).
    """

    subject: str
    attacks: tuple[AttackResult, ...]
    checks: tuple[Reconstruction, ...]
    design: Mapping[str, Any]
    target: Mapping[str, Any]
    bound: Mapping[str, Any] | None
    made: str

    @property
    def best(self) -> AttackResult:
        """The attack with the highest AUC."""
        ran = [a for a in self.attacks if a.success is not None]
        return max(ran, key=lambda a: a.success.auc if a.success is not None else 0.0)

    @property
    def verdict(self) -> str:
        """within_bound | above_bound (the noise cannot be what it is said to be) | no_bound (nothing was promised)."""
        success = self.best.success
        if self.bound is None or success is None:
            return "no_bound"
        # members and others trade places in these experiments: somebody is replaced, which moves a release twice as far
        above = success.auc_ci[0] > float(self.bound["max_auc_replacing"])
        above = above or success.tpr_ci[0] > float(self.bound["max_tpr_replacing"])
        return "above_bound" if above else "within_bound"

    @property
    def words(self) -> tuple[str, ...]:
        """The result in plain sentences, for the checker."""
        best, success = self.best, self.best.success
        assert success is not None
        low, high = success.auc_ci
        lines = [
            f"Best attack: {best.name.replace('_', ' ')}, AUC {success.auc:.3f} (95 % interval {low:.3f} to {high:.3f};"
            " 0.5 is a coin).",
            f"At 1 % false alarms it finds {success.tpr:.1%} of the members.",
        ]
        if self.bound is None:
            lines.append("No bound was promised: these weights have no formal privacy.")
        elif self.verdict == "within_bound":
            lines.append(
                f"The promised noise allows AUC {self.bound['max_auc']:.3f} "
                f"({self.bound['max_auc_replacing']:.3f} where one person replaces another): the attack does not "
                "contradict it."
            )
        else:
            lines.append("THE ATTACK DOES BETTER THAN THE PROMISED NOISE ALLOWS: the claim is not true.")
        lines += [f"{check.check}: {check.text}." for check in self.checks if check.outcome in ("recovered", "broken")]
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        """Content of `inside/attack.json` (`schemas/attack-report.schema.json`)."""
        return {
            "schema": SCHEMA_ID,
            "stays": "inside",
            "made": self.made,
            "subject": self.subject,
            "target": dict(self.target),
            "design": dict(self.design),
            "attacks": [attack.to_json() for attack in self.attacks],
            "bound": None if self.bound is None else dict(self.bound),
            "reconstruction": [check.to_json() for check in self.checks],
            "verdict": self.verdict,
            "words": list(self.words),
        }

    def save(self, path: str | Path) -> Path:
        """Write as JSON, checked against its schema."""
        data = self.to_json()
        check_report(data)
        target = Path(path)
        write_file(target, shown_json(data))
        return target


def check_report(data: object, path: object | None = None) -> None:
    """Refuse what is no attack report.

    Raises
    ------
    InputError
        Naming the first fault and its place.
    """
    schemas.check(
        data, "attack-report", path=path, what="this attack report", next_step="Make one with `sacro-deltab attack`."
    )


def attack_report(
    weights: Weights | None,
    X: ArrayLike,
    age: ArrayLike,
    *,
    confounds: ArrayLike | None = None,
    trainer: Trainer,
    held_out: tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike | None] | None = None,
    statement: Mapping[str, Any] | None = None,
    shadows: int = SHADOWS,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> AttackReport:
    """Attack weights, or the procedure that made them.

    Parameters
    ----------
    weights
        The weights to be released; None for the procedure alone.
    X, age, confounds
        The training people: n × F raw features (missing values become the weights' centre, else the people's mean),
        ages in years, n × K confounds.
    trainer
        `trainer(X, age, confounds) -> Weights`: the training procedure, noise included. A private one must draw its
        noise anew each time. Shadow models are never released and stay inside, so no budget is spent on them.
    held_out
        (X, age[, confounds]) of people like them who were not in training. Without any, the procedure is attacked.
    statement
        A `PrivacyStatement.to_json()`; its μ bounds what any attack can do.
    shadows
        Number of shadow models, even, at least 8.
    seed
        Of the choice of training sets; the noise of a private trainer has none.

    Returns
    -------
    AttackReport, which stays inside.

    Raises
    ------
    InputError
        Fewer than 20 people a side, shapes that do not fit, an odd or small number of shadows.
    """
    if shadows < 8 or shadows % 2:
        raise InputError("shadow models come in pairs, at least 8 of them", next_step="32 is usual")
    rng = np.random.default_rng([seed, 61])
    members = _people(X, age, confounds, weights)
    with one_blas_thread():
        if held_out is not None and weights is not None:
            parts = (*held_out, None)[:3]
            others = _people(parts[0], parts[1], parts[2], weights)
            results, design = _on_weights(weights, members, others, trainer, shadows, rng, say)
            subject = "weights"
        else:
            results, design = _on_procedure(members, trainer, shadows, rng, seed, say)
            subject = "procedure"
    public = statement is not None and statement.get("label") == "formal"
    n = int(np.asarray(age).size)
    checks = () if weights is None else tuple(reconstruction(weights, n, public_scale=public))
    return AttackReport(
        subject=subject,
        attacks=results,
        checks=checks,
        design={**design, "shadows": shadows, "seed": seed, "blas_threads": 1, "adversary": _ADVERSARY},
        target=_target(weights, statement),
        bound=_bound(statement),
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def not_run(weights: Weights, statement: Mapping[str, Any], people: int, why: str) -> dict[str, Any]:
    """A report that says why no attack could be made, for the inside: whether there is a report tells nothing then."""
    side = max(people // 2, 1)
    design = {"members": side, "non_members": side, "targets": 1, "shadows": SHADOWS, "seed": 0, "blas_threads": 1}
    return {
        "schema": SCHEMA_ID,
        "stays": "inside",
        "made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "subject": "procedure",
        "target": _target(weights, statement),
        "design": {**design, "adversary": _ADVERSARY},
        "attacks": [],
        "bound": _bound(statement),
        "reconstruction": [],
        "verdict": "not_run",
        "words": [f"NO MEMBERSHIP TEST COULD BE MADE: {why}. Look into it before anything leaves."],
    }


_ADVERSARY = "knows features and ages of everybody in question, who else was in, and the whole procedure but its noise"


def _people(X: ArrayLike, age: ArrayLike, confounds: ArrayLike | None, weights: Weights | None) -> Pool:
    values, ages = np.asarray(X, dtype=np.float64), np.asarray(age, dtype=np.float64).ravel()
    if values.ndim != 2 or values.shape[0] != ages.size:
        raise InputError("features and ages have different numbers of rows", next_step="Give one row a person in both.")
    if weights is not None and values.shape[1] != len(weights.feature_names):
        raise InputError("these features are not those of the weights", next_step="Give the same columns, in order.")
    conf = None if confounds is None else np.asarray(confounds, dtype=np.float64).reshape(ages.size, -1)
    known = np.isfinite(ages)
    values, ages = values[known], ages[known]
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        means = np.where(finite, values, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    values = np.where(finite, values, means if weights is None else weights.x_mean)
    conf = None if conf is None else np.nan_to_num(conf[known], posinf=0.0, neginf=0.0)
    if ages.size < LEAST_PEOPLE:
        raise InputError("too few people for a membership test", next_step=f"It needs at least {LEAST_PEOPLE} a side.")
    return Pool(values, ages, conf)


def _on_procedure(
    members: Pool, trainer: Trainer, shadows: int, rng: np.random.Generator, seed: int,
    say: Callable[[str], None] | None,
) -> tuple[tuple[AttackResult, ...], dict[str, Any]]:  # fmt: skip
    if members.size < 2 * LEAST_PEOPLE:
        raise InputError(
            "too few people to attack halves of them", next_step=f"It needs at least {2 * LEAST_PEOPLE} people."
        )
    size = min(members.size - members.size % 2, MOST_PEOPLE)
    pool = members.take(np.sort(rng.permutation(members.size)[:size]))
    inside = membership(size, size // 2, shadows, rng)
    if say is not None:
        say(f"training {shadows} shadow models, each on half of the people")
    models = train_shadows(pool, inside, trainer)
    gaps = np.array([residuals(model, pool) for model in models])
    found = [
        AttackResult("residual_threshold", many_targets(-np.abs(gaps), inside, seed), ""),
        AttackResult("likelihood_ratio", many_targets(leave_pair_out(gaps, inside), inside, seed), ""),
    ]
    scores = normalisation_scores(np.array([model.x_mean for model in models]), pool)
    found.append(_normalisation(None if scores is None else many_targets(scores, inside, seed)))
    return tuple(found), {"members": size // 2, "non_members": size // 2, "targets": shadows}


def _on_weights(
    weights: Weights, members: Pool, others: Pool, trainer: Trainer, shadows: int, rng: np.random.Generator,
    say: Callable[[str], None] | None,
) -> tuple[tuple[AttackResult, ...], dict[str, Any]]:  # fmt: skip
    n = members.size
    if others.size > n:
        others = others.take(np.sort(rng.permutation(others.size)[:n]))
    conf = None
    if members.confounds is not None and others.confounds is not None:
        conf = np.concatenate([members.confounds, others.confounds])
    elif (members.confounds is None) != (others.confounds is None):
        raise InputError("confounds must be given for both sides", next_step="Give them for the held-out people too.")
    pool = Pool(np.concatenate([members.X, others.X]), np.concatenate([members.age, others.age]), conf)
    truth = np.arange(pool.size) < n
    inside = membership(pool.size, others.size, shadows, rng)
    if say is not None:
        say(f"training {shadows} shadow models")
    models = train_shadows(pool, inside, trainer)
    gap = residuals(weights, pool)
    ratio = likelihood_ratio(gap, np.array([residuals(model, pool) for model in models]), inside)
    found = [
        AttackResult("residual_threshold", one_target(-np.abs(gap)[truth], -np.abs(gap)[~truth]), ""),
        AttackResult("likelihood_ratio", one_target(ratio[truth], ratio[~truth]), ""),
    ]
    means = np.array([weights.x_mean, *(model.x_mean for model in models)])
    scores = normalisation_scores(means, pool)
    found.append(_normalisation(None if scores is None else one_target(scores[0][truth], scores[0][~truth])))
    return tuple(found), {"members": n, "non_members": others.size, "targets": 1}


def _normalisation(success: Success | None) -> AttackResult:
    note = "centre and scale are public constants: there is nothing to attack" if success is None else ""
    return AttackResult("normalisation_statistics", success, note)


def _bound(statement: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if statement is None or statement.get("label") == "none" or statement.get("mu") is None:
        return None
    mu = float(statement["mu"])
    twice = mu if statement["adjacency"] == "replace_one" else 2 * mu
    return {
        "mu": mu,
        "max_auc": max_auc(mu),
        "fpr": FPR,
        "max_tpr": max_tpr(mu),
        "max_auc_replacing": max_auc(twice),
        "max_tpr_replacing": max_tpr(twice),
        "adjacency": str(statement["adjacency"]),
        "label": str(statement["label"]),
    }


def _target(weights: Weights | None, statement: Mapping[str, Any] | None) -> dict[str, Any]:
    label = "none" if statement is None else str(statement.get("label", "none"))
    target: dict[str, Any] = {"privacy": label, "weights_sha256": None, "n_components": None, "n_features": None}
    if statement is not None:
        target["epsilon"], target["delta_dp"] = float(statement["epsilon"]), float(statement["delta_dp"])
    if weights is not None:
        target["weights_sha256"] = weights_digest(weights)
        target["n_components"], target["n_features"] = weights.n_components, len(weights.feature_names)
    return target


def weights_digest(weights: Weights) -> str:
    """SHA-256 of a set of weights, to tell which ones a report is about. Inside only: weights before rounding."""
    content: dict[str, Any] = {}
    for field in fields(weights):
        value = getattr(weights, field.name)
        content[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return sha256_hex(json.dumps(content, sort_keys=True))
