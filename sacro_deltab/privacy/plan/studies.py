"""Simulated studies: the model without noise and each path on the same people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...model.weights import Weights
from . import simulation as sim
from .paths import priced, trained

SEED = 20
Test = tuple[sim.Array, sim.Array, sim.Array]


def studies(
    people: sim.Population,
    n: int,
    draws: int,
    test: Test,
    methods: Iterable[str],
    request: Mapping[str, Any],
    *,
    lean: bool = True,
) -> dict[str, sim.Figures]:
    """The model without noise and each path on the same simulated studies."""
    rows: dict[str, list[sim.Row]] = {"plain": [], **{method: [] for method in methods}}
    for k in range(draws):
        X, age, _ = people.people(n, np.random.default_rng([SEED, n, k]))
        row, plain = sim.without_noise(X, age, test)
        rows["plain"].append(row)
        for method in methods:
            job = priced(X, age, people.basis.feature_names, people.basis, None, method, request)[0]
            weights = trained(job, method, np.random.default_rng([SEED, n, k, len(method)]), lean=lean)
            rows[method].append(figures_of(weights, test, plain))
    return {name: sim.Figures.of(values) for name, values in rows.items()}


def figures_of(weights: Weights, test: Test, plain: sim.Array) -> sim.Row:
    """What one model gives on the people of a test."""
    X, age, truth = test
    return sim.scored(weights.delta(X, age, model="unbiased"), weights.predict_age(X), age, truth, plain)
