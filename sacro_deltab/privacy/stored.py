"""A paid result as JSON and back, number for number: what is sealed before anybody sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..model.stored import fields_of
from ..model.weights import Weights
from .moments import NoisyMoments
from .statement import PrivacyStatement
from .statistics import NoisyStatistic
from .training import PrivateModel


def model_json(model: PrivateModel) -> dict[str, Any]:
    """All of a private model."""
    return {
        "weights": model.weights.to_json(),
        "statement": model.statement.to_json(),
        "moments": None if model.noisy_moments is None else model.noisy_moments.to_json(),
        "public": dict(model.public),
        "warnings": list(model.warnings),
        "inside": dict(model.inside),
        "n_noisy": model.n_noisy,
        "intervals": {name: dict(told) for name, told in model.intervals.items()},
    }


def model_of(data: Mapping[str, Any]) -> PrivateModel:
    """Back from `model_json`."""
    return PrivateModel(
        weights=Weights(**fields_of(data["weights"])),
        statement=PrivacyStatement.from_json(data["statement"]),
        noisy_moments=None if data["moments"] is None else NoisyMoments.from_json(data["moments"]),
        public=data["public"],
        warnings=tuple(data["warnings"]),
        inside=data["inside"],
        n_noisy=data["n_noisy"],
        intervals=data["intervals"],
    )


def statistic_json(found: NoisyStatistic) -> dict[str, Any]:
    """All of a noised statistic."""
    return {
        "value": found.value.tolist(),
        "noise_sd": found.noise_sd.tolist(),
        "sensitivity": found.sensitivity,
        "statement": found.statement.to_json(),
        "n_noisy": found.n_noisy,
        "counts": None if found.counts is None else found.counts.tolist(),
        "count_sd": found.count_sd,
    }


def statistic_of(data: Mapping[str, Any]) -> NoisyStatistic:
    """Back from `statistic_json`."""
    return NoisyStatistic(
        value=np.array(data["value"], dtype=np.float64),
        noise_sd=np.array(data["noise_sd"], dtype=np.float64),
        sensitivity=data["sensitivity"],
        statement=PrivacyStatement.from_json(data["statement"]),
        n_noisy=data["n_noisy"],
        counts=None if data.get("counts") is None else np.array(data["counts"], dtype=np.float64),
        count_sd=data.get("count_sd", 0.0),
    )
