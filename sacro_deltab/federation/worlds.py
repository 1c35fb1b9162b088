"""Places with people for a planned federation: drawn from a simulation, or cut out of one table of real people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import InputError
from ..cohort.simulate import smith_cohort
from ..cohort.sources import as_table
from ..privacy.basis import Basis

Array = NDArray[np.float64]


@dataclass(frozen=True)
class People:
    """People of one place: features, ages, and true delta where it is known."""

    X: Array
    age: Array
    true_delta: Array | None = None

    @property
    def n(self) -> int:
        """How many."""
        return int(self.age.size)


@dataclass(frozen=True)
class World:
    """Nodes, public people for basis and bounds, and held-out people."""

    nodes: tuple[People, ...]
    public: People
    held_out: People
    feature_names: tuple[str, ...]
    n_components: int
    basis: Basis

    @property
    def together(self) -> People:
        """All people of all nodes in one place."""
        return People(np.concatenate([n.X for n in self.nodes]), np.concatenate([n.age for n in self.nodes]))


def simulated_world(sizes: Sequence[int], *, n_features: int = 100, n_components: int = 5, seed: int = 1) -> World:
    """Nodes drawn from the Smith simulation of `docs/privacy.md`: one population, 2,000 public people, 3,000 held out.

    Parameters
    ----------
    sizes
        People of each node.
    """

    total = sum(sizes)
    drawn = smith_cohort(total + 5000, n_features, seed=seed)
    everybody = People(drawn.X, drawn.age, drawn.true_delta)
    starts = np.cumsum([0, *sizes, 2000, 3000])
    parts = [_take(everybody, np.arange(a, b)) for a, b in pairwise(starts)]
    *nodes, public, held_out = parts
    return _world(nodes, public, held_out, drawn.feature_names, n_components)


def table_world(
    X: Array,
    age: Array,
    feature_names: Sequence[str],
    labels: Sequence[str],
    *,
    public: str | None = None,
    nodes: int | None = None,
    n_components: int = 10,
    age_range: tuple[float, float] | None = None,
    seed: int = 1,
) -> World:
    """Nodes from one table of real people. A feature that is constant in some place is left out.

    Parameters
    ----------
    labels
        Where each person was scanned. With `nodes` the labels other than the public one are dealt to that many nodes,
        largest first to the smallest node; without, each label is a node.
    public
        The label set aside as stand-in public people for basis and bounds; None: the largest.
    age_range
        Public age bounds, years; None: the ages of the public people, to which all others are clipped.
    """
    where = np.array([str(label) for label in labels])
    places, counts = np.unique(where, return_counts=True)
    order = [str(n) for n in places[np.argsort(-counts, kind="stable")]]
    aside = order[0] if public is None else public
    if aside not in order:
        raise InputError(f"no row belongs to {aside!r}, which was to be set aside as public", place="--public")
    rest = [name for name in order if name != aside]
    if len(rest) < (nodes or 2):
        raise InputError(
            "the table has too few places for that many nodes", next_step="use fewer nodes or another --by."
        )
    bins: list[list[str]] = [[] for _ in range(nodes or len(rest))]
    size = [0] * len(bins)
    for name in rest:
        k = size.index(min(size))
        bins[k].append(name)
        size[k] += int((where == name).sum())
    rng = np.random.default_rng(seed)
    inside, out = [], []
    for group in bins:
        rows = rng.permutation(np.flatnonzero(np.isin(where, group)))
        cut = max(1, rows.size // 5)  # one person in five of each node is held out
        out.append(rows[:cut])
        inside.append(np.sort(rows[cut:]))
    apart = np.flatnonzero(where == aside)
    varies = np.all([X[rows].std(axis=0) > 0 for rows in (apart, *inside)], axis=0)
    people = People(X[:, varies], age)
    names = [n for n, v in zip(feature_names, varies, strict=True) if v]
    held_out = _take(people, np.sort(np.concatenate(out)))
    nodes_of = [_take(people, rows) for rows in inside]
    return _world(nodes_of, _take(people, apart), held_out, names, n_components, age_range)


def _take(people: People, rows: Any) -> People:
    return People(people.X[rows], people.age[rows], None if people.true_delta is None else people.true_delta[rows])


def _world(
    nodes: Sequence[People],
    public: People,
    held_out: People,
    names: Sequence[str],
    n_components: int,
    age_range: tuple[float, float] | None = None,
) -> World:
    small = min(node.n for node in nodes)
    if small <= 2 * n_components or public.n <= 2 * n_components:
        raise InputError("a node or the public set has too few people for that many components",
                         next_step="use fewer nodes or fewer components.")  # fmt: skip
    features = tuple(str(n) for n in names)
    low, high = age_range or (float(np.floor(public.age.min())), float(np.ceil(public.age.max())))
    basis = Basis.from_public(
        public.X, public.age, features, n_components=n_components, made_on="stand-in public people of a simulation",
        age_range=(low, high),
    )  # fmt: skip
    return World(tuple(nodes), public, held_out, features, n_components, basis)


def read_table(path: Any, by: str | None) -> tuple[Array, Array, list[str], list[str]]:
    """Features, ages, feature names and places of a table; rows with missing numbers are left out.

    Raises
    ------
    InputError
        There is no column `age`, or no numeric feature.
    """

    table = as_table(path, "people")
    age = table.numbers(table.need("age", "ages"), "ages")
    place = table.find("site") if by is None else table.need(by, "places")
    skip = {"age", "participant_id", "sex", "sitenum", "site", by}
    numeric = {
        name: column.values
        for name, column in zip(table.names or (), table.columns, strict=True)
        if name not in skip and column.values is not None
    }
    if not numeric:
        raise InputError("the table has no numeric feature", path=path)
    X = np.column_stack(list(numeric.values()))
    whole = np.isfinite(age) & np.isfinite(X).all(axis=1)
    X, age = X[whole], age[whole]
    keep = X.std(axis=0) > 0
    if place is None:
        labels = [f"part {i % 8}" for i in range(len(age))]
    else:
        [said] = table.texts([place])
        labels = [str(text) for text, there in zip(said, whole, strict=True) if there]
    return X[:, keep], age, [name for name, varies in zip(numeric, keep, strict=True) if varies], labels
