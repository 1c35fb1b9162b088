"""What a privacy budget will buy, before any of it is spent: from N, F, J, ε, δ, adjacency and basis alone."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...base.canonical import shown_json
from ...base.digests import sha256_hex
from ...base.errors import InputError, PrivacyError
from ...base.strict import read_object
from ...base.writing import write_file
from ...cohort.simulate import smith_cohort
from ...model.base import one_blas_thread
from ..basis import Basis
from ..bounds import PublicBounds
from ..job import check_delta
from ..mechanisms import mu_of
from ..node import least_n
from ..paths import _REASON, preferred
from . import simulation as sim
from .choosing import best_path
from .paths import priced, settings_at, trained
from .studies import SEED, figures_of, studies

SCHEMA_ID = "sacro_deltab/plan/1"
GRID = (100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600)
NOISE_BELOW, WEAK_BELOW = 0.5, 0.9  # share of the correlation without noise
_DRAWS, _SEARCH_DRAWS = 24, 8
_SMALLEST = 20
_MOST_NODE = 20_000  # people of a node basis that are simulated
_NODE_GRID = (0.25, 0.4, 0.6, 1.0, 2.0)  # of the measured N for 90 %


@dataclass(frozen=True)
class PathPlan:
    """One way to spend the budget.

    correlation, error_years: expected, with the true delta and of the predicted age; share: of the correlation without
    noise; own_share: the same by the cohort's own data, without leaning on the public people; n_50, n_90: N at which
    that share is reached (None: beyond the largest N tried); noise_sd: σ per block; with_no_noise: correlation with the
    delta that the same study gives without noise; age_slope: of the unbiased delta, years a year. Intervals hold nine
    studies in ten.
    """

    path: str
    correlation: float
    standard_error: float
    error_years: float
    share: float
    own_share: float
    n_50: int | None
    n_90: int | None
    noise_sd: Mapping[str, float]
    warnings: tuple[str, ...]
    with_no_noise: float
    with_no_noise_interval: tuple[float, float]
    error_interval: tuple[float, float]
    age_slope: tuple[float, float]

    @property
    def word(self) -> str:
        """useful | weak | noise, by what the cohort itself says."""
        return "noise" if self.own_share < NOISE_BELOW else "weak" if self.own_share < WEAK_BELOW else "useful"


@dataclass(frozen=True)
class Plan:
    """The answer of `plan_training`; holds public quantities only."""

    request: Mapping[str, Any]
    without_noise: Mapping[str, float]
    paths: tuple[PathPlan, ...]
    choice: str
    why: str
    people: str
    curve: Mapping[str, list[tuple[int, float]]]
    null_rows: Mapping[str, Mapping[str, float]]

    @property
    def chosen(self) -> PathPlan:
        """What `train_private(method="auto")` would do."""
        return next(p for p in self.paths if p.path == self.choice)

    @property
    def advice(self) -> str:
        """In one sentence."""
        best = self.chosen
        limit = "more than the largest N tried" if best.n_90 is None else f"about N = {best.n_90:,}"
        if best.word == "noise":
            return (
                "Do not do this: at this N and ε the answer is mostly noise "
                f"({max(best.own_share, 0.0):.0%} of the correlation without noise). 90 % needs {limit}."
            )
        if best.word == "weak":
            return f"Weak: {max(best.own_share, 0.0):.0%} of the correlation without noise. 90 % needs {limit}."
        return f"Useful: {max(best.own_share, 0.0):.0%} of the correlation without noise."

    def to_json(self) -> dict[str, Any]:
        """For `plan --json`."""
        paths = [
            {
                **{k: list(v) if isinstance(v, tuple) else v for k, v in asdict(p).items()},
                "noise_sd": dict(p.noise_sd),
                "verdict": p.word,
            }
            for p in self.paths
        ]
        return {
            "schema": SCHEMA_ID,
            "request": dict(self.request),
            "people": self.people,
            "without_noise": dict(self.without_noise),
            "paths": paths,
            "null_rows": {name: dict(row) for name, row in self.null_rows.items()},
            "choice": {"path": self.choice, "why": self.why},
            "advice": self.advice,
            "do_not": self.chosen.word == "noise",
        }


def plan_training(
    n: int,
    n_features: int | None = None,
    n_components: int | None = None,
    *,
    epsilon: float,
    delta_dp: float | None = None,
    adjacency: str = "zero_out_N_public",
    basis: Basis | None = None,
    shared_basis: bool = True,
    curves: bool = True,
    use_cache: bool = True,
) -> Plan:
    """Say what private training would give. Nothing is spent and no person's data is read.

    Parameters
    ----------
    n
        Number of people, public (under `add_remove` a public estimate of it).
    n_features, n_components
        F and J; a basis gives both.
    epsilon, delta_dp, adjacency
        As in `train_private`.
    basis
        Shared basis, or None: one made from 2,000 public people is assumed, unless `shared_basis` is False.
    curves
        Also how many people either way needs (`n_50`, `n_90`): most of the time it takes.
    use_cache
        Keep results in the user's cache folder, so that the same question is answered at once.

    Raises
    ------
    InputError, PrivacyError
        For numbers that make no sense.
    """

    if n < _SMALLEST:
        raise InputError("too few people to train on", next_step=f"N must be at least {_SMALLEST}.")
    features = len(basis.feature_names) if basis is not None else n_features
    if features is None or features < 1:
        raise InputError("the number of features is missing", next_step="Give --features F, or a basis.")
    if basis is not None and n_features not in (None, features):
        raise InputError("the basis has another number of features", next_step="Leave --features out.")
    top = basis.n_components if basis is not None else features
    usual = top if basis is not None else min(10, top)  # the trainer uses all components of a file
    size = usual if n_components is None else n_components
    if not 1 <= size <= top:
        raise InputError("that many components are not there", next_step=f"Use --n-components between 1 and {top}.")
    if adjacency not in ("zero_out_N_public", "add_remove", "replace_one"):
        raise PrivacyError(f"unknown neighbouring relation {adjacency!r}", next_step="zero_out_N_public is usual")
    small = check_delta(delta_dp, *((None, n) if adjacency == "add_remove" else (n,)))
    mu_of(epsilon, small)
    request = {
        "n": n, "n_features": features, "n_components": size, "epsilon": float(epsilon), "delta_dp": small,
        "adjacency": adjacency, "basis": None if basis is None else basis.digest,
        "shared_basis": shared_basis or basis is not None,
    }  # fmt: skip
    key = sha256_hex(json.dumps([SCHEMA_ID, 6, request, curves], sort_keys=True))[:32]
    kept = _kept(key, request) if use_cache else None
    if kept is not None:
        return kept
    stored = _simulate(request, basis, curves=curves)
    if use_cache:
        _store(key, stored)
    return _build(request, stored)


# --- simulation ------------------------------------------------------------------------------------------------------


def _simulate(request: Mapping[str, Any], basis: Basis | None, *, curves: bool) -> dict[str, Any]:
    """Everything that takes time, as plain JSON; the same on every machine."""
    size, n = int(request["n_components"]), int(request["n"])
    with one_blas_thread():
        people = sim.from_basis(basis, size) if basis is not None else sim.from_smith(request["n_features"], size)
        test = people.people(sim.TEST, np.random.default_rng(SEED))
        methods = ("gradient", "moments") if request["shared_basis"] else ()
        at = studies(people, n, _DRAWS, test, methods, request)
        own = studies(people, n, _DRAWS, test, methods, request, lean=False)
        plain = at["plain"]
        nothing = sim.null_rows(people.basis, test, np.asarray(test[2]))
        out: dict[str, Any] = {"people": people.words, "plain": asdict(plain), "paths": {}}
        out["null"] = {
            name: {"correlation": round(row[0], 4), "error_years": round(row[1], 4)} for name, row in nothing.items()
        }
        shares: dict[str, list[tuple[int, float]]] = {method: [] for method in methods}
        for m in GRID if methods and curves else ():
            there = studies(people, m, _SEARCH_DRAWS, test, methods, request, lean=False)
            for method in methods:
                shares[method].append((m, there[method].correlation / max(there["plain"].correlation, 1e-9)))
        for method in methods:
            out["paths"][method] = {
                **asdict(at[method]),
                "own": own[method].correlation,
                "curve": shares[method],
                **_public(people, n, method, request),
            }
        if basis is None:  # a basis file tells nothing of what lies outside its axes: nobody can simulate those
            out["paths"]["node"] = _node(request, plain.correlation)
        else:
            out["choice"] = best_path(
                basis, n, size, float(request["epsilon"]), float(request["delta_dp"]), str(request["adjacency"])
            )
        out["trivial"] = float(np.abs(test[1] - test[1].mean()).mean())
    return out


def _public(people: sim.Population, n: int, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """σ per block and warnings: the trainer's own, from a priced but unspent training."""
    X, age, _ = people.people(n, np.random.default_rng(0))
    price = priced(X, age, people.basis.feature_names, people.basis, None, method, request)[1]
    return {"noise_sd": dict(price.public["noise_sd"]), "warnings": list(price.warnings)}


