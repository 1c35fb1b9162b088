"""Two certified nodes made by real sessions, and ways to forge them that only an honest-looking node could."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sacro_deltab.certificate.canonical import canonical_json
from sacro_deltab.certificate.certify import Request, certify_folder
from sacro_deltab.certificate.envelope import sign
from sacro_deltab.certificate.keys import keygen, load_key
from sacro_deltab.certificate.policy import policy_of
from sacro_deltab.cohort import read_cohort
from sacro_deltab.privacy.basis import Basis
from sacro_deltab.privacy.ledger import open_ledger
from sacro_deltab.rules import load_ruleset
from sacro_deltab.screening import check_paths
from sacro_deltab.session.pipeline import Plan, run_cohort
from sacro_deltab.simulate import smith_cohort
from sacro_deltab.trust import load_trust, pin_ledger

FEATURES = 12
SIZES = {"site-a": 500, "site-b": 1500}
DECLARE = {
    "schema": "sacro_deltab/declare/1",
    "role": "researcher",
    "by": "A simulated researcher",
    "simulated": True,
    "facts": {"output.declared": True, "dp.trust_model": "central_at_node"},
}
ATTEST = {
    "schema": "sacro_deltab/declare/1",
    "role": "tre_staff",
    "by": "Simulated TRE staff",
    "simulated": True,
    "facts": {"egress.route": "tre_airlock", "dp.noise_inside_tre": True},
}


@dataclass(frozen=True)
class World:
    """Folders of the two nodes as they left their TREs, with what the aggregator has."""

    home: Path
    nodes: dict[str, Path]
    trust: Path
    basis: Path
    cohorts: dict[str, Any]

    @property
    def both(self) -> tuple[Path, ...]:
        return tuple(self.nodes.values())


def people(name: str) -> pd.DataFrame:
    """A node's people; in site-a one sex is too rare to be shown."""
    size = SIZES[name]
    drawn = smith_cohort(size + 1, FEATURES, seed=10 + size)
    table = pd.DataFrame(drawn.X[:size], columns=list(drawn.feature_names))
    table.insert(0, "age", drawn.age[:size])
    table.insert(0, "participant_id", [f"{name}-{i}" for i in range(size)])
    rare = 12 if name == "site-a" else 300
    table["group"] = np.where(
        np.arange(size) < rare, "rare", np.char.add("scanner ", (np.arange(size) % 7).astype(str))
    )
    return table


def make_world(home: Path) -> World:
    """Run, certify and release both nodes."""
    public = smith_cohort(900, FEATURES, seed=1)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=4, made_on="simulated people")
    basis.save(home / "basis.json")
    trust = home / "trust.json"
    nodes, cohorts = {}, {}
    for name in SIZES:
        nodes[name], cohorts[name] = _node(home, name, trust)
    keygen(home / "aggregator.pem", "tool", trust, b"x", node="aggregator")
    return World(home, nodes, trust, home / "basis.json", cohorts)


def _node(home: Path, name: str, trust: Path) -> tuple[Path, Any]:
    place = home / name
    place.mkdir()
    key = keygen(place / "key.pem", "tool", trust, b"x", node=name)
    ledger = open_ledger(place / "budget.db")
    pin_ledger(trust, ledger.id, ledger.head_key, node=name)
    table = people(name)
    cohort = read_cohort(
        table=table, id_column="participant_id", group_columns=["group"], feature_columns=list(table.columns[2:-1])
    )
    (place / "declare.json").write_text(json.dumps(DECLARE))
    (place / "attest.json").write_text(json.dumps(ATTEST))
    plan = Plan(
        out=place / "outputs", basis=home / "basis.json", epsilon=1.0, method="moments", moments=True, by=("group",),
        cohort=name, ledger=str(place / "budget.db"), trust=trust, declare=place / "declare.json",
        attest=place / "attest.json",
    )  # fmt: skip
    folder = run_cohort(plan, cohort, lambda text: None).folder
    ruleset = load_ruleset()
    trusted = load_trust(trust)

    def check(where: Path) -> dict[str, Any]:
        return check_paths([where], ruleset=ruleset, trust=trusted, ledger=plan.ledger).to_json()

    certify_folder(folder, load_key(key.path, b"x"), Request(trusted, policy_of(ruleset), check, ledger=plan.ledger))
    released = home / "released" / name
    shutil.copytree(folder, released, ignore=shutil.ignore_patterns("inside"))
    return released, cohort


Change = Callable[[dict[str, Any]], None]


def forge(
    world: World,
    name: str,
    where: Path,
    *,
    documents: dict[str, Change] | None = None,
    statement: Change | None = None,
    key_of: str | None = None,
    source: str | None = None,
) -> Path:
    """A node's folder changed and signed again by its own key: what a careless or dishonest *node* could send."""
    folder = where / f"{name}-forged"
    shutil.copytree(world.nodes[source or name], folder)
    envelope = json.loads((folder / "certificate.dsse.json").read_text())
    content = json.loads(base64.b64decode(envelope["payload"]))
    for stem, change in (documents or {}).items():
        path = folder / f"{stem}.json"
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False))
        raw = path.read_bytes()
        entry = next(s for s in content["subject"] if s["name"] == path.name)
        entry["digest"] = {"sha256": hashlib.sha256(raw).hexdigest(), "sha512": hashlib.sha512(raw).hexdigest()}
        checksum = entry["digest"]["sha256"].encode()
        (folder / "checksums" / f"{path.name}.txt").write_bytes(checksum)
        content["predicate"]["checksums"][path.name] = hashlib.sha256(checksum).hexdigest()
    if statement is not None:
        statement(content)
    key = load_key(world.home / (key_of or name) / "key.pem", b"x")
    (folder / "certificate.dsse.json").write_bytes(sign(canonical_json(content), key).to_bytes())
    digest = hashlib.sha256((folder / "certificate.dsse.json").read_bytes()).hexdigest()
    (folder / "checksums" / "certificate.dsse.json.txt").write_text(digest, newline="")
    return folder


def order(world: World, out: Path, *paths: Path, **more: Any) -> Any:
    """An order on these folders (both nodes by default)."""
    from sacro_deltab.federation.aggregate import Order

    base = Order(paths=paths or world.both, out=out, trust=world.trust, basis=world.basis)
    return replace(base, **more)


def day(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(f"{text}T12:00:00+00:00")
