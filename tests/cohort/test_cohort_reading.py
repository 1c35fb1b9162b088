"""Reading cohorts: formats, roles, alignment, repairs, and every kind of bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacro_deltab.base.errors import InputError, SacroDeltabError, UnreadableError
from sacro_deltab.cohort import Cohort, read_cohort
from sacro_deltab.session.training import names_of

TABLE = """participant_id,age,sex,site,motion,thick_a,thick_b
P1,61.5,F,one,0.1,2.41,1.5
P2,70.25,M,one,0.2,2.33,1.25
P3,55.0,F,two,0.3,2.52,1.75
"""
NAMES = ("thick_a", "thick_b")


@pytest.fixture
def put(tmp_path: Path) -> Any:
    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def check(cohort: Cohort) -> None:
    assert cohort.feature_names == NAMES
    np.testing.assert_array_equal(cohort.age, [61.5, 70.25, 55.0])
    np.testing.assert_array_equal(cohort.X, [[2.41, 1.5], [2.33, 1.25], [2.52, 1.75]])


ROLES: dict[str, Any] = {"group_columns": ["sex", "site"], "confound_columns": ["motion"]}
FORMS = {
    "comma.csv": TABLE,
    "crlf.csv": TABLE.replace("\n", "\r\n"),
    "cr_only.csv": TABLE.replace("\n", "\r"),
    "bom.csv": "\ufeff" + TABLE,
    "tab.tsv": TABLE.replace(",", "\t"),
    "space.txt": TABLE.replace(",", "   "),
    "semicolon.csv": TABLE.replace(",", ";"),
    "decimal_comma.csv": TABLE.replace(",", ";").replace(".", ","),
    "decimal_comma.tsv": TABLE.replace(",", "\t").replace(".", ","),
    "quoted.csv": "\n".join(",".join(f'"{c}"' for c in line.split(",")) for line in TABLE.strip().split("\n")),
    "spaces_around.csv": TABLE.replace(",", " , "),
    "no_last_newline.csv": TABLE.rstrip("\n"),
    "blank_end.csv": TABLE + "\n\n  \n",
    "comment.csv": "# exported by a scanner\n" + TABLE,
}


@pytest.mark.parametrize("name", FORMS)
def test_one_table_in_many_forms(put: Any, name: str) -> None:
    cohort = read_cohort(table=put(name, FORMS[name]), **ROLES)
    check(cohort)
    assert cohort.person_ids == ("P1", "P2", "P3") and cohort.checked_people and cohort.n_people == 3
    assert list(cohort.groups["sex"]) == ["F", "M", "F"] and list(cohort.groups["site"]) == ["one", "one", "two"]
    np.testing.assert_array_equal(cohort.confounds, [[0.1], [0.2], [0.3]])
    assert [r.kind for r in cohort.repairs] == (["decimal_comma"] if name.startswith("decimal") else [])
    assert cohort.declared == ()


def test_parquet_and_data_frame(tmp_path: Path, put: Any) -> None:
    frame = pd.read_csv(put("t.csv", TABLE))
    check(read_cohort(table=frame, **ROLES))
    check(read_cohort(table=frame.set_index("participant_id"), **ROLES))
    frame.to_parquet(tmp_path / "t.parquet")
    cohort = read_cohort(table=tmp_path / "t.parquet", **ROLES)
    check(cohort)
    assert cohort.person_ids == ("P1", "P2", "P3")


def test_what_other_libraries_hold_is_refused_by_name(tmp_path: Path, put: Any) -> None:
    frame = pd.read_csv(put("t.csv", TABLE))
    arrow, dask = pytest.importorskip("pyarrow"), pytest.importorskip("dask.dataframe")
    lazy = dask.from_pandas(frame, npartitions=2)
    for table, kind, step in (
        (arrow.Table.from_pandas(frame), "Table of pyarrow", "to_pandas"),
        (arrow.RecordBatch.from_pandas(frame), "RecordBatch of pyarrow", "to_pandas"),
        (lazy, "DataFrame of dask", "compute"),
    ):
        with pytest.raises(InputError, match=f"(?s){kind}.*{step}"):
            read_cohort(table=table, **ROLES)
        with pytest.raises(InputError, match=kind):
            names_of(table, None)
    with pytest.raises(InputError, match="dask"):
        read_cohort(lazy["age"], frame[list(NAMES)])
    frame.to_feather(tmp_path / "t.feather")
    with pytest.raises(UnreadableError, match="Feather"):
        read_cohort(table=tmp_path / "t.feather", **ROLES)
    (tmp_path / "many.parquet").mkdir()
    with pytest.raises(InputError, match="folder of Parquet files"):
        read_cohort(table=tmp_path / "many.parquet", **ROLES)


def test_upstream_inputs_without_headers(put: Any) -> None:
    cohort = read_cohort(put("ages.txt", "61.5\n70.25\n55.0\n"), put("x.txt", "2.41 1.5\n2.33 1.25\n2.52 1.75\n"))
    assert cohort.feature_names == ("feature_1", "feature_2") and cohort.person_ids is None
    assert not cohort.checked_people and len(cohort.declared) == 2
    with_conf = read_cohort(
        np.array([61.5, 70, 55]), np.ones((3, 2)) * [[1], [2], [3]], confounds=put("c.csv", "1.5,2\n2,1\n3,3\n")
    )
    assert with_conf.confound_names == ("confound_1", "confound_2")


def test_combined_table_given_for_every_role(put: Any) -> None:
    path = put("t.csv", TABLE)
    cohort = read_cohort(ages=path, features=path, groups=path, ignore_columns=["motion"])
    check(cohort)
    assert list(cohort.groups.columns) == ["sex", "site"] and any("sex, site" in n for n in cohort.notes)


def test_files_are_matched_by_identifier(put: Any) -> None:
    ages = put("a.csv", "participant_id,age\nP3,55.0\nP1,61.5\nP2,70.25\n")
    features = put("x.csv", "participant_id,thick_a,thick_b\nP1,2.41,1.5\nP2,2.33,1.25\nP3,2.52,1.75\n")
    groups = put("g.csv", "participant_id,sex\nP2,M\nP3,F\nP1,F\n")
    cohort = read_cohort(ages, features, groups=groups)
    check(cohort)
    assert list(cohort.groups["sex"]) == ["F", "M", "F"] and cohort.declared == ()
    other = put("b.csv", "participant_id,age\nP3,55.0\nP1,61.5\nP9,70.25\n")
    with pytest.raises(InputError, match="other people") as caught:
        read_cohort(other, features)
    assert "P9" not in str(caught.value) and "1" in (caught.value.inside or "")


def test_identifiers_keep_leading_zeros_and_numbers(put: Any) -> None:
    cohort = read_cohort(table=put("t.csv", "eid,age,f\n007,60.5,1.5\n7,61.5,2.5\n"))
    assert cohort.person_ids == ("007", "7")


def test_repeated_people_need_a_cap(put: Any) -> None:
    path = put("t.csv", TABLE + "P1,62.5,F,one,0.1,2.40,1.5\nP1,63.5,F,one,0.1,2.39,1.5\n")
    with pytest.raises(InputError, match="more than one row") as caught:
        read_cohort(table=path, **ROLES)
    assert "line 5" in str(caught.value) and "P1" not in str(caught.value)
    with pytest.raises(InputError, match="more than one row"):
        read_cohort(table=path, unit="row", **ROLES)
    check(read_cohort(table=path, rows_per_person=1, **ROLES))
    two = read_cohort(table=path, rows_per_person=2, **ROLES)
    assert (two.n_rows, two.n_people, two.rows_per_person) == (4, 3, 2)
    assert two.repairs[0].kind == "repeated_rows" and two.repairs[0].count == 1 and "1" not in two.repairs[0].text


def test_missing_values_are_kept_then_filled_on_request(put: Any) -> None:
    text = TABLE + "P4,58.5,M,two,,NA,1.5\nP5,59.5,M,,0.2,inf,.\n"
    cohort = read_cohort(table=put("t.csv", text), **ROLES)
    assert cohort.missing == 4 and [r.kind for r in cohort.repairs] == ["infinite"]
    assert cohort.groups["site"].isna().sum() == 1
    median = cohort.filled("median")
    assert median.X[3, 0] == 2.41 and median.confounds[3, 0] == 0.2 and median.missing == 0  # type: ignore[index]
    assert median.repairs[-1].count == 4 and "4" not in median.repairs[-1].text
    dropped = cohort.filled("drop")
    check(dropped)
    assert dropped.groups is not None and len(dropped.groups) == 3
    constant = cohort.filled("constant", centre=[2.5, 1.5], confound_centre=0.25)
    assert constant.n_rows == 5 and constant.X[4].tolist() == [2.5, 1.5]
    with pytest.raises(InputError, match="public centre"):
        cohort.filled("constant")


def test_select_follows_the_basis(put: Any) -> None:
    cohort = read_cohort(table=put("t.csv", TABLE), **ROLES)
    assert cohort.select(["thick_b", "thick_a"]).X[0].tolist() == [1.5, 2.41]
    with pytest.raises(InputError, match="'thick_c'"):
        cohort.select(["thick_a", "thick_c"])


def test_repr_holds_no_counts(put: Any) -> None:
    assert "3" not in repr(read_cohort(table=put("t.csv", TABLE), **ROLES))


AGES = "age\n61.5\n70.25\n55.0\n"
BAD: dict[str, tuple[str | bytes, str, str]] = {  # name: (text, what the message says, where)
    "empty.csv": ("", "empty", ""),
    "blank.csv": ("\n \n\n", "empty", ""),
    "header_only.csv": ("age,f\n", "no rows", "line 1"),
    "one_row.csv": ("age,f\n61.5,2.25\n", "only one person", ""),
    "equal_ages.csv": ("age,f\n61.5,1\n61.5,2\n61.5,3\n", "All ages are equal", ""),
    "latin1.csv": ("age,f,site\n61.5,1,Köln\n".encode("latin-1"), "not UTF-8", "line 2"),
    "utf16.csv": ("age,f\n61.5,1\n".encode("utf-16"), "UTF-16", ""),
    "nul.csv": ("age,f\n61.5,1\0\n", "NUL", ""),
    "zip.csv": (b"PK\x03\x04abc", "Excel", ""),
    "gzip.csv": (b"\x1f\x8b\x08abc", "gzip", ""),
    "ragged.csv": ("age,f\n61.5,1\n62.5,1,7\n63.5,2\n", "3 values", "line 3"),
    "short.csv": ("age,f,g\n61.5,1,2\n62.5,1\n", "2 values", "line 3"),
    "r_names.csv": ("age,f\nr1,61.5,1\nr2,62.5,2\n", "row names", "line 2"),
    "unnamed.csv": (",age,f\n0,61.5,1\n1,62.5,2\n", "Column 1 has no name", "line 1"),
    "twice.csv": ("age,f,f\n61.5,1,2\n62.5,2,3\n", "'f' stands twice", "line 1"),
    "age_word.csv": ("age,f\n61.5,1\nsixty,2\n", "ages in 'age' are not all numbers", "line 3"),
    "age_missing.csv": ("age,f\n61.5,1\n,2\n63.5,1\n", "missing", "line 3"),
    "age_inf.csv": ("age,f\n61.5,1\ninf,2\n63.5,1\n", "missing or infinite", "line 3"),
    "age_days.csv": ("age,f\n61.5,1\n23000,2\n63.5,1\n", "Ages outside 0 to 120", "line 3"),
    "age_negative.csv": ("age,f\n61.5,1\n-9,2\n63.5,1\n", "Ages outside", "line 3"),
    "feature_word.csv": ("age,f\n61.5,1.5\n62.5,2.5\n63.5,3.5\n64.5,oops\n", "features in 'f' are not all", "line 5"),
    "feature_empty.csv": ("age,f,g\n61.5,1,\n62.5,2,\n63.5,4,NA\n", "all missing", ""),
    "no_age.csv": ("years,f,g\n61.5,1,2\n62.5,2,2\n", "no column 'age'", ""),
    "quote.csv": ('age,f\n61.5,"1\n62.5,2\n', "quotation", "line 2"),
    "blank_inside.csv": ("age,f\n61.5,1\n\n62.5,2\n", "empty line", "line 3"),
    "mixed_decimals.csv": ("age;f\n61,5;1.5\n62,5;2.5\n", "decimal commas and some decimal points", ""),
    "thousands.csv": ("age;f\n61;1,500\n62;2,500\n", "thousands or decimals", ""),
    "comma_space.txt": ("61,5 2,5\n62,5 3,5\n", "spaces both", "line 1"),
    "underscore.csv": ("age,f\n61.5,1_000\n62.5,2.5\n63.5,2.5\n", "not all numbers", "line 2"),
    "id_missing.csv": ("participant_id,age,f\nP1,61.5,1\n,62.5,2\n", "no identifier", "line 3"),
    "pandas_numbers.csv": (",0,1,2\n0,61.5,1,2\n1,62.5,2,2\n", "row numbers", "line 1"),
    "long_value.csv": ("age,f\n61.5," + "9" * 200_000 + "\n", "thousands of characters", "line 2"),
    "tab_in_cell.csv": ("age,f\n61.5,1\n62.5,a\tb\n63.5,2\n", "not all numbers", "line 3"),
    "half_header.csv": ("61.5,1.5,x,2\n61.5,1,2,3\n62.5,2,2,2\n", "mostly numbers", "line 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_say_what_where_and_what_next(put: Any, name: str) -> None:
    text, says, where = BAD[name]
    path = put(name, text)
    with pytest.raises(InputError) as caught:
        read_cohort(table=path)
    message = str(caught.value)
    assert says in message and str(path) in message and where in message, message
    assert caught.value.next_step or isinstance(caught.value, UnreadableError)
    for value in ("61.5", "62.5", "23000", "sixty", "oops", "Köln", "P1", "1_000"):
        assert value not in message


def test_header_of_numbers_is_not_a_person(put: Any) -> None:
    with pytest.raises(InputError, match="header of numbers"):
        read_cohort(put("a3.txt", "61.5\n62.5\n60\n"), put("x.csv", "1,2,3\n1.5,2.5,3.5\n1.25,2,1\n"))
    with pytest.raises(InputError, match=r"Ages outside 18 to 100.*header"):
        read_cohort(put("b.txt", "0\n61.5\n62.5\n"), put("y.csv", "1.5\n2.5\n3.5\n"), age_range=(18, 100))


def test_header_said_out_loud(put: Any) -> None:
    x = put("x.csv", "1,2,3\n1.5,2.5,3.5\n1.25,2,1\n")
    assert read_cohort(np.array([61.5, 62.5]), x, header="yes").feature_names == ("1", "2", "3")
    assert read_cohort(np.array([61.5, 62.5, 60]), x, header="no").X[0].tolist() == [1, 2, 3]


def test_other_row_count(put: Any) -> None:
    with pytest.raises(InputError, match="another number of rows") as caught:
        read_cohort(put("a.txt", "61.5\n62.5\n63.5\n"), put("x.txt", "1 2\n2 3\n"))
    assert caught.value.inside and not any(c.isdigit() for c in caught.value.what)


def test_ages_without_header_are_one_column(put: Any) -> None:
    with pytest.raises(InputError, match=r"one column.*decimal points"):
        read_cohort(put("a.txt", "61,5\n62,5\n"), np.ones((2, 2)))
    cohort = read_cohort(put("b.txt", "61,5\n62,25\n"), np.ones((2, 2)), delimiter=" ", decimal=",")
    assert cohort.age.tolist() == [61.5, 62.25]


def test_missing_files_folders_and_roles(tmp_path: Path) -> None:
    for path, says in (
        (tmp_path / "none.csv", "no such file"),
        (tmp_path, "folder"),
        (tmp_path / "no.parquet", "exist"),
    ):
        with pytest.raises(InputError, match=says):
            read_cohort(table=path)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(UnreadableError, match="Parquet"):
        read_cohort(table=tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="No features"):
        read_cohort(ages=np.array([60.0, 61.0]))


def test_ages_outside_a_declared_range_can_be_clipped_or_kept(put: Any) -> None:
    path = put("t.csv", TABLE)
    with pytest.raises(InputError, match="Ages outside 60 to 90"):
        read_cohort(table=path, age_range=(60, 90), **ROLES)
    clipped = read_cohort(table=path, age_range=(60, 90), out_of_range="clip", **ROLES)
    assert clipped.age.tolist() == [61.5, 70.25, 60.0] and clipped.repairs[0].count == 1
    kept = read_cohort(table=path, age_range=(60, 90), out_of_range="keep", **ROLES)
    assert kept.age[2] == 55.0 and kept.repairs[0].kind == "outside_age_range"


def test_named_columns_must_exist(put: Any) -> None:
    path = put("t.csv", TABLE)
    for kw in (
        {"id_column": "pid"},
        {"feature_columns": ["thick_z"]},
        {"group_columns": ["cohort"]},
        {"age_column": "years"},
    ):
        with pytest.raises(InputError, match="no column"):
            read_cohort(table=path, **kw)


def test_words_in_a_features_file_of_its_own_are_an_error(put: Any) -> None:
    with pytest.raises(InputError, match="features in 'scanner'"):
        read_cohort(np.array([61.5, 62.5]), put("x.csv", "thick,scanner\n1.5,one\n2.5,two\n"))


def test_numeric_codes_as_groups(put: Any) -> None:
    cohort = read_cohort(np.array([61.5, 62.5]), np.eye(2), groups=put("g.csv", "sex,site\n1,07\n2,07\n"))
    assert cohort.groups.to_dict("list") == {"sex": ["1", "2"], "site": ["07", "07"]}


def test_median_fill_is_by_column(put: Any) -> None:
    import json

    case = json.loads((Path(__file__).parents[2] / "fixtures/cases/dp/impute_column_median.json").read_text())
    x = np.array(case["inputs"]["X"], dtype=float)
    cohort = read_cohort(np.array([50.0, 60, 70, 80]), x)
    np.testing.assert_allclose(cohort.filled("median").X, case["expected"]["X_imputed"], atol=1e-12)


@pytest.mark.parametrize("bad", ["abc", None, 3, object()])
def test_odd_sources_raise_our_errors(bad: Any) -> None:
    with pytest.raises(SacroDeltabError):
        read_cohort(ages=bad, features=np.ones((3, 2)))
