"""Pooling is exact without noise, as good as promised with it, and averages what may be averaged."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacro_deltab.base.errors import InputError
from sacro_deltab.federation import simulation as sim
from sacro_deltab.federation import worlds as places
from sacro_deltab.federation.meta import Estimate, inverse_variance
from sacro_deltab.federation.noise import noise_model, price_list, share_epsilon
from sacro_deltab.federation.streams import tree_merge
from sacro_deltab.model import Moments
from sacro_deltab.privacy.mechanisms import mu_of


@pytest.fixture(scope="module")
def world() -> places.World:
    return places.simulated_world([500, 1500], n_features=40, n_components=5, seed=1)


def test_summed_moments_without_noise_equal_the_fit_on_all(world: places.World) -> None:
    blank = Moments(world.feature_names, x_centre=world.basis.centre, x_scale=world.basis.scale)
    a, b = (blank.empty().update(n.X, n.age) for n in world.nodes)
    pooled = a.merge(b).fit(n_components=5)
    direct = blank.empty().update(world.together.X, world.together.age).fit(n_components=5)
    for name in ("b1", "b2", "b2sq", "gamma", "gammasq", "y_mean", "ysq_mean", "ysq_slope", "components"):
        assert np.asarray(getattr(pooled, name)) == pytest.approx(np.asarray(getattr(direct, name)), rel=1e-9, abs=1e-9)
    X, age = world.held_out.X, world.held_out.age
    assert np.abs(pooled.delta(X, age) - direct.delta(X, age)).max() < 1e-9


def test_correlation_at_epsilon_one() -> None:
    world = places.simulated_world([500, 1500], n_features=100, n_components=5, seed=1)
    found = {r.way: r for r in sim.simulate_federation(
        [world], epsilons=(1.0,), ways=("summed_moments", "fedavg_shared", "naive_fedavg"), repeats=2)}  # fmt: skip
    assert found["summed_moments"].correlation >= 0.78
    assert found["fedavg_shared"].correlation >= 0.84  # trained by the gradient path
    assert found["naive_fedavg"].correlation < 0.7
    assert found["summed_moments"].correlation > found["fedavg_shared"].correlation - 0.05
    assert found["summed_moments"].mae < found["fedavg_shared"].mae + 0.15


@pytest.mark.parametrize("stretch", [0.6, 1.5])
def test_summed_moments_keep_the_scale_of_ages(stretch: float) -> None:
    """Nodes whose features vary otherwise than the public people's: their Gram is not the identity."""
    world = places.simulated_world([500, 1500], n_features=40, n_components=5, seed=1)
    nodes = tuple(places.People(n.X * stretch, n.age) for n in world.nodes)
    held_out = places.People(world.held_out.X * stretch, world.held_out.age, world.held_out.true_delta)
    other = replace(world, nodes=nodes, held_out=held_out)
    weights = sim.private_sum(other, 1.0)
    predicted = weights.predict_age(held_out.X)
    assert float(np.abs(predicted - held_out.age).mean()) < 2.8  # with an identity in its place: above 5
    assert 0.6 < np.polyfit(predicted, held_out.age, 1)[0] < 1.4


def test_every_way_without_noise(world: places.World) -> None:
    found = {r.way: r for r in sim.simulate_federation([world], epsilons=(None,))}
    assert set(found) == {*sim.WAYS, *sim.NULL_WAYS}
    assert found["summed_moments"] == sim.Result(
        "summed_moments", None, pytest.approx(found["direct"].correlation, abs=1e-9),
        pytest.approx(found["direct"].mae, abs=1e-9),
    )  # fmt: skip
    for way in ("fedavg_shared", "fedavg_folded"):
        assert found[way].correlation > found["direct"].correlation - 0.05


