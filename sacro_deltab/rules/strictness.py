"""Stricter or looser: the one comparison that profiles and `rules diff` both rest on.

Conditions are compared as sets of admitted values, tried at every limit, just beside it and between; for closed
intervals and short lists of words that is exact. Named limits are compared by their known order only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any

from ..base.findings import Effect
from .comparators import COMPARATORS, compare
from .limits import AT_LEAST_ORDER, AT_MOST_ORDER
from .model import Condition, Rule


class Direction(Enum):
    """How a change compares with what was there."""

    STRICTER = "STRICTER"
    LOOSER = "LOOSER"
    CHANGED = "CHANGED"  # neither: some outputs fare better, others worse, or the result differs
    EDITORIAL = "EDITORIAL"  # no verdict can differ


@dataclass(frozen=True)
class Change:
    """One difference between two forms of a rule, in words."""

    what: str
    direction: Direction


_WAIVABLE = ("by_dac", "by_dac_individual", "never")


def condition_words(condition: Condition) -> str:
    """`n at least 100`."""
    limit = condition.limit
    if isinstance(limit, tuple):
        shown = "[" + ", ".join(str(v).lower() if isinstance(v, bool) else str(v) for v in limit) + "]"
    else:
        shown = str(limit).lower() if isinstance(limit, bool) else str(limit)
    comparator = COMPARATORS[condition.comparator]
    word = "is" if condition.comparator == "is" else comparator.reads
    return f"{condition.fact} {word} {shown}"


def admits(conditions: Sequence[Condition], value: Any) -> bool:
    """Whether `value` meets all the conditions (none of them named)."""
    return all(compare(c.comparator, value, c.limit) for c in conditions)


def samples(conditions: Iterable[Condition]) -> list[Any]:
    """Values at, beside and between all the limits, and one outside them all."""
    numbers: set[float] = set()
    others: list[Any] = ["\0 any other word", True, False]
    for c in conditions:
        for one in c.limit if isinstance(c.limit, tuple) else (c.limit,):
            if isinstance(one, (bool, str)):
                others.append(one)
            else:
                numbers.add(float(one))
    if not numbers:
        return others
    points = sorted(numbers)
    between = [(a + b) / 2 for a, b in pairwise(points)]
    nudges = [p + d for p in points for d in (-abs(p) * 1e-12 - 1e-300, abs(p) * 1e-12 + 1e-300)]
    return [*points, *between, *nudges, points[0] - 1.0, points[-1] + 1.0]


def compare_sets(old: Sequence[Condition], new: Sequence[Condition]) -> Direction | None:
    """Direction of the set of admitted values: narrower is STRICTER; None if equal."""
    if any(c.named for c in (*old, *new)):
        return _compare_named(old, new)
    values = samples((*old, *new))
    gains = any(admits(new, v) and not admits(old, v) for v in values)
    loses = any(admits(old, v) and not admits(new, v) for v in values)
    if gains and loses:
        return Direction.CHANGED
    if loses:
        return Direction.STRICTER
    return Direction.LOOSER if gains else None


def _compare_named(old: Sequence[Condition], new: Sequence[Condition]) -> Direction | None:
    if [c.key for c in old] == [c.key for c in new]:
        return None
    if len(old) == len(new) == 1 and old[0].comparator == new[0].comparator:
        order = {"at_least": AT_LEAST_ORDER, "at_most": AT_MOST_ORDER}.get(old[0].comparator, ())
        if (new[0].limit, old[0].limit) in order:
            return Direction.STRICTER
        if (old[0].limit, new[0].limit) in order:
            return Direction.LOOSER
    return Direction.CHANGED


def _by_fact(conditions: tuple[Condition, ...]) -> dict[str, list[Condition]]:
    out: dict[str, list[Condition]] = {}
    for c in conditions:
        out.setdefault(c.fact, []).append(c)
    return out


_TURN = {Direction.STRICTER: Direction.LOOSER, Direction.LOOSER: Direction.STRICTER}


def _condition_changes(old: tuple[Condition, ...], new: tuple[Condition, ...], *, when: bool) -> list[Change]:
    """A narrower `require` is stricter; a narrower `when` lets the rule speak less often, so it is looser."""
    before, after = _by_fact(old), _by_fact(new)
    word = "when " if when else ""
    out = []
    for fact in dict.fromkeys([*before, *after]):
        if fact not in after:
            direction, what = Direction.LOOSER, f"{word}{_joined(before[fact])} dropped"
        elif fact not in before:
            direction, what = Direction.STRICTER, f"{word}{_joined(after[fact])} added"
        else:
            found = compare_sets(before[fact], after[fact])
            if found is None:
                continue
            direction, what = found, f"{word}{_joined(before[fact])} → {_joined(after[fact])}"
        out.append(Change(what, _TURN.get(direction, direction) if when else direction))
    return out


def _joined(conditions: list[Condition]) -> str:
    return " and ".join(condition_words(c) for c in conditions)


def restricts(rule: Rule) -> bool:
    """Whether the rule can only make a verdict worse (everything but rounding and labels)."""
    return rule.deed not in ("round", "label", "label_band")


def rule_changes(old: Rule, new: Rule) -> list[Change]:
    """Every difference between two forms of one rule."""
    out = _condition_changes(old.require, new.require, when=False)
    whens = _condition_changes(old.when, new.when, when=True)
    if not (restricts(old) and restricts(new)):
        whens = [Change(c.what, Direction.CHANGED) for c in whens]
    out += whens
    out += _alternatives(old, new)
    out += _verb_changes(old, new)
    out += _scope_changes(old, new)
    if old.waivable != new.waivable:
        up = _WAIVABLE.index(new.waivable) > _WAIVABLE.index(old.waivable)
        direction = Direction.STRICTER if up else Direction.LOOSER
        out.append(Change(f"waivable {old.waivable} → {new.waivable}", direction))
    if old.in_force != new.in_force:
        direction = Direction.STRICTER if new.in_force else Direction.LOOSER
        if not restricts(old):
            direction = Direction.CHANGED
        out.append(Change(f"status {old.status} → {new.status}", direction))
    editorial = ("title", "note", "remedy", "source", "decision", "ask", "section", "replaced_by", "direction")
    for name in editorial:
        if getattr(old, name) != getattr(new, name):
            out.append(Change(f"{name} reworded", Direction.EDITORIAL))
    if (old.status != new.status) and old.in_force == new.in_force:
        out.append(Change(f"status {old.status} → {new.status}", Direction.EDITORIAL))
    if _examples(old) != _examples(new):
        out.append(Change("examples changed", Direction.EDITORIAL))
    return out


def _alternatives(old: Rule, new: Rule) -> list[Change]:
    """More alternatives under `require` let more through; under `when` they let the rule speak more often."""
    out = []
    for name, more in (("any_require", Direction.LOOSER), ("any_when", Direction.STRICTER)):
        before, after = ({frozenset(c.key for c in one) for one in getattr(r, name)} for r in (old, new))
        if before == after:
            continue
        direction = Direction.CHANGED
        if before and after and restricts(new):
            direction = more if before < after else _TURN[more] if after < before else Direction.CHANGED
        out.append(Change(f"any_of of {name.removeprefix('any_')} differs", direction))
    return out


def _examples(rule: Rule) -> list[tuple[str, str | None, str]]:
    return [(repr(dict(e.given)), e.expect, repr(e.becomes)) for e in rule.examples]


def _verb_changes(old: Rule, new: Rule) -> list[Change]:
    if (old.verb, old.deed) != (new.verb, new.deed):
        before, after = old.deed or old.verb, new.deed or new.verb
        return [Change(f"{before} → {after}", Direction.CHANGED)]
    out = []
    if old.otherwise is not new.otherwise and old.otherwise is not None and new.otherwise is not None:
        up = new.otherwise is Effect.BLOCK
        what = f"otherwise {old.otherwise.value} → {new.otherwise.value}"
        out.append(Change(what, Direction.STRICTER if up else Direction.LOOSER))
    if dict(old.deed_args) != dict(new.deed_args):
        out.append(_deed_change(old, new))
    if old.for_each != new.for_each:
        out.append(Change(f"for_each {old.for_each} → {new.for_each}", Direction.CHANGED))
    return out


def _deed_change(old: Rule, new: Rule) -> Change:
    a, b = dict(old.deed_args), dict(new.deed_args)
    kinds = [k for k in ("decimal_places", "significant_figures", "to_nearest") if k in a and k in b]
    if old.deed != "round" or len(kinds) != 1 or a["part"] != b["part"]:
        return Change(f"{old.deed} differently", Direction.CHANGED)
    kind = kinds[0]
    coarser = b[kind] % a[kind] == 0 if kind == "to_nearest" else b[kind] < a[kind]
    finer = a[kind] % b[kind] == 0 if kind == "to_nearest" else b[kind] > a[kind]
    direction = Direction.STRICTER if coarser else Direction.LOOSER if finer else Direction.CHANGED
    return Change(f"round to {kind} {a[kind]} → {b[kind]}", direction)


def _scope_changes(old: Rule, new: Rule) -> list[Change]:
    out = []
    for gone, word, direction in (
        (old.outputs - new.outputs, "no longer about", Direction.LOOSER),
        (new.outputs - old.outputs, "now also about", Direction.STRICTER),
    ):
        if gone:
            turned = direction if restricts(new) else Direction.CHANGED
            out.append(Change(f"{word} {', '.join(sorted(gone))}", turned))
    return out


def overall(changes: Iterable[Change]) -> Direction:
    """One word for a rule: STRICTER or LOOSER where all that matters agrees, CHANGED where it does not."""
    kinds = {c.direction for c in changes} - {Direction.EDITORIAL}
    if not kinds:
        return Direction.EDITORIAL
    return kinds.pop() if len(kinds) == 1 else Direction.CHANGED
