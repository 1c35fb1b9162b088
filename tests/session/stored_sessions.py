"""Makes `fixtures/replay`: what simulated sessions were asked for, on which both readings of each decision are tried.

`PYTHONPATH=.:tests:tests/session python -m stored_sessions fixtures/replay` writes them again, one file a session;
nobody in them is real.
A file is the session's evidence without what a replay does not read.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from session_helpers import new_session, write_profile

from sacro_deltab import AgeBands
from sacro_deltab.base.errors import SacroDeltabError
from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.privacy import Basis
from sacro_deltab.rules import decide, load_base
from sacro_deltab.rules.facts import facts_from_json
from sacro_deltab.session.folder import build_evidence
from sacro_deltab.session.settling import needs_plan, settle

PUBLIC = smith_cohort(300, 8, seed=1)
BASIS = Basis.from_public(PUBLIC.X, PUBLIC.age, PUBLIC.feature_names, n_components=3, made_on="simulated")


def trimmed(session: Any) -> dict[str, Any]:
    """What a replay reads of a session's evidence."""
    if needs_plan(session):
        settle(session)
    evidence = json.loads(json.dumps(build_evidence(session)))
    kept = ("name", "facts", "raw")
    outputs = [
        {**{k: e[k] for k in kept}, "decision": {"effect": e["decision"]["effect"]}} for e in evidence["outputs"]
    ]
    made = {k: evidence["session"][k] for k in ("rule_set", "profile")}
    asked = {"asked": evidence["asked"]} if evidence.get("asked") else {}
    return {"session": made, "outputs": outputs, **asked}


def clinic(place: Path, sizes: dict[str, int], seed: int, *more: str) -> Any:
    """A study of diagnostic groups of these sizes: counts, means and SDs by group, and what `more` names."""
    rng = np.random.default_rng(seed)
    dx = rng.permutation(np.repeat(list(sizes), list(sizes.values())))
    n = len(dx)
    sex, site = rng.choice(["F", "M"], n), rng.choice(["S1", "S2", "S3", "S4"], n, p=[0.4, 0.3, 0.2, 0.1])
    ages, delta = rng.uniform(45, 85, n), np.round(rng.normal(0.5, 5, n), 6)
    session = new_session(place, people=[f"P{i}" for i in range(n)], cohort=f"c{seed}", ages=ages, draft=True)
    session.release_n()
    session.release_mean(delta)
    session.release_group_means(delta, by=dx, name="mean_by_dx")
    asked = {
        "sd": lambda: session.release_sd(delta),
        "sex": lambda: session.release_group_means(delta, by=sex, name="mean_by_sex"),
        "site": lambda: session.release_group_means(delta, by=site, name="mean_by_site"),
        "counts": lambda: session.release_counts(by=dx, name="n_by_dx"),
        "crossed": lambda: session.release_counts(by={"dx": dx, "sex": sex}, name="n_by_dx_sex"),
        "sds": lambda: session.release_group_sds(delta, by=dx, name="sd_by_dx"),
        "bands": lambda: session.release_group_means(delta, AgeBands(ages, 5), name="mean_by_band_5"),
        "wide": lambda: session.release_group_means(delta, AgeBands(ages, 10), name="mean_by_band_10"),
        "quantiles": lambda: session.release_quantiles(delta, (0, 2, 25, 50, 75, 98, 100)),
        "quartiles": lambda: session.release_quantiles(delta, (25, 50, 75)),
        "regression": lambda: session.release_regression(delta, pd.DataFrame({"age": ages})),
        "correlation": lambda: session.release_correlation(delta, pd.DataFrame({"thickness": delta + ages})),
        "features": lambda: session.release_feature_summary(pd.DataFrame({"thickness": ages / 30, "area": ages})),
    }
    for name in more:
        asked[name]()
    return session


