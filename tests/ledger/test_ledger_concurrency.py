"""Many processes spending at once: never over the limit, nothing lost, nothing counted twice, no deadlock."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger_helpers import LIMITS, small, spend_args

from sacro_deltab.base.errors import BudgetError
from sacro_deltab.ledger import open_ledger
from sacro_deltab.privacy.spend import BudgetLimits


def _spender(url: str, key: Path, number: int, attempts: int, limits: BudgetLimits, gate: Any, answers: Any) -> None:
    book = open_ledger(url, key=key)
    gate.wait(60)
    granted, refused = [], 0
    for attempt in range(attempts):
        request = small(0.005, outputs=(f"process {number} attempt {attempt}",))
        try:
            granted.append(book.spend(request, **spend_args(who=f"process {number}", limits=limits)).entry)
        except BudgetError:
            refused += 1
    answers.put((granted, refused))


def race(url: str, key: Path, *, processes: int, attempts: int, affordable: int) -> float:
    """Let processes race for a budget of `affordable` releases; return the seconds it took."""
    budget = affordable * 5 / 1000
    limits = replace(LIMITS, epsilon_total=budget)
    context = multiprocessing.get_context("fork")
    gate, answers = context.Barrier(processes), context.Queue()
    args = (attempts, limits, gate, answers)
    workers = [context.Process(target=_spender, args=(url, key, i, *args)) for i in range(processes)]
    start = time.monotonic()
    for worker in workers:
        worker.start()
    results = [answers.get(timeout=580) for _ in workers]
    seconds = time.monotonic() - start
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    entries = [entry for granted, _ in results for entry in granted]
    refused = sum(count for _, count in results)
    assert len(entries) == len(set(entries)) == affordable
    assert len(entries) + refused == processes * attempts
    book = open_ledger(url, key=key, create=False)
    kinds = [entry.kind for entry in book.history()]
    assert (kinds.count("open"), kinds.count("spend"), kinds.count("refused")) == (1, affordable, refused)
    assert book.totals("site-a").epsilon_sum == budget
    assert book.verify().problems == ()
    return seconds


def test_processes_race_for_the_last_of_the_budget(new_url: Callable[[], str], key: Path) -> None:
    """Opened, made and spent from by eight processes at once."""
    race(new_url(), key, processes=8, attempts=12, affordable=60)


def test_readers_are_not_alarmed_by_a_writer(new_url: Callable[[], str], key: Path) -> None:
    """Opening and verifying while another process spends: sound each time."""
    url = new_url()
    open_ledger(url, key=key)
    context = multiprocessing.get_context("fork")
    gate, answers = context.Barrier(2), context.Queue()
    limits = replace(LIMITS, epsilon_total=100.0)
    writer = context.Process(target=_spender, args=(url, key, 0, 60, limits, gate, answers))
    writer.start()
    gate.wait(60)
    rounds = 0
    while writer.is_alive() or rounds < 3:
        assert open_ledger(url, key=key, create=False, read_only=True).verify().problems == ()
        rounds += 1
    granted, refused = answers.get(timeout=60)
    writer.join(60)
    assert (len(granted), refused) == (60, 0)


@pytest.mark.soak
def test_sixteen_processes_of_two_hundred_attempts(
    new_url: Callable[[], str], key: Path, record_property: Callable[[str, object], None]
) -> None:
    seconds = race(new_url(), key, processes=16, attempts=200, affordable=2400)
    record_property("seconds", seconds)
