"""`sacro-deltab run`: repairs of the input are named and counted, and choices are checked before anything is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., tuple[int, str, str]]


def table(people: int = 40, missing: int = 3, seed: int = 1) -> str:
    rng = np.random.default_rng(seed)
    age = rng.uniform(50, 80, people).round(1)
    X = (age[:, None] * 0.1 + rng.normal(size=(people, 3))).round(3).astype(object)
    X[:missing, 0] = ""
    rows = "".join(f"{a},{','.join(map(str, x))}\n" for a, x in zip(age, X, strict=True))
    return f"age,f1,f2,f3\n{rows}"


def repairs(folder: Path) -> dict[str, int]:
    evidence: dict[str, Any] = json.loads((folder / "inside" / "evidence.json").read_text())
    return {r["text"]: r["count"] for r in evidence["repairs"]}


@pytest.mark.parametrize(
    ("how", "text"),
    [("median", "Missing values became the column median."), ("remove", "People with missing values were left out.")],
)
def test_missing_values_are_repaired_as_asked_and_counted(cli: Run, place: Path, how: str, text: str) -> None:
    (place / "c.csv").write_text(table())
    code, out, err = cli("run", "--ages", "c.csv", "--features", "c.csv", "--feature-nans", how, "--out", "o")
    assert code in (0, 1, 3) and "Traceback" not in err
    assert repairs(place / "o") == {text: 3}
    assert text in out and "3" not in out[out.index("Repairs") :].split("\n")[1]


def test_a_private_training_counts_what_became_public_constants(cli: Run, place: Path) -> None:
    (place / "c.csv").write_text(table())
    (place / "p.csv").write_text(table(60, 0, seed=2))
    made = ["--n-components", 2, "--age-range", "55,75", "--made-on", "other people", "--out", "basis.json"]
    assert cli("basis", "--ages", "p.csv", "--features", "p.csv", *made)[0] == 0
    arguments = ["--basis", "basis.json", "--epsilon", 1, "--feature-nans", "remove", "--out", "o"]
    code, out, _ = cli("run", "--ages", "c.csv", "--features", "c.csv", *arguments, "--spend-anyway")
    assert code in (0, 1, 3)
    told = repairs(place / "o")
    assert told["Missing values became the public centre."] == 3
    assert told["Ages outside the public range count as its nearest end."] > 0
    assert "choose from the raw data" in " ".join(out.split())


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("--epsilon", "nan", "--epsilon"), ("--epsilon", "-1", "--epsilon"), ("--epsilon", "inf", "--epsilon"),
        ("--epsilon-mean", "0", "--epsilon-mean"), ("--delta-dp", "1", "--delta-dp"),
        ("--n-components", "0", "--n-components"), ("--method", "magic", "--method"),
        ("--adjacency", "near", "--adjacency"), ("--model", "best", "--model"), ("--by", "site*", "--by"),
        ("--feature-nans", "zero", "--feature-nans"), ("--age-bands", "nan", "age band"),
    ],
)  # fmt: skip
def test_a_choice_nothing_can_be_made_of_ends_before_anything_is_made(
    cli: Run, place: Path, option: str, value: str, named: str
) -> None:
    (place / "c.csv").write_text(table())
    code, _, err = cli("run", "--ages", "c.csv", "--features", "c.csv", "--out", "o", option, value)
    assert code == 2 and named in err and "Next step" in err
    assert not (place / "o").exists() and not (place / "budget.db").exists()


def test_two_ways_of_choosing_components_are_refused(cli: Run, place: Path) -> None:
    (place / "c.csv").write_text(table())
    choices = ["--feature-num", 2, "--kaiser-guttmann"]
    code, _, err = cli("run", "--ages", "c.csv", "--features", "c.csv", "--out", "o", *choices)
    assert code == 2 and "more than one way" in err
