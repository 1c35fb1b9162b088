"""The three ways to pool, and why the fourth is refused. Everything here is arithmetic on what nodes released.

summed_moments
    Sums over people add up exactly; one fit of the sum gives every parameter. The default.
fedavg_shared
    Weights in one shared basis, averaged by released N. Meaningful because component j is the same axis everywhere.
fedavg_folded
    One weight a feature and an intercept, averaged by released N: the average of the nodes' predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import InputError, RefusedError
from ..model.weights import Weights
from ..outputs.parameters import (
    BETA1,
    BETA2,
    BETA2SQ,
    CONF_BETA,
    FOLDED,
    GAMMA,
    GAMMASQ,
    MOMENTS,
    Y_MEAN,
    YSQ_MEAN,
    YSQ_SLOPE,
)
from ..privacy.basis import Basis
from ..privacy.bounds import PublicBounds
from ..privacy.fit import Axes, PublicFit, fit_moments
from ..privacy.moments import NoisyMoments
from ..privacy.node import DEFAULT_COMPONENTS, fit_node
from .bundle import Node
from .compare import about, feature_rows, released_n

Array = NDArray[np.float64]
WAYS = ("summed_moments", "fedavg_shared", "fedavg_folded")
NAIVE = (
    "averaging components that each node computed from its own people is refused: component j is another axis at "
    "each node (and its sign is arbitrary), so the average is no model. On real data in two nodes it gave r .75 where "
    "one node alone had .83."
)


@dataclass(frozen=True)
class Public:
    """Public files that give the axes of a pooled fit."""

    basis: Basis | None = None
    bounds: PublicBounds | None = None


def choose_way(nodes: Sequence[Node], wanted: str | None) -> str:
    """The way that what the nodes sent allows; the best first.

    Raises
    ------
    RefusedError
        For node-specific components, and where the nodes sent different things.
    InputError
        For a way that does not exist.
    """
    if wanted in ("naive_fedavg", "node_components"):
        raise RefusedError(NAIVE, next_step="use a shared basis, noised moments, or folded weights.")
    if wanted is not None and wanted not in WAYS:
        raise InputError(f"there is no way {wanted!r} to pool", next_step=f"use one of {', '.join(WAYS)}.")
    can = {way: all(_has(node, way) for node in nodes) for way in WAYS}
    if wanted is not None and not can[wanted]:
        if wanted == "fedavg_shared":
            raise RefusedError(NAIVE, next_step="train every node on one shared basis, or use --way fedavg_folded.")
        lost = next(n for n in nodes if not _has(n, wanted))
        raise RefusedError(f"node {lost.name} did not send what {wanted} needs", path=lost.path,
                           next_step="release it there (run --moments), or choose another way.")  # fmt: skip
    chosen = wanted or next((way for way in WAYS if can[way]), None)
    if chosen is None:
        if all(n.of_type(BETA1) is not None for n in nodes):
            raise RefusedError(NAIVE, next_step="train every node on one shared basis, or release folded weights.")
        raise RefusedError("the nodes sent nothing that can be pooled together",
                           next_step="use one job file: it says what every node sends.")  # fmt: skip
    return chosen


def _has(node: Node, way: str) -> bool:
    if way == "summed_moments":
        return node.of_type(MOMENTS) is not None
    if way == "fedavg_shared":
        return (
            node.of_type(BETA1) is not None
            and node.of_type(FOLDED) is not None
            and about(node).get("basis") is not None
        )
    return node.of_type(FOLDED) is not None


def sum_moments(parts: Sequence[NoisyMoments]) -> NoisyMoments:
    """Sum of several nodes' moments. A Gram that not every node released is left out.

    Raises
    ------
    RefusedError
        Another basis, other bounds, another product clip, or N public at one node and noised at another.
    """
    first = parts[0]
    for part in parts[1:]:
        if part.scaling != first.scaling:
            raise RefusedError(
                "the nodes' moments were scaled by different public numbers (centre of age, radius, basis)",
                next_step="use one basis and one job file at every node.",
            )
        mine, own = part.layout, first.layout
        if (mine.width, mine.confounds, mine.tau, mine.count) != (own.width, own.confounds, own.tau, own.count):
            raise RefusedError("the nodes differ in model variant: their moments have other blocks",
                               next_step="use one job file at every node.")  # fmt: skip
    gram = all(part.layout.gram for part in parts)
    layout = replace(first.layout, gram=gram)
    alike = [_without_gram(part) if part.layout.gram and not gram else part for part in parts]
    total = replace(alike[0], layout=layout)
    for part in alike[1:]:  # noise shares depend on N; sums do not
        total = total.merge(replace(part, layout=layout))
    return total


def _without_gram(part: NoisyMoments) -> NoisyMoments:
    layout = replace(part.layout, gram=False)
    return replace(
        part,
        layout=layout,
        values={name: part.values[name] for name in layout.names},
        sd={name: part.sd[name] for name in layout.names},
    )


def axes_for(nodes: Sequence[Node], moments: NoisyMoments, public: Public) -> tuple[Axes, Basis | None]:
    """Axes of a pooled fit from public files whose digests the nodes named.

    Raises
    ------
    InputError
        The basis or bounds file is missing or is another one.
    """
    context = about(nodes[0])
    names = _conf_names(nodes[0])
    basis = public.basis
    if context.get("basis") is not None:
        if basis is None:
            raise InputError("the nodes used a shared basis, which a pooled fit needs", place="--basis",
                             next_step="give the basis file of the job: --basis FILE.")  # fmt: skip
        if basis.digest != context["basis"]:
            raise RefusedError("this basis is not the one the nodes used: its digest differs", place="--basis",
                               next_step="give the basis file of the job.")  # fmt: skip
        size = moments.layout.width
        if size > basis.n_components or moments.scaling.radius != float(basis.radius[size - 1]):
            raise RefusedError("the nodes' moments do not fit the basis they name", next_step="run them again.")
        _check_centres(nodes[0], basis.feature_names, basis.centre, basis.scale)
        centre, half = _conf_axes(names, basis, public.bounds)
        axes = Axes(
            basis.feature_names, basis.centre, basis.scale, basis.components[:size], basis.score_sd[:size], names,
            centre, half, PublicFit.of_basis(basis, size, moments.scaling),
        )  # fmt: skip
        return axes, basis
    bounds = public.bounds
    if bounds is None or bounds.digest != context.get("bounds") or bounds.centre is None or bounds.scale is None:
        raise InputError("the nodes used public bounds, which a pooled fit needs", place="--bounds",
                         next_step="give the bounds file of the job: --bounds FILE.")  # fmt: skip
    features = bounds.feature_names or tuple(r[0] for r in feature_rows(nodes[0]))
    width = moments.layout.width
    if len(features) != width:
        raise RefusedError("the nodes' moments have another number of features than the bounds")
    centre, half = _conf_axes(names, None, bounds)
    centres, scales = np.array(bounds.centre), np.array(bounds.scale)
    return Axes(features, centres, scales, np.zeros((1, width)), np.ones(1), names, centre, half), None


def _conf_names(node: Node) -> tuple[str, ...]:
    document = node.of_type(CONF_BETA)
    if document is not None:
        return tuple(c.name for c in document.columns[1:])
    folded = node.of_type(FOLDED)
    rows = () if folded is None else folded.rows
    return tuple(
        str(r[0]).removeprefix("confound ") for r in rows if str(r[0]).startswith("confound ") and r[1] is None
    )


def _conf_axes(names: Sequence[str], basis: Basis | None, bounds: PublicBounds | None) -> tuple[Any, Any]:
    if not names:
        return None, None
    pairs: Any = None
    if bounds is not None and bounds.confound_bounds is not None:
        pairs = bounds.confound_bounds
    elif basis is not None and all(name in basis.confounds for name in names):
        pairs = [basis.confounds[name] for name in names]
    if pairs is None or len(pairs) != len(names):
        raise InputError("the nodes used confounds, whose public bounds are missing", place="--bounds",
                         next_step="give the bounds file of the job.")  # fmt: skip
    low, high = np.array(pairs, dtype=float).T
    return (low + high) / 2, (high - low) / 2


def _check_centres(node: Node, names: Sequence[str], centre: Array, scale: Array) -> None:
    """The centre and scale a node printed are the basis's, as rounded for release."""
    rows = feature_rows(node)
    if not rows:
        return
    if tuple(r[0] for r in rows) != tuple(names):
        raise RefusedError(f"the features of node {node.name} are not those of the basis", path=node.path)
    shown_c, shown_s = np.array([r[1] for r in rows]), np.array([r[2] for r in rows])
    near = np.abs(shown_c - centre) <= 0.011 * scale + 0.006 * np.abs(centre)
    if not bool(near.all()) or not bool((np.abs(shown_s - scale) <= 0.006 * scale).all()):
        raise RefusedError(f"centre or scale at node {node.name} are not those of the basis it names", path=node.path)


