"""Two checkers decide on each file; neither sees the other first; a changed file starts again."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import cert_builder as cb
import cert_signed as cs
import pytest

from sacro_deltab.base.errors import CertificateError, InputError, RefusedError, SacroDeltabError
from sacro_deltab.base.findings import Effect
from sacro_deltab.base.verdicts import NOTHING
from sacro_deltab.certificate.certify import certify_folder
from sacro_deltab.certificate.keys import keygen
from sacro_deltab.certificate.review import (
    FileDecision,
    FileStatus,
    Question,
    load_record,
    opened_answers,
    read_submissions,
    status,
    submit,
)
from sacro_deltab.certificate.verify import verify_path
from sacro_deltab.judging.report import Report
from sacro_deltab.ledger.trust import load_trust, revoke_key

SECRET = "one person carries the rare cell"


def accept(question: Question) -> FileDecision:
    return FileDecision("accept", "read in full", dict.fromkeys(question.questions, SECRET))


def refuse(question: Question) -> FileDecision:
    return FileDecision("refuse", "too fine", dict.fromkeys(question.questions, "no"))


def review(folder: Path, role: str, decide: Any = accept, ring: str = "one") -> list[str]:
    return submit(folder, cs.ring(ring).keys[role], cs.ring().trust, decide, now=cb.NOW)


def states(folder: Path) -> dict[str, FileStatus]:
    record = load_record(folder)
    found, problems = read_submissions(record.inventory, record.predicate["certificate_id"], cs.ring().trust, cb.NOW)
    assert problems == []
    return {s.file: s for s in status(record, found)}


def test_questions_on_raw_data_are_asked_too(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    asked = {q.file: q.questions for q in load_record(folder).questions}
    assert set(asked["delta_by_diagnosis.csv"]) == {"Is the site name sensitive?", "Does one person carry this cell?"}
    assert asked["folded_weights.csv"] == ()
    assert "session_summary.csv" not in asked and "certificate.json" not in asked


def test_nobody_sees_the_other_first(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    first = review(folder, "checker1")
    assert any("stays sealed until checker2" in line for line in first)
    sealed = list((folder / "inside" / "review").iterdir())
    assert [p.name for p in sealed] == ["checker1-0001.sealed.dsse.json"]
    text = sealed[0].read_text() + json.dumps(states(folder)["folded_weights.csv"].votes)
    assert SECRET not in text and "accept" not in text
    assert states(folder)["folded_weights.csv"].votes["checker1"] == "sealed"
    assert any("opened as checker2" in line for line in review(folder, "checker2"))
    assert states(folder)["folded_weights.csv"].outcome == "awaited"  # checker1 has still to open
    assert review(folder, "checker1") == ["opened as checker1: 4 file(s)"]
    assert {s.outcome for s in states(folder).values()} == {"accepted"}


def both(folder: Path, one: Any = accept, two: Any = accept) -> Path:
    review(folder, "checker1", one)
    review(folder, "checker2", two)
    review(folder, "checker1")
    return folder


@pytest.mark.parametrize(("one", "outcome"), [(accept, "accepted"), (refuse, "refused")])
def test_outcome(tmp_path: Path, one: Any, outcome: str) -> None:
    folder = both(cs.certified(tmp_path / "o"), one)
    assert {s.outcome for s in states(folder).values()} == {outcome}


def test_verify_is_complete_once_every_output_is_accepted(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")

    def seen() -> tuple[bool, bool, str]:
        result = verify_path(folder, cs.ring().trust, at=cb.NOW)
        return result.authentic, result.ok, next(c.text for c in result.checks if c.name == "decisions")

    assert seen()[:2] == (True, True)  # nobody has begun to decide
    review(folder, "checker1")
    review(folder, "checker2")
    assert seen() == (True, False, "undecided: delta_by_diagnosis, folded_weights")
    review(folder, "checker1")
    assert seen() == (True, True, "all 2 outputs accepted, each with all its files")


def nothing_leaves(folder: Path) -> Path:
    """A certified folder in which the check kept everything inside."""
    report = cs.report("pass")
    for output in report.outputs:
        output.kept_inside = True
    return cs.certified(folder, check=lambda path: report)


def test_a_certificate_over_nothing_is_no_pass_and_no_review(tmp_path: Path) -> None:
    folder = nothing_leaves(tmp_path / "o")
    result = verify_path(folder, cs.ring().trust, at=cb.NOW)
    assert result.statement is not None and result.statement["predicate"]["verdict"] == NOTHING
    assert result.conclusion() == "authentic and NOT complete: nothing to release" and result.exit_code == 1
    with pytest.raises(RefusedError, match=NOTHING):
        review(folder, "checker1")
    assert cs.certify(folder, check=lambda path: Report({})).exit_code == 1


def one_file(decision: str) -> Any:
    def decide(question: Question) -> FileDecision:
        what = decision if question.file == "folded_weights.csv" else "accept"
        return FileDecision(what, "read", dict.fromkeys(question.questions, "looked at"))

    return decide


@pytest.mark.parametrize(("decision", "word"), [("refuse", "refused"), ("return", "returned")])
@pytest.mark.parametrize("gone", ["nothing", "inside", "review"])
def test_a_decision_holds_for_all_files_of_an_output(tmp_path: Path, decision: str, word: str, gone: str) -> None:
    folder = both(cs.certified(tmp_path / "o"), two=one_file(decision))
    cs.certify(folder)
    if gone != "nothing":
        shutil.rmtree(folder / "inside" / ("review" if gone == "review" else ""))
    result = verify_path(folder, cs.ring().trust, at=cb.NOW)
    assert result.authentic and result.exit_code == 1
    twins = f"folded_weights.csv {word}, folded_weights.json accepted"
    assert result.conclusion() == f"authentic and NOT complete: {word}: folded_weights ({twins})"


@pytest.mark.parametrize(("role", "ring"), [("tool", "one"), ("checker1", "two")])
def test_the_authors_key_and_strangers_are_refused(tmp_path: Path, role: str, ring: str) -> None:
    folder = cs.certified(tmp_path / "o")
    with pytest.raises(RefusedError):
        review(folder, role, ring=ring)


def test_one_checker_cannot_vote_twice(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    review(folder, "checker1")
    review(folder, "checker2", refuse)
    assert review(folder, "checker1", refuse) == ["opened as checker1: 4 file(s)"]
    assert states(folder)["folded_weights.csv"].votes["checker1"] == "accept"
    assert review(folder, "checker1", refuse) == ["nothing to do: checker1 has decided on every file"]


def test_a_changed_file_resets_its_votes_and_no_other(tmp_path: Path) -> None:
    folder = both(cs.certified(tmp_path / "o"))
    path = folder / "folded_weights.csv"
    path.write_text(path.read_text().replace("0.123", "0.124"))
    assert not verify_path(folder, cs.ring().trust, at=cb.NOW).ok
    with pytest.raises(CertificateError):
        load_record(folder)
    cs.certify(folder)
    after = states(folder)
    assert after["folded_weights.csv"].votes == {"checker1": "reset", "checker2": "reset"}
    assert after["folded_weights.csv"].awaited == ["checker1", "checker2"]
    assert after["delta_by_diagnosis.csv"].outcome == "accepted"
    assert review(folder, "checker1")[0] == "sealed as checker1: 1 file(s)"


def test_new_questions_reset_too(tmp_path: Path) -> None:
    folder = both(cs.certified(tmp_path / "o"))
    report = cs.report("review")
    report.outputs[2].findings.append(cb.found("ST-09", Effect.REVIEW, "A new question?"))
    cs.certify(folder, check=lambda where: report)
    assert states(folder)["delta_by_diagnosis.csv"].votes["checker1"] == "reset"
    assert states(folder)["folded_weights.csv"].outcome == "accepted"


@pytest.mark.parametrize("missing", ["reason", "answer", "decision"])
def test_every_question_needs_an_answer_and_every_decision_a_reason(tmp_path: Path, missing: str) -> None:
    folder = cs.certified(tmp_path / "o")

    def careless(question: Question) -> FileDecision:
        answers = {} if missing == "answer" else dict.fromkeys(question.questions, "yes")
        return FileDecision("pass" if missing == "decision" else "accept", "" if missing == "reason" else "x", answers)

    with pytest.raises(InputError):
        review(folder, "checker1", careless)
    assert not (folder / "inside" / "review").exists()


def test_a_certificate_made_after_the_review_carries_the_decisions(tmp_path: Path) -> None:
    folder = both(cs.certified(tmp_path / "o"))
    cs.certify(folder)
    result = verify_path(folder, cs.ring().trust, at=cb.NOW)
    assert result.ok and result.statement is not None
    answers = result.statement["predicate"]["people"]["answers"]
    assert {(a["role"], a["decision"]) for a in answers} == {("checker1", "accept"), ("checker2", "accept")}
    assert SECRET not in json.dumps(answers)
    shutil.rmtree(folder / "inside")
    carried = next(c for c in verify_path(folder, cs.ring().trust, at=cb.NOW).checks if c.name == "review")
    assert "8 decision(s) by checker1, checker2" in carried.text


def test_dac_opens_when_both_checkers_submitted(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    assert any("stays sealed" in line for line in review(folder, "dac", refuse))
    both(folder)
    assert review(folder, "dac") == ["opened as dac: 4 file(s)"]
    assert states(folder)["folded_weights.csv"].outcome == "refused"


def doctored(folder: Path, which: str) -> None:
    where = folder / "inside" / "review"
    one = where / "checker1-0001.opened.dsse.json"
    if which == "flipped":
        data = bytearray(one.read_bytes())
        data[len(data) // 2] ^= 1
        one.write_bytes(bytes(data))
    elif which == "other role":
        one.rename(where / "checker2-0002.opened.dsse.json")
    elif which == "not sealed first":
        (where / "checker1-0001.sealed.dsse.json").unlink()
    elif which == "copied":
        for kind in ("sealed", "opened"):
            shutil.copy(where / f"checker1-0001.{kind}.dsse.json", where / f"checker1-0002.{kind}.dsse.json")
    elif which == "swapped":
        other = where / "checker2-0001.opened.dsse.json"
        a, b = one.read_bytes(), other.read_bytes()
        one.write_bytes(b)
        other.write_bytes(a)


@pytest.mark.parametrize("which", ["flipped", "other role", "not sealed first", "copied", "swapped"])
def test_doctored_reviews_are_caught(tmp_path: Path, which: str) -> None:
    folder = both(cs.certified(tmp_path / "o"))
    doctored(folder, which)
    result = verify_path(folder, cs.ring().trust, at=cb.NOW)
    assert [c.name for c in result.checks if c.state == "fail"] == ["review"]


def test_every_bit_of_a_review_counts(tmp_path: Path) -> None:
    folder = both(cs.certified(tmp_path / "o"))
    path = folder / "inside" / "review" / "checker2-0001.sealed.dsse.json"
    before = path.read_bytes()
    for at in range(0, len(before), 197):
        changed = bytearray(before)
        changed[at] ^= 1 << (at % 8)
        path.write_bytes(bytes(changed))
        assert not verify_path(folder, cs.ring().trust, at=cb.NOW).ok, at
    path.write_bytes(before)


def test_a_review_of_another_release_does_not_count(tmp_path: Path) -> None:
    one, two = both(cs.certified(tmp_path / "a")), cs.certified(tmp_path / "b")
    shutil.copytree(one / "inside" / "review", two / "inside" / "review")
    assert not verify_path(two, cs.ring().trust, at=cb.NOW).ok


def test_questions_cannot_be_taken_out_of_inside(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    (folder / "inside" / "certified" / "statement-inside.json").unlink()
    with pytest.raises(CertificateError):
        load_record(folder)


def test_an_old_key_cannot_review(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    with pytest.raises(RefusedError):
        submit(folder, cs.ring().keys["checker1"], cs.ring().trust, accept, now=cb.NOW + timedelta(days=800))


def test_answers_only_of_files_as_they_are(tmp_path: Path) -> None:
    folder = both(cs.certified(tmp_path / "o"))
    record = load_record(folder)
    found, _ = read_submissions(record.inventory, record.predicate["certificate_id"], cs.ring().trust, cb.NOW)
    assert len(opened_answers(record, found)) == 8


def test_countersigning_a_record_that_no_longer_holds_is_refused(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    (folder / "folded_weights.csv").write_text("x")
    with pytest.raises(SacroDeltabError):
        certify_folder(folder, cs.ring().keys["checker1"], cs.request(cs.ring()))


def test_votes_of_a_lost_key_count_no_more_and_its_checker_votes_again(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    review(folder, "checker1")
    review(folder, "checker2", refuse)
    path = Path(shutil.copy(cs.ring().trust_path, tmp_path / "trust.json"))
    revoke_key(path, cs.ring().keys["checker1"].keyid, now=cb.NOW)
    record = load_record(folder)
    found, problems = read_submissions(record.inventory, record.predicate["certificate_id"], load_trust(path), cb.NOW)
    assert problems == [] and {s.role for s in found} == {"checker2"}
    assert {s.outcome for s in status(record, found)} == {"awaited"}
    with pytest.raises(RefusedError):
        submit(folder, cs.ring().keys["checker1"], load_trust(path), accept, now=cb.NOW)
    new = keygen(tmp_path / "new.pem", "checker1", path, b"secret", now=cb.NOW)
    assert "sealed as checker1" in submit(folder, new, load_trust(path), accept, now=cb.NOW)[0]
    assert (folder / "inside" / "review" / "checker1-0002.sealed.dsse.json").is_file()
