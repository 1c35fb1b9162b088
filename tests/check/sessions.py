"""One finished session, made once for each test file, and copies of it to tamper with."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from checking import check
from people_register import register_frame

from sacro_deltab.judging.report import Report

N = 600
SITES = ["North", "South", "East", "West", "Moor", "Lake", "Vale", "Hill"]


@dataclass(frozen=True)
class Made:
    """A session's folder with what the TRE holds beside it."""

    folder: Path
    profile: Path
    ledger: Path
    cohort: Path

    def copy(self, where: Path) -> Made:
        """A copy of the folder, the rest as it is."""
        folder = where / "outputs"
        shutil.copytree(self.folder, folder)
        return Made(folder, self.profile, self.ledger, self.cohort)

    def check(self, **more: Any) -> Report:
        """Check with the TRE's profile and ledger."""
        more = {"profile": self.profile, "ledger": self.ledger, **more}
        return check(self.folder, ruleset=_ruleset(more.pop("profile")), **more)

    def results(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Edit results.json."""
        edit(self.folder / "results.json", change)

    def evidence(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Edit the evidence."""
        edit(self.folder / "inside" / "evidence.json", change)

    def record(self, name: str) -> str:
        """uid of the record that lists a file."""
        data = json.loads((self.folder / "results.json").read_text())
        return next(u for u, r in data["results"].items() if any(f["name"] == name for f in r["files"]))

    def seal(self, *names: str) -> None:
        """Write the checksums of changed files anew, as a careful forger does."""
        for name in names:
            digest = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
            (self.folder / "checksums" / f"{name}.txt").write_text(digest)


@cache
def _ruleset(profile: Path | None) -> Any:
    from sacro_deltab.rules import load_ruleset

    return load_ruleset(None, profile=profile)


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Load, change, write JSON."""
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")


def people(n: int = N, seed: int = 5) -> pd.DataFrame:
    """A cohort with deltas, a small diagnosis and a small site."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "participant_id": [f"P{i:05d}" for i in range(n)],
            "age": rng.integers(45, 80, n).astype(float),
            "delta": rng.normal(0.4, 4.0, n),
            "sex": rng.choice(["F", "M"], n),
            "diagnosis": rng.choice(["AD", "HC", "MCI", "Rare"], n, p=[0.3, 0.4, 0.282, 0.018]),
            "site": rng.choice(SITES, n, p=[0.15, 0.15, 0.14, 0.14, 0.14, 0.13, 0.13, 0.02]),
        }
    )


def make(where: Path, *, deltas: Any = None, noised: bool = False) -> Made:
    """Run a session: some outputs pass, some have marks, one goes to a person, one is withheld; or one with noise."""
    import acro

    from sacro_deltab import DeltabSession
    from sacro_deltab.ledger import open_ledger

    logging.disable(logging.CRITICAL)
    frame = people()
    frame.to_csv(where / "cohort.csv", index=False)
    ledger = where / "budget.db"
    pin = open_ledger(ledger).pin()
    profile = where / "profile.yaml"
    profile.write_text(
        "profile:\n  id: test-site\n  title: Test\n  ruleset: deltab-disclosure\n  decided_by: null\n"
        "attest:\n  egress.route: tre_airlock\n  dp.noise_inside_tre: true\n"
        f'ledgers:\n  - id: "{pin.id}"\n    head_key: "{pin.head_key}"\n'
    )
    register_frame(ledger, "test-cohort", frame)
    declare = {
        "schema": "sacro_deltab/declare/1",
        "role": "researcher",
        "by": "A Researcher",
        "facts": {"output.declared": True, "dp.trust_model": "central_at_node"},
        "outputs": {"asked": {"output.declared": False}},
    }
    session = DeltabSession(
        acro.ACRO(suppress=False),
        cohort="test-cohort",
        profile=profile,
        ledger=ledger,
        declare=declare,
        people=frame["participant_id"],
        journal=where / "journal",
    )
    values = frame["delta"].to_numpy() if deltas is None else deltas
    session.release_n()
    if noised:
        session.release_private_mean(values, epsilon=0.5, name="noised_mean")
        return Made(Path(session.finalise(where / "outputs")), profile, ledger, where / "cohort.csv")
    session.release_mean(values)
    session.release_sd(values)
    session.release_group_means(values, frame["sex"], title="Mean delta by sex")
    session.release_group_means(values, frame["site"], title="Mean delta by site", name="by_site")
    session.release_group_means(values, frame["diagnosis"], title="Mean delta by diagnosis", name="by_diagnosis")
    session.release_counts(frame["sex"], title="People by sex")
    session.release_quantiles(values)
    session.release_counts(frame["sex"], title="People by sex", name="asked")
    folder = session.finalise(where / "outputs")
    return Made(Path(folder), profile, ledger, where / "cohort.csv")
