"""Whatever a caller hands over (path, data frame, series, array) as a `Table`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import InputError, UnreadableError
from .table import Array, Column, Table, column_label, is_missing
from .text import Decimal, Header, read_text_table

BATCH = 8192  # rows of a Parquet file read at once


def as_table(
    source: Any, role: str, *, delimiter: str | None = None, header: Header = "auto", decimal: Decimal = "auto"
) -> Table:
    """Table of a path (text or Parquet), pandas DataFrame or Series, or numpy array."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.suffix.lower() in (".parquet", ".pq"):
            return _parquet(path)
        return read_text_table(path, delimiter=delimiter, header=header, decimal=decimal)
    if hasattr(source, "to_frame") and not hasattr(source, "columns"):  # a Series
        source = source.to_frame(name=role if source.name is None else source.name)
    if hasattr(source, "columns"):
        need_pandas(source, role)
        if source.index.name is not None and source.index.name not in source.columns:
            source = source.reset_index()  # a named index is a column, most often the identifier
        return _frame(source, f"{role} (data frame)", None)
    return _array(source, role)


def need_pandas(source: Any, role: str) -> None:
    """Refuse by name a frame of another library: Arrow, Polars, Dask, Spark.

    Raises
    ------
    InputError
    """
    import pandas as pd  # late: pandas is heavy

    if hasattr(source, "columns") and not isinstance(source, pd.DataFrame):
        kind, library = type(source).__name__, type(source).__module__.partition(".")[0]
        step = next((name for name in ("compute", "to_pandas", "toPandas") if hasattr(source, name)), "to_pandas")
        raise InputError(
            f"The {role} are a {kind} of {library}, which is not taken.",
            place=role,
            next_step=f"Hand over a pandas DataFrame: {role}.{step}().",
        )


def as_batches(source: str | Path, role: str, *, rows: int = BATCH) -> Iterator[Table]:
    """Tables of at most `rows` rows of a Parquet file, one after the other; a text file is one table."""
    path = Path(source)
    if path.suffix.lower() not in (".parquet", ".pq"):
        yield as_table(path, role)
        return
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile  # late: pyarrow is an extra
    except ImportError:
        yield as_table(path, role)  # says so
        return
    start = 0
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=rows):
                table = _frame(batch.to_pandas(), str(path), path)
                yield replace(table, rows=range(start, start + table.n))
                start += table.n
    except (OSError, ArrowException):
        as_table(path, role)  # says what is wrong with the file
        raise


def _parquet(path: Path) -> Table:
    import pandas as pd  # late: pandas is heavy

    if path.is_dir():
        raise InputError("A folder of Parquet files is not read as one table here.", path=path,
                         next_step="Join its files into one.")  # fmt: skip
    if not path.is_file():
        raise InputError("The file does not exist.", path=path, next_step="Check the path and its permissions.")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow, which is not installed.",
            path=path,
            next_step="pip install 'sacro-deltab[parquet]', or give a CSV.",
        ) from None
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except Exception:  # pyarrow raises a family of its own, and OSError, for damaged files
        raise UnreadableError(
            "The file is not a readable Parquet file.", path=path, next_step="Write it again, or give a CSV."
        ) from None
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    return _frame(frame, str(path), path)


def _frame(frame: Any, label: str, path: Path | None) -> Table:
    import pandas as pd  # late: pandas is heavy

    names = tuple(str(c).strip() for c in frame.columns)
    for number, name in enumerate(names, start=1):
        if not name or names.count(name) > 1:
            what = "stands twice" if name else "is empty"
            raise InputError(f"Column name {column_label(name, number)} {what}.", path=label, next_step="Rename it.")
    if len(frame) == 0 or not names:
        raise InputError("The table is empty.", path=label, next_step="Give a table with one row per person.")
    columns = []
    for j, name in enumerate(names):
        series = frame.iloc[:, j]
        if pd.api.types.is_bool_dtype(series.dtype) or pd.api.types.is_numeric_dtype(series.dtype):
            if pd.api.types.is_complex_dtype(series.dtype):
                columns.append(Column(name, None, 0))
            else:
                columns.append(Column(name, series.to_numpy(dtype=np.float64, na_value=np.nan), None))
        else:
            columns.append(_objects(name, list(series)))

    def text_of(wanted: Sequence[int], _skip: int) -> list[list[str | None]]:
        return [[_text(v) for v in frame.iloc[:, j]] for j in wanted]

    return Table(label, path, names, columns, range(len(frame)), "row", text_of)


def _text(value: Any) -> str | None:
    """A cell as text; whole floats as integers, so that 1.0 and "1" name one person or group."""
    if value is None or value != value or (isinstance(value, str) and is_missing(value)):
        return None
    if str(value) in ("<NA>", "NaT"):
        return None
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _objects(name: str, cells: list[Any]) -> Column:
    out = np.full(len(cells), np.nan)
    bad, good, wrong = None, 0, 0
    for i, cell in enumerate(cells):
        text = _text(cell)
        if text is None:
            continue
        try:
            if isinstance(cell, (complex, bytes)) or "_" in text:
                raise ValueError
            out[i] = float(text)
            good += 1
        except ValueError:
            bad = i if bad is None else bad
            wrong += 1
    return Column(name, out if bad is None else None, bad, mostly_numbers=bad is not None and good > wrong)


def _array(source: Any, role: str) -> Table:
    label = f"{role} (array)"
    try:
        values: Array = np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"The {role} are not all numbers.", path=label, next_step="Give a table of numbers.") from None
    values = values.reshape(-1, 1) if values.ndim == 1 else values
    if values.ndim != 2 or values.size == 0:
        raise InputError("An array needs one row per person.", path=label, next_step="Give people × features.")
    columns = [Column(f"column {j + 1}", values[:, j], None) for j in range(values.shape[1])]

    def text_of(wanted: Sequence[int], _skip: int) -> list[list[str | None]]:
        return [[_text(v) for v in values[:, j]] for j in wanted]

    return Table(label, None, None, columns, range(values.shape[0]), "row", text_of)
