"""Each story ends right: what must not pass does not, and its honest twin does.

The stories are programs of their own, in `stories/`: they use the command line, the folder on disk and the names at the
package's root, and end with 0 where that is right. They are data here, kept as they were written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from expected import EXPECTED, SLOW

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
SHARED = {"common", "package_kit", "session_kit", "scale_child"}  # what stories import or start
STORIES = sorted({path.stem for path in (HERE / "stories").glob("*.py")} - SHARED)
COMMAND = f"#!{sys.executable}\nimport sys\n\nfrom sacro_deltab.cli import main\n\nsys.exit(main())\n"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as a wheel would install it: the package with its rules and schemas inside."""
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(CHECKOUT / "sacro_deltab", root / "sacro_deltab")
    for name in ("rules", "schemas"):
        shutil.copytree(CHECKOUT / name, root / "sacro_deltab" / "_data" / name)
    return root


@pytest.fixture(scope="session")
def tool(site: Path) -> Path:
    """`sacro-deltab` of this Python and this checkout, wherever another one is installed."""
    path = site / "sacro-deltab"
    path.write_text(COMMAND)
    path.chmod(0o755)
    return path


def _marked(name: str) -> object:
    marks = [pytest.mark.soak] if name in SLOW else []
    if name in EXPECTED:
        marks.append(pytest.mark.xfail(strict=True, reason=EXPECTED[name]))
    return pytest.param(name, marks=marks, id=name)


@pytest.mark.parametrize("name", [_marked(name) for name in STORIES])
def test_story_ends_right(name: str, site: Path, tool: Path, tmp_path: Path) -> None:
    arguments = [str(CHECKOUT), str(tool)] if name == "house_count" else [str(tool)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "SACRO_DELTAB": str(tool),
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    ran = subprocess.run(
        [sys.executable, str(HERE / "stories" / f"{name}.py"), *arguments],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ran.returncode == 0, f"{ran.stdout[-3000:]}\n{ran.stderr[-1000:]}"


def test_the_tables_name_stories() -> None:
    assert set(EXPECTED) | SLOW <= set(STORIES)
