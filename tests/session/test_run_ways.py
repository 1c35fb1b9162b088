"""`run` on deltas made elsewhere, and `run --dry-run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from declarations import DECLARE

from sacro_deltab.check import check_paths
from sacro_deltab.model import BrainAgeDelta

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


@pytest.mark.parametrize("in_sample", [False, True])
def test_without_noise_deltas_and_errors_are_cross_validated(
    cli: Run, files: Path, profile: Path, in_sample: bool
) -> None:
    """In-sample ones are asked for by name and say so; a checker with the cohort comes to the same numbers."""
    x = AGE[:, None] * 0.05 + RNG.normal(size=(300, 30))
    frame = pd.DataFrame(x, columns=[f"idp_{j}" for j in range(30)])
    frame.assign(participant_id=IDS, age=AGE).to_csv(files / "all.csv", index=False)
    (files / "declare.json").write_text(json.dumps(DECLARE), encoding="utf-8")
    code, out, err = cli("run", "--ages", "all.csv", "--features", "all.csv", "--n-components", 20,
                         "--profile", profile, "--declare", "declare.json", "--out", "outputs",
                         *(["--in-sample"] if in_sample else []))  # fmt: skip
    words = "in-sample" if in_sample else "10-fold cross-validation"
    assert code in (0, 1, 3) and words in out and ("0 by construction" in out) is in_sample, err
    evidence = json.loads((files / "outputs" / "inside" / "evidence.json").read_text())
    raw = {one["name"]: one["raw"] for one in evidence["outputs"]}
    assert {raw[name]["about"]["validated"] for name in ("prediction_error", "calibration", "delta_sd")} == {words}
    assert [row[0] for row in raw["calibration"]["rows"]] == [f"{a} to under {a + 10}" for a in (40, 50, 60, 70, 80)]
    assert (abs(raw["delta_mean"]["rows"][0][1]) < 1e-9) is in_sample

    model = BrainAgeDelta(20).fit(x, AGE)
    flattering = np.abs(model.predict(x) - AGE).mean()
    mae = {row[0]: row[2] for row in raw["prediction_error"]["rows"]}["MAE"]
    assert mae == pytest.approx(flattering) if in_sample else flattering < mae < 1.5 * flattering
    deltas = model.delta(x, AGE)
    if not in_sample:
        fold = (np.random.default_rng(0).permutation(300) % 10)[np.argsort(np.argsort(IDS))]
        for k in range(10):
            others = BrainAgeDelta(20).fit(x[fold != k], AGE[fold != k])
            deltas[fold == k] = others.delta(x[fold == k], AGE[fold == k])
    assert raw["delta_sd"]["rows"][0][1] == pytest.approx(deltas.std(ddof=1))

    def not_made_again() -> set[str]:
        report = check_paths([files / "outputs"], profile=profile, ledger=files / "budget.db", cohort=files / "all.csv")
        return {one.type for one in report.outputs for f in one.findings if f.rules == ("check/cohort-deltas",)}

    assert not not_made_again()
    frame.assign(participant_id=IDS, age=AGE + 3 * (AGE > 70)).to_csv(files / "all.csv", index=False)
    assert not_made_again() == {"delta_mean", "delta_sd", "delta_quantiles"}
