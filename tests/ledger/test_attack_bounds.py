"""Bounds registered after the data were opened do not become early by giving the same people another id."""

from __future__ import annotations

from pathlib import Path

from sacro_deltab.ledger import open_ledger


def test_another_id_for_the_same_people_does_not_reset_the_clock(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    ledger.register_cohort("site-a", ["a", "b", "c"], who="me")
    ledger.register_bounds("b" * 64, who="me")
    ledger.register_cohort("site-a-again", ["c", "d"], who="me")
    ledger.register_cohort("site-b", ["x", "y"], who="me")
    assert not ledger.bounds_registered("b" * 64, before="site-a")
    assert not ledger.bounds_registered("b" * 64, before="site-a-again")
    assert ledger.bounds_registered("b" * 64, before="site-b")
    assert ledger.bounds_registered("b" * 64)
