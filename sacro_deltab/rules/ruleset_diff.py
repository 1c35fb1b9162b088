"""`rules diff`: two rule sets rule by rule, STRICTER or LOOSER, and stored outputs judged again by both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from .model import FactSpec, Rule, RuleSet
from .replay import UNKNOWN, Replayed
from .strictness import Change, Direction, overall, restricts, rule_changes

_FACT_FIELDS = (  # of which a change may change verdicts
    *("by", "type", "unit", "values", "minimum", "maximum", "above", "below"),
    *("raw", "after", "optional", "part_value"),
)


@dataclass(frozen=True)
class RuleDiff:
    """One rule, parameter, output type or fact that differs; `kind` is added, removed, changed or editorial."""

    what: str  # rule | parameter | output | fact | decision | clause
    id: str
    kind: str
    title: str
    direction: Direction
    changes: tuple[Change, ...] = ()


def diff(old: RuleSet, new: RuleSet) -> list[RuleDiff]:
    """Everything in which two rule sets differ, rules first."""
    out = list(_meta(old, new))
    out += _constants(old, new)
    out += _rules(old, new)
    out += _parameters(old, new)
    out += _names("output", old.outputs, new.outputs, Direction.LOOSER, Direction.STRICTER)
    out += _facts(old.facts, new.facts)
    out += _names("form", old.forms, new.forms, Direction.STRICTER, Direction.LOOSER)
    out += _names("decision", old.decisions, new.decisions, Direction.EDITORIAL, Direction.EDITORIAL)
    out += _names("clause", old.clauses, new.clauses, Direction.EDITORIAL, Direction.EDITORIAL)
    return out


def _meta(old: RuleSet, new: RuleSet) -> Iterator[RuleDiff]:
    """What the rule set says of itself: a status changes what may be relied on, the mark what a reader sees."""
    for name, direction in (
        ("status", Direction.CHANGED),
        ("mark", Direction.CHANGED),
        ("language", Direction.CHANGED),
    ):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield RuleDiff("rule set", name, "changed", "", direction, (Change(f"{before} → {after}", direction),))


def _moved(before: float, after: float, stricter: str) -> Direction:
    if stricter == "none":
        return Direction.CHANGED
    return Direction.STRICTER if (after > before) == (stricter == "higher") else Direction.LOOSER


def _constants(old: RuleSet, new: RuleSet) -> Iterator[RuleDiff]:
    for name in dict.fromkeys([*old.constants, *new.constants]):
        a, b = old.constants.get(name), new.constants.get(name)
        if a is None or b is None:
            yield RuleDiff("constant", name, "added" if a is None else "removed", "", Direction.EDITORIAL)
        elif a.value != b.value:
            direction = _moved(a.value, b.value, b.stricter)
            yield RuleDiff(
                "constant", name, "changed", b.means, direction, (Change(f"{a.value} → {b.value}", direction),)
            )


def _rules(old: RuleSet, new: RuleSet) -> Iterator[RuleDiff]:
    """Rule by rule, for the kinds that both sets know: a new kind is looser by itself, whatever rules it gets."""
    both = old.output_types & new.output_types
    before = {r.id: replace(r, outputs=r.outputs & both) for r in old.rules}
    after = {r.id: replace(r, outputs=r.outputs & both) for r in new.rules}
    for rid in dict.fromkeys([*before, *after]):
        if rid not in after:
            yield RuleDiff("rule", rid, "removed", before[rid].title, _gone(before[rid], Direction.LOOSER))
        elif rid not in before:
            direction = _gone(after[rid], Direction.STRICTER) if after[rid].outputs else Direction.EDITORIAL
            yield RuleDiff("rule", rid, "added", after[rid].title, direction)
        else:
            changes = tuple(rule_changes(before[rid], after[rid]))
            if changes:
                direction = overall(changes)
                kind = "editorial" if direction is Direction.EDITORIAL else "changed"
                yield RuleDiff("rule", rid, kind, after[rid].title, direction, changes)


def _gone(rule: Rule, direction: Direction) -> Direction:
    if not rule.in_force:
        return Direction.EDITORIAL
    return direction if restricts(rule) else Direction.CHANGED


def _parameters(old: RuleSet, new: RuleSet) -> Iterator[RuleDiff]:
    for name in dict.fromkeys([*old.parameters, *new.parameters]):
        before, after = old.parameters.get(name), new.parameters.get(name)
        if before == after:
            continue
        spec = new.parameter_specs.get(name) or old.parameter_specs.get(name)
        direction = Direction.CHANGED
        if spec is not None and _source(old, name) == _source(new, name) != (None, None, None):
            continue  # shown with its constant or rule
        if spec is not None and isinstance(before, (int, float)) and isinstance(after, (int, float)):
            direction = _moved(before, after, spec.stricter)
        title = spec.means if spec is not None else ""
        change = Change(f"{before} → {after}", direction)
        yield RuleDiff("parameter", name, "changed", title, direction, (change,))


def _source(ruleset: RuleSet, name: str) -> tuple[str | None, str | None, str | None]:
    """Where a parameter's number comes from."""
    spec = ruleset.parameter_specs.get(name)
    return (None, None, None) if spec is None else (spec.rule, spec.fact or spec.rounding, spec.constant)


