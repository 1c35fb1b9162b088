"""Two certified nodes, made once for all tests of pooling, whichever worker comes first."""

from __future__ import annotations

import fcntl
import os
import shutil

import pytest
from federation_nodes import SIZES, World, make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    home, done = base / "two-nodes", base / "two-nodes.done"
    with (base / "two-nodes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(home, ignore_errors=True)  # what a worker left that failed
            home.mkdir()
            make_world(home)
            done.touch()
    nodes = {name: home / "released" / name for name in SIZES}
    return World(home, nodes, home / "trust.json", home / "basis.json", home / "job.yaml")
