"""The unsigned statement: what it covers and what it must not say."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import cert_builder as cb
import pytest

from sacro_deltab.base.canonical import canonical_json, read_canonical
from sacro_deltab.base.errors import CertificateError, UnreadableError
from sacro_deltab.certificate.layout import ENVELOPES
from sacro_deltab.certificate.rounding import bounds_years
from sacro_deltab.certificate.statement import in_full


def statement(folder: Path) -> dict:
    """The session's statement in full."""
    return in_full(json.loads((folder / "certificate.json").read_text()))


def test_subjects_are_every_file_with_both_digests(tmp_path: Path) -> None:
    folder = cb.make_session(tmp_path / "outputs")
    subjects = {s["name"]: s["digest"] for s in statement(folder)["subject"]}
    files = {p.name for p in folder.iterdir() if p.is_file()} - {"certificate.json", *ENVELOPES}
    assert set(subjects) == files | {"inside/"}
    for name in files:
        data = (folder / name).read_bytes()
        assert subjects[name] == {
            "sha256": hashlib.sha256(data).hexdigest(),
            "sha512": hashlib.sha512(data).hexdigest(),
        }


def test_statement_is_canonical_and_checksums_hold(tmp_path: Path) -> None:
    folder = cb.make_session(tmp_path / "outputs")
    data = (folder / "certificate.json").read_bytes()
    read_canonical(data, path="x", what="statement")
    assert b"<" not in data and b"&" not in data
    for name in ("certificate.json", "certificate.dsse.json"):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert (folder / "checksums" / f"{name}.txt").read_text() == digest


def test_nothing_of_the_inside_leaves(tmp_path: Path) -> None:
    folder = cb.make_session(tmp_path / "outputs")
    text = (folder / "certificate.json").read_text()
    secrets = ["secret-cohort-name", "7 people", "rare", "7.25", "423", str(tmp_path), "99" * 16, "one person carry"]
    plain = re.sub(r"\b[0-9a-f]{64,128}\b", "", text)  # digests hold any short number by chance
    assert [s for s in secrets if s in plain] == []
    salt = (folder / "inside" / "salt").read_text().strip()
    assert salt not in text
    for path in (folder / "inside").rglob("*"):
        if path.is_file():
            assert hashlib.sha256(path.read_bytes()).hexdigest() not in text


def test_rules_on_raw_data_are_only_checked_inside(tmp_path: Path) -> None:
    folder = cb.make_session(tmp_path / "outputs")
    predicate = statement(folder)["predicate"]
    table = next(o for o in predicate["outputs"] if o["name"] == "delta_by_diagnosis")
    assert table["rules"]["checked_inside"] == ["PR-04"]
    assert table["rules"]["review"] == ["ST-02"]
    assert [q["question"] for q in table["questions"]] == ["Is the site name sensitive?"]
    inner = json.loads((folder / "inside" / "statement-inside.json").read_text())
    assert next(o for o in inner["predicate"]["outputs"] if o["name"] == "delta_by_diagnosis")["rules"]["review"] == [
        "PR-04"
    ]


def test_verdict_per_file_and_facts_by_who_said_them(tmp_path: Path) -> None:
    predicate = statement(cb.make_session(tmp_path / "outputs"))["predicate"]
    verdicts = {f["file"]: f["verdict"] for f in predicate["files"]}
    assert verdicts["folded_weights.csv"] == "pass" and verdicts["delta_by_diagnosis.json"] == "review"
    assert verdicts["session_summary.csv"] == "review"  # ACRO's word for it, at best review
    assert predicate["kept_inside"] == ["session_summary.csv"]
    assert predicate["verdict"] == "review"  # what is kept inside does not count
    weights = next(o for o in predicate["outputs"] if o["name"] == "folded_weights")
    assert weights["facts"]["declared"] == ["pca.origin"] and weights["facts"]["ledger"] == ["ledger.entry"]
    assert predicate["people"]["declared"]["facts"] == {"n_sites": "stated inside", "pca.origin": "shared"}


def test_unlisted_file_fails_the_folder(tmp_path: Path) -> None:
    folder = cb.write_session(tmp_path / "outputs")
    (folder / "extra.csv").write_text("id,delta\n1,2\n")
    cb.seal_folder(folder, evidence=cb.default_evidence(), ruleset=cb.POLICY)
    assert statement(folder)["predicate"]["verdict"] == "fail"


def test_salt_hides_equal_evidence(tmp_path: Path) -> None:
    digests = []
    for name in ("a", "b"):
        subjects = statement(cb.make_session(tmp_path / name))["subject"]
        digests += [s["digest"] for s in subjects if s["name"] == "inside/"]
    assert digests[0] != digests[1]


