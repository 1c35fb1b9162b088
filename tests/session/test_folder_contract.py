"""The folder a session leaves: the contract of the viewer, of `check`, and of nothing hidden."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.errors import InputError, RefusedError
from sacro_deltab.build.record import CELL_CHECK
from sacro_deltab.judging.schema import document_errors


def load(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def ours(folder: Path) -> dict[str, Any]:
    """Records without ACRO's own session summaries."""
    everything = load(folder)["results"].items()
    return {uid: r for uid, r in everything if not any("session_summary" in f["name"] for f in r["files"])}


def viewer_chip(record: dict[str, Any]) -> tuple[str, str]:
    """What the viewer's panel shows: chip text and its colour, from `summary` alone."""
    parts = [p for p in record["summary"].split("; ") if p]
    chip = parts[0][:1].upper() + parts[0][1:]
    colour = {"Pass": "green", "Fail": "red"}.get(chip, "yellow")
    return chip, colour


def viewer_red_cells(folder: Path, record: dict[str, Any], file: dict[str, Any]) -> set[tuple[str, str]]:
    """(row name, column name) of cells painted red: `tbody tr[row] td[col + 1]`, CSV only."""
    if not file["name"].endswith(".csv"):
        return set()
    rows = list(csv.reader(io.StringIO((folder / file["name"]).read_text(encoding="utf-8"))))
    painted = set()
    for places in file["sdc"].get("cells", {}).values():
        for row, column in places:
            painted.add((rows[1:][row][0], rows[0][column + 1]))
    return painted


def sites(sizes: dict[str, int]) -> pd.Series:
    labels = [name for name, n in sizes.items() for _ in range(n)]
    return pd.Series(labels, name="site")


SITES = {"A": 90, "B": 80, "C": 60, "D": 40, "E": 50, "F": 40, "G": 28, "H": 12}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    place = tmp_path_factory.mktemp("finished")
    write_profile(place)
    session = new_session(place)
    values = np.random.default_rng(3).normal(0.7, 4.0, 400)
    session.release_n()
    session.release_sd(values)
    session.release_group_means(values, sites(SITES), title="Mean delta by site")
    session.release_group_means(values, pd.Series(["x"] * 390 + ["y"] * 10, name="diagnosis"))
    session.release_quantiles(values, (0, 50, 100))
    return session, session.finalise(place / "outputs")


def test_every_record_has_the_text_the_checker_needs(finished: tuple[Any, Path]) -> None:
    session, folder = finished
    for uid, record in ours(folder).items():
        assert f"sha256:{session.ruleset.sha256}" in record["properties"]["sacro_deltab"], uid
        assert record["summary"].startswith(record["status"] + "; "), uid
        assert record["files"], uid
        assert record["properties"]["certificate_id"] == session.id


def test_viewer_shows_the_right_chip_and_the_right_red_cells(finished: tuple[Any, Path]) -> None:
    session, folder = finished
    results = load(folder)["results"]
    by_name = {e.name: results[e.name] for e in session.entries}
    assert viewer_chip(by_name["delta_sd"]) == ("Pass", "green")
    assert viewer_chip(by_name["mean_delta_by_diagnosis"]) == ("Fail", "red")
    table = by_name["mean_delta_by_site"]
    painted = viewer_red_cells(folder, table, table["files"][0])
    rows = list(csv.reader(io.StringIO((folder / "mean_delta_by_site.csv").read_text())))
    marked = {
        (row[0], head) for row in rows[1:] for head, cell in zip(rows[0][1:], row[1:], strict=True) if cell == "*"
    }
    assert painted == marked
    assert {name for name, _ in marked} > {"H"}  # the small site and at least one that would give it away
    assert set(table["files"][0]["sdc"]["cells"]) == {CELL_CHECK}
    quantiles = by_name["delta_quantiles"]
    assert {n for n, _ in viewer_red_cells(folder, quantiles, quantiles["files"][0])} == {"0", "100"}


def test_primary_and_complementary_cells_are_told_apart_nowhere_outside(finished: tuple[Any, Path]) -> None:
    session, folder = finished
    entry = next(e for e in session.entries if e.name == "mean_delta_by_site")
    assert entry.complementary and set(entry.suppressed) > set(entry.complementary)
    rows = {row[0]: row[1:] for row in entry.document.rows}
    assert {tuple(rows[key]) for key in entry.suppressed} == {("*", "*")}
    leaving = (folder / "results.json").read_text() + "".join(
        p.read_text() for p in folder.glob("mean_delta_by_site.*")
    )
    for text in ("complementary", "below 20", "primary"):
        assert text not in leaving


def test_no_small_count_and_no_markup_in_any_listed_file(finished: tuple[Any, Path]) -> None:
    _, folder = finished
    for record in ours(folder).values():
        for file in record["files"]:
            text = (folder / file["name"]).read_text(encoding="utf-8")
            assert "<" not in text, file["name"]
            assert "inside/" not in file["name"]
        assert "<" not in record["summary"]
    table = list(csv.DictReader(io.StringIO((folder / "mean_delta_by_site.csv").read_text())))
    assert all(row["n"] == "*" or int(row["n"]) >= 20 for row in table)


