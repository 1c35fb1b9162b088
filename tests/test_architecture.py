"""Imports run downwards only, light commands stay light, and nothing private is written down."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sacro_deltab"

# Lowest first. A module may import (at its top) from its own layer or from a lower one.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("inert",),
    ("tables",),
    ("rules",),
    ("outputs", "cohort"),
    ("model",),
    ("privacy",),
    ("ledger",),
    ("measure",),
    ("judging",),
    ("certificate",),
    ("check", "session"),
    ("federation",),
    ("desk",),
    ("run",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def _unit(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "_data" not in p.parts and p != PACKAGE / "__init__.py")


def _top_level_imports(path: Path) -> list[str]:
    """Units of the package imported when the module is loaded (imports inside functions are a deliberate choice)."""
    depth = len(path.relative_to(PACKAGE).parts)
    found: list[str] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level == depth:
            found += [node.module.split(".")[0]] if node.module else [a.name for a in node.names]
        elif node.level == 0 and node.module and node.module.startswith("sacro_deltab."):
            found.append(node.module.split(".")[1])
    return found


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_downwards(path: Path) -> None:
    unit = _unit(path)
    assert unit in RANK, f"{unit} has no layer: add it to LAYERS and docs/architecture.md"
    for target in _top_level_imports(path):
        if target in RANK:
            assert RANK[target] <= RANK[unit], f"{path.name} ({unit}) imports upwards from {target}"


LIGHT = {
    "rules list": ("numpy", "pandas", "acro", "sklearn", "opendp"),
    "ledger --help": ("numpy", "pandas", "acro", "sklearn", "opendp"),
    "verify --help": ("numpy", "pandas", "acro", "sklearn", "opendp"),
}


@pytest.mark.parametrize("command", LIGHT)
def test_light_commands_start_without_heavy_imports(command: str, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from sacro_deltab.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        f"heavy = [m for m in {LIGHT[command]!r} if m in sys.modules]\n"
        "sys.stderr.write('HEAVY ' + ','.join(heavy))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stderr.endswith("HEAVY "), done.stderr[-500:]


FORBIDDEN = re.compile(r"(?<![\w.])/(work|root)/\w|index-url|pypi\.org/simple", re.IGNORECASE)


def test_no_machine_path_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path == Path(__file__).resolve() or path.suffix in {".png", ".npz", ".pkl", ".zip"} or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        hit = FORBIDDEN.search(text)
        assert hit is None, f"{name}: {hit.group(0)!r}" if hit else ""
