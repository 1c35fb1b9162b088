"""Layers on layers, what the committee signs, and DRAFT until it has: as staff of a network, a TRE and a project."""

import contextlib
import io
import json
from datetime import UTC, date, datetime, timedelta

import pytest
from rule_files import change, copy_rules

from sacro_deltab.base import resources
from sacro_deltab.certificate.keys import keygen
from sacro_deltab.certificate.law import committee
from sacro_deltab.cli import main
from sacro_deltab.rules import decide, load_base, load_ruleset, load_waivers
from sacro_deltab.rules.digests import semantic_digest
from sacro_deltab.rules.editor import pinned
from sacro_deltab.rules.facts import Fact, Facts, Provider
from sacro_deltab.rules.judging import judging_ruleset
from sacro_deltab.rules.loader import RuleSetProblems
from sacro_deltab.rules.own_tests import looser_unsigned

BASE = load_base()
PASS = b"a passphrase"


def pin(ruleset):
    top = ruleset.profile.layers[-1] if ruleset.profile else ruleset
    return f'{{id: {top.id}, version: "{top.version}", sha256: "{semantic_digest(ruleset)}"}}'


def layer(folder, name, level, below, text):
    head = f'layer: {{id: {name}, level: {level}, title: A layer, version: "1", on: {pin(below)}}}\n'
    path = folder / f"{name}.yaml"
    path.write_text(head + text, encoding="utf-8")
    return path


@pytest.fixture
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    trust = folder / "trust.json"
    start = datetime.now(UTC) - timedelta(days=2)
    for role in ("dac", "tool"):
        keygen(folder / f"{role}.pem", role, trust, PASS, now=start)
    (folder / "pass").write_bytes(PASS)
    return folder


def sacro(*arguments, code=0):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), pytest.raises(SystemExit) as done:
        main([str(a) for a in arguments])
    assert (done.value.code or 0) == code, said.getvalue()
    return said.getvalue()


def signing(keys):
    return ["--key", keys / "dac.pem", "--passphrase-file", keys / "pass"]


def seals(keys):
    return committee(keys / "trust.json")


def approve(rules, keys, *options):
    """As a committee does: the looser readings first, then the set."""
    sacro("rules", "sign", *looser_unsigned(load_base(rules)), "--rules", rules, *signing(keys))
    sacro("rules", "approve", "--rules", rules, *options, *signing(keys))


NETWORK = "constants: {minimum: 30}\nattest: {egress.route: tre_airlock}\n"
TRE = "tighten:\n  - {rule: PR-04, otherwise: block, because: no judgement}\n"
PROJECT = """\
layer:
  {{id: project-7, level: project, title: Project 7, version: "1", on: {on}}}
constants: {{minimum: 50, residual_minimum: 20, withheld_above: 0.2}}
tighten: [{{rule: SS-07, when: {{site.count: {{less_than: 6}}}}, because: few sites}}]
rules:
  - {{id: ZZ-01, title: This project asks for no site tables, applies_to: [delta_mean_by_site], forbid: egress,
     source: [DT-S6], examples: [{{given: {{}}, expect: block}}]}}
"""


def test_four_storeys_and_a_project_in_ten_lines(tmp_path):
    network = layer(tmp_path, "network", "network", BASE, NETWORK)
    tre = layer(tmp_path, "tre", "tre", load_ruleset(profile=network), TRE)
    project = tmp_path / "project-7.yaml"
    project.write_text(PROJECT.format(on=pin(load_ruleset(profile=tre))))
    assert len(project.read_text().splitlines()) <= 10
    law = load_ruleset(profile=project)
    assert [la.level for la in law.profile.layers] == ["network", "tre", "project"]
    assert law.parameters["min_n"] == 50
    assert law.rule("PR-04").otherwise.value == "block"
    assert law.rule("ZZ-01").verb == "forbid"
    assert law.profile.attest == {"egress.route": "tre_airlock"}
    assert law.profile.sha256 != load_ruleset(profile=tre).profile.sha256
    assert not law.profile.loosened
    shown = sacro("rules", "show", "--effective", "--layer", project)
    assert "minimum: 30 → 50" in shown
    assert f'on: {{id: project-7, version: "1", sha256: {semantic_digest(law)}}}' in shown
    said = sacro("rules", "diff", tre, project)
    assert "STRICTER  changed   constant minimum" in said
    assert "ZZ-01" in said
    assert "LOOSER" not in said


