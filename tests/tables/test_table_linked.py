"""Sessions and releases: one problem from memberships, links between outputs, training identities."""

from __future__ import annotations

import json

import numpy as np
import pytest
from memberships import Column, knowing, problem_of, zero_sum

from sacro_deltab.base.errors import InputError
from sacro_deltab.tables import (
    TablePolicy,
    audit_pattern,
    find_links,
    problem_from_json,
    problem_to_json,
    protect,
)
from sacro_deltab.tables.identities import banded_identity, holding

POLICY = TablePolicy.from_parameters(
    {
        "min_n": 20, "withhold_share": "3/10", "interval_n": 10, "interval_years": 2.0,
        "round_n_base": 5, "round_n_below": 100, "mean_decimals": 1, "value_bounds": [-40, 40],
    }
)  # fmt: skip


def session(seed: int = 0, n: int = 400) -> tuple[np.ndarray, list[Column], np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.69, 0.28, 0.03])
    sex = rng.integers(0, 2, n)
    columns = [group == g for g in range(3)] + [sex == s for s in range(2)] + [np.ones(n, bool)]
    cells = [Column(f"dx: {g}", "dx", mean=True) for g in range(3)]
    cells += [Column(f"sex: {s}", "sex", mean=True) for s in range(2)] + [Column("N", "weights", "grand")]
    return np.column_stack(columns), cells, rng.normal(0, 5, n)


def test_atoms_are_memberships() -> None:
    matrix, cells, values = session()
    problem = problem_of(matrix, cells, values, policy=POLICY)
    assert sum(a.n for a in problem.atoms) == len(values)
    assert len(problem.atoms) == 6
    for j, cell in enumerate(problem.cells.values()):
        assert cell.n == matrix[:, j].sum()
        if cell.mean is not None:
            assert abs(cell.mean - values[matrix[:, j]].mean()) <= 0.05 + 1e-9
    assert problem_to_json(problem_from_json(json.loads(json.dumps(problem_to_json(problem))))) == problem_to_json(
        problem
    )


def test_the_n_of_the_weights_is_a_margin() -> None:
    matrix, cells, values = session()
    problem = problem_of(matrix, cells, values, policy=POLICY)
    assert problem.primary == ("dx: 2",)
    alone = audit_pattern(problem, frozenset(problem.primary))
    assert not alone.safe_policy
    links = find_links(problem, frozenset(problem.primary))
    assert set(links[0].outputs) <= {"dx", "sex", "weights"} and "dx" in links[0].outputs
    assert str(links[0].people) in links[0].inside and str(links[0].people) not in links[0].outside
    result = protect(problem, policy="interval")
    assert result.safe and result.complementary


def test_a_dropped_person_is_found_and_named() -> None:
    n = 103
    first, second = np.ones(n, bool), np.ones(n, bool)
    second[17] = False
    cells = [Column("release 1: N", "release 1", "grand", released=True), Column("now: N", "now", "grand")]
    problem = problem_of(np.column_stack([first, second]), cells, policy=POLICY)
    (link,) = find_links(problem)
    assert link.people == 1 and set(link.outputs) == {"release 1", "now"} and link.drop == ("now",)
    assert "now" in link.next_step and "1" not in link.outside.replace("release 1", "")
    result = protect(problem)
    assert result.complementary == {"now: N"} and result.safe


def test_identities_by_model() -> None:
    from sacro_deltab.cohort.simulate import smith_cohort
    from sacro_deltab.model import BrainAgeDelta

    cohort = smith_cohort(240, 20, seed=2)
    confounds = np.random.default_rng(1).normal(size=(240, 2))
    for given in (None, confounds):
        model = BrainAgeDelta(n_components=5).fit(cohort.X, cohort.age, confounds=given)
        for name, names in {
            "simple": ("sum",),
            "unbiased": ("sum", "age"),
            "unbiased_quadratic": ("sum", "age", "age_squared"),
            "alternate": ("sum", "age"),
            "alternate_quadratic": ("sum", "age", "age_squared"),
        }.items():
            delta = model.delta(cohort.X, cohort.age, confounds=given, model=name)
            assert holding(delta, cohort.age) == names, name
    other = smith_cohort(240, 20, seed=3)
    model = BrainAgeDelta(n_components=5).fit(cohort.X, cohort.age)
    assert holding(model.delta(other.X, other.age, model="unbiased_quadratic"), other.age) == ()
    simple = model.delta(cohort.X, cohort.age, model="simple")
    u = cohort.age - cohort.age.mean()
    assert simple @ u == pytest.approx(-(simple @ simple))  # the simple model's own identity


def test_confounds_orthogonal_to_age_are_an_identity_too() -> None:
    rng = np.random.default_rng(0)
    n = 120
    age = rng.uniform(45, 75, n)
    u = age - age.mean()
    q = u**2 - (u**2).mean()
    q -= u * (u @ q) / (u @ u)
    c = rng.normal(size=n)
    for basis in (np.ones(n), u, q):
        c = c - basis * (basis @ c) / (basis @ basis)
    scores = rng.normal(size=(n, 3)) + u[:, None]
    scores = scores - scores.mean(0)
    scores = scores - np.outer(c, c @ scores) / (c @ c)
    b1 = np.linalg.lstsq(scores, u, rcond=None)[0]
    d1 = scores @ b1 - u
    delta = d1 - np.column_stack([u, q]) @ np.linalg.lstsq(np.column_stack([u, q]), d1, rcond=None)[0]
    assert set(holding(delta, age, c)) == {"sum", "age", "age_squared", "confound_1"}


def test_the_zero_sum_gives_a_small_group_away() -> None:
    matrix, cells, values = session()
    values = values - values.mean()
    problem = problem_of(matrix[:, :3], cells[:3], values, policy=POLICY)
    pattern = frozenset(problem.primary)
    plain = audit_pattern(problem, pattern)
    known = knowing(problem, zero_sum(problem))
    expert = audit_pattern(known, pattern)
    assert plain.safe_policy and plain.safe_interval
    assert (expert.safe_policy, expert.n_interval, expert.mean_interval) == (
        plain.safe_policy, plain.n_interval, plain.mean_interval,
    )  # fmt: skip
    assert expert.expert is not None and expert.expert.small and not expert.safe_interval
    result = protect(known, policy="interval")
    assert result.safe and len(result.complementary) == 1
    assert problem_from_json(problem_to_json(known)).identities == known.identities


def test_age_identity_by_band_is_an_interval() -> None:
    matrix, cells, values = session()
    problem = problem_of(matrix[:, :3], cells[:3], values - values.mean(), policy=POLICY)
    bands = [(40.0, 50.0), (50.0, 60.0), (60.0, 70.0)]
    identity = banded_identity("age", range(3), bands, mean_age=55.0, largest_value=40.0)
    assert not identity.is_margin and identity.slack == (200.0, 200.0, 200.0)
    found = audit_pattern(knowing(problem, identity), frozenset(problem.primary))
    assert found.expert is not None and not found.expert.small
    with pytest.raises(InputError):
        banded_identity("weight", range(3), bands, mean_age=55.0, largest_value=40.0)


def test_fifty_linked_tables() -> None:
    rng = np.random.default_rng(4)
    n, columns, cells = 2000, [], []
    for t in range(50):
        group = rng.integers(0, 4, n)
        for g in range(4):
            columns.append(group == g)
            cells.append(Column(f"t{t}: {g}", f"t{t}"))
    problem = problem_of(np.column_stack(columns), cells, policy=POLICY)
    found = audit_pattern(problem, frozenset())
    assert found.safe_policy == (found.smallest_derivable_union.n >= 20)
