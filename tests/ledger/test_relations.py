"""Every spend counts in each neighbouring relation's total at its price there; the relation that is capped is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ledger_helpers import LIMITS, spend_args

from sacro_deltab.base.errors import BudgetError
from sacro_deltab.ledger import Ledger
from sacro_deltab.privacy import SpendRequest, compose
from sacro_deltab.privacy.mechanisms import epsilon_of_mu, mu_of

ROOMY = replace(LIMITS, epsilon_total=40.0, delta_total=1.0, epsilon_per_release=10.0)


def request(adjacency: str, epsilon: float = 1.0, mechanism: str = "gaussian") -> SpendRequest:
    delta = 0.0 if mechanism == "laplace" else 1e-6
    mu = mu_of(epsilon, delta) if mechanism == "gaussian" else None
    label: Any = "heuristic" if mechanism == "noise" else "formal"
    return SpendRequest(
        mechanism, epsilon, delta, mu, None if mu is None else 1 / mu, adjacency, "person", ("x",), "statistic", label,  # type: ignore[arg-type]
        n_public=None if adjacency == "add_remove" else 500,
    )  # fmt: skip


def spend(book: Ledger, asked: SpendRequest, **more: Any) -> None:
    book.spend(asked, **{**spend_args(), "limits": ROOMY, **more})


def test_a_mix_has_three_totals(file_book: Ledger) -> None:
    for adjacency in ("zero_out_N_public", "replace_one", "add_remove"):
        spend(file_book, request(adjacency))
    spent = file_book.by_relation("site-a")
    twice = epsilon_of_mu(2 * mu_of(1.0, 1e-6), 1e-6)
    assert twice == pytest.approx(2.12, abs=0.01)
    assert spent["zero_out_N_public"].epsilon == pytest.approx(3.0)
    assert spent["replace_one"].epsilon == pytest.approx(1.0 + 2 * twice)
    assert not spent["add_remove"].holds  # two of them used an exact N
    assert spent["zero_out_N_public"].smallest(1e-6) == pytest.approx(epsilon_of_mu(3**0.5 * mu_of(1.0, 1e-6), 1e-6))
    assert spent["add_remove"].smallest(1e-6) is None
    spend(file_book, request("zero_out_N_public", 0.5, "noise"))
    assert file_book.by_relation("site-a")["replace_one"].epsilon == pytest.approx(2.0 + 2 * twice)
    assert file_book.verify().ok


def test_secret_n_alone_has_an_epsilon(file_book: Ledger) -> None:
    spend(file_book, request("add_remove"))
    spend(file_book, request("add_remove", 0.5, "laplace"))
    spent = file_book.by_relation("site-a")
    assert spent["add_remove"].holds and spent["add_remove"].epsilon == pytest.approx(1.5)
    assert spent["replace_one"].pure == pytest.approx(1.0)


def test_mixes_with_laplace_take_the_smallest_valid_total(file_book: Ledger) -> None:
    for _ in range(6):
        spend(file_book, request("zero_out_N_public"))
    for _ in range(20):
        spend(file_book, request("zero_out_N_public", 0.1, "laplace"))
    found = file_book.by_relation("site-a")["zero_out_N_public"].smallest(1e-6)
    assert found is not None and found < 8.0  # the plain sum
    gauss = {"mechanism": "gaussian", "mu": mu_of(1.0, 1e-6), "delta": 1e-6, "epsilon": 1.0}
    least = compose([gauss] * 6 + [{"mechanism": "laplace", "scale": 10.0, "epsilon": 0.1}] * 20, 1e-6)
    assert found == pytest.approx(least.epsilon_smallest) and found <= 3.69
    one = {"mechanism": "gaussian", "mu": 0.2, "epsilon": 0.9, "delta": 1e-6}
    big = compose([one, {"mechanism": "laplace", "scale": 0.5, "epsilon": 2.0}], 1e-6)
    assert big.epsilon_smallest == pytest.approx(epsilon_of_mu(0.2, 1e-6) + 2.0)
    assert big.epsilon_zcdp_cks is not None and big.epsilon_zcdp_cks > 4


def test_the_capped_relation_is_the_rule_sets(file_book: Ledger) -> None:
    limits = replace(LIMITS, epsilon_total=4.0, delta_total=1.0)
    spend(file_book, request("zero_out_N_public"), limits=limits, relation="replace_one")
    with pytest.raises(BudgetError, match="under replace_one, which is capped"):
        spend(file_book, request("zero_out_N_public"), limits=limits, relation="replace_one")
    spend(file_book, request("zero_out_N_public"), limits=limits)  # of the other relation 2 of 4 are spent
    assert file_book.by_relation("site-a")["zero_out_N_public"].epsilon == pytest.approx(2.0)
