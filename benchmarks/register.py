"""The register of cohorts: time and memory of registering, people found under other ids, nobody else accused.

    python benchmarks/register.py [--people 100000] [--columns 1400] [--session 5000] [--others 1000]

Simulated people of one population (5 latents behind all columns, noise 0.5), values with four digits. The session's
people come from the register under other ids, in another order, 5 % of their values moved by less than the step to
which tokens round, and a tenth of the columns left out. The others are cohorts of the same population, 500 people each.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from sacro_deltab.cohort.simulate import smith_cohort
from sacro_deltab.ledger import Ledger, open_ledger
from sacro_deltab.ledger.register import Intake, Rows, find_people
from sacro_deltab.ledger.tokens import COUNT, Tokeniser, Tokens, agreeing, column_key, steps_of

BLOCK = 5_000


def columns_of(n: int, f: int, seed: int) -> dict[str, np.ndarray]:
    """One block of people's columns."""
    people = smith_cohort(n, f, seed=seed, loading_seed=1)
    return dict(zip(people.feature_names, np.round(people.X, 4).T, strict=True))


def altered(columns: dict[str, np.ndarray], seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Another order, 5 % of values moved by less than a step, a tenth of the columns left out."""
    rng, steps, names = np.random.default_rng(seed), steps_of(columns), list(columns)
    n = len(columns[names[0]])
    order = rng.permutation(n)
    kept = sorted(rng.permutation(len(names))[: int(0.9 * len(names))])
    out = {}
    for name in (names[j] for j in kept):
        step = steps.get(column_key(name), 0.0)
        out[name] = (columns[name] + (rng.random(n) < 0.05) * rng.uniform(-step, step, n))[order]
    return out, order


def collision_bits(tokens: Tokens) -> tuple[float, float]:
    """Collision entropy of one token, the mean over tokens, and the least (as far as n people can show)."""
    pairs, bits = tokens.shape[1] * (tokens.shape[1] - 1) / 2, []
    for row in tokens:
        _, count = np.unique(row[row != 0], return_counts=True)
        same = float((count * (count - 1.0) / 2).sum())
        bits.append(-math.log2(max(same, 1.0) / pairs))
    return float(np.mean(bits)), min(bits)


def main() -> int:
    """Print the figures; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1_400)
    parser.add_argument("--session", type=int, default=5_000)
    parser.add_argument("--others", type=int, default=1_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return measure(args, open_ledger(str(Path(folder) / "budget.db"), create=True))


def measure(args: argparse.Namespace, book: Ledger) -> int:
    """Register, look for the same people, look for others."""
    intake, spent, clock = Intake(book), 0.0, 0.0
    first = columns_of(BLOCK, args.columns, 0)
    for start in range(0, args.people, BLOCK):
        size = min(BLOCK, args.people - start)
        block = first if start == 0 else columns_of(size, args.columns, start)
        rows = Rows([f"P{i}" for i in range(start, start + size)], {k: v[:size] for k, v in block.items()}, {},
                    range(start + 2, start + size + 2))  # fmt: skip
        cpu, wall = time.process_time(), time.perf_counter()
        intake.add(rows)
        spent, clock = spent + time.process_time() - cpu, clock + time.perf_counter() - wall
    cpu, wall = time.process_time(), time.perf_counter()
    intake.register("site-a", who="staff")
    spent, clock = spent + time.process_time() - cpu, clock + time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    size = f"{args.people} x {args.columns}"
    print(f"registered {size}: {spent:.1f} s CPU, {clock:.1f} s by the clock, peak {peak:.2f} GB")

    n = min(args.session, BLOCK, args.people)
    mine = {k: v[:n] for k, v in first.items()}
    changed, order = altered(mine, 5)
    cpu, wall = time.process_time(), time.perf_counter()
    found = find_people(book, "site-b", [f"z{i}" for i in order], changed, who="analyst")
    match, match_clock = time.process_time() - cpu, time.perf_counter() - wall
    shared = 0 if found is None else sum(o.shared for o in found.overlaps)
    print(f"matched {n} people in {match:.2f} s CPU, {match_clock:.2f} s by the clock; found {shared / n:.4%}")

    key, steps = book.signing_key().secret("tokens"), steps_of(first)
    tokens = Tokeniser(key, steps)
    registered, theirs = tokens.tokens(mine), tokens.tokens(changed)
    pairs = agreeing(theirs, registered)
    right = np.unique(pairs[order[pairs[:, 0]] == pairs[:, 1], 0]).size
    wrong = int((order[pairs[:, 0]] != pairs[:, 1]).sum())
    kept = float((registered[:, order] == theirs).mean()) * COUNT
    mean, least = collision_bits(registered)
    print(f"found as themselves {right / n:.4%}; pairs of two different people {wrong}")
    print(f"tokens that agree {kept:.1f} of {COUNT}")
    print(f"collision entropy of a token: mean {mean:.1f} bits, least {least:.1f} (of {n} people)")

    accused = 0
    for k in range(args.others):
        people = columns_of(500, args.columns, 1_000_000 + k)
        accused += find_people(book, f"other-{k}", [f"q{k}-{i}" for i in range(500)], people, who="analyst") is not None
    print(f"other cohorts accused: {accused} of {args.others}")
    return int(right / n < 0.99 or accused > 0 or match_clock > 5)


if __name__ == "__main__":
    sys.exit(main())
