"""Inputs that keep the form of a format and change what stands in it: trees, tables, chunks, headers, opcodes."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import pickletools
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 20, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf")),
    *("", " ", "*", "=1+1", "NA", "nan", "1e999", "٣", "\ud800", "\u202e", "\x00", "x" * 5_000, "12 " * 300, "N217"),
    *([], {}, [[]], [[], [1]], {"": None}, {"a": {"a": {"a": []}}}, list(range(40)), [["a", 1]] * 30),
)
NAMES = ("a.csv", "../a", "A.CSV", "a/b/c", "", "con", "a\x00b", "é", "a" * 300, "x.zip", "m.pkl", "__MACOSX/._a")
DTYPES = ("<f8", ">f4", "|b1", "|O", "<U3", "<f16", "[('a','<f8')]", "<i0", "S1", "V8", "<m8[s]", "<c16")
OPCODES = [op.code.encode("latin-1") for op in pickletools.opcodes]


def odd(rng: random.Random) -> Any:
    """One value that a reader may not expect."""
    return copy.deepcopy(rng.choice(ODD)) if rng.random() < 0.8 else rng.uniform(-1, 1) * 10 ** rng.randrange(-5, 20)


def tree(rng: random.Random, value: Any) -> Any:
    """A JSON value with one place changed, gone, doubled, or filled with another part of it."""
    places: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict | list):
            keys = list(node) if isinstance(node, dict) else range(len(node))
            places += [(node, key) for key in keys]
            pending += [node[key] for key in keys]
    if not places:
        return odd(rng)
    node, key = rng.choice(places)
    what = rng.randrange(5)
    if what == 0:
        del node[key]
    elif what == 1 and isinstance(node, list):
        node.insert(key, copy.deepcopy(node[key]))
    elif what == 2 and isinstance(node, dict):
        node[str(odd(rng))[:50]] = copy.deepcopy(node[key])
    elif what == 3:
        other, there = rng.choice(places)
        node[key] = copy.deepcopy(other[there])
    else:
        node[key] = odd(rng)
    return value


def of_json(rng: random.Random, data: bytes) -> bytes:
    value = json.loads(data)
    for _ in range(rng.randrange(1, 5)):
        value = tree(rng, value)
    return json.dumps(value, indent=rng.choice((None, 1, 4)), ensure_ascii=rng.random() < 0.5).encode(
        "utf-8", "surrogatepass"
    )


def of_table(rng: random.Random, data: bytes) -> bytes:
    rows = [line.split(b",") for line in data.splitlines()]
    for _ in range(rng.randrange(1, 5)):
        row = rng.choice(rows)
        at = rng.randrange(len(row)) if row else 0
        what = rng.randrange(6)
        if what == 0 and row:
            del row[at]
        elif what == 1:
            row.insert(at, str(odd(rng)).encode("utf-8", "surrogatepass"))
        elif what == 2:
            rows.insert(rng.randrange(len(rows)), list(row))
        elif what == 3 and row:
            row[at] = b'"' + row[at] + rng.choice((b'"', b'""', b""))
        elif what == 4:
            rows[:] = [list(one) for one in zip(*rows, strict=False)] or rows
        else:
            row[at : at + 1] = [str(odd(rng)).encode("utf-8", "surrogatepass")]
    return rng.choice((b"\n", b"\r\n", b"\r")).join(rng.choice((b",", b",", b";", b"\t")).join(row) for row in rows)


def of_png(rng: random.Random, data: bytes) -> bytes:
    at, found = 8, []
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        found.append((kind, data[at + 8 : at + 8 + length]))
        at += 12 + length
    sizes = [rng.choice((0, 1, 2, 9, 65_535, 2**31 - 1)) for _ in range(2)]
    more = [
        (b"IHDR", struct.pack(">II5B", *sizes, rng.choice((1, 8, 16)), rng.randrange(8), 0, 0, rng.randrange(2))),
        (rng.choice((b"tEXt", b"zTXt", b"PLTE", b"eXIf", b"acTL", b"zzZz")), str(odd(rng)).encode("utf-8", "replace")),
        (b"IDAT", zlib.compress(bytes(rng.choice((0, 4, 100_000))))),
    ]  # fmt: skip
    found[rng.randrange(len(found)) : rng.randrange(len(found) + 1)] = rng.sample(more, rng.randrange(3))
    return data[:8] + b"".join(
        struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in found
    )


def of_array(rng: random.Random, data: bytes) -> bytes:
    del data
    shape = tuple(rng.choice((0, 1, 3, -1, 30, 2**40)) for _ in range(rng.randrange(4)))
    dtype = rng.choice(DTYPES)
    dtype = dtype if dtype.startswith("[") else repr(dtype)
    head = f"{{'descr': {dtype}, 'fortran_order': {rng.choice(('True', 'False', '1'))}, 'shape': {shape!r}, }}".encode()
    head += b" " * rng.randrange(60) + b"\n"
    body = np.array([rng.gauss(0, 1) for _ in range(rng.randrange(40))]).tobytes()
    return b"\x93NUMPY" + bytes([rng.choice((1, 1, 2, 3)), 0]) + struct.pack("<H", len(head)) + head + body


def of_pickle(rng: random.Random, data: bytes) -> bytes:
    """A pickle with opcodes put in, taken out or said twice: never between an opcode and its argument."""
    starts: list[int] = []
    with contextlib.suppress(ValueError):  # one seed is cut off
        starts += (place or 0 for _, _, place in pickletools.genops(data))
    out = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at, end = sorted(rng.choices([*starts, len(data)], k=2))
        what = rng.randrange(4)
        if what == 0:
            out[at:at] = rng.choice(OPCODES) + bytes(rng.randrange(4))
        elif what == 1:
            out[at:at] = data[at:end]
        elif what == 2:
            out[at:at] = pickle.dumps(odd(rng), protocol=2)[2:-1]
        else:
            del out[at:end]
    return bytes(out)


def packed(rng: random.Random, members: list[bytes]) -> bytes:
    """A zip of some of these, under odd names."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for data in members:
            archive.writestr(zipfile.ZipInfo(rng.choice(NAMES)), data)
        archive.comment = str(odd(rng)).encode("utf-8", "replace")[:60_000]
    return held.getvalue()


FORMS: dict[bytes, Callable[[random.Random, bytes], bytes]] = {
    b"{": of_json,
    b"\x89": of_png,
    b"\x93": of_array,
    b"\x80": of_pickle,
    b"(": of_pickle,
}


def structured(rng: random.Random, seeds: tuple[bytes, ...]) -> bytes:
    """One of the seeds, changed in its own form; now and then several, packed together."""
    if rng.random() < 0.1:
        return packed(rng, [structured(rng, seeds) for _ in range(rng.randrange(4))])
    data = rng.choice(seeds)
    form = FORMS.get(data[:1])
    if form is not None:
        return form(rng, data)
    return of_table(rng, data) if b"," in data and b"\0" not in data else packed(rng, [data])
