"""Who adds the noise, and what that costs against whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..base.errors import InputError
from ..privacy.mechanisms import epsilon_of_mu, mu_of

MODELS = ("local", "distributed", "central")
_DECLARED = {"central_at_node": "local", "local": "local", "distributed": "distributed"}


@dataclass(frozen=True)
class Price:
    """ε of one person against an observer who knows what `colluding` nodes drew; 0: who sees the sum alone."""

    colluding: int
    epsilon: float


def pooled_strength(mus: Sequence[float]) -> float:
    """μ of the sum of independent Gaussian noises that alone give `mus`: variances add, 1/μ² = Σ 1/μₖ²."""
    return 1.0 / math.sqrt(sum(1.0 / (mu * mu) for mu in mus))


def price_list(mus: Sequence[float], delta_dp: float) -> tuple[Price, ...]:
    """ε by number of colluding nodes, the worst choice of them, for one person of a node that does not collude.

    Parameters
    ----------
    mus
        μ of what each node alone added (1/σ at sensitivity 1).
    delta_dp
        δ at which ε is given.
    """
    ordered = sorted(mus)  # the most noise first: worst when exactly that is known
    return tuple(
        Price(colluding, epsilon_of_mu(pooled_strength(ordered[colluding:]), delta_dp)) for colluding in range(len(mus))
    )


def share_epsilon(nominal: float, nodes: int, delta_dp: float) -> float:
    """ε that each node pays when the sum of K equal shares (σ/√K each) is to have the nominal ε.

    It is the price against K − 1 colluding nodes, and what the node's ledger must hold: 1.45 for K = 2 at nominal 1 and
    δ = 1e-6.

    >>> round(share_epsilon(1.0, 2, 1e-6), 2)
    1.45
    """
    if nodes < 1:
        raise InputError("noise is shared among at least one node")
    return epsilon_of_mu(mu_of(nominal, delta_dp) * math.sqrt(nodes), delta_dp)


def noise_model(declared: Sequence[str | None], labels: Sequence[str], wanted: str | None) -> str:
    """The noise model in force: the least trustworthy of what nodes declared and what was asked for.

    Parameters
    ----------
    declared
        `dp.trust_model` as each node's certificate has it, None where it does not say.
    labels
        Privacy label of each node's contribution: `none` means nobody but the aggregator could add noise.
    wanted
        `local`, `distributed`, `central`, or None.
    """
    if wanted is not None and wanted not in MODELS:
        raise InputError(f"there is no noise model {wanted!r}", next_step=f"use one of {', '.join(MODELS)}.")
    found = ["central" if label == "none" else _DECLARED.get(word or "central_at_node", "local")
             for word, label in zip(declared, labels, strict=True)]  # fmt: skip
    return max([*found, wanted or "local"], key=MODELS.index)


def explain(model: str, mus: Sequence[float], delta_dp: float) -> list[str]:
    """The noise model in words, with its price where nodes share the noise."""
    if model == "local":
        return ["noise: full at every node; whoever sees a node's file sees that node's ε and no less"]
    if model == "central":
        return ["noise: left to the aggregator, which the nodes would have to trust with exact sums"]
    lines = ["noise: shared among the nodes; the nominal ε holds only for who sees the sum and no node's file"]
    for price in price_list(mus, delta_dp):
        who = "nobody colludes" if price.colluding == 0 else f"{price.colluding} colluding or lost node(s)"
        lines.append(f"  ε {price.epsilon:.2f} when {who}")
    lines.append("  this aggregator reads each node's file, so the last line is what a person can rely on")
    return lines
