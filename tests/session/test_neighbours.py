"""Nothing outside `inside/` of a formal package tells one person: neighbours with the same noised results compared.

A package is made of a cohort; the noised results that it drew are kept and given to its neighbours, so that any byte
that still differs was seen in raw data. Clock, ids and keys are fixed; the salted digest of the inside files is masked.
"""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from session_helpers import new_session, write_profile

from sacro_deltab.measure.grouping import AgeBands
from sacro_deltab.privacy import Basis, gradient, moments, noised, statistics

NAMES = [f"f{i}" for i in range(6)]
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_HEX = re.compile(r"\b[0-9a-f]{32,128}\b")
_ACRO_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def people(n: int, seed: int = 2) -> tuple[Any, Any]:
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(7)
    age = rng.uniform(45, 85, n)
    return np.outer((age - 60) / 12 + 0.4 * rng.normal(size=n), fixed.normal(size=6)) + rng.normal(size=(n, 6)), age


def public_basis() -> Basis:
    X, age = people(400, seed=1)
    return Basis.from_public(X, age, NAMES, n_components=3, made_on="simulated people", age_range=(40, 95))


class Tape:
    """Noised results in the order they were drawn: kept from one run, given to the next."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.kept: list[Any] = []
        self.place: int | None = None
        for module, name in (
            (gradient.Purse, "sum"),
            (moments, "add_noise"),
            (statistics, "_exact"),
            (noised, "_sums"),
        ):
            patch.setattr(module, name, self._taped(getattr(module, name), name))

    def _taped(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            made = real(*args, **kwargs)  # what the noise SDs are set by runs as usual
            if self.place is None:
                self.kept.append((name, made))
                return made
            known, given = self.kept[self.place]
            assert known == name, "the order of releases depends on the people"
            self.place += 1
            return given

        return call

    def replay(self) -> None:
        self.place = 0


def outside(folder: Path) -> dict[str, str]:
    """Every byte outside `inside/`, with times, random ids and digests of inside files masked.

    Digests of files that leave follow from their bytes, which are compared themselves.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "inside" not in path.relative_to(folder).parts:
            text = path.read_bytes().decode("utf-8", errors="surrogateescape")
            for mask in (_STAMP, _ACRO_UID, _HEX):
                text = mask.sub("#", text)
            found[str(path.relative_to(folder))] = text
    return found


class Maker:
    """Packages of one configuration, each in a folder and ledger of its own."""

    def __init__(
        self, root: Path, patch: pytest.MonkeyPatch, adjacency: str, method: str, attack: bool, whole: bool = False
    ) -> None:
        self.root, self.adjacency, self.method, self.attack, self.whole = root, adjacency, method, attack, whole
        self.basis, self.tape, self.count = public_basis(), Tape(patch), itertools.count()

    def package(self, X: Any, age: Any, group: Any) -> dict[str, str]:
        place = self.root / f"p{next(self.count)}"
        place.mkdir()
        write_profile(place)
        ids = [f"P{i:04d}" for i in range(age.size)]
        session = new_session(place, public=[self.basis], people=ids, cohort="cohort-a")
        session.id = str(uuid.UUID(int=7))
        model = session.train_private(
            X, age, feature_names=NAMES, basis=self.basis, epsilon=1.0, adjacency=self.adjacency, method=self.method,
            membership_test=self.attack,
        )  # fmt: skip
        session.release_weights(model)
        deltas = session.deltas(model, X, age)
        session.release_private_mean(deltas, epsilon=0.5, model=model)
        if self.whole:
            asked: dict[str, dict[str, Any]] = {
                "sd": {"values": deltas, "model": model},
                "quantiles": {"values": deltas, "model": model, "percents": (25, 50, 75)},
                "group_means": {"values": deltas, "model": model, "by": group, "groups": ["a", "b"]},
                "counts": {"by": AgeBands(age, 10.0)},
                "features": {"features": X, "feature_names": NAMES, "basis": self.basis},
            }
            for statistic, given in asked.items():
                session.release_private(statistic, epsilon=0.5, **given)
        return outside(session.finalise(place / "out"))


