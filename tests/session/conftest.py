"""A pinned session on simulated people, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DECLARE = {
    "schema": "sacro_deltab/declare/1",
    "role": "researcher",
    "by": "A simulated researcher",
    "simulated": True,
    "facts": {"output.declared": True, "dp.trust_model": "central_at_node"},
}
ATTEST = {
    "schema": "sacro_deltab/declare/1",
    "role": "tre_staff",
    "by": "Simulated TRE staff",
    "simulated": True,
    "facts": {"egress.route": "tre_airlock", "dp.noise_inside_tre": True},
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def profile(place: Path) -> Path:
    """A site profile that pins the ledger of this directory."""
    from sacro_deltab.privacy.ledger import open_ledger

    pin = open_ledger("budget.db").pin()
    path = place / "profile.yaml"
    path.write_text(
        "profile: {id: test-site, title: Test site, ruleset: deltab-disclosure, decided_by: null}\n"
        "attest: {egress.route: tre_airlock, dp.noise_inside_tre: true}\n"
        f'ledgers:\n  - {{id: "{pin.id}", head_key: "{pin.head_key}"}}\n',
        encoding="utf-8",
    )
    return path


@pytest.fixture
def make_session(profile: Path) -> Iterator[Callable[..., Any]]:
    """Sessions around a fresh ACRO."""
    from sacro_deltab.acro_session import DeltabSession
    from sacro_deltab.session.pipeline import quiet_acro

    def make(**kwargs: Any) -> Any:
        kwargs.setdefault("cohort", "test-cohort")
        kwargs.setdefault("people", [f"P{i:04d}" for i in range(400)])
        acro = kwargs.pop("acro", None) or quiet_acro()
        return DeltabSession(acro, declare=DECLARE, attest=ATTEST, profile=profile, **kwargs)

    yield make


@pytest.fixture
def deltas() -> Any:
    """400 deltas in years, SD about 4, not centred."""
    return np.random.default_rng(3).normal(0.7, 4.0, 400)
