"""kill -9 in the middle of a release: what was drawn was always paid for first."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ledger_helpers import GAUSS, LIMITS, spend_args

from sacro_deltab.base.errors import RefusedError
from sacro_deltab.ledger import Ledger, open_ledger
from sacro_deltab.ledger.tally import covers

ROOMY = replace(LIMITS, epsilon_total=1e6, delta_total=1.0)


def release(book: Ledger, drawn: Path, noise: Callable[[], bytes], number: int) -> None:
    """One release as a session makes it: spend, draw, (mark,) open, close. An opening cannot be undone by a kill."""
    later = number % 2 == 1
    request = replace(GAUSS, outputs=(f"release {number}",))
    receipt = book.spend(request, **spend_args(limits=ROOMY, draws="later" if later else "now"))
    body = noise()
    if later:
        book.draw(receipt.entry, hashlib.sha256(body).hexdigest())
    with drawn.open("ab") as file:
        file.write(f"{receipt.entry}\n".encode())
        file.flush()
        os.fsync(file.fileno())
    book.close_spend(receipt.entry, hashlib.sha256(body).hexdigest())


def killed(url: str, key: Path, drawn: Path, noise: Callable[[], bytes], number: int, after: float | None) -> bool:
    """Run one release in a forked process, killed after so many seconds (None: never). True when it came through."""
    child = os.fork()
    if child == 0:
        try:
            release(open_ledger(url, key=key), drawn, noise, number)
            os._exit(0)
        except BaseException:
            os._exit(1)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL)
    return code == 0


def survive(url: str, key: Path, drawn: Path, noise: Callable[[], bytes], *, kills: int, seed: int) -> dict[str, int]:
    """Kill releases at random points, then hold the ledger against what was drawn."""
    rng = random.Random(seed)
    open_ledger(url, key=key)
    assert covers(GAUSS.mu or 0, 1.0, 1e-6)  # loads scipy before the forks
    times = []
    for number in range(5):
        start = time.monotonic()
        assert killed(url, key, drawn, noise, number, None)
        times.append(time.monotonic() - start)
    span = 1.3 * statistics.median(times)
    through = sum(killed(url, key, drawn, noise, 5 + i, rng.uniform(0, span)) for i in range(kills))

    book = open_ledger(url, key=key, create=False)
    report = book.verify()
    assert report.problems == ()
    spends = {entry.seq for entry in book.history() if entry.kind == "spend"}
    draws = [int(line) for line in drawn.read_text().split()]
    assert len(draws) == len(set(draws))
    assert set(draws) <= spends
    assert book.totals("site-a").releases == len(spends) >= len(draws)
    orphans = {entry.seq for entry in book.orphans()}
    assert len(spends - orphans) >= 5 + through
    for orphan in sorted(orphans):  # an order draws again only if nothing was opened on it
        try:
            book.draw(orphan, "d" * 64)
        except RefusedError:
            continue
        assert orphan not in draws
    assert book.verify().ok
    return {
        "kills": kills,
        "came through": through,
        "spends": len(spends),
        "draws": len(draws),
        "orphans": len(orphans),
    }


def test_kill_at_random_points(new_url: Callable[[], str], key: Path, tmp_path: Path) -> None:
    survive(new_url(), key, tmp_path / "drawn", lambda: os.urandom(64), kills=12, seed=1)


@pytest.mark.soak
@pytest.mark.os_randomness
def test_a_thousand_kills(
    new_url: Callable[[], str], key: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """With the real sampler, which is loaded before the forks."""
    from sacro_deltab.privacy.sampler import discrete_gaussian

    discrete_gaussian(10.0, 4)
    found = survive(
        new_url(), key, tmp_path / "drawn", lambda: discrete_gaussian(4.2266 * 2**20, 64).tobytes(), kills=1000, seed=2
    )
    record_property("found", found)
