"""Files as users of the upstream tool make them: one object with everything on it, whole-year ages, plain texts."""

from __future__ import annotations

import pickle
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

N, F, J = 217, 30, 10


def cohort(seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Whole-year ages and features."""
    rng = np.random.default_rng(seed)
    age = rng.integers(45, 80, N).astype(float)
    return age, rng.normal(size=(N, F)) + 0.02 * age[:, None] * rng.normal(size=F)


def brain_delta(seed: int = 4) -> Any:
    """An object with the attributes of an upstream model."""
    module = types.ModuleType("deltab.deltab")
    holder = type("BrainDelta", (), {"__module__": "deltab.deltab"})
    module.BrainDelta = holder
    sys.modules.setdefault("deltab", types.ModuleType("deltab"))
    sys.modules["deltab.deltab"] = module
    age, x = cohort(seed)
    model = holder()
    model.ytrain, model.xtrain = age, x
    model.x_mean, model.x_std = x.mean(0), x.std(0)
    model.x_norm = (x - model.x_mean) / model.x_std
    model.y_mean = float(age.mean())
    model.y_demean = age - model.y_mean
    model.pca = PCA(n_components=J, svd_solver="full").fit(model.x_norm)
    model.x_reduced = model.pca.transform(model.x_norm)
    model.b1 = np.linalg.lstsq(model.x_reduced, model.y_demean, rcond=None)[0]
    model.gamma = np.linalg.lstsq(model.y_demean[:, None], model.x_reduced, rcond=None)[0]
    delta = model.x_reduced @ model.b1 - model.y_demean
    model.b2 = np.linalg.lstsq(model.y_demean[:, None], delta, rcond=None)[0]
    model.delta = delta
    return model


def write_pickle(path: Path, protocol: int) -> Path:
    """The object as upstream's `save` writes it."""
    path.write_bytes(pickle.dumps(brain_delta(), protocol=protocol))
    return path
