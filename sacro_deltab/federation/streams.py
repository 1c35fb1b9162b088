"""Moments of data that do not fit in memory: chunks of one machine, partitions of a Dask cluster, Spark.

`Moments.update / merge / save / load` is the whole interface; what is here is the few lines around it. Nothing keeps
more than one block of rows, so memory is that of a block and of one (F+3) × (F+3) matrix. Exact moments stay inside.

Spark needs no code of ours beyond `of_batches` (in `mapInArrow`) and `tree_merge`, because moments pickle and add up;
docs/federation.md has the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError, UnreadableError
from ..model.moments import Moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 2048  # rows of one block: 8 MB at 500 features
BATCH = 8192  # rows of a Parquet batch: fewer columns to fetch one by one
FAN_IN = 8  # moments merged by one task of the tree


@dataclass(frozen=True)
class Piece:
    """Part of a Parquet file: one row group, read by one task."""

    path: Path
    row_group: int


def of_npy(features: Path, ages: Path, blank: Moments, *, rows: int = ROWS) -> Moments:
    """Moments of a memory-mapped N × F array and an array of N ages, a block of rows at a time.

    The map is opened anew every 8 blocks, so that pages already read do not stay in this process.

    Raises
    ------
    UnreadableError
        No `.npy` of numbers, or one that needs unpickling.
    InputError
        The two arrays have different numbers of rows.
    """
    age = _mapped(ages)
    shape = _mapped(features).shape
    if len(shape) != 2 or age.ndim != 1 or shape[0] != age.shape[0]:
        raise InputError("features must be N × F and ages N", path=features)
    total = blank.empty()
    for start in range(0, shape[0], rows * 8):
        block = _mapped(features)
        for first in range(start, min(start + rows * 8, shape[0]), rows):
            part = slice(first, min(first + rows, shape[0]))
            total.update(np.asarray(block[part], dtype=np.float64), np.asarray(age[part], dtype=np.float64))
        del block
    return total


def _mapped(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise UnreadableError("this is no .npy array of numbers", path=path) from error


def of_parquet(path: Path, blank: Moments, *, age: str = "age", rows: int = BATCH) -> Moments:
    """Moments of a Parquet file, a batch of one row group at a time.

    Features are the columns `blank` names, confounds its `conf_names`; other columns are not read.
    """
    total = blank.empty()
    for number in range(row_groups(path)):
        total = total.merge(of_piece(Piece(path, number), blank, age=age, rows=rows))
    return total


def row_groups(path: Path) -> int:
    """Number of row groups of a Parquet file."""
    with _parquet(path) as file:
        return int(file.metadata.num_row_groups)


def of_piece(piece: Piece, blank: Moments, *, age: str = "age", rows: int = BATCH) -> Moments:
    """Moments of one row group."""
    columns = [age, *blank.conf_names, *blank.feature_names]
    with _parquet(piece.path) as file:
        here = set(file.schema_arrow.names)
        missing = [c for c in columns if c not in here]
        if missing:
            raise InputError(f"the file has no column {missing[0]!r}", path=piece.path)
        batches = file.iter_batches(batch_size=rows, row_groups=[piece.row_group], columns=columns)
        return of_batches(batches, blank, age=age)


def of_batches(batches: Iterable[Any], blank: Moments, *, age: str = "age") -> Moments:
    """Moments of Arrow record batches (Parquet, Spark's mapInArrow): columns are found by name."""
    total = blank.empty()
    for batch in batches:
        if batch.num_rows:
            total.update(*_block(batch, blank, age))
    return total


def _block(batch: Any, blank: Moments, age: str) -> tuple[Any, Any, Any]:
    def table(names: Sequence[str]) -> NDArray[np.float64]:
        out = np.empty((batch.num_rows, len(names)))
        for j, name in enumerate(names):
            out[:, j] = batch.column(place[name]).to_numpy(zero_copy_only=False)
        return out

    place = {name: i for i, name in enumerate(batch.schema.names)}

    confounds = table(blank.conf_names) if blank.conf_names else None
    return table(blank.feature_names), table([age])[:, 0], confounds


def _parquet(path: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError("reading Parquet needs pyarrow", next_step="pip install pyarrow") from error
    try:
        return pq.ParquetFile(path, memory_map=False, pre_buffer=False)
    except (OSError, pa.ArrowInvalid) as error:
        raise UnreadableError("this is no Parquet file", path=path) from error


def tree_merge(parts: Sequence[Moments]) -> Moments:
    """Sum of moments, pairwise: rounding grows with the logarithm of their number.

    Raises
    ------
    InputError
        For none at all.
    """
    if not parts:
        raise InputError("there are no moments to merge")
    level = list(parts)
    while len(level) > 1:
        level = [a if b is None else a.merge(b) for a, b in _pairs(level)]
    return level[0]


def _pairs(items: Sequence[Moments]) -> Iterator[tuple[Moments, Moments | None]]:
    for i in range(0, len(items), 2):
        yield items[i], items[i + 1] if i + 1 < len(items) else None


def of_dask(
    paths: Sequence[Path], blank: Moments, *, age: str = "age", rows: int = BATCH, client: Any = None
) -> Moments:
    """Moments of many Parquet files on Dask: one task a row group, then a tree of merges, one result.

    Only (F+3) × (F+3) matrices travel between workers. Without `client` Dask's own scheduler is used; with the
    `distributed` client of a cluster, that cluster. The workers must see the files.

    Raises
    ------
    InputError
        dask is not installed.
    """
    try:
        from dask.delayed import delayed
    except ImportError as error:
        raise InputError("a Dask cluster needs dask", next_step="pip install 'sacro-deltab[dask]'") from error
    pieces = [Piece(Path(path), k) for path in paths for k in range(row_groups(Path(path)))]
    if not pieces:
        raise InputError("there is no row to read")
    leaf, join = delayed(of_piece, pure=False), delayed(tree_merge, pure=False)
    level = [leaf(piece, blank, age=age, rows=rows) for piece in pieces]
    while len(level) > 1:
        level = [join(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    done = level[0].compute() if client is None else client.compute(level[0]).result()
    assert isinstance(done, Moments)
    return done
