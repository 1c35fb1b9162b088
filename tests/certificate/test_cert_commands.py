"""keygen, certify, verify, review and crate from the command line; keys; packaging."""

from __future__ import annotations

import hashlib
import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import cert_builder as cb
import cert_signed as cs
import pytest
import typer
from typer.testing import CliRunner, Result

from sacro_deltab.base.errors import CertificateError, InputError, RefusedError, SacroDeltabError, UnreadableError
from sacro_deltab.certificate.bagit import bag_files
from sacro_deltab.certificate.certify import certify_folder
from sacro_deltab.certificate.crate import Names, write_crate
from sacro_deltab.certificate.keys import PASSPHRASE_VARIABLE, keygen, load_key, read_passphrase
from sacro_deltab.certificate.page import render_page
from sacro_deltab.certificate.review import submit
from sacro_deltab.certificate.verify import verify_path
from sacro_deltab.cli import certify as certify_module
from sacro_deltab.cli import review as review_module
from sacro_deltab.ledger.trust import load_trust


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)
    monkeypatch.delenv(certify_module.TRUST_VARIABLE, raising=False)
    (tmp_path / "pass.txt").write_text("a passphrase\n")
    app = typer.Typer()
    certify_module.register(app)
    review_module.register(app)

    def call(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(arguments))
        found = result.exit_code
        if isinstance(result.exception, SacroDeltabError):
            found = result.exception.exit_code
        assert found == code, (result.output, result.exception)
        return result

    return call


def make_keys(run: Any, *roles: str) -> None:
    for role in roles:
        run("keygen", "--out", f"{role}.pem", "--role", role, "--trust", "trust.json", "--passphrase-file", "pass.txt")


def fake_check(monkeypatch: pytest.MonkeyPatch, verdict: str = "review") -> None:
    monkeypatch.setattr("sacro_deltab.check.check_paths", lambda *a, **k: cs.report(verdict), raising=False)


# -- keys ------------------------------------------------------------------------------------------------------------


def test_keygen_makes_key_and_trust_file_that_count_at_once(run: Any, tmp_path: Path) -> None:
    make_keys(run, "tool", "checker1")
    text = (tmp_path / "tool.pem").read_text()
    assert text.startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert stat.S_IMODE((tmp_path / "tool.pem").stat().st_mode) == 0o600
    trust = load_trust(tmp_path / "trust.json")
    assert trust.thresholds["local"]["tool"] == 1 and "checker1" not in trust.thresholds["local"]
    entry = next(key for key in trust.keys.values() if key.role == "tool")
    assert 729 <= (entry.valid_to - entry.valid_from).days <= 731


@pytest.mark.parametrize(("written", "ends"), [("pw", b"pw"), ("pw\n", b"pw"), ("pw\r\n", b"pw"), ("pw\n\n", b"pw\n")])
def test_one_trailing_newline_of_the_passphrase_file_is_dropped(tmp_path: Path, written: str, ends: bytes) -> None:
    path = tmp_path / "p"
    path.write_bytes(written.encode())
    assert read_passphrase(path, None) == ends


def test_passphrase_from_the_environment_or_a_prompt_and_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "from outside")
    assert read_passphrase(None, None) == b"from outside"
    monkeypatch.delenv(PASSPHRASE_VARIABLE)
    assert read_passphrase(None, lambda: "typed") == b"typed"
    with pytest.raises(InputError):
        read_passphrase(None, lambda: "")


def test_no_command_takes_a_passphrase_as_an_argument() -> None:
    for name in ("keygen", "certify", "review"):
        module = review_module if name == "review" else certify_module
        parameters = getattr(module, name).__annotations__
        assert not [p for p in parameters if "passphrase" in p and p != "passphrase_file"]


