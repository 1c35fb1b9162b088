"""The example of docs/check.md is what the program prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sacro_deltab.cli import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "check.md").read_text(encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```json\n(.*?)```", PAGE, re.S)
    assert found is not None
    Path("attested.json").write_text(found.group(1))
    Path("delta_mean.csv").write_text("statistic,value\nmean delta,0.3\n")
    Path("ages.txt").write_text("\n".join(str(45 + i % 30) for i in range(60)) + "\n")
    return tmp_path


def test_commands_print_what_the_page_says(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```text\n(.*?)```", PAGE, re.S)
    assert found is not None
    for block in found.group(1).strip().split("\n\n"):
        command, *lines = block.split("\n")
        with pytest.raises(SystemExit):
            main(command.removeprefix("$ sacro-deltab ").split())
        printed = capsys.readouterr().out.split("\n")
        shown = [line for line in printed if line in lines]
        assert shown == lines, "\n".join(printed)


def test_python_example(place: Path) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE, re.S)
    assert found is not None
    exec(compile(found.group(1), "docs/check.md", "exec"), {})
