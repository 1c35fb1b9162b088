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
import pytest
import yaml
from declarations import ATTEST

from sacro_deltab.base.errors import RefusedError, SacroDeltabError
from sacro_deltab.certificate.certify import Request, certify_folder
from sacro_deltab.certificate.envelope import sign
from sacro_deltab.certificate.keys import keygen, load_key
from sacro_deltab.certificate.policy import policy_of
from sacro_deltab.certificate.shown import shown_envelope
from sacro_deltab.certificate.statement import in_full, statement_bytes
from sacro_deltab.check import check_paths
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.judging.report import Report
from sacro_deltab.ledger import open_ledger
from sacro_deltab.ledger.trust import load_trust, pin_ledger
from sacro_deltab.privacy import PublicBounds
from sacro_deltab.privacy.basis import Basis
from sacro_deltab.rules import load_ruleset
from sacro_deltab.run.job_run import run_job
from sacro_deltab.run.plan import Plan
from sacro_deltab.run.registering import register_table

FEATURES = 12
SIZES = {"site-a": 500, "site-b": 1500}
OUTPUTS = [
    "noised_moments", "folded_weights", "beta1", "beta2", "beta2sq", "gamma", "gammasq", "y_mean", "ysq_mean",
    "ysq_slope", "n_subjects", "delta_mean", "delta_sd",
]  # fmt: skip


@dataclass(frozen=True)
class World:
    """Folders of the two nodes as they left their TREs, with what the aggregator has."""

    home: Path
    nodes: dict[str, Path]
    trust: Path
    basis: Path
    job: Path

    @property
    def both(self) -> tuple[Path, ...]:
        return tuple(self.nodes.values())


def people(name: str) -> pd.DataFrame:
    """A node's people, with a confound; in site-a one group is too rare to be shown."""
    size = SIZES[name]
    drawn = smith_cohort(size + 1, FEATURES, seed=10 + size)
    table = pd.DataFrame(drawn.X[:size], columns=list(drawn.feature_names))
    table.insert(0, "age", drawn.age[:size])
    table.insert(0, "participant_id", [f"{name}-{i}" for i in range(size)])
    table["head_size"] = 1500 + 100 * np.random.default_rng(size).normal(size=size)
    rare = 12 if name == "site-a" else 300
    table["group"] = np.where(
        np.arange(size) < rare, "rare", np.char.add("scanner ", (np.arange(size) % 7).astype(str))
    )
    return table


def job_content(basis: Basis, **model: Any) -> dict[str, Any]:
    """A job file for these nodes. model: instead of the basis's digest and four components."""
    ruleset = load_ruleset()
    return {
        "job": {"id": "two-nodes", "title": "Brain age over two TREs"},
        "rule_set": {"id": ruleset.id, "sha256": ruleset.sha256},
        "inputs": {
            "id_column": "participant_id",
            "age": {"column": "age", "unit": "years"},
            "features": [{"name": n, "unit": u} for n, u in zip(basis.feature_names, basis.units, strict=True)],
            "groups": ["group"],
            "minimum_n": 300,
        },
        "model": {"method": "moments", **(model or {"n_components": 4, "basis_digest": basis.digest})},
        "privacy": {"epsilon": 1.0, "adjacency": "zero_out_N_public"},
        "outputs": OUTPUTS,
        "tables": [{"by": "group", "statistic": "mean"}],
        "expect": 2,
        "declare": {"by": "A simulated researcher", "simulated": True, "facts": {"output.declared": True}},
    }


def make_basis(path: Path) -> Basis:
    """A shared basis of four components from other simulated people."""
    public = smith_cohort(900, FEATURES, seed=1)
    units = ["mm"] * FEATURES
    basis = Basis.from_public(
        public.X, public.age, public.feature_names, units, n_components=4, made_on="simulated people"
    )
    basis.save(path)
    return basis


