"""What goes to a person because of the people it is about, though nothing follows from it by adding and subtracting.

Quantiles and other values of nearly the same people, and deltas that leave once more as a feature, are named to the
researcher and the checker; how many people a pair is about stays inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..measure.numbers import Moment, PrintedCell
from ..measure.people import Ints
from ..measure.sums import smallest

if TYPE_CHECKING:
    from .core import SessionCore
    from .entries import Candidate


@dataclass
class Nearness:
    """Fewest people that a pair is about (0: the same people, with more digits; None: no pair), and sentences."""

    gap: int | None = None
    notes: list[str] = field(default_factory=list)

    def add(self, gap: int, text: str) -> None:
        """One pair."""
        self.gap = gap if self.gap is None else min(self.gap, gap)
        if text not in self.notes and len(self.notes) < 12:
            self.notes.append(text)


def nearness(session: SessionCore, candidate: Candidate) -> Nearness:
    """Compare a candidate with everything the session has recorded to leave."""
    out, least = Nearness(), int(session.ruleset.parameters["min_n"])
    linked = session.state.linked
    told = [m for known in linked.moments.values() for m in known]
    cells = [c for c in linked.cells.values() if c.variable is not None and c.id not in linked.suppressed]
    mine = [c for c in candidate.cells if c.variable is not None and c.members.size >= least]
    for own, others in ((candidate.moments, (*told, *candidate.moments)), (told, mine)):
        for quantiles in (m for m in own if not m.exact):
            _quantiles(out, candidate.document.name, quantiles, others, cells, least)
    _once_more(out, candidate, cells, told)
    _grouping_again(out, candidate, [*linked.cells.values()], told)
    _more_quantiles(out, session, candidate, least)
    _other_variables(out, candidate.document.name, mine, cells, least)
    return out


def _quantiles(
    out: Nearness,
    name: str,
    quantiles: Moment,
    others: Iterable[Moment | PrintedCell],
    cells: Iterable[PrintedCell],
    least: int,
) -> None:
    """Quantiles beside any statistic of the same values of nearly the same people."""
    for other in (*others, *cells):
        variable = other.variables[0] if isinstance(other, Moment) else other.variable
        if other.output == quantiles.output or variable != quantiles.variables[0]:
            continue
        near = _apart(quantiles.members, other.members)
        if 0 < near < least and name in (other.output, quantiles.output):
            first = quantiles.output if other.output == name else other.output
            out.add(near, f"{first} and {name}: statistics about nearly the same people; release one of the two")


def _once_more(out: Nearness, candidate: Candidate, cells: Iterable[PrintedCell], told: Iterable[Moment]) -> None:
    """A feature that is a table's delta would print it with more digits than a delta may have, and in either order."""
    tables = {(c.variable, c.output) for c in cells if c.statistic is not None}
    tables |= {(c.variable, c.output) for c in candidate.cells if c.statistic is not None}
    features = [m for m in (*told, *candidate.moments) if len(m.variables) == 1 and m.digits]
    mine = {m.variables[0]: m for m in candidate.moments if len(m.variables) == 1 and m.digits}
    for old in features:
        new = mine.get(old.variables[0])
        if new is None or new is old or not (new.shifted or old.shifted):
            continue
        if new.members.tobytes() == old.members.tobytes():
            out.add(0, f"{old.output} and {new.output}: the same feature in two units, which is more digits of it")
    for moment in features:
        for variable, output in tables:
            if variable == moment.variables[0] and candidate.document.name in (moment.output, output):
                first = output if moment.output == candidate.document.name else moment.output
                out.add(0, f"{first} and {candidate.document.name}: the same deltas, once as a feature")


def _grouping_again(out: Nearness, candidate: Candidate, cells: Iterable[PrintedCell], told: Iterable[Moment]) -> None:
    """A statistic that tells of some groups of a table taken together is that table in another form: a person looks,
    though the cells are chosen so that nothing follows."""
    tables: dict[tuple[str, str | None], list[Ints]] = {}
    for cell in (*cells, *candidate.cells):
        if cell.role == "interior" and cell.statistic is not None:
            tables.setdefault((cell.output, cell.variable), []).append(cell.members)
    for moment in (*told, *candidate.moments):
        for (output, variable), groups in tables.items():
            ours = candidate.document.name in (moment.output, output)
            if moment.digits or not ours or moment.variables != (variable,):
                continue
            inside = [np.isin(group, moment.members, assume_unique=True) for group in groups if group.size]
            some = sum(bool(here.any()) for here in inside)
            if all(here.all() or not here.any() for here in inside) and 0 < some < len(inside):
                first = output if moment.output == candidate.document.name else moment.output
                out.add(0, f"{first} and {candidate.document.name}: some groups of the table in another form")


def _more_quantiles(out: Nearness, session: SessionCore, candidate: Candidate, least: int) -> None:
    """Quantiles of the same people spread over outputs: together they may enclose a few people."""
    new = candidate.trace
    if new is None or not new.percents:
        return
    mine = candidate.moments[0]
    for old in session.state.traces:
        told = session.state.linked.moments.get(old.output, ())
        if not old.percents or not any(
            m.variables == mine.variables and m.members.tobytes() == mine.members.tobytes() for m in told
        ):
            continue
        n = mine.members.size
        percents = sorted({*new.percents, *old.percents})
        together = min(((b - a) * n / 100 for a, b in pairwise(percents)), default=math.inf)
        if together < least or len(percents) * least > n + least:
            text = f"{old.output} and {new.output}: together these quantiles enclose few people; release one of the two"
            out.add(int(together) if together < least else 0, text)


def _other_variables(out: Nearness, name: str, mine: list[PrintedCell], theirs: list[PrintedCell], least: int) -> None:
    """Means and SDs of other values of nearly the same people: the values may be functions of one another."""
    groups: dict[str, dict[bytes, Ints]] = {}
    variables = {c.variable for c in (*mine, *theirs)}
    if not mine or len(variables) < 2:
        return
    for cell in (*theirs, *mine):
        if cell.members.size >= least:
            groups.setdefault(cell.output, {})[cell.members.tobytes()] = cell.members
    found = smallest(groups, least)
    if found is not None and name in found.outputs:
        first = " and ".join(o for o in found.outputs if o != name) or name
        out.add(found.n, f"{first} and {name}: statistics of other values about nearly the same people")


def _apart(one: Ints, other: Ints) -> int:
    """People in one of the two groups only."""
    return int(np.setxor1d(one, other, assume_unique=True).size)
