"""Certified folders for tests: keys are made once, the check is a report made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import cert_builder as cb

from sacro_deltab.base.findings import Effect
from sacro_deltab.certificate.certify import Certified, Request, certify_folder
from sacro_deltab.certificate.keys import SigningKey, keygen
from sacro_deltab.judging.report import FileReport, Report
from sacro_deltab.ledger.trust import Trust, load_trust

ROLES = ("tool", "checker1", "checker2", "dac")


@dataclass(frozen=True)
class Ring:
    """One key a role and the trust file that knows them."""

    keys: Mapping[str, SigningKey]
    trust_path: Path

    @property
    def trust(self) -> Trust:
        return load_trust(self.trust_path)


def ring(name: str = "one") -> Ring:
    """The keys of one TRE; made once."""
    return _ring(name)


@cache
def _ring(name: str) -> Ring:
    folder = Path(mkdtemp(prefix=f"cert-keys-{name}-"))
    keys = {role: keygen(folder / f"{role}.pem", role, folder / "trust.json", b"secret", now=cb.NOW) for role in ROLES}
    return Ring(keys, folder / "trust.json")


def report(verdict: str = "review") -> Report:
    """A report of `check` over the folder of `cert_builder`."""
    ask = cb.found("ST-02", Effect.REVIEW, "Is the site name sensitive?")
    raw = cb.found("PR-04", Effect.REVIEW, "Does one person carry this cell?")
    block = cb.found("MP-01", Effect.BLOCK)
    outputs = []
    for name in ("folded_weights", "delta_by_diagnosis"):
        for suffix in ("csv", "json"):
            table = name.startswith("delta")
            outputs.append(
                FileReport(
                    f"{name}.{suffix}",
                    type="delta_mean_by_diagnosis" if table else "folded_weights",
                    title=name,
                    findings=[] if not table or verdict == "pass" else [ask, raw] if verdict == "review" else [block],
                    met=("MP-02",),
                    facts=[("n", "recorded"), ("cell.n", "computed")],
                    output=name,
                )
            )
    return Report({}, outputs, kept_inside=["session_summary.csv"], not_checked=["the weather"])


def request(keys: Ring, verdict: str = "review", **options: Any) -> Request:
    return Request(
        **{
            "trust": keys.trust,
            "policy": cb.POLICY,
            "check": lambda folder: report(verdict),
            "now": cb.NOW,
            **options,
        }
    )


def certified(folder: Path, verdict: str = "review", keys: Ring | None = None, **options: Any) -> Path:
    """A session folder, sealed and signed by the tool key."""
    cb.make_session(folder)
    certify(folder, verdict, keys, **options)
    return folder


def certify(folder: Path, verdict: str = "review", keys: Ring | None = None, **options: Any) -> Certified:
    keys = keys or ring()
    return certify_folder(folder, keys.keys["tool"], request(keys, verdict, **options))
