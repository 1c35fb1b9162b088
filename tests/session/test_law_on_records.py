"""What every record says of the law it was judged by: DRAFT until the committee approved it, and what layers loosen."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.base.resources import rules_dir
from sacro_deltab.certificate.keys import keygen, load_key
from sacro_deltab.certificate.law import Text, committee, sign_text
from sacro_deltab.check import check_paths
from sacro_deltab.ledger.trust import load_trust
from sacro_deltab.rules import load_base, load_ruleset
from sacro_deltab.rules.digests import semantic_digest
from sacro_deltab.rules.seals import beside, within

PASS = b"a passphrase"


@pytest.fixture
def place(tmp_path):
    write_profile(tmp_path)
    keygen(tmp_path / "dac.pem", "dac", tmp_path / "trust.json", PASS, now=datetime.now(UTC) - timedelta(days=1))
    return tmp_path


def signed(place, envelope, text):
    sign_text(envelope, text, load_key(place / "dac.pem", PASS), load_trust(place / "trust.json"), datetime.now(UTC))


def finalised(place, **kwargs):
    session = new_session(place, cohort=f"c{len(list(place.glob('out*')))}", **kwargs)
    session.release_n()
    out = place / f"out{len(list(place.glob('out*')))}"
    session.finalise(str(out))
    return out, json.loads((out / "results.json").read_text())["results"]


def test_a_draft_says_so_on_every_record_and_certificate(place):
    out, records = finalised(place)
    assert len(records) == 2
    assert all("2026.1 DRAFT sha256:" in r["properties"]["sacro_deltab"] for r in records.values())
    assert records["n_subjects"]["summary"] == "pass; meets deltab-disclosure 2026.1 DRAFT"
    assert '"state": "draft"' in (out / "certificate.json").read_text()
    report = check_paths([out], profile=place / "profile.yaml", ledger=place / "budget.db")
    assert not [f for f in report.folder_findings if "check/law-said" in f.rules]
    assert report.to_json()["rule_set"]["state"] == "draft"


def test_taking_the_word_away_is_found(place):
    out, _ = finalised(place)
    path = out / "inside" / "evidence.json"
    evidence = json.loads(path.read_text())
    for state in ("approved", None):
        evidence["session"]["rule_set"]["state"] = state
        if state is None:
            del evidence["session"]["rule_set"]["state"]
        path.write_text(json.dumps(evidence, indent=1, sort_keys=True) + "\n")
        report = check_paths([out], profile=place / "profile.yaml", ledger=place / "budget.db")
        assert [f for f in report.folder_findings if "check/law-said" in f.rules], state
        assert report.verdict == "fail"


def test_an_approved_law_and_what_a_signed_layer_loosens(place):
    base = load_base()
    rules = place / "rules"
    rules.mkdir()
    for file in rules_dir().glob("*.yaml"):
        (rules / file.name).write_bytes(file.read_bytes())
    signed(place, within(rules, "approval"), Text("approval", base.id, load_base(rules).sha256))
    old = (place / "profile.yaml").read_text().split("\n", 1)[1]
    layer = place / "loose.yaml"
    head = f'on: {{id: {base.id}, version: "{base.version}", sha256: "{semantic_digest(base)}"}}'
    layer.write_text(
        f'layer: {{id: loose, level: tre, title: x, version: "1", {head}}}\n{old}constants: {{exact_from: 50}}\n'
    )
    signed(place, beside(layer), Text("layer", "loose", load_layer_digest(layer)))
    law = {"rules": rules, "profile": layer, "trust": place / "trust.json"}
    assert load_ruleset(rules, profile=layer, seals=committee(place / "trust.json")).state == "approved"
    out, records = finalised(place, **law)
    said = records["n_subjects"]["properties"]
    assert "DRAFT" not in json.dumps(records)
    assert said["loosened"] == "by layers that the committee signed: loose: exact_from: 100 → 50"
    report = check_paths([out], ruleset=rules, profile=layer, trust=place / "trust.json", ledger=place / "budget.db")
    assert [str(f) for f in report.folder_findings if "check/law-said" in f.rules] == []
    assert report.outputs[0].verdict == "pass"


def load_layer_digest(path):
    from sacro_deltab.base.digests import sha256_hex

    return sha256_hex(path.read_bytes())
