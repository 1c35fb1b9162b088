"""The TRE's register: who is in a cohort, found again under other ids; nobody else accused, nothing kept that tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_helpers import small, spend_args

from sacro_deltab.base.errors import BudgetError, InputError
from sacro_deltab.ledger import Ledger, schema
from sacro_deltab.ledger.register import Intake, Rows, find_people, forget, registered
from sacro_deltab.ledger.tokens import Tokeniser, agreeing, steps_of

N, F = 300, 24


def table(n: int = N, f: int = F, seed: int = 0) -> Rows:
    """People with thickness-like columns that share patterns, a group column and a coded one."""
    rng = np.random.default_rng(seed)
    shared = np.random.default_rng(99).normal(size=(4, f))
    x = np.round(2.6 + 0.05 * rng.normal(size=(n, 4)) @ shared + 0.06 * rng.normal(size=(n, f)), 4)
    numbers = {f"Thickness_{j}": x[:, j] for j in range(f)} | {"visit": rng.integers(1, 3, n).astype(float)}
    sites = [str(s) for s in rng.choice(["north", "south", "east"], n)]
    return Rows([f"P{i:04d}" for i in range(n)], numbers, {"site": sites}, range(2, n + 2), "line")


def enter(book: Ledger, cohort: str, rows: Rows, **more: Any) -> Any:
    intake = Intake(book)
    intake.add(rows)
    return intake.register(cohort, who="staff", **more)


def renamed(rows: Rows) -> Rows:
    return replace(rows, ids=[f"z{i}" for i in rows.ids])


def altered(rows: Rows, seed: int = 5) -> Rows:
    """Other ids and another order, 5 % of values moved by less than a rounding step, a tenth of columns left out."""
    rng, steps = np.random.default_rng(seed), steps_of(rows.numbers)
    order, names = rng.permutation(len(rows.ids)), list(rows.numbers)
    kept = [names[j] for j in sorted(rng.permutation(len(names))[: int(0.9 * len(names))])]
    moved = {}
    for name in kept:
        step = steps.get("".join(c for c in name.casefold() if c.isalnum()), 0.0)
        values = rows.numbers[name]
        moved[name] = (values + (rng.random(values.size) < 0.05) * rng.uniform(-step, step, values.size))[order]
    return Rows([f"x{i}" for i in order], moved, {}, rows.places, rows.place)


def test_a_registered_cohort_is_known_whole_and_by_a_registered_group(book: Ledger) -> None:
    rows = table()
    check = enter(book, "site-a", rows, units={"Thickness_0": "mm"})
    assert (check.status, check.people, check.reasons) == ("new", N, ())
    whole = registered(book, "site-a", reversed(rows.ids))
    assert whole is not None and (whole.version, whole.part) == (1, None)
    north = [i for i, site in zip(rows.ids, rows.words["site"], strict=True) if site == "north"]
    part = registered(book, "site-a", north)
    assert part is not None and part.part == "site"
    assert registered(book, "site-a", north[1:]) is None
    assert registered(book, "site-a", [*rows.ids, "P9999"]) is None
    assert registered(book, "site-b", rows.ids) is None
    assert book.verify().problems == ()


@pytest.mark.parametrize("spelled", ["p0000", " P0000 ", "P0\u200b000", "\uff30\uff10\uff10\uff10\uff10", "P 0000"])
def test_one_person_has_one_spelling(file_book: Ledger, spelled: str) -> None:
    rows = table(60)
    enter(file_book, "site-a", rows)
    assert registered(file_book, "site-a", [spelled, *rows.ids[1:]]) is not None
    with pytest.raises(InputError, match="a person stands in two rows") as caught:
        enter(file_book, "site-c", replace(rows, ids=[*rows.ids[:-1], spelled]))
    assert caught.value.place == "lines 2 and 61" and caught.value.next_step
    assert registered(file_book, "site-c", rows.ids) is None


def test_a_column_is_recognised_by_name_and_no_other_is(file_book: Ledger) -> None:
    rows = table()
    enter(file_book, "site-a", rows)
    known = registered(file_book, "site-a", rows.ids)
    assert known is not None
    values = rows.numbers["Thickness_3"]
    assert known.source(values) == "Thickness_3" and known.is_column("thickness 3", values)
    assert not known.is_column("Thickness_4", values)
    assert known.source(rows.words["site"]) == "site"
    changed = values.copy()
    changed[7] += 0.001
    for other in (changed, values[::-1].copy(), values * 10, np.full(N, np.nan), rows.numbers["visit"] + 1):
        assert known.source(other) is None


def test_the_same_people_under_other_ids_share_one_budget(book: Ledger) -> None:
    rows = table()
    enter(book, "site-a", rows)
    for _ in range(3):
        book.spend(small(1.0), **spend_args())
    check = enter(book, "site-b", altered(rows))
    # how many are found depends on the ledger's random key: of 300 at least 296 and 299.8 on average over 200 keys
    assert check.overlaps[0].partition == "site-a/person" and check.overlaps[0].shared >= 0.97 * N
    assert "share one budget" in check.reasons[0] and str(check.overlaps[0].shared) not in check.reasons[0]
    found = find_people(book, "site-z", altered(rows, 8).ids, altered(rows, 8).numbers, who="analyst")
    assert found is not None and {o.partition for o in found.overlaps} >= {"site-a/person"}
    book.spend(small(1.0), **spend_args(partition="site-z"))
    for site in ("site-a", "site-b", "site-z"):
        with pytest.raises(BudgetError):
            book.spend(small(1.0), **spend_args(partition=site))
    assert book.verify().problems == ()


def test_nobody_else_is_accused(file_book: Ledger) -> None:
    enter(file_book, "site-a", table())
    for seed in range(1, 26):
        other = table(seed=seed)
        assert find_people(file_book, "site-b", [f"q{i}" for i in other.ids], other.numbers, who="x") is None


def test_few_columns_or_coarse_ones_give_no_tokens() -> None:
    rows = table()
    few = {name: rows.numbers[name] for name in [f"Thickness_{j}" for j in range(8)]}
    tokens = Tokeniser(b"k" * 32, steps_of(few)).tokens(few)
    assert not tokens.any() and agreeing(tokens, tokens).size == 0
    assert "visit" not in steps_of(rows.numbers)


def test_tokens_need_the_key_and_bear_missing_values() -> None:
    rows = table()
    steps = steps_of(rows.numbers)
    mine, theirs = (Tokeniser(key * 32, steps).tokens(rows.numbers) for key in (b"a", b"b"))
    assert agreeing(mine, theirs).size == 0
    rng = np.random.default_rng(3)
    holes = {n: np.where(rng.random(N) < 0.05, np.nan, v) for n, v in rows.numbers.items()}
    pairs = agreeing(Tokeniser(b"a" * 32, steps).tokens(holes), mine)
    assert np.unique(pairs[:, 0]).size >= 0.99 * N and (pairs[:, 0] == pairs[:, 1]).all()
    nobody = {n: np.full(3, np.nan) for n in rows.numbers}
    assert not Tokeniser(b"a" * 32, steps).tokens(nobody).any()


@pytest.mark.parametrize("copies", [1, 8, 20])
def test_a_row_twice_under_two_ids_is_named(file_book: Ledger, copies: int) -> None:
    rows = table()
    for values in rows.numbers.values():
        values[40 : 40 + copies] = values[12]
    with pytest.raises(InputError, match="one person stands under two ids") as caught:
        enter(file_book, "site-a", rows)
    assert caught.value.place == "lines 14 and 42"
    assert registered(file_book, "site-a", rows.ids) is None and file_book.history("site-a") == []


def test_a_new_version_follows_and_spends_still_count(file_book: Ledger) -> None:
    rows = table()
    enter(file_book, "site-a", rows)
    file_book.spend(small(1.0), **spend_args())
    fewer = Rows(
        rows.ids[:-1], {n: v[:-1] for n, v in rows.numbers.items()}, {"site": rows.words["site"][:-1]}, rows.places[:-1]
    )
    assert enter(file_book, "site-a", fewer).reasons == ()
    now = registered(file_book, "site-a", fewer.ids)
    assert now is not None and now.version == 2
    assert registered(file_book, "site-a", rows.ids) is None, "consent was withdrawn"
    assert file_book.totals("site-a").epsilon_sum == 1.0


def test_what_is_forgotten_finds_nobody_and_the_chain_holds(book: Ledger) -> None:
    rows = table()
    enter(book, "site-a", rows)
    forget(book, "site-a", who="staff")
    assert find_people(book, "site-b", renamed(rows).ids, rows.numbers, who="x") is None
    known = registered(book, "site-a", rows.ids)
    assert known is not None and known.source(rows.words["site"]) is None
    assert book.verify().problems == ()
    with pytest.raises(InputError, match="no such cohort"):
        forget(book, "site-q", who="staff")


@pytest.mark.parametrize("change", ["columns", "tokens", "row", "extra"])
def test_a_changed_register_is_named(file_book: Ledger, change: str) -> None:
    enter(file_book, "site-a", table())
    register, tokens = schema.register, schema.tokens
    with file_book.store.write() as connection:
        if change == "columns":
            connection.execute(register.update().values(columns="{}"))
        elif change == "tokens":
            connection.execute(tokens.update().values(tokens=b"\0" * 192))
        elif change == "row":
            connection.execute(register.delete())
        else:
            row = {"partition": "x/person", "version": 1, "seq": 99, "people": "0" * 64, "columns": None}
            connection.execute(register.insert().values(**row))
    assert not file_book.verify().ok


def test_no_id_and_no_value_stands_in_the_file(file_book: Ledger) -> None:
    rows = table(50)
    enter(file_book, "site-a", replace(rows, words={"site": ["north-ward"] * 25 + ["south-ward"] * 25}))
    assert file_book.store.file is not None
    data = b"".join(p.read_bytes() for p in Path(file_book.store.file).parent.glob(f"{file_book.store.file.name}*")
                    if not p.name.endswith(".key"))  # fmt: skip
    for secret in (b"P0007", b"p0007", b"north-ward", str(rows.numbers["Thickness_0"][0]).encode()):
        assert secret not in data
    assert b"Thickness_0" in data
