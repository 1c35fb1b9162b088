"""What README says to paste is pasted, in its order; both of its ways give passes."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import stat
from pathlib import Path

import pytest

from sacro_deltab.cli import main

README = Path(__file__).resolve().parents[1] / "README.md"


def _statuses(folder: Path) -> list[str]:
    return [r["status"] for r in json.loads((folder / "results.json").read_text())["results"].values()]


def test_the_examples_pass_when_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8").split("## Try it", 1)[1].split("## The parts", 1)[0]
    names: dict[str, object] = {}
    codes = {}
    for language, block in re.findall(r"```(python|console)\n(.*?)```", text, flags=re.S):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if language == "python":
                exec(compile(block, "README.md", "exec"), names)
                continue
            for line in block.splitlines():
                arguments = shlex.split(line.removeprefix("$ sacro-deltab "))
                with pytest.raises(SystemExit) as stopped:
                    main(arguments)
                codes[arguments[0], arguments[1]] = int(stopped.value.code or 0)
    assert {code for (command, _), code in codes.items() if command not in ("run", "check")} == {0}, codes
    assert codes["run", "--ages"] == codes["check", "outputs-b"] in (0, 3), codes
    for folder in (tmp_path / "outputs", tmp_path / "outputs-b"):
        assert _statuses(folder).count("pass") >= 8, _statuses(folder)
        records = json.loads((folder / "results.json").read_text())["results"].values()
        assert all("simulated" in r["properties"] for r in records if "certificate" not in r["properties"]["method"])
    assert stat.S_IMODE((tmp_path / "deltas.csv").stat().st_mode) == 0o600
    assert len((tmp_path / "deltas.csv").read_text().splitlines()) == 501
