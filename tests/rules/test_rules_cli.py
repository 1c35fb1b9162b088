"""The commands: exit codes, JSON alone on stdout, no heavy imports, any working directory."""

import json
import subprocess
import sys

import pytest
from facts_factory import cell, honest
from rule_files import change, copy_rules

from sacro_deltab.rules import load_ruleset
from sacro_deltab.rules.facts import Facts, facts_to_json

RULESET = load_ruleset()


def store(path, facts):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts_to_json(facts)), encoding="utf-8")
    return path


def table(**changes):
    base = honest(RULESET, "delta_mean_by_diagnosis", **changes)
    cells = (cell(RULESET, "AD", 180), cell(RULESET, "MCI", 170), cell(RULESET, "HC", 7))
    return Facts("delta_by_diagnosis", base.output_type, base.facts, cells)


def test_list_starts_without_heavy_imports(tmp_path):
    code = (
        "import sys\nfrom sacro_deltab.cli import main\n"
        "try:\n    main(['rules', 'list', '--json'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'pandas', 'acro', 'scipy', 'sklearn', 'opendp', 'matplotlib', 'sqlalchemy', 'jinja2'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stderr.strip() == "[]"
    data = json.loads(done.stdout)
    assert [r["id"] for r in data["rules"]][:2] == ["AD-01", "AD-02"]


def test_list(run_rules):
    assert run_rules("list").out.count("\n") > 154
    only = json.loads(run_rules("list", "--output", "beta1", "--json").out)
    assert "MP-01" in [r["id"] for r in only["rules"]]
    assert "SC-01" not in [r["id"] for r in only["rules"]]
    assert run_rules("list", "--output", "beta").code == 2


@pytest.mark.parametrize("name", ["MP-01", "D-36", "DT-C3", "DT-P2", "beta1", "cell.n"])
def test_show(run_rules, name):
    assert run_rules("show", name).code == 0
    json.loads(run_rules("show", name, "--json").out)


def test_show_of_nothing(run_rules):
    result = run_rules("show", "MP-1")
    assert result.code == 2
    assert "did you mean 'MP-" in result.err


@pytest.fixture
def documents(tmp_path):
    """Stand-in documents whose lines have the digests of one clause each; the rest is 'something else now'."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for document in RULESET.documents.values():
        (folder / document.file).write_text("no clause\n" * 3, encoding="utf-8")
    return folder


def test_check(run_rules, documents, tmp_path):
    assert run_rules("check").code == 0
    data = json.loads(run_rules("check", "--json").out)
    assert data["ok"]
    assert {p["id"] for p in data["layers"]} == {"classical-sigma", "example-node"}
    result = run_rules("check", "--documents", str(documents))
    assert result.code == 1
    assert "DT-C1: line 62 of disclosure-thresholds.txt says something else now" in result.out
    assert run_rules("check", "--documents", str(tmp_path)).code == 2


def test_check_verifies_digests_and_prints_the_words(run_rules, tmp_path):
    from sacro_deltab.rules.documents import clause_digest

    copy = copy_rules(tmp_path)
    line = "Groups of fewer than twenty are not shown."
    clause = RULESET.clauses["DT-C1"]
    change(copy, "sources.yaml", clause.sha256, clause_digest(line))
    folder = tmp_path / "docs"
    folder.mkdir()
    name = RULESET.documents["DT"].file
    (folder / name).write_text("\n" * (clause.line - 1) + line + "\n", encoding="utf-8")
    result = run_rules("check", "--rules", str(copy), "--documents", str(folder))
    assert f"    DT-C1: “{line}”" in result.out
    (folder / name).write_text(line.replace("are", "  are") + "\n", encoding="utf-8")
    moved = run_rules("check", "--rules", str(copy), "--documents", str(folder))
    assert "DT-C1 now stands in line 1" in moved.out


def test_check_of_a_broken_set(run_rules, tmp_path):
    copy = copy_rules(tmp_path)
    change(copy, "50-age.yaml", "source: [DT-A1]", "source: [DT-Z9]")
    result = run_rules("check", "--rules", str(copy), "--json")
    assert result.code == 2
    assert len(json.loads(result.out)["problems"]) == 1
    assert run_rules("list", "--rules", str(copy)).code == 2


def test_check_lists_lapsed_waivers(run_rules, tmp_path):
    copy = copy_rules(tmp_path)
    (copy / "waivers").mkdir(exist_ok=True)
    (copy / "waivers" / "w.yaml").write_text(
        "waiver:\n  id: W-2020-001\n  rule: MP-09\n"
        f'  output_sha256: "{"a" * 64}"\n  ruleset_sha256: "{RULESET.sha256}"\n'
        "  granted_by: A. Chair\n  reference: minute 1\n  reason: a reason\n"
        '  granted_on: "2020-01-01"\n  expires_on: "2020-02-01"\n'
    )
    result = run_rules("check", "--rules", str(copy))
    assert result.code == 0
    assert "waiver W-2020-001 on MP-09: lapsed: it ended on 2020-02-01" in result.out


def test_test_notices_a_number_without_its_example(run_rules, tmp_path):
    assert run_rules("test").code == 0
    copy = copy_rules(tmp_path)
    change(
        copy, "30-model-parameters.yaml", "require: {n: {at_least: feature_minimum}}", "require: {n: {at_least: 40}}"
    )
    result = run_rules("test", "--rules", str(copy))
    assert result.code == 1
    assert "MP-09: given {n: 49} expected block, got pass" in result.out
    assert not json.loads(run_rules("test", "--rules", str(copy), "--json").out)["ok"]


def test_coverage_names_a_forgotten_clause(run_rules, tmp_path):
    assert run_rules("coverage").code == 0
    copy = copy_rules(tmp_path)
    change(copy, "50-age.yaml", "source: [DT-A1]", "source: [DT-A2]")
    result = run_rules("coverage", "--rules", str(copy))
    assert result.code == 1
    assert "clause DT-A1: asks for a rule and has none" in result.out
    assert json.loads(run_rules("coverage", "--rules", str(copy), "--json").out)["gaps"][0]["name"] == "DT-A1"


EFFECTS = {
    "block": table(egress__route="direct"),
    "withhold": table(table__suppressed_share=0.34),
    "review": honest(RULESET, "y_mean", y__range_years=9.0),
    "suppress": table(table__suppressed_share=0.2),
    "round": honest(RULESET, "delta_mean"),
    "label": honest(RULESET, "p_value", value=0.0004),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_explain_each_effect(run_rules, tmp_path, effect):
    path = store(tmp_path / "facts.json", EFFECTS[effect])
    result = run_rules("explain", str(path))
    assert result.code == 0
    assert f"  {effect.upper()}: " in result.out
    data = json.loads(run_rules("explain", str(path), "--json").out)
    assert data["outputs"][0]["effect"] == effect
    outside = run_rules("explain", str(path), "--view", "outside").out
    assert " 7;" not in outside


def test_explain_a_session_folder_and_a_file_in_it(run_rules, tmp_path):
    evidence = {"outputs": [{"facts": facts_to_json(table())}, {"facts": facts_to_json(honest(RULESET, "n_subjects"))}]}
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "evidence.json").write_text(json.dumps(evidence))
    (tmp_path / "delta_by_diagnosis.csv").write_text("x\n")
    both = run_rules("explain", str(tmp_path)).out
    assert "delta_by_diagnosis · " in both
    assert "example · " in both
    one = run_rules("explain", str(tmp_path), "delta_by_diagnosis").out
    assert one == run_rules("explain", str(tmp_path / "delta_by_diagnosis.csv")).out
    missing = run_rules("explain", str(tmp_path), "delta_by_diagnosi")
    assert missing.code == 2
    assert "did you mean 'delta_by_diagnosis'" in missing.err


@pytest.mark.parametrize("content", ["{}", "[1]", "not json", '{"outputs": 3}', "[" * 2000])
def test_explain_of_no_facts(run_rules, tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    assert run_rules("explain", str(path)).code == 2


@pytest.mark.parametrize(
    "facts",
    [
        {"output_name": "x", "output_type": "n_subjects", "facts": {"n": {"value": [1, 2], "by": "computed"}}},
        {"output_name": "x", "output_type": "n_subjects", "facts": {"n": {"value": 5, "by": "nobody"}}},
        {"output_name": "x", "output_type": "n_subjects", "facts": {"n": 5}},
        {"output_name": "x", "output_type": "n_subjects", "facts": [], "parts": [3]},
        {"output_name": "x", "output_type": "n_subjects", "facts": {"n": {"value": 1e999, "by": "computed"}}},
    ],
)
def test_explain_of_malformed_facts(run_rules, tmp_path, facts):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(facts))
    result = run_rules("explain", str(path))
    assert result.code == 2
    assert "Traceback" not in result.err


def test_diff_with_replay_and_profile(run_rules, tmp_path):
    copy = copy_rules(tmp_path)
    change(
        copy, "30-model-parameters.yaml", "require: {n: {at_least: feature_minimum}}", "require: {n: {at_least: 40}}"
    )
    store(tmp_path / "stored" / "x.json", honest(RULESET, "x_mean", n=45))
    result = run_rules("diff", "deltab-disclosure", str(copy), "--replay", str(tmp_path / "stored"))
    assert result.code == 0
    assert "Replayed on 1 stored outputs: 1 judged differently." in result.out
    data = json.loads(run_rules("diff", "deltab-disclosure", str(copy), "--json").out)
    assert [d["direction"] for d in data["differences"]] == ["LOOSER"]
    site = run_rules("diff", "deltab-disclosure", "deltab-disclosure", "--profile", "example-node").out
    assert "STRICTER  changed   constant count_base" in site
    assert site.count("STRICTER  ") == 8  # the constant, four roundings with it, two rules, one parameter
    assert run_rules("diff", "deltab-disclosure", str(copy), "--replay", str(tmp_path / "rules")).code == 2


def test_book(run_rules, tmp_path):
    out = tmp_path / "book.html"
    assert run_rules("book", "--out", str(out)).code == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run_rules("book").out == out.read_text(encoding="utf-8")
    assert len(json.loads(run_rules("book", "--json").out)["decisions"]) == len(RULESET.decisions)
    assert run_rules("book", "--out", str(tmp_path)).code == 2


def test_new(run_rules, tmp_path):
    copy = copy_rules(tmp_path)
    assert "id: MP-24" in run_rules("new", "MP-24").out
    assert run_rules("new", "MP-01").code == 2
    assert run_rules("new", "mp1").code == 2
    assert run_rules("new", "MP-24", "--write").code == 2  # the packaged set is not changed
    assert run_rules("new", "ZZ-01", "--write", "--rules", str(copy)).code == 2
    assert run_rules("new", "MP-24", "--write", "--rules", str(copy)).code == 0
    assert run_rules("test", "--rules", str(copy)).code == 0
    assert len(load_ruleset(copy).rules) == len(RULESET.rules) + 1


@pytest.mark.parametrize("command", ["list", "show", "check", "test", "coverage", "explain", "diff", "book", "new"])
def test_every_command_has_help_with_an_example(run_rules, command):
    result = run_rules(command, "--help")
    assert result.code == 0
    assert "Example: sacro-deltab rules " in result.out
    assert "--json" in result.out
