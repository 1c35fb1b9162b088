"""Success of a membership attack: AUC and true-positive rate at a fixed false-positive rate, with 95 % intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import PrivacyError

Array = NDArray[np.float64]
FPR = 0.01
_LEVEL = 0.95
_RESAMPLES = 400


@dataclass(frozen=True)
class Success:
    """How well one attack tells members from others.

    auc: 0.5 is a coin, 1 is certainty; tpr: share of members found while one in a hundred others is taken for one.
    Both with 95 % intervals (low, high), all in [0, 1].
    """

    auc: float
    auc_ci: tuple[float, float]
    tpr: float
    tpr_ci: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """As in `schemas/attack-report.schema.json`."""
        return {
            "auc": self.auc,
            "auc_ci": list(self.auc_ci),
            "tpr_at_fpr": {"fpr": FPR, "tpr": self.tpr, "ci": list(self.tpr_ci)},
        }


def max_auc(mu: float) -> float:
    """Largest AUC any attack can have against a μ-GDP release (Dong, Roth & Su 2022): Φ(μ/√2)."""
    from scipy.special import ndtr  # late: scipy is heavy

    return float(ndtr(_mu(mu) / math.sqrt(2)))


def max_tpr(mu: float, fpr: float = FPR) -> float:
    """Largest true-positive rate at a false-positive rate against a μ-GDP release: Φ(Φ⁻¹(fpr) + μ)."""
    from scipy.special import ndtr, ndtri  # late: scipy is heavy

    if not 0 < fpr < 1:
        raise PrivacyError("a false-positive rate lies strictly between 0 and 1", next_step="0.01 is usual")
    return float(ndtr(ndtri(fpr) + _mu(mu)))


def _mu(mu: float) -> float:
    if not (math.isfinite(mu) and mu >= 0):
        raise PrivacyError("μ must be a number of at least 0", next_step="take it from the privacy statement")
    return mu


def auc(inside: Array, outside: Array) -> float:
    """Share of (member, other) pairs in which the member scores higher; ties count half."""
    from scipy.stats import rankdata  # late: scipy is heavy

    ranks = rankdata(np.concatenate([inside, outside]))
    m, n = inside.size, outside.size
    return float((ranks[:m].sum() - m * (m + 1) / 2) / (m * n))


def auc_interval(inside: Array, outside: Array) -> tuple[float, float]:
    """95 % interval of one AUC by DeLong's variance, on the logit scale so that it stays in [0, 1]."""
    from scipy.stats import rankdata  # late: scipy is heavy

    m, n = inside.size, outside.size
    value = auc(inside, outside)
    ranks = rankdata(np.concatenate([inside, outside]))
    first = (ranks[:m] - rankdata(inside)) / n
    second = 1 - (ranks[m:] - rankdata(outside)) / m
    variance = first.var(ddof=1) / m + second.var(ddof=1) / n
    if value in (0.0, 1.0):  # no variance to go by: the rule of three
        width = min(1.0, 3 / min(m, n))
        return (1 - width, 1.0) if value == 1.0 else (0.0, width)
    floor = 0.5 / (m * n)
    safe = min(max(value, floor), 1 - floor)
    spread = 1.96 * math.sqrt(max(variance, 0.0)) / (safe * (1 - safe))
    middle = math.log(safe / (1 - safe))
    return _expit(middle - spread), _expit(middle + spread)


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-max(min(x, 700.0), -700.0)))


def tpr_at(inside: Array, outside: Array, fpr: float = FPR) -> float:
    """Share of members above the score that at most `fpr` of the others reach."""
    allowed = math.floor(fpr * outside.size)
    threshold = np.sort(outside)[::-1][min(allowed, outside.size - 1)]
    return float((inside > threshold).mean())


def binomial_interval(successes: int, trials: int, level: float = _LEVEL) -> tuple[float, float]:
    """Clopper-Pearson interval of a proportion."""
    from scipy.stats import beta  # late: scipy is heavy

    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.isf(tail, successes + 1, trials - successes))
    return low, high


def one_target(inside: Array, outside: Array) -> Success:
    """Success against one model."""
    tpr = tpr_at(inside, outside)
    found = round(tpr * inside.size)
    return Success(auc(inside, outside), auc_interval(inside, outside), tpr, binomial_interval(found, inside.size))


def many_targets(scores: Array, member: NDArray[np.bool_], seed: int) -> Success:
    """Success over many models, each attacked in turn.

    Parameters
    ----------
    scores, member
        T × people; rows 2k and 2k + 1 are models trained on complementary halves. They are not independent of each
        other, so pairs are the replicates: the AUC gets a t interval over pairs, the true-positive rate a bootstrap.
    """
    from scipy.stats import t as student  # late: scipy is heavy

    each = np.array([auc(s[m], s[~m]) for s, m in zip(scores, member, strict=True)])
    pairs = each.reshape(-1, 2).mean(axis=1)
    half = float(student.isf((1 - _LEVEL) / 2, pairs.size - 1)) * float(pairs.std(ddof=1)) / math.sqrt(pairs.size)
    middle = float(pairs.mean())
    tpr = tpr_at(scores[member], scores[~member])
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(_RESAMPLES):
        rows = rng.integers(0, pairs.size, pairs.size)
        both = np.concatenate([2 * rows, 2 * rows + 1])
        some, inside = scores[both], member[both]
        drawn.append(tpr_at(some[inside], some[~inside]))
    low, high = (float(q) for q in np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]))
    return Success(middle, (max(0.0, middle - half), min(1.0, middle + half)), tpr, (min(low, tpr), max(high, tpr)))
