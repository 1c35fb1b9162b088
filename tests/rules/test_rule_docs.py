"""The manual's examples run, the book is current, the schemas know the vocabulary, every file has its modeline."""

import doctest
import json
import re
import shlex
from pathlib import Path

import pytest
from rule_files import change, copy_rules

from sacro_deltab.base import resources
from sacro_deltab.rules import load_ruleset
from sacro_deltab.rules.book import render_book
from sacro_deltab.rules.editor import render, with_vocabulary

ROOT = resources.data_root()
MANUAL = ROOT / "docs" / "rules.md"
pytestmark = pytest.mark.skipif(not MANUAL.is_file(), reason="docs are not part of the wheel")


def test_the_book_stands_alone(ruleset):
    book = render_book(ruleset)
    assert "<script" not in book
    assert not re.search(r'(src|href)="(?!#)', book)
    for link in set(re.findall(r'href="#([^"]+)"', book)):
        assert f'id="{link}"' in book, link


def test_the_book_is_filtered_on_screen_without_a_script(ruleset):
    book = render_book(ruleset)
    for kind in ruleset.outputs:
        assert f'<option value="{kind}">' in book
        assert f'body:has(#f-k option[value="{kind}"]:checked) .rule:not(.k-{kind})' in book
    marks = dict(re.findall(r'<section class="rule ([^"]+)" id="([A-Z]+-\d+)">', book))
    found = {rule_id: set(classes.split()) for classes, rule_id in marks.items()}
    mine = {"e-block", "k-beta1", "c-DT-M1"}
    assert mine <= found["MP-01"]
    assert "unsigned" not in found["MP-01"]  # it rests on no decision
    assert "unsigned" in found["SC-02"]
    assert "@page" in book


def test_the_book_prints_the_documents_words_where_given(ruleset):
    assert "“exact words”" in render_book(ruleset, {"DT-C3": "exact words"})


def test_the_schema_knows_the_vocabulary(ruleset):
    text = (ROOT / "schemas" / "ruleset.schema.json").read_text(encoding="utf-8")
    assert text == render(with_vocabulary(json.loads(text), ruleset)), "run: python -m sacro_deltab.rules.editor"


def test_every_rule_file_has_its_modeline():
    files = list((ROOT / "rules").rglob("*.yaml"))
    assert len(files) >= 17
    for path in files:
        first = path.read_text(encoding="utf-8").split("\n", 1)[0]
        match = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
        assert match, path
        assert (path.parent / match.group(1)).resolve().is_file(), path


def _console_blocks():
    return re.findall(r"```console\n(.*?)```", MANUAL.read_text(encoding="utf-8"), flags=re.S)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = copy_rules(tmp_path).rename(tmp_path / "my-rules")
    broken = copy_rules(tmp_path).rename(tmp_path / "broken-rules")
    change(
        mine,
        "50-age.yaml",
        "require: {band.width_years: {at_least: band_years}}",
        "require: {band.width_years: {at_least: 10}}",
    )
    change(
        mine, "30-model-parameters.yaml", "require: {n: {at_least: feature_minimum}}", "require: {n: {at_least: 40}}"
    )
    text = (mine / "20-principles.yaml").read_text(encoding="utf-8")
    head, tail = text.split("  - id: PR-04\n")
    (mine / "20-principles.yaml").write_text(
        head + "  - id: PR-04\n" + tail.replace("otherwise: review", "otherwise: block", 1), encoding="utf-8"
    )
    change(
        broken, "30-model-parameters.yaml", "require: {n: {at_least: model_minimum}}", "require: {m: {at_least: 100}}"
    )
    change(broken, "50-age.yaml", "when: {n: {less_than: exact_from}}", "when: {n: {les_than: 100}}")
    Path("loose.yaml").write_text(
        "profile: {id: loose, title: x, ruleset: deltab-disclosure}\ntighten:\n"
        "  - {rule: MP-10, require: {n: {at_least: 10}}, because: x}\n",
        encoding="utf-8",
    )
    return tmp_path


@pytest.mark.parametrize("block", _console_blocks(), ids=lambda b: b.split("\n")[0][2:60])
def test_the_manual_shows_what_happens(block, workplace, run_rules):
    command, *wanted = block.rstrip("\n").split("\n")
    result = run_rules(*shlex.split(command)[3:])
    said = (result.out + result.err).rstrip("\n")
    pattern = "\n".join(".*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") for line in wanted)
    assert re.fullmatch(pattern, said, flags=re.S), said


def test_the_manuals_python():
    result = doctest.testfile(str(MANUAL), module_relative=False)
    assert result.attempted > 4
    assert result.failed == 0


def test_no_parameter_and_no_path_of_a_machine_in_the_book(ruleset):
    assert not re.search(r"/(home|work|tmp|usr)/", render_book(ruleset))
    assert load_ruleset().sha256 in render_book(ruleset)
