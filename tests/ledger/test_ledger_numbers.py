"""A ledger of 100,000 entries: showing it and spending from it stay quick, because neither reads them all."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from ledger_helpers import LIMITS, small, spend_args
from sqlalchemy import insert

from sacro_deltab.base.digests import sha256_hex
from sacro_deltab.ledger import Ledger, open_ledger, schema
from sacro_deltab.ledger.canonical import body_text
from sacro_deltab.ledger.chain import Account, sealed, sums_digest
from sacro_deltab.ledger.spending import request_json
from sacro_deltab.ledger.tally import Tally

ENTRIES = 100_000
COHORTS = [f"site-{i}/person" for i in range(40)]
ROOMY = replace(LIMITS, epsilon_total=1e6)


def grown(book: Ledger, entries: int) -> None:
    """Honest entries in one transaction: spends of forty cohorts, each closed."""
    request, sums, digests, rows = small(0.01), dict.fromkeys(COHORTS, Tally()), {}, []
    body = {
        **request_json(request), "draws": "now", "limits": asdict(ROOMY), "ruleset_sha256": "a" * 64,
        "versions": {}, "epsilon_exact_after": None,
    }  # fmt: skip
    (head,) = book.history()
    while head.seq < entries:
        name = COHORTS[head.seq // 2 % len(COHORTS)]
        after, ref = {"sha256": "b" * 64}, head.seq
        if head.seq % 2:
            before, sums[name] = sums[name], sums[name].plus(request)
            digests[name] = sha256_hex(Account(sums[name], (), ROOMY).text())
            after, ref = {**body, "before": before.to_json(), "after": sums[name].to_json()}, None
        changes = {"seq": head.seq + 1, "kind": "spend" if ref is None else "close", "partition": name, "ref": ref}
        chained = {
            "token": f"{head.seq:032x}",
            "body": body_text(after),
            "state": sums_digest(digests),
            "prev": head.digest,
        }
        head = sealed(book.signing_key(), replace(head, **changes, **chained, digest="", signature=""))
        rows.append({name: value for name, value in vars(head).items() if name != "ledger"})
    texts = [{"partition": name, "tally": Account(tally, (), ROOMY).text()} for name, tally in sums.items()]
    with book.store.write() as connection:
        connection.execute(insert(schema.entries), rows)
        connection.execute(insert(schema.partitions), texts)


@pytest.fixture
def large(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Ledger:
    """On the real disk, since this one is about time."""
    book = open_ledger(tmp_path_factory.mktemp("large") / "budget.db", key=key)
    grown(book, ENTRIES)
    return book


def best(act: Callable[[], object], times: int) -> float:
    """Shortest of several runs: what the work takes when nothing else has the machine."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def shown(command: list[str]) -> tuple[float, float]:
    """Seconds on the wall and of the processor that a command takes, from start to end; best of five."""
    wall, processor = [], []
    for _ in range(5):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        wall.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(wall), min(processor)


@pytest.mark.soak
def test_a_hundred_thousand_entries(large: Ledger, record_property: Callable[[str, object], None]) -> None:
    assert large.store.file is not None
    command = [sys.executable, "-c", "from sacro_deltab.cli import main; main()", "ledger", "show", "--json"]
    command += ["--ledger", str(large.store.file)]
    show, show_cpu = shown(command)
    spend = best(lambda: large.spend(small(0.01), **spend_args(limits=ROOMY, partition="site-0")), 20)
    start = time.perf_counter()
    report = large.verify()
    record_property("show, seconds", show)
    record_property("show, processor seconds", show_cpu)
    record_property("spend, seconds", spend)
    record_property("verify, seconds", time.perf_counter() - start)
    assert report.problems == ()
    assert min(show, show_cpu) < 1.0  # the processor's seconds are what is left of it on a machine with other work
    assert spend < 0.020


def test_a_grown_ledger_is_a_sound_one(file_book: Ledger) -> None:
    """What the long run measures is what honest spends would have written."""
    grown(file_book, 400)
    assert file_book.verify().problems == ()
    file_book.spend(small(0.01), **spend_args(limits=ROOMY, partition="site-0"))
    assert file_book.verify().problems == ()
