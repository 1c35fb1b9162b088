"""Deltas of training people add up to zero: a margin in every session, printed or not."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sacro_deltab.measure.context import Context
from sacro_deltab.measure.linked import LinkedTables
from sacro_deltab.measure.margins import margins
from sacro_deltab.measure.numbers import PrintedCell
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
    assert Context(linked, tuple(cells)).protect(frozenset({"AD"})) == {"MCI"}
    assert linked.verdict("delta", cells, frozenset({"dx|AD", "dx|MCI"})).safe


def test_no_margin_for_other_people() -> None:
    linked, cells = session(centred=False)
    problem = linked.problem("delta", cells)
    assert problem is not None and not problem.identities
    assert Context(linked, tuple(cells)).protect(frozenset({"AD"})) == frozenset()


def test_margin_reaches_people_in_no_printed_cell() -> None:
    linked, cells = session(centred=True)
    problem = linked.problem("delta", cells[1:])
    assert problem is not None
    assert problem.size(problem.identities[0].atoms) == 200
    assert linked.verdict(
        "delta", cells[1:], frozenset({"dx|AD"})
    ).safe  # CN is not printed: AD + CN is all that follows


def fitted(kind: str = "unbiased_quadratic") -> tuple[np.ndarray, np.ndarray]:
    from sacro_deltab.cohort.simulate import smith_cohort
    from sacro_deltab.model import BrainAgeDelta

    cohort = smith_cohort(300, 20, seed=4)
    model = BrainAgeDelta(n_components=5).fit(cohort.X, cohort.age)
    return np.asarray(model.delta(cohort.X, cohort.age, model=kind)), np.asarray(cohort.age)


def by_age(edges: list[int], ages: np.ndarray, label: str, output: str = "age") -> list[PrintedCell]:
    return [
        PrintedCell(output, label.format(a, b), np.flatnonzero((ages >= a) & (ages < b)), "interior", "delta", "mean")
        for a, b in pairwise(edges)
    ]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("simple", ["sum"]),
        ("unbiased", ["sum", "age"]),
        ("unbiased_quadratic", ["sum", "age", "age_squared"]),
        ("alternate_quadratic", ["sum", "age", "age_squared"]),
    ],
)
def test_all_identities_of_a_table_by_age(kind: str, names: list[str]) -> None:
    delta, ages = fitted(kind)
    linked = LinkedTables(POLICY, ages=lambda: ages)
    linked.values["delta"] = delta
    cells = by_age([40, 50, 55, 60, 65, 70, 80], ages, "{} to under {}")
    problem = linked.problem("delta", cells)
    assert problem is not None and [i.name for i in problem.identities] == names
    for identity in problem.identities[1:]:
        sums = np.array([problem.atoms[a].sum for a in identity.atoms])
        people = np.array([problem.atoms[a].n for a in identity.atoms])
        assert abs(sums @ np.array(identity.coefficients)) <= np.array(identity.slack) @ people
        assert identity.name != "age" or max(identity.slack) <= 200.0  # half of ten years, 40 years each
    without = LinkedTables(POLICY)
    without.values["delta"] = delta
    plain = without.problem("delta", cells)
    assert plain is not None and [i.name for i in plain.identities] == ["sum"]


def test_only_printed_limits_of_age_are_known() -> None:
    delta, ages = fitted()
    everybody = np.arange(ages.size)
    half = [PrintedCell("sex", k, everybody[i::2], "interior", "delta", "mean") for i, k in enumerate("FM")]
    assert [m.name for m in margins(delta, ages, half)] == ["sum"]
    named = by_age([40, 55, 65, 80], ages, "band from {}")
    ends = margins(delta, ages, named)[1].limits
    assert ends is not None and ends[0][0] == ages[named[[ages[0] < 55, ages[0] < 65, True].index(True)].members].min()
    both = [*by_age([40, 60, 80], ages, "{}-{}"), *by_age([40, 50, 70, 80], ages, "[{}, {})", "other")]
    low, high = margins(delta, ages, both)[1].limits or (None, None)
    assert low is not None and high is not None
    assert ((low <= ages) & (ages <= high)).all() and set(high - low) == {5.0, 10.0}  # ages end at 45 and 75


def test_controls_of_a_normative_model_add_up_to_zero() -> None:
    """Fitted to controls, applied to everybody: the controls' sum is zero, printed or not."""
    rng = np.random.default_rng(8)
    values = rng.normal(2.0, 5.0, 300)
    values[:200] -= values[:200].mean()
    linked = LinkedTables(POLICY)
    linked.values["delta"] = values
    groups = {"CN": range(200), "MCI": range(200, 285), "AD": range(285, 300)}
    cells = [PrintedCell("dx", k, np.asarray(g), "interior", "delta", "mean") for k, g in groups.items()]
    site = [PrintedCell("site", k, np.arange(i, 300, 2), "interior", "delta", "mean") for i, k in enumerate("AB")]
    for shown in ([*cells, *site], [*cells[1:], *site]):
        problem = linked.problem("delta", shown)
        assert problem is not None and [problem.size(i.atoms) for i in problem.identities] == [200]
    named = LinkedTables(POLICY, training=[np.arange(200)])
    named.values["delta"] = values
    problem = named.problem("delta", site)
    assert problem is not None and [problem.size(i.atoms) for i in problem.identities] == [200]
