"""One membership test of everything that leaves together: what an attacker gains who reads all of a package.

Each printed number is, to first order, a mean over people of what each adds to it (its influence). Of many numbers
together the likelihood ratio of "in" against "not in" is then known: it is computed for every person over random halves
of the people, with each number's rounding. Noised releases count at the most that their μ allows. Inside only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import InputError
from ...model.base import one_blas_thread
from .membership import MOST_PEOPLE
from .shadows import membership
from .stats import FPR, Success, many_targets, max_auc, max_tpr

Array = NDArray[np.float64]
SCHEMA_ID = "sacro_deltab/package-attack/1"
_HALVES = 32
_SHRINK = 0.1  # of the people's covariance towards its diagonal
_ATTRIBUTES, _ASKED = 5, 200  # columns that are guessed, people who are asked about
_LEAST = 40


@dataclass(frozen=True)
class Told:
    """One printed number. influence: (people,) what each adds to the mean, 0 on average; error: SD of its rounding.

    column: (people,) the values whose mean it is, NaN where a person has none; None for other numbers.
    """

    output: str
    influence: Array
    error: float
    column: Array | None = None


def package_attack(told: Sequence[Told], mu: float, *, seed: int = 0) -> dict[str, Any]:
    """The report: the union, each output alone, the most exposed person, attributes, and SACRO-ML's shape of it.

    mu: of all noised releases on these people together. Raises InputError where there are fewer than 40 people.
    """
    people = told[0].influence.size if told else 0
    if people < _LEAST:
        raise InputError("too few people to attack halves of them", next_step=f"{_LEAST} are needed.")
    rng = np.random.default_rng([seed, 67])
    some = np.sort(rng.permutation(people)[:MOST_PEOPLE])
    signals = np.column_stack([one.influence[some] for one in told])
    errors = np.array([one.error for one in told])
    inside = membership(some.size, some.size // 2, _HALVES, rng)
    with one_blas_thread():
        union = _Attack(signals, errors, inside, rng)
        scores = union.scores + _noised(mu, inside, rng)
        both = many_targets(scores, inside, seed)
        alone = {}
        for output in dict.fromkeys(one.output for one in told):
            mine = [k for k, one in enumerate(told) if one.output == output]
            alone[output] = many_targets(_Attack(signals[:, mine], errors[mine], inside, rng).scores, inside, seed)
        guessed = _attributes(union, told, inside, rng)
        reach = np.sqrt(union.strength(people) + mu * mu)
    return {
        "schema": SCHEMA_ID,
        "stays": "inside",
        "made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "numbers": len(told),
        "noised_mu": mu,
        "union": both.to_json(),
        "expected": {"auc": float(np.mean([max_auc(d) for d in reach])), "tpr_at_fpr": _mean_tpr(reach)},
        "outputs": {name: success.to_json() for name, success in alone.items()},
        "most_exposed": {"auc": max_auc(float(reach.max())), "tpr_at_fpr": _mean_tpr(reach.max(keepdims=True))},
        "attributes": guessed,
        "design": {"people": int(some.size), "halves": _HALVES, "seed": seed, "blas_threads": 1, "adversary": _KNOWS},
        "sacro_ml": _sacro_ml(both, inside),
        "words": _words(both, float(reach.max()), guessed),
    }


_KNOWS = "knows what everybody in question adds to each number, and how all others are distributed; not who was in"


class _Attack:
    """Likelihood ratios from some numbers: `scores` (halves × people).

    Halves of a fixed pool are the harder test, twice as telling as people of a large population: who is out is in the
    other half. `strength` is of the population.
    """

    def __init__(self, signals: Array, errors: Array, inside: NDArray[np.bool_], rng: np.random.Generator) -> None:
        half = int(inside[0].sum())
        unit = np.where((sd := signals.std(axis=0)) > 0, sd, 1.0)
        centred = (signals - signals.mean(axis=0)) / unit
        rounding = (errors / unit) ** 2
        self.added, self.unit, self.half = centred / half, unit, half
        printed = inside @ centred / half + rng.normal(size=(inside.shape[0], unit.size)) * np.sqrt(rounding)
        cov = (1 - _SHRINK) * (centred.T @ centred) / centred.shape[0]
        cov[np.diag_indices_from(cov)] += _SHRINK
        cov *= 1 / (2 * half)  # of a half of a fixed pool
        cov[np.diag_indices_from(cov)] += rounding
        self.seen = np.asarray(np.linalg.solve(cov, printed.T))
        self.inverse_added = np.asarray(np.linalg.solve(cov, self.added.T)).T
        own = np.asarray((self.added * self.inverse_added).sum(axis=1))
        self.scores = np.asarray((self.added @ self.seen).T - own / 2)
        self.cov, self._rounding = cov, rounding

    def strength(self, people: int) -> Array:
        """(people,) squared signal over noise of each, in a release of so many people of a large population."""
        cov = self.cov - np.diag(self._rounding)
        cov = cov * (2 * self.half / people) + np.diag(self._rounding)
        added = self.added * (self.half / people)
        return np.asarray((added * np.linalg.solve(cov, added.T).T).sum(axis=1))


def _noised(mu: float, inside: NDArray[np.bool_], rng: np.random.Generator) -> Array:
    """The likelihood ratio of a worst case for everybody: N(μ, 1) for members, N(0, 1) for others."""
    return np.asarray(mu * (rng.normal(size=inside.shape) + mu * inside) - mu * mu / 2)


def _attributes(
    attack: _Attack, told: Sequence[Told], inside: NDArray[np.bool_], rng: np.random.Generator
) -> dict[str, Any]:
    """Guess whether a member's value of a column is low, middle or high, from the other columns, with the release and
    without: what the release adds. Of the columns whose means were printed, those first told."""
    means = [k for k, one in enumerate(told) if one.column is not None]
    known = attack.added[:, means]
    right, base, asked = 0, 0, 0
    for place, k in enumerate(means[:_ATTRIBUTES]):
        own, others = known[:, place], np.delete(known, place, axis=1)
        gram = others.T @ others
        gram[np.diag_indices_from(gram)] += _SHRINK * own.size * float(known.var(axis=0).mean()) + 1e-12
        fit = others @ np.linalg.solve(gram, others.T @ own)
        spread = max(float((own - fit).std()), 1e-12)
        values = np.quantile(own, (1 / 6, 1 / 2, 5 / 6))
        edges = np.quantile(own, (1 / 3, 2 / 3))
        truth = np.searchsorted(edges, own)
        row = np.zeros(len(told))
        row[k] = 1.0
        column = np.linalg.solve(attack.cov, row)
        for half in range(inside.shape[0]):
            who = rng.permutation(np.flatnonzero(inside[half]))[:_ASKED]
            prior = -0.5 * ((values - fit[who, None]) / spread) ** 2
            moved = values - own[who, None]  # the candidate's place of the true value
            gain = moved * attack.seen[k, half]
            gain -= moved * attack.inverse_added[who, k, None] + 0.5 * moved**2 * column[k]
            right += int((np.argmax(prior + gain, axis=1) == truth[who]).sum())
            base += int((np.argmax(prior, axis=1) == truth[who]).sum())
            asked += who.size
    found = {"right_with": right / asked, "right_without": base / asked} if asked else {}
    return {"columns": min(len(means), _ATTRIBUTES), "right_with": None, "right_without": None, **found}


def _mean_tpr(reach: Array) -> dict[str, float]:
    return {"fpr": FPR, "tpr": float(np.mean([max_tpr(float(d)) for d in reach]))}


def _sacro_ml(success: Success, inside: NDArray[np.bool_]) -> Mapping[str, Any]:
    """The union as SACRO-ML's attacks report themselves."""
    metrics = {
        "AUC": success.auc, f"TPR@{FPR}": success.tpr, "n_pos_test_examples": int(inside.sum()),
        "n_neg_test_examples": int((~inside).sum()),
    }  # fmt: skip
    return {
        "log_id": "sacro_deltab-package",
        "metadata": {"attack_name": "Package membership inference", "attack_params": {"halves": _HALVES, "fpr": FPR}},
        "attack_experiment_logger": {"attack_instance_logger": {"instance_0": metrics}},
    }


def _words(success: Success, reach: float, guessed: Mapping[str, Any]) -> list[str]:
    lines = [
        f"Everything together, of half of the people: AUC {success.auc:.3f} ({success.auc_ci[0]:.3f} to "
        f"{success.auc_ci[1]:.3f}; 0.5 is a coin); at 1 % false alarms {success.tpr:.1%} of the members are found.",
        f"Of all of them, by an attacker who knows only how people are distributed, the most exposed person is found "
        f"with chance {max_tpr(reach):.1%}.",
    ]
    if guessed["right_with"] is not None:
        lines.append(
            f"Low, middle or high value of a column: guessed right in {guessed['right_with']:.1%} with the release, "
            f"{guessed['right_without']:.1%} without it."
        )
    return lines