OWN_LAW = """\
sources:
  NW:
    title: The network's own rules
    file: network.txt
    sha256: "{zeros}"
    authority: the network's members
    clauses:
      NW-A1: {{line: 1, kind: rule, sha256: "{zeros}", gist: "No tables by site leave this network."}}
decisions:
  D-900:
    ask: "Is a region a site?"
    choose: "yes"
    instead: "no"
    clauses: [NW-A1]
    direction: STRICTER
rules:
  - {{id: ZZ-01, title: No tables by site, applies_to: [delta_mean_by_site], forbid: egress,
     source: [NW-A1], decision: [D-900], examples: [{{given: {{}}, expect: block}}]}}
"""


def test_a_layer_brings_clauses_and_decisions_of_its_own(tmp_path, keys):
    path = layer(tmp_path, "network", "network", BASE, OWN_LAW.format(zeros="0" * 64))
    law = load_ruleset(profile=path, seals=seals(keys))
    assert law.clauses["NW-A1"].document == "NW"
    assert law.decisions["D-900"].signed is None
    assert {"clause NW-A1 added", "decision D-900 added"} <= set(law.profile.changes)
    assert "No tables by site leave" in sacro("rules", "show", "NW-A1", "--layer", path)
    upper = layer(tmp_path, "tre", "tre", law, TRE)
    sacro("rules", "sign", path, *signing(keys))
    signed = load_ruleset(profile=upper, seals=seals(keys)).decisions
    assert signed["D-900"].signed is not None  # the network's signature, not the TRE's
    assert signed["D-12"].signed is None
    for taken, says in (("D-900:", "D-12 is known below"), ("choose:", "unknown key")):
        wrong = OWN_LAW.replace(taken, {"D-900:": "D-12:", "choose:": "chose:"}[taken]).format(zeros="0" * 64)
        with pytest.raises(RuleSetProblems, match=says):
            load_ruleset(profile=layer(tmp_path, "wrong", "network", BASE, wrong))


def test_each_pins_what_it_stands_on(tmp_path):
    network = layer(tmp_path, "network", "network", BASE, NETWORK)
    tre = layer(tmp_path, "tre", "tre", load_ruleset(profile=network), TRE)
    network.write_text(network.read_text().replace("minimum: 30", "minimum: 40"))
    with pytest.raises(RuleSetProblems, match="renew the pin"):
        load_ruleset(profile=tre)
    network.write_text(network.read_text().replace("minimum: 40", "minimum: 30").replace("A layer", "Another title"))
    assert load_ruleset(profile=tre).parameters["min_n"] == 30  # a title is no meaning


def test_levels_go_upwards_and_words_are_new(tmp_path):
    tre = layer(tmp_path, "tre", "tre", BASE, TRE)
    network = layer(tmp_path, "network", "network", load_ruleset(profile=tre), NETWORK)
    with pytest.raises(RuleSetProblems, match="stands on lower ones"):
        load_ruleset(profile=network)
    twice = layer(tmp_path, "twice", "tre", BASE, PROJECT[PROJECT.index("rules:") :].replace("ZZ-01", "SC-01").format())
    with pytest.raises(RuleSetProblems, match=r"twice\.yaml:3.*this id is taken"):
        load_ruleset(profile=twice)


