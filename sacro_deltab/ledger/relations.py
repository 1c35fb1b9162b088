"""What a partition has spent under each neighbouring relation: a spend counts in every one of them, at its price there.

Replacing a record is zeroing one and filling another: a Gaussian release made for one of the other relations counts at
twice its μ under `replace_one`, any other at twice its ε. Where an exact N was used no ε holds under `add_remove`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, select

from ..base.strict import parse
from ..privacy.spend import BudgetLimits, SpendRequest
from . import schema
from .tally import Tally, request_of

RELATIONS = ("zero_out_N_public", "add_remove", "replace_one")


@dataclass(frozen=True)
class Spent:
    """Sums under one relation; `holds`: False where no ε does. pure: ε of Laplace releases; other: of neither kind."""

    epsilon: float = 0.0
    delta: float = 0.0
    mu_squared: float = 0.0
    pure: float = 0.0
    pure_squared: float = 0.0
    other: int = 0
    holds: bool = True

    def plus(self, request: SpendRequest, relation: str) -> Spent:
        """With one more release."""
        twice = relation == "replace_one" and request.adjacency != "replace_one"
        epsilon, delta, mu = request.epsilon, request.delta_dp, request.mu
        if twice and mu is not None and delta > 0:
            from ..privacy.mechanisms import epsilon_of_mu  # late: brings scipy

            mu = 2 * mu
            epsilon = epsilon_of_mu(mu, delta)
        elif twice:
            epsilon, delta = 2 * epsilon, delta * (1 + math.exp(epsilon))
        laplace = mu is None and delta == 0
        return Spent(
            self.epsilon + epsilon, self.delta + delta, self.mu_squared + (mu or 0.0) ** 2,
            self.pure + laplace * epsilon, self.pure_squared + laplace * epsilon**2,
            self.other + (mu is None and not laplace),
            self.holds and (relation != "add_remove" or (request.adjacency == relation and request.n_public is None)),
        )  # fmt: skip

    def smallest(self, at_delta: float) -> float | None:
        """The least ε that is proved for all of them at this δ; None where none holds, or where the sum of δ is more.

        Of: the plain sum, exact Gaussians beside a plain sum of Laplace releases, and zCDP of both.
        """
        from ..privacy.accounting import epsilon_of_rho  # late: brings scipy
        from ..privacy.mechanisms import epsilon_of_mu

        found = [self.epsilon] if self.delta <= at_delta else []
        if not self.other:
            exact = epsilon_of_mu(math.sqrt(self.mu_squared), at_delta) if self.mu_squared else 0.0
            found += [exact + self.pure, epsilon_of_rho((self.mu_squared + self.pure_squared) / 2, at_delta)]
        return min(found, default=None) if self.holds else None


def written_by_relation(connection: Connection, names: Iterable[str], before: Tally) -> dict[str, Spent] | None:
    """Sums as the newest spend on these partitions wrote them; None where it wrote none, or something came after it."""
    table = schema.entries
    query = select(table.c.body).where(table.c.partition.in_(sorted(names)), table.c.kind == "spend")
    newest = connection.execute(query.order_by(table.c.seq.desc()).limit(1)).scalar()
    last = {} if newest is None else parse(newest)
    if "by_relation" not in last or last["after"] != before.to_json():
        return None
    return {name: Spent(**last["by_relation"][name]) for name in RELATIONS}


def spent_by_relation(connection: Connection, names: Iterable[str], before: Tally) -> dict[str, Spent]:
    """Sums over all spends on these partitions: written down, or worked out of every one of them."""
    known = written_by_relation(connection, names, before)
    if known is not None:
        return known
    table = schema.entries
    query = select(table.c.body).where(table.c.partition.in_(sorted(names)), table.c.kind == "spend")
    requests = [request_of(parse(body))[0] for body in connection.execute(query).scalars()]
    return with_spends(dict.fromkeys(RELATIONS, Spent()), *requests)


def with_spends(known: Mapping[str, Spent], *requests: SpendRequest) -> dict[str, Spent]:
    """With more releases."""
    out = dict(known)
    for request in requests:
        out = {name: spent.plus(request, name) for name, spent in out.items()}
    return out


def beyond(after: Mapping[str, Spent], relation: str, limits: BudgetLimits) -> str | None:
    """Why the limits do not cover this under the relation that is capped, or None."""
    spent = after[relation]
    if not spent.holds:
        return f"no ε holds under {relation}, which is capped: an exact N was used"
    if spent.epsilon > limits.epsilon_total * (1 + 1e-9):
        return f"total ε under {relation}, which is capped, would be {spent.epsilon:g}: above {limits.epsilon_total:g}"
    return None


def epsilons(known: Mapping[str, Spent] | None) -> dict[str, float | None]:
    """Plain sum of ε under each relation; None where none holds. Empty where nobody worked it out."""
    return {name: spent.epsilon if spent.holds else None for name, spent in (known or {}).items()}


def to_json(known: Mapping[str, Spent]) -> dict[str, Any]:
    """As an entry holds it."""
    return {name: asdict(spent) for name, spent in known.items()}
