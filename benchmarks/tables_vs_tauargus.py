"""Our engine against pytauargus 0.6.0 on generated tables, at the same requirement (±1, unions off).

τ-Argus gets the problem through its JJ format with an attacker's bounds [0, 1.5·max], never through `protect()`, which
would pass the true minimum and maximum. Each run is a process of its own (it can crash) with its own CPU clock.

    python benchmarks/tables_vs_tauargus.py [--minutes 1] [NAME …]
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables_instances import instance, tree

NAMES = [
    "10x10", "20x10", "50x20", "100x50", "6x5x4", "8x8x6", "hier3.3.3x8", "hier4.4.4x20", "hier3.4.4x10x4", "12x12x10",
    "20x20x10",
]  # fmt: skip


def dimensions(name: str) -> list[tuple[int, ...]]:
    if name.startswith("hier"):
        first, *rest = name[4:].split("x")
        return [tuple(int(b) for b in first.split(".")), *[(int(r),) for r in rest]]
    return [(int(r),) for r in name.split("x")]


def relations(name: str) -> list[tuple[str, list[str]]]:
    """(total, parts) in every dimension."""
    trees = [tree(d) for d in dimensions(name)]
    out = []
    for d, nodes in enumerate(trees):
        leaves = {label: set(members) for label, members in nodes}
        for label, members in leaves.items():
            inside = [x for x, m in leaves.items() if m < members]
            parts = [x for x in inside if not any(leaves[x] < leaves[y] for y in inside)]
            if not parts:
                continue
            for rest in itertools.product(*[[x for x, _ in t] for i, t in enumerate(trees) if i != d]):
                full = [[*list(rest[:d]), x, *list(rest[d:])] for x in (label, *parts)]
                out.append(("|".join(full[0]), ["|".join(x) for x in full[1:]]))
    return out


def write_jj(name: str, weight: str, path: Path) -> list[str]:
    problem = instance(name)
    ids = list(problem.cells)
    index = {c: i for i, c in enumerate(ids)}
    top = max(c.n for c in problem.cells.values())
    primary = set(problem.primary)
    lines = ["0", str(len(ids))]
    for i, c in enumerate(ids):
        n, level = problem.cells[c].n, int(c in primary)
        cost = n if weight == "people" else 1
        lines.append(f"{i} {n} {cost} {'u' if level else 's'} 0 {1.5 * top} {level} {level} 0")
    rel = relations(name)
    lines.append(str(len(rel)))
    for total, parts in rel:
        terms = " ".join(f"{index[p]} (1)" for p in parts)
        lines.append(f"0 {len(parts) + 1} : {index[total]} (-1) {terms}")
    path.write_text("\n".join(lines) + "\n")
    return ids


def run_tau(name: str, weight: str, minutes: int) -> dict:
    from pytauargus import HiTaSCtrl

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.jj", Path(folder) / "out.jj"
        ids = write_jj(name, weight, source)
        start = time.process_time()
        code = HiTaSCtrl().full_jj(in_file_jj=str(source), out_file=str(target), max_time=minutes)
        seconds = time.process_time() - start
        text = target.read_text() if target.exists() else ""
    gone = [ids[int(float(line.split()[0]))] for line in text.splitlines() if line.strip()]
    problem = instance(name)
    extra = set(gone) - set(problem.primary)
    return {"code": code, "cells": len(extra), "people": sum(problem.cells[c].n for c in extra), "seconds": seconds,
            "proved": code == 0}  # fmt: skip


def run_ours(name: str, objective: str, requirement: str) -> dict:
    import highspy  # noqa: F401  # before the clock starts: both engines are timed after imports
    import scipy.sparse.csgraph  # noqa: F401

    from sacro_deltab.tables import protect

    problem = instance(name)
    protect(instance("6x5"))
    start = time.process_time()
    result = protect(problem, policy=requirement, objective="people" if objective == "people" else "cells")
    seconds = time.process_time() - start
    people = sum(problem.cells[c].n for c in result.complementary)
    reach = [result.audit.n_interval[c] for c in problem.primary]
    short = sum(
        not (lo < problem.cells[c].n and (hi is None or hi > problem.cells[c].n))
        for c, (lo, hi) in zip(problem.primary, reach, strict=True)
    )
    return {"cells": len(result.complementary), "people": people, "seconds": seconds, "proved": result.proved_optimal,
            "bound": result.bound, "safe": result.safe, "under_one": short}  # fmt: skip


def child(kind: str, name: str, what: str, minutes: int) -> dict | str:
    command = [sys.executable, __file__, "--child", kind, name, what, "--minutes", str(minutes)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=minutes * 240, check=False)
    except subprocess.TimeoutExpired:
        return "time"
    last = done.stdout.strip().splitlines()
    return json.loads(last[-1]) if done.returncode == 0 and last else f"rc {done.returncode}"


def show(result: dict | str) -> str:
    if isinstance(result, str):
        return result
    mark = "opt" if result["proved"] else f"bound {result.get('bound', '?')}"
    return f"{result['cells']}/{result['people']}/{result['seconds']:.2f} s {mark}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--minutes", type=int, default=1)
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        kind, name, what = options.names
        answer = run_tau(name, what, options.minutes) if kind == "tau" else run_ours(name, what, kind)
        print(json.dumps(answer))
        return
    print("cells/people/CPU s: complementary only; ours with unions = the rule set's requirement")
    for name in options.names or NAMES:
        for objective in ("cells", "people"):
            tau = child("tau", name, objective, options.minutes)
            ours = child("exact", name, objective, options.minutes)
            print(f"{name:16} {objective:7} tau {show(tau):28} ours {show(ours):32}", end=" ", flush=True)
            if isinstance(tau, dict) and isinstance(ours, dict):
                print(f"time ours/tau {ours['seconds'] / max(tau['seconds'], 1e-3):.1f}", end=" ")
                print("under ±1:", ours["under_one"], end="")
            print()
        unions = child("policy", name, "cells", options.minutes)
        print(f"{name:16} with unions {'':10} ours {show(unions)}", flush=True)


if __name__ == "__main__":
    main()
