"""Which of two marked cells was small cannot be seen in any byte of a release: the same session, the two swapped."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from test_cert_session import SITES, Place

from sacro_deltab.certificate.certify import Request, certify_folder
from sacro_deltab.certificate.crate import write_crate
from sacro_deltab.certificate.envelope import read_envelope
from sacro_deltab.certificate.policy import policy_of
from sacro_deltab.ledger.trust import load_trust, pin_ledger
from sacro_deltab.rules import load_ruleset

RANDOM = (  # what differs between any two sessions: ids, times, digests, signatures
    (re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), b"UUID"),
    (re.compile(rb"\b[0-9a-f]{128}\b|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b"), b"HEX"),
    (re.compile(rb"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})?"), b"TIME"),
    (re.compile(rb"[0-9a-f]{12}(?=[\"/])"), b"HEX"),
    (re.compile(rb"Payload-Oxum: \d+\.\d+|\"contentSize\": \"\d+\""), b"SIZE"),
)


def stripped(data: bytes) -> bytes:
    for pattern, word in RANDOM:
        data = pattern.sub(word, data)
    return data


def released(root: Path, small: str, other: str) -> dict[str, bytes]:
    """Everything that may leave of a session in which `small` has the 12 people and `other` the 28."""
    import numpy as np
    import pandas as pd

    from sacro_deltab.check import check_paths
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    root.mkdir()
    place = Place(root)
    pin_ledger(place.trust, place.pin.id, place.pin.head_key)
    sizes = {**SITES, small: 12, other: 28}
    sites = pd.Series([s for s in SITES for _ in range(sizes[s])], name="site")
    people = [f"P{i:04d}" for i in range(len(sites))]
    rng = np.random.default_rng(3)
    values = pd.Series(rng.normal(0.7, 4.0, len(sites)))
    deltas = pd.concat([values[sites == s] for s in sites.unique() if s not in (small, other)]).tolist()
    rest = rng.normal(0.7, 4.0, 40).tolist()  # the same forty people, whichever site they are of
    by_site = {small: rest[:12], other: rest[12:]}
    fixed = iter(deltas)
    ordered = [by_site[s].pop(0) if s in by_site else next(fixed) for s in sites]
    said = {"schema": "sacro_deltab/declare/1", "simulated": True}
    session = DeltabSession(
        quiet_acro(),
        cohort="site-x",
        people=people,
        ledger=place.ledger,
        journal=root / ".journal",
        profile=place.profile,
        declare={**said, "role": "researcher", "by": "researcher",
                 "facts": {"output.declared": True, "dp.trust_model": "central_at_node"}},
        attest={**said, "role": "tre_staff", "by": "tre_staff",
                "facts": {"egress.route": "tre_airlock", "dp.noise_inside_tre": True}},
    )  # fmt: skip
    session.release_n()
    session.release_group_means(ordered, sites)
    session.release_group_sds(ordered, sites)
    session.release_counts(sites)
    session.release_mean(ordered)
    session.finalise(place.folder)
    trust, ruleset = load_trust(place.trust), load_ruleset(None, profile=place.profile)

    def check(where: Path) -> Any:
        return check_paths([where], ruleset=ruleset, trust=trust, ledger=str(place.ledger))

    certify_folder(place.folder, place.key, Request(trust, policy_of(ruleset), check, ledger=str(place.ledger)))
    files = {p.name: p.read_bytes() for p in place.folder.iterdir() if p.is_file()}
    files["certificate.dsse.json"] = read_envelope(place.folder / "certificate.dsse.json").payload
    del files["certificate.dsse.txt"]  # the same payload with its signature, in base64
    write_crate(place.folder, trust, root / "crate.zip")
    with zipfile.ZipFile(root / "crate.zip") as archive:
        inner = {n.split("/", 1)[1]: archive.read(n) for n in archive.namelist()}
    return files | {n: body for n, body in inner.items() if not n.startswith("data/outputs/")}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], dict[str, bytes]]:
    root = tmp_path_factory.mktemp("mark")
    return released(root / "one", "H", "G"), released(root / "two", "G", "H")


def test_the_table_leaves_with_both_cells_marked(both: tuple[dict[str, bytes], dict[str, bytes]]) -> None:
    table = both[0]["count_by_site.csv"]
    marked = [line.split(b",")[0] for line in table.splitlines() if b"*" in line]
    assert marked == [b"G", b"H"]
    assert any(r["status"] != "fail" for r in json.loads(both[0]["results.json"])["results"].values())


def test_no_byte_says_which_one_was_small(both: tuple[dict[str, bytes], dict[str, bytes]]) -> None:
    one, two = both
    assert set(one) == set(two)
    different = [name for name in one if stripped(one[name]) != stripped(two[name])]
    assert different == []
