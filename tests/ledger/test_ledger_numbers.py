"""A ledger of 100,000 entries: showing it and spending from it stay quick, because neither reads them all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ledger_helpers import LIMITS, small, spend_args

from sacro_deltab.privacy.ledger import Ledger, open_ledger
from sacro_deltab.privacy.ledger.chain import writing

ENTRIES = 100_000
ROOMY = replace(LIMITS, epsilon_total=1e6)


def grown(book: Ledger, entries: int) -> None:
    """Honest entries in few transactions: spends of forty cohorts, each closed."""
    from dataclasses import asdict

    from sacro_deltab.privacy.ledger.chain import Account
    from sacro_deltab.privacy.ledger.spending import request_json
    from sacro_deltab.privacy.ledger.tally import Tally

    request = small(0.01)
    body = {
        **request_json(request), "draws": "now", "limits": asdict(ROOMY), "ruleset_sha256": "a" * 64,
        "versions": {}, "epsilon_exact_after": None,
    }  # fmt: skip
    tallies = {f"site-{i}/person": Tally() for i in range(40)}
    names = list(tallies)
    with writing(book.store, book.identity, book.signing_key()) as writer:
        while writer.head.seq < entries:
            name = names[writer.head.seq // 2 % 40]
            before = tallies[name]
            after = tallies[name] = before.plus(request)
            spend = writer.append(
                "spend",
                {**body, "before": before.to_json(), "after": after.to_json()},
                who="analyst",
                partition=name,
                accounts={name: Account(after, (), ROOMY)},
            )
            if writer.head.seq < entries:
                writer.append("close", {"sha256": "b" * 64}, who="analyst", partition=name, ref=spend.seq)


@pytest.fixture
def large(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Ledger:
    """On the real disk, since this one is about time."""
    book = open_ledger(tmp_path_factory.mktemp("large") / "budget.db", key=key)
    grown(book, int(os.environ.get("SACRO_DELTAB_LEDGER_ENTRIES", ENTRIES)))
    return book


def best(act: Callable[[], object], times: int) -> float:
    """Shortest of several runs: what the work takes when nothing else has the machine."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


@pytest.mark.soak
def test_a_hundred_thousand_entries(large: Ledger, record_property: Callable[[str, object], None]) -> None:
    assert large.store.file is not None
    command = [sys.executable, "-c", "from sacro_deltab.cli import main; main()", "ledger", "show", "--json"]
    command += ["--ledger", str(large.store.file)]
    show = best(lambda: subprocess.run(command, check=True, capture_output=True, timeout=60), 5)
    spend = best(lambda: large.spend(small(0.01), **spend_args(limits=ROOMY, partition="site-0")), 20)
    start = time.perf_counter()
    report = large.verify()
    record_property("show, seconds", show)
    record_property("spend, seconds", spend)
    record_property("verify, seconds", time.perf_counter() - start)
    assert report.problems == ()
    assert show < 1.0
    assert spend < 0.020