def nasty(rng: np.random.Generator, X: Any, age: Any, kind: str) -> tuple[Any, Any, Any]:
    """The cohort with one person changed (or, where N is protected, one more)."""
    other, ages, group = X.copy(), age.copy(), groups_of(age.size)
    if kind in ("one_more", "one_more_odd"):
        other = np.vstack([X, X[:1] * (1e6 if kind == "one_more_odd" else 1)])
        ages = np.append(age, 89.9 if kind == "one_more_odd" else age[0])
        group = groups_of(ages.size)
    elif kind == "age":
        ages[rng.integers(ages.size)] = rng.choice([0.0, 39.9, 94.9, 119.9, np.nan, np.inf])
    elif kind == "feature":
        other[rng.integers(ages.size), rng.integers(6)] = rng.choice([1e3, -1e9, 1e308, np.nan, np.inf, 5e-324])
    elif kind == "missing":  # under zero_out_N_public: the neighbour, whose record is empty
        i = rng.integers(ages.size)
        other[i], ages[i] = np.nan, np.nan
    elif kind == "no_feature":
        other[rng.integers(ages.size)] = rng.choice([np.nan, np.inf])
    elif kind == "column":  # the one person who makes a feature vary, or has the largest share of it
        other[rng.integers(ages.size), 0] += rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(0, 12)
    elif kind == "copy":
        i, j = rng.integers(ages.size, size=2)
        other[i], ages[i] = other[j], ages[j]
    elif kind == "group":  # a group of one, nobody's, or one that cannot be printed
        group[rng.integers(ages.size)] = rng.choice(["c", "", "<b>", "a\u202eb"])
    return other, ages, group


def groups_of(n: int) -> Any:
    """A column of two groups."""
    return pd.Series(np.where(np.arange(n) % 2, "a", "b"), name="sex").astype(object)


KINDS = ("age", "feature", "missing", "copy", "no_feature", "column", "group")
MORE = ("one_more", "one_more_odd")


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as context:
        yield context


def compared(
    root: Path,
    patch: pytest.MonkeyPatch,
    adjacency: str,
    method: str,
    n: int,
    tries: int,
    *,
    attack: bool = False,
    whole: bool = False,
) -> list[str]:
    """Packages that differ from that of their neighbour in a byte outside."""
    maker, rng = Maker(root, patch, adjacency, method, attack, whole), np.random.default_rng([n, tries])
    X, age = people(n)
    first = maker.package(X, age, groups_of(n))
    assert '"end_to_end": true' in first["certificate.json"] or '"end_to_end":true' in first["certificate.json"]
    kinds, differ = (KINDS + MORE if adjacency == "add_remove" else KINDS), []
    for k in range(tries):
        maker.tape.replay()
        other = maker.package(*nasty(rng, X, age, kinds[k % len(kinds)]))
        wrong = [name for name in first.keys() | other.keys() if first.get(name) != other.get(name)]
        if wrong:
            shown = _difference(first.get(wrong[0], ""), other.get(wrong[0], ""))
            differ.append(f"{kinds[k % len(kinds)]}: {wrong}: {shown}")
    return differ


def _difference(one: str, other: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(at - 80, 0) : at + 80]!r} != {other[max(at - 80, 0) : at + 80]!r}"


@pytest.mark.parametrize(
    ("adjacency", "method", "n", "tries", "attack"),
    [
        ("add_remove", "gradient", 300, 3, False),
        ("add_remove", "gradient", 39, 6, True),
        ("add_remove", "moments", 99, 2, False),
        ("zero_out_N_public", "gradient", 120, 7, False),
    ],
)
def test_neighbours_leave_the_same_bytes(
    tmp_path: Path, patch: pytest.MonkeyPatch, adjacency: str, method: str, n: int, tries: int, attack: bool
) -> None:
    assert compared(tmp_path, patch, adjacency, method, n, tries, attack=attack, whole=tries == 7) == []


def test_without_the_tape_the_test_sees_a_difference(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    maker = Maker(tmp_path, patch, "add_remove", "gradient", False)
    X, age = people(120)
    one, other = (maker.package(X, age, groups_of(120)) for _ in range(2))
    assert one != other  # other noise, other bytes


PUBLIC_N = (100, 101, 120, 300, 400)  # fewer cannot be trained where N is public: refused by N alone
PROTECTED_N = (19, 20, 39, 40, 41, 99, *PUBLIC_N)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("adjacency", "n"), [*(("zero_out_N_public", n) for n in PUBLIC_N), *(("add_remove", n) for n in PROTECTED_N)]
)
@pytest.mark.parametrize("method", ["gradient", "moments"])
def test_two_thousand_neighbours(
    tmp_path: Path, patch: pytest.MonkeyPatch, method: str, adjacency: str, n: int
) -> None:
    assert compared(tmp_path, patch, adjacency, method, n, 63, whole=True) == []


def test_an_exact_output_beside_it_ends_the_claim(tmp_path: Path) -> None:
    write_profile(tmp_path)
    basis, (X, age) = public_basis(), people(400)
    session = new_session(tmp_path, public=[basis], people=[f"P{i:04d}" for i in range(400)])
    model = session.train_private(X, age, feature_names=NAMES, basis=basis, epsilon=1.0, membership_test=False)
    session.release_weights(model, only=["beta1"])
    session.release_sd(session.deltas(model, X, age))
    certificate = json.loads((session.finalise(tmp_path / "out") / "certificate.json").read_text(encoding="utf-8"))
    privacy = certificate["predicate"]["privacy"]
    assert privacy["end_to_end"] is False and privacy["outside_budget"] == ["delta_sd"]
