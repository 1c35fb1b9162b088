"""Anything at all: a verdict, never a crash, never a pass, bounded memory. `make soak` runs a million inputs."""

from __future__ import annotations

import io
import json
import pickle
import random
import resource
import tarfile
import time
import zipfile
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from deltab_files import brain_delta
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structured import structured

from sacro_deltab.check.context import Context
from sacro_deltab.check.records import parse_results
from sacro_deltab.check.single import check_file
from sacro_deltab.inert.snapshot import Snapshot
from sacro_deltab.outputs import Column, OutputDocument
from sacro_deltab.rules import load_ruleset

NAMES = ("a.csv", "a.json", "a.txt", "a.log", "model.pkl", "w.npz", "x.npy", "p.png", "o.zip", "o.tar", "noname")


@cache
def context() -> Context:
    return Context(load_ruleset())


@cache
def seeds() -> tuple[bytes, ...]:
    """Small honest files of every kind that is read."""
    document = OutputDocument(
        "delta_mean", "delta_mean", "Mean", (Column("statistic", "label"), Column("value", "value")), (("mean", 0.3),)
    )
    table = "\n".join(f"g{i},{20 + i},{i * 0.1:.1f}" for i in range(30))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.arange(6.0).reshape(2, 3))
    single = io.BytesIO()
    np.save(single, np.arange(30.0))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("a.csv", table)
    tape = io.BytesIO()
    with tarfile.open(fileobj=tape, mode="w") as t:
        info = tarfile.TarInfo("a.csv")
        info.size = 10
        t.addfile(info, io.BytesIO(b"a,b\n1,2\n3,"))
    small = {"b1": np.arange(4.0), "pca": [1, (2, {"x": b"y"})], "name": "N217"}
    png = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360000000020001e221bc33"
        "0000000049454e44ae426082"
    )
    return (
        document.to_json().encode(),
        document.to_csv().encode(),
        table.encode(),
        json.dumps({"x": list(range(40)), "y": {"z": [[1, 2], [3, 4]]}, "s": "52 47"}).encode(),
        b"INFO rows [1, 2]\n/data/x/y.txt\nshape (217, 3)\n",
        buffer.getvalue(),
        single.getvalue(),
        archive.getvalue(),
        tape.getvalue(),
        png,
        *(pickle.dumps(small, protocol=p) for p in range(6)),
        pickle.dumps(brain_delta(), protocol=2)[:4_000],
        b"GIF89a\x01\x00\x01\x00\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b",
        b"\xff\xd8\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00\xff\xd9",
    )


def mutate(rng: random.Random) -> bytes:
    """A seed with bytes flipped, cut, doubled, spliced with another."""
    data = bytearray(rng.choice(seeds()))
    for _ in range(rng.randrange(1, 8)):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(7)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.randrange(1, 40)]
        elif kind == 2:
            data[at:at] = data[at : at + rng.randrange(1, 60)]
        elif kind == 3:
            other = rng.choice(seeds())
            data[at:] = other[rng.randrange(len(other)) :]
        elif kind == 4:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        elif kind == 5:
            data[at : at + 4] = rng.choice(
                (b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"9999", b"[[[[", b"((((", b"NaN,")
            )
        else:
            data[at] ^= 1 << rng.randrange(8)
    return bytes(data)


def judged(data: bytes, name: str) -> Iterator[str]:
    for report in check_file(Snapshot.of_bytes(name, data), context()):
        assert report.findings
        assert not [f.inside for f in report.findings if "broke off" in f.inside or "internal" in f.inside]
        yield report.verdict


def run(count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        data, name = mutate(rng) if rng.random() < 0.5 else structured(rng, seeds()), rng.choice(NAMES)
        started = time.monotonic()
        verdicts = set(judged(data, name))
        assert verdicts == {"fail"}, (name, data[:200])
        assert time.monotonic() - started < 20


@pytest.mark.parametrize("seed", range(2))
def test_a_seeded_sample_of_mutations(seed: int) -> None:
    run(1_000, seed)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=400), st.sampled_from(NAMES))
def test_any_bytes(data: bytes, name: str) -> None:
    assert set(judged(data, name)) == {"fail"}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(json_values)
def test_any_json(value: object) -> None:
    assert set(judged(json.dumps(value).encode(), "a.json")) == {"fail"}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(json_values)
def test_any_results_file(value: object) -> None:
    for data in (value, {"version": "1.0.2", "results": value}, {"version": "1.0.2", "results": {"a": value}}):
        records, findings = parse_results(data)
        assert findings or not records


@pytest.mark.soak
def test_a_million_inputs_in_bounded_memory() -> None:
    for seed in range(1_000):
        run(1_000, 10_000 + seed)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 512 * 1024
