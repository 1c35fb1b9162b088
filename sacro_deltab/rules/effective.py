"""`rules show --effective`: the law in force on one page of text: layers, digest to pin, numbers, kinds, rules."""

from __future__ import annotations

from typing import Any

from .checking import stack_lines
from .describe import effect_word
from .digests import semantic_digest
from .model import RuleSet


def effective(ruleset: RuleSet) -> tuple[list[str], dict[str, Any]]:
    """The law in force, for people and for machines."""
    means = semantic_digest(ruleset)
    top = ruleset.profile.layers[-1] if ruleset.profile is not None else None
    pin = {"id": top.id, "version": top.version} if top else {"id": ruleset.id, "version": ruleset.version}
    rules = [r for r in ruleset.rules if r.in_force]
    off = [r for r in ruleset.rules if not r.in_force]
    data: dict[str, Any] = {
        "rule_set": ruleset.statement(),
        "pin": {**pin, "sha256": means},
        "layers": [] if ruleset.profile is None else [
            {"id": la.id, "level": la.level, "version": la.version, "sha256": la.sha256, "changes": list(la.changes),
             "loosened": [one.what for one in la.loosened]} for la in ruleset.profile.layers
        ],
        "constants": {c.name: c.value for c in ruleset.constants.values()},
        "parameters": dict(ruleset.parameters),
        "attested": {} if ruleset.profile is None else dict(ruleset.profile.attest),
        "kinds": list(ruleset.outputs),
        "rules": [r.id for r in rules],
        "retired": [r.id for r in off],
    }  # fmt: skip
    lines = [
        f"{ruleset.name} sha256:{ruleset.sha256}",
        f'to stand on it: on: {{id: {pin["id"]}, version: "{pin["version"]}", sha256: {means}}}',
        *([] if ruleset.profile is None else stack_lines(ruleset)),
        "",
        "Numbers",
        *(f"  {c.name}: {c.value} {c.unit} ({c.clause}): {c.means}" for c in ruleset.constants.values()),
        *(
            f"  {s.name}: {ruleset.parameters[s.name]}: {s.means}"
            for s in ruleset.parameter_specs.values()
            if s.constant is None and s.rule is None
        ),
        "",
        f"Rules in force ({len(rules)}; for one in full: rules show ID)",
        *(f"  {r.id}  {effect_word(r):<9} {r.title}" for r in rules),
    ]
    if off:
        lines += ["", f"Switched off ({len(off)})", *(f"  {r.id}  {r.title}" for r in off)]
    return lines, data
