"""Data frames: Parquet by pyarrow, Stata by pandas. Columns, rows, labels, notes and what a file says of itself."""

from __future__ import annotations

import io
import re
from typing import Any

from .found import KEEP_CELLS, Found

_NOTE = re.compile(rb"<ch>.{4}(.*?)</ch>", re.S)


def read_parquet(data: bytes, found: Found, within: str) -> None:
    """Rows up to what may be kept; the number of all rows is in the footer."""
    import pyarrow as pa  # either library is loaded for its own format only
    from pyarrow import parquet

    pa.set_cpu_count(1)
    file = parquet.ParquetFile(io.BytesIO(data))
    names, n_rows = list(file.schema_arrow.names), file.metadata.num_rows
    found.items.append(f"{within}Parquet: {n_rows} rows of {', '.join(names)}")
    for key, value in (file.schema_arrow.metadata or {}).items():
        if key not in (b"pandas", b"ARROW:schema"):
            found.part("hidden", f"{within}the footer says something under {key.decode('utf-8', 'replace')!r}.")
            found.text(f"{within}footer", value.decode("utf-8", "replace"))
    rows: list[list[object]] = [list(names)]
    for batch in file.iter_batches(batch_size=1_000, use_threads=False):
        rows += [list(row.values()) for row in batch.to_pylist()]
        if len(rows) * max(len(names), 1) > KEEP_CELLS:
            break
    found.table(f"{within}table", rows, n_rows + 1)


def read_stata(data: bytes, found: Found, within: str) -> None:
    """Rows up to what may be kept, variable labels, notes."""
    from pandas.io.stata import StataReader  # either library is loaded for its own format only

    reader: Any = StataReader(io.BytesIO(data), convert_categoricals=False, chunksize=10_000)
    with reader:
        frame = reader.read(10_000)
        n_rows = int(reader._nobs)
        names = [str(name) for name in frame.columns]
        found.text(f"{within}label of the data", str(reader.data_label))
        for name, label in reader.variable_labels().items():
            found.text(f"{within}label of {name}", str(label))
        for name, labels in reader.value_labels().items():
            if len(labels) >= 20:
                found.table(f"{within}labels {name}", [[name, "label"], *labels.items()])
    found.items.append(f"{within}Stata: {n_rows} rows of {', '.join(names)}")
    for number, note in enumerate(_NOTE.findall(data), start=1):
        found.part("hidden", f"{within}note {number} stands in the file.")
        found.text(f"{within}note {number}", note.decode("utf-8", "replace").replace("\0", " "))
    found.table(f"{within}table", [names, *frame.itertuples(index=False)], n_rows + 1)
