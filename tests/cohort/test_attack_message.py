"""A first line that is a person's row, read with the wrong separator, is repeated in no message."""

from __future__ import annotations

from pathlib import Path

import pytest

from sacro_deltab.base.errors import InputError
from sacro_deltab.cohort import read_cohort
from sacro_deltab.cohort.table import column_label


@pytest.mark.parametrize("row", ["P01|1_0|+5|73.918273", "F:73.918273:x", "F 73.918273 x", "x;73,918273"])
def test_a_row_taken_for_a_name_is_not_repeated(tmp_path: Path, row: str) -> None:
    assert column_label(row, 3) == "column 3"
    path = tmp_path / "ages.csv"
    path.write_text(f"{row}\nword\nword\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_cohort(path, path)
    assert "918273" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["lh_bankssts_thickness", "Area 44 thickness", "25010-2.0 volume", "age (years)", "T1/T2"]
)
def test_names_stay_names(name: str) -> None:
    assert column_label(name, 3) == repr(name)
