"""Which outputs give a small group away together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .circuits import Circuits
from .layout import merge_atoms
from .span import Span
from .table import Problem


@dataclass(frozen=True)
class Link:
    """Outputs that together give a small group away.

    `inside` names the group and its size; `outside` names the outputs only. `drop`: outputs of which leaving one out
    is enough, the one that costs least first (never one that has left already).
    """

    outputs: tuple[str, ...]
    cells: tuple[str, ...]
    atoms: tuple[str, ...]
    people: int
    drop: tuple[str, ...]

    @property
    def inside(self) -> str:
        """For the checker."""
        return (
            f"{_and(self.outputs)}: subtracting {_and(self.cells[:6])}"
            f"{' and more' if len(self.cells) > 6 else ''} gives a group of {self.people} "
            f"({', '.join(self.atoms[:6])}{', …' if len(self.atoms) > 6 else ''})."
        )

    @property
    def outside(self) -> str:
        """For everybody."""
        what = _and(self.outputs)
        if len(self.outputs) == 1:
            return f"{what} by itself gives a group away that is too small."
        return f"{what} together give a group away that is too small."

    @property
    def next_step(self) -> str:
        """What to do."""
        if not self.drop:
            return "Merge groups or leave out more than one of these outputs."
        return f"Leave out or change {' or '.join(self.drop)}."


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def find_links(problem: Problem, suppressed: frozenset[str] = frozenset(), *, limit: int = 20) -> tuple[Link, ...]:
    """Every way (up to `limit`, smallest groups first) to derive a group below the minimum from what is published.

    Parameters
    ----------
    suppressed
        Withheld cells; everything else in the problem counts as published.
    """
    suppressed = problem.pattern(suppressed)
    published = [c for c in problem.cells.values() if c.id not in suppressed or c.id in problem.structural_zero]
    if not published:
        return ()
    published.sort(key=lambda c: (c.id not in problem.must_publish, len(c.atoms), c.id))
    label, k = merge_atoms(len(problem.atoms), [c.atoms for c in published])
    weight = [0] * k
    members: list[list[int]] = [[] for _ in range(k)]
    for atom, c in enumerate(label):
        weight[c] += problem.atoms[atom].n
        members[c].append(atom)
    rows = [tuple(sorted({label[a] for a in c.atoms})) for c in published]
    found = Circuits(rows, weight).small_unions(range(len(rows)), problem.policy.min_n)
    found.sort(key=lambda d: (d.people, len(d.rows), d.classes))
    links = []
    for d in found[:limit]:
        cells = sorted(published[i].id for i in d.rows)
        outputs = tuple(dict.fromkeys(problem.cells[c].table for c in cells))
        atoms = problem.names(a for c in d.classes for a in members[c])
        links.append(
            Link(outputs, tuple(cells), atoms, d.people, _drop(problem, suppressed, outputs, d.classes, label))
        )
    return tuple(links)


def _drop(
    problem: Problem, suppressed: frozenset[str], outputs: Sequence[str], classes: Sequence[int], label: Sequence[int]
) -> tuple[str, ...]:
    """Outputs without which this group is no longer derivable, cheapest first."""
    wanted = set(classes)
    group = [a for a, c in enumerate(label) if c in wanted]
    cures = []
    for output in outputs:
        mine = [c for c in problem.cells.values() if c.table == output]
        if any(c.id in problem.must_publish for c in mine):
            continue
        rest = [
            c.atoms
            for c in problem.cells.values()
            if c.table != output and (c.id not in suppressed or c.id in problem.structural_zero)
        ]
        if not Span(len(problem.atoms), rest, [a.n for a in problem.atoms]).contains(group):
            cures.append((len(mine), output))
    return tuple(output for _, output in sorted(cures))
