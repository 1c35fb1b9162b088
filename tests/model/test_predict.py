"""One way to apply a node's, a released and a pooled model; what is about people stays out of what leaves."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sacro_deltab.base.errors import InputError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.kinds import documents as build
from sacro_deltab.kinds import weights as weight_documents
from sacro_deltab.model import BrainAgeDelta, ModelInputError, Recalibration, Weights
from sacro_deltab.model.aliases import bare_name, match_names
from sacro_deltab.run.predicting import PredictPlan, run_predict

NAMES = ["lh_bankssts_thickness", "rh_insula_thickness", "lh_cuneus_area", "Left-Thalamus-Proper", "rh_insula_volume"]
SAME = {
    "lh_bankssts_thickness": ["L_bankssts_thickavg", "lh.bankssts.thickness", "26756-2.0", "f.26756.2.0", "p26756_i2"],
    "rh_insula_thickness": ["R_insula_thickavg", "26889-2.0", "rh_aparc_insula_thickness"],
    "lh_cuneus_area": ["L_cuneus_surfavg", "26725"],
    "lh_thalamus_volume": ["Left-Thalamus-Proper", "Left-Thalamus", "Lthal", "26558-2.0"],
    "rh_accumbens_volume": ["Right-Accumbens-area", "Raccumb", "26595-3.0"],
    "rh_insula_volume": ["R_insula_grayvol", "26922"],
    "lh_g_and_s_frontomargin_thickness": ["lh_G&S_frontomargin_thickness", "lh_G_and_S_frontomargin_thickness"],
}


def _people(n: int = 200, f: int = 5, seed: int = 3) -> tuple[pd.DataFrame, np.ndarray, Weights]:
    people = smith_cohort(n, f, seed=seed)
    frame = pd.DataFrame(people.X, columns=NAMES[:f], index=[f"P{i}" for i in range(n)])
    return frame, people.age, BrainAgeDelta(3).fit(frame, people.age).weights_


@pytest.mark.parametrize("plain", SAME)
def test_names_of_one_feature_have_one_plain_form(plain: str) -> None:
    assert {bare_name(name) for name in SAME[plain]} == {plain}


@given(st.text(max_size=40))
def test_a_plain_name_is_its_own_plain_form(name: str) -> None:
    assert bare_name(bare_name(name)) == bare_name(name)


def test_two_columns_that_are_one_feature_are_refused() -> None:
    with pytest.raises(ModelInputError, match="both the feature"):
        match_names(["lh_insula_thickness"], ["L_insula_thickavg", "26788-2.0"])
    with pytest.raises(ModelInputError, match="stand for both"):
        match_names(["lh_insula_thickness", "L_insula_thickavg"], ["26788"])
    assert match_names(["a"], ["A"], aliases=False).columns == (None,)


def test_order_names_and_holes() -> None:
    frame, age, weights = _people()
    expected = weights.delta(frame, age)
    other = frame[frame.columns[::-1]].rename(columns={"lh_bankssts_thickness": "L_bankssts_thickavg"})
    found = weights.predict(other.assign(age=age, comment="words"), "age")
    assert found.model == "unbiased_quadratic" and found.delta.index.equals(frame.index)
    np.testing.assert_array_equal(found.delta.to_numpy(), expected)
    np.testing.assert_allclose(found.predicted_age - age, expected, atol=1e-12)
    assert found.renamed == (("L_bankssts_thickavg", "lh_bankssts_thickness"),) and not found.filled
    holes = frame.drop(columns=NAMES[1])
    holes.iloc[:7, 0] = np.nan
    filled = weights.predict(holes)
    assert dict(filled.filled) == {NAMES[0]: 7, NAMES[1]: len(frame)}
    whole = frame.assign(**{NAMES[1]: weights.x_mean[1]})
    whole.iloc[:7, 0] = weights.x_mean[0]
    np.testing.assert_array_equal(filled.predicted_age.to_numpy(), weights.predict_age(whole))
    with pytest.raises(ModelInputError, match="true ages"):
        _ = filled.delta
    with pytest.raises(ModelInputError, match="none of the model"):
        weights.predict(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(ModelInputError, match="text"):
        weights.predict(frame.assign(lh_cuneus_area="a"))


def test_a_notebook_shows_no_value_and_no_count() -> None:
    frame, age, weights = _people()
    found = weights.predict(frame, age)
    for shown in (repr(found), found._repr_html_(), repr(weights), repr(found.recalibrated(age).recalibration)):
        assert len(shown) < 200 and not any(ch.isdigit() and "." in shown.split(ch)[0][-1:] for ch in shown)


@given(st.floats(-9, 9), st.floats(-0.5, 0.5), st.floats(0.2, 5))
def test_recalibration_takes_mean_and_slope_off(shift: float, slope: float, sd: float) -> None:
    rng = np.random.default_rng(0)
    age = rng.uniform(50, 80, 90)
    delta = rng.normal(0, 3, 90) + shift + slope * (age - 60)
    new = Recalibration.fit(delta, age, sd=sd).apply(delta, age)
    assert abs(new.mean()) < 1e-9 and abs(np.polyfit(age, new, 1)[0]) < 1e-9
    assert np.isclose(np.sqrt(new @ new / 88), sd)
    with pytest.raises(ModelInputError):
        Recalibration.fit(delta[:2], age[:2])


def test_weights_of_a_pooled_folder(tmp_path: Path) -> None:
    from sacro_deltab.federation.results import model_documents

    frame, age, weights = _people()
    documents = model_documents(weights, kind="pooled_model", prefix="pooled", title="t", about={},
                                components_public=True)  # fmt: skip
    for document in documents:
        (tmp_path / f"{document.name}.json").write_text(document.to_json())
    again = Weights.load(tmp_path)
    np.testing.assert_allclose(again.delta(frame, age), weights.delta(frame, age), atol=1e-9)
    assert again.best_model == "unbiased_quadratic"


def _released(folder: Path, weights: Weights) -> None:
    folder.mkdir()
    documents = [
        weight_documents.documents(weights, "t", {})[-1],
        build.scalar("y_mean", "y_mean", "t", "y_mean", weights.y_mean, about={}),
        build.vector("beta2", "beta2", "t", ["age"], weights.b2, about={}),
    ]
    for document in documents:
        (folder / f"{document.name}.json").write_text(document.to_json())


def test_the_file_of_deltas_is_private_and_outside_what_leaves(tmp_path: Path) -> None:
    frame, age, weights = _people()
    _released(tmp_path / "outputs", weights)
    frame.assign(age=age, dx=["HC", "AD"] * 100).rename_axis("participant_id").to_csv(tmp_path / "c.csv")
    plan = PredictPlan(tmp_path / "outputs", tmp_path / "c.csv", tmp_path / "deltas.csv", reference="dx=HC",
                       recalibrate=True)  # fmt: skip
    done = run_predict(plan)
    table = pd.read_csv(done.out, index_col="participant_id")
    assert stat.S_IMODE(done.out.stat().st_mode) == 0o600 and list(table.index) == list(frame.index)
    assert abs(table["delta"][::2].mean()) < 1e-9 < abs(table["delta"].mean())
    assert "inside" in " ".join(done.said)
    with pytest.raises(InputError, match="exists"):
        run_predict(plan)
    (tmp_path / "outputs" / "results.json").write_text("{}")
    for place in (tmp_path / "outputs" / "d.csv", tmp_path / "outputs" / "deeper" / "d.csv"):
        with pytest.raises(InputError, match="may leave"):
            run_predict(PredictPlan(tmp_path / "outputs", tmp_path / "c.csv", place))
    assert not (tmp_path / "outputs" / "d.csv").exists()


def test_small_counts_are_not_said(tmp_path: Path) -> None:
    frame, age, weights = _people()
    _released(tmp_path / "outputs", weights)
    frame.iloc[:7, 0] = np.nan
    frame.assign(age=age).to_csv(tmp_path / "c.csv", index=False)
    done = run_predict(PredictPlan(tmp_path / "outputs", tmp_path / "c.csv", tmp_path / "d.csv"))
    assert any("fewer than 20 people" in line for line in done.said) and not any(" 7 " in line for line in done.said)
