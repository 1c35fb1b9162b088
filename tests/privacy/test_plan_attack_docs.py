"""Examples of the plan and attack pages run, and every option they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from sacro_deltab.cli import attack, plan
from sacro_deltab.privacy.plan import planning

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["plan.md", "attacks.md"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(planning, "GRID", (100, 400, 1600))
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.S)
    assert blocks
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), scope)


@pytest.mark.parametrize(("page", "module"), [("plan.md", plan), ("attacks.md", attack)])
def test_every_option_exists(page: str, module: object) -> None:
    app = typer.Typer()
    module.register(app)  # type: ignore[attr-defined]
    known = {name for option in get_command(app).params for name in (*option.opts, *option.secondary_opts)}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", (DOCS / page).read_text(encoding="utf-8")))
    assert named <= known, named - known
