"""Prices that do not fit their noise, and files whose damage the driver cannot put into words."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ledger_helpers import GAUSS, spend_args

from sacro_deltab.base.errors import LedgerError, PrivacyError
from sacro_deltab.ledger import open_ledger


def test_a_formal_gaussian_release_must_state_its_mu(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    for mechanism in ("gaussian", "discrete_gaussian", "Gaussian_analytic"):
        cheap = replace(GAUSS, mechanism=mechanism, epsilon=1e-6, mu=None, sigma=1e-3)
        with pytest.raises(PrivacyError, match="state its μ"):
            ledger.spend(cheap, **spend_args())
    assert ledger.spend(replace(GAUSS, mu=None, sigma=None, label="heuristic"), **spend_args()).after.releases == 1


def test_sigma_must_be_that_of_mu(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    with pytest.raises(PrivacyError, match="less than what is paid for"):
        ledger.spend(replace(GAUSS, sigma=GAUSS.sigma / 2), **spend_args())  # type: ignore[operator]
    assert ledger.totals("site-a").releases == 0


def test_a_damaged_name_in_the_file_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = open_ledger(path, create=True)
    ledger.spend(GAUSS, **spend_args())
    ledger.store.engine.dispose()
    data = path.read_bytes()
    places = [i for i in range(len(data)) if data.startswith(b"ledger_entries", i)]
    assert places
    refused = 0
    for place in places:
        copy = tmp_path / "copy.db"
        for old in tmp_path.glob("copy.db*"):
            old.unlink()
        copy.write_bytes(data[: place + 7] + b"\xf4" + data[place + 8 :])
        shutil.copy(path.with_name("budget.db.key"), copy.with_name("copy.db.key"))
        try:
            open_ledger(copy, create=False).verify()
        except LedgerError:
            refused += 1
    assert refused
