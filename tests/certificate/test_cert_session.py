"""The whole way on a real session: finalise, check, certify, verify, with a real ledger behind it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from people_register import register_people

from sacro_deltab.base.errors import CertificateError, SacroDeltabError
from sacro_deltab.build.picture import png
from sacro_deltab.certificate import release
from sacro_deltab.certificate.certify import Certified, Request, certify_folder
from sacro_deltab.certificate.envelope import read_envelope
from sacro_deltab.certificate.keys import SigningKey, keygen
from sacro_deltab.certificate.page import render_page
from sacro_deltab.certificate.policy import policy_of
from sacro_deltab.certificate.release import write_release
from sacro_deltab.certificate.review import load_record
from sacro_deltab.certificate.statement import in_full
from sacro_deltab.certificate.types import schema_problems
from sacro_deltab.certificate.verify import VerifyResult, verify_path
from sacro_deltab.ledger import open_ledger
from sacro_deltab.ledger.trust import load_trust, pin_ledger
from sacro_deltab.rules import load_ruleset

SITES = {"A": 90, "B": 80, "C": 60, "D": 40, "E": 50, "F": 40, "G": 28, "H": 12}


class Place:
    """A TRE in a folder: session, ledger, profile, keys."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "outputs"
        self.ledger = root / "budget.db"
        self.profile = root / "profile.yaml"
        self.trust = root / "trust.json"
        self.key: SigningKey = keygen(root / "tool.pem", "tool", self.trust, b"pw")
        ledger = open_ledger(self.ledger)
        self.pin = ledger.pin()
        self.profile.write_text(
            "profile: {id: test-site, title: Test site, ruleset: deltab-disclosure, decided_by: null}\n"
            "attest: {egress.route: tre_airlock, dp.noise_inside_tre: true}\n"
            f'ledgers:\n  - {{id: "{self.pin.id}", head_key: "{self.pin.head_key}"}}\n'
        )

    def certify(self, folder: Path, *, trust: Path | None = None, ledger: Path | None = None) -> Certified:
        trusted = load_trust(trust or self.trust)
        ruleset = load_ruleset(None, profile=self.profile)
        used = str(ledger or self.ledger)

        def check(where: Path) -> Any:
            from sacro_deltab.check import check_paths

            return check_paths([where], ruleset=ruleset, trust=trusted, ledger=used)

        return certify_folder(folder, self.key, Request(trusted, policy_of(ruleset), check, ledger=used))

    def verify(self, folder: Path, **options: Any) -> VerifyResult:
        return verify_path(folder, options.pop("trust", self.trust), **options)

    def copy(self, to: Path) -> Path:
        shutil.copytree(self.folder, to)
        return to


