"""Reading, checking and writing the JSON form of a problem. Nothing is repaired: what does not add up is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..base.errors import InputError
from .identities import identity_from_json, identity_to_json
from .policy import TablePolicy, as_share, is_primary_n
from .primary import exact
from .problem_schema import check_schema
from .released import percent_counts
from .rounding import half_width, round_value, rounded_n_interval, shown_n
from .table import LARGEST, ROLES, Atom, Attacker, Cell, Problem, PublishedSet

# What a case file means when it does not say (fixtures/cases/suppression/README.md); sessions use the rule set's.
CASE_POLICY = {
    "min_n": 20,
    "withhold_share": "3/10",
    "n_round_base": 5,
    "n_round_below": 100,
    "mean_decimals": 1,
    "zeros_are_primary": False,
    "interval_n": 10,
    "interval_years": 2.0,
}
COUNT_KINDS = ("counts", "means")
LARGEST_N = 10**9  # of one group: the sums of means of a hundred thousand such cells still have their last places


class _Reader:
    def __init__(self, data: Mapping[str, Any], path: object | None) -> None:
        self.data, self.path = data, path

    def fail(self, what: str, place: str, next_step: str | None = None, inside: str | None = None) -> InputError:
        return InputError(what, path=self.path, place=place, next_step=next_step, inside=inside)

    def count(self, value: object, place: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise self.fail("N must be a whole number", place, "count people, not weights")
        if value < 0:
            raise self.fail("N is negative", place, "count people")
        if value > LARGEST_N:
            raise self.fail(f"N is larger than {LARGEST_N}", place, "count people")
        return int(value)

    def number(self, value: object, place: str) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fail("not a number", place)
        number = float(value)
        if number != number or abs(number) > LARGEST:
            raise self.fail("not a number a table can hold", place, "write it in years, below 1e15")
        return number


def _share(reader: _Reader, value: object, key: str) -> Fraction:
    try:
        return as_share(value, key)
    except InputError as error:
        step = error.next_step or f"write {key} as 3/10 or 0.3"
        raise reader.fail(error.what, f"policy.{key}", step) from error


def _value_bounds(reader: _Reader) -> tuple[float, float] | None:
    given, place = reader.data.get("attacker", {}).get("value_bounds"), "attacker.value_bounds"
    if given is None:
        return None
    low, high = reader.number(given[0], f"{place}[0]"), reader.number(given[1], f"{place}[1]")
    if low is None or high is None or not low < high:
        raise reader.fail(
            "value_bounds must be a lower and a larger upper bound", place, "write null where nothing is known"
        )
    return low, high


def _policy(reader: _Reader) -> TablePolicy:
    given = {**CASE_POLICY, **reader.data.get("policy", {})}
    if given.get("withhold_op", ">") != ">":
        raise reader.fail("only a strict share is known", "policy.withhold_op", 'write ">"')
    bounds = _value_bounds(reader)
    dominance = given.get("dominance_share")
    return TablePolicy(
        min_n=reader.count(given["min_n"], "policy.min_n"),
        withhold_share=_share(reader, given["withhold_share"], "withhold_share"),
        interval_n=reader.count(given["interval_n"], "policy.interval_n"),
        interval_years=float(given["interval_years"]),
        zeros_are_primary=bool(given["zeros_are_primary"]),
        n_round_base=reader.count(given["n_round_base"], "policy.n_round_base"),
        n_round_below=reader.count(given["n_round_below"], "policy.n_round_below"),
        mean_decimals=reader.count(given["mean_decimals"], "policy.mean_decimals"),
        value_bounds=bounds,
        dominance_share=None if dominance is None else _share(reader, dominance, "dominance_share"),
        ties=str(given.get("n_round_ties", "up")),
    )


def _atoms(reader: _Reader, bounds: tuple[float, float] | None) -> tuple[tuple[str, ...], tuple[Atom, ...]]:
    names, atoms = [], []
    low, high = bounds or (-math.inf, math.inf)
    for name, entry in reader.data["atoms"].items():
        place = f"atoms.{name}"
        n = reader.count(entry["n"], place)
        total, squares = reader.number(entry.get("sum"), place), reader.number(entry.get("sumsq"), place)
        if n == 0 and ((total or 0.0) != 0.0 or (squares or 0.0) != 0.0):
            raise reader.fail("nobody is in it, yet it has a sum", place, "count its people, or write sum 0")
        slack = 1e-6 * max(1.0, abs(total or 0.0))
        if total is not None and n and not low * n - slack <= total <= high * n + slack:
            raise reader.fail("its sum lies outside what value_bounds allow", place, "widen attacker.value_bounds")
        names.append(name)
        atoms.append(Atom(n, total, squares))
    return tuple(names), tuple(atoms)


def _members(reader: _Reader, names: object, where: Mapping[str, int], place: str) -> tuple[int, ...]:
    assert isinstance(names, list)
    unknown = next((name for name in names if name not in where), None)
    if unknown is not None:
        raise reader.fail(f"no atom is called {unknown!r}", place, "declare it under atoms")
    members = sorted({where[name] for name in names})
    if len(members) != len(names):
        raise reader.fail("an atom stands twice in one cell", place, "name every atom once")
    if not members:
        raise reader.fail("a cell without atoms", place, "name its atoms, or leave the cell out")
    return tuple(members)


_ADD_UP = "correct the cell or its atoms"


def _close(a: float, b: float, size: float) -> bool:
    return abs(a - b) <= 1e-6 * max(1.0, size)


def _cell(
    reader: _Reader,
    name: str,
    entry: Mapping[str, Any],
    members: tuple[int, ...],
    atoms: tuple[Atom, ...],
    policy: TablePolicy,
    rounded: bool,
    means: bool,
) -> Cell:
    place = f"cells.{name}"
    n = sum(atoms[a].n for a in members)
    if "n" in entry and entry["n"] != n:
        reader.count(entry["n"], f"{place}.n")
        raise reader.fail("the table does not add up: N is not the sum over its atoms", place, _ADD_UP)
    rounding = str(entry.get("n_rounding", "rule" if rounded else "exact"))
    published = _published_n(reader, entry, n, rounding, policy, place)
    known = [atoms[a].sum for a in members]
    total = None if any(s is None for s in known) else float(sum(s for s in known if s is not None))
    if (given := reader.number(entry.get("sum"), place)) is not None:
        size = sum(abs(s) for s in known if s is not None)
        if total is not None and not _close(given, total, size):
            raise reader.fail("the table does not add up: the sum is not the sum over its atoms", place, _ADD_UP)
        total = given
    mean = reader.number(entry.get("mean"), place)
    if means and "mean" not in entry and total is not None and n:
        mean = float(round_value(total / n, decimal_places=policy.mean_decimals))
    if mean is not None and total is not None and n:
        slack = float(half_width(policy.mean_decimals)) * (1 + 1e-9) + 1e-9 * max(1.0, abs(mean))
        if abs(mean - total / n) > slack:
            raise reader.fail("the table does not add up: the mean is not the sum divided by N", place, _ADD_UP)
    squares = [atoms[a].sumsq for a in members]
    sumsq = None if any(s is None for s in squares) else float(sum(s for s in squares if s is not None))
    return Cell(
        name,
        str(entry.get("table", "t1")),
        str(entry.get("role", "interior")),
        members,
        n,
        published,
        rounding,
        total,
        mean,
        sumsq,
        reader.number(entry.get("sd"), place),
        _percent(reader, entry, n, atoms, place),
    )


def _percent(
    reader: _Reader, entry: Mapping[str, Any], n: int, atoms: tuple[Atom, ...], place: str
) -> tuple[str, float, int] | None:
    given, place = entry.get("percent"), f"{place}.percent"
    if given is None:
        return None
    base, value, decimals = str(given["of"]), float(given["value"]), int(given.get("decimals", 1))
    if base not in reader.data["cells"]:
        raise reader.fail(f"no cell is called {base!r}", place, "name the cell that is 100 %")
    whole = reader.data["cells"][base].get("atoms", [])
    people = sum(a.n for name, a in zip(reader.data["atoms"], atoms, strict=True) if name in set(whole))
    if n not in percent_counts(exact(value), decimals, people):
        raise reader.fail("the table does not add up: N does not print as this percentage", place, _ADD_UP)
    return base, value, decimals


def _published_n(
    reader: _Reader, entry: Mapping[str, Any], n: int, rounding: str, policy: TablePolicy, place: str
) -> int:
    if rounding == "hidden":
        return n
    if rounding == "exact":
        given = reader.count(entry.get("n_published", n), f"{place}.n_published")
        # A file may hold the rounded N beside an attacker who is given the exact ones.
        usual = shown_n(n, base=policy.n_round_base, below=policy.n_round_below, ties=policy.ties)
        if given != n and ("n_rounding" in entry or given != usual):
            raise reader.fail("the published N is not N", f"{place}.n_published", _ADD_UP)
        return n
    below = policy.n_round_below if rounding == "rule" else None
    if "n_published" not in entry:
        return shown_n(n, base=policy.n_round_base, below=below, ties=policy.ties)
    place = f"{place}.n_published"
    published = reader.count(entry["n_published"], place)
    try:
        low, high = rounded_n_interval(published, base=policy.n_round_base, below=below, ties=policy.ties)
    except InputError as error:
        raise reader.fail(error.what, place, error.next_step) from error
    if not low <= n <= high:
        raise reader.fail("the published N is not N rounded", place, _ADD_UP)
    return published


def _attacker(reader: _Reader, where: Mapping[str, int], atoms: tuple[Atom, ...]) -> Attacker:
    given = reader.data.get("attacker", {})
    extra = []
    for i, (group, low, high) in enumerate(given.get("extra_n", [])):
        place = f"attacker.extra_n[{i}]"
        members = _members(reader, group, where, place)
        lo = reader.count(low, place)
        hi = None if high is None else reader.count(high, place)
        if hi is not None and hi < lo:
            raise reader.fail("an upper bound below its lower bound", place, "write [atoms, least, most]")
        n = sum(atoms[a].n for a in members)
        if n < lo or (hi is not None and n > hi):
            raise reader.fail("a fact that contradicts the atoms", place, "correct the fact or the atoms")
        extra.append((members, lo, hi))
    return Attacker(
        n_published=str(given.get("n_published", "exact")),
        knows_rule=bool(given.get("knows_rule", False)),
        flags_primary=bool(given.get("flags_primary", False)),
        integer=bool(given.get("integer", True)),
        value_bounds=_value_bounds(reader),
        extra_n=tuple(extra),
    )


def _ids(reader: _Reader, key: str, cells: Mapping[str, Cell]) -> frozenset[str]:
    ids = reader.data.get(key, [])
    unknown = next((name for name in ids if name not in cells), None)
    if unknown is not None:
        raise reader.fail(f"no cell is called {unknown!r}", key, "declare it under cells")
    return frozenset(ids)


def _sets(reader: _Reader, cells: Mapping[str, Cell]) -> tuple[PublishedSet, ...]:
    out = []
    for i, entry in enumerate(reader.data.get("published_sets", [])):
        unknown = next((c for c in entry["suppressed"] if c not in cells), None)
        if unknown is not None:
            raise reader.fail(
                f"no cell is called {unknown!r}", f"published_sets[{i}].suppressed", "declare it under cells"
            )
        out.append(PublishedSet(str(entry["name"]), frozenset(entry["suppressed"])))
    return tuple(out)


def problem_from_json(data: Mapping[str, Any], *, path: object | None = None) -> Problem:
    """See `Problem.from_json`.

    Raises
    ------
    InputError
        Not the schema, tables that do not add up, negative or fractional N, unknown atoms.
    """
    check_schema(data, path)
    reader = _Reader(data, path)
    policy = _policy(reader)
    names, atoms = _atoms(reader, policy.value_bounds)
    where = {name: i for i, name in enumerate(names)}
    attacker = _attacker(reader, where, atoms)
    kind = str(data.get("kind", "counts"))
    cells: dict[str, Cell] = {}
    rounded = attacker.n_published == "rounded"
    for name, entry in data["cells"].items():
        members = _members(reader, entry["atoms"], where, f"cells.{name}")
        cells[name] = _cell(reader, name, entry, members, atoms, policy, rounded, kind == "means")
    zero = _ids(reader, "structural_zero", cells)
    wrong = next((c for c in sorted(zero) if cells[c].n), None)
    if wrong is not None:
        raise reader.fail(
            "declared empty by definition, but somebody is in it", f"structural_zero.{wrong}", "take it off the list"
        )
    group = data.get("derived_group")
    return Problem(
        kind=kind,
        policy=policy,
        attacker=attacker,
        atom_names=names,
        atoms=atoms,
        cells=cells,
        structural_zero=zero,
        must_publish=_ids(reader, "must_publish", cells),
        declared_primary=frozenset(
            c
            for c in _ids(reader, "primary", cells)
            if not is_primary_n(cells[c].n, policy.min_n, policy.zeros_are_primary)
        ),
        published_sets=_sets(reader, cells),
        derived_group=None if group is None else _members(reader, group["atoms"], where, "derived_group"),
        identities=tuple(
            identity_from_json(entry, where, f"identities[{i}]", path)
            for i, entry in enumerate(data.get("identities", ()))
        ),
        about={key: data[key] for key in ("id", "title", "why", "tags") if key in data},
    )


def _plain(value: float | None) -> float | None:
    return None if value is None else float(Decimal(repr(float(value))))


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """See `Problem.to_json`; `from_json` of it gives an equal problem."""
    attacker = problem.attacker
    atoms: dict[str, Any] = {}
    for name, atom in zip(problem.atom_names, problem.atoms, strict=True):
        entry: dict[str, Any] = {"n": atom.n}
        if atom.sum is not None:
            entry["sum"] = _plain(atom.sum)
        if atom.sumsq is not None:
            entry["sumsq"] = _plain(atom.sumsq)
        atoms[name] = entry
    cells: dict[str, Any] = {}
    for cell in problem.cells.values():
        entry = {
            "table": cell.table,
            "role": cell.role,
            "atoms": [problem.atom_names[a] for a in cell.atoms],
            "n": cell.n,
            "n_published": cell.n_published,
            "n_rounding": cell.n_rounding,
        }
        if cell.percent is not None:
            entry["percent"] = {"of": cell.percent[0], "value": cell.percent[1], "decimals": cell.percent[2]}
        if problem.kind == "means":
            entry["mean"] = _plain(cell.mean)
            if cell.sum is not None:
                entry["sum"] = _plain(cell.sum)
            if cell.sd is not None:
                entry["sd"] = _plain(cell.sd)
        cells[cell.id] = entry
    extra = [[[problem.atom_names[a] for a in group], lo, hi] for group, lo, hi in attacker.extra_n]
    out: dict[str, Any] = {
        "schema": "sacro_deltab/table-problem/1",
        **problem.about,
        "kind": problem.kind,
        "policy": problem.policy.to_json(),
        "attacker": {
            "n_published": attacker.n_published,
            "knows_rule": attacker.knows_rule,
            "flags_primary": attacker.flags_primary,
            "integer": attacker.integer,
            "value_bounds": None if attacker.value_bounds is None else list(attacker.value_bounds),
            **({"extra_n": extra} if extra else {}),
        },
        "atoms": atoms,
        "cells": cells,
        "structural_zero": sorted(problem.structural_zero),
        "must_publish": sorted(problem.must_publish),
        "primary": list(problem.primary),
        "published_sets": [{"name": s.name, "suppressed": sorted(s.suppressed)} for s in problem.published_sets],
    }
    if problem.derived_group is not None:
        out["derived_group"] = {"atoms": [problem.atom_names[a] for a in problem.derived_group]}
    if problem.identities:
        out["identities"] = [identity_to_json(i, problem.atom_names) for i in problem.identities]
    return out


__all__ = ["COUNT_KINDS", "ROLES", "check_schema", "problem_from_json", "problem_to_json"]
