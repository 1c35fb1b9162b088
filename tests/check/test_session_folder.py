"""A finished session: the checker agrees with it, and notices every way of tampering with its folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checking import check, codes, texts
from sessions import Made, edit, make, people

from sacro_deltab.outputs import OutputDocument


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("noisy"), noised=True)


@pytest.fixture
def copy(made: Made, tmp_path: Path) -> Made:
    return made.copy(tmp_path)


def verdicts(report: Any) -> dict[str, str]:
    return {output.file: output.verdict for output in report.outputs if not output.kept_inside}


def test_the_checker_agrees_with_the_session(made: Made) -> None:
    report = made.check()
    evidence = json.loads((made.folder / "inside" / "evidence.json").read_text())
    expected = {f: o["status"] for o in evidence["outputs"] if not o["kept_inside"] for f in o["files"]}
    found = {k: v for k, v in verdicts(report).items() if not k.startswith("certificate")}
    assert found == expected
    assert not [f for f in report.folder_findings if f.verdict == "fail"]
    assert set(report.kept_inside) == {"by_diagnosis.csv"}
    assert {p.name for p in (made.folder / "inside").iterdir()} >= {"session_summary.json", "session_summary.csv"}
    assert (report.verdict, report.exit_code) == ("review", 3)


def test_the_report_matches_its_schema_and_says_who_said_what(made: Made) -> None:
    from jsonschema import Draft202012Validator

    from sacro_deltab.base.resources import schema

    report = made.check().to_json()
    errors = list(Draft202012Validator(schema("report")).iter_errors(report))
    assert not errors, errors[0]
    assert {(e["name"], e["by"]) for e in report["declared"]} >= {
        ("output.declared", "declared by A Researcher"),
        ("egress.route", "attested by layer test-site"),
    }
    mean = next(o for o in report["outputs"] if o["file"] == "delta_mean.csv")
    assert {"name": "n", "by": "recorded"} in mean["facts"]


def test_thresholds_are_printed_side_by_side(copy: Made) -> None:
    from sacro_deltab.check.text import render

    assert "ACRO 10, rule set 20, rule set decides" in render(copy.check())
    edit(copy.folder / "config.json", lambda c: c.update(safe_threshold=300))
    report = copy.check()
    assert "ACRO 300, rule set 20, ACRO decides" in render(report)
    assert "check/acro-threshold" in codes(report)
    assert verdicts(report)["mean_delta_by_sex.csv"] == "fail"


def test_without_the_pinned_ledger_nothing_is_more_than_review(made: Made, tmp_path: Path) -> None:
    from sacro_deltab.ledger import open_ledger

    assert set(verdicts(made.check(profile=None)).values()) <= {"review", "pass", "fail"}
    report = made.check(profile=None)
    assert not [f for f, v in verdicts(report).items() if v == "pass" and not f.startswith("certificate")]
    other = tmp_path / "other.db"
    open_ledger(other)
    report = made.check(ledger=other)
    assert "not the one that the TRE pinned" in texts(report)
    assert "pass" not in {v for f, v in verdicts(report).items() if not f.startswith("certificate")}


@pytest.mark.parametrize("what", ["fact", "statement", "total"])
def test_what_is_said_of_noise_is_held_against_the_ledger(noisy: Made, tmp_path: Path, what: str) -> None:
    copy = noisy.copy(tmp_path)

    def change(o: dict[str, Any]) -> None:
        if what == "fact":
            o["facts"]["facts"]["dp.epsilon"]["value"] = 0.1
        elif what == "statement":
            o["privacy"]["epsilon"] = 0.1
        else:
            o["facts"]["facts"]["ledger.epsilon_total"]["value"] = 0.0

    entry(copy, "noised_mean", change)
    report = copy.check()
    assert "check/ledger-differs" in codes(report), texts(report)
    assert verdicts(report)["noised_mean.csv"] == "fail"


def test_a_spend_pays_for_its_own_files_only(noisy: Made) -> None:
    """The bytes of a noisy release count under the name that the ledger closed, and only together."""
    from sacro_deltab.check.ledger_check import open_view, pins, spend_of
    from sacro_deltab.inert.snapshot import Snapshot
    from sacro_deltab.rules import load_ruleset

    view = open_view(noisy.ledger, pins(None, load_ruleset(None, profile=noisy.profile)), named=True)
    csv, json_ = ((noisy.folder / f"noised_mean.{end}").read_bytes() for end in ("csv", "json"))
    whole = [Snapshot.of_bytes("noised_mean.csv", csv), Snapshot.of_bytes("noised_mean.json", json_)]
    assert spend_of(view, whole, None) is not None
    assert spend_of(view, [Snapshot.of_bytes("delta_mean.csv", csv), whole[1]], None) is None
    assert spend_of(view, [Snapshot.of_bytes("noised_mean.csv", csv + b" "), whole[1]], None) is None
    assert spend_of(view, [], None) is None


def test_a_wrecked_ledger_fails(made: Made, tmp_path: Path) -> None:
    import sqlite3

    ledger = tmp_path / "budget.db"
    shutil.copy(made.ledger, ledger)
    with sqlite3.connect(ledger) as connection:
        names = [row[0] for row in connection.execute("select name from sqlite_master where type='trigger'")]
        for name in names:
            connection.execute(f'drop trigger "{name}"')
        connection.execute("update ledger_entries set who = 'somebody else' where seq = 2")
    report = made.check(ledger=ledger)
    assert report.exit_code == 1
    assert "ledger" in texts(report)


def test_the_cohort_recomputes_and_names_what_differs(made: Made, tmp_path: Path) -> None:
    report = made.check(cohort=made.cohort)
    assert report.exit_code == 3, texts(report)
    assert report.cohort is not None
    assert "cell.n" in report.cohort["measured"]["by_site"]
    assert "value of 95" in report.cohort["measured"]["delta_quantiles"]
    frame = people()
    frame.loc[frame.index[:3], "delta"] += 40
    frame.drop(index=frame.index[-1]).to_csv(tmp_path / "other.csv", index=False)
    report = made.check(cohort=tmp_path / "other.csv")
    assert report.exit_code == 1
    for name in (
        "n is recorded",
        "largest_share is recorded",
        "outlier.max_abs_z is recorded",
        "cell.n of row",
        "delta_mean (mean delta) is recorded",
        "the mean of row",
    ):
        assert name in texts(report), name


def test_forged_numbers_in_every_file_and_the_evidence_are_found_with_the_cohort(copy: Made) -> None:
    """Everything is rewritten consistently: only the data can tell."""
    document = OutputDocument.from_json(json.loads((copy.folder / "delta_mean.json").read_text()))
    forged = OutputDocument(**{**vars(document), "rows": (("mean delta", 1.7),)})
    (copy.folder / "delta_mean.json").write_text(forged.to_json())
    (copy.folder / "delta_mean.csv").write_text(forged.to_csv())
    copy.seal("delta_mean.json", "delta_mean.csv")

    def rewrite(evidence: dict[str, Any]) -> None:
        entry = next(o for o in evidence["outputs"] if o["name"] == "delta_mean")
        entry["raw"]["rows"] = [["mean delta", 1.7123]]

    copy.evidence(rewrite)
    report = copy.check(cohort=copy.cohort)
    assert "delta_mean (mean delta) is recorded as 1.7123" in texts(report)


# --- tampering --------------------------------------------------------------------------------------------------------


def change_document(made: Made, stem: str, **changes: Any) -> None:
    """Rewrite CSV and JSON consistently, checksums too."""
    path = made.folder / f"{stem}.json"
    document = OutputDocument.from_json(json.loads(path.read_text()))
    document = OutputDocument(**{**vars(document), **changes})
    path.write_text(document.to_json())
    (made.folder / f"{stem}.csv").write_text(document.to_csv())
    made.seal(f"{stem}.json", f"{stem}.csv")


def rows_of(made: Made, stem: str) -> list[list[Any]]:
    return json.loads((made.folder / f"{stem}.json").read_text())["rows"]  # type: ignore[no-any-return]


def append(made: Made, name: str, data: bytes) -> None:
    path = made.folder / name
    path.write_bytes(path.read_bytes() + data)
    made.seal(name)


def replace_text(made: Made, name: str, old: str, new: str) -> None:
    path = made.folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    made.seal(name)


def in_record(made: Made, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    uid = made.record(name)
    made.results(lambda d: change(d["results"][uid]))


def entry(made: Made, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    made.evidence(lambda d: change(next(o for o in d["outputs"] if o["name"] == name)))


def show_hidden(made: Made) -> None:
    rows = rows_of(made, "by_site")
    hidden = next(row for row in rows if row[1] == "*")
    hidden[1:] = [12, 0.4]
    change_document(made, "by_site", rows=tuple(tuple(r) for r in rows))
    in_record(made, "by_site.csv", lambda r: [f["sdc"]["cells"].clear() for f in r["files"]])


def swap_hidden(made: Made) -> None:
    rows = rows_of(made, "by_site")
    hidden = next(i for i, row in enumerate(rows) if row[1] == "*")
    shown = next(i for i, row in enumerate(rows) if row[1] != "*")
    rows[hidden][1:], rows[shown][1:] = rows[shown][1:], rows[hidden][1:]
    change_document(made, "by_site", rows=tuple(tuple(r) for r in rows))


def more_digits(made: Made) -> None:
    value = rows_of(made, "delta_mean")[0][1]
    change_document(made, "delta_mean", rows=(("mean delta", value + 0.0417),))


def other_rounding(made: Made) -> None:
    rows = rows_of(made, "mean_delta_by_sex")
    rows[0][2] = round(rows[0][2] + 0.1, 1)
    change_document(made, "mean_delta_by_sex", rows=tuple(tuple(r) for r in rows))


def spelled_otherwise(made: Made) -> None:
    value = str(rows_of(made, "delta_sd")[0][1])
    replace_text(made, "delta_sd.json", value, f"{value}000000001")


def link(made: Made) -> None:
    target = made.folder / "delta_mean.csv"
    shutil.move(target, made.folder.parent / "elsewhere.csv")
    target.symlink_to(made.folder.parent / "elsewhere.csv")


def list_again(made: Made) -> None:
    uid = made.record("delta_mean.csv")
    made.results(lambda d: d["results"][made.record("delta_sd.csv")]["files"].append(d["results"][uid]["files"][0]))


def drop_record(made: Made) -> None:
    uid = made.record("by_site.csv")
    made.results(lambda d: d["results"].pop(uid))


def swap_files(made: Made) -> None:
    a, b = made.folder / "delta_mean.csv", made.folder / "delta_sd.csv"
    one, two = a.read_bytes(), b.read_bytes()
    a.write_bytes(two)
    b.write_bytes(one)
    made.seal("delta_mean.csv", "delta_sd.csv")


def data_in_stub(made: Made) -> None:
    append(made, "by_diagnosis.csv", b"AD,14.2\nHC,13.1\n")


def data_in_reason(made: Made) -> None:
    reason = " ".join(str(i * 1.37) for i in range(20))
    (made.folder / "by_diagnosis.csv").write_text(f"output,kept inside because\nMean delta,{reason}\n")
    made.seal("by_diagnosis.csv")


def table_for_stub(made: Made) -> None:
    (made.folder / "by_diagnosis.csv").write_text("group,n,mean_delta\nAD,14,2.31\nHC,140,0.21\n")
    made.seal("by_diagnosis.csv")


def release_a_kept_one(made: Made) -> None:
    table_for_stub(made)
    entry(made, "by_diagnosis", lambda o: o.update(kept_inside=False, status="pass"))
    in_record(made, "by_diagnosis.csv", lambda r: r.update(status="pass", summary="pass; meets the rules"))


def raise_a_count(made: Made) -> None:
    def change(o: dict[str, Any]) -> None:
        part = min(o["facts"]["parts"], key=lambda p: p["facts"]["cell.n"]["value"])
        part["facts"]["cell.n"]["value"] = 40

    entry(made, "by_site", change)


def raise_a_count_everywhere(made: Made) -> None:
    def change(o: dict[str, Any]) -> None:
        part = min(o["facts"]["parts"], key=lambda p: p["facts"]["cell.n"]["value"])
        part["facts"]["cell.n"]["value"] = 40
        for row in o["raw"]["rows"]:
            if row[0] == part["key"]:
                row[1] = 40

    entry(made, "by_site", change)
    rows = rows_of(made, "by_site")
    for row in rows:
        if row[0] == "Hill":
            row[1:] = [40, 0.1]
    change_document(made, "by_site", rows=tuple(tuple(r) for r in rows))


def red_cells_moved(made: Made) -> None:
    in_record(made, "by_site.csv", lambda r: [f["sdc"].update(cells={"a": [[0, 0]]}) for f in r["files"]])


def red_cells_told_apart(made: Made) -> None:
    def change(r: dict[str, Any]) -> None:
        for f in r["files"]:
            (_, pairs), *_ = f["sdc"]["cells"].items()
            f["sdc"]["cells"] = {"primary": pairs[:2], "complementary": pairs[2:]}

    in_record(made, "by_site.csv", change)


def nan_in_results(made: Made) -> None:
    uid = made.record("delta_mean.csv")
    made.results(lambda d: d["results"][uid]["properties"].update(x=float("nan")))


def summary_outside(made: Made) -> None:
    """ACRO's overview of the session, which stays in inside/, listed to be released."""
    shutil.copy(made.folder / "inside" / "session_summary.csv", made.folder)
    made.seal("session_summary.csv")
    template = made.record("delta_mean.csv")

    def add(d: dict[str, Any]) -> None:
        files = [{"name": "session_summary.csv", "sdc": {}}]
        d["results"]["x"] = {**d["results"][template], "uid": "x", "files": files}

    made.results(add)


