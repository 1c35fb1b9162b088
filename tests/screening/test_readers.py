"""Readers of numbers and texts: right on honest files, bounded and clear on hostile ones."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import tarfile
import threading
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from sacro_deltab.base.errors import UnreadableError
from sacro_deltab.base.names import path_problem
from sacro_deltab.check import check_paths
from sacro_deltab.inert.archives import gunzip, read_members, read_tar
from sacro_deltab.inert.content import Content
from sacro_deltab.inert.json_content import read_json
from sacro_deltab.inert.limits import DEFAULT, Limits
from sacro_deltab.inert.reading import kind_of, read_content, unpack
from sacro_deltab.inert.snapshot import Snapshot, take
from sacro_deltab.inert.tabular import number, read_table


def read(data: bytes, name: str = "file", limits: Limits = DEFAULT) -> Content:
    return read_content(Snapshot.of_bytes(name, data), limits)


def codes(content: Content) -> set[str]:
    return {remark.code for remark in content.remarks if remark.effect == "block"}


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


# --- npy, npz ---------------------------------------------------------------------------------------------------------


def test_npz_shapes_and_values() -> None:
    content = read(npz(ytrain=np.arange(30.0), c=np.asfortranarray(np.arange(12.0).reshape(3, 4))))
    assert content.kind == "npz"
    assert {a.place: a.shape for a in content.arrays} == {"ytrain": (30,), "c": (3, 4)}
    matrix = content.array_named("c")
    assert matrix is not None and matrix.values is not None and list(matrix.values) == list(range(12))


def test_object_arrays_are_refused_and_not_unpickled() -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert "object-array" in codes(read(buffer.getvalue()))
    assert "object-array" in codes(read(npz(a=np.zeros(3, dtype=[("id", "i4"), ("age", "f8")]))))


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999999999999,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        b"{'descr': '<f8\xb9', 'fortran_order': False, 'shape': (3,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': __import__('os'), }",
        b"(" * 5_000 + b")" * 5_000,
        b"[]",
    ],
)
def test_damaged_headers(header: bytes) -> None:
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    assert codes(read(data)) == {"unreadable"}


def test_bytes_behind_an_array_are_named() -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3.0))
    assert "trailing-bytes" in codes(read(buffer.getvalue() + b"52.1,47.3"))


# --- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "NaN"),
        ('{"a": 1e999}', "finite"),
        ('{"a": ' + "9" * 4_000 + "}", "18 digits"),
        ("[" * 30 + "]" * 30, "deeply"),
        ("[" * 100_000 + "]" * 100_000, "deeply"),
        ('{"a": 1} {"b": 2}', "not JSON"),
        ('{"a": 1,}', "not JSON"),
        ("\ufeff{}", "byte-order"),
    ],
)
def test_strict_json(text: str, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read_json(text.encode(), "x.json")


def test_json_not_utf8_and_too_large() -> None:
    with pytest.raises(UnreadableError, match="UTF-8"):
        read_json(b'{"a": "\xff"}', "x.json")
    with pytest.raises(UnreadableError, match="more items"):
        read_json(b"[" + b"[]," * 1_100_000 + b"[]]", "x.json")


def test_json_vectors_are_found_wherever_they_hide() -> None:
    ages = list(range(40, 70))
    packed = {
        "plain": ages,
        "words": [str(a) for a in ages],
        "rows": [{"id": f"x{a}", "v": a} for a in ages],
        "columns": [[a, a / 2] for a in ages],
        "object": {f"s{a}": a for a in ages},
        "one string": " ".join(str(a) for a in ages),
        "wide digits": ["".join(chr(0xFF10 + int(c)) for c in str(a)) for a in ages],
    }
    content = read_json(json.dumps(packed).encode(), "x.json")
    found = {info.place: info for info in content.arrays}
    for place in ("plain", "words", "rows.v", "columns[column 0]", "object", "one string", "wide digits"):
        values = found[place].values
        assert values is not None and list(values) == ages, place
    assert found["words"].as_text


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-2.5e3", -2500),
        ("1,5", 1.5),
        ("1,234.5", 1234.5),
        ("12%", 12),
        ("\u0664\u0662", 42),
        ("\uff14\uff12", 42),
        ("\u22122", -2),
        ("0x1f", 31),
        ("1_000", 1000),
        (" 7 ", 7),
        ("'3", 3),
    ],
)
def test_numbers_in_every_disguise(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["", "abc", "1-2", "nan", "inf", "1e999", "--1", "40-44", "1.2.3", "9" * 500])
def test_words_stay_words(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize("mark", [",", "\t", ";", "|", " "])
def test_delimiters(mark: str) -> None:
    text = "\n".join(mark.join(row) for row in [["a", "b"], ["1", "2.5"], ["3", "4.5"]]) + "\n"
    content = read_table(text.encode(), "t.csv")
    assert content.data.header == ("a", "b")
    assert list(content.data.columns[1].numbers) == [2.5, 4.5]


def test_headerless_matrix_of_the_upstream_tool() -> None:
    x = np.random.default_rng(0).normal(size=(40, 5))
    text = "\n".join(" ".join(f"{v:.18e}" for v in row) for row in x)
    content = read(text.encode(), "features.txt")
    assert content.kind == "table"
    assert (40, 5) in {a.shape for a in content.arrays}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a,b\n1,2\n# 52 47 25\n", "comment"),
        ("a,b\n1,2   \n", "trailing-space"),
        ("a,b\n1,2\u200b\n", "invisible"),
        ("a,b\n1,\uff12\n", "digits"),
        ("\ufeffa,b\n1,2\n", "byte-order-mark"),
        ("a,b\n1,<!-- 14.2 -->\n", "markup"),
        ("a,b\n1,2\x1b[31m\n", "control"),
    ],
)
def test_hiding_places_in_tables(text: str, code: str) -> None:
    assert code in codes(read_table(text.encode(), "t.csv"))


def test_a_million_columns_and_endless_lines_are_refused() -> None:
    assert codes(read(b",".join(b"1" for _ in range(1_000_000)), "wide.csv")) == {"unreadable"}
    assert codes(read(b"a,b\n" + b"1,2\n" * 6_000, "long.csv", Limits(cells=10_000))) == {"unreadable"}
    assert codes(read(b'a,b\n1,"' + b"x" * 2_000_000, "quote.csv")) == {"unreadable"}
    assert codes(read(b"a,b\n\xff\xfe,2\n", "latin.csv")) == {"unreadable"}


def test_memory_stays_bounded_on_the_largest_table() -> None:
    data = b"1.5,2.5,3.5,4.5\n" * 20_000
    tracemalloc.start()
    content = read(data, "big.csv")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert content.kind == "table"
    assert peak < 16 * 1024 * 1024


# --- images -----------------------------------------------------------------------------------------------------------


def png(*extra: tuple[bytes, bytes]) -> bytes:
    def chunk(mark: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + mark + body + struct.pack(">I", zlib.crc32(mark + body))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + b"".join(chunk(mark, body) for mark, body in extra)
        + chunk(b"IDAT", zlib.compress(b"\x00\x00"))
        + chunk(b"IEND", b"")
    )


def test_images_with_hidden_data() -> None:
    assert not codes(read(png()))
    assert "image-metadata" in codes(read(png((b"tEXt", b"Comment\x00ages 52 47 25"))))
    assert "image-metadata" in codes(read(png((b"prVt", b"52 47 25"))))
    assert "trailing-bytes" in codes(read(png() + b"52 47 25"))
    assert "unreadable" in codes(read(png()[:-6]))


@pytest.mark.parametrize("data", [b"\xff\xd8\xff\xfe\x00\x08ages52\xff\xd9", b"GIF89a" + bytes(8)])
def test_other_pictures_fail_whatever_is_in_them(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "plot.png").write_bytes(data)
    report = check_paths([tmp_path / "plot.png"])
    assert report.verdict == "fail" and "check/format" in {r for f in report.outputs[0].findings for r in f.rules}


def test_matplotlib_png_is_plain() -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    Figure().savefig(buffer, format="png")
    content = read(buffer.getvalue())
    assert content.kind == "png" and not codes(content)


# --- formats that never leave -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PAR1xxxx", "parquet"),
        (b"\x89HDF\r\n\x1a\n", "hdf5"),
        (b"%PDF-1.7", "pdf"),
        (b"<!DOCTYPE html><p>1", "html"),
        (b"<svg xmlns='x'></svg>", "svg"),
        (b"<?xml version='1.0'?><svg/>", "svg"),
        (b"SQLite format 3\x00", "sqlite"),
        (b"\xd0\xcf\x11\xe0", "office"),
        (b"\x78\x9cxx", "zlib"),
        (b"\xff\xfea\x00", "utf16"),
        (b"", "empty"),
        (b"a\x00b\x01", "binary"),
    ],
)
def test_refused_kinds_name_an_alternative(data: bytes, kind: str) -> None:
    content = read(data)
    assert content.kind == kind
    assert codes(content)
    assert all(remark.next_step for remark in content.remarks)


def test_zip_relatives_are_told_apart(tmp_path: Path) -> None:
    for member, kind in (
        ("schema.json", "skops"),
        ("[Content_Types].xml", "xlsx"),
        ("m/data.pkl", "torch"),
        ("a.csv", "zip"),
    ):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(member, "x")
        assert kind_of(buffer.getvalue()) == kind


# --- archives ---------------------------------------------------------------------------------------------------------


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["/etc/x", "..\\x", "a/../../x", "C:x", "a\nb", "", "x" * 2_000])
def test_unsafe_names(name: str) -> None:
    assert path_problem(name)


def test_zip_bomb_and_bad_members() -> None:
    bomb = zipped(**{"a.csv": b"0" * 80_000_000})
    tracemalloc.start()
    with pytest.raises(UnreadableError, match=r"unpacks|bomb"):
        list(read_members(io.BytesIO(bomb), "b.zip"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 1024 * 1024
    with pytest.raises(UnreadableError, match="points out"):
        list(read_members(io.BytesIO(zipped(**{"../x": b"1"})), "b.zip"))
    lying = bytearray(zipped(**{"a.csv": b"0" * 5_000_000}))
    place = lying.rfind(b"PK\x01\x02")
    struct.pack_into("<I", lying, place + 24, 10)  # the directory claims ten bytes
    with pytest.raises(UnreadableError):
        list(read_members(io.BytesIO(bytes(lying)), "b.zip"))
    with pytest.raises(UnreadableError, match="called"):
        list(read_members(io.BytesIO(zipped(**{"A.csv": b"1", "a.csv": b"2"})), "b.zip"))


def tarred(*infos: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info in infos:
            archive.addfile(info, io.BytesIO(b"x" * info.size))
    return buffer.getvalue()


def test_tar_links_devices_and_names() -> None:
    link = tarfile.TarInfo("a")
    link.type, link.linkname = tarfile.SYMTYPE, "/data/raw"
    device = tarfile.TarInfo("b")
    device.type = tarfile.CHRTYPE
    out = tarfile.TarInfo("../c")
    for info in (link, device, out):
        with pytest.raises(UnreadableError):
            list(read_tar(tarred(info), "t.tar"))
    good = tarfile.TarInfo("a.csv")
    good.size = 3
    assert [m.name for m in read_tar(tarred(good), "t.tar")] == ["a.csv"]


def test_gzip_bomb() -> None:
    assert unpack(gzip.compress(tarred(tarfile.TarInfo("a"))), "t.tgz") is not None
    with pytest.raises(UnreadableError, match="more than"):
        gunzip(gzip.compress(b"0" * 100_000_000), "x.gz")


# --- snapshots --------------------------------------------------------------------------------------------------------


def test_links_pipes_and_growing_files(tmp_path: Path) -> None:
    target = tmp_path / "real.csv"
    target.write_text("a,b\n1,2\n")
    (tmp_path / "link.csv").symlink_to(target)
    with pytest.raises(UnreadableError, match="symbolic link"):
        take(tmp_path / "link.csv", "link.csv", DEFAULT)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(UnreadableError, match="ordinary"):
        take(tmp_path / "pipe.csv", "pipe.csv", DEFAULT)
    with pytest.raises(UnreadableError):
        take(tmp_path, "folder", DEFAULT)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "moving.csv"
    path.write_bytes(b"x" * 3_000_000)
    real, lock = os.read, threading.Lock()

    def read_and_write(handle: int, size: int) -> bytes:
        data = real(handle, size)
        with lock, path.open("ab") as other:
            other.write(b"y")
        return data

    monkeypatch.setattr(os, "read", read_and_write)
    with pytest.raises(UnreadableError, match="changed"):
        take(path, "moving.csv", DEFAULT)
