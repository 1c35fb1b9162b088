"""The model side: BrainAgeDelta (scikit-learn estimator), Moments (one pass, mergeable), Weights (numbers only).

The estimator, and with it scikit-learn (50 MB, half a second), is imported on first use: private training needs none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base import ModelInputError, one_blas_thread, round_significant
from .change import AgeChange, max_age_change
from .linear import MODELS, LinearForm, Model
from .moments import Moments
from .predicting import Prediction, Recalibration
from .weights import Weights

if TYPE_CHECKING:
    from .brain_age import BrainAgeDelta

_LAZY = {
    "BrainAgeDelta": "brain_age",
}

__all__ = [
    "MODELS",
    "AgeChange",
    "BrainAgeDelta",
    "LinearForm",
    "Model",
    "ModelInputError",
    "Moments",
    "Prediction",
    "Recalibration",
    "Weights",
    "max_age_change",
    "one_blas_thread",
    "round_significant",
]


def __getattr__(name: str) -> Any:
    """Import what rests on scikit-learn on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
