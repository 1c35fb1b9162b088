"""One pooled model of any way, with what is left when a node is taken out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..kinds.pooled import MINUS
from ..model.weights import Weights
from ..outputs.document import OutputDocument
from ..outputs.parameters import AVERAGED, BETA1, FOLDED, MOMENTS, N_SUBJECTS, POOLED_MODEL
from ..privacy.basis import Basis
from ..privacy.fit import Axes, age_moments
from ..privacy.moments import NoisyMoments
from . import pooling
from .bundle import Node
from .compare import about, released_n
from .meta import Estimate, ModelNoise, Pooled, inverse_variance
from .moments_file import moments_of
from .results import model_documents

TITLES = {
    "summed_moments": "sum of the nodes' noised moments, one fit",
    "fedavg_shared": "FedAvg in the shared basis, weighted by released N",
    "fedavg_folded": "FedAvg of folded weights, weighted by released N",
}
_SHARED_TYPES = (*AVERAGED, N_SUBJECTS)


@dataclass(frozen=True)
class PooledModel:
    """A pooled model.

    shares: weight of each node (released N). alone: each node's own weights by the same way, where they can be made.
    rest: pooled weights without each node, as anybody with that node's file can compute them.
    """

    way: str
    weights: Weights
    nodes: tuple[Node, ...]
    shares: tuple[float, ...]
    alone: Mapping[str, Weights]
    rest: Mapping[str, Weights]
    heterogeneity: tuple[tuple[str, tuple[Estimate, ...], Pooled], ...] = ()
    basis: Basis | None = None
    notes: tuple[str, ...] = ()
    moments: NoisyMoments | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    noise: Mapping[str, ModelNoise] = field(default_factory=dict)

    def source(self, node: Node) -> str:
        """Name of the node's output whose release is pooled."""
        kind = {"summed_moments": MOMENTS, "fedavg_shared": BETA1}.get(self.way, FOLDED)
        document = node.of_type(kind)
        assert document is not None
        return document.name

    def used(self, node: Node) -> tuple[str, ...]:
        """Outputs of a node that the pooled model rests on."""
        kinds: Sequence[str] = {"summed_moments": (MOMENTS,), "fedavg_shared": _SHARED_TYPES}.get(
            self.way, (FOLDED, N_SUBJECTS)
        )
        found = [node.of_type(kind) for kind in kinds]
        return tuple(d.name for d in found if d is not None)

    def documents(self) -> list[OutputDocument]:
        """The pooled model as it is asked to leave, unrounded."""
        return model_documents(self.weights, kind=POOLED_MODEL, prefix="pooled", title="Pooled model",
                               about=self.about(), components_public=self.basis is not None)  # fmt: skip

    def minus(self, node: Node) -> list[OutputDocument]:
        """Pooled minus one node: judged, never written."""
        about = {**self.about(), "without": node.name}
        return model_documents(self.rest[node.name], kind=MINUS, prefix="rest",
                               title=f"Pooled model without {node.name}", about=about,
                               components_public=self.basis is not None)[:2]  # fmt: skip

    def about(self) -> dict[str, Any]:
        """Public context of the pooled documents."""
        return {
            "way": f"{self.way}: {TITLES[self.way]}",
            "nodes": [n.name for n in self.nodes],
            "basis": about(self.nodes[0]).get("basis"),
            "bounds": about(self.nodes[0]).get("bounds"),
            "n_components": self.weights.n_components if self.weights.components is not None else 0,
            "features": len(self.weights.feature_names),
            **self.context,
        }


def pool_model(nodes: tuple[Node, ...], way: str, public: pooling.Public) -> PooledModel:
    """Pool by one of the three ways.

    Raises
    ------
    RefusedError, InputError
        As the way's own checks say.
    """
    if way == "summed_moments":
        return _summed(nodes, public)
    return _averaged(nodes, way, public)


