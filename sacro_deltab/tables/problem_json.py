"""Reading, checking and writing the JSON form of a problem. Nothing is repaired: what does not add up is refused."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..errors import InputError
from ..resources import schema
from ..shape import fits
from .identities import identity_from_json, identity_to_json
from .policy import TablePolicy, as_share
from .primary import is_primary_n
from .rounding import half_width, round_value, rounded_n_interval, shown_n
from .table import ROLES, Atom, Attacker, Cell, Problem, PublishedSet

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


class _Reader:
    def __init__(self, data: Mapping[str, Any], path: object | None) -> None:
        self.data, self.path = data, path

    def fail(self, what: str, place: str, next_step: str | None = None, inside: str | None = None) -> InputError:
        return InputError(what, path=self.path, place=place, next_step=next_step, inside=inside)

    def count(self, value: object, place: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise self.fail("N must be a whole number", place, "count people, not weights")
        if value < 0:
            raise self.fail("N is negative", place)
        if value > 10**9:
            raise self.fail("N is larger than any cohort", place)
        return int(value)

    def number(self, value: object, place: str) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fail("not a number", place)
        number = float(value)
        if number != number or abs(number) > 1e15:
            raise self.fail("not a number a table can hold", place)
        return number


def _policy(reader: _Reader) -> TablePolicy:
    given = {**CASE_POLICY, **reader.data.get("policy", {})}
    if given.get("withhold_op", ">") != ">":
        raise reader.fail("only a strict share is known", "policy.withhold_op", 'write ">"')
    bounds = reader.data.get("attacker", {}).get("value_bounds")
    dominance = given.get("dominance_share")
    return TablePolicy(
        min_n=reader.count(given["min_n"], "policy.min_n"),
        withhold_share=as_share(given["withhold_share"]),
        interval_n=reader.count(given["interval_n"], "policy.interval_n"),
        interval_years=float(given["interval_years"]),
        zeros_are_primary=bool(given["zeros_are_primary"]),
        n_round_base=reader.count(given["n_round_base"], "policy.n_round_base"),
        n_round_below=reader.count(given["n_round_below"], "policy.n_round_below"),
        mean_decimals=reader.count(given["mean_decimals"], "policy.mean_decimals"),
        value_bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
        dominance_share=None if dominance is None else as_share(dominance, "dominance_share"),
        ties=str(given.get("n_round_ties", "up")),
    )


def _atoms(reader: _Reader) -> tuple[tuple[str, ...], tuple[Atom, ...]]:
    names, atoms = [], []
    for name, entry in reader.data["atoms"].items():
        place = f"atoms.{name}"
        n = reader.count(entry["n"], place)
        total, squares = reader.number(entry.get("sum"), place), reader.number(entry.get("sumsq"), place)
        if n == 0 and ((total or 0.0) != 0.0 or (squares or 0.0) != 0.0):
            raise reader.fail("nobody is in it, yet it has a sum", place)
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
        raise reader.fail("an atom stands twice in one cell", place)
    if not members:
        raise reader.fail("a cell without atoms", place)
    return tuple(members)


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
    if "n" in entry and reader.count(entry["n"], place) != n:
        raise reader.fail("the table does not add up: N is not the sum over its atoms", place)
    rounding = str(entry.get("n_rounding", "rule" if rounded else "exact"))
    published = _published_n(reader, entry, n, rounding, policy, place)
    known = [atoms[a].sum for a in members]
    total = None if any(s is None for s in known) else float(sum(s for s in known if s is not None))
    if (given := reader.number(entry.get("sum"), place)) is not None:
        size = sum(abs(s) for s in known if s is not None)
        if total is not None and not _close(given, total, size):
            raise reader.fail("the table does not add up: the sum is not the sum over its atoms", place)
        total = given
    mean = reader.number(entry.get("mean"), place)
    if means and "mean" not in entry and total is not None and n:
        mean = float(round_value(total / n, decimal_places=policy.mean_decimals))
    if mean is not None and total is not None and n:
        slack = float(half_width(policy.mean_decimals)) * (1 + 1e-9) + 1e-9 * max(1.0, abs(mean))
        if abs(mean - total / n) > slack:
            raise reader.fail("the table does not add up: the mean is not the sum divided by N", place)
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
        _percent(reader, entry, place),
    )


def _percent(reader: _Reader, entry: Mapping[str, Any], place: str) -> tuple[str, float, int] | None:
    given = entry.get("percent")
    if given is None:
        return None
    base = str(given["of"])
    if base not in reader.data["cells"]:
        raise reader.fail(f"no cell is called {base!r}", place)
    return base, float(given["value"]), reader.count(given.get("decimals", 1), place)


def _published_n(
    reader: _Reader, entry: Mapping[str, Any], n: int, rounding: str, policy: TablePolicy, place: str
) -> int:
    if rounding in ("exact", "hidden"):
        given = entry.get("n_published", n)
        if rounding == "exact" and reader.count(given, place) != n and "n_rounding" in entry:
            raise reader.fail("the published N is not N", place)
        return n
    below = policy.n_round_below if rounding == "rule" else None
    if "n_published" not in entry:
        return shown_n(n, base=policy.n_round_base, below=below, ties=policy.ties)
    published = reader.count(entry["n_published"], place)
    low, high = rounded_n_interval(published, base=policy.n_round_base, below=below, ties=policy.ties)
    if not low <= n <= high:
        raise reader.fail("the published N is not N rounded", place)
    return published


def _attacker(reader: _Reader, where: Mapping[str, int]) -> Attacker:
    given = reader.data.get("attacker", {})
    bounds = given.get("value_bounds")
    extra = []
    for i, (group, low, high) in enumerate(given.get("extra_n", [])):
        place = f"attacker.extra_n[{i}]"
        members = _members(reader, group, where, place)
        lo = reader.count(low, place)
        hi = None if high is None else reader.count(high, place)
        if hi is not None and hi < lo:
            raise reader.fail("an upper bound below its lower bound", place)
        extra.append((members, lo, hi))
    return Attacker(
        n_published=str(given.get("n_published", "exact")),
        knows_rule=bool(given.get("knows_rule", False)),
        flags_primary=bool(given.get("flags_primary", False)),
        integer=bool(given.get("integer", True)),
        value_bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
        extra_n=tuple(extra),
    )


def _ids(reader: _Reader, key: str, cells: Mapping[str, Cell]) -> frozenset[str]:
    ids = reader.data.get(key, [])
    unknown = next((name for name in ids if name not in cells), None)
    if unknown is not None:
        raise reader.fail(f"no cell is called {unknown!r}", key)
    return frozenset(ids)


def _sets(reader: _Reader, cells: Mapping[str, Cell]) -> tuple[PublishedSet, ...]:
    out = []
    for i, entry in enumerate(reader.data.get("published_sets", [])):
        unknown = next((c for c in entry["suppressed"] if c not in cells), None)
        if unknown is not None:
            raise reader.fail(f"no cell is called {unknown!r}", f"published_sets[{i}].suppressed")
        out.append(PublishedSet(str(entry["name"]), frozenset(entry["suppressed"])))
    return tuple(out)


_PLAIN_CELL = {"table", "role", "atoms", "n", "n_published", "sum", "mean", "n_rounding"}
_ROUNDINGS = ("exact", "rule", "all", "hidden")


def _number(value: object, optional: bool = False) -> bool:
    return type(value) in (int, float) or (optional and value is None)


def _plain_atom(entry: object) -> bool:
    if type(entry) is not dict or not _number(entry.get("n")) or len(entry) > 3:
        return False
    return _number(entry.get("sum"), True) and _number(entry.get("sumsq"), True)


def _plain_cell(entry: object) -> bool:
    if type(entry) is not dict or not entry.keys() <= _PLAIN_CELL:
        return False
    atoms = entry.get("atoms")
    return (
        type(atoms) is list
        and len(atoms) > 0
        and all(type(a) is str for a in atoms)
        and type(entry.get("table", "")) is str
        and entry.get("role", "interior") in ROLES
        and entry.get("n_rounding", "rule") in _ROUNDINGS
        and _number(entry.get("n", 0))
        and _number(entry.get("n_published", 0))
        and _number(entry.get("sum"), True)
        and _number(entry.get("mean"), True)
    )


def _without_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """The file without entries that plainly fit the schema: a validator that walks 10⁵ of them takes half a minute."""
    shown = dict(data)
    for key, plain in (("atoms", _plain_atom), ("cells", _plain_cell)):
        block = data.get(key)
        if type(block) is dict and len(block) > 50:
            odd = {name: entry for name, entry in block.items() if not plain(entry)}
            shown[key] = odd or dict(list(block.items())[:1])
    return shown


def check_schema(data: Mapping[str, Any], path: object | None = None) -> None:
    """Validate against `schemas/table-problem.schema.json`; the first deepest message is the one shown."""
    shown = _without_plain(data)
    if fits(shown, "table-problem"):
        return
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(schema("table-problem"))
    errors = sorted(validator.iter_errors(shown), key=lambda e: list(map(str, e.absolute_path)))
    if errors:
        error = errors[0]
        place = ".".join(str(part) for part in error.absolute_path) or "the file"
        raise InputError(
            f"does not fit the schema of a problem: {error.validator} {error.validator_value!r}"[:300],
            path=path,
            place=place,
            next_step="see schemas/table-problem.schema.json",
            inside=error.message[:500],
        )


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
    names, atoms = _atoms(reader)
    where = {name: i for i, name in enumerate(names)}
    attacker = _attacker(reader, where)
    kind = str(data.get("kind", "counts"))
    cells: dict[str, Cell] = {}
    rounded = attacker.n_published == "rounded"
    for name, entry in data["cells"].items():
        members = _members(reader, entry["atoms"], where, f"cells.{name}")
        cells[name] = _cell(reader, name, entry, members, atoms, policy, rounded, kind == "means")
    zero = _ids(reader, "structural_zero", cells)
    wrong = next((c for c in sorted(zero) if cells[c].n), None)
    if wrong is not None:
        raise reader.fail("declared empty by definition, but somebody is in it", f"structural_zero.{wrong}")
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
            identity_from_json(entry, where, f"identities[{i}]") for i, entry in enumerate(data.get("identities", ()))
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
