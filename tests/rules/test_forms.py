"""Rules about form: every code in the source has its entry, every entry its code, and the effects agree."""

import ast
import functools
from pathlib import Path

import pytest

import sacro_deltab
from sacro_deltab.base.findings import Effect
from sacro_deltab.rules.describe import show
from sacro_deltab.rules.stored import find_outputs, with_form

ROOT = Path(sacro_deltab.__file__).parent
EFFECTS = {"BLOCK", "REVIEW", "LABEL"}


def _code(call):
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name != "note" or not call.args:
        return None
    first = call.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    return f"{first.values[0].value}*" if isinstance(first, ast.JoinedStr) else None


@functools.cache
def _codes():
    found = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (code := _code(node)) is not None:
                said = {a.attr.lower() for a in ast.walk(node) if isinstance(a, ast.Attribute) and a.attr in EFFECTS}
                found.setdefault(code, set()).update(said)
    literals = "\n".join(p.read_text(encoding="utf-8") for p in ROOT.rglob("*.py"))
    return found, literals


def test_every_code_is_in_the_book_and_every_entry_is_used(ruleset):
    found, literals = _codes()
    assert len(found) > 90
    assert sorted(set(found) - set(ruleset.forms)) == []
    unused = {name for name in ruleset.forms if name not in found and f"check/{name}" not in literals}
    assert sorted(unused) == []


def test_no_code_has_an_effect_that_its_entry_does_not_allow(ruleset):
    for code, effects in _codes()[0].items():
        assert effects <= set(ruleset.forms[code].effects), code


@pytest.mark.parametrize("name", ["check/digits", "check/type-xtrain", "check/impossible-value", "minimum"])
def test_show_knows_what_reports_print(ruleset, name):
    lines, data = show(ruleset, name, {})
    assert len("\n".join(lines)) >= 40
    assert data


def test_a_recorded_finding_of_form_is_explained(ruleset, tmp_path):
    import json

    from facts_factory import honest

    from sacro_deltab.rules import decide
    from sacro_deltab.rules.facts import facts_to_json

    facts = honest(ruleset, "delta_sd")
    finding = {"rules": ["check/impossible-value"], "effect": "block", "text": "Row 1", "asks": [], "next_step": None}
    entry = {"name": facts.output_name, "facts": facts_to_json(facts), "decision": {"findings": [finding]}}
    (tmp_path / "evidence.json").write_text(json.dumps({"outputs": [entry]}), encoding="utf-8")
    stored = find_outputs(tmp_path / "evidence.json")[0]
    assert decide(ruleset, stored.facts).status == "pass"
    assert with_form(decide(ruleset, stored.facts), stored.form).effect is Effect.BLOCK


def test_no_rule_id_stands_in_code(ruleset):
    """Code finds rules by the facts they are about; ids in help texts and docstrings are examples for people."""
    prefixes = {rule.id[:3] for rule in ruleset.rules}
    found = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if text[:3] in prefixes and (len(text) == 3 or text[3:].isdigit()):
                found.append(f"{path.name}:{node.lineno}: {text}")
    assert found == []
