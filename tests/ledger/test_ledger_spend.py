"""Spending, refusing, drawing, attaching, closing: on SQLite and PostgreSQL."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_helpers import GAUSS, LAPLACE, LIMITS, RULES, small, spend_args
from sqlalchemy.exc import OperationalError

from sacro_deltab.base.errors import BudgetError, InputError, LedgerError, PrivacyError, RefusedError
from sacro_deltab.ledger import Ledger, open_ledger, partition_key, spending
from sacro_deltab.ledger.chain import Identity, Writer, writing
from sacro_deltab.ledger.keys import LedgerKey
from sacro_deltab.ledger.store import Store
from sacro_deltab.privacy.spend import BudgetLimits


def test_a_spend_is_committed_and_survives_reopening(book: Ledger, url: str, key: Path) -> None:
    receipt = book.spend(GAUSS, **spend_args())
    assert receipt.ledger_id == book.id
    assert receipt.head == book.head
    assert (receipt.before.releases, receipt.after.releases) == (0, 1)
    assert receipt.after.epsilon_sum == 1.0
    assert receipt.after.model_exports == 1
    again = open_ledger(url, key=key, create=False)
    assert again.totals("site-a") == receipt.after
    assert again.verify([receipt.head]).ok


def test_the_sum_reaches_the_limit_exactly_and_not_beyond(book: Ledger) -> None:
    for _ in range(40):
        book.spend(small(0.1), **spend_args())
    assert book.totals("site-a").epsilon_sum == 4.0
    with pytest.raises(BudgetError, match="Nothing was spent") as caught:
        book.spend(small(1e-9), **spend_args())
    assert "ε 0 of 4" in caught.value.what
    assert book.totals("site-a").releases == 40
    assert [e.kind for e in book.history()].count("refused") == 1


def test_a_refusal_names_what_is_left_and_what_it_buys(book: Ledger) -> None:
    for _ in range(3):
        book.spend(small(1.0), **spend_args())
    book.spend(small(0.5), **spend_args())
    with pytest.raises(BudgetError) as caught:
        book.spend(small(0.75), **spend_args())
    assert "ε 0.5 of 4" in caught.value.what
    assert "at most ε 0.5" in str(caught.value.next_step)
    assert "sacro-deltab plan --epsilon 0.5" in str(caught.value.next_step)
    left, _ = book.remaining("site-a", LIMITS)
    book.spend(small(left), **spend_args())
    assert book.remaining("site-a", LIMITS)[0] == 0.0


@pytest.mark.parametrize(
    ("limits", "request_changes", "words"),
    [
        (LIMITS, {"epsilon": 1.0000001}, "one release"),
        (LIMITS, {"delta_dp": 2e-6}, "one release"),
        (replace(LIMITS, delta_total=5e-7), {"delta_dp": 1e-6}, "total δ"),
        (replace(LIMITS, epsilon_total=0.2), {"epsilon": 0.3}, "total ε"),
    ],
)
def test_each_limit_refuses(book: Ledger, limits: BudgetLimits, request_changes: dict[str, float], words: str) -> None:
    with pytest.raises(BudgetError, match=words):
        book.spend(replace(LAPLACE, **request_changes), **spend_args(limits=limits))
    assert book.totals("site-a").releases == 0


def test_delta_computed_as_one_over_n_squared_passes(book: Ledger) -> None:
    n = 1234
    limits = replace(LIMITS, delta_per_release=1 / n**2)
    book.spend(small(0.1, delta_dp=(1 / n) * (1 / n)), **spend_args(limits=limits))


@pytest.mark.parametrize("field", ["epsilon", "delta_dp", "mu", "sigma"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, True, "1"])
def test_a_price_that_is_no_price_is_refused(file_book: Ledger, field: str, value: object) -> None:
    with pytest.raises(InputError):
        file_book.spend(replace(GAUSS, **{field: value}), **spend_args())
    assert file_book.totals("site-a").releases == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.0},
        {"epsilon": -0.0},
        {"delta_dp": 1.0},
        {"mu": 0.0},
        {"adjacency": "none"},
        {"unit": "site"},
        {"kind": "plot"},
        {"label": "none"},
        {"outputs": ()},
        {"outputs": "weights"},
        {"outputs": ("a\nb",)},
        {"mechanism": ""},
        {"mechanism": "x" * 201},
        {"detail": {"n": math.nan}},
        {"detail": {"blob": "x" * 300_000}},
        {"detail": {"set": {1, 2}}},
    ],
)
def test_other_fields_are_checked_before_anything_is_written(file_book: Ledger, changes: dict[str, object]) -> None:
    with pytest.raises(InputError):
        file_book.spend(replace(GAUSS, **changes), **spend_args())
    assert len(file_book.history()) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, None, "4"])
@pytest.mark.parametrize("name", ["epsilon_per_release", "epsilon_total", "delta_per_release", "delta_total"])
def test_a_limit_that_is_no_number_lets_nothing_through(file_book: Ledger, name: str, value: object) -> None:
    with pytest.raises(InputError):
        file_book.spend(GAUSS, **spend_args(limits=replace(LIMITS, **{name: value})))


def test_epsilon_must_cover_the_noise(book: Ledger) -> None:
    with pytest.raises(PrivacyError, match="smaller than what"):
        book.spend(replace(GAUSS, epsilon=0.5), **spend_args())
    assert book.totals("site-a").releases == 0


def test_exact_composition_of_four_releases(book: Ledger) -> None:
    from sacro_deltab.privacy.mechanisms import epsilon_of_mu

    mu = 1 / 4.224679  # one release at (1, 1e-6)
    for _ in range(4):
        receipt = book.spend(replace(GAUSS, mu=mu), **spend_args())
    assert receipt.after.epsilon_sum == 4.0
    assert receipt.after.mu == pytest.approx(2 * mu, rel=1e-15)
    assert receipt.after.epsilon_exact == pytest.approx(2.123, abs=5e-4)
    assert receipt.after.epsilon_exact == pytest.approx(epsilon_of_mu(2 * mu, 1e-6), rel=1e-9)


def test_a_mix_has_no_exact_composition(book: Ledger) -> None:
    book.spend(GAUSS, **spend_args())
    assert book.totals("site-a").epsilon_exact == pytest.approx(1.0, abs=1e-3)
    book.spend(LAPLACE, **spend_args())
    assert book.totals("site-a").epsilon_exact is None


def test_one_cohort_counted_by_person_and_by_row_has_one_budget(book: Ledger) -> None:
    for _ in range(3):
        book.spend(small(1.0), **spend_args())
    receipt = book.spend(small(1.0, unit="row"), **spend_args())
    assert receipt.before.epsilon_sum == 3.0
    with pytest.raises(BudgetError):
        book.spend(small(0.1, unit="row"), **spend_args())
    with pytest.raises(BudgetError):
        book.spend(small(0.1), **spend_args())
    assert book.verify().ok


@pytest.mark.parametrize(
    "name",
    [
        "site-a ", " site-a", "site\u2010a", "s\u0456te-a", "site-a\u200b", "ｓite-a", "site a", "site-a\n", "",
        "-site", "site-", "x" * 97, "site'; DROP TABLE ledger_entries; --", "../site", "site-a/group",
        "site-a/person/row", "site\0a", "ſite-a", 7,
    ],
)  # fmt: skip
def test_lookalikes_open_no_second_budget(file_book: Ledger, name: str) -> None:
    with pytest.raises(InputError):
        file_book.spend(small(0.1), **spend_args(partition=name))
    assert len(file_book.history()) == 1


def test_case_and_spelled_out_unit_are_the_same_budget(book: Ledger) -> None:
    for name in ("SITE-A", "Site-a", "site-a/person", "site-a"):
        book.spend(small(1.0), **spend_args(partition=name))
    assert list(book.accounts()) == ["site-a/person"]
    with pytest.raises(BudgetError):
        book.spend(small(0.1), **spend_args(partition="sITE-A"))
    assert partition_key("SITE-A", "row") == "site-a/row"
    with pytest.raises(InputError, match="does not count in units"):
        book.spend(small(0.1), **spend_args(partition="site-a/row"))


def test_partitions_do_not_share_by_default(book: Ledger) -> None:
    for site in ("site-a", "site-b"):
        for _ in range(4):
            book.spend(small(1.0), **spend_args(partition=site))
    assert book.totals("site-b").epsilon_sum == 4.0


class TestLife:
    def test_close(self, book: Ledger) -> None:
        receipt = book.spend(GAUSS, **spend_args())
        assert [e.seq for e in book.orphans()] == [receipt.entry]
        book.close_spend(receipt.entry, "sha256:" + "b" * 64)
        assert book.orphans() == []
        found = book.released_in("b" * 64)
        assert found is not None
        assert found.seq == receipt.entry
        assert book.released_in("c" * 64) is None

    def test_close_twice_with_the_same_bytes_changes_nothing_and_with_others_is_refused(self, book: Ledger) -> None:
        receipt = book.spend(GAUSS, **spend_args())
        first = book.close_spend(receipt.entry, "b" * 64)
        assert book.close_spend(receipt.entry, "b" * 64) == first
        with pytest.raises(RefusedError, match="one spend pays for one release"):
            book.close_spend(receipt.entry, "c" * 64)
        assert book.released_in("c" * 64) is None

    def test_close_with_one_digest_per_file(self, book: Ledger) -> None:
        receipt = book.spend(GAUSS, **spend_args())
        book.close_spend(receipt.entry, {"features.csv": "b" * 64, "coefficients.csv": "c" * 64})
        for digest in ("b" * 64, "c" * 64):
            found = book.released_in(digest)
            assert found is not None
            assert found.seq == receipt.entry

    @pytest.mark.parametrize("digest", ["", "b" * 63, "B" * 64, "g" * 64, {}, {"a": "b"}])
    def test_a_digest_must_be_one(self, file_book: Ledger, digest: object) -> None:
        receipt = file_book.spend(GAUSS, **spend_args())
        with pytest.raises(InputError):
            file_book.close_spend(receipt.entry, digest)  # type: ignore[arg-type]

    def test_only_spends_can_be_closed(self, book: Ledger) -> None:
        for entry in (0, 1, 99, -1):
            with pytest.raises(LedgerError, match="is no spend"):
                book.close_spend(entry, "b" * 64)

    def test_noise_drawn_at_once_is_sealed_by_nobody(self, book: Ledger) -> None:
        receipt = book.spend(GAUSS, **spend_args())
        with pytest.raises(RefusedError, match="drawn already"):
            book.draw(receipt.entry, "d" * 64)
        assert book.sealed_in(receipt.entry) is None

    def test_an_order_draws_until_a_statistic_is_sealed_then_never_again(self, book: Ledger) -> None:
        order = book.spend(GAUSS, **spend_args(draws="later"))
        with pytest.raises(RefusedError, match="has drawn no noise"):
            book.close_spend(order.entry, "b" * 64)
        assert book.sealed_in(order.entry) is None
        first = book.draw(order.entry, "d" * 64)
        assert book.draw(order.entry, "d" * 64) == first  # the answer was lost: asked again
        assert book.sealed_in(order.entry) == "d" * 64
        with pytest.raises(RefusedError, match="no other may be opened"):  # a run that was only slow
            book.draw(order.entry, "e" * 64)
        with pytest.raises(InputError):
            book.draw(order.entry, "none")
        assert book.totals("site-a").releases == 1
        assert book.verify().ok

    def test_the_same_order_is_answered_never_made_twice(self, book: Ledger) -> None:
        token = "0" * 32
        order = book.spend(GAUSS, **spend_args(draws="later"), token=token)
        again = book.spend(GAUSS, **spend_args(draws="later"), token=token)
        assert (again.entry, again.before, again.after) == (order.entry, order.before, order.after)
        assert book.totals("site-a").releases == 1
        with pytest.raises(RefusedError, match="other terms \\(mu, sigma\\)"):
            book.spend(replace(GAUSS, mu=0.1, sigma=10.0), **spend_args(draws="later"), token=token)
        with pytest.raises(RefusedError, match="another cohort"):
            book.spend(GAUSS, **spend_args(draws="later", partition="site-b"), token=token)

    def test_more_of_a_sealed_statistic_is_post_processing(self, book: Ledger) -> None:
        order = book.spend(GAUSS, **spend_args(draws="later"))
        book.draw(order.entry, "d" * 64)
        book.close_spend(order.entry, {"beta1.csv": "b" * 64})
        later = book.close_spend(order.entry, {"beta1.csv": "c" * 64})
        assert book.close_spend(order.entry, {"beta1.csv": "b" * 64}).seq < later.seq
        for digest in ("b" * 64, "c" * 64):
            found = book.released_in(digest)
            assert found is not None and found.seq == order.entry
        assert book.totals("site-a").model_exports == 1
        assert book.orphans() == []
        assert book.verify().ok


def test_pinned_only_when_id_and_key_agree(book: Ledger, url: str, key: Path) -> None:
    assert not book.spend(GAUSS, **spend_args()).pinned
    pin = book.pin()
    assert open_ledger(url, key=key, pins=[pin.to_json()]).spend(small(0.1), **spend_args()).pinned
    assert open_ledger(url, key=key, pins=[(pin.id, pin.head_key)]).pinned
    assert not open_ledger(url, key=key, pins=[(pin.id, "0" * 64)]).pinned
    assert not open_ledger(url, key=key, pins=[("0" * 32, pin.head_key)]).pinned


def test_bounds_count_only_when_registered_before_the_cohort_was_opened(book: Ledger) -> None:
    early, late = "1" * 64, "2" * 64
    book.register_bounds(early, "TRE staff", note="ages 40 to 90")
    book.register_cohort("site-a", range(50), who="analyst")
    book.register_bounds(late, "TRE staff")
    assert book.bounds_registered(early, before="site-a")
    assert book.bounds_registered(late)
    assert not book.bounds_registered(late, before="site-a")
    assert book.bounds_registered(late, before="site-b")
    assert not book.bounds_registered("3" * 64)
    assert book.verify().ok


def test_an_answer_lost_after_the_commit_is_counted_once(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server commits, the connection breaks before it says so, and the spend is tried again."""
    lost = OperationalError("COMMIT", {}, Exception("server closed the connection"), connection_invalidated=True)
    answers = [1, 0, 1, 0, 1, 0]

    @contextmanager
    def flaky(store: Store, identity: Identity, key: LedgerKey) -> Iterator[Writer]:
        with writing(store, identity, key) as writer:
            yield writer
        if answers.pop(0):
            raise LedgerError("the ledger's server cannot be reached") from lost

    monkeypatch.setattr(spending, "writing", flaky)
    receipt = book.spend(small(0.5), **spend_args())
    assert receipt.after.epsilon_sum == 0.5
    with pytest.raises(BudgetError):
        book.spend(small(0.5), **spend_args(limits=replace(LIMITS, epsilon_total=0.75)))
    book.close_spend(receipt.entry, "b" * 64)
    assert [entry.kind for entry in book.history()] == ["open", "spend", "refused", "close"]
    assert answers == []
    assert book.verify().ok


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_lives_never_overspend(tmp_path: Path, data: st.DataObject) -> None:
    book = open_ledger(tmp_path / f"{uuid.uuid4()}.db")
    granted = 0.0
    for _ in range(data.draw(st.integers(1, 8))):
        epsilon = data.draw(st.floats(1e-3, 1.0))
        try:
            book.spend(small(epsilon), **spend_args(ruleset_sha256=RULES))
            granted += epsilon
        except BudgetError:
            assert granted + epsilon > 4.0 - 1e-9
    assert book.totals("site-a").epsilon_sum == pytest.approx(granted, rel=1e-12)
    assert book.totals("site-a").epsilon_sum <= 4.0
    assert book.verify().ok
