"""The model side: BrainAgeDelta (scikit-learn estimator), Moments (one pass, mergeable), Weights (numbers only)."""

from __future__ import annotations

from .base import ModelInputError, one_blas_thread, round_significant
from .brain_age import BrainAgeDelta
from .change import AgeChange, max_age_change
from .moments import Moments
from .validation import FoldScore, cross_validate, score_from_moments
from .weights import MODELS, LinearForm, Model, Weights

__all__ = [
    "MODELS",
    "AgeChange",
    "BrainAgeDelta",
    "FoldScore",
    "LinearForm",
    "Model",
    "ModelInputError",
    "Moments",
    "Weights",
    "cross_validate",
    "max_age_change",
    "one_blas_thread",
    "round_significant",
    "score_from_moments",
]
