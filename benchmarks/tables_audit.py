"""How long an audit and a protection take, and how that grows.

Two-way tables of n × n cells (about a tenth withheld), and sessions of linked one-way tables over one cohort: the audit
of all tables together, and the choice of a pattern that meets the protection intervals (its audits included). CPU
seconds of one run, imports apart; best of three for what is short.

    python benchmarks/tables_audit.py [--people 10000] [--tables 50]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from tables_instances import instance

from sacro_deltab.measure.linked import LinkedTables
from sacro_deltab.measure.numbers import PrintedCell
from sacro_deltab.tables import Protection, TablePolicy, audit_pattern, exactly_disclosed, protect

POLICY = TablePolicy(
    20, Fraction(3, 10), 10, 2.0, zeros_are_primary=True, n_round_base=5, n_round_below=100, value_bounds=(-40.0, 40.0)
)


def seconds(work: Callable[[], object], times: int = 1) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def two_way(name: str) -> tuple[int, int, float, float]:
    problem = instance(name)
    inner = [c.id for c in problem.cells.values() if c.role == "interior"]
    gone = frozenset(problem.primary) | frozenset(inner[::97])
    flags = seconds(lambda: exactly_disclosed(problem, gone), 3)
    return len(problem.cells), len(gone), flags, seconds(lambda: audit_pattern(problem, gone))


def session(people: int, tables: int) -> LinkedTables:
    """Tables of four groups of training deltas, two of them with a small group and its complement withheld."""
    rng = np.random.default_rng(1)
    values = rng.normal(0, 5, people)
    ages = rng.uniform(45, 75, people)
    linked = LinkedTables(POLICY, ages=lambda: ages)
    linked.values["v1"] = values - values.mean()
    for t in range(tables):
        group = rng.integers(0, 4, people)
        if t < 2:
            group[rng.choice(people, 12, replace=False)] = 4
        cells = [
            PrintedCell(f"t{t}", str(g), np.flatnonzero(group == g), "interior", "v1", "mean")
            for g in range(5 if t < 2 else 4)
        ]
        gone = ["4", "3"] if t < 2 else []
        linked.publish(cells, gone, ())
    return linked


def protected(linked: LinkedTables) -> tuple[float, Protection]:
    """Choose for the session as if nothing had left yet."""
    problem = linked.problem("v1", fixed=False)
    assert problem is not None
    start = time.process_time()
    found = protect(problem, policy="interval")
    return time.process_time() - start, found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--people", type=int, default=10_000)
    options.add_argument("--tables", type=int, default=50)
    given = options.parse_args()
    two_way("5x4")  # imports
    print("table      cells  withheld  flags/s  audit/s")
    for name in ("10x10", "25x20", "50x20", "100x50", "100x100"):
        cells, gone, flags, audit = two_way(name)
        print(f"{name:10} {cells:5} {gone:9} {flags:8.4f} {audit:8.3f}", flush=True)
    print("people  tables  audit/s  protect/s  complements  safe")
    sizes = [(given.people // share, given.tables) for share in (4, 2)]
    sizes += [(given.people, given.tables // share) for share in (4, 2, 1)]
    for people, tables in sizes:
        linked = session(people, tables)
        gone = frozenset(linked.suppressed)
        audit = seconds(lambda linked=linked, gone=gone: linked.verdict("v1", (), gone))
        took, found = protected(linked)
        print(
            f"{people:6} {tables:7} {audit:8.2f} {took:10.2f} {len(found.complementary):12}  {found.safe}", flush=True
        )


if __name__ == "__main__":
    main()