def test_csv_and_json_hold_the_same_numbers_and_match_the_schema(finished: tuple[Any, Path]) -> None:
    session, folder = finished
    for entry in session.entries:
        if entry.kept_inside:
            assert [p.name for p in folder.glob(f"{entry.name}.*")] == [f"{entry.name}.csv"]
            assert (folder / f"{entry.name}.csv").read_text().count("\n") == 2
            continue
        data = json.loads((folder / f"{entry.name}.json").read_text(encoding="utf-8"))
        assert document_errors(data) == []
        assert (folder / f"{entry.name}.csv").read_text() == entry.document.to_csv()
        assert data["rows"] == [list(row) for row in entry.document.rows]


def test_every_file_is_listed_once_or_is_structure(finished: tuple[Any, Path]) -> None:
    _, folder = finished
    listed = [f["name"] for r in load(folder)["results"].values() for f in r["files"]]
    assert len(listed) == len(set(listed))
    found = {p.name for p in folder.iterdir() if p.is_file()}
    unlisted = {"results.json", "config.json", "certificate.json", "certificate.dsse.json"}  # the last two as text
    assert found == set(listed) | unlisted
    assert {p.name for p in folder.iterdir() if p.is_dir()} == {"checksums", "inside"}
    for name in listed:
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert (folder / "checksums" / f"{name}.txt").read_text() == digest
    for path in folder.glob("*.json"):  # whatever would make the viewer take another file for its own
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda c: pytest.fail(c))
        assert isinstance(data, dict)
        assert path.name == "results.json" or not {"version", "results"} <= set(data)


def test_check_comes_to_the_same_verdicts(finished: tuple[Any, Path]) -> None:
    from sacro_deltab.check import check_paths

    session, folder = finished
    report = check_paths([folder], profile=folder.parent / "profile.yaml", ledger=folder.parent / "budget.db")
    found = {o.file: o.verdict for o in report.outputs}
    said = {f["name"]: record["status"] for record in ours(folder).values() for f in record["files"]}
    assert set(said) > {name for entry in session.entries for name in entry.files}
    assert {name: found[name] for name in said} == said


def test_a_failed_finalise_leaves_nothing_and_can_be_repeated(
    make_session: Any, deltas: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sacro_deltab.session.folder as folder_module

    session = make_session()
    session.release_sd(deltas)
    before = dict(session.acro.results.results)

    def full(*args: Any, **kwargs: Any) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "dump_evidence", full)
        with pytest.raises(InputError, match="No space left on device"):
            session.finalise(place / "outputs")
    assert sorted(p.name for p in place.iterdir() if "outputs" in p.name) == []
    assert session.acro.results.results == before
    assert (session.finalise(place / "outputs") / "results.json").is_file()


def test_existing_folder_xlsx_and_empty_session_are_refused(make_session: Any, deltas: Any, place: Path) -> None:
    session = make_session()
    with pytest.raises(InputError, match="no output"):
        session.finalise(place / "outputs")
    session.release_sd(deltas)
    with pytest.raises(InputError, match="xlsx"):
        session.finalise(place / "outputs", ext="xlsx")
    (place / "there").mkdir()
    with pytest.raises(InputError, match="exists"):
        session.finalise(place / "there")
    assert list((place / "there").iterdir()) == []
    session.finalise(place / "outputs")
    with pytest.raises(RefusedError, match="finalised"):
        session.release_sd(deltas)


def test_acro_tables_stay_beside_ours_untouched(make_session: Any, deltas: Any, place: Path) -> None:
    session = make_session()
    sex = pd.Series(np.where(np.arange(400) % 2 == 0, "F", "M"), name="sex")
    session.release_sd(deltas)
    frame = session.acro.crosstab(sex, pd.Series(np.where(np.arange(400) < 250, "a", "b"), name="arm"))
    folder = session.finalise(place / "outputs")
    results = load(folder)["results"]
    own = [r for r in results.values() if r["type"] == "table"]
    assert len(own) == 1
    assert "sacro_deltab" not in own[0]["properties"]
    assert int(frame.to_numpy().sum()) == 400
    assert pd.read_csv(folder / own[0]["files"][0]["name"], index_col=0).to_numpy().sum() == 400


def test_acro_s_own_table_counts_as_published(make_session: Any, deltas: Any, place: Path) -> None:
    """ACRO's threshold is 10: its table of two sites gives a group of 12 away that ours had withheld."""
    session = make_session()
    site = sites(SITES)
    session.release_group_means(deltas, site)
    session.acro.crosstab(site, pd.Series(["all"] * 400, name="everybody"))
    session.release_counts(pd.Series(["all"] * 400, name="everybody"))
    with pytest.raises(RefusedError, match="worked out") as found:
        session.finalise(place / "outputs")
    assert "ACRO output_1" in str(found.value)
    session.acro.remove_output("output_1")
    session.finalise(place / "outputs")


def test_load_records_reads_our_folder(finished: tuple[Any, Path]) -> None:
    from acro.record import load_records

    _, folder = finished
    records = load_records(str(folder))
    assert set(records.results) == set(load(folder)["results"])


def test_zip_of_approved_records_holds_nothing_from_inside(finished: tuple[Any, Path]) -> None:
    """The viewer's zip takes listed files and the records themselves."""
    session, folder = finished
    evidence = json.loads((folder / "inside" / "evidence.json").read_text())
    secret = {e["name"]: e for e in evidence["outputs"]}["mean_delta_by_site"]["facts"]["parts"]
    small = next(p for p in secret if p["facts"]["cell.n"]["value"] == 12)
    text = json.dumps(load(folder))
    assert not re.search(rf"\b{small['value']!r}\b", text)
    assert session.salt not in text