def trained(place: Path, n: int, seed: int, adjacency: str, epsilon: float) -> Any:
    """A private training on a shared basis, with its weights and a noised mean of another model's deltas."""
    study = smith_cohort(n, 8, seed=seed)
    frame = pd.DataFrame(study.X, columns=list(study.feature_names))
    session = new_session(place, people=[f"P{i}" for i in range(n)], cohort=f"t{seed}", public=[BASIS], draft=True)
    model = session.train_private(frame, study.age, basis=BASIS, epsilon=epsilon, adjacency=adjacency)
    session.release_weights(model)
    with contextlib.suppress(SacroDeltabError):
        session.release_private_mean(np.random.default_rng(seed).normal(0, 4, n), epsilon=0.5)
    return session


def altered(told: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The same session with other facts, judged again."""
    told = {k: v for k, v in copy.deepcopy(told).items() if k != "asked"}
    for entry in told["outputs"]:
        change(entry["facts"]["facts"])
        entry["decision"]["effect"] = decide(load_base(), facts_from_json(entry["facts"])).effect.value
    return told


def later(facts: dict[str, Any]) -> None:
    """After an earlier project spent 3.5 of the same people's budget."""
    if "ledger.epsilon_total" in facts:
        facts["ledger.epsilon_total"]["value"] += 3.5


def exact(facts: dict[str, Any]) -> None:
    """As if the numbers had been asked for without noise."""
    for name in [n for n in facts if n.startswith(("dp.", "ledger.epsilon", "ledger.delta", "ledger.acc", "bounds."))]:
        del facts[name]
    said = {"dp.applied": False, "dp.label": "none", "dp.mechanism": "none", "dp.adjacency": "none"}
    facts |= {n: {"value": v, "by": "computed"} for n, v in said.items()}


SIZES = {
    "clinic-1": ({"HC": 140, "MCI": 60, "AD": 13}, 1, "counts", "sex"),
    "clinic-2": ({"HC": 90, "MCI": 40, "AD": 28, "FTD": 9}, 2, "sds", "site"),
    "clinic-3": ({"HC": 300, "MCI": 120, "AD": 80, "FTD": 33, "LBD": 17}, 3, "wide", "quantiles", "regression"),
    "clinic-4": ({"HC": 60, "AD": 33}, 4, "quartiles", "bands", "features"),
    "clinic-5": ({"HC": 24, "AD": 19}, 5, "sd", "correlation", "features"),
    "clinic-6": ({"A": 220, "B": 140, "C": 90, "D": 60, "E": 48, "F": 33, "G": 14}, 6, "counts", "crossed"),
    "clinic-7": ({"HC": 120, "MCI": 75, "AD": 41}, 7, "sd", "crossed", "regression"),
    "clinic-8": ({"HC": 14}, 8, "sd", "sex"),
    "clinic-9": ({"HC": 200, "MCI": 90, "AD": 70, "FTD": 35, "PSP": 12}, 9, "counts", "sds", "sex"),
    "clinic-11": (
        {"HC": 200, "AD": 60, "MCI": 50, "VD": 45, "FTD": 35, "LBD": 8, "PSP": 5},
        11,
        "counts",
        "sd",
    ),
    "clinic-10": ({"HC": 110, "MCI": 80, "AD": 45, "LBD": 15}, 10, "counts", "sds"),
}


def write(out: Path) -> None:
    """Every session, each in a folder of its own while it is made."""
    out.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Any] = {n: lambda place, s=s: clinic(place, s[0], s[1], *s[2:]) for n, s in SIZES.items()}
    makers["training-1"] = lambda place: trained(place, 400, 21, "zero_out_N_public", 1.0)
    makers["training-2"] = lambda place: trained(place, 150, 22, "replace_one", 1.0)
    here = Path.cwd()
    for name, make in makers.items():
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            write_profile(Path(place))
            try:
                told = trimmed(make(Path(place)))
            finally:
                os.chdir(here)
        files = {name: told}
        if name.startswith("training"):
            files[name.replace("training", "without-noise")] = altered(told, exact)
        if name == "training-1":
            files["later-project"] = altered(told, later)
        for stem, data in files.items():
            (out / f"{stem}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
