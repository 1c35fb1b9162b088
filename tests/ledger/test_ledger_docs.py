"""The examples of `docs/ledger.md` run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "ledger.md"
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert found.attempted > 10
    assert found.failed == 0
