"""The minimum set in one place: marks, complements and engine follow, and no smaller group follows from the rest."""

from itertools import chain, combinations

import numpy as np
import pytest

from sacro_deltab.measure.context import Context
from sacro_deltab.measure.linked import LinkedTables
from sacro_deltab.measure.numbers import PrintedCell
from sacro_deltab.rules import load_base
from sacro_deltab.tables import TablePolicy

MINIMA = (10, 15, 30)


def table(rng, minimum):
    """Cells of a count table of one or two ways with its total, about people of whom some groups are small."""
    rows, columns = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    sizes = rng.integers(0, 5 * minimum, size=rows * columns)
    sizes[rng.random(sizes.size) < 0.3] = rng.integers(1, minimum)
    ends = np.cumsum(sizes)
    people = [np.arange(end - n, end) for n, end in zip(sizes, ends, strict=True)]
    cells = [PrintedCell("t", f"{i}", members) for i, members in enumerate(people)]
    margins = []
    if columns > 1:
        grid = np.arange(rows * columns).reshape(rows, columns)
        for name, line in chain((("r", r) for r in grid), (("c", c) for c in grid.T)):
            members = np.concatenate([people[i] for i in line])
            margins.append(PrintedCell(f"{name}", f"{name}{line[0]}", members, "margin"))
    margins.append(PrintedCell("n", "all", np.arange(ends[-1]), "grand"))
    return cells, margins


def derivable(cells, margins, gone, minimum):
    """Groups of 1 to the minimum less one whose count is a printed margin less some of its printed cells.

    Not the engine's code: every printed union against every margin, by sets of people.
    """
    shown = [set(c.members.tolist()) for c in cells if c.id not in gone and c.members.size]
    known = [set(m.members.tolist()) for m in margins if m.id not in gone and m.members.size]
    found = []
    for whole in known:
        inside = [s for s in shown if s <= whole]
        rest = whole.difference(*inside)
        if 0 < len(rest) < minimum:
            found.append(len(rest))
    for a, b in combinations(known, 2):
        if a < b and 0 < len(b - a) < minimum:
            found.append(len(b - a))
    return found


def run(minimum, tables, seed):
    """(tables, groups below the minimum that are printed, that can be worked out, that the engine's attack finds)."""
    numbers = load_base(constants={"minimum": minimum}).parameters
    policy = TablePolicy.from_parameters(numbers)
    assert policy.min_n == minimum
    rng = np.random.default_rng(seed)
    printed = worked_out = attacked = 0
    for _ in range(tables):
        cells, margins = table(rng, minimum)
        every = (*cells, *margins)
        context = Context(LinkedTables(policy), every)
        gone = context.choose(frozenset(c.id for c in every if 0 < c.members.size < minimum))
        printed += sum(0 < c.members.size < minimum for c in every if c.id not in gone)
        worked_out += len(derivable(cells, margins, gone, minimum))
        attacked += not context.attack(gone).safe
    return tables, printed, worked_out, attacked


@pytest.mark.parametrize("minimum", MINIMA)
def test_no_smaller_group_follows(minimum):
    assert run(minimum, 25, seed=minimum)[1:] == (0, 0, 0)


@pytest.mark.soak
@pytest.mark.parametrize("minimum", MINIMA)
def test_no_smaller_group_follows_from_a_thousand_tables(minimum):
    assert run(minimum, 1000, seed=1000 + minimum)[1:] == (0, 0, 0)