def make_world(home: Path, *, bounds: Path | None = None, job: dict[str, Any] | None = None) -> World:
    """Run one job at both nodes, certify and release what came of it.

    bounds: a bounds file that each node registers and uses instead of the basis.
    """
    basis = make_basis(home / "basis.json")
    path, trust = home / "job.yaml", home / "trust.json"
    path.write_text(yaml.safe_dump(job or job_content(basis), sort_keys=False), encoding="utf-8")
    nodes = {name: _node(home, name, trust, path, bounds) for name in SIZES}
    keygen(home / "aggregator.pem", "tool", trust, b"x", node="aggregator")
    return World(home, nodes, trust, home / "basis.json", path)


def _node(home: Path, name: str, trust: Path, job: Path, bounds: Path | None) -> Path:
    place = home / name
    place.mkdir()
    key = keygen(place / "key.pem", "tool", trust, b"x", node=name)
    ledger = open_ledger(place / "budget.db")
    pin_ledger(trust, ledger.id, ledger.head_key, node=name)
    if bounds is not None:
        ledger.register_bounds(PublicBounds.load(bounds).digest, "Simulated TRE staff")
    else:
        ledger.register_bounds(Basis.load(home / "basis.json").digest, "Simulated TRE staff")
    people(name).to_csv(place / "people.csv", index=False)
    register_table(ledger, place / "people.csv", name, id_column="participant_id", who="Simulated TRE staff")
    (place / "attest.json").write_text(json.dumps(ATTEST))
    plan = Plan(
        out=place / "outputs", ages=place / "people.csv", features=place / "people.csv",
        basis=home / "basis.json" if bounds is None else None, bounds=bounds, cohort=name,
        ledger=str(place / "budget.db"), trust=trust, attest=place / "attest.json",
    )  # fmt: skip
    folder = run_job(job, plan, lambda text: None).folder
    ruleset = load_ruleset()
    trusted = load_trust(trust)

    def check(where: Path) -> Report:
        return check_paths([where], ruleset=ruleset, trust=trusted, ledger=plan.ledger)

    certify_folder(folder, load_key(key.path, b"x"), Request(trusted, policy_of(ruleset), check, ledger=plan.ledger))
    released = home / "released" / name
    shutil.copytree(folder, released, ignore=shutil.ignore_patterns("inside"))
    return released


Change = Callable[[dict[str, Any]], None]


def statement_of(folder: Path) -> dict[str, Any]:
    """A node's signed statement in full, to be changed."""
    envelope = json.loads((folder / "certificate.dsse.json").read_text())
    full: dict[str, Any] = json.loads(json.dumps(in_full(json.loads(base64.b64decode(envelope["payload"])))))
    return full


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
    content = statement_of(folder)
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
    signed = sign(statement_bytes(content), key).to_bytes()
    for one, data in {"certificate.dsse.json": signed, "certificate.dsse.txt": shown_envelope(signed)}.items():
        (folder / one).write_bytes(data)
        (folder / "checksums" / f"{one}.txt").write_text(hashlib.sha256(data).hexdigest(), newline="")
    return folder


def order(world: World, out: Path, *paths: Path, **more: Any) -> Any:
    """An order on these folders (both nodes by default)."""
    from sacro_deltab.federation.order import Order

    base = Order(paths=paths or world.both, out=out, trust=world.trust, basis=world.basis)
    return replace(base, **more)


def day(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(f"{text}T12:00:00+00:00")


def say(_: str) -> None:
    """Progress is not looked at here."""


def refused(
    world: World, tmp_path: Path, *paths: Path, error: type[SacroDeltabError] = RefusedError, **more: Any
) -> str:
    """The message of a refused pooling, which left nothing."""
    from sacro_deltab.federation.aggregate import aggregate

    out = tmp_path / "pooled"
    with pytest.raises(error) as caught:
        aggregate(order(world, out, *paths, **more), say)
    assert not out.exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")], "a working folder was left"
    assert caught.value.exit_code in (1, 2)
    return str(caught.value)
