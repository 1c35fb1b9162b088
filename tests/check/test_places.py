"""Places in a finished folder where its author could hide something: each is refused, the folder itself passes.

The author edits what he likes outside `inside/` (and some of it inside), then writes checksums and the unsigned
certificate again, as he can without any key.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import Folder, passing

from sacro_deltab.base.errors import SacroDeltabError

Edit = Callable[[Folder], None]
AGES = "61.5 70.2 55.6 62.8"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return passing(tmp_path_factory.mktemp("session"))


def in_json(name: str, change: Callable[[Any], Any], indent: int = 4) -> Edit:
    def edit(folder: Folder) -> None:
        data = folder.json(name)
        change(data)
        (folder.path / name).write_text(json.dumps(data, indent=indent), encoding="utf-8")

    return edit


def record(change: Callable[[dict[str, Any]], Any], name: str = "by_sex") -> Edit:
    return in_json("results.json", lambda data: change(data["results"][name]))


def text(name: str, change: Callable[[str], str]) -> Edit:
    def edit(folder: Folder) -> None:
        path = folder.path / name
        before = path.read_bytes().decode("utf-8")
        after = change(before)
        assert after != before
        path.write_bytes(after.encode("utf-8"))

    return edit


def both(*edits: Edit) -> Edit:
    def edit(folder: Folder) -> None:
        for one in edits:
            one(folder)

    return edit


def chunks(change: Callable[[list[tuple[bytes, bytes]]], list[tuple[bytes, bytes]]], end: bytes = b"") -> Edit:
    def edit(folder: Folder) -> None:
        path = folder.path / "by_sex_plot.png"
        data, at, found = path.read_bytes(), 8, []
        while at < len(data):
            length, kind = struct.unpack_from(">I4s", data, at)
            found.append((kind, data[at + 8 : at + 8 + length]))
            at += 12 + length
        out = data[:8]
        for kind, body in change(found):
            out += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        path.write_bytes(out + end)

    return edit


def pixels(change: Callable[[bytearray], None], level: int = 9) -> Edit:
    def packed(found: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        raw = bytearray(zlib.decompress(b"".join(body for kind, body in found if kind == b"IDAT")))
        change(raw)
        return [found[0], (b"IDAT", zlib.compress(bytes(raw), level)), found[-1]]

    return chunks(packed)


def order(data: dict[str, Any], *keys: str) -> None:
    """Put these keys first."""
    rest = dict(data)
    data.clear()
    data.update({key: rest[key] for key in (*keys, *(k for k in rest if k not in keys))})


def made(name: str, body: bytes = b"") -> Edit:
    def edit(folder: Folder) -> None:
        path = folder.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    return edit


CSV, JSON = "by_sex.csv", "by_sex.json"
EDITED: dict[str, Edit] = {
    # config.json: rebuilt from what the session recorded
    "config: another number": in_json("config.json", lambda c: c.update(safe_threshold=19)),
    "config: a number of many digits": in_json("config.json", lambda c: c.update(safe_nk_k=0.6157)),
    "config: another order": in_json("config.json", lambda c: order(c, "suppress")),
    "config: another extension": in_json("config.json", lambda c: c["blocked_extensions"].append(".pdf")),
    "config: another entry": in_json("config.json", lambda c: c.update(people=AGES)),
    "config: another flag": in_json("config.json", lambda c: c.update(zeros_are_disclosive=False)),
    "config: blanks": text("config.json", lambda t: t + " "),
    "config: escapes": text("config.json", lambda t: t.replace("safe_nk_n", "s\\u0061fe_nk_n")),
    "config: a number that says the same": text("config.json", lambda t: t.replace("0.9", "0.90")),
    "config: our entry": in_json("config.json", lambda c: c["deltab"].update(more=AGES)),
    "config: both it and the evidence": both(
        in_json("config.json", lambda c: c.update(people=AGES)),
        in_json("inside/evidence.json", lambda e: e["session"]["acro_config"].update(people=AGES)),
    ),
    # results.json: rebuilt
    "record: status": record(lambda r: r.update(status="review")),
    "record: type": record(lambda r: r.update(type="table")),
    "record: method": record(lambda r: r["properties"].update(method=AGES)),
    "record: label": record(lambda r: r["properties"].update(label="formal")),
    "record: package": record(lambda r: r["properties"].update(acro="sacro_deltab 61.5.70, acro 1.0.2")),
    "record: a property less": record(lambda r: r["properties"].pop("label")),
    "record: order of properties": record(lambda r: order(r["properties"], "label")),
    "record: order of fields": record(lambda r: order(r, "fair")),
    "record: order of files": record(lambda r: r["files"].reverse()),
    "record: suppressed": record(lambda r: r["files"][0]["sdc"]["summary"].update(suppressed=True)),
    "record: a cell": record(lambda r: r["files"][0]["sdc"]["cells"].update({"P0001 61.5": [[0, 1]]})),
    "record: an empty check": record(lambda r: r["files"][0]["sdc"]["cells"].update({"P0001 61.5": []})),
    "record: outcome": record(lambda r: r.update(outcome={"a": AGES})),
    "record: command": record(lambda r: r.update(command="sacro_deltab: count_table")),
    "record: summary": record(lambda r: r.update(summary=r["summary"] + " ")),
    "record: a later time": record(lambda r: r.update(timestamp=r["timestamp"].replace("+00:00", ".615570+00:00"))),
    "record: another comment": record(lambda r: r["comments"].append("61")),
    "record: order of comments": record(lambda r: r["comments"].reverse() or r["comments"].append(r["comments"][0])),
    "record: exception": record(lambda r: r.update(exception="needed")),
    "record: fair": record(lambda r: r["fair"].update(independent=["P0001"])),
    "record: twice": text("results.json", lambda t: t.replace('"outcome": {},', '"outcome": {},"outcome": {},', 1)),
    "results: address of the tool": in_json("results.json", lambda r: r["tool"].update(url="https://61.5/")),
    "results: version": in_json("results.json", lambda r: r.update(version="1.0.3")),
    "results: config": in_json("results.json", lambda r: r.update(config={})),
    "results: escapes": text("results.json", lambda t: t.replace('"outcome"', '"\\u006futcome"', 1)),
    "results: indent": in_json("results.json", lambda _: None, indent=5),
    "results: a line more": text("results.json", lambda t: t + "\n"),
    # tables and documents: written again
    "CSV: line ends": text(CSV, lambda t: t.replace("\n", "\r\n")),
    "CSV: quotes": text(CSV, lambda t: t.replace("F,", '"F",')),
    "CSV: digits": text(CSV, lambda t: t.replace("F,", "F,0")),
    "CSV: a mark of byte order": text(CSV, lambda t: "\ufeff" + t),
    "CSV: an empty row": text(CSV, lambda t: t + ",,\n"),
    "CSV: order of rows": text(CSV, lambda t: "".join([t.splitlines(True)[0], *t.splitlines(True)[:0:-1]])),
    "JSON: another entry of `about`": in_json(JSON, lambda d: d["about"].update(people=61), indent=1),
    "JSON: a unit": text(JSON, lambda t: t.replace('"years"', '"yearS"')),
    "JSON: a role": text(JSON, lambda t: t.replace('"role": "n"', '"role": "value"')),
    "JSON: blanks": text(JSON, lambda t: t.replace(", 0", ",  0").replace(", -0", ",  -0")),
    "JSON: escapes": text(JSON, lambda t: t.replace('"schema"', '"\\u0073chema"')),
    # the picture: drawn again
    "PNG: packed otherwise": pixels(lambda _: None, level=1),
    "PNG: filter of a row": pixels(lambda raw: raw.__setitem__(0, 1)),
    "PNG: one bit of a pixel": pixels(lambda raw: raw.__setitem__(400, raw[400] ^ 1)),
    "PNG: two chunks": chunks(lambda c: [c[0], (b"IDAT", c[1][1][:99]), (b"IDAT", c[1][1][99:]), c[2]]),
    "PNG: an empty chunk": chunks(lambda c: [c[0], c[1], (b"IDAT", b""), c[2]]),
    "PNG: resolution": chunks(lambda c: [c[0], (b"pHYs", struct.pack(">IIB", 6150, 7020, 1)), *c[1:]]),
    "PNG: a background": chunks(lambda c: [c[0], (b"bKGD", b"\x00\x3d\x00\x46\x00\x37"), *c[1:]]),
    "PNG: behind its end": chunks(lambda c: c, end=b"61"),
    # what lies beside them
    "checksums: another name": made("checksums/P0001-61.5.txt"),
    "checksums: a folder": made("checksums/P0001/61.txt"),
    "another file": made("P0001.csv", b"a,b\n"),
    "another folder": made("P0001/a.csv", b"a,b\n"),
    "inside: another name": made("inside/P0001-61.5.json", b"{}"),
    "evidence: a version": in_json(
        "inside/evidence.json", lambda e: e["session"]["tool"].update(sacro_deltab="61.5.70x55"), indent=0
    ),
    "evidence: an id": in_json("inside/evidence.json", lambda e: e["session"].update(id="6" * 36), indent=0),
    "evidence: a sentence": in_json(
        "inside/evidence.json", lambda e: e["outputs"][0]["told"].append(
            {"effect": "review", "text": AGES, "asks": [], "clauses": [], "next_step": None}), indent=0
    ),
    "evidence: a declared fact of another name": in_json(
        "inside/evidence.json", lambda e: e["session"]["declared"]["facts"].update(P0001=True), indent=0
    ),
}  # fmt: skip
# edits of what re-sealing would write again: a checksum as ACRO writes it is all that follows them
UNSEALED: dict[str, Edit] = {
    "checksum: a line end": text(f"checksums/{CSV}.txt", lambda t: t + "\n"),
    "checksum: capitals": text(f"checksums/{CSV}.txt", str.upper),
    "checksum: of results.json": text("checksums/results.json.txt", lambda t: t[::-1]),
    "checksum: of the certificate": text("checksums/certificate.json.txt", lambda t: t[::-1]),
    "certificate: blanks": text("certificate.json", lambda t: t + " "),
    "envelope: blanks": text("certificate.dsse.json", lambda t: t + " "),
    "envelope: a signature": text("certificate.dsse.json", lambda t: t.replace("[]", '[{"keyid": "61"}]')),
    "text of the envelope": text("certificate.dsse.txt", lambda t: t.replace("Nobody", "61 people")),
}


def test_the_honest_twin_passes(honest: Folder, tmp_path: Path) -> None:
    again = honest.copy(tmp_path / "again")
    again.seal()
    assert [honest.check().verdict, again.check().verdict] == ["pass", "pass"]


EVERY = [*EDITED, *UNSEALED]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if i % 9 == 4 else [pytest.mark.soak]) for i, n in enumerate(EVERY)]
)
def test_a_place_is_refused(honest: Folder, tmp_path: Path, name: str) -> None:
    folder = honest.copy(tmp_path / "edited")
    if name in EDITED:
        EDITED[name](folder)
        with contextlib.suppress(SacroDeltabError):  # what cannot be sealed stays as it is
            folder.seal()
    else:
        UNSEALED[name](folder)
        folder.checksum(*(c for c in ("certificate.json", "certificate.dsse.json", "certificate.dsse.txt")
                          if not name.startswith("checksum")))  # fmt: skip
    report = folder.check()
    assert report.verdict in ("fail", "review"), name
    assert report.verdict == "fail" or name == "checksums: another name"  # no byte of it leaves: to a person
    broke = [f.inside for f in report.folder_findings if "broke off" in f.inside]
    assert not broke, broke


def flipped(folder: Folder, rng: random.Random) -> str:
    """One byte of a file outside inside/ becomes another; then checksums and certificate are written again."""
    files = sorted(p for p in folder.path.rglob("*") if p.is_file() and p.relative_to(folder.path).parts[0] != "inside")
    path = rng.choice(files)
    name = str(path.relative_to(folder.path))
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data))
    data[at] ^= rng.randrange(1, 256)
    path.write_bytes(bytes(data))
    if name.startswith("certificate"):
        folder.checksum(name)
    elif not name.startswith("checksums/"):
        folder.checksum(name)
        with contextlib.suppress(Exception):  # what cannot be sealed stays as it is
            folder.seal()
    return f"{name} at byte {at}"


def flips(honest: Folder, where: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        folder = honest.copy(where / "flipped")
        place = flipped(folder, rng)
        report = folder.check()
        assert report.verdict != "pass", place
        assert not [f for o in report.outputs for f in o.findings if "broke off" in f.inside], place
        assert not [f for f in report.folder_findings if "broke off" in f.inside], place


def test_no_flipped_byte_passes(honest: Folder, tmp_path: Path) -> None:
    flips(honest, tmp_path, 6, seed=1)


@pytest.mark.soak
def test_no_flipped_byte_passes_in_twenty_thousand(honest: Folder, tmp_path: Path) -> None:
    flips(honest, tmp_path, 20_000, seed=2)