def _names(
    what: str, old: Mapping[str, Any], new: Mapping[str, Any], added: Direction, removed: Direction
) -> Iterator[RuleDiff]:
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            yield RuleDiff(what, name, "removed", "", removed)
        elif name not in old:
            yield RuleDiff(what, name, "added", "", added)
        elif words := _reworded(old[name], new[name]):
            yield RuleDiff(what, name, "editorial", "", Direction.EDITORIAL, words)


def _reworded(old: Any, new: Any) -> tuple[Change, ...]:
    """Fields of a decision, clause or output type that differ. What follows for verdicts is shown with the rules."""
    names = [f.name for f in fields(old) if f.name != "place" and getattr(old, f.name) != getattr(new, f.name)]
    return tuple(Change(f"{name} reworded", Direction.EDITORIAL) for name in names)


def _facts(old: Mapping[str, FactSpec], new: Mapping[str, FactSpec]) -> Iterator[RuleDiff]:
    for name in dict.fromkeys([*old, *new]):
        a, b = old.get(name), new.get(name)
        if a is None or b is None:
            yield RuleDiff("fact", name, "added" if a is None else "removed", "", Direction.EDITORIAL)
            continue
        changes = []
        if a.accept != b.accept:
            direction = Direction.CHANGED
            if a.accept < b.accept:
                direction = Direction.LOOSER
            elif a.accept > b.accept:
                direction = Direction.STRICTER
            words = [", ".join(sorted(p.value for p in s.accept)) for s in (a, b)]
            changes.append(Change(f"may be said by {words[0]} → {words[1]}", direction))
        for field in _FACT_FIELDS:
            if getattr(a, field) != getattr(b, field):
                changes.append(Change(f"{field} {getattr(a, field)} → {getattr(b, field)}", Direction.CHANGED))
        if bool(a.ask) != bool(b.ask):
            words = ["it blocks" if not s.ask else "it is asked of the checker" for s in (a, b)]
            direction = Direction.LOOSER if b.ask else Direction.STRICTER
            changes.append(Change(f"where nobody says it: {words[0]} → {words[1]}", direction))
        for field in ("means", "reads", *(["ask"] if a.ask and b.ask else [])):
            if getattr(a, field) != getattr(b, field):
                changes.append(Change(f"{field} reworded", Direction.EDITORIAL))
        if changes:
            direction = overall(changes)
            kind = "editorial" if direction is Direction.EDITORIAL else "changed"
            yield RuleDiff("fact", name, kind, b.means, direction, tuple(changes))


def to_lines(found: list[RuleDiff], replayed: list[Replayed], *, asked: bool) -> list[str]:
    """For people."""
    if not found:
        out = ["No difference."]
    else:
        out = []
        for one in found:
            what = one.id if one.what == "rule" else f"{one.what} {one.id}"
            said = "; ".join(f"{c.what} ({c.direction.value})" for c in one.changes) or one.kind
            out.append(f"{one.direction.value:<9} {one.kind:<9} {what} {one.title}: {said}")
        counts = {d: sum(f.direction is d for f in found) for d in Direction}
        out.append(", ".join(f"{n} {d.value}" for d, n in counts.items() if n))
    if asked:
        flips = [r for r in replayed if r.changed]
        unknown = sum(r.after == UNKNOWN for r in replayed)
        said = f", of which {unknown} cannot be known" if unknown else ""
        out.append(f"Replayed on {len(replayed)} stored outputs: {len(flips)} judged differently{said}.")
        out += [f"  {r.name}  {r.before} → {r.after}{r.groups()}  ({r.path})" for r in flips]
    return out


def to_json(
    old: RuleSet, new: RuleSet, found: list[RuleDiff], replayed: list[Replayed], *, asked: bool
) -> dict[str, Any]:
    """For machines."""
    data: dict[str, Any] = {
        "old": old.statement(),
        "new": new.statement(),
        "differences": [
            {
                "what": f.what,
                "id": f.id,
                "kind": f.kind,
                "title": f.title,
                "direction": f.direction.value,
                "changes": [{"what": c.what, "direction": c.direction.value} for c in f.changes],
            }
            for f in found
        ],
    }
    if asked:
        data["replayed"] = [
            {
                "path": r.path,
                "output": r.name,
                "before": r.before,
                "after": r.after,
                "changed": r.changed,
                "shown": sorted(r.shown),
                "marked": sorted(r.marked),
                "why_unknown": r.why,
            }
            for r in replayed
        ]
    return data
