"""`init`: forms with every fact that the rules ask of people, and a simulated TRE."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sacro_deltab.base.errors import InputError
from sacro_deltab.check.facts_file import read_facts
from sacro_deltab.judging.said import read_said
from sacro_deltab.rules import load_ruleset
from sacro_deltab.rules.judging import judging_ruleset
from sacro_deltab.run.starting import write_templates, write_trial

RULES = load_ruleset()


def filled(path: Path, by: str) -> Path:
    """The form as somebody fills it in: a name, and every fact said."""
    lines = path.read_text(encoding="utf-8").replace('by: ""', f'by: "{by}"').splitlines()
    said = [line.replace("  # ", "  ", 1) if line.startswith("  # ") and _is_fact(line) else line for line in lines]
    path.write_text("\n".join(said) + "\n", encoding="utf-8")
    return path


def _is_fact(line: str) -> bool:
    return line.removeprefix("  # ").partition(":")[0] in RULES.facts


def test_the_forms_hold_every_fact_that_people_say(tmp_path: Path) -> None:
    write_templates(tmp_path, RULES)
    for name, role, by in (("declare.yaml", "researcher", "declared"), ("attest.yaml", "tre_staff", "attested")):
        read = {c.fact for r in RULES.rules if r.in_force for c in r.conditions}
        asked = {n for n, s in RULES.facts.items() if s.by == by and s.of_part is None and n in read}
        said = read_said(filled(tmp_path / name, "A Person"), role, RULES)
        assert set(said.facts) == asked and asked
    assert set(read_facts(tmp_path / "attest.yaml").for_file("x").facts) == asked  # type: ignore[union-attr]


def test_an_empty_form_says_nothing_until_somebody_signs(tmp_path: Path) -> None:
    write_templates(tmp_path, RULES)
    with pytest.raises(InputError, match="by"):
        read_said(tmp_path / "declare.yaml", "researcher", RULES)
    path = tmp_path / "declare.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace('by: ""', "by: A Person"), encoding="utf-8")
    assert read_said(path, "researcher", RULES).facts == {}


def test_the_layer_stands_on_the_rules_of_now(tmp_path: Path) -> None:
    write_templates(tmp_path, RULES)
    assert judging_ruleset(None, profile=str(tmp_path / "profile.yaml")).profile is not None


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write_templates(tmp_path, RULES)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="there already"):
        write_templates(tmp_path, RULES)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "trust.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="there already"):
        write_trial(tmp_path)
    assert not (tmp_path / "budget.db").exists()


def test_a_trial_says_that_it_is_one(tmp_path: Path) -> None:
    write_trial(tmp_path)
    for name in ("declare.json", "attest.json"):
        assert json.loads((tmp_path / name).read_text(encoding="utf-8"))["simulated"] is True
