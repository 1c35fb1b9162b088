"""The small hostile files of fixtures/hostile: each fails, for the reason written beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from checking import check, codes, texts

HOSTILE = Path(__file__).resolve().parents[2] / "fixtures" / "hostile"
CASES: list[dict[str, Any]] = json.loads((HOSTILE / "cases.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_hostile_file(case: dict[str, Any], tmp_path: Path) -> None:
    path = Path(shutil.copy(HOSTILE / case["file"], tmp_path))
    report = check(path)
    assert report.verdict == case["verdict"]
    assert set(case["codes"]) <= codes(report), texts(report)


def test_every_file_has_a_case() -> None:
    assert {p.name for p in HOSTILE.iterdir()} == {case["file"] for case in CASES} | {"cases.json"}
