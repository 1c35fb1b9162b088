"""The definitions of fixtures/cases/suppression/README.md, written down a second time and evaluated by enumeration.

Nothing here is shared with the engine: every whole-number vector of people that fits what is published is listed,
every union of atoms is tried against the rational null space, and the mean of a withheld cell is optimised for each
of those vectors apart.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

DEFAULT = {
    "min_n": 20, "withhold_share": 0.3, "n_round_base": 5, "n_round_below": 100, "mean_decimals": 1,
    "zeros_are_primary": False,
}  # fmt: skip
TOO_MANY = 3_000
Row = tuple[tuple[int, ...], int, int | None]


class TooLarge(Exception):
    """More tables fit than are worth listing."""


class Contradicted(Exception):
    """No table fits what the reader believes."""


class Oracle:
    """One problem file."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.d = data
        self.policy = {**DEFAULT, **data.get("policy", {})}
        self.attacker = data.get("attacker", {})
        self.names = list(data["atoms"])
        self.k = len(self.names)
        self.n = [data["atoms"][a]["n"] for a in self.names]
        self.cells = data["cells"]
        self.zero = data.get("structural_zero", [])
        limit, zeros = self.policy["min_n"], self.policy["zeros_are_primary"]
        self.primary = sorted(
            c for c in self.cells if c not in self.zero and (0 < self.size(c) < limit or (self.size(c) == 0 and zeros))
        )

    def vector(self, atoms: list[str]) -> tuple[int, ...]:
        return tuple(int(a in atoms) for a in self.names)

    def size(self, cell: str) -> int:
        return sum(self.d["atoms"][a]["n"] for a in self.cells[cell]["atoms"])

    def printed(self, n: int) -> int:
        base, below = self.policy["n_round_base"], self.policy["n_round_below"]
        return n if n >= below else base * ((2 * n + base) // (2 * base))

    def says(self, cell: str) -> tuple[int, int]:
        """What a printed N says."""
        n = self.size(cell)
        if self.attacker.get("n_published", "exact") == "exact":
            return n, n
        least = self.policy["min_n"] if self.attacker.get("knows_rule") else 0
        reach, shown = 2 * self.policy["n_round_base"], self.printed(n)
        zero = not self.policy["zeros_are_primary"]  # nobody may be printed
        same = [
            m
            for m in range(max(0, n - reach), n + reach)
            if self.printed(m) == shown and (m >= least or (zero and m == 0))
        ]
        if not same or max(same) == 0 < n:  # a pattern that breaks the rule the reader believes in
            raise Contradicted
        return min(same), max(same)

    def rows(self, gone: frozenset[str]) -> list[Row]:
        out: list[Row] = []
        for name, cell in self.cells.items():
            v = self.vector(cell["atoms"])
            if name not in gone and cell.get("n_rounding") == "hidden":
                somebody = self.printed_mean(name) is not None or self.policy["zeros_are_primary"]
                out.append((v, self.policy["min_n"] if somebody and self.attacker.get("knows_rule") else 0, None))
            elif name not in gone:
                out.append((v, *self.says(name)))
            elif self.attacker.get("flags_primary"):
                if name in self.primary:
                    out.append((v, 0, self.policy["min_n"] - 1))
                elif self.attacker.get("knows_rule"):
                    out.append((v, self.policy["min_n"], None))
        out += [(self.vector(self.cells[c]["atoms"]), 0, 0) for c in self.zero]
        out += [row for cell in self.cells.values() if "percent" in cell for row in self.shares(cell, gone)]
        out += [(self.vector(g), lo, hi) for g, lo, hi in self.attacker.get("extra_n", [])]
        return out

    def shares(self, cell: dict[str, Any], gone: frozenset[str]) -> list[Row]:
        """What a printed percentage of a cell says of both; nothing where the cell that is 100 % is withheld."""
        base, value, places = cell["percent"]["of"], cell["percent"]["value"], cell["percent"].get("decimals", 1)
        if base in gone:
            return []
        low, high = self.says(base)
        pairs = [(k, n) for n in range(low, high + 1) for k in range(n + 1) if percent(k, n, places) == value]
        if not pairs:
            raise Contradicted
        return [
            (self.vector(c["atoms"]), min(p[i] for p in pairs), max(p[i] for p in pairs))
            for i, c in enumerate((cell, self.cells[base]))
        ]

    def tables(self, gone: frozenset[str]) -> tuple[list[tuple[int, ...]], list[bool]]:
        """Every vector of people that fits, and which atoms nothing bounds above (listed up to the largest demand)."""
        rows = self.rows(gone)
        cap = [min((hi for v, _, hi in rows if v[i] and hi is not None), default=None) for i in range(self.k)]
        demand = max((lo for _, lo, hi in rows if hi is None), default=0)
        top = [demand if c is None else c for c in cap]
        found = list(itertools.islice(self._walk(rows, top), TOO_MANY + 1))
        if len(found) > TOO_MANY:
            raise TooLarge
        if not found:
            raise Contradicted
        return found, [c is None for c in cap]

    def _walk(self, rows: list[Row], top: list[int]) -> Iterator[tuple[int, ...]]:
        later = [[sum(top[j] for j in range(i, self.k) if v[j]) for i in range(self.k + 1)] for v, _, _ in rows]
        vector = [0] * self.k
        steps = 0

        def go(i: int, sums: list[int]) -> Iterator[tuple[int, ...]]:
            nonlocal steps
            steps += 1
            if steps > 20 * TOO_MANY:
                raise TooLarge
            if i == self.k:
                yield tuple(vector)
                return
            low, high = 0, top[i]
            for r, (v, lo, hi) in enumerate(rows):
                if v[i]:
                    low = max(low, lo - sums[r] - later[r][i + 1])
                    if hi is not None:
                        high = min(high, hi - sums[r])
                elif sums[r] + later[r][i + 1] < lo or (hi is not None and sums[r] > hi):
                    return
            for x in range(low, high + 1):
                vector[i] = x
                yield from go(i + 1, [s + x * v[i] for (v, _, _), s in zip(rows, sums, strict=True)])

        return go(0, [0] * len(rows))

    def n_interval(self, gone: frozenset[str], group: list[str] | None = None) -> dict[str, list[int | None]]:
        found, free = self.tables(gone)
        out: dict[str, list[int | None]] = {}
        asked = {c: self.cells[c]["atoms"] for c in gone} if group is None else {"group": group}
        for name, atoms in asked.items():
            members = [i for i, a in enumerate(self.names) if a in atoms]
            sums = [sum(t[i] for i in members) for t in found]
            out[name] = [min(sums), None if any(free[i] for i in members) else max(sums)]
        return out

    def union(self, gone: frozenset[str]) -> dict[str, Any] | None:
        """Smallest 0/1 union of at least one person in the rational span: orthogonal to the whole null space."""
        told = [
            name
            for name, c in self.cells.items()
            if name not in gone and (c.get("n_rounding") != "hidden" or self.printed_mean(name) is not None)
        ]
        rows = [self.vector(self.cells[name]["atoms"]) for name in {*told, *self.zero}]
        if not rows:
            return None
        null = null_space(rows, self.k)
        best: tuple[int, int, tuple[int, ...]] | None = None
        for bits in itertools.product((0, 1), repeat=self.k):
            n = sum(x * b for x, b in zip(self.n, bits, strict=True))
            if n and (best is None or n <= best[0]) and all(not sum(map(int.__mul__, bits, z)) for z in null):
                atoms = tuple(i for i, b in enumerate(bits) if b)
                best = min(best or (n, len(atoms), atoms), (n, len(atoms), atoms))
        return None if best is None else {"n": best[0], "atoms": sorted(self.names[i] for i in best[2])}

    def withhold(self, gone: frozenset[str]) -> dict[str, dict[str, Any]]:
        share = Fraction(str(self.policy["withhold_share"]))
        out = {}
        for table in dict.fromkeys(c.get("table", "t1") for c in self.cells.values()):
            every = [c for c, q in self.cells.items() if q.get("table", "t1") == table and c not in self.zero]
            inner = [c for c in every if self.cells[c].get("role", "interior") == "interior"]
            a, i = sum(c in gone for c in every), sum(c in gone for c in inner)
            all_over = a > share * len(every)
            out[table] = {
                "suppressed_all": a, "cells_all": len(every), "withhold_all": all_over,
                "suppressed_interior": i, "cells_interior": len(inner),
                "withhold_interior": i > share * len(inner) if inner else None,
            }  # fmt: skip
        return out

    def answer(self, gone: frozenset[str]) -> dict[str, Any]:
        """One entry of `published_sets`, the means apart."""
        n = self.n_interval(gone)
        exact = sorted(c for c, (lo, hi) in n.items() if lo == hi)
        union = self.union(gone)
        safe = not set(exact) & set(self.primary)
        policy = safe and not (union is not None and union["n"] < self.policy["min_n"])
        return {
            "suppressed": sorted(gone), "n_interval": n, "exactly_disclosed": exact,
            "smallest_derivable_union": union, "safe_exact": safe, "safe_policy": policy, "attackable": not policy,
            "withhold": self.withhold(gone),
        }  # fmt: skip

    def mean_interval(self, gone: frozenset[str], group: list[str]) -> tuple[Any, Any]:
        """Least and largest mean of a group over all fitting tables of people and sums; None: unbounded.

        A group that nothing bounds above goes on to a limit, which is taken at ten thousand people.
        """
        found, free = self.tables(gone)
        members = [i for i, a in enumerate(self.names) if a in group]
        if any(free):
            grown = [tuple(x + (10**7 if f else 0) for x, f in zip(t, free, strict=True)) for t in found]
            found = found + grown
        if len(found) > 60:
            raise TooLarge
        ends = self._sums(gone, [t for t in found if any(t[i] for i in members)], members)
        low, high = min((a for a, _ in ends), default=math.inf), max((b for _, b in ends), default=-math.inf)
        return (None if low == -math.inf else low), (None if high == math.inf else high)

    def _sums(
        self, gone: frozenset[str], tables: list[tuple[int, ...]], members: list[int]
    ) -> list[tuple[float, float]]:
        """Least and largest mean for each table of people: one linear program with a block per table and end.

        Where a block has no answer (nothing fits, or unbounded), every table is asked for alone.
        """
        from scipy.optimize import linprog
        from scipy.sparse import block_diag

        half = 0.5 * 10.0 ** -self.policy["mean_decimals"]
        bounds = self.attacker.get("value_bounds")
        low, high = bounds or (0, 0)
        printed = [(self.vector(self.cells[c]["atoms"]), self.printed_mean(c)) for c in self.cells if c not in gone]
        rows = [(v, mean) for v, mean in printed if mean is not None]
        blocks, limits, span, cost = [], [], [], []
        for table, sign in itertools.product(tables, (1, -1)):
            people = [sum(map(int.__mul__, v, table)) for v, _ in rows]
            if rows:
                blocks.append(np.array([x for v, _ in rows for x in (v, [-y for y in v])], float))
            limits += [x * n for (_, m), n in zip(rows, people, strict=True) for x in (m + half, half - m)]
            span += [(None, None) if bounds is None and x else (low * x, high * x) for x in table]
            cost += [sign * float(i in members) for i in range(self.k)]
        if not tables:
            return []
        matrix = block_diag(blocks) if blocks else None
        out = linprog(cost, A_ub=matrix, b_ub=limits if blocks else None, bounds=span)
        if out.status:
            if len(tables) > 1:
                return [self._sums(gone, [t], members)[0] for t in tables]
            inside = linprog([0] * len(cost), A_ub=matrix, b_ub=limits if blocks else None, bounds=span)
            if inside.status:
                return [(math.inf, -math.inf)]
            size = sum(tables[0][i] for i in members)
            return [tuple(self._end(cost, matrix, limits, span, part) / size for part in (0, 1))]  # type: ignore[misc]
        x = np.array(out.x).reshape(-1, self.k) * np.array(cost).reshape(-1, self.k)
        ends = x.sum(axis=1) / np.repeat([sum(t[i] for i in members) for t in tables], 2)
        return [(a, -b) for a, b in zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True)]

    def _end(self, cost: list[float], matrix: Any, limits: list[float], span: list[Any], part: int) -> float:
        from scipy.optimize import linprog

        only = [c if i // self.k == part else 0.0 for i, c in enumerate(cost)]
        out = linprog(only, A_ub=matrix, b_ub=limits if matrix is not None else None, bounds=span)
        sign = -1 if part else 1
        return sign * (out.fun if out.status == 0 else -math.inf)

    def printed_mean(self, cell: str) -> float | None:
        entry = self.cells[cell]
        if "mean" in entry:
            return entry["mean"]
        if self.d.get("kind") != "means" or not self.size(cell):
            return None
        total = sum(self.d["atoms"][a]["sum"] for a in entry["atoms"])
        text = Decimal(repr(total / self.size(cell)))  # a tie of the decimals that a person reads goes to the even one
        return float(text.quantize(Decimal(1).scaleb(-self.policy["mean_decimals"]), ROUND_HALF_EVEN))

    def safe(self, gone: frozenset[str], requirement: str) -> bool:
        found = self.answer(gone)
        return bool(found["safe_exact" if requirement == "exact" else "safe_policy"])

    def fewest(self, requirement: str) -> list[frozenset[str]]:
        """Every smallest complementary set; empty list: nothing helps."""
        fixed = {*self.primary, *self.zero, *self.d.get("must_publish", [])}
        candidates = [c for c in self.cells if c not in fixed and self.size(c)]
        for count in range(len(candidates) + 1):
            sets = [frozenset(s) for s in itertools.combinations(candidates, count)]
            good = [s for s in sets if self.safe(frozenset(self.primary) | s, requirement)]
            if good:
                return good
        return []


def percent(k: int, n: int, places: int) -> float:
    """k of n as tables print it: half up; 0 of nobody."""
    share = Fraction(100 * k * 10**places, n) if n else Fraction(0)
    return float(Fraction(math.floor(share + Fraction(1, 2)), 10**places))


def wider(rng: random.Random, *, means: bool = False) -> dict[str, Any]:
    """`question` with what only some files have: percentages, N that is not printed, a group that only differences
    define, and groups of nobody known to be empty in any shape."""
    data = question(rng, means=means)
    atoms, cells = data["atoms"], data["cells"]
    size = {name: sum(atoms[a]["n"] for a in c["atoms"]) for name, c in cells.items()}
    for name, cell in cells.items():
        above = [b for b, c in cells.items() if b != name and set(cell["atoms"]) < set(c["atoms"])]
        if above and rng.random() < 0.3:
            base, places = rng.choice(above), rng.choice([0, 1, 1, 2])
            cell["percent"] = {"of": base, "value": percent(size[name], size[base], places), "decimals": places}
    bases = {c["percent"]["of"] for c in cells.values() if "percent" in c}
    for name in sorted(cells.keys() - bases - set(data.get("structural_zero", []))):
        if rng.random() < 0.15 and not means:  # what nothing bounds above may grow apart: means are not enumerated then
            cells[name]["n_rounding"] = "hidden"
            cells[name].pop("n_published", None)
    empty = [a for a in atoms if not atoms[a]["n"]]
    if empty and rng.random() < 0.7:
        group = sorted(rng.sample(empty, rng.randint(1, len(empty))))
        cells["nobody"] = {"atoms": group, "table": "t9"}
        data["structural_zero"] = [*data.get("structural_zero", []), "nobody"]
    data["derived_group"] = {"atoms": rng.sample(list(atoms), rng.randint(1, min(3, len(atoms))))}
    for asked in data["published_sets"]:
        small = set(Oracle(data).primary) if asked["name"] != "set 3" else set()
        asked["suppressed"] = sorted({*asked["suppressed"], *small})
    return data


def null_space(rows: list[tuple[int, ...]], k: int) -> list[list[int]]:
    """A whole-number basis of the vectors orthogonal to every row, by rational elimination."""
    m = [[Fraction(x) for x in row] for row in rows]
    pivots: list[int] = []
    for c in range(k):
        r = len(pivots)
        p = next((i for i in range(r, len(m)) if m[i][c]), None)
        if p is None:
            continue
        m[r], m[p] = m[p], m[r]
        m[r] = [x / m[r][c] for x in m[r]]
        for i in range(len(m)):
            if i != r and m[i][c]:
                m[i] = [a - m[i][c] * b for a, b in zip(m[i], m[r], strict=True)]
        pivots.append(c)
    out = []
    for f in (c for c in range(k) if c not in pivots):
        z = [Fraction(int(c == f)) for c in range(k)]
        for i, c in enumerate(pivots):
            z[c] = -m[i][f]
        scale = math.lcm(*(x.denominator for x in z))
        out.append([int(x * scale) for x in z])
    return out


def question(rng: random.Random, *, means: bool = False) -> dict[str, Any]:
    """A random file that holds only a question; every key that may be left out is left out at times."""
    min_n = rng.choice([3, 5, 5, 8, 20])
    atoms, cells = _groups(rng, min_n, means)
    data: dict[str, Any] = {"kind": "means" if means else "counts", "atoms": atoms, "cells": cells}
    if not means and rng.random() < 0.3:
        del data["kind"]
    policy: dict[str, Any] = {} if min_n == 20 else {"min_n": min_n}
    for key, values in (
        ("withhold_share", [0.3, "3/10", "0.3", "1/4", 0.5]), ("n_round_base", [5, 3, 4, 10]),
        ("n_round_below", [100, 10, 12, 25]), ("mean_decimals", [0, 1, 2]), ("zeros_are_primary", [True, False]),
        ("withhold_op", [">"]), ("symbol", ["single"]),
    ):  # fmt: skip
        if rng.random() < 0.35:
            policy[key] = rng.choice(values)
    if policy or rng.random() < 0.5:
        data["policy"] = policy
    attacker: dict[str, Any] = {}
    for key, values in (
        ("n_published", ["exact", "rounded", "rounded"]), ("knows_rule", [True, False]),
        ("flags_primary", [True, False]), ("integer", [True]),
        ("value_bounds", [None, [-40, 40], [-10, 10], [0, 8.5], [-3, 20]]),
    ):  # fmt: skip
        if rng.random() < 0.7:
            attacker[key] = rng.choice(values)
    if means and attacker.get("value_bounds"):  # nobody's value lies outside what everybody knows
        low, high = attacker["value_bounds"]
        for atom in atoms.values():
            atom["sum"] = round(rng.uniform(low, high) * atom["n"], 2)
    names = list(atoms)
    if rng.random() < 0.2:
        group = sorted(rng.sample(names, rng.randint(1, min(2, len(names)))))
        n = sum(atoms[a]["n"] for a in group)
        attacker["extra_n"] = [[group, max(0, n - rng.randint(0, 2)), rng.choice([None, n, n + 3])]]
    if attacker or rng.random() < 0.5:
        data["attacker"] = attacker
    empty = [c for c, q in cells.items() if not sum(atoms[a]["n"] for a in q["atoms"])]
    if empty and rng.random() < 0.6:
        data["structural_zero"] = rng.sample(empty, rng.randint(1, len(empty)))
    elif rng.random() < 0.3:
        data["structural_zero"] = []
    if rng.random() < 0.2:
        data["must_publish"] = rng.sample(sorted(cells), 1)
    oracle = Oracle(data)
    for name, cell in cells.items():
        if rng.random() < 0.3:
            cell["n"] = oracle.size(name)
        if rng.random() < 0.3 and attacker.get("n_published") == "rounded":
            cell["n_published"] = oracle.printed(oracle.size(name))
        if means and rng.random() < 0.15:
            cell["mean"] = None
    sets = [sorted({*oracle.primary, *(c for c in cells if rng.random() < p)}) for p in (0.0, 0.2, 0.5)]
    sets.append(sorted(c for c in cells if rng.random() < 0.4))  # whatever somebody may have thought of
    data["published_sets"] = [{"name": f"set {i}", "suppressed": s} for i, s in enumerate(sets)]
    return data


def _groups(rng: random.Random, min_n: int, means: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    shape = rng.choice(["one", "two", "two", "three", "tree", "linked", "linked", "releases", "wild"])
    if shape in ("two", "three"):
        grid = rng.choice([(2, 2), (2, 3), (3, 3)]) if shape == "two" else (2, 2, 2)
        keys = ["".join(str(i) for i in index) for index in itertools.product(*map(range, grid))]
    else:
        keys = [f"a{i}" for i in range(rng.randint(1, 3 if min_n == 20 or means else 5))]
    atoms: dict[str, Any] = {}
    for key in keys:
        n = rng.choice([0, 1, min_n - 2, min_n - 1, min_n, min_n + 1, min_n + 3, 2 * min_n])
        atoms[key] = {"n": n, "sum": round(rng.uniform(-4, 4) * n, 2)} if means else {"n": n}
    cells: dict[str, Any] = {}

    def put(name: str, members: list[str], role: str = "interior", table: str = "t1") -> None:
        cells[name] = {"atoms": members}
        if role != "interior" or rng.random() < 0.5:
            cells[name]["role"] = role
        if table != "t1" or rng.random() < 0.5:
            cells[name]["table"] = table

    if shape == "releases":
        for i in range(rng.randint(2, 3)):
            put(f"rel{i}: All", sorted(rng.sample(keys, rng.randint(1, len(keys)))), "grand", f"rel{i}")
        return atoms, cells
    if shape == "wild":
        for i in range(rng.randint(1, 7)):
            members = rng.sample(keys, rng.randint(1, len(keys)))
            put(f"x{i}", members, rng.choice(["interior", "margin", "grand"]), rng.choice(["t1", "t2"]))
        return atoms, cells
    for key in keys:
        if shape in ("one", "tree") or rng.random() < 0.85:
            put(key, [key])
    if shape in ("two", "three"):
        for axis, position in itertools.product(range(len(keys[0])), "012"):
            members = [key for key in keys if key[axis] == position]
            if members and rng.random() < 0.85:
                put(f"axis {axis}: {position}", members, "margin")
        if shape == "three":
            for i, j in itertools.product("01", repeat=2):
                if rng.random() < 0.7:
                    put(f"edge {i}{j}", [key for key in keys if key[:2] == i + j], "margin")
    if shape == "tree" and len(keys) > 1:
        cut = rng.randint(1, len(keys) - 1)
        put("left", keys[:cut], "margin")
        put("right", keys[cut:], "margin")
    if shape == "linked":
        for i in range(rng.randint(1, 3)):
            put(f"band {i}", sorted(rng.sample(keys, rng.randint(1, len(keys)))), "interior", f"t{2 + i // 2}")
    if rng.random() < 0.85 or not cells:
        put("All", list(keys), "grand")
    return atoms, cells
