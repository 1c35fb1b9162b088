"""Fingerprints, changed and overlapping cohorts, declarations, and the history that later releases are held against."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_helpers import small, spend_args

from sacro_deltab.base.errors import BudgetError, InputError
from sacro_deltab.ledger import Ledger, ReleaseCell, open_ledger
from sacro_deltab.ledger.people import person_text

A, B = range(100), range(90, 200)


def ids(numbers: range | list[int]) -> tuple[str, ...]:
    return tuple(f"P{number:04d}" for number in numbers)


def test_new_same_changed(book: Ledger) -> None:
    first = book.register_cohort("site-a", ids(A), who="analyst")
    assert (first.status, first.people, first.review) == ("new", 100, False)
    again = book.register_cohort("site-a", reversed(ids(A) * 2), who="analyst")
    assert (again.status, again.review) == ("same", False)
    changed = book.register_cohort("site-a", ids(range(1, 101)), who="analyst")
    assert (changed.status, changed.added, changed.removed) == ("changed", 1, 1)
    assert changed.review
    back = book.register_cohort("site-a", ids(A), who="analyst")
    assert (back.status, back.added, back.removed) == ("changed", 0, 1)
    assert book.verify().ok


def test_reasons_that_may_leave_hold_no_counts(book: Ledger) -> None:
    book.register_cohort("site-a", ids(A), who="analyst")
    check = book.register_cohort("site-b", ids(range(93, 300)), who="analyst")
    assert check.overlaps[0].shared == 7
    assert "7" not in " ".join(check.reasons)


def test_without_ids_it_is_said_and_reviewed(book: Ledger) -> None:
    check = book.register_cohort("site-a", None, who="analyst")
    assert check.status == "not_checked"
    assert "was not checked" in check.reasons[0]


def test_shared_people_share_a_budget(book: Ledger) -> None:
    book.register_cohort("site-a", ids(A), who="analyst")
    for _ in range(3):
        book.spend(small(1.0), **spend_args())
    check = book.register_cohort("site-b", ids(B), who="analyst")
    assert "share one budget" in check.reasons[0]
    assert book.totals("site-b").epsilon_sum == 3.0
    book.spend(small(1.0), **spend_args(partition="site-b"))
    for site in ("site-a", "site-b"):
        with pytest.raises(BudgetError):
            book.spend(small(0.1), **spend_args(partition=site))
    assert book.verify().ok


def test_a_chain_of_overlaps_counts_neighbours_only(book: Ledger) -> None:
    """Nobody is in both the first and the third cohort, so the third cohort does not pay for the first."""
    for site, people in (("one", range(50)), ("two", range(40, 90)), ("three", range(80, 130))):
        book.register_cohort(site, ids(people), who="analyst")
    for _ in range(2):
        book.spend(small(1.0), **spend_args(partition="one"))
    assert book.totals("two").epsilon_sum == 2.0
    assert book.totals("three").epsilon_sum == 0.0
    for _ in range(2):
        book.spend(small(1.0), **spend_args(partition="two"))
    with pytest.raises(BudgetError):
        book.spend(small(0.1), **spend_args(partition="two"))
    with pytest.raises(BudgetError):
        book.spend(small(0.1), **spend_args(partition="one"))
    book.spend(small(1.0), **spend_args(partition="three"))
    assert book.verify().ok


def test_a_named_person_may_declare_two_cohorts_disjoint(book: Ledger) -> None:
    book.register_cohort("site-a", range(100), who="analyst")
    book.register_cohort("site-b", range(100), who="analyst")
    for _ in range(4):
        book.spend(small(1.0), **spend_args())
    with pytest.raises(BudgetError):
        book.spend(small(1.0), **spend_args(partition="site-b"))
    book.declare_disjoint("site-a", "SITE-B", by="Dr A. Example", reason="each site numbers its people from 1")
    book.spend(small(1.0), **spend_args(partition="site-b"))
    again = book.register_cohort("site-b", range(100), who="analyst")
    assert again.review
    assert "Dr A. Example declared disjoint" in again.reasons[0]
    assert book.totals("site-b").epsilon_sum == 1.0
    assert book.verify().ok
    with pytest.raises(InputError):
        book.declare_disjoint("site-a", "SITE-A", by="x", reason="y")
    with pytest.raises(InputError):
        book.declare_disjoint("site-a", "site-b", by=" ", reason="y")


def test_ids_are_compared_as_people_read_them() -> None:
    assert person_text(7) == person_text("7") == person_text(7.0) == person_text(" 7 ") == person_text("７")
    assert person_text("sub-OAS1") == person_text("SUB-oas1")
    assert person_text("007") != person_text("7")
    for missing in (None, math.nan, "", "  ", "nan", "NaN", "<NA>", "None"):
        with pytest.raises(InputError, match="missing"):
            person_text(missing)


def test_no_plain_id_and_no_guessable_digest_is_stored(file_book: Ledger, key: Path) -> None:
    file_book.register_cohort("site-a", ids(A), who="analyst")
    file_book.record_release("site-a", "t", kind="table", cells=[ReleaseCell("all", 100, ids(A))], who="analyst")
    assert file_book.store.file is not None
    content = file_book.store.file.read_bytes()
    from hashlib import sha256

    for person in ids(A):
        text = person_text(person)
        assert text.encode() not in content.lower()
        assert sha256(text.encode()).digest()[:16] not in content
    other = open_ledger(file_book.store.file.with_name("other.db"), key=key.with_name("other.key"))
    assert set(other.fingerprints(ids(A))).isdisjoint(file_book.fingerprints(ids(A)))


class TestReleases:
    def release(self, book: Ledger, **cells: range | list[int]) -> int:
        listed = [ReleaseCell(key, len(people), ids(people), {"n": len(people)}) for key, people in cells.items()]
        return book.record_release("site-a", "delta_mean", kind="table", cells=listed, who="analyst").seq

    def test_one_person_fewer_is_a_gap_of_one(self, book: Ledger) -> None:
        book.register_cohort("site-a", ids(A), who="analyst")
        self.release(book, all=A)
        now = [ReleaseCell("all", 99, ids(range(99)))]
        assert book.smallest_gap("site-a", now) == 1
        (gap,) = book.gaps("site-a", now)
        assert (gap.n_now, gap.n_then, gap.shared, gap.output) == (99, 100, 99, "delta_mean")

    def test_one_person_exchanged_is_a_gap_of_two_though_n_is_the_same(self, book: Ledger) -> None:
        book.register_cohort("site-a", ids(A), who="analyst")
        self.release(book, all=A)
        assert book.smallest_gap("site-a", [ReleaseCell("all", 100, ids(range(1, 101)))]) == 2

    def test_the_same_people_again_and_other_people_are_no_gap(self, book: Ledger) -> None:
        book.register_cohort("site-a", ids(A), who="analyst")
        self.release(book, all=A)
        assert book.smallest_gap("site-a", [ReleaseCell("all", 100, ids(A))]) is None
        assert book.smallest_gap("site-a", [ReleaseCell("all", 50, ids(range(200, 250)))]) is None

    def test_a_session_can_leave_its_own_releases_out(self, book: Ledger) -> None:
        book.register_cohort("site-a", ids(A), who="analyst")
        mine = self.release(book, all=A)
        now = [ReleaseCell("all", 99, ids(range(99)))]
        assert book.smallest_gap("site-a", now, before=mine) is None

    def test_across_cohorts_unless_declared_disjoint(self, book: Ledger) -> None:
        book.register_cohort("site-a", ids(A), who="analyst")
        self.release(book, all=A)
        now = [ReleaseCell("all", 103, ids(range(103)))]
        assert book.smallest_gap("site-b", now) == 3
        book.declare_disjoint("site-a", "site-b", by="Data manager", reason="numbers start at 1")
        assert book.smallest_gap("site-b", now) is None

    def test_without_ids_numbers_alone_are_compared(self, book: Ledger) -> None:
        cells = [ReleaseCell("all", 100)]
        book.record_release("site-a", "delta_mean", kind="table", cells=cells, who="analyst")
        assert book.smallest_gap("site-a", [ReleaseCell("all", 97)]) == 3
        assert book.smallest_gap("site-a", [ReleaseCell("all", 100)]) == 0  # other people may hide behind the same N
        assert book.smallest_gap("site-b", [ReleaseCell("all", 97)]) is None

    def test_the_attackers_view(self, book: Ledger) -> None:
        book.register_cohort("site-a", ids(A), who="analyst")
        self.release(book, all=A, first=range(10), last=range(90, 100))
        rows = ids([95, 3, 50, 200])
        seen = book.earlier_cells("site-a", rows)
        assert (seen.n_now, seen.n_gone) == (4, 97)
        masks = {cell.key: cell.mask for cell in seen.cells}
        assert all(len(mask) == 101 for mask in masks.values())
        assert masks["all"][:4] == bytes([1, 1, 1, 0])
        assert masks["first"][:4] == bytes([0, 1, 0, 0])
        assert masks["last"][:4] == bytes([1, 0, 0, 0])
        assert [sum(masks[key]) for key in ("all", "first", "last")] == [100, 10, 10]
        assert sum(a & b for a, b in zip(masks["first"], masks["last"], strict=True)) == 0

    def test_history_of_releases(self, book: Ledger) -> None:
        book.register_cohort("site-a", ids(A), who="analyst")
        entry = self.release(book, all=A)
        book.record_release("site-b", "p", kind="statistic", cells=[], who="analyst", sha256="b" * 64)
        (mine,) = book.releases("site-a")
        assert (mine.entry, mine.output, mine.cells[0]["n"]) == (entry, "delta_mean", 100)
        assert [r.output for r in book.releases()] == ["delta_mean", "p"]
        assert book.verify().ok

    @pytest.mark.parametrize(
        "cell",
        [
            ReleaseCell("all", 99, ids(A)),
            ReleaseCell("all", 101, ids(range(101))),
            ReleaseCell("all", -1),
            ReleaseCell("all", 1.5),  # type: ignore[arg-type]
            ReleaseCell("x" * 2000, 5),
            ReleaseCell("all", 5, None, {"mean": math.nan}),
        ],
    )
    def test_cells_that_cannot_be_are_refused_whole(self, file_book: Ledger, cell: ReleaseCell) -> None:
        file_book.register_cohort("site-a", ids(A), who="analyst")
        with pytest.raises(InputError):
            file_book.record_release("site-a", "t", kind="table", cells=[cell], who="analyst")
        assert file_book.releases() == []
        assert file_book.verify().ok

    def test_known_people_need_a_registered_cohort(self, file_book: Ledger) -> None:
        with pytest.raises(InputError, match="registered first"):
            self.release(file_book, all=A)

    def test_odd_labels(self, book: Ledger) -> None:
        odd = "ünder\ud800 \0 '; DROP TABLE ledger_cells; --"
        book.record_release("site-a", "t", kind="table", cells=[ReleaseCell(odd, 30, None, {odd: odd})], who="a")
        assert book.releases()[0].cells[0]["n"] == 30
        assert book.verify().ok

    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(then=st.sets(st.integers(0, 30), min_size=1), now=st.sets(st.integers(0, 40), min_size=1))
    def test_gaps_are_symmetric_differences(self, file_book: Ledger, then: set[int], now: set[int]) -> None:
        file_book.register_cohort("site-a", ids(range(31)), who="analyst")
        mine = self.release(file_book, some=sorted(then))
        found = [g for g in file_book.gaps("site-a", [ReleaseCell("x", len(now), ids(sorted(now)))]) if g.entry == mine]
        assert [g.gap for g in found] == ([len(then ^ now)] if then & now else [])


def test_fingerprints_are_stable_over_reopening(file_book: Ledger) -> None:
    file_book.register_cohort("site-a", ids(A), who="analyst")
    assert file_book.store.file is not None
    again = open_ledger(file_book.store.file, key=file_book.signing_key().path)
    assert again.register_cohort("site-a", ids(A), who="analyst").status == "same"
    with closing(sqlite3.connect(file_book.store.file)) as connection:
        assert connection.execute("SELECT count(*) FROM ledger_cohorts").fetchone() == (1,)
