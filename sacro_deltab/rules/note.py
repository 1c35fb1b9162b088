"""One page for a committee: what a change of the law changes and why, for which stored requests, and who decided."""

from __future__ import annotations

from typing import Any

from .book import render
from .constants import shown
from .model import RuleSet
from .replay import UNKNOWN, Replayed
from .ruleset_diff import RuleDiff
from .strictness import Direction

TEMPLATE = "note.html.j2"
_MOST = 14  # rows of a table: the page is one page, and `rules diff` tells the rest
_LEAVES = {"block": "stays inside", "withhold": "stays inside", "review": "asked of a person", UNKNOWN: "not known"}


def note_data(old: RuleSet, new: RuleSet, found: list[RuleDiff], replayed: list[Replayed]) -> dict[str, Any]:
    """Everything the page prints."""
    matter = [f for f in found if f.direction is not Direction.EDITORIAL]
    matter.sort(key=lambda f: [Direction.LOOSER, Direction.CHANGED, Direction.STRICTER].index(f.direction))
    flips = [r for r in replayed if r.changed]
    layers = [] if new.profile is None else new.profile.layers
    return {
        "old": _named(old),
        "new": _named(new),
        "counts": {d.value: sum(f.direction is d for f in matter) for d in (Direction.LOOSER, Direction.STRICTER)},
        "changes": [
            {"what": f"{f.what} {f.id}" if f.what != "rule" else f.id, "title": f.title, "direction": f.direction.value,
             "said": "; ".join(c.what for c in f.changes) or f.kind, "because": _because(new, f)}
            for f in matter[:_MOST]
        ],
        "more_changes": max(0, len(matter) - _MOST),
        "replayed": len(replayed),
        "flips": [
            {"name": r.name, "before": _word(r.before), "after": _word(r.after), "shown": sorted(r.shown),
             "marked": sorted(r.marked), "why": r.why}
            for r in flips[:_MOST]
        ],
        "more_flips": max(0, len(flips) - _MOST),
        "layers": [{"id": la.id, "level": la.level, "title": la.title, "loosens": len(la.loosened)} for la in layers],
        "signed": sorted(d.id for d in new.decisions.values() if d.signed is not None),
        "unsigned": sum(d.signed is None for d in new.decisions.values()),
        "minimum": shown(new.constants["minimum"]) if "minimum" in new.constants else None,
    }  # fmt: skip


def _named(ruleset: RuleSet) -> dict[str, str]:
    layer = f" with layer {ruleset.profile.id}" if ruleset.profile is not None else ""
    return {"name": f"{ruleset.name}{layer}", "sha256": ruleset.sha256, "state": ruleset.state}


def _word(effect: str) -> str:
    return _LEAVES.get(effect, "leaves")


def _because(new: RuleSet, one: RuleDiff) -> str:
    """Why: the decisions behind a rule, and the clause behind a constant."""
    if one.what == "constant" and one.id in new.constants:
        return new.constants[one.id].clause
    rule = next((r for r in new.rules if one.what == "rule" and r.id == one.id), None)
    return "" if rule is None else ", ".join((*rule.source, *rule.decision))


def render_note(old: RuleSet, new: RuleSet, found: list[RuleDiff], replayed: list[Replayed], *, asked: bool) -> str:
    """The page, without scripts."""
    return render(TEMPLATE, {**note_data(old, new, found, replayed), "asked": asked})
