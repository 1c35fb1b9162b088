"""Slow, obvious checks that share no code with the engine: exact rational algebra and exhaustive search."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

SMALL_POLICY = {"min_n": 5, "n_round_base": 5, "n_round_below": 30, "interval_n": 3, "interval_years": 2.0}


def random_problem(rng: random.Random, *, means: bool = False, exact: bool | None = None) -> dict:
    """A small table: one-way, two-way with some margins, a hierarchy, or two linked tables."""
    shape = rng.choice(["one", "two", "two", "tree", "linked"])
    k = rng.randint(2, 4)
    grid = (2, rng.randint(2, 3))
    names = (
        [f"a{i}" for i in range(k)]
        if shape != "two"
        else [f"r{i}c{j}" for i, j in itertools.product(*map(range, grid))]
    )
    atoms = {}
    for name in names:
        n = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 9])
        atoms[name] = {"n": n, "sum": round(rng.uniform(-3, 3) * n, 2)} if means else {"n": n}
    cells: dict[str, dict] = {}

    def put(name: str, members: list[str], role: str, table: str = "t1") -> None:
        cells[name] = {"table": table, "role": role, "atoms": members}

    for name in names:
        if shape != "linked" or rng.random() < 0.7:
            put(name, [name], "interior")
    if shape == "two":
        for i in range(grid[0]):
            put(f"r{i}*", [f"r{i}c{j}" for j in range(grid[1])], "margin")
        for j in range(grid[1]):
            put(f"*c{j}", [f"r{i}c{j}" for i in range(grid[0])], "margin")
    if shape == "tree" and k >= 3:
        cut = rng.randint(1, k - 1)
        put("left", names[:cut], "margin")
        put("right", names[cut:], "margin")
    if shape == "linked":
        for i in range(rng.randint(1, 3)):
            put(f"band{i}", sorted(rng.sample(names, rng.randint(1, k))), "interior", f"t{2 + i}")
    if rng.random() < 0.8 or not cells:
        put("all", list(names), "grand")
    rounded = rng.random() < 0.3 if exact is None else not exact
    attacker = {
        "n_published": "rounded" if rounded else "exact",
        "knows_rule": False,
        "flags_primary": False,
        "value_bounds": [-10, 10] if means else None,
    }
    return {
        "kind": "means" if means else "counts",
        "policy": dict(SMALL_POLICY),
        "attacker": attacker,
        "atoms": atoms,
        "cells": cells,
    }


def size(data: dict, members: list[str]) -> int:
    return sum(data["atoms"][a]["n"] for a in members)


def rational_span(rows: list[list[int]], k: int) -> list[list[Fraction]]:
    """Reduced rows over the rationals."""
    m = [[Fraction(x) for x in row] for row in rows]
    r = 0
    for c in range(k):
        p = next((i for i in range(r, len(m)) if m[i][c]), None)
        if p is None:
            continue
        m[r], m[p] = m[p], m[r]
        m[r] = [x / m[r][c] for x in m[r]]
        for i in range(len(m)):
            if i != r and m[i][c]:
                m[i] = [a - m[i][c] * b for a, b in zip(m[i], m[r], strict=True)]
        r += 1
    return m[:r]


def in_span(span: list[list[Fraction]], vector: list[int]) -> bool:
    v = [Fraction(x) for x in vector]
    for row in span:
        p = next(i for i, x in enumerate(row) if x)
        if v[p]:
            v = [a - v[p] * b for a, b in zip(v, row, strict=True)]
    return not any(v)


def vector(data: dict, members: list[str]) -> list[int]:
    return [int(a in members) for a in data["atoms"]]


def smallest_union(data: dict, suppressed: frozenset[str]) -> int | None:
    """Fewest people (at least one) in a derivable 0/1 union, over all 2^k unions."""
    names = list(data["atoms"])
    rows = [vector(data, c["atoms"]) for name, c in data["cells"].items() if name not in suppressed]
    span = rational_span(rows, len(names)) if rows else []
    best = None
    for bits in itertools.product((0, 1), repeat=len(names)):
        n = sum(data["atoms"][a]["n"] for a, b in zip(names, bits, strict=True) if b)
        if n and (best is None or n < best) and in_span(span, list(bits)):
            best = n
    return best


def interval_of(data: dict, cell: dict) -> tuple[int, int]:
    """What a printed N says (no rule known)."""
    n = size(data, cell["atoms"])
    if data["attacker"]["n_published"] == "exact":
        return n, n
    policy = data["policy"]
    base, below = policy["n_round_base"], policy["n_round_below"]

    def shown(x: int) -> int:
        return x if x >= below else base * math.floor(x / base + 0.5)

    same = [x for x in range(max(0, n - base), n + base + 1) if shown(x) == shown(n)]
    return min(same), max(same)


def intervals(data: dict, suppressed: frozenset[str]) -> dict[str, tuple[int, int | None]]:
    """Exact N intervals of the suppressed cells by a search over whole numbers."""
    names = list(data["atoms"])
    rows = [
        (vector(data, c["atoms"]), *interval_of(data, c)) for name, c in data["cells"].items() if name not in suppressed
    ]
    cap = [min((hi for v, _, hi in rows if v[i]), default=None) for i in range(len(names))]
    return {name: _one(data, rows, cap, vector(data, data["cells"][name]["atoms"])) for name in sorted(suppressed)}


def _feasible(rows: list, cap: list, goal: list[int], value: int) -> bool:
    """Depth-first over atoms, each tried only between what the rows still need and still allow."""
    k = len(cap)
    rows = [*rows, (goal, value, value)]
    top = [value if c is None else c for c in cap]

    def walk(i: int, sums: list[int]) -> bool:
        if i == k:
            return all(lo <= s <= hi for (_, lo, hi), s in zip(rows, sums, strict=True))
        low, high = 0, top[i]
        for (v, lo, hi), s in zip(rows, sums, strict=True):
            later = sum(top[j] for j in range(i + 1, k) if v[j])
            if v[i]:
                low, high = max(low, lo - s - later), min(high, hi - s)
            elif s > hi or s + later < lo:
                return False
        return any(
            walk(i + 1, [s + n * v[i] for (v, _, _), s in zip(rows, sums, strict=True)]) for n in range(low, high + 1)
        )

    return walk(0, [0] * len(rows))


def _one(data: dict, rows: list, cap: list, goal: list[int]) -> tuple[int, int | None]:
    free = any(g and c is None for g, c in zip(goal, cap, strict=True))
    truth = sum(g * atom["n"] for g, atom in zip(goal, data["atoms"].values(), strict=True))
    low = next(x for x in range(truth + 1) if _feasible(rows, cap, goal, x))
    if free:
        return low, None
    top = sum(c for g, c in zip(goal, cap, strict=True) if g)
    return low, next(x for x in range(top, truth - 1, -1) if _feasible(rows, cap, goal, x))


def primary(data: dict) -> frozenset[str]:
    limit = data["policy"]["min_n"]
    return frozenset(name for name, c in data["cells"].items() if 0 < size(data, c["atoms"]) < limit)


def safe(data: dict, suppressed: frozenset[str], requirement: str) -> bool:
    found = intervals(data, suppressed)
    exact = all(found[c][0] != found[c][1] for c in primary(data) & suppressed)
    if requirement == "exact":
        return exact
    union = smallest_union(data, suppressed)
    return exact and not (union is not None and union < data["policy"]["min_n"])


def fewest(data: dict, requirement: str) -> int | None:
    """Fewest complementary cells, over all sets."""
    first = primary(data)
    candidates = [c for c, cell in data["cells"].items() if c not in first and size(data, cell["atoms"])]
    for count in range(len(candidates) + 1):
        if any(safe(data, first | set(extra), requirement) for extra in itertools.combinations(candidates, count)):
            return count
    return None
