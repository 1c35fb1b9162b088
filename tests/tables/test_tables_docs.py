"""The example on the tables page runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sacro_deltab.tables.answers import audit_answer, protect_answer
from sacro_deltab.tables.from_csv import read_csv

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")


def test_python_example() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(code, "tables.md", "exec"), {})


def test_json_example() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.S)
    data = json.loads(text)
    answer, safe = audit_answer(data)
    assert not safe and answer["published_sets"][0]["n_interval"] == {"M": [12, 12]}
    answer, safe = protect_answer(data, policy="policy", objective="cells")
    assert safe and answer["protection"]["complementary"] == ["F"]


def test_csv_example(tmp_path: Path) -> None:
    (text,) = re.findall(r"```\n(group.*?)```", PAGE, re.S)
    (tmp_path / "counts.csv").write_text(text)
    answer, safe = audit_answer(read_csv(tmp_path / "counts.csv"))
    assert not safe and answer["published_sets"][0]["n_interval"] == {"AD": [7, 7]}
