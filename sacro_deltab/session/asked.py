"""What a session was asked for, kept in `inside/` so that other rules can be tried on it: replay.

People are not kept. Those with the same memberships in everything asked for are one atom: how many, and of each
variable the sum and the sum of squares. A replay puts stand-ins with these sums in their place and lets the very
planner of the session choose cells, round and attack under the other rules. What rests on single people (known sums of
a model's training people, earlier releases) is said to be unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..judging.judge import CELL_KIND, Judged, judge_output
from ..judging.shape import shaped
from ..measure.context import Context
from ..measure.linked import LinkedTables
from ..measure.measure import frequency_check, nk_check
from ..measure.numbers import Moment, PrintedCell
from ..measure.people import Floats, Ints
from ..outputs.document import OutputDocument
from ..rules import RuleSet
from ..rules.facts import Fact, Facts, FactValue, Provider, facts_from_json
from ..rules.replay import Again
from ..tables import TablePolicy
from .entries import Candidate
from .planning import Planner

if TYPE_CHECKING:
    from .core import SessionCore

MOST_PLACES = 400_000  # memberships kept; of larger sessions a replay knows what the facts alone tell
_CELL = ("key", "role", "variable", "statistic", "shows_n", "any_rounded", "structural")
_MOMENT = ("label", "shows_n", "exact", "digits", "shifted")


def asked_block(session: SessionCore) -> dict[str, Any] | None:
    """The `asked` block of the evidence; None where nothing was asked for that says numbers to be attacked."""
    wanted = {e.name: session.state.wanted[e.name] for e in session.entries if e.name in session.state.wanted}
    if not wanted:
        return None
    groups = [g.members for c in wanted.values() for g in (*c.cells, *c.moments)]
    if sum(group.size for group in groups) > MOST_PLACES:
        return {"unknown": ["the session is too large for its memberships to be kept"]}
    linked = session.state.linked
    used = sorted({v for c in wanted.values() for v in _variables(c)})
    values = {name: linked.values[name] for name in used}
    atom, first = _atoms(groups, list(values.values()))
    outputs = {
        name: {
            "cells": [
                {**{k: getattr(c, k) for k in _CELL}, **_of(c.members, atom), **_nk(session, c)} for c in one.cells
            ],
            "moments": [
                {**{k: getattr(m, k) for k in _MOMENT}, "variables": list(m.variables), **_of(m.members, atom)}
                for m in one.moments
            ],
        }
        for name, one in wanted.items()
    }
    return {
        "atoms": np.bincount(atom[atom >= 0], minlength=len(first)).tolist(),
        "values": {name: _sums(column, atom, first) for name, column in values.items()},
        "outputs": outputs,
        "unknown": _unknown(session, wanted),
    }


def _variables(candidate: Candidate) -> set[str]:
    mine = {c.variable for c in candidate.cells if c.variable is not None}
    return mine | {name for m in candidate.moments for name in m.variables}


def _unknown(session: SessionCore, wanted: Mapping[str, Candidate]) -> list[str]:
    """Why a replay cannot know: what the attacker knows of single people, or from elsewhere."""
    linked = session.state.linked
    out = []
    if linked.earlier or any(cell.output not in wanted for cell in linked.cells.values()):
        out.append("numbers of these people left elsewhere")
    cells = [cell for one in wanted.values() for cell in one.cells]
    if any(linked.known_sums(v, cells) for v in {c.variable for c in cells if c.variable is not None}):
        out.append("the deltas are those of a model's own training people, whose sums are known")
    return out


def _atoms(groups: list[Ints], values: list[Floats]) -> tuple[Ints, Ints]:
    """(the atom of every person, −1 for nobody's; one person of every atom)."""
    size = 1 + max((int(g.max()) for g in groups if g.size), default=-1)
    bits = np.zeros((size, len(groups) + len(values)), dtype=bool)
    for index, group in enumerate(groups):
        bits[group, index] = True
    inside = np.flatnonzero(bits.any(axis=1))
    for index, column in enumerate(values):
        told = min(size, column.size)
        bits[:told, len(groups) + index] = np.isfinite(column[:told])
    packed = np.packbits(bits[inside], axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    atom = np.full(size, -1, dtype=np.int64)
    atom[inside] = np.asarray(inverse).reshape(-1)
    return atom, inside[first]


def _of(members: Ints, atom: Ints) -> dict[str, list[int]]:
    return {"atoms": np.unique(atom[members]).tolist()}


def _nk(session: SessionCore, cell: PrintedCell) -> dict[str, str]:
    """The dominance check of one cell, which the sums do not tell."""
    if cell.variable is None or cell.statistic is None:
        return {}
    numbers = session.ruleset.parameters
    mine = session.state.linked.values[cell.variable][cell.members]
    return {"dominance": nk_check(mine, int(numbers["nk_n"]), float(numbers["nk_k"]))}


def _sums(column: Floats, atom: Ints, first: Ints) -> list[list[float] | None]:
    """Sum and sum of squares of one variable in every atom; null where its people have no value."""
    told = min(atom.size, column.size)
    mine, here = np.where(np.isfinite(column[:told]), column[:told], 0.0), atom[:told]
    inside = here >= 0
    sums = np.bincount(here[inside], weights=mine[inside], minlength=len(first))
    squares = np.bincount(here[inside], weights=mine[inside] ** 2, minlength=len(first))
    known = [p < column.size and bool(np.isfinite(column[p])) for p in first]
    return [[float(s), float(q)] if k else None for s, q, k in zip(sums, squares, known, strict=True)]


# --- the other way ----------------------------------------------------------------------------------------------------


def replay_session(
    evidence: Mapping[str, Any], ruleset: RuleSet, by: RuleSet | None = None
) -> dict[str, Again | None] | None:
    """Every output of a session that says numbers to be attacked, under other rules; None for what cannot be known.

    None altogether where the evidence holds no `asked` block. `by`: the law by whose attacker a marked group counts
    as derivable from what then leaves.
    """
    block = evidence.get("asked")
    if not isinstance(block, Mapping):
        return None
    entries = {e["name"]: e for e in evidence["outputs"]}
    if block["unknown"]:
        return dict.fromkeys(block.get("outputs", entries))
    people, values = _stand_ins(block)
    asked = {name: one for name, one in block["outputs"].items() if name in entries}
    wanted = {name: _candidate(ruleset, entries[name], one, people) for name, one in asked.items()}
    linked = LinkedTables(TablePolicy.from_parameters(ruleset.parameters), values=values)
    planner = Planner(ruleset, linked, wanted)
    top = planner.best()
    for name in planner.alone:
        if name in top.names:
            judged = top.judged[name]
            linked.publish(wanted[name].cells, judged.suppressed, judged.complementary, wanted[name].moments)
    told = {name: _told(planner, wanted[name], top.judged.get(name) if name in top.names else None) for name in wanted}
    if by is not None:
        found = _worked_out(by, linked)
        told = {n: replace(t, derivable=found(t.marked, wanted[n])) for n, t in told.items()}
    made = evidence["session"]
    own = made["rule_set"]["sha256"] == ruleset.sha256 and made["profile"] == _layer(ruleset)
    return {n: None if own and t.effect != entries[n]["decision"]["effect"] else t for n, t in told.items()}


def _worked_out(by: RuleSet, linked: LinkedTables) -> Callable[[frozenset[str], Candidate], frozenset[str]]:
    """What another law's attacker works out of an output's marked groups, from all that leaves."""
    seen = LinkedTables(TablePolicy.from_parameters(by.parameters), values=linked.values)
    cells, gone = tuple(linked.cells.values()), frozenset(linked.suppressed)
    moments = tuple(m for told in linked.moments.values() for m in told)
    found = Context(seen, cells, moments).attack(gone)
    least = seen.policy.min_n
    printed = any(0 < c.members.size < least for c in cells if c.id not in gone)  # itself small: no news
    union = {f"a group of fewer than {least}"} if found.groups and not printed else set()

    def of(marked: frozenset[str], candidate: Candidate) -> frozenset[str]:
        fallen = {c.key for c in candidate.cells if c.id in found.fallen & gone}
        return (marked & fallen) | (union if marked and any(c.id in gone for c in candidate.cells) else set())

    return of


def _layer(ruleset: RuleSet) -> dict[str, str] | None:
    return None if ruleset.profile is None else {"id": ruleset.profile.id, "sha256": ruleset.profile.sha256}


def _told(planner: Planner, candidate: Candidate, judged: Judged | None) -> Again:
    if judged is None:  # not with the others: as it is judged beside what leaves
        context = Context(planner.linked, candidate.cells, candidate.moments)
        judged = judge_output(planner.ruleset, candidate.facts, candidate.document, table=context)
        judged = shaped(planner.ruleset, judged)
    return Again(judged.decision.effect.value, judged.suppressed)


def _stand_ins(block: Mapping[str, Any]) -> tuple[list[Ints], dict[str, Floats]]:
    """(people of every atom, values): as many as there were, with the sums that there were."""
    ends = np.cumsum(block["atoms"])
    people = [np.arange(end - n, end) for n, end in zip(block["atoms"], ends, strict=True)]
    values = {}
    for name, told in block["values"].items():
        column = np.full(int(ends[-1]) if len(ends) else 0, np.nan)
        for mine, sums in zip(people, told, strict=True):
            if sums is not None:
                column[mine] = _with_sums(mine.size, *sums)
        values[name] = column
    return people, values


def _with_sums(n: int, total: float, squares: float) -> Floats:
    """`n` numbers with this sum and this sum of squares: a mean, and one above and one below it by the same."""
    out = np.full(n, total / n)
    apart = max(0.0, squares - total * total / n)
    if n > 1:
        out[0] += np.sqrt(apart / 2)
        out[1] -= np.sqrt(apart / 2)
    return out


def _candidate(ruleset: RuleSet, entry: Mapping[str, Any], one: Mapping[str, Any], people: list[Ints]) -> Candidate:
    facts = facts_from_json(entry["facts"], recorded=False)
    document = OutputDocument.from_json(entry["raw"])

    def members(atoms: list[int]) -> Ints:
        return np.concatenate([people[a] for a in atoms]) if atoms else np.zeros(0, dtype=np.int64)

    name = str(entry["name"])
    cells = tuple(PrintedCell(name, members=members(c["atoms"]), **{k: c[k] for k in _CELL}) for c in one["cells"])
    if any(part.kind == CELL_KIND for part in facts.parts):
        facts, rounded = _table_facts(ruleset, facts, one["cells"])
        cells = tuple(replace(c, any_rounded=rounded) for c in cells)
    moments = tuple(
        Moment(name, variables=tuple(m["variables"]), members=members(m["atoms"]), **{k: m[k] for k in _MOMENT})
        for m in one["moments"]
    )
    n = facts.get("n")
    return Candidate(document, facts, cells, n=None if n is None else int(n.value), moments=moments)


def _table_facts(ruleset: RuleSet, facts: Facts, cells: list[dict[str, Any]]) -> tuple[Facts, bool]:
    """Facts that rest on which cells can be published (`measure.table_facts`), made again."""
    least, below = int(ruleset.parameters["min_n"]), int(ruleset.parameters["round_n_below"])
    counts = {p.key: int(p.facts["cell.n"].value) for p in facts.parts}
    shown = [n for n in counts.values() if n >= least]
    rounded = any(n < below for n in shown)
    new: dict[str, FactValue] = {"acro.frequency_check": frequency_check(shown, least), "table.any_n_rounded": rounded}
    checks = {c["dominance"] for c in cells if "dominance" in c and counts.get(c["key"], 0) >= least}
    if "acro.dominance_check" in facts.facts:
        new["acro.dominance_check"] = "fail" if "fail" in checks else "pass"
    return facts.with_facts(*(Fact(k, v, Provider.COMPUTED) for k, v in new.items())), rounded
