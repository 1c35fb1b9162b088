"""Two certified nodes, made once for all tests of pooling."""

from __future__ import annotations

import pytest
from federation_nodes import World, make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("federation"))