def fit(moments: NoisyMoments, axes: Axes, basis: Basis | None, n_components: int | None = None) -> Weights:
    """One fit of summed moments; post-processing, no budget."""
    if basis is not None:
        return fit_moments(moments, axes)
    return fit_node(moments, axes, n_components or DEFAULT_COMPONENTS)


def weights_by_n(nodes: Sequence[Node]) -> Array:
    """Shares of released N. A node whose N was noised gives its noisy N.

    Raises
    ------
    RefusedError
        A node released no N.
    """
    counts = []
    for node in nodes:
        n = released_n(node)
        if n is None or n < 1:
            raise RefusedError(f"node {node.name} released no N, and the average is weighted by it", path=node.path,
                               next_step="release n_subjects there.")  # fmt: skip
        counts.append(float(n))
    total = np.array(counts)
    return np.asarray(total / total.sum())


def average_shared(nodes: Sequence[Node], shares: Array, basis: Basis) -> Weights:
    """FedAvg of weights in one shared basis.

    b1 and the intercept are averaged; the other parameters are averaged where every node sent them, which is an
    approximation (they are no linear functions of the sums), said in the output.
    """

    def mean(kind: str) -> Array | None:
        documents = [n.of_type(kind) for n in nodes]
        if any(d is None for d in documents):
            return None
        rows = [np.array([[float(c) for c in r[1:]] for r in d.rows]) for d in documents if d is not None]  # type: ignore[arg-type]
        return np.asarray(sum(w * r for w, r in zip(shares, rows, strict=True)))

    b1 = mean(BETA1)
    assert b1 is not None
    b1 = b1[:, 0]
    if b1.size > basis.n_components:
        raise RefusedError("the nodes' weights have more components than the basis")
    _check_centres(nodes[0], basis.feature_names, basis.centre, basis.scale)
    intercept = float(sum(w * intercept_of(n) for w, n in zip(shares, nodes, strict=True)))
    y = mean(Y_MEAN)
    y_mean = intercept if y is None else float(y[0, 0])
    length = float(b1 @ b1)
    offset = (y_mean - intercept) * b1 / length if length > 0 else np.zeros_like(b1)
    b2, b2sq, gamma, gammasq = (mean(k) for k in (BETA2, BETA2SQ, GAMMA, GAMMASQ))
    ysq_mean, ysq_slope = mean(YSQ_MEAN), mean(YSQ_SLOPE)
    return Weights(
        feature_names=basis.feature_names, x_mean=basis.centre, x_std=basis.scale, b1=b1, y_mean=y_mean,
        components=basis.components[: b1.size], score_mean=offset,
        b2=None if b2 is None else b2[:, 0],
        b2sq=None if b2sq is None else b2sq[:, 0],
        gamma=None if gamma is None else gamma.T,
        gammasq=None if gammasq is None else gammasq.T,
        ysq_mean=None if ysq_mean is None else float(ysq_mean[0, 0]),
        ysq_slope=None if ysq_slope is None else float(ysq_slope[0, 0]),
    )  # fmt: skip


