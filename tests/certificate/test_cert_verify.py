"""Any later change is caught, by name, and a record that is whole verifies whatever verdict it carries."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import cert_builder as cb
import cert_signed as cs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sacro_deltab.base.canonical import canonical_json
from sacro_deltab.base.digests import digest_file
from sacro_deltab.base.errors import InputError, SacroDeltabError, UnreadableError
from sacro_deltab.certificate.envelope import ParsedEnvelope, parse_envelope, read_envelope, sign
from sacro_deltab.certificate.layout import ENVELOPES
from sacro_deltab.certificate.seal import write_checksum
from sacro_deltab.certificate.shown import shown_envelope
from sacro_deltab.certificate.verify import VerifyResult, verify_path
from sacro_deltab.ledger.trust import load_trust, write_trust


def verify(folder: Path, **options: Any) -> VerifyResult:
    return verify_path(folder, cs.ring().trust, **{"at": cb.NOW, **options})


def caught(folder: Path, **options: Any) -> bool:
    """True when verification fails or refuses to read."""
    try:
        return not verify(folder, **options).ok
    except SacroDeltabError:
        return True


def failing(folder: Path, **options: Any) -> str:
    result = verify(folder, **options)
    assert result.first_failure is not None, [c.line() for c in result.checks]
    return result.first_failure.name


def reseal(folder: Path, envelope: ParsedEnvelope) -> None:
    (folder / "certificate.dsse.json").write_bytes(envelope.to_bytes())
    with contextlib.suppress(SacroDeltabError):  # a payload that is no statement has no text
        (folder / "certificate.dsse.txt").write_bytes(shown_envelope(envelope.to_bytes()))
    for name in ENVELOPES:
        write_checksum(folder, name)


@pytest.mark.parametrize("verdict", ["pass", "review", "fail"])
def test_a_whole_record_verifies_whatever_its_verdict(tmp_path: Path, verdict: str) -> None:
    result = verify(cs.certified(tmp_path / "o", verdict))
    assert result.ok and result.exit_code == 0
    assert result.verdict == ("review" if verdict == "pass" else verdict)  # no pinned ledger: never a pass


def test_lines_are_one_a_check(tmp_path: Path) -> None:
    result = verify(cs.certified(tmp_path / "o"))
    lines = [c.line() for c in result.checks]
    assert all("\n" not in line for line in lines)
    assert [c.name for c in result.checks][:4] == ["envelope", "schema", "signatures", "time"]


def test_unsigned_folder_is_not_authentic(tmp_path: Path) -> None:
    assert failing(cb.make_session(tmp_path / "o")) == "envelope"


def test_without_inside_the_rest_is_checked_and_it_is_said(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    shutil.rmtree(folder / "inside")
    (folder / "session_summary.csv").unlink()
    (folder / "checksums" / "session_summary.csv.txt").unlink()
    result = verify(folder)
    assert result.ok
    skipped = {c.name: c.text for c in result.checks if c.state == "not checked"}
    assert "stayed behind" in skipped["inside"] and "session_summary.csv" in skipped["absent files"]
    (folder / "folded_weights.csv").write_text("x")
    assert failing(folder) == "files"


def flips(folder: Path, seed: int, how_many: int) -> list[tuple[Path, int, int]]:
    """Single-bit changes spread over every file, at least one a file."""
    chance = random.Random(seed)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    picks = [*files, *chance.choices(files, weights=[p.stat().st_size for p in files], k=max(0, how_many - len(files)))]
    return [(p, chance.randrange(p.stat().st_size), chance.randrange(8)) for p in picks]


def missed_flips(folder: Path, seed: int, how_many: int) -> list[str]:
    missed = []
    for path, at, bit in flips(folder, seed, how_many):
        before = path.read_bytes()
        changed = bytearray(before)
        changed[at] ^= 1 << bit
        path.write_bytes(bytes(changed))
        if not caught(folder):
            missed.append(f"{path.name} byte {at} bit {bit}")
        path.write_bytes(before)
    return missed


def test_every_single_bit_change_is_caught(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    assert missed_flips(folder, seed=8, how_many=160) == []
    assert verify(folder).ok


@pytest.mark.soak
def test_ten_thousand_single_bit_changes_are_caught(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    assert missed_flips(folder, seed=88, how_many=10_000) == []


def missed_swaps(folder: Path, chance: random.Random, how_many: int | None) -> list[tuple[str, str]]:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    pairs = list(itertools.combinations(files, 2))
    missed = []
    for one, two in pairs if how_many is None else chance.sample(pairs, how_many):
        a, b = one.read_bytes(), two.read_bytes()
        if a == b:
            continue
        one.write_bytes(b)
        two.write_bytes(a)
        if not caught(folder):
            missed.append((one.name, two.name))
        one.write_bytes(a)
        two.write_bytes(b)
    return missed


@pytest.mark.soak
def test_all_swaps_of_two_files_are_caught(tmp_path: Path) -> None:
    assert missed_swaps(cs.certified(tmp_path / "o"), random.Random(8), None) == []


def test_every_swap_of_two_files_is_caught(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    assert missed_swaps(folder, random.Random(8), 60) == [] and verify(folder).ok


@pytest.mark.parametrize("name", ["certificate.json", "certificate.dsse.json", "inside", "results.json", "checksums"])
def test_parts_of_another_folder_are_caught(tmp_path: Path, name: str) -> None:
    one, two = cs.certified(tmp_path / "a"), cs.certified(tmp_path / "b")
    if (two / name).is_dir():
        shutil.rmtree(one / name)
        shutil.copytree(two / name, one / name)
    else:
        shutil.copy(two / name, one / name)
        write_checksum(one, name)
    assert caught(one)


def test_certificate_files_of_another_folder_together_are_caught(tmp_path: Path) -> None:
    one, two = cs.certified(tmp_path / "a"), cs.certified(tmp_path / "b")
    for name in ("certificate.json", *ENVELOPES, "results.json"):
        shutil.copy(two / name, one / name)
        shutil.copy(two / "checksums" / f"{name}.txt", one / "checksums" / f"{name}.txt")
    assert failing(one) == "inside"


def edits(folder: Path) -> dict[str, Callable[[], Any]]:
    other = folder / "x.csv"
    return {
        "missing file": (folder / "delta_by_diagnosis.csv").unlink,
        "unlisted file": lambda: other.write_text("1"),
        "unlisted hidden file": lambda: (folder / ".x").write_text("1"),
        "extra folder": (folder / "more").mkdir,
        "missing checksum": (folder / "checksums" / "config.json.txt").unlink
        if (folder / "checksums" / "config.json.txt").exists()
        else (folder / "checksums" / "folded_weights.csv.txt").unlink,
        "extra checksum": lambda: (folder / "checksums" / "x.csv.txt").write_text("0" * 64),
        "file in inside": lambda: (folder / "inside" / "more.json").write_text("{}"),
        "file gone from inside": (folder / "inside" / "attack.json").unlink,
        "salt gone": (folder / "inside" / "salt").unlink,
        "junk in reviews": lambda: (
            (folder / "inside" / "review").mkdir(),
            (folder / "inside" / "review" / "x").write_text("1"),
        ),
        "case twin": lambda: (folder / "FOLDED_weights.csv").write_text("1"),
        "link to the same bytes": lambda: _link(folder / "folded_weights.csv", folder.parent / "w.csv"),
        "linked inside": lambda: _link_dir(folder / "inside", folder.parent / "elsewhere"),
        "config changed": lambda: (folder / "config.json").write_text('{"safe_threshold": 1}'),
        "csv and its checksum": lambda: _both(folder, "folded_weights.csv", b"feature,weight\nthickness_a,9\n"),
    }


def _link(path: Path, target: Path) -> None:
    shutil.move(path, target)
    path.symlink_to(target)


def _link_dir(path: Path, target: Path) -> None:
    shutil.move(path, target)
    path.symlink_to(target, target_is_directory=True)


def _both(folder: Path, name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)
    (folder / "checksums" / f"{name}.txt").write_text(hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("which", list(edits(Path("x"))))
def test_edits_are_caught(tmp_path: Path, which: str) -> None:
    folder = cs.certified(tmp_path / "o")
    edits(folder)[which]()
    assert caught(folder)


def test_non_normal_name_is_caught(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    (folder / "e\u0301.csv").write_text("1")
    assert failing(folder) == "files"


# -- the predicate and the envelope ---------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict) and value:
        return [leaf for k, v in value.items() for leaf in leaves(v, (*path, k))]
    if isinstance(value, list) and value:
        return [leaf for i, v in enumerate(value) for leaf in leaves(v, (*path, i))]
    return [path]


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_edit_of_the_predicate_without_the_key_fails(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    folder = _shared(tmp_path_factory)
    envelope = read_envelope(folder / "certificate.dsse.json")
    statement = json.loads(envelope.payload)
    path = data.draw(st.sampled_from(leaves(statement)))
    new = data.draw(st.one_of(st.text(max_size=8), st.integers(), st.booleans(), st.none(), st.just("pass")))
    put(statement, path, new)
    payload = canonical_json(statement)
    if payload == envelope.payload:
        return
    before = (folder / "certificate.dsse.json").read_bytes()
    try:
        reseal(folder, ParsedEnvelope(payload, envelope.signatures))
        assert caught(folder)
    finally:
        (folder / "certificate.dsse.json").write_bytes(before)
        write_checksum(folder, "certificate.dsse.json")


_FOLDERS: list[Path] = []


def _shared(factory: pytest.TempPathFactory) -> Path:
    if not _FOLDERS:
        _FOLDERS.append(cs.certified(factory.mktemp("shared") / "o"))
    return _FOLDERS[0]


def envelope_json(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "certificate.dsse.json").read_text())


def forged(folder: Path, which: str) -> bytes:
    """Envelopes that no tool of ours writes."""
    value = envelope_json(folder)
    signature = value["signatures"][0]
    if which == "no signature":
        value["signatures"] = []
    elif which == "zero-byte signature":
        signature["sig"] = ""
    elif which == "zeros":
        signature["sig"] = "A" * 86 + "=="
    elif which == "short signature":
        signature["sig"] = signature["sig"][:40]
    elif which == "unknown key":
        signature["keyid"] = "0" * 64
    elif which == "extra signature":
        value["signatures"].append({"keyid": "f" * 64, "sig": signature["sig"]})
    elif which == "same signature twice":
        value["signatures"].append(dict(signature))
    elif which == "algorithm named":
        signature["alg"] = "none"
    elif which == "other payload type":
        value["payloadType"] = "application/json"
    elif which == "extra field":
        value["note"] = "hello"
    elif which == "payload with a newline":
        value["payload"] = value["payload"][:60] + "\n" + value["payload"][60:]
    elif which == "url-safe base64":
        value["payload"] = value["payload"].replace("+", "-").replace("/", "_").rstrip("=")
    return canonical_json(value)


@pytest.mark.parametrize(
    "which",
    [
        "no signature",
        "zero-byte signature",
        "zeros",
        "short signature",
        "unknown key",
        "extra signature",
        "same signature twice",
        "algorithm named",
        "other payload type",
        "extra field",
        "payload with a newline",
        "url-safe base64",
    ],
)
def test_forged_envelopes_are_caught(tmp_path: Path, which: str) -> None:
    folder = cs.certified(tmp_path / "o")
    data = forged(folder, which)
    if data == (folder / "certificate.dsse.json").read_bytes():
        pytest.skip("this payload has no such character")
    (folder / "certificate.dsse.json").write_bytes(data)
    write_checksum(folder, "certificate.dsse.json")
    assert caught(folder)


def test_duplicate_keys_and_other_spellings_are_caught(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    text = (folder / "certificate.dsse.json").read_text()
    for changed in (
        text.replace('"payloadType"', '"payload": "",\n "payloadType"', 1),
        text.replace("\n ", "\n  "),
        text.rstrip("\n"),
        "\ufeff" + text,
        json.dumps(json.loads(text)),
    ):
        (folder / "certificate.dsse.json").write_text(changed)
        write_checksum(folder, "certificate.dsse.json")
        assert caught(folder)


def test_statement_resigned_by_a_key_of_the_forger_is_caught(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o", "fail")
    statement = json.loads(read_envelope(folder / "certificate.dsse.json").payload)
    statement["predicate"]["verdict"] = "pass"
    reseal(folder, sign(canonical_json(statement), cs.ring("two").keys["tool"]))
    assert failing(folder) == "signatures"


def test_signature_in_the_wrong_role_is_not_enough(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    payload = read_envelope(folder / "certificate.dsse.json").payload
    reseal(folder, sign(payload, cs.ring().keys["checker1"]))
    result = verify(folder)
    assert result.first_failure is not None and "role tool" in result.first_failure.text


def test_thresholds_of_the_node_hold(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    trust = cs.ring().trust
    strict = write_trust(
        type(trust)(trust.keys, {"local": {"tool": 1, "checker1": 1}}, trust.ledgers), tmp_path / "strict.json"
    )
    assert not verify_path(folder, strict, at=cb.NOW).ok
    keys = cs.ring()
    request = cs.request(keys)
    from sacro_deltab.certificate.certify import certify_folder

    done = certify_folder(folder, keys.keys["checker1"], request)
    assert done.role == "checker1"
    assert verify_path(folder, strict, at=cb.NOW).ok
    assert {role for _, role in verify(folder).signers} == {"tool", "checker1"}


def test_a_record_without_any_threshold_in_the_trust_file_still_needs_a_tool_key(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    payload = read_envelope(folder / "certificate.dsse.json").payload
    reseal(folder, sign(payload, cs.ring().keys["dac"]))
    trust = cs.ring().trust
    lax = type(trust)(trust.keys, {}, trust.ledgers)
    assert not verify_path(folder, lax, at=cb.NOW).ok


@pytest.mark.parametrize("days", [-1, 800])
def test_keys_count_only_within_their_dates(tmp_path: Path, days: int) -> None:
    folder = cs.certified(tmp_path / "o")
    result = verify(folder, at=cb.NOW + timedelta(days=days))
    assert result.first_failure is not None and result.first_failure.name == "signatures"


def test_a_record_from_the_future_is_caught(tmp_path: Path) -> None:
    folder = cb.make_session(tmp_path / "o")
    cs.certify(folder, now=cb.NOW + timedelta(days=30))
    result = verify(folder)
    assert [c.name for c in result.checks if c.state == "fail"] == ["time"]


def test_key_of_another_node_is_caught(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    statement = json.loads(read_envelope(folder / "certificate.dsse.json").payload)
    statement["predicate"]["made"]["node"] = "elsewhere"
    reseal(folder, sign(canonical_json(statement), cs.ring().keys["tool"]))
    assert failing(folder) == "signatures"


def test_a_pem_under_another_id_is_not_that_key(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    document = cs.ring().trust.to_json()
    mine = cs.ring("two").keys["tool"]
    payload = read_envelope(folder / "certificate.dsse.json").payload
    real = cs.ring().keys["tool"].keyid
    document["keys"][real]["public_pem"] = mine.public_pem
    (tmp_path / "trust.json").write_text(json.dumps(document))
    good = sign(payload, mine)
    reseal(folder, ParsedEnvelope(payload, ((real, good.signatures[0][1]),)))
    assert not verify_path(folder, load_trust(tmp_path / "trust.json"), at=cb.NOW).ok


def test_claims_need_a_pinned_ledger_even_when_signed(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    statement = json.loads(read_envelope(folder / "certificate.dsse.json").payload)
    statement["predicate"]["verdict"] = "pass"
    reseal(folder, sign(canonical_json(statement), cs.ring().keys["tool"]))
    assert failing(folder) == "ledger pin"


def test_waivers_must_run_on_both_days(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    statement = json.loads(read_envelope(folder / "certificate.dsse.json").payload)
    waiver = {"id": "W-1", "rule": "SC-01", "decision": "DAC 12", "ends": "2026-12-24"}
    statement["predicate"]["policy"]["waivers"] = [waiver]
    reseal(folder, sign(canonical_json(statement), cs.ring().keys["tool"]))
    assert verify(folder).ok
    assert failing(folder, at=cb.NOW + timedelta(days=40)) == "waivers"


def test_schema_is_closed(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    statement = json.loads(read_envelope(folder / "certificate.dsse.json").payload)
    statement["predicate"]["n"] = 7
    reseal(folder, sign(canonical_json(statement), cs.ring().keys["tool"]))
    assert failing(folder) == "schema"


def test_unknown_version_is_refused_by_name(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    statement = json.loads(read_envelope(folder / "certificate.dsse.json").payload)
    statement["predicateType"] = statement["predicateType"].replace("v2", "v9")
    reseal(folder, sign(canonical_json(statement), cs.ring().keys["tool"]))
    with pytest.raises(UnreadableError, match="certificate/v9"):
        verify(folder)


def test_no_certificate_is_unreadable(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    for name in ENVELOPES:  # either form of it will do
        assert verify(folder).statement is not None
        (folder / name).unlink()
    with pytest.raises(UnreadableError):
        verify(folder)
    with pytest.raises(InputError):
        verify(tmp_path / "nothing")


def test_trust_file_in_the_folder_is_refused(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    shutil.copy(cs.ring().trust_path, folder / "trust.json")
    with pytest.raises(InputError, match="lies in the folder"):
        verify_path(folder, folder / "trust.json")


def test_parse_envelope_round_trip(tmp_path: Path) -> None:
    data = (cs.certified(tmp_path / "o") / "certificate.dsse.json").read_bytes()
    assert parse_envelope(data).to_bytes() == data


def test_a_folder_name_inside_cannot_stand_for_two_files(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    inside = folder / "inside"
    page = inside / "certified" / "certificate.html"
    forged = inside / f"attack.json\n{digest_file(page).sha256}  certified"
    forged.mkdir()
    (inside / "attack.json").rename(forged / page.name)  # its line now reads like the two that were there
    page.unlink()
    result = verify_path(folder, cs.ring().trust, at=cb.NOW)
    assert next(c.state for c in result.checks if c.name == "inside") == "ok"  # the digest alone is deceived
    assert not result.ok and result.first_failure is not None
    assert "control or invisible character" in result.first_failure.text


@pytest.mark.skipif(os.name == "nt", reason="names are bytes on POSIX only")
def test_a_name_that_is_not_text_is_told_and_no_traceback(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    try:
        Path(os.fsdecode(os.fsencode(folder / "inside") + b"/a\xff.csv")).write_text("1")
    except OSError:
        pytest.skip("this file system has text names only")
    assert failing(folder) == "files"