def _summed(nodes: tuple[Node, ...], public: pooling.Public) -> PooledModel:
    parts = [moments for node in nodes if (moments := moments_of(node)) is not None]
    total = pooling.sum_moments(parts)
    axes, basis = pooling.axes_for(nodes, total, public)
    notes = []
    if any(p.layout.gram for p in parts) and not total.layout.gram:
        notes.append("not every node released a Gram, so the public one (the identity) is used for all")
    weights = pooling.fit(total, axes, basis)
    size = np.array([p.n for p in parts])
    alike = [p if p.layout.gram == total.layout.gram else pooling._without_gram(p) for p in parts]
    alone = {n.name: pooling.fit(p, axes, basis) for n, p in zip(nodes, alike, strict=True)}
    rest = {n.name: pooling.fit(pooling.drop(p, total), axes, basis) for n, p in zip(nodes, alike, strict=True)}
    spread = () if basis is None else _component_spread(nodes, alike, axes, basis)
    if basis is None:
        notes.append("each node's axes would be its own, so components are compared between no nodes")
    return PooledModel(
        "summed_moments", weights, nodes, tuple(float(s) for s in size / size.sum()), alone, rest, spread, basis,
        tuple(notes), total, {"noise_sd_ut": float(total.sd["ut"]), "n": round(total.n)},
        {n.name: _model_noise(p, alone[n.name], axes, basis) for n, p in zip(nodes, alike, strict=True)},
    )  # fmt: skip


def _model_noise(part: NoisyMoments, weights: Weights, axes: Axes, basis: Basis | None) -> ModelNoise:
    """How far noise in a node's means of scores and ages, and in their products, moves its deltas."""
    per_score = weights.b1 * axes.score_sd if basis is not None else weights.folded("simple").coef
    length, half, n = float(np.linalg.norm(per_score)), part.scaling.age_half, part.n
    age = age_moments(n, *(float(part.values[name]) for name in ("t", "q", "tq", "qq")))
    return ModelNoise(
        shift=float(np.hypot(length * part.sd["u"], half * part.sd["t"])) / n,
        tilt=length * part.sd["ut"] / n / age.var / half,
        bend=length * part.sd["uq"] / (2 * n) / age.square_var / half**2,
        middle=weights.y_mean,
        square=(half**2 * age.var, half * age.slope),
    )


def _component_spread(
    nodes: Sequence[Node], parts: Sequence[NoisyMoments], axes: Axes, basis: Basis
) -> tuple[tuple[str, tuple[Estimate, ...], Pooled], ...]:
    """b1 of each node, component by component, with standard errors of noise and of sampling.

    Estimates are not shrunk: shrinking pulls all nodes to one target and would hide how they differ.
    """
    size = axes.components.shape[0]
    half = parts[0].scaling.age_half
    residual = float(basis.residual_sd[size - 1]) / half
    raw = [p.values["ut"] / p.n - p.values["u"] / p.n * (float(p.values["t"]) / p.n) for p in parts]
    found = []
    for j in range(size):
        scale = half / axes.score_sd[j]
        estimates = []
        for node, part, cov in zip(nodes, parts, raw, strict=True):
            age = float(part.values["t"]) / part.n
            noise = np.hypot(part.sd["ut"], part.sd["u"] * age) / part.n
            se = np.hypot(noise, residual / np.sqrt(part.n)) * scale
            estimates.append(Estimate(node.name, float(cov[j] * scale), float(se), released_n(node)))
        found.append((f"b1, component {j + 1}", tuple(estimates), inverse_variance(estimates)))
    return tuple(found)


def _averaged(nodes: tuple[Node, ...], way: str, public: pooling.Public) -> PooledModel:
    shares = pooling.weights_by_n(nodes)
    basis = None
    notes = ["FedAvg is weighted by released N, which is rounded to 5 below 100"]
    if way == "fedavg_shared":
        basis = public.basis
        if basis is None or basis.digest != about(nodes[0]).get("basis"):
            raise InputError("FedAvg in a shared basis needs the basis the nodes used", place="--basis",
                             next_step="give the basis file of the job: --basis FILE.")  # fmt: skip
        notes.append("averaged parameters of the bias-corrected models are approximate; summed moments are exact")

    def average(some: Sequence[Node], weights: Any) -> Weights:
        if basis is not None:
            return pooling.average_shared(some, weights, basis)
        return pooling.average_folded(some, weights)

    alone = {n.name: average([n], np.ones(1)) for n in nodes}
    rest = {}
    for i, node in enumerate(nodes):
        keep = [j for j in range(len(nodes)) if j != i]
        part = shares[keep]
        rest[node.name] = average([nodes[j] for j in keep], part / part.sum())
    counts = sum(released_n(n) or 0 for n in nodes)
    return PooledModel(way, average(nodes, shares), nodes, tuple(float(s) for s in shares), alone, rest, (), basis,
                       tuple(notes), None, {"n": counts})  # fmt: skip