def test_bad_keys_are_refused(tmp_path: Path) -> None:
    key = keygen(tmp_path / "a.pem", "tool", tmp_path / "trust.json", b"pw")
    with pytest.raises(UnreadableError, match="does not open"):
        load_key(tmp_path / "a.pem", b"other")
    with pytest.raises(InputError, match="never overwritten"):
        keygen(tmp_path / "a.pem", "tool", tmp_path / "trust.json", b"pw")
    with pytest.raises(InputError, match="no role"):
        keygen(tmp_path / "b.pem", "author", tmp_path / "trust.json", b"pw")
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    plain = key.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "plain.pem").write_bytes(plain)
    other = generate_private_key(SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw")
    )
    (tmp_path / "ec.pem").write_bytes(other)
    for name in ("plain.pem", "ec.pem", "missing.pem"):
        with pytest.raises(UnreadableError):
            load_key(tmp_path / name, b"pw")


def test_a_broken_trust_file_leaves_no_key(tmp_path: Path) -> None:
    (tmp_path / "trust.json").write_text("{}")
    with pytest.raises(UnreadableError):
        keygen(tmp_path / "a.pem", "tool", tmp_path / "trust.json", b"pw")
    assert not (tmp_path / "a.pem").exists()


def test_a_key_in_the_folder_it_signs_is_refused(tmp_path: Path) -> None:
    folder = cb.make_session(tmp_path / "o")
    key = keygen(folder / "inside" / "k.pem", "tool", tmp_path / "trust.json", b"pw")
    with pytest.raises(InputError, match="lies in the folder"):
        certify_folder(folder, key, cs.request(cs.ring(), trust=load_trust(tmp_path / "trust.json")))


@pytest.mark.parametrize("which", ["unknown", "expired"])
def test_keys_that_do_not_count_sign_nothing(tmp_path: Path, which: str) -> None:
    folder = cb.make_session(tmp_path / "o")
    keys = cs.ring("two") if which == "unknown" else cs.ring()
    late = cb.NOW.replace(year=2030)
    with pytest.raises(RefusedError):
        certify_folder(folder, keys.keys["tool"], cs.request(cs.ring(), now=late if which == "expired" else cb.NOW))
    assert not verify_path(folder, cs.ring().trust, at=cb.NOW).ok


@pytest.mark.parametrize("what", ["not finalised", "placeholder", "other json"])
def test_only_a_finalised_folder_is_certified(tmp_path: Path, what: str) -> None:
    folder = cb.write_session(tmp_path / "o")
    if what == "not finalised":
        (folder / "certificate.json").unlink(missing_ok=True)
    elif what == "other json":
        (folder / "certificate.json").write_text("[]\n")
    with pytest.raises(SacroDeltabError):
        cs.certify(folder)


# -- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verdict", "code"), [("pass", 3), ("review", 3), ("fail", 1)])
def test_certify_exits_as_check_does_having_signed(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int
) -> None:
    make_keys(run, "tool")
    cb.make_session(tmp_path / "o")
    fake_check(monkeypatch, verdict)
    done = run("certify", "o", "--key", "tool.pem", "--passphrase-file", "pass.txt", code=code)
    assert "recorded, not recomputed: n" in done.output
    assert "recorded, not recomputed: cell.n" not in done.output
    shown = run("verify", "o", "--trust", "trust.json")
    expected = "fail" if verdict == "fail" else "review"
    assert shown.output.rstrip().endswith(f"the verdict it carries is {expected}")