def stub_of_nothing(made: Made) -> None:
    entry(made, "by_diagnosis", lambda o: o.update(files=["gone.csv"]))


def sign_more(made: Made) -> None:
    """The statement with ages in it, under a signature that nobody made."""
    from sacro_deltab.base.canonical import canonical_json, read_canonical
    from sacro_deltab.certificate.envelope import ParsedEnvelope

    data = (made.folder / "certificate.json").read_bytes()
    statement = read_canonical(data, path="certificate.json", what="statement")
    statement["predicate"]["ages"] = [52, 47, 25]
    envelope = ParsedEnvelope(canonical_json(statement), (("0" * 64, bytes(64)),))
    (made.folder / "certificate.dsse.json").write_bytes(envelope.to_bytes())


TAMPERED: dict[str, tuple[Callable[[Made], Any], str]] = {
    "status edited from fail to pass": (
        lambda m: in_record(m, "by_diagnosis.csv", lambda r: r.update(status="pass", summary="pass; fine")),
        "check/not-rebuilt",
    ),
    "status edited from review to pass": (
        lambda m: in_record(m, "asked.csv", lambda r: r.update(status="pass", summary="pass; fine")),
        "check/not-rebuilt",
    ),
    "csv edited": (
        lambda m: (m.folder / "delta_mean.csv").write_text("statistic,value\nmean delta,9.9\n"),
        "check/checksum",
    ),
    "csv edited with its checksum": (
        lambda m: (
            (m.folder / "delta_mean.csv").write_text("statistic,value\nmean delta,9.9\n"),
            m.seal("delta_mean.csv"),
        ),
        "check/csv-json",
    ),
    "csv, json and checksums edited": (other_rounding, "check/not-transformed"),
    "digits beyond the rounding": (more_digits, "check/not-transformed"),
    "a hidden row shown": (show_hidden, "check/not-transformed"),
    "another row hidden": (swap_hidden, "check/not-transformed"),
    "comment in csv": (lambda m: append(m, "delta_mean.csv", b"# 52 47 25\n"), "check/csv-json"),
    "spaces in csv": (lambda m: replace_text(m, "delta_mean.csv", "\n", " \n"), "check/csv-json"),
    "extra column in csv": (lambda m: replace_text(m, "delta_mean.csv", "value\n", "value,note\n"), "check/csv-json"),
    "extra key in json": (
        lambda m: replace_text(m, "delta_mean.json", '"name"', '"ages": [52, 47],\n "name"'),
        "check/schema",
    ),
    "spaces in json": (lambda m: append(m, "delta_mean.json", b" \t \t\n"), "check/not-canonical"),
    "number spelled otherwise": (spelled_otherwise, "check/csv-json"),
    "text in about": (
        lambda m: change_document(m, "delta_mean", about={"note": " ".join(str(i) for i in range(40, 70))}),
        "check/numbers-in-text",
    ),
    "another title": (lambda m: change_document(m, "delta_mean", title="Subject 1007 has 14.2"), "check/evidence"),
    "checksum missing": (lambda m: (m.folder / "checksums" / "delta_mean.csv.txt").unlink(), "check/checksum"),
    "file missing": (lambda m: (m.folder / "delta_mean.csv").unlink(), "check/missing-file"),
    "file unlisted": (lambda m: (m.folder / "extra.csv").write_text("a\n1\n"), "check/unlisted"),
    "folder unlisted": (
        lambda m: ((m.folder / "more").mkdir(), (m.folder / "more" / "x.csv").write_text("1")),
        "check/unlisted",
    ),
    "file listed twice": (list_again, "check/listed-twice"),
    "record removed": (drop_record, "check/not-rebuilt"),
    "record without files": (lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(files=[])), "check/no-files"),
    "two files swapped": (swap_files, "check/csv-json"),
    "symbolic link": (link, "check/symlink"),
    "link to a folder": (lambda m: (m.folder / "raw").symlink_to(m.folder.parent), "check/symlink"),
    "named pipe": (lambda m: os.mkfifo(m.folder / "pipe.csv"), "check/special-file"),
    "colliding names": (lambda m: (m.folder / "DELTA_MEAN.csv").write_text("a\n1\n"), "check/name-collision"),
    "data behind a stub": (data_in_stub, "check/stub"),
    "numbers in a stub's reason": (data_in_reason, "check/stub"),
    "a table in a stub's place": (table_for_stub, "check/stub"),
    "a withheld table released": (release_a_kept_one, "check/not-judged"),
    "a count raised in the facts": (raise_a_count, "check/evidence"),
    "a count raised everywhere": (raise_a_count_everywhere, "check/tables"),
    "red cells moved": (red_cells_moved, "check/not-rebuilt"),
    "red cells told apart": (red_cells_told_apart, "check/not-rebuilt"),
    "NaN in results.json": (nan_in_results, "check/unreadable"),
    "results is a list": (lambda m: m.results(lambda d: d.update(results=[])), "check/results-form"),
    "no version": (lambda m: m.results(lambda d: d.pop("version")), "check/results-form"),
    "old version": (lambda m: m.results(lambda d: d.update(version="0.3.1")), "check/results-form"),
    "extra top key": (lambda m: m.results(lambda d: d.update(ages=[52, 47])), "check/extra-keys"),
    "extra record key": (lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(ages=[52])), "check/extra-keys"),
    "extra property": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r["properties"].update(ages="52 47")),
        "check/not-rebuilt",
    ),
    "numbers in outcome": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(outcome={"a": {"b": 52}})),
        "check/not-rebuilt",
    ),
    "numbers in fair": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(fair={"n": 7})),
        "check/not-rebuilt",
    ),
    "list in a comment": (
        lambda m: in_record(
            m, "delta_mean.csv", lambda r: r.update(comments=[" ".join(str(i) for i in range(40, 60))])
        ),
        "check/not-rebuilt",
    ),
    "script in a comment": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(comments=["<script>alert(1)</script>"])),
        "check/markup",
    ),
    "hidden text in exception": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(exception="fine <!-- 14.2 -->")),
        "check/markup",
    ),
    "comments missing": (lambda m: in_record(m, "delta_mean.csv", lambda r: r.pop("comments")), "check/record-form"),
    "comments a text": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(comments="x")),
        "check/record-form",
    ),
    "sdc null": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r["files"][0].update(sdc=None)),
        "check/record-form",
    ),
    "sdc triple": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r["files"][0].update(sdc={"cells": {"a": [[0, 0, 0]]}})),
        "check/record-form",
    ),
    "chip says otherwise": (
        lambda m: in_record(m, "asked.csv", lambda r: r.update(summary="pass; fine")),
        "check/not-rebuilt",
    ),
    "chip unknown": (lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(summary="")), "check/not-rebuilt"),
    "unknown status": (lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(status="approved")), "check/status"),
    "version of one part": (lambda m: m.results(lambda d: d.update(version="1")), "check/results-form"),
    "NaN among the cells": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r["files"][0]["sdc"].update(summary={"x": float("nan")})),
        "check/unreadable",
    ),
    "script in the time": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(timestamp="<img src=x onerror=alert(1)>")),
        "check/not-rebuilt",
    ),
    "script in the summary": (
        lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(summary="pass; <b onclick=alert(1)>fine</b>")),
        "check/markup",
    ),
    "an empty file": (
        lambda m: ((m.folder / "delta_mean.csv").write_bytes(b""), m.seal("delta_mean.csv")),
        "check/csv-json",
    ),
    "missing-files.txt": (lambda m: (m.folder / "missing-files.txt").write_text("x"), "check/viewer-name"),
    "a summary to be released": (summary_outside, "check/summary-record"),
    "a note of an output nobody asked for": (stub_of_nothing, "check/not-judged"),
    "data in the envelope": (sign_more, "check/certificate"),
    "uid differs": (lambda m: in_record(m, "delta_mean.csv", lambda r: r.update(uid="x")), "check/record-form"),
    "two ACRO json files": (
        lambda m: shutil.copy(m.folder / "results.json", m.folder / "results2.json"),
        "check/foreign-json",
    ),
    "invalid json beside": (lambda m: (m.folder / "x.json").write_text("{"), "check/foreign-json"),
    "a bare number beside": (lambda m: (m.folder / "x.json").write_text("3"), "check/foreign-json"),
    "outputs.json": (lambda m: (m.folder / "outputs.json").write_text("{}"), "check/viewer-name"),
    "summary.txt": (lambda m: (m.folder / "summary.txt").write_text("x"), "check/viewer-name"),
    "federated evidence": (lambda m: (m.folder / "evidence.json").write_text("{}"), "check/federated"),
    "federated config": (
        lambda m: edit(m.folder / "config.json", lambda c: c.update(federated=True)),
        "check/federated",
    ),
    "xlsx beside": (lambda m: (m.folder / "results.xlsx").write_bytes(b"PK\x03\x04"), "check/unlisted"),
    "results.json not JSON": (lambda m: (m.folder / "results.json").write_text("{"), "check/unreadable"),
    "evidence not JSON": (lambda m: (m.folder / "inside" / "evidence.json").write_text("{"), "check/no-evidence"),
    "evidence without an output": (lambda m: m.evidence(lambda d: d["outputs"].pop(1)), "check/not-judged"),
    "unrounded document missing": (lambda m: entry(m, "delta_mean", lambda o: o.update(raw=None)), "check/not-judged"),
    "a fact missing": (lambda m: entry(m, "delta_mean", lambda o: o["facts"]["facts"].pop("largest_share")), "AD-02"),
    "facts of a row missing": (lambda m: entry(m, "by_site", lambda o: o["facts"]["parts"].pop(0)), "check/not-judged"),
    "certificate edited": (
        lambda m: replace_text(m, "certificate.json", '"verdict"', '"Verdict"'),
        "check/certificate",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_named(copy: Made, name: str) -> None:
    change, expected = TAMPERED[name]
    change(copy)
    report = copy.check()
    assert expected in codes(report), f"{sorted(codes(report))}\n{texts(report)}"
    assert report.exit_code == (3 if name == "certificate edited" and report.exit_code == 3 else 1), texts(report)


@pytest.mark.parametrize(
    "name",
    [
        "inside/evidence.json",
        "INSIDE/evidence.json",
        "inside\\evidence.json",
        "./inside/evidence.json",
        "checksums/x.txt",
        "/data/ages.csv",
        "../cohort.csv",
        "a/../../cohort.csv",
        "C:\\ages.csv",
        "results.json",
        "config.json",
        ".hidden",
        "more/ages.csv",
        7,
        "",
    ],
)
def test_no_record_can_name_a_file_elsewhere(copy: Made, name: Any) -> None:
    in_record(copy, "delta_mean.csv", lambda r: r["files"][0].update(name=name))
    report = copy.check()
    assert "check/bad-name" in codes(report)
    assert report.exit_code == 1


def test_without_inside_nothing_passes(copy: Made) -> None:
    shutil.rmtree(copy.folder / "inside")
    report = copy.check()
    assert report.exit_code == 1
    assert "not judged: missing inside/evidence.json" in texts(report)
    assert not [f for f, v in verdicts(report).items() if v == "pass" and not f.startswith("certificate")]


def test_no_plain_record_hides_in_a_session(copy: Made) -> None:
    """A record that does not claim to be ours is judged as ACRO's, never waved through."""
    (copy.folder / "output_9.csv").write_text("group,n\nAD,14\nHC,140\n")
    template = copy.record("delta_mean.csv")

    def add(d: dict[str, Any]) -> None:
        record = json.loads(json.dumps(d["results"][template]))
        record.update(
            uid="output_9",
            type="table",
            properties={"method": "crosstab"},
            summary="pass; fine",
            files=[{"name": "output_9.csv", "sdc": {"summary": {}, "cells": {}}}],
        )
        d["results"]["output_9"] = record

    copy.results(add)
    copy.seal("output_9.csv") if (copy.folder / "checksums").exists() else None
    report = copy.check()
    assert verdicts(report)["output_9.csv"] == "fail"


def test_folders_that_the_viewer_rebuilds_without_their_statuses(copy: Made, tmp_path: Path) -> None:
    """A record without files beside no other JSON; a session written as a spreadsheet."""
    in_record(copy, "delta_mean.csv", lambda r: r.update(files=[]))
    for path in copy.folder.glob("*.json"):
        if path.name != "results.json":
            path.unlink()
    report = copy.check()
    assert report.exit_code == 1
    assert "check/no-files" in codes(report)
    sheet = tmp_path / "sheet"
    sheet.mkdir()
    (sheet / "results.xlsx").write_bytes(b"PK\x03\x04")
    (sheet / "count_table.csv").write_text("dx,F\nAD,3\n")
    assert {output.verdict for output in check(sheet).outputs} == {"fail"}


def test_exit_codes_of_the_command(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    from sacro_deltab.cli import main

    base = ["check", str(made.folder), "--profile", str(made.profile), "--ledger", str(made.ledger)]
    with pytest.raises(SystemExit) as stop:
        main([*base, "--json"])
    out = capsys.readouterr()
    assert stop.value.code == 3
    assert json.loads(out.out)["verdict"] == "review"
    with pytest.raises(SystemExit) as stop:
        main(["check", str(made.folder / "absent")])
    assert stop.value.code == 2
    assert "no such file" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(base)
    text = capsys.readouterr().out
    assert "\x1b[" not in text and "delta_mean" in text


def test_a_reader_that_stops_early_does_not_turn_a_fail_into_a_pass(made: Made) -> None:
    import subprocess
    import sys

    code = "import sys; from sacro_deltab.cli import main; main(sys.argv[1:])"
    run = [sys.executable, "-c", code, "check", str(made.folder), "--json"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        noise = process.stderr.read()
        assert process.wait() == 3
    assert b"Traceback" not in noise and b"Broken" not in noise


def test_several_folders_and_files_make_one_report(made: Made, tmp_path: Path) -> None:
    path = tmp_path / "ages.txt"
    path.write_text("\n".join(str(40 + i % 30) for i in range(600)))
    report = check(made.folder, path)
    assert report.exit_code == 1
    assert any(output.file == str(path) for output in report.outputs)


def clone(made: Made, stem: str, names: list[str]) -> None:
    """The same output again under other names, in every place a session writes it."""
    evidence = json.loads((made.folder / "inside" / "evidence.json").read_text())
    results = json.loads((made.folder / "results.json").read_text())
    template = next(o for o in evidence["outputs"] if o["name"] == stem)
    record = results["results"][made.record(f"{stem}.csv")]
    for name in names:
        for suffix in ("csv", "json"):
            text = (made.folder / f"{stem}.{suffix}").read_text().replace(f'"name": "{stem}"', f'"name": "{name}"')
            (made.folder / f"{name}.{suffix}").write_text(text)
            made.seal(f"{name}.{suffix}")
        entry = json.loads(json.dumps(template).replace(f'"{stem}"', f'"{name}"').replace(f'"{stem}.', f'"{name}.'))
        own = json.loads(json.dumps(record).replace(f'"{stem}.', f'"{name}.'))
        own["uid"] = name
        evidence["outputs"].append(entry)
        results["results"][own["uid"]] = own
    (made.folder / "inside" / "evidence.json").write_text(json.dumps(evidence))
    (made.folder / "results.json").write_text(json.dumps(results))


def test_one_persons_value_in_each_of_many_outputs(copy: Made) -> None:
    clone(copy, "delta_mean", [f"mean_{i:03d}" for i in range(30)])
    report = copy.check()
    assert "check/spread-out" in codes(report)
    assert report.exit_code != 0


def test_a_table_that_the_linked_attack_was_never_told_about(copy: Made) -> None:
    clone(copy, "mean_delta_by_sex", ["another_table"])
    report = copy.check()
    assert verdicts(report)["another_table.csv"] == "fail"
    assert "the attack was never run on it" in texts(report)


def test_a_table_taken_out_of_the_linked_attack(copy: Made) -> None:
    def change(evidence: dict[str, Any]) -> None:
        evidence["tables"] = None
        evidence["tables_more"] = []

    copy.evidence(change)
    report = copy.check()
    assert verdicts(report)["by_site.csv"] == "fail"
