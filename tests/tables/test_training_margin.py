"""Deltas of training people add up to zero: a margin in every session, printed or not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sacro_deltab.facts.linked import LinkedTables, PrintedCell
from sacro_deltab.tables import TablePolicy

POLICY = TablePolicy(20, Fraction(3, 10), 10, 2.0, n_round_base=5, n_round_below=100, value_bounds=(-40.0, 40.0))
GROUPS = {"CN": range(120), "MCI": range(120, 185), "AD": range(185, 200)}


def session(centred: bool) -> tuple[LinkedTables, list[PrintedCell]]:
    values = np.random.default_rng(5).normal(0.0, 5.0, 200)
    values[185:] += 4.0
    if centred:
        values -= values.mean()
    linked = LinkedTables(POLICY)
    linked.values["delta"] = values
    cells = [PrintedCell("dx", k, np.asarray(g), "interior", "delta", "mean") for k, g in GROUPS.items()]
    return linked, cells


def test_sum_of_training_deltas_is_a_margin() -> None:
    linked, cells = session(centred=True)
    problem = linked.problem("delta", cells)
    assert problem is not None and [i.name for i in problem.identities] == ["sum"] and problem.identities[0].is_margin
    assert set(problem.cells) == {"dx|CN", "dx|MCI", "dx|AD"}  # nothing is added that nobody prints
    assert not linked.verdict("delta", cells, frozenset({"dx|AD"})).safe
    assert linked.context(cells).protect(frozenset({"AD"})) == {"MCI"}
    assert linked.verdict("delta", cells, frozenset({"dx|AD", "dx|MCI"})).safe


def test_no_margin_for_other_people() -> None:
    linked, cells = session(centred=False)
    problem = linked.problem("delta", cells)
    assert problem is not None and not problem.identities
    assert linked.context(cells).protect(frozenset({"AD"})) == frozenset()


def test_margin_reaches_people_in_no_printed_cell() -> None:
    linked, cells = session(centred=True)
    problem = linked.problem("delta", cells[1:])
    assert problem is not None
    assert problem.size(problem.identities[0].atoms) == 200
    assert linked.verdict(
        "delta", cells[1:], frozenset({"dx|AD"})
    ).safe  # CN is not printed: AD + CN is all that follows
