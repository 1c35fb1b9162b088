"""Imports run downwards only, light commands stay light, and nothing private is written down."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sacro_deltab"

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
