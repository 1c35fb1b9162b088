"""kill -9 between order and folder: either nothing was spent, or the result can be taken up; nothing is drawn again
once somebody has seen it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from declarations import ATTEST, DECLARE

from sacro_deltab.base.canonical import canonical_line
from sacro_deltab.base.digests import sha256_hex
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.ledger import Ledger, open_ledger
from sacro_deltab.ledger.keys import KEY_VARIABLE
from sacro_deltab.privacy import Basis
from sacro_deltab.session.journal import Journal

N = 120
PUBLIC, STUDY = smith_cohort(120, 4, seed=1), smith_cohort(N, 4, seed=2)
BASIS = Basis.from_public(PUBLIC.X, PUBLIC.age, PUBLIC.feature_names, n_components=2, made_on="simulated")
FRAME = pd.DataFrame(STUDY.X, columns=list(STUDY.feature_names))
DELTAS = np.random.default_rng(5).normal(0, 4, N)
STEPS = (  # every step that leaves something behind: a kill comes just before it or just after it
    (os, "fsync"), (Path, "replace"), (Path, "rename"), (Ledger, "spend"), (Ledger, "draw"), (Ledger, "close_spend"),
    (Ledger, "record_release"), (Journal, "write"), (Journal, "stage"),
)  # fmt: skip


class Trial:
    """One request: a training, a noised mean, a folder; its own people, so its own budget."""

    def __init__(self, url: str, place: Path, number: int) -> None:
        self.url, self.place, self.cohort = url, place / str(number), f"cohort-{number}"
        self.place.mkdir()
        self.journal, self.seen = self.place / "journal", self.place / "seen"
        self.how: dict[str, Any] = {
            "people": [f"T{number}-{i}" for i in range(N)], "ledger": url, "declare": DECLARE, "attest": ATTEST,
        }  # fmt: skip

    def see(self, what: str, value: object) -> None:
        """Somebody looks at a result: a line that no kill undoes."""
        with self.seen.open("a", encoding="ascii") as handle:
            handle.write(f"{what} {sha256_hex(canonical_line(value))}\n")

    def session(self) -> Any:
        """A new session, or the one that was killed."""
        from sacro_deltab.run.pipeline import quiet_acro
        from sacro_deltab.session.acro_session import DeltabSession

        old = [path.parent for path in self.journal.glob("*/journal.jsonl") if path.read_text(encoding="utf-8").strip()]
        if old:
            return DeltabSession.resume(quiet_acro(), old[0], **self.how)
        return DeltabSession(quiet_acro(), cohort=self.cohort, journal=self.journal, **self.how)

    def ask(self, out: str) -> None:
        """All that is asked for, from wherever the session stands."""
        session = self.session()
        models = session.private_models
        model = models[0] if models else self.trained(session)
        self.see("model", model.weights.to_json())
        names = {entry.name for entry in session.entries}
        if "beta1" not in names:
            session.release_weights(model, only=["beta1"])
        if "delta_mean_private" not in names:
            session.release_private_mean(DELTAS, epsilon=0.25)
        self.see("mean", [list(row) for row in session.find("delta_mean_private").raw.rows])
        session.finalise(self.place / out)

    @staticmethod
    def trained(session: Any) -> Any:
        return session.train_private(
            FRAME, STUDY.age, basis=BASIS, epsilon=0.5, membership_test=False, spend_anyway=True
        )

    def child(self, out: str, at: int | None, after: float | None = None) -> int | None:
        """`ask` in a process of its own, killed at a step (or after so many seconds). Steps taken; None: killed."""
        pid = os.fork()
        if pid == 0:
            try:
                os.chdir(self.place)
                count = _counted(at)
                self.ask(out)
                (self.place / "steps").write_text(str(count[0]))
                os._exit(0)
            except BaseException as error:
                (self.place / "error").write_text(f"{type(error).__name__}: {error}")
                os._exit(1)
        if after is not None:
            time.sleep(after)
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code in (0, -signal.SIGKILL), (self.place / "error").read_text()
        return int((self.place / "steps").read_text()) if code == 0 else None

    def check(self) -> int:
        """Take up what there is, in a process of its own, and hold the ledger against what was seen."""
        book = open_ledger(self.url, create=False)
        before = [e for e in book.history(self.cohort) if e.kind == "spend"]
        self.child("taken-up", None)  # raises nothing: whatever was paid for is there
        history = book.history(self.cohort)
        spends = [e for e in history if e.kind == "spend"]
        assert {e.seq for e in before} <= {e.seq for e in spends}
        assert len(spends) == 2, "a second spend for what was paid for"
        assert sorted(json.loads(e.body)["epsilon"] for e in spends) == [0.25, 0.5]
        assert sorted(e.ref or 0 for e in history if e.kind == "draw") == sorted(e.seq for e in spends)
        for what in ("model", "mean"):
            seen = {line for line in self.seen.read_text().splitlines() if line.startswith(what)}
            assert len(seen) == 1, "something else was drawn after an opening"
        assert (self.place / "taken-up" / "beta1.json").is_file()
        shutil.rmtree(self.place)
        return len(before)


def _counted(at: int | None) -> list[int]:
    """Count the steps of this process; die at the one given."""
    count = [0]

    def step() -> None:
        count[0] += 1
        if count[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(act: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, **kwargs: Any) -> Any:
            step()
            found = act(*args, **kwargs)
            step()
            return found

        return inner

    for owner, name in STEPS:
        setattr(owner, name, wrapped(getattr(owner, name)))
    return count


def _load() -> None:
    """All that a trial imports, before the forks."""
    import sacro_deltab.privacy.stored
    import sacro_deltab.session.acro_session  # noqa: F401
    from sacro_deltab.ledger.tally import covers
    from sacro_deltab.privacy.sampler import discrete_gaussian, discrete_laplace
    from sacro_deltab.run.pipeline import quiet_acro

    quiet_acro()
    discrete_gaussian(10.0, 4), discrete_laplace(10.0, 4)
    covers(0.2, 1.0, 1e-6)


def survive(url: str, key: Path, place: Path, *, points: int | None, timed: int, seed: int) -> dict[str, int]:
    """Kill at steps (None: at every one) and at random moments, and take up each time."""
    os.environ[KEY_VARIABLE] = str(key)
    _load()
    rng = random.Random(seed)
    open_ledger(url, key=key).register_bounds(BASIS.digest, "TRE staff")
    start = time.monotonic()
    steps = Trial(url, place, 0).child("out", None)
    span = time.monotonic() - start
    assert steps is not None and steps > 30
    at = list(range(1, steps + 1)) if points is None else sorted(rng.sample(range(1, steps + 1), points))
    trials = [(k, None) for k in at] + [(None, rng.uniform(0, span)) for _ in range(timed)]
    killed = paid = 0
    for number, (step, after) in enumerate(trials, start=1):
        trial = Trial(url, place, number)
        killed += trial.child("out", step, after) is None
        paid += trial.check() > 0
    assert open_ledger(url, create=False).verify().ok
    return {"steps": steps, "trials": len(trials), "killed": killed, "killed after a spend": paid}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "")


@pytest.mark.os_randomness
def test_nothing_paid_is_lost(
    new_url: Callable[[], str], key: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("found", survive(new_url(), key, tmp_path, points=2, timed=1, seed=1))


@pytest.mark.soak
@pytest.mark.os_randomness
def test_nothing_paid_is_lost_at_any_step(
    new_url: Callable[[], str], key: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Every step once, and random moments: a thousand kills over the two kinds of database."""
    record_property("found", survive(new_url(), key, tmp_path, points=None, timed=380, seed=3))