def test_an_unpinned_layer_is_a_draft_and_says_so(tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text("profile: {id: old, title: From 0.1, ruleset: deltab-disclosure}\nconstants: {minimum: 30}\n")
    assert load_ruleset(profile=path).state == "draft"
    assert "pins nothing" in sacro("rules", "check", "--layer", path)


LOOSE = [
    ("constants: {minimum: 10}\n", "loosens the constant minimum: 20 → 10"),
    ("loosen:\n  - {rule: MP-09, require: {n: {at_least: 40}}, because: why}\n", "loosens MP-09"),
    ("retire:\n  - {rule: SS-15, because: why}\n", "loosens SS-15"),
    ("parameters: {interval_years: 1.0}\n", "loosens interval_years"),
    ("kinds: {effect_size: {class: coefficient, label: Effect size, statbarn: none}}\n", "adds the kind effect_size"),
]


@pytest.mark.parametrize(("text", "says"), LOOSE)
def test_loosening_counts_only_with_the_committees_signature(tmp_path, keys, text, says):
    path = layer(tmp_path, "loose", "tre", BASE, text)
    with pytest.raises(RuleSetProblems, match=r"only (a layer|one) that the committee signed may") as caught:
        load_ruleset(profile=path, seals=seals(keys))
    assert says in str(caught.value)
    sacro("rules", "sign", path, *signing(keys))
    law = load_ruleset(profile=path, seals=seals(keys))
    (one,) = law.profile.loosened
    assert one.outputs
    assert all(law.loosened_for(kind) for kind in one.outputs)
    with pytest.raises(RuleSetProblems):
        load_ruleset(profile=path)  # nobody here knows the committee
    path.write_text(path.read_text() + "# a word more\n")
    with pytest.raises(RuleSetProblems):
        load_ruleset(profile=path, seals=seals(keys))


def test_tightening_never_loosens_even_signed(tmp_path, keys):
    text = "tighten:\n  - {rule: MP-09, require: {n: {at_least: 40}}, because: why}\n"
    path = layer(tmp_path, "sly", "tre", BASE, text)
    sacro("rules", "sign", path, *signing(keys))
    with pytest.raises(RuleSetProblems, match="loosens MP-09"):
        load_ruleset(profile=path, seals=seals(keys))


def test_approved_until_its_end_and_only_this_text(tmp_path, keys):
    rules = copy_rules(tmp_path)
    assert load_ruleset(rules, seals=seals(keys)).name.endswith("DRAFT")
    until = (datetime.now(UTC) + timedelta(days=30)).date()
    assert "looser readings in force are signed by nobody" in sacro(
        "rules", "approve", "--rules", rules, *signing(keys), code=2
    )
    approve(rules, keys, "--until", until.isoformat())
    law = load_ruleset(rules, seals=seals(keys))
    assert (law.state, law.name) == ("approved", "deltab-disclosure 2026.1")
    assert load_ruleset(rules).state == "draft"  # without a trust file nobody vouches for anything
    late = load_ruleset(rules, seals=seals(keys), today=until + timedelta(days=1))
    assert late.state == "retired"
    early = tmp_path / "early"
    copy_rules(early)
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    approve(early / "rules", keys, "--from", tomorrow.isoformat())
    assert load_ruleset(early / "rules", seals=seals(keys)).state == "draft"
    change(rules, "10-admission.yaml", "title: ", "title: So ")
    assert load_ruleset(rules, seals=seals(keys)).state == "draft"


def test_a_retired_set_judges_nothing(tmp_path, keys):
    rules = copy_rules(tmp_path)
    change(rules, "ruleset.yaml", "status: proposed", "status: retired")
    with pytest.raises(Exception, match="retired: it serves `verify`"):
        judging_ruleset(rules)
    assert "is retired" in sacro("rules", "approve", "--rules", rules, *signing(keys), code=2)


def test_a_set_that_fails_its_own_tests_is_not_approved(tmp_path, keys):
    rules = copy_rules(tmp_path)
    change(rules, "10-admission.yaml", "expect: block", "expect: pass")
    assert "cannot be approved" in sacro("rules", "approve", "--rules", rules, *signing(keys), code=2)


def test_a_signed_decision_counts_while_its_text_stands(tmp_path, keys):
    rules = copy_rules(tmp_path)
    before = load_base(rules)
    said = sacro("rules", "sign", "D-12", "--rules", rules, *signing(keys))
    assert "decision D-12 signed" in said
    law = load_ruleset(rules, seals=seals(keys))
    assert law.decisions["D-12"].signed["date"] == datetime.now(UTC).date().isoformat()
    assert (law.sha256, semantic_digest(law)) == (before.sha256, semantic_digest(before))
    assert "(1 signed)" in sacro("rules", "check", "--rules", rules, "--trust", keys / "trust.json")
    change(rules, "decisions.yaml", before.decisions["D-12"].choose[:20], "Otherwise: ")
    assert load_ruleset(rules, seals=seals(keys)).decisions["D-12"].signed is None


def test_only_the_committee_signs(tmp_path, keys):
    rules = copy_rules(tmp_path)
    own = ["--key", keys / "tool.pem", "--passphrase-file", keys / "pass"]
    assert "not a dac key" in sacro("rules", "sign", "D-12", "--rules", rules, *own, code=2)
    assert "packaged rule set is not changed" in sacro("rules", "sign", "D-12", *signing(keys), code=2)


def test_two_signatures_where_the_trust_file_asks_for_two(tmp_path, keys):
    keygen(keys / "second.pem", "dac", keys / "trust.json", PASS, now=datetime.now(UTC) - timedelta(days=1))
    trust = json.loads((keys / "trust.json").read_text())
    trust["nodes"]["local"]["thresholds"]["dac"] = 2
    (keys / "trust.json").write_text(json.dumps(trust))
    rules = copy_rules(tmp_path)
    assert "more signatures are needed" in sacro("rules", "sign", "D-12", "--rules", rules, *signing(keys))
    assert load_ruleset(rules, seals=seals(keys)).decisions["D-12"].signed is None
    second = ["--key", keys / "second.pem", "--passphrase-file", keys / "pass"]
    sacro("rules", "sign", "D-12", "--rules", rules, *second)
    assert load_ruleset(rules, seals=seals(keys)).decisions["D-12"].signed is not None


def test_an_envelope_of_another_text_or_of_nonsense_is_none(tmp_path, keys):
    rules = copy_rules(tmp_path)
    sacro("rules", "sign", "D-12", "--rules", rules, *signing(keys))
    folder = rules / "signatures"
    (folder / "D-13.dsse.json").write_bytes((folder / "D-12.dsse.json").read_bytes())
    (folder / "approval.dsse.json").write_text("{}")
    law = load_ruleset(rules, seals=seals(keys))
    assert law.decisions["D-13"].signed is None
    assert law.state == "draft"


def test_a_waiver_holds_where_the_committee_signed_it(tmp_path, keys):
    today = date.today()
    body = {
        "id": "W-2026-001", "rule": "MP-09", "output_sha256": "a" * 64, "ruleset_sha256": semantic_digest(BASE),
        "granted_by": "A. Chair", "reference": "minute 14", "reason": "why",
        "granted_on": today.isoformat(), "expires_on": (today + timedelta(days=90)).isoformat(),
    }  # fmt: skip
    path = tmp_path / "W-2026-001.yaml"
    path.write_text("waiver:\n" + "".join(f"  {k}: {json.dumps(v)}\n" for k, v in body.items()))
    facts = Facts("x", "x_mean", {"n": Fact("n", 49, Provider.COMPUTED)})

    def waived(*, by):
        found = decide(BASE, facts, waivers=load_waivers(path, seals=by), output_sha256="a" * 64)
        return any(f.waived_by for f in found.findings)

    assert not waived(by=seals(keys))
    sacro("rules", "waiver", "sign", path, *signing(keys))
    assert waived(by=seals(keys))
    path.write_text(path.read_text().replace("why", "another reason"))
    assert not waived(by=seals(keys))


def test_an_id_is_never_used_again(tmp_path):
    rules = copy_rules(tmp_path)
    change(rules, "ruleset.yaml", "gone: [", "gone: [SS-15, ")
    with pytest.raises(RuleSetProblems, match="SS-15: was the id of a rule that is gone"):
        load_ruleset(rules)
    assert BASE.gone == ("RD-17",)  # whatever was removed since 2026.1 stands here for good


def test_packaged_layers_pin_the_law_beside_them():
    for path in sorted((resources.rules_dir() / "layers").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        assert pinned(text, BASE) == text, f"run python -m sacro_deltab.rules.editor: {path.name}"