def test_verify_exit_codes(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_keys(run, "tool")
    folder = cb.make_session(tmp_path / "o")
    fake_check(monkeypatch)
    run("verify", "o", "--trust", "trust.json", code=1)
    run("certify", "o", "--key", "tool.pem", "--passphrase-file", "pass.txt", "--page", "page.html", code=3)
    assert "3. Explanation" in (tmp_path / "page.html").read_text()
    run("verify", "o", "--trust", "trust.json", code=0)
    run("verify", "o", code=2)  # a trust.json that merely lies about is not used
    monkeypatch.setenv(certify_module.TRUST_VARIABLE, "trust.json")
    run("verify", "o", code=0)
    run("verify", "o", "--trust", "trust.json", "--at", "2040-01-01", code=1)
    run("verify", "o", "--trust", "trust.json", "--at", "yesterday", code=2)
    run("verify", "o", "--trust", "missing.json", code=2)
    run("verify", "missing", "--trust", "trust.json", code=2)
    data = json.loads(run("verify", "o", "--trust", "trust.json", "--json").output)
    assert data["ok"] is True and data["verdict"] == "review" and data["first_failure"] is None
    (folder / "folded_weights.csv").write_text("x")
    data = json.loads(run("verify", "o", "--trust", "trust.json", "--json", code=1).output)
    assert data["first_failure"] == "files" and data["verdict"] is None
    assert "First to fail: files: folded_weights.csv was changed" in run("verify", "o", code=1).output
    (folder / "certificate.dsse.json").write_text("not json")
    run("verify", "o", "--trust", "trust.json", code=2)


def test_the_rule_set_is_compared_when_it_is_given(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_keys(run, "tool")
    cb.make_session(tmp_path / "o")
    fake_check(monkeypatch)
    run("certify", "o", "--key", "tool.pem", "--passphrase-file", "pass.txt", code=3)
    monkeypatch.setenv(certify_module.TRUST_VARIABLE, "trust.json")
    assert "ok   policy" in run("verify", "o", "--rules", "deltab-disclosure").output
    other = tmp_path / "p.yaml"
    other.write_text("profile: {id: x, title: Other, ruleset: deltab-disclosure, decided_by: null}\nattest: {}\n")
    assert "FAIL policy" in run("verify", "o", "--profile", str(other), code=1).output


def test_review_by_files_of_answers(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_keys(run, "tool", "checker1", "checker2")
    cb.make_session(tmp_path / "o")
    fake_check(monkeypatch)
    run("certify", "o", "--key", "tool.pem", "--passphrase-file", "pass.txt", code=3)
    (tmp_path / "a.yaml").write_text('files: {"*": {decision: accept, reason: read, answers: {"*": looked at}}}\n')
    (tmp_path / "bad.yaml").write_text('files: {"*": {decision: maybe, reason: read}}\n')
    common = ["--passphrase-file", "pass.txt", "--answers", "a.yaml"]
    run("review", "o", "--key", "tool.pem", *common, code=1)
    run("review", "o", "--key", "checker1.pem", "--passphrase-file", "pass.txt", "--answers", "bad.yaml", code=2)
    assert "stays sealed until checker2" in run("review", "o", "--key", "checker1.pem", *common).output
    assert "awaited: checker1, checker2" in run("review", "status", "o", code=3).output
    run("review", "o", "--key", "checker2.pem", *common)
    assert "awaited: checker1" in run("review", "status", "o", code=3).output
    run("review", "o", "--key", "checker1.pem", *common)
    assert "awaited: nobody" in run("review", "status", "o").output
    data = json.loads(run("review", "status", "o", "--json").output)
    assert {f["outcome"] for f in data["files"]} == {"accepted"}
    assert "4 accepted" in run("verify", "o", "--trust", "trust.json").output


def test_status_shows_a_changed_file_as_reset(run: Any, tmp_path: Path) -> None:
    from test_cert_review import accept

    folder = cs.certified(tmp_path / "o")
    trust = str(cs.ring().trust_path)
    for role in ("checker1", "checker2", "checker1"):
        submit(folder, cs.ring().keys[role], cs.ring().trust, accept)
    run("review", "status", str(folder), "--trust", trust)
    (folder / "folded_weights.csv").write_text("feature,weight\n")
    done = run("review", "status", str(folder), "--trust", trust, "--json", code=1)
    state = json.loads(done.stdout)
    assert "folded_weights.csv is not the file" in state["problems"][0]
    files = {f["file"]: f for f in state["files"]}
    assert files["folded_weights.csv"]["votes"] == {"checker1": "reset", "checker2": "reset"}
    assert files["folded_weights.csv"]["awaited"] == ["checker1", "checker2"]
    assert files["delta_by_diagnosis.csv"]["outcome"] == "accepted"


def test_every_command_shows_an_example(run: Any) -> None:
    for name in ("keygen", "certify", "verify", "crate", "review"):
        assert "Example" in run(name, "--help").output


# -- crate and page ----------------------------------------------------------------------------------------------------


def unpack(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert len({n.split("/", 1)[0] for n in names}) == 1
        return {n.split("/", 1)[1]: archive.read(n) for n in names}


def graph(files: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    return {e["@id"]: e for e in json.loads(files["data/ro-crate-metadata.json"])["@graph"]}


def test_crate_is_a_bag_that_holds(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    made = write_crate(folder, cs.ring().trust, tmp_path / "c.zip", now=cb.NOW)
    files = unpack(tmp_path / "c.zip")
    assert files["bagit.txt"].startswith(b"BagIt-Version: 1.0\n")
    assert f"External-Identifier: {made.urn}".encode() in files["bag-info.txt"]
    for name in ("manifest-sha512.txt", "tagmanifest-sha512.txt"):
        lines = [line.split("  ", 1) for line in files[name].decode().splitlines()]
        assert {p for _, p in lines} == {
            n
            for n in files
            if n.startswith("data/") == (name == "manifest-sha512.txt") and n != "tagmanifest-sha512.txt"
        }
        for digest, path in lines:
            assert hashlib.sha512(files[path]).hexdigest() == digest
    assert "session_summary.csv" not in " ".join(files)
    assert not any("inside" in n for n in files)


def test_crate_says_what_our_check_found_and_leaves_the_human_s_open(tmp_path: Path) -> None:
    write_crate(cs.certified(tmp_path / "o"), cs.ring().trust, tmp_path / "c.zip", now=cb.NOW)
    entities = graph(unpack(tmp_path / "c.zip"))
    root = entities["./"]
    assert root["conformsTo"]["@id"] == "https://w3id.org/5s-crate/0.4"
    assert entities["ro-crate-metadata.json"]["conformsTo"]["@id"] == "https://w3id.org/ro/crate/1.2"
    actions = [entities[m["@id"]] for m in root["mentions"]]
    checks = [a for a in actions if a.get("additionalType", {}).get("@id") == "https://w3id.org/shp#DisclosureCheck"]
    states = {a["agent"]["@id"]: a["actionStatus"].rsplit("/", 1)[-1] for a in checks}
    assert states == {"#sacro-deltab": "CompletedActionStatus", "#output-checkers": "PotentialActionStatus"}
    assert entities["#sacro-deltab"]["provider"]["@id"] == "#tre"
    for entity in entities.values():  # everything that is named is there
        for value in entity.values():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict) and item["@id"].startswith(("#", "outputs/")):
                    assert item["@id"] in entities


@pytest.mark.parametrize("link", [None, "https://workflowhub.eu/workflows/289?version=1"])
def test_the_main_entity_is_a_workflow_ro_crate(tmp_path: Path, link: str | None) -> None:
    profile = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
    write_crate(cs.certified(tmp_path / "o"), cs.ring().trust, tmp_path / "c.zip", Names(workflow=link), now=cb.NOW)
    files = unpack(tmp_path / "c.zip")
    entities = graph(files)
    main = entities[entities["./"]["mainEntity"]["@id"]]
    assert main["@id"] == (link or "workflow/")
    assert main["@type"] == "Dataset" and main["conformsTo"]["@id"] == profile
    assert {"@id": main["@id"]} in entities["./"]["hasPart"]
    actions = [e for e in entities.values() if e["@type"] == "CreateAction"]
    assert [a["instrument"]["@id"] for a in actions] == [main["@id"]]
    nested = {n for n in files if n.startswith("data/workflow/")}
    if link:
        assert not nested
        return
    inner = {e["@id"]: e for e in json.loads(files["data/workflow/ro-crate-metadata.json"])["@graph"]}
    assert profile in [c["@id"] for c in inner["ro-crate-metadata.json"]["conformsTo"]]
    steps = inner[inner["./"]["mainEntity"]["@id"]]
    assert set(steps["@type"]) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    assert nested == {f"data/workflow/{n}" for n in ("ro-crate-metadata.json", steps["@id"])}
    assert steps["programmingLanguage"]["@id"] in inner and inner["./"]["license"]


@pytest.mark.parametrize("why", ["fail", "refused"])
def test_outputs_are_absent_when_disclosure_failed(tmp_path: Path, why: str) -> None:
    folder = cs.certified(tmp_path / "o", "fail" if why == "fail" else "review")
    if why == "refused":
        from test_cert_review import refuse

        for role in ("checker1", "checker2", "checker1"):
            submit(folder, cs.ring().keys[role], cs.ring().trust, refuse, now=cb.NOW)
    made = write_crate(folder, cs.ring().trust, tmp_path / "c.zip", now=cb.NOW)
    files = unpack(tmp_path / "c.zip")
    assert made.outputs == () and not any(n.startswith("data/outputs/") for n in files)
    assert {"data/disclosure/certificate.json", "data/disclosure/certificate.dsse.json"} <= set(files)
    entities = graph(files)
    assert not any(e["@type"] == "CreateAction" for e in entities.values())


def test_outputs_of_a_crate_verify_as_a_release(tmp_path: Path) -> None:
    write_crate(cs.certified(tmp_path / "o"), cs.ring().trust, tmp_path / "c.zip", now=cb.NOW)
    with zipfile.ZipFile(tmp_path / "c.zip") as archive:
        archive.extractall(tmp_path / "x")
    outputs = next((tmp_path / "x").iterdir()) / "data" / "outputs"
    assert verify_path(outputs, cs.ring().trust, at=cb.NOW, released=True).ok


def test_a_folder_that_does_not_verify_is_not_packaged(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    (folder / "folded_weights.csv").write_text("x")
    with pytest.raises(CertificateError):
        write_crate(folder, cs.ring().trust, tmp_path / "c.zip", now=cb.NOW)
    assert not (tmp_path / "c.zip").exists()


def test_odd_names_in_a_bag_are_encoded() -> None:
    files = bag_files({"a%b.csv": b"1"}, {})
    assert b"  data/a%25b.csv\n" in files["manifest-sha512.txt"]


def test_page_escapes_every_text(tmp_path: Path) -> None:
    folder = cs.certified(tmp_path / "o")
    statement = verify_path(folder, cs.ring().trust, at=cb.NOW).statement
    assert statement is not None
    changed = json.loads(json.dumps(statement).replace("ST-02 says so", "<script>alert(1)</script>"))
    changed["predicate"]["people"]["declared"]["by"] = "<img src=x onerror=alert(1)>"
    page = render_page(changed)
    assert "<script" not in page and "<img" not in page


def test_the_manual_s_answers_are_read_and_mistakes_have_their_line(tmp_path: Path) -> None:
    from sacro_deltab.base.errors import InputError
    from sacro_deltab.certificate.votes import Question
    from sacro_deltab.cli.review import _from_file

    manual = (Path(__file__).resolve().parents[2] / "docs" / "certificate.md").read_text(encoding="utf-8")
    block = next(b.split("```")[0] for b in manual.split("```yaml\n")[1:] if b.startswith("files:"))
    path = tmp_path / "answers.yaml"
    path.write_text(block)
    decide = _from_file(path)
    given = decide(Question("correlation.csv", "0" * 64, "review", ("Is it listed?",)))
    assert (given.decision, given.answers) == ("return", {"Is it listed?": "no"})
    assert decide(Question("a.csv", "0" * 64, "review", ("Fine?",))).answers == {"Fine?": "looked at, fine"}
    for text, says in (
        (block.replace('"looked at, fine"', "looked at, fine"), "needs quotes"),
        (block + '  "*": {decision: refuse, reason: x}\n', "answers.yaml:4:3: the key '\\*' stands twice"),
        ("files: [", "not YAML"),
        ("files: {a.csv: {decision: maybe, reason: x}}", "one of"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=says):
            _from_file(path)
