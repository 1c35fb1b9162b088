"""Readers under fire: any bytes end in a cohort or in one of our errors, and no message holds a cell."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import SacroDeltabError
from sacro_deltab.cohort import read_cohort

SECRET = "731.4159"
CELL = st.one_of(
    st.sampled_from(
        ["61.5", "70", "", "NA", "inf", "-inf", "1e999", "nan", "abc", "1,5", "1_0", '"', "'", "#", "age", "0x10", "١٢"]
    ),
    st.floats(40, 90).map(lambda v: f"{v:.3f}"),
    st.text(max_size=6),
)
SUFFIX = st.sampled_from([".csv", ".tsv", ".txt", ".parquet", ".npz", ""])


def attempt(raw: bytes, suffix: str, **options: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        path.write_bytes(raw)
        for call in (
            {"table": path},
            {"ages": path, "features": np.ones((3, 2))},
            {"ages": path, "features": path, "groups": path},
        ):
            try:
                cohort = read_cohort(**call, **options)  # type: ignore[arg-type]
            except SacroDeltabError as error:
                assert SECRET not in str(error)
            else:
                assert np.isfinite(cohort.age).all() and not np.isinf(cohort.X).any()
                assert cohort.X.shape == (cohort.n_rows, len(cohort.feature_names))
                assert len(set(cohort.feature_names)) == len(cohort.feature_names)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(raw=st.binary(max_size=200), suffix=SUFFIX)
@example(raw=b"\xff\xfe\x00", suffix=".csv")
@example(raw=b'"', suffix=".csv")
@example(raw=b"age,f\r61.5,1\r", suffix=".csv")
def test_any_bytes(raw: bytes, suffix: str) -> None:
    attempt(raw, suffix)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(st.lists(CELL, min_size=1, max_size=4), min_size=1, max_size=6),
    separator=st.sampled_from([",", ";", "\t", " ", "|"]),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    header=st.sampled_from(["", "age{s}f\n", "participant_id{s}age{s}f\n", "age{s}age\n", "1{s}2\n"]),
    suffix=SUFFIX,
)
def test_any_table(rows: list[list[str]], separator: str, end: str, header: str, suffix: str) -> None:
    text = header.replace("{s}", separator) + end.join(separator.join(row) for row in rows)
    attempt(text.encode("utf-8", "surrogatepass"), suffix)


@settings(max_examples=60, deadline=None)
@given(
    column=st.integers(0, 3), row=st.integers(0, 4),
    slip=st.sampled_from(
        ["x", SECRET + "x", f'"{SECRET}', f"{SECRET},{SECRET}", f"{SECRET} {SECRET}", SECRET, f"\t{SECRET}"]
    ),
)  # fmt: skip
def test_a_slip_anywhere_never_shows_a_value(column: int, row: int, slip: str) -> None:
    cells = [[f"P{i}", f"{60 + i}.5", f"{i}.25", f"{SECRET}"] for i in range(5)]
    cells[row][column] = slip
    head = [] if slip.startswith("x") else ["participant_id,age,a,b"]
    attempt("\n".join([*head, *(",".join(r) for r in cells)]).encode(), ".csv")


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(
        st.lists(st.floats(-1e6, 1e6).map(lambda v: round(v, 4)), min_size=3, max_size=3), min_size=2, max_size=6
    ),
    form=st.sampled_from([(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), (" ", ".")]),
)  # fmt: skip
def test_numbers_come_back_as_written(values: list[list[float]], form: tuple[str, str]) -> None:
    separator, mark = form
    ages = [50.0 + i for i in range(len(values))]
    lines = [separator.join(["age", "a", "b", "c"])]
    lines += [
        separator.join(repr(v).replace(".", mark) for v in (a, *row)) for a, row in zip(ages, values, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("\n".join(lines))
        cohort = read_cohort(table=path, decimal=mark if mark == "," else "auto")  # type: ignore[arg-type]
    assert cohort.X.tolist() == values and cohort.age.tolist() == ages
