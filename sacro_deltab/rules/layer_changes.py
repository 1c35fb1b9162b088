"""One rule changed by a layer: what the entry asks for, and whether it only tightens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ..base.findings import Effect
from .fits import read_conditions
from .marked_yaml import MarkedFile, Problem
from .model import Rule, RuleSet
from .strictness import Change, Direction, rule_changes


@dataclass(frozen=True)
class Changed:
    """A rule as a layer leaves it, in words, and whether that lets more through."""

    rule: Rule
    said: str
    loosens: bool
    outputs: frozenset[str]


def changed_rule(
    words: RuleSet, marked: MarkedFile, key: str, index: int, old: Rule, *, signed: bool, again: bool
) -> Changed | None:
    """The rule after one entry of `tighten`, `loosen` or `retire`; None where it may not be so (problems say why)."""
    entry = marked.data[key][index]
    before = len(marked.problems)
    new = replace(old, status="deprecated") if key == "retire" else _Entry(words, marked, key, index, old).applied()
    if len(marked.problems) > before:
        return None
    changes = [c for c in rule_changes(old, new) if c.direction is not Direction.EDITORIAL]
    beyond = [c for c in changes if c.direction is not Direction.STRICTER]
    if again and key == "tighten" and (beyond or not changes):
        return None  # a layer above it made the rule as strict already
    if not changes:
        marked.problems.append(Problem(marked.place(key, index), f"changes nothing in {old.id}", old.id))
        return None
    if beyond and (key == "tighten" or not signed):
        _refuse(marked, key, index, entry, old, beyond)
        return None
    outputs = old.outputs | new.outputs
    return Changed(new, f"{old.id}: {'; '.join(c.what for c in changes)}", bool(beyond), outputs)


def _refuse(marked: MarkedFile, key: str, index: int, entry: dict[str, Any], old: Rule, beyond: list[Change]) -> None:
    for change in beyond:
        word = "loosens" if change.direction is Direction.LOOSER else "does not only tighten"
        what = f"the layer {word} {old.id}: {change.what}"
        if key != "tighten":
            what += ": only a layer that the committee signed may"
        where = marked.key_place(key, index, _key_of(entry, change.what))
        marked.problems.append(Problem(where, what, old.id))


def _key_of(entry: dict[str, Any], what: str) -> str:
    if what.startswith("when ") and "when" in entry:
        return "when"
    return next((k for k in ("require", "round", "otherwise", "waivable", "when") if k in entry), "rule")


@dataclass(frozen=True)
class _Entry:
    """One entry, its rule, and the file that problems are noted in."""

    words: RuleSet
    marked: MarkedFile
    key: str
    index: int
    old: Rule

    def wrong(self, what: str, *path: str, at_key: bool = True) -> None:
        where = (self.key, self.index, *path)
        place = self.marked.key_place(*where) if at_key else self.marked.place(*where)
        self.marked.problems.append(Problem(place, what, self.old.id))

    def applied(self) -> Rule:
        """The rule with everything that the entry says."""
        entry, old = self.marked.data[self.key][self.index], self.old
        new = old
        for part in ("require", "when"):
            if part not in entry:
                continue
            if part == "require" and old.verb != "require":
                self.wrong(f"{old.id} requires nothing; it can be tightened by 'when'", part)
                continue
            where = (self.key, self.index, part)
            parsed, wrong = read_conditions(self.marked, where, entry[part], self.words, allow_named=part == "require")
            self.marked.problems += wrong
            kept = tuple(c for c in getattr(old, part) if c.fact not in entry[part])
            new = replace(new, require=kept + parsed) if part == "require" else replace(new, when=kept + parsed)
        if "otherwise" in entry:
            if old.verb != "require":
                self.wrong(f"{old.id} has no 'otherwise'", "otherwise")
            new = replace(new, otherwise=Effect(entry["otherwise"]) if old.verb == "require" else None)
        if "waivable" in entry:
            new = replace(new, waivable=entry["waivable"])
        if "round" in entry and old.deed != "round":
            self.wrong(f"{old.id} rounds nothing", "round")
        elif "round" in entry:
            new = replace(new, deed_args=MappingProxyType(self._rounding(entry["round"])))
        return new

    def _rounding(self, wanted: dict[str, Any]) -> dict[str, Any]:
        args, old = dict(self.old.deed_args), self.old
        for name, value in wanted.items():
            fine = name in args and name != "part" and isinstance(value, int) and not isinstance(value, bool)
            if name in old.deed_constants:
                constant = old.deed_constants[name]
                what = f"{old.id} rounds by the constant {constant}: set it under constants, for all rules"
                self.wrong(what, "round", name, at_key=False)
            elif not fine or value < (0 if name == "decimal_places" else 1):
                self.wrong(f"{old.id} does not round by {name!r} like that", "round", name, at_key=False)
            else:
                args[name] = value
        return args
