"""Moments from files that are read in pieces, and from a cluster on this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sacro_deltab.base.errors import InputError, UnreadableError
from sacro_deltab.federation import streams
from sacro_deltab.model import Moments

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Moments]:
    folder = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(0)
    x, age = rng.normal(3, 1, size=(5000, 4)), rng.uniform(45, 80, 5000)
    np.save(folder / "x.npy", x)
    np.save(folder / "age.npy", age)
    table = pa.table([*x.T, age, np.arange(5000)], names=["d", "c", "b", "a", "age", "other"])
    pq.write_table(table, folder / "x.parquet", row_group_size=700)
    blank = Moments(NAMES, x_centre=np.full(4, 3.0))
    return folder, blank.empty().update(x, age)


def test_npy(files: tuple[Path, Moments]) -> None:
    folder, whole = files
    found = streams.of_npy(folder / "x.npy", folder / "age.npy", whole, rows=64)
    assert found.matrix == pytest.approx(whole.matrix, rel=1e-12)
    with pytest.raises(InputError):
        streams.of_npy(folder / "age.npy", folder / "age.npy", whole)
    (folder / "bad.npy").write_bytes(b"no array")
    with pytest.raises(UnreadableError):
        streams.of_npy(folder / "bad.npy", folder / "age.npy", whole)


def test_parquet_columns_are_found_by_name(files: tuple[Path, Moments]) -> None:
    folder, whole = files
    assert streams.row_groups(folder / "x.parquet") == 8
    found = streams.of_parquet(folder / "x.parquet", Moments(NAMES[::-1], x_centre=np.full(4, 3.0)), rows=128)
    assert found.n == whole.n
    assert found.matrix == pytest.approx(whole.matrix, rel=1e-12)
    with pytest.raises(InputError, match="no column 'e'"):
        streams.of_parquet(folder / "x.parquet", Moments(("e",)))
    with pytest.raises(UnreadableError):
        streams.of_parquet(folder / "x.npy", whole)


def test_dask_on_a_cluster_of_this_machine(files: tuple[Path, Moments]) -> None:
    distributed = pytest.importorskip("distributed")
    folder, _ = files
    blank = Moments(NAMES[::-1], x_centre=np.full(4, 3.0))
    alone = streams.of_parquet(folder / "x.parquet", blank)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = streams.of_dask([folder / "x.parquet"] * 2, blank, client=client)
    assert found.n == 2 * alone.n
    assert found.matrix == pytest.approx(2 * alone.matrix, rel=1e-12)
    assert streams.of_dask([folder / "x.parquet"], blank).matrix == pytest.approx(alone.matrix, rel=1e-12)


def test_nothing_to_merge() -> None:
    with pytest.raises(InputError):
        streams.tree_merge([])
