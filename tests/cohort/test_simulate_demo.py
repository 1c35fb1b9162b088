"""The demonstration study: what it must hold, and that its seeds fix it."""

from __future__ import annotations

import numpy as np

from sacro_deltab.cohort import read_cohort
from sacro_deltab.cohort.simulate import demo_cohort, demo_feature_names, demo_public_reference
from sacro_deltab.model import BrainAgeDelta


def test_study_has_the_hard_cases() -> None:
    demo = demo_cohort()
    sites = demo.table["site"].value_counts()
    assert 600 <= len(demo.table) <= 800 and (sites < 20).sum() >= 2 and sites.min() < 10
    diagnosis = demo.table["diagnosis"].value_counts()
    assert diagnosis.min() < 20 < diagnosis["AD"] and set(demo.table["sex"]) == {"F", "M"}
    assert 0 < demo.features.isna().to_numpy().mean() < 0.02
    total = demo.table["Left-Hippocampus"] + demo.table["Right-Hippocampus"]
    both = demo.table[["Left-Hippocampus", "Right-Hippocampus", "Total-Hippocampus"]].notna().all(axis=1)
    np.testing.assert_allclose(demo.table.loc[both, "Total-Hippocampus"], total[both])
    assert demo.table["Left-non-WM-hypointensities"].nunique() == 1
    assert demo.table["participant_id"].is_unique


def test_seeds_fix_everything() -> None:
    assert demo_cohort(3).table.equals(demo_cohort(3).table)
    assert not demo_cohort(3).table.equals(demo_cohort(4).table)
    assert not set(demo_public_reference().table["participant_id"]) & set(demo_cohort().table["participant_id"])


def test_reference_people_share_the_population() -> None:
    public, study = demo_public_reference(), demo_cohort()
    assert tuple(public.features.columns) == demo_feature_names() == study.feature_names
    assert not public.features.isna().any().any()
    model = BrainAgeDelta(n_components=10).fit(public.features, public.age)
    x = study.features.fillna(study.features.median())
    assert np.corrcoef(model.predict(x), study.age)[0, 1] > 0.8
    spread = study.features.std() / public.features.std()
    assert spread.drop("Left-non-WM-hypointensities").between(0.7, 1.5).all()


def test_reads_as_a_cohort() -> None:
    demo = demo_cohort()
    cohort = read_cohort(table=demo.table, group_columns=demo.group_names, confound_columns=demo.confound_names)
    assert cohort.feature_names == demo.feature_names and cohort.missing > 0 and cohort.checked_people
    filled = cohort.filled("median")
    model = BrainAgeDelta(n_components=10).fit(filled.features_frame(), filled.age, filled.confounds)
    delta = model.delta(filled.features_frame(), filled.age, filled.confounds)
    assert np.corrcoef(delta, demo.true_delta)[0, 1] > 0.7
    assert any("constant" in r for r in model.repairs_)
