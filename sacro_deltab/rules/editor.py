"""Completion and hover for editors: the vocabulary written into `schemas/ruleset.schema.json`; pins of packaged layers.

The schema stays open (a name it does not list is left to the loader, which knows what was meant), so a new rule
touches YAML only; after a new fact, output, clause or decision, `python -m sacro_deltab.rules.editor` renews it.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from typing import Any

from ..base import resources
from ..base.writing import write_file
from .digests import semantic_digest
from .loader import load_base
from .model import FactSpec, RuleSet


def _hover(spec: FactSpec) -> str:
    said = {"computed": "computed", "declared": "declared by the researcher", "attested": "attested by TRE staff"}
    parts = [spec.means, f"Type: {spec.type}{f', {spec.unit}' if spec.unit else ''}."]
    parts.append(f"By: {said.get(spec.by, 'the ledger')}.")
    if spec.values:
        parts.append(f"Words: {', '.join(spec.values)}.")
    return " ".join(parts)


def with_vocabulary(schema: dict[str, Any], ruleset: RuleSet) -> dict[str, Any]:
    """The rule-file schema with names to complete: facts, outputs and groups, clauses, decisions."""
    out = copy.deepcopy(schema)
    defs = out["$defs"]
    facts = ruleset.facts.values()
    comparators = {"$ref": "#/$defs/comparators"}
    any_of = {"any_of": defs["conditions"]["properties"]["any_of"]}
    defs["conditions"]["properties"] = {f.name: {**comparators, "description": _hover(f)} for f in facts} | any_of
    defs["example"]["properties"]["given"]["properties"] = {f.name: {"description": _hover(f)} for f in facts}
    names = [*ruleset.groups, *ruleset.outputs]
    for key in [k for k in defs if k == "rule" or k.startswith("rule_")]:
        properties = defs[key]["properties"]
        properties["applies_to"]["items"] = {"anyOf": [{"enum": names}, {"type": "string"}]}
        properties["source"]["items"] = _either(properties["source"]["items"], list(ruleset.clauses))
        properties["decision"]["items"] = _either(properties["decision"]["items"], list(ruleset.decisions))
    return out


def _either(items: dict[str, Any], names: list[str]) -> dict[str, Any]:
    pattern = items.get("pattern") or items["anyOf"][1]["pattern"]
    return {"anyOf": [{"enum": names}, {"type": "string", "pattern": pattern}]}


def render(schema: dict[str, Any]) -> str:
    """The schema file's text."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def pinned(text: str, ruleset: RuleSet) -> str:
    """A packaged layer's file with the pin renewed: the law below it is in the same box."""
    return re.sub(r'(  on: \{id: [a-z-]+, version: )"[^"]*", sha256: "?[0-9a-f]{64}"?', _pin(ruleset), text)


def _pin(ruleset: RuleSet) -> str:
    return rf'\g<1>"{ruleset.version}", sha256: "{semantic_digest(ruleset)}"'


def main() -> None:
    """Write the schema of the packaged rule set's vocabulary, and the pins of the layers packaged with it."""
    ruleset = load_base()
    path = resources.data_root() / "schemas" / "ruleset.schema.json"
    write_file(path, render(with_vocabulary(resources.schema("ruleset"), ruleset)))
    sys.stdout.write(f"{path}\n")
    for layer in sorted((resources.rules_dir() / "layers").glob("*.yaml")):
        write_file(layer, pinned(layer.read_text(encoding="utf-8"), ruleset))
        sys.stdout.write(f"{layer}\n")


if __name__ == "__main__":
    main()
