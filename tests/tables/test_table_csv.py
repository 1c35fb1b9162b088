"""Printed tables (CSV): what is withheld and follows from the rest is found; what is no table is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sacro_deltab.base.errors import InputError, UnreadableError
from sacro_deltab.tables.answers import audit_answer, protect_answer
from sacro_deltab.tables.from_csv import read_csv


def file(folder: Path, text: str | bytes, name: str = "counts.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "AD,HC,Total\n[REDACTED],123,130\n",
        "group,N\nAD,[REDACTED]\nHC,123\nTotal,130\n",
        "group;N\nAD;*\nHC;123\nAll;130\n",
        "\ufeffgroup\tN\nAD\t<20\nHC\t123.0\nTotal\t130\n",
    ],
)
def test_one_mark_beside_a_total(text: str, tmp_path: Path) -> None:
    answer, safe = audit_answer(read_csv(file(tmp_path, text)))
    (found,) = answer["published_sets"]
    assert not safe and found["n_interval"] == {"AD": [7, 7]} and found["exactly_disclosed"] == ["AD"]
    answer, safe = protect_answer(read_csv(file(tmp_path, text)), policy="policy", objective="cells")
    assert safe and answer["protection"]["count"] == 1


def test_a_two_way_table(tmp_path: Path) -> None:
    """Two marks in a row and in a column hold each other, whatever stands behind them; a third alone does not."""
    square = "dx,F,M,Total\nAD,x,x,90\nMCI,x,x,120\nHC,200,300,500\nTotal,300,410,710\n"
    answer, safe = audit_answer(read_csv(file(tmp_path, square)))
    assert safe and answer["published_sets"][0]["exactly_disclosed"] == []
    assert set(answer["primary"]) == {"AD | F", "AD | M", "MCI | F", "MCI | M"}
    assert answer["published_sets"][0]["n_interval"]["AD | F"] == [0, 90]
    answer, safe = audit_answer(read_csv(file(tmp_path, square.replace("x,120", "110,120"))))
    assert not safe and set(answer["published_sets"][0]["exactly_disclosed"]) == {"AD | F", "AD | M", "MCI | F"}
    whole = "dx,F,M,Total\nAD,12,60,72\nMCI,60,60,120\nHC,200,300,500\nTotal,272,420,692\n"
    answer, safe = protect_answer(read_csv(file(tmp_path, whole)), policy="policy", objective="cells")
    assert safe and answer["protection"]["count"] == 3 and answer["primary"] == ["AD | F"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("group,N\nAD,7\nHC,123\nTotal,131\n", "no table fits"),
        ("group,N\nAD,7.5\nHC,123\n", "neither a count nor a mark"),
        ("group,N\nAD,-7\nHC,123\n", "neither a count nor a mark"),
        ("group,N\nAD,7\nAD,123\n", "one label"),
        ("group,N\nAD,7,8\nHC,123\n", "equally long"),
        ("group,N\nTotal,8\n", "is a total"),
        ("group,N\n", "no rows"),
        ("", "equally long"),
        (b"group,N\n\xff,8\n", "UTF-8"),
    ],
)
def test_what_is_no_table_is_refused(text: str | bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises((InputError, UnreadableError), match=what):
        read_csv(file(tmp_path, text))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sacro_deltab.cli import main

    path = file(tmp_path, "group,N\nAD,[REDACTED]\nHC,123\nTotal,130\n")
    with pytest.raises(SystemExit) as stopped:
        main(["tables", "audit", str(path)])
    assert stopped.value.code == 1
    assert json.loads(capsys.readouterr().out)["published_sets"][0]["n_interval"] == {"AD": [7, 7]}
