"""What a forger, or a node that is not honest, could send: each is refused with its own message."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from federation_nodes import World, forge, order, refused, say, statement_of

from sacro_deltab.base.errors import RefusedError
from sacro_deltab.federation.aggregate import aggregate

ENVELOPE = "certificate.dsse.json"


def copy_of(world: World, tmp_path: Path, name: str = "site-a") -> Path:
    return Path(shutil.copytree(world.nodes[name], tmp_path / f"{name}-copy"))


def set_checksum(folder: Path, name: str) -> None:
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "checksums" / f"{name}.txt").write_text(digest, newline="")


def test_the_certificate_of_another_node(world: World, tmp_path: Path) -> None:
    folder = copy_of(world, tmp_path)
    shutil.copy(world.nodes["site-b"] / ENVELOPE, folder / ENVELOPE)
    set_checksum(folder, ENVELOPE)
    assert "was changed" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_edited_numbers_with_their_checksums_made_again(world: World, tmp_path: Path) -> None:
    folder = copy_of(world, tmp_path)
    path = folder / "noised_moments.json"
    path.write_text(path.read_text().replace('["t", ', '["t", 1'))
    set_checksum(folder, path.name)
    assert "noised_moments.json was changed" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_an_edited_statement_under_the_old_signature(world: World, tmp_path: Path) -> None:
    folder = copy_of(world, tmp_path)
    envelope = json.loads((folder / ENVELOPE).read_text())
    old = envelope["payload"]
    new = base64.b64encode(base64.b64decode(old).replace(b'"site-a"', b'"site-b"')).decode()
    assert new != old
    (folder / ENVELOPE).write_text((folder / ENVELOPE).read_text().replace(old, new))
    set_checksum(folder, ENVELOPE)
    assert "(signatures)" in refused(world, tmp_path, folder, world.nodes["site-b"])


def test_signed_by_the_key_of_another_node(world: World, tmp_path: Path) -> None:
    folder = forge(world, "site-a", tmp_path, key_of="site-b")
    assert "is a key of node site-b" in refused(world, tmp_path, folder, world.nodes["site-b"])


def as_site_b(world: World, *, ledger: bool) -> Any:
    """site-a's statement in the words of site-b, with its ledger where asked."""
    other = statement_of(world.nodes["site-b"])["predicate"]

    def change(content: dict[str, Any]) -> None:
        predicate = content["predicate"]
        predicate["certificate_id"] = "00000000-0000-4000-8000-000000000000"
        predicate["made"] |= {"node": "site-b", "time": datetime.now(UTC).replace(microsecond=0).isoformat()}
        if ledger:
            predicate["privacy"]["ledger"] = other["privacy"]["ledger"]
            for mine, its in zip(predicate["privacy"]["releases"], other["privacy"]["releases"], strict=True):
                mine["ledger"] = its["ledger"]

    return change


@pytest.mark.parametrize("way", ["summed_moments", "fedavg_shared", "fedavg_folded"])
def test_one_bundle_under_two_names_with_a_ledger_each(world: World, tmp_path: Path, way: str) -> None:
    twin = forge(world, "site-a", tmp_path, statement=as_site_b(world, ledger=True), key_of="site-b")
    assert "identical noise" in refused(world, tmp_path, world.nodes["site-a"], twin, way=way)


def test_one_ledger_pinned_for_two_nodes(world: World, tmp_path: Path) -> None:
    trust = json.loads(world.trust.read_text())
    pin = next(entry for entry in trust["ledgers"] if entry["node"] == "site-a")
    trust["ledgers"].append({**pin, "node": "site-b"})
    path = tmp_path / "trust.json"
    path.write_text(json.dumps(trust))
    twin = forge(world, "site-a", tmp_path, statement=as_site_b(world, ledger=False), key_of="site-b")
    assert "one TRE under two names" in refused(world, tmp_path, world.nodes["site-a"], twin, trust=path)


def _entry(stem: str, place: int, value: Any) -> Any:
    return {stem: lambda d: d["rows"][place].__setitem__(-1, value)}


