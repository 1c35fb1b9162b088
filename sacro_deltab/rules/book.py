"""The rule book: one printable, self-contained HTML page made from the YAML, so that nobody keeps two copies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .coverage import coverage, to_json
from .describe import clause_json, decision_json, effect_word, rule_json, value_words
from .model import Rule, RuleSet

TEMPLATE = "rule_book.html.j2"


def book_data(ruleset: RuleSet, words: Mapping[str, str]) -> dict[str, Any]:
    """Everything the book prints, as plain data. Machine paths are left out, so equal rules give an equal book."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for rule in ruleset.rules:
        entry = rule_json(ruleset, rule)
        entry["file"] = Path(rule.place.path).name
        entry["examples"] = [_example(e) for e in entry["examples"]]
        entry["clauses"] = [clause_json(ruleset, c, words) for c in rule.source]
        entry["decisions"] = [{"id": d, "choose": ruleset.decisions[d].choose} for d in rule.decision]
        entry["marks"] = _marks(ruleset, rule, str(entry["effect"]))
        sections.setdefault(rule.section, []).append(entry)
    report = to_json(coverage(ruleset))
    return {
        "rule_set": {**ruleset.statement(), "title": ruleset.title},
        "profile": _profile(ruleset),
        "filters": _filters(ruleset),
        "documents": [
            {"id": d.id, "title": d.title, "authority": d.authority, "sha256": d.sha256}
            for d in ruleset.documents.values()
        ],
        "sections": [{"title": title, "rules": rules} for title, rules in sections.items()],
        "parameters": [
            {"name": n, "value": ruleset.parameters[n], "means": s.means, "rule": s.rule}
            for n, s in ruleset.parameter_specs.items()
        ],
        "outputs": [
            {"name": o.name, "label": o.label, "class": o.cls, "rules": [r.id for r in ruleset.rules_for(o.name)]}
            for o in ruleset.outputs.values()
        ],
        "facts": [
            {"name": f.name, "by": f.by, "means": f.means, "unit": f.unit, "raw": f.raw} for f in ruleset.facts.values()
        ],
        "limits": [{"name": n, "means": m} for n, m in ruleset.limits.items()],
        "clauses": [clause_json(ruleset, c, words) for c in ruleset.clauses],
        "decisions": [decision_json(ruleset, d) for d in ruleset.decisions],
        "coverage": {k: report[k] for k in ("clauses", "rules", "decisions", "examples")},
        "changes": [dict(change) for change in ruleset.changes],
    }


def _marks(ruleset: RuleSet, rule: Rule, effect: str) -> str:
    """Classes of a rule on the page, by which the filters know it."""
    open_ones = any(ruleset.decisions[d].signed is None for d in rule.decision)
    marks = [f"e-{effect}", *(f"k-{kind}" for kind in sorted(rule.outputs)), *(f"c-{clause}" for clause in rule.source)]
    return " ".join([*marks, *(["unsigned"] if open_ones else [])])


def _filters(ruleset: RuleSet) -> list[dict[str, Any]]:
    """What the rules on the page can be narrowed to."""
    cited = {c for rule in ruleset.rules for c in rule.source}
    effects = list(dict.fromkeys(effect_word(rule) for rule in ruleset.rules))
    choices: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("k-", "about", {o.name: o.label for o in ruleset.outputs.values()}),
        ("e-", "that", dict(zip(effects, effects, strict=True))),
        ("c-", "for clause", {c: c for c in ruleset.clauses if c in cited}),
    )
    return [
        {"id": f"f-{mark[0]}", "label": label, "mark": mark, "options": list(words), "words": words}
        for mark, label, words in choices
    ]


def _example(example: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value_words(value) for name, value in example["given"].items()}
    then = (
        str(example["expect"]).replace("_", " ")
        if "expect" in example
        else f"becomes {value_words(example['becomes'])}"
    )
    return {"given": given, "then": then}


def _profile(ruleset: RuleSet) -> dict[str, Any] | None:
    p = ruleset.profile
    return None if p is None else {"id": p.id, "title": p.title, "sha256": p.sha256, "changes": list(p.changes)}


def render_book(ruleset: RuleSet, words: Mapping[str, str] | None = None) -> str:
    """The whole book as one HTML page without scripts or outside references; the same rules give the same bytes."""
    return render(TEMPLATE, book_data(ruleset, words or {}))


def render(template: str, data: Mapping[str, Any]) -> str:
    """One template of this room, filled."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # heavy, and only pages need it

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    page = environment.get_template(template).render(**data)
    return "\n".join(line.rstrip() for line in page.splitlines() if line.strip()) + "\n"
