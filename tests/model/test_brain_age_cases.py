"""BrainAgeDelta against the 50-digit reference cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sacro_deltab.model import MODELS, BrainAgeDelta

CASES = Path(__file__).parents[2] / "fixtures" / "cases" / "dp"
TOL = 1e-9


def load(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("solver", ["auto", "svd", "eigh"])
@pytest.mark.parametrize("name", [f"deltab_small_{i}" for i in range(4)])
def test_fit_and_predictions_agree_with_the_reference(name: str, solver: str) -> None:
    case = load(name)
    i, want = case["inputs"], case["expected"]["parameters"]
    model = BrainAgeDelta(n_components=i["J"], svd_solver=solver).fit(i["X"], i["ages"], i["conf"])
    for key, value in want.items():
        if key == "pca_mean":
            continue
        got = getattr(model, key + "_")
        assert np.shape(got) == np.shape(value), key
        np.testing.assert_allclose(got, value, rtol=0, atol=TOL, err_msg=key)
    if i["conf"] is not None:
        np.testing.assert_allclose(model.score_mean_, model.components_ @ np.array(want["pca_mean"]), atol=TOL)
    for kind in MODELS:
        expected = case["expected"]["predicted_delta"][kind]
        got = model.delta(i["X_predict"], i["ages_predict"], i["conf_predict"], model=kind)
        np.testing.assert_allclose(got, expected, rtol=0, atol=TOL)


def test_differs_from_the_upstream_orthogonalisation_fault() -> None:
    case, good = load("deltab_upstream_orth_fault"), load("deltab_small_1")
    i = case["inputs"]
    assert i["X"] == good["inputs"]["X"]
    model = BrainAgeDelta(n_components=i["J"]).fit(i["X"], i["ages"])
    assert np.abs(model.b2sq_ - case["expected"]["b2sq"]).max() > 1e-3
    together = model.delta(i["X_predict"], i["ages_predict"])
    alone = [model.delta([x], [a])[0] for x, a in zip(i["X_predict"], i["ages_predict"], strict=True)]
    assert together.tolist() == alone  # to the last bit
    assert np.abs(together - case["expected"]["predicted_unbiased_quadratic_as_set"]).max() > 1e-2


def test_kaiser_guttman_is_upstreams() -> None:
    case = load("kaiser_guttman")
    x = np.array(case["inputs"]["X"])
    age = np.linspace(50, 70, len(x)) + np.sin(np.arange(len(x)))
    full = BrainAgeDelta(n_components=5).fit(x, age)
    np.testing.assert_allclose(full.explained_variance_, case["expected"]["explained_variance"], atol=TOL)
    for model in (BrainAgeDelta(kaiser_guttman=True), BrainAgeDelta("kaiser_guttman")):
        assert model.fit(x, age).n_components_ == case["expected"]["n_gt_1"]