def test_nodes_from_a_table() -> None:
    drawn = places.simulated_world([300, 300], n_features=10, n_components=3).together
    labels = ["big"] * 250 + ["one"] * 150 + ["two"] * 120 + ["three"] * 80
    world = places.table_world(drawn.X, drawn.age, [f"f{i}" for i in range(10)], labels, nodes=2, n_components=3)
    assert world.public.n == 250
    assert len(world.nodes) == 2
    assert sum(n.n for n in world.nodes) + world.held_out.n == 350
    with pytest.raises(InputError):
        places.table_world(drawn.X, drawn.age, ["f"] * 10, labels, nodes=9, n_components=3)


def test_price_of_shared_noise() -> None:
    assert share_epsilon(1.0, 2, 1e-6) == pytest.approx(1.45, abs=0.005)
    for nodes, price in ((3, 1.81), (5, 2.40), (10, 3.52)):
        assert share_epsilon(1.0, nodes, 1e-6) == pytest.approx(price, abs=0.015)
    mu = mu_of(1.0, 1e-6) * math.sqrt(2)
    prices = price_list([mu, mu], 1e-6)
    assert [p.epsilon for p in prices] == pytest.approx([1.0, 1.45], abs=0.005)


def test_noise_model_is_the_weakest_said() -> None:
    assert noise_model([None, "central_at_node"], ["formal", "formal"], None) == "local"
    assert noise_model(["distributed", "central_at_node"], ["formal", "formal"], "local") == "distributed"
    assert noise_model([None, None], ["formal", "none"], "local") == "central"
    with pytest.raises(InputError):
        noise_model([None], ["formal"], "magic")


def test_inverse_variance_by_hand() -> None:
    pooled = inverse_variance([Estimate("a", 1.0, 0.5), Estimate("b", 3.0, 1.0)])
    assert pooled.value == pytest.approx((4 * 1 + 1 * 3) / 5)
    assert pooled.se == pytest.approx(1 / math.sqrt(5))
    assert pooled.q == pytest.approx(4 * 0.4**2 + 1.6**2)
    assert pooled.i2 == pytest.approx(100 * (pooled.q - 1) / pooled.q)
    with pytest.raises(ValueError, match="standard error"):
        inverse_variance([Estimate("a", 1.0, 0.0)])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(0.01, 5)), min_size=1, max_size=8))
def test_pooled_lies_between_the_nodes(items: list[tuple[float, float]]) -> None:
    pooled = inverse_variance([Estimate(str(i), v, s) for i, (v, s) in enumerate(items)])
    values = [v for v, _ in items]
    for mean in (pooled.value, pooled.random):
        assert min(values) - 1e-9 <= mean <= max(values) + 1e-9
    assert 0 <= pooled.i2 <= 100
    assert pooled.random_se >= pooled.se - 1e-12


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10**6))
def test_any_split_merges_to_the_same(parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, age = rng.normal(size=(60, 3)), rng.uniform(45, 80, 60)
    blank = Moments(("a", "b", "c"))
    cuts = np.sort(rng.integers(0, 61, parts - 1))
    pieces = [blank.empty().update(p, q) for p, q in zip(np.split(x, cuts), np.split(age, cuts), strict=True) if len(q)]
    whole = blank.empty().update(x, age)
    assert tree_merge(pieces).matrix == pytest.approx(whole.matrix, rel=1e-12, abs=1e-9)


def test_a_table_is_read_by_the_reader_of_cohorts(tmp_path: Path) -> None:
    rows = ["participant_id;site;age;x;y;flat", *(f"p{i};{'AB'[i % 2]};{40 + i},5;{i},25;{i % 7};1" for i in range(30))]
    rows.append("p30;A;;3;1;1")  # no age: left out
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    X, age, names, labels = places.read_table(tmp_path / "table.csv", None)
    assert names == ["x", "y"] and X.shape == (30, 2) and X[1, 0] == 1.25
    assert age[0] == 40.5 and labels[:2] == ["A", "B"]
    with pytest.raises(InputError, match="no column 'where'"):
        places.read_table(tmp_path / "table.csv", "where")