def _opposed(data: dict[str, Any]) -> None:
    """Everybody old, and nobody far from the middle, who is the further from it the older: far beyond the noise."""
    n, rows = data["about"]["n_public"], {row[0]: row for row in data["rows"]}
    rows["t"][1], rows["q"][1], rows["tq"][1] = 0.95 * n, -0.95 * n, 0.95 * n


def _count(value: Any) -> Any:
    return {"noised_moments": lambda d: d["about"].update(n_public=value)}


@pytest.mark.parametrize(
    ("way", "documents", "words"),
    [
        ("summed_moments", {"noised_moments": _opposed}, "no sums of squares and products"),
        ("summed_moments", {"noised_moments": lambda d: d["about"].update(releases=2)}, "several releases"),
        ("summed_moments", {"noised_moments": lambda d: d["about"]["layout"].update(tau=2)}, "incomplete"),
        ("summed_moments", _count("500"), "incomplete"),
        ("summed_moments", _count(10**15), "two different numbers"),
        ("summed_moments", _count(-500), "two different numbers"),
        ("summed_moments", _entry("noised_moments", 0, 10**17), "do not fit together"),
        ("fedavg_shared", _entry("beta1", 0, "x"), "no model of ages"),
        ("fedavg_shared", _entry("beta1", 0, None), "no model of ages"),
        ("fedavg_shared", _entry("beta1", 0, 1e99), "no model of ages"),
        ("fedavg_shared", _entry("beta2", 0, "x"), "no model of ages"),
        ("fedavg_folded", _entry("folded_weights", 0, 1e99), "no model of ages"),
        ("fedavg_folded", _entry("folded_weights", 0, "x"), "is no weight"),
        ("fedavg_folded", {"folded_weights": lambda d: d["rows"][0].__setitem__(2, 0)}, "is no weight"),
        ("fedavg_folded", {"folded_weights": lambda d: d["rows"].pop()}, "have no intercept"),
    ],
)
def test_numbers_that_cannot_be(world: World, tmp_path: Path, way: str, documents: Any, words: str) -> None:
    folder = forge(world, "site-a", tmp_path, documents=documents)
    assert words in refused(world, tmp_path, folder, world.nodes["site-b"], way=way)


def test_budgets_of_nodes_that_may_share_people_stay_within_the_total(world: World, tmp_path: Path) -> None:
    def spent(content: dict[str, Any]) -> None:
        content["predicate"]["privacy"]["ledger"]["after"]["epsilon_sum"] = 3.5

    folder = forge(world, "site-a", tmp_path, statement=spent)
    paths = (folder, world.nodes["site-b"])
    assert "add up: ε 4.5 of 4" in refused(world, tmp_path, *paths)
    done = aggregate(order(world, tmp_path / "pooled", *paths, disjoint="J. Doe"), say)
    assert done.totals.total_epsilon == 3.5


def test_another_job_than_the_one_given(world: World, tmp_path: Path) -> None:
    done = aggregate(order(world, tmp_path / "pooled", job=world.job, basis=None), say)
    assert done.order.expect == 2
    other = tmp_path / "job.yaml"
    other.write_text(world.job.read_text() + "# one more line\n")
    shutil.rmtree(tmp_path / "pooled")
    assert "ran another job file" in refused(world, tmp_path, job=other)


def test_a_round_written_meanwhile(world: World, tmp_path: Path) -> None:
    from sacro_deltab.federation import history

    path = tmp_path / "rounds.jsonl"
    before = history.load_history(path)
    aggregate(order(world, tmp_path / "pooled", history=path), say)
    line = dict(history.load_history(path).rounds[0])
    with pytest.raises(RefusedError, match="meanwhile"):
        history.append(before, line)
    assert len(path.read_text().splitlines()) == 1
    history.append(replace(before, rounds=(line,)), {**line, "previous": line["sha256"]})
    assert len(path.read_text().splitlines()) == 2
