"""All tables of one session, and earlier releases of the same people, as one problem.

People with the same membership in every cell form one atom, whatever tables the cells stand in; a person dropped
between two releases ends up in an atom of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.errors import InputError
from .policy import TablePolicy
from .rounding import round_value, shown_n
from .table import ROLES, Atom, Attacker, Cell, Problem, PublishedSet


@dataclass(frozen=True)
class CellSpec:
    """One column of the membership matrix.

    Parameters
    ----------
    id
        Unique over all tables, e.g. `"mean_by_sex: F"`.
    table
        The output it stands in.
    role
        "interior", "margin" or "grand".
    n_rounding
        "rule" (nearest base below the limit), "all" (the whole table is rounded), "exact", or "hidden" (no N printed).
    mean
        Whether the mean of `values` is printed.
    released
        Already outside (an earlier release): it cannot be withheld any more.
    structural_zero
        Empty by definition, known to everybody.
    """

    id: str
    table: str
    role: str = "interior"
    n_rounding: str = "rule"
    mean: bool = False
    released: bool = False
    structural_zero: bool = False


def _signatures(matrix: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Label of every person's membership row, and one example per label, in order of the packed rows."""
    packed = np.ascontiguousarray(np.packbits(matrix, axis=1))
    view = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, label = np.unique(view, return_index=True, return_inverse=True)
    return label.astype(np.int64), first.astype(np.int64)


def _check(matrix: NDArray[np.bool_], cells: Sequence[CellSpec], values: NDArray[np.float64] | None) -> None:
    if matrix.ndim != 2 or matrix.shape[1] != len(cells):
        raise InputError("membership must be persons × cells, one column per cell")
    ids = [c.id for c in cells]
    if len(set(ids)) != len(ids):
        raise InputError("two cells have one id", next_step="put the table's name in front of the label")
    if not cells:
        raise InputError("a problem needs at least one cell")
    wrong = next((c.id for c in cells if c.role not in ROLES), None)
    if wrong is not None:
        raise InputError(f"cell {wrong!r} has an unknown role", next_step=f"use one of {', '.join(ROLES)}")
    if values is not None and (values.shape != (matrix.shape[0],) or not np.isfinite(values).all()):
        raise InputError("values must be one finite number per person", next_step="drop people without a value")


