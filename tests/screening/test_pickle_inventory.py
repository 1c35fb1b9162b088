"""A pickle is listed, never run, never passed."""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from deltab_files import F, J, N, brain_delta

from sacro_deltab.base.errors import UnreadableError
from sacro_deltab.check.detect import screen
from sacro_deltab.check.hidden_n import recovered_ns
from sacro_deltab.check.known import Known
from sacro_deltab.inert.pickles import read_pickle
from sacro_deltab.inert.reading import kind_of, read_content
from sacro_deltab.inert.snapshot import Snapshot


@pytest.mark.parametrize("protocol", range(6))
def test_lists_every_attribute_type_and_shape(protocol: int) -> None:
    content = read_pickle(pickle.dumps(brain_delta(), protocol=protocol), "model.pkl")
    shapes = {info.place.rsplit(".", 1)[-1]: info.shape for info in content.arrays}
    assert shapes["ytrain"] == (N,)
    assert shapes["xtrain"] == shapes["x_norm"] == (N, F)
    assert shapes["x_reduced"] == (N, J)
    assert shapes["components_"] == (J, F)
    assert {"deltab.deltab.BrainDelta", "sklearn.decomposition._pca.PCA"} <= set(content.data)
    assert not [r for r in content.remarks if r.code == "pickle-global"]


@pytest.mark.parametrize("protocol", range(6))
def test_values_and_n_are_recovered_without_running_anything(protocol: int) -> None:
    model = brain_delta()
    content = read_pickle(pickle.dumps(model, protocol=protocol), "model.pkl")
    ages = content.array_named("ytrain")
    assert ages is not None and ages.values is not None
    assert np.array_equal(np.array(ages.values), model.ytrain)
    ways = {how: n for n, how in recovered_ns(content, "model_SAIL_0093_dementia_N217.pkl")}
    assert ways["the file name"] == N
    assert ways["singular values and explained variances"] == N
    assert ways["explained variances and their ratios"] == N
    assert ways["n_samples_"] == N
    codes = {remark.code for remark in screen(content, Known(), "model.pkl")}
    assert {"type-ytrain", "type-xtrain", "type-x_norm", "type-x_reduced", "type-y_demean", "dimension-n"} <= codes


class Evil:
    def __reduce__(self) -> tuple:  # type: ignore[type-arg]
        return (open, ("PWNED", "w"))


