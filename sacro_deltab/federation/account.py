"""What the nodes spent: per node, per round, and per person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..base.errors import RefusedError
from ..privacy.accounting import compose_nodes
from .bundle import Node


@dataclass(frozen=True)
class NodeSpend:
    """What one node's certificate says it spent.

    epsilon, delta_dp, mu: of the release that is pooled; round_epsilon: of everything in this certificate;
    total_epsilon, total_delta: plain sums of the node's ledger for these people, with this round (None: no ledger).
    """

    node: str
    label: str
    adjacency: str
    unit: str
    epsilon: float
    delta_dp: float
    mu: float | None
    round_epsilon: float
    round_delta: float
    total_epsilon: float | None
    total_delta: float | None
    entry: int | None
    ledger: str | None
    pinned: bool

    def to_json(self) -> dict[str, Any]:
        """For reports and certificates."""
        return asdict(self)


@dataclass(frozen=True)
class Totals:
    """Cost for one person. disjoint: whether somebody declared that nobody is in two nodes, and who."""

    disjoint: bool
    declared_by: str | None
    round_epsilon: float
    round_delta: float
    epsilon_exact: float | None
    total_epsilon: float | None
    total_delta: float | None

    def to_json(self) -> dict[str, Any]:
        """For reports and certificates."""
        return asdict(self)


def spend_of(node: Node, output: str) -> NodeSpend:
    """Read a node's spend out of its certificate.

    Raises
    ------
    RefusedError
        The pooled output is in no noisy release.
    """
    release = node.release(output)
    if release is None:
        raise RefusedError(
            f"the certificate of node {node.name} names no noisy release for {output}",
            path=node.path,
            next_step="only noised weights and moments are pooled.",
        )
    ledger, every = node.ledger, node.predicate["privacy"]["releases"]
    after: Mapping[str, Any] = (ledger or {}).get("after") or {}
    own: Mapping[str, Any] = release.get("ledger") or {}
    return NodeSpend(
        node=node.name,
        label=str(release["label"]),
        adjacency=str(release["adjacency"]),
        unit=str(release["unit"]),
        epsilon=float(release["epsilon"] or 0.0),
        delta_dp=float(release["delta_dp"] or 0.0),
        mu=None if release.get("mu") is None else float(release["mu"]),
        round_epsilon=sum(float(r["epsilon"] or 0.0) for r in every),
        round_delta=sum(float(r["delta_dp"] or 0.0) for r in every),
        total_epsilon=None if after.get("epsilon_sum") is None else float(after["epsilon_sum"]),
        total_delta=None if after.get("delta_sum") is None else float(after["delta_sum"]),
        entry=own.get("entry"),
        ledger=None if ledger is None else str(ledger["id"]),
        pinned=bool((ledger or {}).get("pinned")) and bool(own.get("pinned")),
    )


def check_cover(spend: NodeSpend, node: Node) -> None:
    """The node's ledger holds at least what its certificate says was spent.

    Raises
    ------
    RefusedError
        A formal claim without a pinned ledger behind it, or a ledger that holds less than this round.
    """
    if spend.label == "formal" and not spend.pinned:
        raise RefusedError(f"node {node.name} claims formal noise without a pinned ledger", path=node.path)
    if spend.total_epsilon is not None and spend.total_epsilon < spend.round_epsilon - 1e-9:
        raise RefusedError(
            f"the ledger of node {node.name} does not cover this round: it holds ε {spend.total_epsilon:g}, "
            f"and the certificate spends ε {spend.round_epsilon:g}",
            path=node.path,
        )


def totals(spends: Sequence[NodeSpend], declared_by: str | None) -> Totals:
    """Cost for one person over the nodes: the largest where people are declared disjoint, else the sum."""
    disjoint = declared_by is not None
    combine = max if disjoint else sum
    over = [s.total_epsilon for s in spends]
    deltas = [s.total_delta for s in spends]
    exact = None
    if all(s.epsilon > 0 and 0 < s.delta_dp < 1 for s in spends):
        items = [{"epsilon": s.epsilon, "delta_dp": s.delta_dp} for s in spends]
        exact = compose_nodes(
            items, disjoint_declared=disjoint, delta=max(s.delta_dp for s in spends)
        ).epsilon_exact_gdp
    return Totals(
        disjoint=disjoint,
        declared_by=declared_by,
        round_epsilon=float(combine([s.round_epsilon for s in spends])),
        round_delta=float(combine([s.round_delta for s in spends])),
        epsilon_exact=exact,
        total_epsilon=None if None in over else float(combine([v for v in over if v is not None])),
        total_delta=None if None in deltas else float(combine([v for v in deltas if v is not None])),
    )


def check_shared(totals: Totals, limit: float | None) -> None:
    """A person who may be in every node stays within the rule set's total.

    Raises
    ------
    RefusedError
        Nobody declared that the nodes share no person, and their budgets add up to more than one person may cost.
    """
    total = totals.total_epsilon if totals.total_epsilon is not None else totals.round_epsilon
    if not totals.disjoint and limit is not None and total > limit + 1e-9:
        raise RefusedError(
            f"nobody declared that the nodes share no person, so their budgets add up: ε {total:g} of {limit:g}",
            next_step="if nobody is in two nodes, say who declares it: --declare-disjoint NAME.",
        )


def disjoint_by(nodes: Sequence[Node], said: str | None) -> str | None:
    """Who declared that no person is in two nodes: the caller, or every node in its certificate."""
    if said is not None and said.strip():
        return said.strip()
    words = [n.predicate["people"]["declared"] for n in nodes]
    if all(w["facts"].get("nodes.disjoint") is True for w in words):
        return ", ".join(dict.fromkeys(f"{w['by']} ({n.name})" for w, n in zip(words, nodes, strict=True)))
    return None