def _node(request: Mapping[str, Any], plain: float) -> dict[str, Any]:
    """The node basis needs all F features. Its N for 90 % is the measured rule, around which its curve is drawn."""
    features, n = int(request["n_features"]), int(request["n"])
    shown = min(features, sim.MOST_FEATURES)
    reach = 2 if request["adjacency"] == "replace_one" else 1
    bounds = PublicBounds(age=(45.0, 75.0), centre=(0.0,) * shown, scale=(1.12,) * shown)
    names = tuple(f"feature_{i + 1}" for i in range(shown))
    test = smith_cohort(sim.TEST, shown, seed=77)

    def job_of(size: int, k: int) -> tuple[Any, Any]:
        people = smith_cohort(min(size, _MOST_NODE), shown, seed=31 + k)
        return priced(people.X, people.age, names, None, bounds, "moments", request)

    def figures(size: int, draws: int) -> sim.Figures:
        rows = []
        for k in range(draws):
            weights = trained(job_of(size, k)[0], "moments", np.random.default_rng([SEED, size, k]))
            rows.append(figures_of(weights, (test.X, test.age, test.true_delta), test.true_delta))
        return sim.Figures.of(rows)

    def rule(size: int, count: int) -> int:
        settings = settings_at(request, size)
        return least_n(count, mu_of(settings["epsilon"], settings["delta_dp"]), reach)

    limit = rule(n, features)
    curve = []
    for part in _NODE_GRID:  # fewer features than F are simulated: N in proportion to the rule
        size = max(_SMALLEST, round(part * rule(n, shown)))
        if size <= _MOST_NODE:
            curve.append((max(_SMALLEST, round(part * limit)), figures(size, 2).correlation / max(plain, 1e-9)))
    price, at = job_of(n, 0)[1], figures(n, 8 if n <= 2_000 else 2)
    return {
        **asdict(at), "own": at.correlation, "curve": curve, "n_90": limit,
        "noise_sd": dict(price.public["noise_sd"]), "warnings": list(price.warnings),
    }  # fmt: skip