def test_everything_without_noise_beside_noise_is_outside_the_budget(tmp_path: Path) -> None:
    privacy = statement(cb.make_session(tmp_path / "outputs"))["predicate"]["privacy"]
    assert privacy["label"] == "formal"
    assert privacy["outside_budget"] == ["delta_by_diagnosis"] and privacy["end_to_end"] is False
    assert "n_public" not in privacy["releases"][0]


def test_bound_of_rounding_from_released_numbers_only(tmp_path: Path) -> None:
    block = statement(cb.make_session(tmp_path / "outputs"))["predicate"]["rounding"]
    # half units of 0.123, -1.45 and 12.3 at three figures, times |z| <= 4
    assert block["bounds_years"]["folded_weights"] == pytest.approx(4 * (0.0005 + 0.005 + 0.05), rel=1e-9)


def test_bound_of_rounding_covers_components() -> None:
    def doc(kind: str, columns: list[str], rows: list[list[float]]) -> tuple[str, dict]:
        cols = [{"name": "x", "role": "label"}] + [{"name": c, "role": "value"} for c in columns]
        return kind, {"type": kind, "columns": cols, "rows": [[str(i), *r] for i, r in enumerate(rows)]}

    b, c = [1.23, -0.456], [[0.707, 0.1], [-0.5, 0.9], [0.5, 0.42]]
    bound = bounds_years(
        [doc("beta1", ["value"], [[v] for v in b]), doc("pca_components", ["c1", "c2"], c)],
        3.0,
        {},
        {"significant_figures": 3},
    )
    moved = 0.0
    for row in c:  # the worst corner by hand: every factor at the edge of its interval
        exact = sum(x * y for x, y in zip(b, row, strict=True))
        corner = sum(
            (abs(x) + h) * (abs(y) + k) for x, y, h, k in zip(b, row, [0.005, 0.0005], [0.0005, 0.0005], strict=True)
        )
        moved += 3.0 * abs(corner - sum(abs(x * y) for x, y in zip(b, row, strict=True)))
        assert exact
    assert bound["components"] >= moved * 0.999


@pytest.mark.parametrize("bad", ["link", "folder", "case", "form", "control"])
def test_what_cannot_be_certified_is_refused(tmp_path: Path, bad: str) -> None:
    folder = cb.write_session(tmp_path / "outputs")
    if bad == "link":
        (folder / "x.csv").symlink_to(folder / "config.json")
    elif bad == "folder":
        (folder / "more").mkdir()
    elif bad == "case":
        (folder / "Folded_weights.csv").write_text("x")
    elif bad == "form":
        (folder / "e\u0301.csv").write_text("x")
    else:
        (folder / "a\u202eb.csv").write_text("x")
    with pytest.raises(CertificateError):
        cb.seal_folder(folder, evidence=cb.default_evidence(), ruleset=cb.POLICY)


@pytest.mark.parametrize(
    "text",
    ['{"a":1}', '{\n "a": 1\n}', '{\n "a": 1.0e0\n}\n', '{\n "b": 1,\n "a": 2\n}\n', '{\n "a": "\\u0041"\n}\n'],
)
def test_only_canonical_json_is_read(text: str) -> None:
    with pytest.raises(CertificateError):
        read_canonical(text.encode(), path="x", what="record")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[NaN]", "[" * 100000, "\xff", ""])
def test_what_is_not_json_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_canonical(text.encode("latin-1"), path="x", what="record")


def test_canonical_round_trip() -> None:
    value = {"β": [1, 1.5, 1e-300, True, None, "<a>&"], "a": {"z": "", "é": []}}
    assert read_canonical(canonical_json(value), path="x", what="record") == value


def test_a_session_cannot_write_free_text_into_what_leaves(tmp_path: Path) -> None:
    secret = "subject 1007 has delta 14.2"
    evidence = cb.default_evidence()
    session = evidence["session"]
    session["declared"] = {"by": secret, "facts": {"note": secret, "n": 7}}
    session["started"] = session["id"] = session["unit"] = secret
    session["tool"] = {"acro": secret, secret: "1"}
    hostile = dict.fromkeys(("mu", "epsilon", "blocks", "bounds", "basis", "epsilon_by_adjacency"), secret)
    hostile |= {"ledger": {"id": "x", "note": secret}, "n_public": 1007, "subjects": secret}
    evidence["outputs"][0]["privacy"] = {**cb.PRIVACY, **hostile, "bounds": {"digest": "d", "note": secret}}
    text = (cb.make_session(tmp_path / "o", evidence) / "certificate.json").read_text()
    assert "1007" not in re.sub(r"\b[0-9a-f]{64,128}\b", "", text) and "14.2" not in text
