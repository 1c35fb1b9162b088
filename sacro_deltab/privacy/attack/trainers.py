"""The training procedures that shadow models are made by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...model.weights import Weights
from ...outputs.parameters import TRAINED
from ..job import Job
from ..training import Price, prepare
from .shadows import Array, Trainer


def plain_trainer(n_components: int | None) -> Trainer:
    """The training without noise: `BrainAgeDelta` with J components."""
    from ...model import BrainAgeDelta  # late: brings sklearn

    def train(X: Array, age: Array, confounds: Array | None) -> Weights:
        limit = min(X.shape[0] - 1, X.shape[1])
        size = None if n_components is None else min(n_components, limit)
        return BrainAgeDelta(n_components=size).fit(X, age, confounds=confounds).weights_

    return train


def private_trainer(**settings: Any) -> Trainer:
    """The private training with these settings (`train_private`'s, without `spend`).

    Its shadow models never leave, so they are spent on no ledger. What a training checks and prices once is kept per
    number of people; the noise is drawn anew every time.
    """

    usual: dict[str, Any] = {
        "confounds": None, "confound_names": None, "bounds": None, "basis": None, "delta_dp": None,
        "adjacency": "zero_out_N_public", "unit": "person", "n_components": None, "method": "auto", "registered": None,
        "ruleset_bounds": None, "outputs": TRAINED, "options": {},
    }  # fmt: skip
    prepared: dict[int, tuple[Job, Price]] = {}

    def train(X: Array, age: Array, confounds: Array | None) -> Weights:
        n = int(age.size)
        if n not in prepared:
            prepared[n] = prepare(X, age, **{**usual, **settings, "confounds": confounds})
        job, price = prepared[n]
        return price.run(replace(job, X=X, age=age, confounds=None if job.confounds is None else confounds))[0]

    return train