def problem_from_membership(
    membership: ArrayLike,
    cells: Sequence[CellSpec],
    values: ArrayLike | None = None,
    *,
    policy: TablePolicy,
    attacker: Attacker | None = None,
    suppressed: Mapping[str, Sequence[str]] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Problem:
    """The problem of a session.

    Parameters
    ----------
    membership
        Bool, persons × cells: who is in which cell. Persons, not rows of data: duplicates are merged by the caller.
    cells
        One `CellSpec` per column.
    values
        One value per person (delta, years) where means are printed; its sums and sums of squares are kept.
    policy
        Numbers of the rule set.
    attacker
        What a reader knows; default: N rounded, the rule known, the policy's value bounds.
    suppressed
        Patterns to audit: name → ids of withheld cells.

    Raises
    ------
    InputError
        Shapes that do not fit, two cells with one id, values that are not finite.
    """
    matrix = np.asarray(membership)
    if matrix.dtype != np.bool_:
        if not np.isin(matrix, (0, 1)).all():
            raise InputError("membership must be true or false")
        matrix = matrix.astype(bool)
    numbers = None if values is None else np.asarray(values, dtype=np.float64)
    _check(matrix, cells, numbers)
    if numbers is None and any(c.mean for c in cells):
        raise InputError("a mean is printed but no values were given")
    if matrix.shape[0]:
        matrix_used = matrix.any(axis=1)
        matrix = matrix[matrix_used]
        numbers = None if numbers is None else numbers[matrix_used]
    label, first = _signatures(matrix) if matrix.shape[0] else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    n = np.bincount(label, minlength=len(first))
    total = np.bincount(label, weights=numbers, minlength=len(first)) if numbers is not None else None
    squares = np.bincount(label, weights=numbers**2, minlength=len(first)) if numbers is not None else None
    patterns = matrix[first] if len(first) else np.zeros((0, len(cells)), dtype=bool)
    atoms = [
        Atom(
            int(n[i]),
            None if total is None else float(total[i]),
            None if squares is None else float(squares[i]),
        )
        for i in range(len(first))
    ]
    names = [f"g{i + 1}" for i in range(len(first))]
    built, zero = _cells(patterns, cells, atoms, names, policy)
    attacker = attacker or Attacker("rounded", True, value_bounds=policy.value_bounds)
    problem = Problem(
        kind="means" if any(c.mean for c in cells) else "counts",
        policy=policy,
        attacker=attacker,
        atom_names=tuple(names),
        atoms=tuple(atoms),
        cells=built,
        structural_zero=frozenset(zero),
        must_publish=frozenset(c.id for c in cells if c.released),
        about=dict(about or {}),
    )
    sets = tuple(PublishedSet(name, problem.pattern(ids)) for name, ids in (suppressed or {}).items())
    return problem if not sets else with_sets(problem, sets)


def with_sets(problem: Problem, sets: Sequence[PublishedSet]) -> Problem:
    """A copy with other patterns to audit."""
    from dataclasses import replace

    return replace(problem, published_sets=tuple(sets))


def _cells(
    patterns: NDArray[np.bool_],
    specs: Sequence[CellSpec],
    atoms: list[Atom],
    names: list[str],
    policy: TablePolicy,
) -> tuple[dict[str, Cell], list[str]]:
    built: dict[str, Cell] = {}
    zero = []
    for j, spec in enumerate(specs):
        members = tuple(int(i) for i in np.flatnonzero(patterns[:, j]))
        if not members:  # nobody: an atom of its own, so that the cell stays a set of atoms
            atoms.append(Atom(0, 0.0 if spec.mean else None, 0.0 if spec.mean else None))
            names.append(f"nobody{len(atoms)}")
            members = (len(atoms) - 1,)
        n = sum(atoms[a].n for a in members)
        below = {"rule": policy.n_round_below, "all": n + 1}.get(spec.n_rounding)
        published = n if below is None else shown_n(n, base=policy.n_round_base, below=below, ties=policy.ties)
        total = squares = mean = None
        if all(atoms[a].sum is not None for a in members):
            total = float(sum(atoms[a].sum or 0.0 for a in members))
            squares = float(sum(atoms[a].sumsq or 0.0 for a in members))
        if spec.mean and total is not None:
            mean = None if n == 0 else float(round_value(total / n, decimal_places=policy.mean_decimals))
        built[spec.id] = Cell(
            spec.id, spec.table, spec.role, members, n, published, spec.n_rounding, total, mean, squares
        )
        if spec.structural_zero:
            if n:
                raise InputError(
                    f"{spec.id!r} is declared empty by definition, but somebody is in it",
                    next_step="take the declaration back",
                )
            zero.append(spec.id)
    return built, zero


@dataclass(frozen=True)
class Link:
    """Outputs that together give a small group away.

    `inside` names the group and its size; `outside` names the outputs only. `drop`: outputs of which leaving one out
    is enough, the one that costs least first (never one that has left already).
    """

    outputs: tuple[str, ...]
    cells: tuple[str, ...]
    atoms: tuple[str, ...]
    people: int
    drop: tuple[str, ...]

    @property
    def inside(self) -> str:
        """For the checker."""
        return (
            f"{_and(self.outputs)}: subtracting {_and(self.cells[:6])}"
            f"{' and more' if len(self.cells) > 6 else ''} gives a group of {self.people} "
            f"({', '.join(self.atoms[:6])}{', …' if len(self.atoms) > 6 else ''})."
        )

    @property
    def outside(self) -> str:
        """For everybody."""
        what = _and(self.outputs)
        if len(self.outputs) == 1:
            return f"{what} by itself gives a group away that is too small."
        return f"{what} together give a group away that is too small."

    @property
    def next_step(self) -> str:
        """What to do."""
        if not self.drop:
            return "Merge groups or leave out more than one of these outputs."
        return f"Leave out or change {' or '.join(self.drop)}."


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def find_links(problem: Problem, suppressed: frozenset[str] = frozenset(), *, limit: int = 20) -> tuple[Link, ...]:
    """Every way (up to `limit`, smallest groups first) to derive a group below the minimum from what is published.

    Parameters
    ----------
    suppressed
        Withheld cells; everything else in the problem counts as published.
    """
    from .circuits import Circuits
    from .layout import merge_atoms

    suppressed = problem.pattern(suppressed)
    published = [c for c in problem.cells.values() if c.id not in suppressed or c.id in problem.structural_zero]
    if not published:
        return ()
    published.sort(key=lambda c: (c.id not in problem.must_publish, len(c.atoms), c.id))
    label, k = merge_atoms(len(problem.atoms), [c.atoms for c in published])
    weight = [0] * k
    members: list[list[int]] = [[] for _ in range(k)]
    for atom, c in enumerate(label):
        weight[c] += problem.atoms[atom].n
        members[c].append(atom)
    rows = [tuple(sorted({label[a] for a in c.atoms})) for c in published]
    found = Circuits(rows, weight).small_unions(range(len(rows)), problem.policy.min_n)
    found.sort(key=lambda d: (d.people, len(d.rows), d.classes))
    links = []
    for d in found[:limit]:
        cells = sorted(published[i].id for i in d.rows)
        outputs = tuple(dict.fromkeys(problem.cells[c].table for c in cells))
        atoms = problem.names(a for c in d.classes for a in members[c])
        links.append(
            Link(outputs, tuple(cells), atoms, d.people, _drop(problem, suppressed, outputs, d.classes, label))
        )
    return tuple(links)


def _drop(
    problem: Problem, suppressed: frozenset[str], outputs: Sequence[str], classes: Sequence[int], label: Sequence[int]
) -> tuple[str, ...]:
    """Outputs without which this group is no longer derivable, cheapest first."""
    from .span import Span

    wanted = set(classes)
    group = [a for a, c in enumerate(label) if c in wanted]
    cures = []
    for output in outputs:
        mine = [c for c in problem.cells.values() if c.table == output]
        if any(c.id in problem.must_publish for c in mine):
            continue
        rest = [
            c.atoms
            for c in problem.cells.values()
            if c.table != output and (c.id not in suppressed or c.id in problem.structural_zero)
        ]
        if not Span(len(problem.atoms), rest, [a.n for a in problem.atoms]).contains(group):
            cures.append((len(mine), output))
    return tuple(output for _, output in sorted(cures))
