"""Values that the ledger's tests share."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sacro_deltab.privacy.spend import BudgetLimits, SpendRequest

RULES = "a" * 64
LIMITS = BudgetLimits(epsilon_per_release=1.0, epsilon_total=4.0, delta_per_release=1e-6, delta_total=1e-3)
# μ of an analytic Gaussian at ε = 1, δ = 1e-6 is 1 / 4.2247 (Balle and Wang 2018)
GAUSS = SpendRequest(
    "discrete_gaussian", 1.0, 1e-6, 0.2366, 4.2266, "zero_out_N_public", "person", ("weights",), "model", "formal", 500
)
LAPLACE = SpendRequest(
    "laplace", 0.5, 0.0, None, 2.0, "replace_one", "person", ("delta_mean",), "statistic", "formal", 500
)


def small(epsilon: float, **changes: Any) -> SpendRequest:
    """A release of pure ε."""
    return replace(LAPLACE, epsilon=epsilon, **changes)


def spend_args(**changes: Any) -> dict[str, Any]:
    """Keyword arguments of `Ledger.spend` with the defaults of these tests."""
    return {"partition": "site-a", "limits": LIMITS, "who": "analyst", "ruleset_sha256": RULES, **changes}


def memory_folder() -> str | None:
    """A folder in memory: these tests write much and measure little."""
    place = Path("/dev/shm")
    return str(place) if place.is_dir() and shutil.disk_usage(place).free > 500_000_000 else None


def server_folder() -> Path | None:
    """Folder of `initdb` and `postgres`: on the path, in a distribution's place, or in a pip-installed server."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    for root in ("/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt", "/usr/local/opt"):
        folders += sorted(Path(root).glob("*/bin"), reverse=True)
    spec = find_spec("pgserver")
    if spec is not None and spec.submodule_search_locations:
        folders += [Path(place) / "pginstall" / "bin" for place in spec.submodule_search_locations]
    return next((f for f in folders if (f / "initdb").is_file() and (f / "postgres").is_file()), None)


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """A PostgreSQL server on a socket in a temporary folder; yields a URL with `{name}` for the database."""
    base = Path(tempfile.mkdtemp(prefix="pg", dir=memory_folder()))  # a socket's path must be short
    data, user = base / "data", "postgres"
    as_user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(base, user)
        as_user = ["runuser", "-u", user, "--"]
    env = {**os.environ, "LC_ALL": "C"}

    def run(*command: str) -> None:
        done = subprocess.run([*as_user, *command], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{command[0]}: {done.stderr}"

    try:
        run(str(folder / "initdb"), "-D", str(data), "-U", user, "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses='' -k {base} -c fsync=off -c max_connections=60"
        run(str(folder / "pg_ctl"), "-D", str(data), "-w", "-t", "60", "-l", str(base / "log"), "-o", options, "start")
        try:
            yield f"postgresql://{user}@/{{name}}?host={base}"
        finally:
            run(str(folder / "pg_ctl"), "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(base, ignore_errors=True)