# --- reading the simulation ------------------------------------------------------------------------------------------


def n_for(curve: list[tuple[int, float]], share: float) -> int | None:
    """Least N on a curve (N, share) at which the share is reached and not lost again; between points log-linear."""
    points = [(math.log(n), value) for n, value in curve]
    for k in range(len(points) - 1, -1, -1):
        if points[k][1] < share:
            if k == len(points) - 1:
                return None
            (a, low), (b, high) = points[k], points[k + 1]
            return _two_digits(math.exp(a + (b - a) * (share - low) / (high - low)))
    return curve[0][0] if curve else None


def _two_digits(n: float) -> int:
    """A planning figure: two significant digits are what the simulation supports."""
    step = 10 ** max(len(str(int(n))) - 2, 0)
    return int(math.ceil(n / step) * step)


def _build(request: Mapping[str, Any], stored: Mapping[str, Any]) -> Plan:

    plain = stored["plain"]
    paths = []
    for name, data in stored["paths"].items():
        curve = [(int(n), float(s)) for n, s in data["curve"]]
        share = round(data["correlation"] / max(plain["correlation"], 1e-9), 4)
        n_50, n_90 = n_for(curve, 0.5), data.get("n_90", n_for(curve, 0.9))
        paths.append(
            PathPlan(name, data["correlation"], data["standard_error"], data["error_years"], share,
                     round(data["own"] / max(plain["correlation"], 1e-9), 4), n_50, n_90,
                     data["noise_sd"], tuple(data["warnings"]), data["with_no_noise"],
                     _pair(data["with_no_noise_interval"]), _pair(data["error_interval"]), _pair(data["age_slope"]))
        )  # fmt: skip
    choice: str
    if request["shared_basis"]:
        choice, why = stored.get("choice") or preferred()
    else:
        choice, why = "node", _REASON["node"]
    return Plan(
        request=request,
        without_noise={
            "correlation": plain["correlation"], "error_years": plain["error_years"],
            "error_years_of_the_mean_age": stored["trivial"],
        },
        paths=tuple(paths),
        choice=choice,
        why=why,
        people=stored["people"],
        curve={name: [(int(n), float(s)) for n, s in data["curve"]] for name, data in stored["paths"].items()},
        null_rows=stored["null"],
    )  # fmt: skip


def _pair(values: Any) -> tuple[float, float]:
    return float(values[0]), float(values[1])


def _folder() -> Path | None:
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(given) if given else Path.home() / ".cache") / "sacro_deltab"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder


def _kept(key: str, request: Mapping[str, Any]) -> Plan | None:
    """The answer given before; None where there is none that can be read."""
    folder = _folder()
    try:
        if folder is None:
            return None
        return _build(request, read_object(folder / f"plan-{key}.json"))
    except (InputError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _store(key: str, data: Mapping[str, Any]) -> None:
    folder = _folder()
    if folder is None:
        return
    target = folder / f"plan-{key}.json"
    try:
        write_file(target, shown_json(data))
    except InputError:
        return