def session_of(place: Place) -> None:
    import numpy as np
    import pandas as pd

    from sacro_deltab.cohort.simulate import smith_cohort
    from sacro_deltab.privacy.basis import Basis
    from sacro_deltab.run.pipeline import quiet_acro
    from sacro_deltab.session.acro_session import DeltabSession

    def said(role: str, facts: dict[str, Any]) -> dict[str, Any]:
        return {"schema": "sacro_deltab/declare/1", "role": role, "by": role, "simulated": True, "facts": facts}

    public, study = smith_cohort(300, 12, seed=1), smith_cohort(400, 12, seed=2)
    basis = Basis.from_public(public.X, public.age, public.feature_names, n_components=3, made_on="simulated")
    open_ledger(place.ledger).register_bounds(basis.digest, "TRE staff")
    values = np.random.default_rng(3).normal(0.7, 4.0, 400)
    site = [s for s, n in SITES.items() for _ in range(n)]
    ids = [f"P{i:04d}" for i in range(400)]
    features = dict(zip(study.feature_names, study.X.T, strict=True))
    columns = {"delta": values, "site": site, "age": study.age, **features}
    register_people(place.ledger, "hidden-cohort-name", ids, columns)
    session = DeltabSession(
        quiet_acro(),
        cohort="hidden-cohort-name",
        people=ids,
        ledger=place.ledger,
        journal=place.root / ".journal",
        profile=place.profile,
        declare=said("researcher", {"output.declared": True, "dp.trust_model": "central_at_node"}),
        attest=said("tre_staff", {"egress.route": "tre_airlock", "dp.noise_inside_tre": True}),
    )
    session.release_n()
    session.release_group_means(values, pd.Series(site, name="site"))
    session.release_plot("mean_delta_by_site")
    names = list(study.feature_names)
    model = session.train_private(study.X, study.age, feature_names=names, basis=basis, epsilon=0.5, n_components=3)
    session.release_weights(model, only=["folded_weights", "beta1", "y_mean"])
    session.finalise(place.folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = Place(tmp_path_factory.mktemp("tre"))
    shutil.copy(made.ledger, made.root / "before.db")
    session_of(made)
    return made


@pytest.fixture(scope="module")
def pinned(place: Place) -> Path:
    trust = place.root / "pinned.json"
    shutil.copy(place.trust, trust)
    pin_ledger(trust, place.pin.id, place.pin.head_key)
    return trust


@pytest.fixture(scope="module")
def certified(place: Place, pinned: Path) -> Path:
    folder = place.copy(place.root / "certified")
    place.certify(folder, trust=pinned)
    return folder


def predicate_of(folder: Path) -> dict[str, Any]:
    return in_full(json.loads(read_envelope(folder / "certificate.dsse.json").payload))["predicate"]


def test_the_session_s_statement_follows_its_schema_and_passes_check(place: Place) -> None:
    statement = json.loads((place.folder / "certificate.json").read_text())
    assert schema_problems(statement) == []
    report = predicate_report(place)
    entry = next(o for o in report["outputs"] if o["file"] == "certificate.dsse.txt")
    assert entry["verdict"] == "pass", entry["findings"]


def predicate_report(place: Place) -> Any:
    from sacro_deltab.check import check_paths

    return check_paths([place.folder], ruleset=load_ruleset(None, profile=place.profile)).to_json()


def test_records_carry_the_certificate_s_id_and_the_policy(place: Place) -> None:
    statement = json.loads((place.folder / "certificate.json").read_text())
    results = json.loads((place.folder / "results.json").read_text())["results"]
    own = [r for r in results.values() if "certificate_id" in r["properties"]]
    assert len(own) >= 5
    for record in own:
        assert record["properties"]["certificate_id"] == statement["predicate"]["certificate_id"]
        assert statement["predicate"]["policy"]["sha256"] in record["properties"]["sacro_deltab"]
    listed = [f["name"] for r in own for f in r["files"]]
    assert "certificate.dsse.txt" in listed


def test_nothing_of_the_cohort_is_in_what_leaves(place: Place, certified: Path) -> None:
    text = (certified / "certificate.json").read_text() + json.dumps(predicate_of(certified))
    text = re.sub(r'"entries": \d+,', "", text)  # of the ledger, not of people
    for secret in ("hidden-cohort-name", "P0001", str(place.root), '"H"', ": 12,", ": 28,", "n_public"):
        at = text.find(secret)
        assert at < 0, text[max(0, at - 150) : at + 40]


def test_with_a_pinned_ledger_formal_is_signed_and_verifies(place: Place, pinned: Path, certified: Path) -> None:
    predicate = predicate_of(certified)
    assert predicate["privacy"]["label"] == "formal" and predicate["capped"] == []
    ledger = predicate["privacy"]["ledger"]
    assert (ledger["id"], ledger["pinned"], ledger["read"]) == (place.pin.id, True, True)
    assert (ledger["before"]["epsilon_sum"], ledger["after"]["epsilon_sum"]) == (0.0, 0.5)
    assert ledger["head_before"] and ledger["head"] and ledger["head_before"] != ledger["head"]
    result = place.verify(
        certified, trust=pinned, ledger=place.ledger, rules="deltab-disclosure", profile=place.profile
    )
    assert result.ok, [c.line() for c in result.checks]


def test_a_picture_leaves_as_it_is_drawn_at_release(
    place: Place, pinned: Path, certified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn of the numbers that stand in the folder; where another picture comes out nothing is packed."""
    done = write_release(certified, load_trust(pinned), tmp_path / "r.zip")
    assert "mean_delta_by_site_plot" in done.outputs, done.left
    with zipfile.ZipFile(done.path) as archive:
        assert archive.read("mean_delta_by_site_plot.png") == (certified / "mean_delta_by_site_plot.png").read_bytes()
    monkeypatch.setattr(release, "picture", lambda document: png(1, 1, b"abc"))
    with pytest.raises(CertificateError, match=r"mean_delta_by_site_plot\.png is not what is drawn"):
        write_release(certified, load_trust(pinned), tmp_path / "other.zip")
    shutil.copytree(certified, tmp_path / "outside", ignore=shutil.ignore_patterns("inside"))
    with pytest.raises(CertificateError, match="pictures are drawn"):
        write_release(tmp_path / "outside", load_trust(pinned), tmp_path / "other.zip")


def test_without_a_pin_neither_formal_nor_pass_is_signed(place: Place, tmp_path: Path) -> None:
    folder = place.copy(tmp_path / "o")
    done = place.certify(folder)
    assert done.verdict != "pass" and done.label == "heuristic" and done.caps
    verdicts = {f["verdict"] for f in predicate_of(folder)["files"]}
    assert "pass" not in verdicts
    assert place.verify(folder).ok


def test_recorded_facts_are_named(certified: Path) -> None:
    recorded = predicate_of(certified)["recorded_not_recomputed"]
    assert "cell.n" in recorded and "output.format" not in recorded


def test_a_record_another_trust_file_pins_nothing_for_is_caught(place: Place, certified: Path) -> None:
    result = place.verify(certified, trust=place.trust)
    assert [c.name for c in result.checks if c.state == "fail"] == ["ledger pin"]


@pytest.mark.parametrize("which", ["another", "rolled back", "edited", "gone"])
def test_another_ledger_is_caught(place: Place, pinned: Path, certified: Path, tmp_path: Path, which: str) -> None:
    ledger = tmp_path / "budget.db"
    if which == "another":
        open_ledger(ledger)
    elif which == "rolled back":
        shutil.copy(place.root / "before.db", ledger)
    elif which == "edited":
        data = place.ledger.read_bytes()
        ledger.write_bytes(data.replace(b"hidden-cohort-name", b"hidden-cohort-mane"))
    result = place.verify(certified, trust=pinned, ledger=ledger)
    assert [c.name for c in result.checks if c.state == "fail"] == ["ledger"]


def test_a_ledger_that_went_on_still_stands_behind_the_record(place: Place, pinned: Path, certified: Path) -> None:
    open_ledger(place.ledger).register_bounds("ab" * 32, "a later session")
    assert place.verify(certified, trust=pinned, ledger=place.ledger).ok


def tamper(folder: Path, which: str) -> None:
    if which == "number":
        path = folder / "n_subjects.csv"
        path.write_text(path.read_text().replace("400", "401"))
    elif which == "evidence":
        path = folder / "inside" / "evidence.json"
        path.write_text(path.read_text().replace('"value": 400', '"value": 500', 1))
    elif which == "added":
        (folder / "deltas.csv").write_text("participant_id,delta\n" + "".join(f"P{i:04d},{i}.5\n" for i in range(400)))
    elif which == "session statement":
        path = folder / "certificate.json"
        text = path.read_text()
        verdict = json.loads(text)["predicate"]["verdict"]
        other = "pass" if verdict == "review" else "review"
        path.write_text(text.replace(f'"verdict": "{verdict}"', f'"verdict": "{other}"'))


@pytest.mark.parametrize("which", ["number", "evidence", "added", "session statement"])
def test_a_folder_changed_before_certifying_is_signed_as_a_fail(
    place: Place, pinned: Path, tmp_path: Path, which: str
) -> None:
    folder = place.copy(tmp_path / "o")
    tamper(folder, which)
    done = place.certify(folder, trust=pinned)
    assert done.verdict == "fail" and done.exit_code == 1
    result = place.verify(folder, trust=pinned, ledger=place.ledger)
    assert result.verdict == done.verdict, [c.line() for c in result.checks]


@pytest.mark.soak
def test_ten_thousand_single_bit_changes_of_a_real_session(place: Place, pinned: Path, certified: Path) -> None:
    from test_cert_verify import flips

    trust = load_trust(pinned)
    missed = []
    for path, at, bit in flips(certified, 10, 10_000):
        before = path.read_bytes()
        path.write_bytes(before[:at] + bytes([before[at] ^ (1 << bit)]) + before[at + 1 :])
        try:
            if verify_path(certified, trust).ok:
                missed.append(f"{path.name} byte {at} bit {bit}")
        except SacroDeltabError:
            pass
        path.write_bytes(before)
    assert missed == [] and place.verify(certified, trust=pinned).ok


def test_page_says_low_counts_masking_explanation_in_that_order(certified: Path) -> None:
    statement = json.loads(read_envelope(certified / "certificate.dsse.json").payload)
    page = render_page(statement)
    assert page.index("1. Low counts") < page.index("2. Masking") < page.index("3. Explanation")
    assert "<script" not in page and "20 people" in page
    inside = (certified / "inside" / "certified" / "certificate.html").read_text()
    assert "2. Masking" in inside


def test_checkers_are_asked_what_the_rules_ask(certified: Path) -> None:
    questions = load_record(certified).questions
    assert {q.file for q in questions} >= {"n_subjects.csv"}
    assert all(q.questions for q in questions if q.verdict == "review")


def run(arguments: list[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys\nfrom sacro_deltab.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print('HEAVY', [m for m in ('acro','numpy','pandas','socket_used') if m in sys.modules])\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd, env={"PATH": "", **env}
    )


def test_verify_needs_no_acro_no_numpy_no_network(place: Place, pinned: Path, certified: Path) -> None:
    done = run(["verify", str(certified), "--trust", str(pinned), "--ledger", str(place.ledger)], place.root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("HEAVY []")
    assert "authentic and complete" in done.stdout


def test_verify_is_quick_for_a_hundred_files(tmp_path: Path) -> None:
    import cert_builder as cb
    import cert_signed as cs

    folder = cb.write_session(tmp_path / "o")
    evidence = cb.default_evidence()
    results = json.loads((folder / "results.json").read_text())
    for i in range(90):
        name = f"table_{i:03d}.csv"
        (folder / name).write_text("group,mean\n" + "a,1.5\n" * 2000)
        results["results"][f"extra_{i}"] = {**results["results"]["output_0"], "files": [{"name": name}]}
    (folder / "results.json").write_text(json.dumps(results, indent=4))
    from sacro_deltab.certificate.seal import seal_folder

    seal_folder(folder, evidence=evidence, ruleset=cb.POLICY)
    cs.certify(folder)
    assert cs.ring().trust and verify_path(folder, cs.ring().trust, at=cb.NOW).ok
    times = []
    for _ in range(5):
        start = datetime.now(UTC)
        verify_path(folder, cs.ring().trust, at=cb.NOW)
        times.append((datetime.now(UTC) - start).total_seconds())
    assert min(times) < 0.3, times
