"""A new key: the budget goes on where it was, and what is no longer known is reviewed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import typer
from ledger_helpers import GAUSS, LAPLACE, LIMITS, spend_args
from typer.testing import CliRunner

from sacro_deltab.base.errors import BudgetError, LedgerError, RefusedError
from sacro_deltab.base.resources import schema
from sacro_deltab.cli import ledger as command
from sacro_deltab.ledger import Ledger, ReleaseCell, open_ledger
from sacro_deltab.ledger.carrying import carry_over

PEOPLE = ["P1", "P2", "P3", "P4"]


@pytest.fixture
def lived(file_book: Ledger) -> Ledger:
    """A ledger with a bit of everything."""
    book = file_book
    book.register_bounds("b" * 64, "TRE")
    book.register_cohort("site-a", PEOPLE, who="me")
    book.register_cohort("site-b", ["P4", "P5"], who="me")
    book.register_cohort("site-c", ["P9", "P1"], who="me")
    book.declare_disjoint("site-a", "site-c", by="Dr A", reason="numbers of their own")
    first = book.spend(GAUSS, **spend_args())
    book.close_spend(first.entry, {"weights.csv": "c" * 64})
    book.spend(LAPLACE, **spend_args(partition="site-b"))
    book.spend(replace(GAUSS, epsilon=1.0), **spend_args(draws="later"))
    with pytest.raises(BudgetError):
        book.spend(replace(GAUSS, epsilon=2.0), **spend_args())
    cells = [ReleaseCell("all", 4, tuple(PEOPLE)), ReleaseCell("men", 2, ("P1", "P2"))]
    book.record_release("site-a", "delta_mean", kind="table", cells=cells, who="me")
    return book


def test_totals_digests_and_cells_go_over(lived: Ledger, new_url: Callable[[], str], tmp_path: Path) -> None:
    new = open_ledger(new_url(), key=tmp_path / "new.key")
    carry_over(lived, new, who="TRE")
    assert new.verify().ok
    assert new.head_key != lived.head_key
    for cohort in ("site-a", "site-b", "site-c"):
        assert new.totals(cohort, LIMITS) == lived.totals(cohort, LIMITS)
        assert new.remaining(cohort, LIMITS) == lived.remaining(cohort, LIMITS)
    found = new.released_in("c" * 64)
    assert found is not None
    assert json.loads(found.body)["detail"]["carried"]["ledger"] == lived.id
    assert new.bounds_registered("b" * 64, before="site-a")
    assert new.smallest_gap("site-a", [ReleaseCell("all", 3)]) == 1  # by N alone, the people being unknown
    for entry in new.history():
        jsonschema.validate(entry.to_json(), schema("ledger-entry"))
    orphan = next(e for e in new.orphans() if json.loads(e.body)["mechanism"] == GAUSS.mechanism)
    with pytest.raises(RefusedError):  # an orphan that had not drawn counts as drawn: nothing is refunded
        new.draw(orphan.seq, "d" * 64)


def test_people_that_are_not_known_again_are_reviewed(lived: Ledger, tmp_path: Path) -> None:
    new = open_ledger(tmp_path / "new.db")
    carry_over(lived, new, who="TRE")
    check = new.register_cohort("site-a", PEOPLE, who="me")
    assert any("earlier releases are not known" in reason for reason in check.reasons)
    assert any("site-b, site-c" in reason for reason in check.reasons)
    for cohort, ids in (("site-b", ["P4", "P5"]), ("site-c", ["P9", "P1"])):
        new.register_cohort(cohort, ids, who="me")
    again = new.register_cohort("site-a", PEOPLE, who="me")
    assert not any("not registered again" in reason or "not known" in reason for reason in again.reasons)
    assert {o.partition: o.declared_disjoint_by for o in again.overlaps} == {
        "site-b/person": None, "site-c/person": "Dr A",
    }  # fmt: skip


def test_only_a_sound_ledger_is_continued_and_only_by_an_empty_one(lived: Ledger, tmp_path: Path) -> None:
    new = open_ledger(tmp_path / "new.db")
    carry_over(lived, new, who="TRE")
    with pytest.raises(LedgerError, match="holds entries already"):
        carry_over(lived, new, who="TRE")
    with pytest.raises(LedgerError, match="itself"):
        carry_over(lived, lived, who="TRE")
    with lived.store.write() as connection:
        connection.exec_driver_sql("UPDATE ledger_entries SET who = 'x' WHERE seq = 3")
    with pytest.raises(LedgerError, match="was changed"):
        carry_over(lived, open_ledger(tmp_path / "other.db"), who="TRE")


def test_command(lived: Ledger, key: Path, tmp_path: Path) -> None:
    app = typer.Typer()
    command.register(app)
    key.unlink()  # lost: what was spent can still be carried
    call = ["ledger", "rotate-key", "--ledger", str(lived.store.file), "--to", str(tmp_path / "two.db"), "--json"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["continues"] == lived.id
    book = open_ledger(tmp_path / "two.db", create=False)
    assert (book.id, book.head) == (said["id"], said["head"])
    assert book.totals("site-a", LIMITS).epsilon_sum == 2.5
    assert CliRunner().invoke(app, call).exit_code != 0


def test_a_link_to_a_ledger_finds_its_key(file_book: Ledger, key: Path, tmp_path: Path) -> None:
    assert file_book.store.file is not None
    own = tmp_path / "own.db"
    made = open_ledger(own)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(own)
    through = open_ledger(link)
    assert through.id == made.id
    through.spend(GAUSS, **spend_args())
    assert made.totals("site-a").releases == 1