def average_folded(nodes: Sequence[Node], shares: Array) -> Weights:
    """FedAvg of folded weights: the average of the nodes' simple predictions, in feature space."""
    rows = [feature_rows(n) for n in nodes]
    first = rows[0]
    coef = sum(w * np.array([r[3] for r in part]) for w, part in zip(shares, rows, strict=True))
    intercept = float(sum(w * intercept_of(n) for w, n in zip(shares, nodes, strict=True)))
    if any(_conf_names(n) for n in nodes):
        raise RefusedError("folded weights with confounds are pooled by summed moments only",
                           next_step="send noised moments.")  # fmt: skip
    return Weights(
        feature_names=tuple(r[0] for r in first),
        x_mean=np.array([r[1] for r in first]),
        x_std=np.array([r[2] for r in first]),
        b1=np.asarray(coef),
        y_mean=intercept,
    )


def intercept_of(node: Node) -> float:
    """Intercept of the folded weights in years."""
    document = node.of_type(FOLDED)
    found = None if document is None else next((r[3] for r in document.rows if r[0] == "(intercept)"), None)
    if not isinstance(found, int | float):
        raise RefusedError(f"the folded weights of node {node.name} have no intercept", path=node.path)
    return float(found)


def drop(moments: NoisyMoments, total: NoisyMoments) -> NoisyMoments:
    """Pooled minus one node, as anybody can compute it: the numbers subtract, and so does the node's noise."""
    layout = total.layout
    rest = {name: total.values[name] - moments.values[name] for name in layout.names}
    sd = {name: float(np.sqrt(max(total.sd[name] ** 2 - moments.sd[name] ** 2, 0.0))) for name in layout.names}
    count = None if total.n_public is None or moments.n_public is None else total.n_public - moments.n_public
    return replace(total, values=rest, sd=sd, n_public=count, releases=total.releases - moments.releases)


def summary(weights: Weights) -> Mapping[str, float]:
    """A few numbers to print."""
    return {"y_mean": weights.y_mean, "norm_b1": float(np.linalg.norm(weights.b1))}
