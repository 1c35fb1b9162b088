"""Planning a federation: K nodes from one table or from simulation, every way to pool and every budget side by side.

What is compared on held-out people: the correlation of the unbiased delta with the true delta (simulation) or of the
predicted with the true age (a real table), and the mean absolute error of the simple prediction in years.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..model.moments import Moments
from ..model.weights import Weights
from ..privacy.fit import Axes, PublicFit, fit_moments
from ..privacy.heuristic import documents_recipe
from ..privacy.moments import NoisyMoments, pool
from ..privacy.training import train_private
from .worlds import Array, People, World

WAYS = ("direct", "one_node", "summed_moments", "fedavg_shared", "fedavg_folded", "naive_fedavg")
# What no private data at all would give: always shown beside the ways.
NULL_WAYS = ("public_only", "constant")
# Ways that a federation can take: `direct` is everybody in one place, `naive_fedavg` is refused by `aggregate`.
_ADVISABLE = ("summed_moments", "fedavg_shared", "fedavg_folded", "one_node", *NULL_WAYS)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """One way at one budget. epsilon: per node and release, None without noise. Averages over repeats."""

    way: str
    epsilon: float | None
    correlation: float
    mae: float

    def to_json(self) -> dict[str, Any]:
        """As `simulate-federation --json` prints it."""
        return {
            "way": self.way,
            "epsilon": self.epsilon,
            "correlation": round(self.correlation, 4),
            "mae": round(self.mae, 3),
        }


@dataclass(frozen=True)
class Predictor:
    """Predicted age, and a delta freed of its slope on age."""

    predict: Callable[[Array], Array]
    delta: Callable[[Array, Array], Array]


def simulate_federation(
    worlds: Sequence[World],
    *,
    epsilons: Sequence[float | None] = (None, 1.0, 4.0),
    ways: Sequence[str] = WAYS,
    repeats: int = 1,
    say: Say | None = None,
) -> list[Result]:
    """Every way at every budget, averaged over worlds and, with noise, over `repeats` draws in each.

    ε is per node and release, δ the smaller of 1e-6 and 1/N². `direct` is everybody in one place at the same ε: what a
    federation is measured against. `one_node` is the largest node alone.
    """
    unknown = [way for way in ways if way not in WAYS]
    if unknown:
        raise InputError(f"there is no way {unknown[0]!r}", next_step=f"use some of {', '.join(WAYS)}.")
    results = []
    for epsilon in epsilons:
        if say is not None:
            say("without noise" if epsilon is None else f"ε = {epsilon:g} per node")
        for way in ways:
            scores = [
                _score(make(way, world, epsilon), world.held_out)
                for world in worlds
                for _ in range(1 if epsilon is None else repeats)
            ]
            correlation, mae = np.mean(scores, axis=0)
            results.append(Result(way, epsilon, float(correlation), float(mae)))
    for way in NULL_WAYS:
        correlation, mae = np.mean([_score(_null(way, world), world.held_out) for world in worlds], axis=0)
        results.append(Result(way, None, float(correlation), float(mae)))
    return results


def advised(results: Sequence[Result]) -> str:
    """The way to take: least error at the smallest budget simulated, and `public_only` or `constant` where the ways are
    no better than those. A way whose correlation is below that of the public model by more than 0.03 is left out."""
    budgets = [r.epsilon for r in results if r.epsilon is not None]
    smallest = min(budgets, default=None)
    fit = [r for r in results if r.way in _ADVISABLE and (r.epsilon == smallest or r.way in NULL_WAYS)]
    floor = next((r.correlation for r in fit if r.way == "public_only"), 0.0) - 0.03
    return min((r for r in fit if r.way == "constant" or r.correlation >= floor), key=lambda r: r.mae).way


def _null(way: str, world: World) -> Predictor:
    """The public people's own model, or their median age for everybody."""
    if way == "constant":
        median = float(np.median(world.public.age))
        return Predictor(lambda X: np.full(X.shape[0], median), lambda _, age: median - age)
    return _of_weights(_fit_in_basis(world, world.public))


