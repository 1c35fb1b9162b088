"""Stored outputs under other rules: judged again, and where a session kept what it was asked for, made again.

Stored facts hold what the old rules made of the tables: which cells are marked, what follows from them. A session's
evidence holds what was asked for besides (`session.asked`), and whoever hands in `rerun` has suppression, rounding and
attacker run again on it. Without that the answer is `unknown` where marks or roundings differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..base.findings import Effect
from .digests import rule_digest
from .engine import decide
from .facts import Facts
from .model import RuleSet
from .stored import below

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Again:
    """One output made again under other rules: its effect, and its groups that are marked then."""

    effect: str
    marked: frozenset[str]
    derivable: frozenset[str] = frozenset()  # marked groups that a reader works out, by the law compared with


# of one evidence file under a law, attacked as another law has it; None: it cannot be known
Rerun = Callable[[Path, RuleSet, RuleSet], Mapping[str, Again | None] | None]


@dataclass(frozen=True)
class Replayed:
    """One stored output under both rule sets; `shown`, `marked`: groups that become readable, or no longer are."""

    path: str
    name: str
    before: str
    after: str
    shown: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    why: str = ""
    derivable: frozenset[str] = frozenset()

    @property
    def changed(self) -> bool:
        """Whether the effect, or what a reader sees of the groups, differs."""
        return self.before != self.after or bool(self.shown or self.marked or self.derivable)

    @property
    def leaves(self) -> int:
        """Above 0 where more leaves than before, or without a person, or with groups readable; below 0 where less."""
        inside, free = Effect.WITHHOLD.rank, Effect.SUPPRESS.rank
        before, after = (sorted((inside, Effect(e).rank, free))[1] for e in (self.before, self.after))
        return after - before or len(self.shown | self.derivable) - len(self.marked)

    def groups(self) -> str:
        """The groups that a reader sees otherwise, in words."""
        said = [f"shows {', '.join(sorted(self.shown))}"] if self.shown else []
        said += [f"marks {', '.join(sorted(self.marked))}"] if self.marked else []
        said += [f"lets {', '.join(sorted(self.derivable))} be worked out"] if self.derivable else []
        return f" ({'; '.join(said)})" if said else ""


def replay(old: RuleSet, new: RuleSet, folders: list[Path], rerun: Rerun | None = None) -> list[Replayed]:
    """Judge every stored output below the given folders by both rule sets; waivers are left out."""
    otherwise = tables_change(old, new)
    made: dict[Path, tuple[Mapping[str, Again | None], Mapping[str, Again | None]] | None] = {}
    shaken: set[Path] = set()  # files in which a table may have other marks now
    out = []
    for path, facts in below(folders):
        if path not in made:
            made[path] = None if rerun is None or not otherwise else _both(path, old, new, rerun)
        pair = made[path]
        if pair is not None and facts.output_name in pair[1]:
            out.append(_again(path, facts, old, pair[0].get(facts.output_name), pair[1][facts.output_name]))
            continue
        before, after = decide(old, facts).effect.value, decide(new, facts).effect.value
        why = ""
        if pair is None:
            if otherwise and _is_table(new, facts):
                shaken.add(path)
            rests = path in shaken and (Effect(after) is not Effect.BLOCK or _rests_on_tables(new, facts))
            after, why = (UNKNOWN, "the session did not keep what it was asked for") if rests else (after, "")
        out.append(Replayed(str(path), facts.output_name, before, after, why=why))
    return out


def _both(
    path: Path, old: RuleSet, new: RuleSet, rerun: Rerun
) -> tuple[Mapping[str, Again | None], Mapping[str, Again | None]] | None:
    before, after = rerun(path, old, old), rerun(path, new, old)
    return None if before is None or after is None else (before, after)


def _again(path: Path, facts: Facts, old: RuleSet, before: Again | None, after: Again | None) -> Replayed:
    if before is None or after is None:
        was = decide(old, facts).effect.value
        return Replayed(str(path), facts.output_name, was, UNKNOWN, why="it rests on single people, who are not kept")
    leaves = {Effect.BLOCK.value, Effect.WITHHOLD.value}
    shown = before.marked - after.marked if after.effect not in leaves else frozenset()
    marked = after.marked - before.marked if before.effect not in leaves else frozenset()
    return Replayed(str(path), facts.output_name, before.effect, after.effect, shown, marked, derivable=after.derivable)


def _is_table(ruleset: RuleSet, facts: Facts) -> bool:
    known = ruleset.rules_for(facts.output_type) if facts.output_type in ruleset.outputs else ()
    return any(rule.deed in ("suppress", "suppress_complement") and rule.for_each != "quantile" for rule in known)


def _rests_on_tables(ruleset: RuleSet, facts: Facts) -> bool:
    """Whether a block may come from marks that the new set would place otherwise."""
    after = {name for name, spec in ruleset.facts.items() if spec.after}
    blocking = {r for f in decide(ruleset, facts).findings if f.effect is Effect.BLOCK for r in f.rules}
    return all(any(c.fact in after for c in ruleset.rule(r).conditions) for r in blocking)


def tables_change(old: RuleSet, new: RuleSet) -> bool:
    """Whether the new set marks cells, protects or rounds otherwise."""

    def deeds(ruleset: RuleSet) -> dict[str, str]:
        return {r.id: rule_digest(ruleset, r) for r in ruleset.rules if r.in_force and r.verb == "do"}

    return dict(old.parameters) != dict(new.parameters) or deeds(old) != deeds(new)
