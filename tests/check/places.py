"""A folder that passes, and what its author can do to it: edit anything, then write checksums and certificate again."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checking import check
from people_register import register_frame
from sessions import people

from sacro_deltab.certificate import seal_folder
from sacro_deltab.judging.report import Report

_SEALED = ("certificate.json", "certificate.dsse.json", "certificate.dsse.txt")


@dataclass(frozen=True)
class Folder:
    """A finished folder with the rules and the ledger of its TRE."""

    path: Path
    ruleset: Any
    ledger: Path

    def check(self) -> Report:
        """As the TRE checks it."""
        return check(self.path, ruleset=self.ruleset, ledger=self.ledger)

    def copy(self, where: Path) -> Folder:
        """A copy to edit."""
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(self.path, where)
        return Folder(where, self.ruleset, self.ledger)

    def json(self, name: str) -> Any:
        """A parsed file."""
        return json.loads((self.path / name).read_text(encoding="utf-8"))

    def checksum(self, *names: str) -> None:
        """Write checksums as ACRO does, without any key."""
        for name in names:
            digest = hashlib.sha256((self.path / name).read_bytes()).hexdigest()
            (self.path / "checksums" / f"{name}.txt").write_text(digest)

    def seal(self) -> None:
        """The last step of `finalise` once more, over whatever lies there now."""
        listed = [f["name"] for r in self.json("results.json")["results"].values() for f in r["files"]]
        self.checksum("results.json", *(n for n in listed if n not in _SEALED and (self.path / n).is_file()))
        evidence = self.json("inside/evidence.json")
        for name in _SEALED:
            (self.path / name).unlink(missing_ok=True)
        seal_folder(self.path, evidence=evidence, ruleset=self.ruleset, certificate_id=str(evidence["session"]["id"]))


def passing(where: Path) -> Folder:
    """A session of which every output passes: numbers, tables, a picture."""
    import acro

    from sacro_deltab import DeltabSession
    from sacro_deltab.ledger import open_ledger
    from sacro_deltab.rules import load_ruleset

    logging.disable(logging.CRITICAL)
    frame = people()
    pin = open_ledger(where / "budget.db").pin()
    register_frame(where / "budget.db", "test-cohort", frame)
    profile = where / "profile.yaml"
    profile.write_text(
        "profile:\n  id: test-site\n  title: Test\n  ruleset: deltab-disclosure\n  decided_by: null\n"
        "attest:\n  egress.route: tre_airlock\n  dp.noise_inside_tre: true\n"
        f'ledgers:\n  - id: "{pin.id}"\n    head_key: "{pin.head_key}"\n'
    )
    said = {"output.declared": True, "dp.trust_model": "central_at_node"}
    session = DeltabSession(
        acro.ACRO(suppress=False),
        cohort="test-cohort",
        profile=profile,
        ledger=where / "budget.db",
        declare={"schema": "sacro_deltab/declare/1", "role": "researcher", "by": "A Researcher", "facts": said},
        people=frame["participant_id"],
        journal=where / "journal",
    )
    values = frame["delta"].to_numpy()
    session.release_n()
    session.release_mean(values)
    session.release_quantiles(values)
    session.release_group_means(values, frame["sex"], title="Mean delta by sex", name="by_sex")
    session.release_counts(frame["sex"], title="People by sex", name="people_by_sex")
    session.release_plot("by_sex")
    session.finalise(where / "outputs")
    return Folder(where / "outputs", load_ruleset(None, profile=profile), where / "budget.db")
