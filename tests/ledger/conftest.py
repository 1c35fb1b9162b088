"""The same tests against a SQLite file and a PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ledger_helpers import memory_folder, running_server, server_folder

from sacro_deltab.ledger import Ledger, open_ledger


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is room: most of these tests wait for the disk and do not look at it."""
    place = memory_folder()
    if place is None:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="ledger", dir=place))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a server's databases, with `{name}` in it."""
    folder = server_folder()
    if folder is None:
        if os.environ.get("SACRO_DELTAB_REQUIRE_POSTGRES") == "1":
            pytest.fail("SACRO_DELTAB_REQUIRE_POSTGRES=1, and no PostgreSQL server (initdb) was found")
        pytest.skip("no PostgreSQL server: initdb is neither on PATH nor in /usr/lib/postgresql nor pip-installed")
    with running_server(folder) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes the URL of a database that holds nothing yet."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path / f'{uuid.uuid4().hex[:8]}.db'}"
    server: str = request.getfixturevalue("postgres")

    def fresh() -> str:
        import psycopg

        name = f"ledger_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(server.format(name="postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return server.format(name=name)

    return fresh


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    """One empty database."""
    return new_url()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Where the TRE keeps its key."""
    folder = tmp_path / "tre"
    folder.mkdir(exist_ok=True)
    return folder / "ledger.key"


@pytest.fixture
def book(url: str, key: Path) -> Ledger:
    """A new ledger on each kind of database."""
    return open_ledger(url, key=key)


@pytest.fixture
def file_book(tmp_path: Path, key: Path) -> Ledger:
    """A new ledger in a SQLite file."""
    return open_ledger(tmp_path / "budget.db", key=key)