@pytest.mark.parametrize("protocol", range(6))
def test_code_is_listed_and_not_run(protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps({"model": Evil()}, protocol=protocol)
    content = read_content(Snapshot.of_bytes("model.pkl", data))
    assert not list(tmp_path.iterdir())
    assert any(r.code == "pickle-global" and "open" in r.inside for r in content.remarks)
    assert any(r.code == "pickle" and r.effect == "block" for r in content.remarks)


@pytest.mark.parametrize("protocol", range(6))
def test_recognised_by_content(protocol: int) -> None:
    assert kind_of(pickle.dumps(brain_delta(), protocol=protocol)) == "pickle"


def _bomb(name: str) -> bytes:
    nested = b"\x80\x04" + b"]" * 50_000 + b"a" * 49_999 + b"."
    if name == "memo index":
        return b"\x80\x02]r" + struct.pack("<I", 2**31) + b"."
    if name == "nested lists":
        return nested
    if name == "doubling tuples":  # each tuple holds the one before twice: 2^60 leaves in 200 bytes
        out = b"\x80\x02K\x01"
        for i in range(60):
            out += b"q" + bytes([i]) + b"h" + bytes([i]) + b"\x86"
        return out + b"."
    if name == "huge claim":
        return b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x."
    if name == "huge integer text":
        return b"I" + b"9" * 1_000_000 + b"\n."
    if name == "no stop":
        return b"\x80\x04]"
    if name == "stack underflow":
        return b"\x80\x04aaaa."
    if name == "quadratic update":
        pairs = b"".join(b"M" + struct.pack("<H", i % 65_536) + b"N" for i in range(20_000))
        return b"\x80\x02}q\x00(" + pairs + b"u" + b"}(h\x00h\x00u0" * 2_000 + b"."
    return b"\x80\x05\x97."


BOMBS = (
    "memo index",
    "nested lists",
    "doubling tuples",
    "huge claim",
    "huge integer text",
    "no stop",
    "stack underflow",
    "quadratic update",
    "out of band buffer",
)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_in_a_verdict_within_bounds(name: str) -> None:
    data = _bomb(name)
    tracemalloc.start()
    content = read_content(Snapshot.of_bytes("bomb.pkl", data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 1024 * 1024
    # what does not even parse as a pickle is text without a type, which is never judged and so fails
    assert any(remark.effect == "block" for remark in content.remarks) or content.kind == "text"


def test_persistent_ids_extensions_and_trailing_bytes_are_named() -> None:
    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: object) -> object:
            return "secret" if isinstance(obj, set) else None

    buffer = io.BytesIO()
    Pickler(buffer).dump({"a": {1, 2}})
    remarks = {r.code for r in read_pickle(buffer.getvalue(), "m.pkl").remarks}
    assert "pickle-persistent" in remarks
    assert "trailing-bytes" in {r.code for r in read_pickle(pickle.dumps([1]) + b"7,8,9", "m.pkl").remarks}
    extension = b"\x80\x02\x82\x05."
    assert list(pickletools.genops(extension))
    assert "pickle-persistent" in {r.code for r in read_pickle(extension, "m.pkl").remarks}


def test_damaged_pickle_raises_one_error() -> None:
    with pytest.raises(UnreadableError, match="broken pickle"):
        read_pickle(pickle.dumps(brain_delta())[:5_000], "m.pkl")


def test_joblib_and_skops_fail(tmp_path: Path) -> None:
    import joblib

    for compress in (0, 3):
        path = tmp_path / f"model{compress}.joblib"
        joblib.dump(brain_delta(), path, compress=compress)
        content = read_content(Snapshot.of_bytes(path.name, path.read_bytes()))
        assert any(remark.effect == "block" for remark in content.remarks)


# --- pickles inside other formats -------------------------------------------------------------------------------------


def whole_model() -> dict[str, object]:
    return {
        "ytrain": np.random.default_rng(1).integers(45, 80, N).astype(float),
        "components_": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "notes": np.array([{"n_samples_": N}], dtype=object),
        "n_samples_seen_": N,
    }


def joblib_bytes(compress: int) -> bytes:
    import joblib

    stream = io.BytesIO()
    joblib.dump(whole_model(), stream, compress=compress)
    return stream.getvalue()


@pytest.mark.parametrize("compress", [0, 3, 9])
def test_joblib_files_are_listed_to_the_end(compress: int) -> None:
    content = read_content(Snapshot.of_bytes("model.joblib", joblib_bytes(compress)))
    shapes = {info.place.rsplit(".", 1)[-1]: info.shape for info in content.arrays}
    assert shapes["ytrain"] == (N,)
    assert shapes["components_"] == (2, 3)
    components = content.array_named("components_")
    assert components is not None and list(components.values or ()) == [0, 1, 2, 3, 4, 5]
    assert not [r for r in content.remarks if r.code in ("trailing-bytes", "unreadable", "pickle-global")]
    assert (N, "n_samples_seen_") in recovered_ns(content, "m")
    assert {"type-ytrain", "dimension-n", "pickle"} <= {r.code for r in screen(content, Known(), "m")}


def test_a_joblib_array_that_claims_more_than_the_file_holds() -> None:
    data = joblib_bytes(0).replace(b"\x8c\x05shape\x94K", b"\x8c\x05shape\x94J", 1)
    tracemalloc.start()
    content = read_content(Snapshot.of_bytes("model.joblib", data))
    assert tracemalloc.get_traced_memory()[1] < 200_000_000
    tracemalloc.stop()
    assert "pickle" in {r.code for r in content.remarks}


def test_skops_and_torch_files_list_their_members() -> None:
    import zipfile

    ages = io.BytesIO()
    np.save(ages, whole_model()["ytrain"])
    for marker, member, data in (
        ("schema.json", "1.npy", ages.getvalue()),
        ("archive/data.pkl", "archive/data.pkl", pickle.dumps(whole_model())),
    ):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(member, data)
            if marker != member:
                archive.writestr(marker, "{}")
        content = read_content(Snapshot.of_bytes("model", stream.getvalue()))
        assert [info.shape for info in content.arrays if info.shape == (N,)], content.items
        assert "kind" in {r.code for r in content.remarks}


def test_a_cells_limit_of_the_csv_module_is_put_back() -> None:
    import csv

    before = csv.field_size_limit(4_321)
    try:
        read_content(Snapshot.of_bytes("a.csv", b"a,b\n1,2\n" + b"x" * 200_000 + b",1\n"))
        assert csv.field_size_limit() == 4_321
    finally:
        csv.field_size_limit(before)
