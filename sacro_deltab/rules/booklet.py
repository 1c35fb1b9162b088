"""The booklet: what a committee reads of the law. The documents' own tables with live numbers, and ten decisions."""

from __future__ import annotations

from typing import Any

from .book import render
from .constants import shown, users
from .describe import decision_json, deed_words
from .model import Rule, RuleSet
from .readings import known

TEMPLATE = "booklet.html.j2"
_FIRST = 10
_PEOPLE = ("n", "cell.n", "nodes.smallest_n")
_WAY = (
    ("people", "measured inside"),
    ("facts", "named, typed"),
    ("rules", "block, ask, mark"),
    ("tables", "attacked, protected"),
    ("rounding", "after noise"),
    ("verdict", "a person releases"),
)


def booklet_data(ruleset: RuleSet) -> dict[str, Any]:
    """Everything the booklet prints."""
    kinds = [o for o in ruleset.outputs.values() if o.cls not in ("record", "inside_only")]
    never = [o.label for o in kinds if any(r.verb == "forbid" for r in ruleset.rules_for(o.name))]
    rows = [
        {
            "label": o.label,
            "minimum": _minimum(ruleset.rules_for(o.name)),
            "rounding": _rounding(ruleset.rules_for(o.name)),
            "asked": _asked(ruleset.rules_for(o.name)),
        }
        for o in kinds
        if o.label not in never
    ]
    profile = ruleset.profile
    return {
        "rule_set": {**ruleset.statement(), "title": ruleset.title},
        "profile": None if profile is None else {"id": profile.id, "changes": list(profile.changes)},
        "way": _WAY,
        "table": rows,
        "never": never,
        "constants": [
            {
                "means": c.means,
                "value": shown(c),
                "clause": c.clause,
                "rules": ", ".join(r.id for r in users(ruleset, c.name)),
            }
            for c in ruleset.constants.values()
        ],
        "decisions": ranked_decisions(ruleset)[:_FIRST],
        "decisions_all": len(ruleset.decisions),
        "replayed": known(ruleset),
        "changes": [dict(change) for change in ruleset.changes],
    }


def ranked_decisions(ruleset: RuleSet) -> list[dict[str, Any]]:
    """Unsigned decisions, those first whose other reading moves most stored verdicts (`readings.json`), then those on
    which most judgements rest: rules in force, each for every kind it judges."""
    moved = {one["id"]: one for one in known(ruleset).get("ranked", ()) if "moved" in one}
    out = []
    for d in ruleset.decisions.values():
        rules = [r for r in ruleset.rules if r.in_force and d.id in r.decision]
        weight = sum(len(r.outputs) for r in rules)
        if d.signed is None and (weight or d.id in moved):
            out.append({**decision_json(ruleset, d.id), "weight": weight, **moved.get(d.id, {"moved": 0})})
    return sorted(out, key=lambda e: (-e["moved"], 0 if e["moved"] else -e["weight"], e["id"]))


def _minimum(rules: tuple[Rule, ...]) -> str:
    whole = [
        c.limit for r in rules if not r.when for c in r.require if c.fact in _PEOPLE and c.comparator == "at_least"
    ]
    cells = [c.limit for r in rules if r.deed == "suppress" for c in r.when if c.fact == "cell.n"]
    numbers = [n for n in whole if isinstance(n, int)]
    said = [str(max(numbers))] if numbers else []
    said += [f"{max(n for n in cells if isinstance(n, int))} in each cell"] if cells else []
    special = [
        f"{c.limit} where {w.fact} is {w.limit}"
        for r in rules
        if len(r.when) == 1
        for w in r.when
        for c in r.require
        if c.fact == "n" and c.comparator == "at_least" and c.limit not in numbers
    ]
    return "; ".join([*said, *special]) or "no number of people"


def _rounding(rules: tuple[Rule, ...]) -> str:
    return "; ".join(dict.fromkeys(deed_words(r).removeprefix("round ") for r in rules if r.deed == "round")) or "none"


def _asked(rules: tuple[Rule, ...]) -> str:
    always = [r.id for r in rules if r.verb == "flag" and not r.when]
    return f"always ({', '.join(always)})" if always else "where a rule says so"


def render_booklet(ruleset: RuleSet) -> str:
    """The booklet as one HTML page without scripts; the same rules give the same bytes."""
    return render(TEMPLATE, booklet_data(ruleset))