def make(way: str, world: World, epsilon: float | None) -> Predictor:
    """One pooled model."""
    if epsilon is None:
        return _exact(way, world)
    if way == "direct":
        return _of_weights(_private(world, world.together, epsilon, "gradient").weights)
    if way == "one_node":
        return _of_weights(_private(world, _largest(world), epsilon, "gradient").weights)
    if way == "summed_moments":
        return _of_weights(private_sum(world, epsilon))
    shares = _shares(world)
    if way == "fedavg_shared":
        made = [_private(world, node, epsilon, "gradient").weights for node in world.nodes]
        return _average([_of_weights(w) for w in made], shares)
    if way == "fedavg_folded":
        made = [_private(world, node, epsilon, "node").weights for node in world.nodes]
        return _debiased(_average_simple(made, shares), world)
    return _naive([_documents(world, node, epsilon) for node in world.nodes], shares)


def _exact(way: str, world: World) -> Predictor:
    size = world.n_components
    if way == "direct":
        return _of_weights(_moments(world, world.together).fit(n_components=size))
    if way == "one_node":
        return _of_weights(_moments(world, _largest(world)).fit(n_components=size))
    parts = [_moments(world, node) for node in world.nodes]
    if way == "summed_moments":
        total = parts[0]
        for part in parts[1:]:
            total = total.merge(part)
        return _of_weights(total.fit(n_components=size))
    shares = _shares(world)
    if way == "fedavg_shared":
        fits = [_of_weights(_fit_in_basis(world, node)) for node in world.nodes]
        return _average(fits, shares)
    own = [part.fit(n_components=size) for part in parts]
    if way == "fedavg_folded":
        return _debiased(_average_simple(own, shares), world)
    return _naive(own, shares)


def private_sum(world: World, epsilon: float) -> Weights:
    """Noised moments of every node, summed, one fit: what `aggregate` does."""
    parts: list[NoisyMoments] = []
    for node in world.nodes:
        trained = _private(world, node, epsilon, "moments")
        assert trained.noisy_moments is not None
        parts.append(trained.noisy_moments)
    basis, total = world.basis, pool(parts)
    public = PublicFit.of_basis(basis, basis.n_components, total.scaling)
    axes = Axes(basis.feature_names, basis.centre, basis.scale, basis.components, basis.score_sd, public=public)
    return fit_moments(total, axes)


def _private(world: World, people: People, epsilon: float, how: str) -> Any:
    """Private training; the noise is real and no budget is charged, because nobody's data leave a simulation."""
    basis = None if how == "node" else world.basis
    options: dict[str, Any] = {"gram": False} if how == "moments" else {}
    return train_private(
        people.X, people.age, feature_names=world.feature_names, basis=basis,
        bounds=world.basis.bounds() if basis is None else None, epsilon=epsilon, delta_dp=None,
        n_components=None if how == "node" else world.n_components,
        method="moments" if how == "node" else how,  # type: ignore[arg-type]
        spend=_free, options=options,
    )  # fmt: skip


def _free(_: Any) -> None:
    """No ledger: a simulation spends nobody's budget."""


def _documents(world: World, people: People, epsilon: float) -> Weights:
    """The governing documents' recipe: a node's own components, and noise on each parameter. Not private."""

    made = documents_recipe(
        people.X, people.age, feature_names=world.feature_names, n_components=world.n_components, epsilon=epsilon,
        spend=_free,
    )  # fmt: skip
    return made.weights


def _moments(world: World, people: People) -> Moments:
    blank = Moments(world.feature_names, x_centre=world.basis.centre, x_scale=world.basis.scale)
    return blank.update(people.X, people.age)


def _fit_in_basis(world: World, people: People) -> Weights:
    """Least squares on the scores of the shared basis, without noise."""
    basis = world.basis
    z = (people.X - basis.centre) / basis.scale
    scores = z @ basis.components.T
    names = [f"component {j + 1}" for j in range(scores.shape[1])]
    own = Moments(tuple(names)).update(scores, people.age).fit()
    b1 = own.b1 / own.x_std
    gamma = None if own.gamma is None else own.gamma * own.x_std
    return replace(
        own, feature_names=basis.feature_names, x_mean=basis.centre, x_std=basis.scale, components=basis.components,
        b1=b1, gamma=gamma, gammasq=None, score_mean=own.x_mean, explained_variance=None,
    )  # fmt: skip


def _shares(world: World) -> Array:
    sizes = np.array([node.n for node in world.nodes], dtype=float)
    return np.asarray(sizes / sizes.sum())


def _largest(world: World) -> People:
    return max(world.nodes, key=lambda node: node.n)


def _of_weights(weights: Weights) -> Predictor:
    return Predictor(weights.predict_age, lambda X, age: weights.delta(X, age, model="unbiased"))


