"""`run` on deltas made elsewhere, and `run --dry-run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from declarations import DECLARE

Run = Callable[..., tuple[int, str, str]]
RNG = np.random.default_rng(5)
AGE = RNG.uniform(45, 85, 300).round(1)
IDS = [f"P{i:04d}" for i in range(300)]


@pytest.fixture
def files(place: Path) -> Path:
    """Ages and groups, and deltas in another order, as brainageR or `predict` would leave them."""
    people = pd.DataFrame({"participant_id": IDS, "age": AGE, "sex": RNG.choice(["F", "M"], 300)})
    people[["participant_id", "age"]].to_csv(place / "ages.csv", index=False)
    people[["participant_id", "sex"]].to_csv(place / "groups.csv", index=False)
    delta = RNG.normal(0, 4, 300)
    made = pd.DataFrame({"participant_id": IDS, "predicted_age": AGE + delta, "delta": delta})
    made.sample(frac=1, random_state=1).to_csv(place / "deltas.csv", index=False)
    return place


def test_deltas_made_elsewhere_are_judged_by_id(cli: Run, files: Path, profile: Path) -> None:
    made = pd.read_csv(files / "deltas.csv").set_index("participant_id").loc[IDS]
    sex = pd.read_csv(files / "groups.csv")["sex"]
    code, out, err = cli("run", "--ages", "ages.csv", "--deltas", "deltas.csv", "--groups", "groups.csv", "--by", "sex",
                         "--profile", profile, "--out", "outputs")  # fmt: skip
    assert code in (0, 1, 3) and "made elsewhere" in out, err
    names = {p.stem for p in (files / "outputs").glob("*.csv")}
    assert {"delta_mean", "delta_sd", "mean_delta_by_sex", "prediction_error", "n_subjects"} <= names
    evidence = json.loads((files / "outputs" / "inside" / "evidence.json").read_text())
    table = next(o for o in evidence["outputs"] if o["name"] == "mean_delta_by_sex")["raw"]["rows"]
    expected = {label: made["delta"][(sex == label).to_numpy()].mean() for label in ("F", "M")}
    assert {row[0]: pytest.approx(row[2]) for row in table} == expected
    assert not any("beta" in name for name in names)


def test_deltas_and_a_training_exclude_each_other(cli: Run, files: Path) -> None:
    for more in (("--epsilon", 1), ("--features", "deltas.csv")):
        code, _, err = cli("run", "--ages", "ages.csv", "--deltas", "deltas.csv", "--out", "o", *more)
        assert code == 2 and "exclude" in err
    (files / "two.csv").write_text("a,b\n" + "1,2\n" * 300)
    code, _, err = cli("run", "--ages", "ages.csv", "--deltas", "two.csv", "--out", "o")
    assert code == 2 and "no column of deltas" in err and not (files / "o").exists()


def test_a_dry_run_writes_and_spends_nothing(cli: Run, files: Path, profile: Path) -> None:
    before = {p: p.read_bytes() for p in files.rglob("*") if p.is_file()}
    asked = ("run", "--ages", "ages.csv", "--deltas", "deltas.csv", "--groups", "groups.csv", "--by", "sex",
             "--profile", profile, "--out", "outputs", "--dry-run")  # fmt: skip
    code, out, err = cli(*asked)
    assert code == 0 and "nothing was spent" in out and "mean_delta_by_sex" in out, err
    code, told, _ = cli(*asked, "--json")
    assert {o["name"] for o in json.loads(told)["outputs"]} >= {"delta_mean", "mean_delta_by_sex"}
    assert {p: p.read_bytes() for p in files.rglob("*") if p.is_file()} == before


def test_a_dry_run_says_what_would_be_spent_and_what_is_missing(cli: Run, files: Path) -> None:
    people = pd.DataFrame({"participant_id": IDS, "age": AGE, "a": RNG.normal(size=300), "b": RNG.normal(size=300)})
    people.to_csv(files / "all.csv", index=False)
    code, out, _ = cli("run", "--ages", "all.csv", "--features", "all.csv", "--epsilon", 1, "--epsilon-mean", 0.5,
                       "--out", "outputs", "--dry-run")  # fmt: skip
    assert code == 0 and "would spend ε 1 " in out and "would spend ε 0.5" in out
    assert "egress.route" in out and not (files / "budget.db").exists()


def test_without_noise_the_error_of_the_model_is_cross_validated(cli: Run, files: Path, profile: Path) -> None:
    x = AGE[:, None] * 0.05 + RNG.normal(size=(300, 30))
    frame = pd.DataFrame(x, columns=[f"idp_{j}" for j in range(30)])
    frame.assign(participant_id=IDS, age=AGE).to_csv(files / "all.csv", index=False)
    (files / "declare.json").write_text(json.dumps(DECLARE), encoding="utf-8")
    code, out, err = cli("run", "--ages", "all.csv", "--features", "all.csv", "--n-components", 20,
                         "--profile", profile, "--declare", "declare.json", "--out", "outputs")  # fmt: skip
    assert code in (0, 1, 3) and "0 by construction" in out, err
    told = json.loads((files / "outputs" / "prediction_error.json").read_text())
    assert told["about"]["validated"] == "10-fold cross-validation"
    mae = {row[0]: row[2] for row in told["rows"]}["MAE"]
    from sacro_deltab.model import BrainAgeDelta

    in_sample = np.abs(BrainAgeDelta(20).fit(x, AGE).predict(x) - AGE).mean()
    assert in_sample < mae < 1.5 * in_sample
