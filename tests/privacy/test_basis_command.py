"""`sacro-deltab basis` from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis, PublicBounds


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("public")
    people = smith_cohort(120, 8, seed=1)
    pd.DataFrame(people.X, columns=list(people.feature_names)).to_csv(folder / "features.csv", index=False)
    pd.DataFrame({"age": people.age}).to_csv(folder / "ages.csv", index=False)
    motion = np.random.default_rng(0).uniform(0, 1, 120)
    pd.DataFrame({"motion": motion}).to_csv(folder / "confounds.csv", index=False)
    return folder


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from sacro_deltab.cli import main; main()", "basis"]
    base = ["--ages", "ages.csv", "--features", "features.csv", "--made-on", "simulated public people"]
    return subprocess.run([*command, *base, *more], cwd=folder, capture_output=True, text=True, check=False)


def test_makes_a_basis_and_bounds(files: Path) -> None:
    done = run(files, "--confounds", "confounds.csv", "--n-components", "3", "--age-range", "40,80", "--out", "b.json",
               "--bounds-out", "bounds.json", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    basis = Basis.load(files / "b.json")
    assert report["digest"] == basis.digest
    assert (basis.n_components, basis.age, basis.n_people) == (3, (40.0, 80.0), 120)
    assert basis.confounds["motion"][0] < 0 < basis.confounds["motion"][1]
    assert PublicBounds.load(files / "bounds.json").digest == basis.bounds(("motion",)).digest


def test_units(files: Path) -> None:
    done = run(files, "--n-components", "3", "--out", "u.json", "--unit", "mm", "--unit", "feature_2=mm2")
    assert done.returncode == 0, done.stderr
    assert Basis.load(files / "u.json").units == ("mm", "mm2", *["mm"] * 6)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--out", "ages.csv"), "exists"), (("--out", "x.json", "--age-range", "forty"), "LOW,HIGH"),
        (("--out", "x.json", "--n-components", "50"), "components"),
        (("--out", "x.json", "--features", "absent.csv"), "absent.csv"),
        (("--out", "x.json", "--made-on", ""), "made"),
        (("--out", "x.json", "--unit", "nothing=mm"), "no feature 'nothing'"),
    ],
)  # fmt: skip
def test_bad_calls_end_in_two_and_leave_no_file(more: tuple[str, ...], word: str, files: Path) -> None:
    done = run(files, *more)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not (files / "x.json").exists()