def _average(parts: Sequence[Predictor], shares: Array) -> Predictor:
    """Average of linear models of one basis: the same as averaging their weights."""
    return Predictor(
        lambda X: np.asarray(sum(w * p.predict(X) for w, p in zip(shares, parts, strict=True))),
        lambda X, age: np.asarray(sum(w * p.delta(X, age) for w, p in zip(shares, parts, strict=True))),
    )


def _average_simple(weights: Sequence[Weights], shares: Array) -> Callable[[Array], Array]:
    forms = [w.folded("simple", raw_units=True) for w in weights]
    coef = np.asarray(sum(s * f.coef for s, f in zip(shares, forms, strict=True)))
    intercept = float(sum(s * f.intercept for s, f in zip(shares, forms, strict=True)))
    return lambda X: np.asarray(X @ coef + intercept)


def _debiased(predict: Callable[[Array], Array], world: World) -> Predictor:
    """Folded weights hold the simple model only: the receiver takes the slope on age from the public people."""
    gap = predict(world.public.X) - world.public.age
    slope, start = np.polyfit(world.public.age, gap, 1)
    return Predictor(predict, lambda X, age: np.asarray(predict(X) - age - (slope * age + start)))


def _naive(parts: Sequence[Weights], shares: Array) -> Predictor:
    """FedAvg of everything, components of different nodes included: no model, shown beside the others."""

    def mean(name: str) -> Array:
        return np.asarray(sum(w * np.asarray(getattr(p, name)) for w, p in zip(shares, parts, strict=True)))

    b2 = None if parts[0].b2 is None else mean("b2")
    averaged = Weights(
        feature_names=parts[0].feature_names, x_mean=mean("x_mean"), x_std=mean("x_std"),
        components=mean("components"), b1=mean("b1"), b2=b2, y_mean=float(mean("y_mean")),
    )  # fmt: skip
    return _of_weights(averaged)


def _score(model: Predictor, people: People) -> tuple[float, float]:
    predicted = model.predict(people.X)
    mae = float(np.abs(predicted - people.age).mean())
    if people.true_delta is None:
        return _correlation(predicted, people.age), mae
    return _correlation(model.delta(people.X, people.age), people.true_delta), mae


def _correlation(a: Array, b: Array) -> float:
    if float(a.std()) == 0 or float(b.std()) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def lines_of(results: Sequence[Result], world: World) -> list[str]:
    """The comparison as a table."""
    kind = "true delta" if world.held_out.true_delta is not None else "age"
    lines = [
        f"{len(world.nodes)} nodes of {', '.join(str(n.n) for n in world.nodes)} people, {len(world.feature_names)} "
        f"features, {world.n_components} components; {world.public.n} public people, {world.held_out.n} held out",
        f"r: correlation with {kind}; MAE: years",
        f"{'way':<16} {'ε per node':>10} {'r':>7} {'MAE':>7}",
    ]
    for r in results:
        budget = "no noise" if r.epsilon is None else f"{r.epsilon:g}"
        lines.append(f"{r.way:<16} {budget:>10} {r.correlation:>7.3f} {r.mae:>7.2f}")
    return [
        *lines,
        f"Advised at the smallest budget: {advised(results)}. public_only and constant use no private data at all.",
        "naive_fedavg averages components of different nodes; it is refused by `aggregate` and is not private.",
    ]


def plot(results: Sequence[Result], path: Any) -> None:
    """Bars by way and budget."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # late: matplotlib is heavy
    from matplotlib.figure import Figure

    ways = list(dict.fromkeys(r.way for r in results))
    budgets = list(dict.fromkeys(r.epsilon for r in results))
    figure = Figure(figsize=(8, 4))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.09, 0.2, 0.89, 0.72))
    width = 0.8 / len(budgets)
    for k, budget in enumerate(budgets):
        heights = [next((r.correlation for r in results if (r.way, r.epsilon) == (way, budget)), 0.0) for way in ways]
        places = [i + (k - (len(budgets) - 1) / 2) * width for i in range(len(ways))]
        axes.bar(places, heights, width, label="no noise" if budget is None else f"ε {budget:g} per node")
    axes.set_xticks(range(len(ways)), ways, rotation=15, fontsize=8)
    axes.set_ylabel("correlation on held-out people")
    axes.legend(fontsize=8)
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise InputError(
            "the plot cannot be written", path=path, next_step="use a name that ends in .png or .svg."
        ) from error
