"""A pinned session on simulated people, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from session_helpers import new_session, write_profile


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(place: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """(exit code, stdout, stderr) of one command; a traceback would be an exception here."""
    from sacro_deltab.cli import main

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def profile(place: Path) -> Path:
    """A site profile that pins the ledger of this directory."""
    return write_profile(place)


@pytest.fixture
def make_session(profile: Path) -> Iterator[Callable[..., Any]]:
    """Sessions around a fresh ACRO."""
    yield lambda **kwargs: new_session(profile.parent, **kwargs)


@pytest.fixture
def deltas() -> Any:
    """400 deltas in years, SD about 4, not centred."""
    return np.random.default_rng(3).normal(0.7, 4.0, 400)
