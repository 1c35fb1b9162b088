"""What a reader sees: the only input of the attacker. Holds no true N of anything withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .primary import exact
from .rounding import half_width, rounded_n_interval
from .table import Cell, Problem


@dataclass(frozen=True)
class Count:
    """`lo` ≤ people in `atoms` ≤ `hi` (`None`: no upper bound)."""

    atoms: tuple[int, ...]
    lo: int
    hi: int | None
    source: str


@dataclass(frozen=True)
class Mean:
    """`lo` ≤ mean over `atoms` ≤ `hi`."""

    atoms: tuple[int, ...]
    lo: Fraction
    hi: Fraction
    source: str


@dataclass(frozen=True)
class Released:
    """Published numbers as intervals, plus what the attacker knows besides.

    `rows` are the groups whose N (and mean) is printed: the linear span is taken of these.
    `targets` are the withheld cells.
    """

    n_atoms: int
    counts: tuple[Count, ...]
    means: tuple[Mean, ...]
    rows: tuple[tuple[int, ...], ...]
    sources: tuple[str, ...]
    targets: Mapping[str, tuple[int, ...]]
    value_bounds: tuple[float, float] | None
    integer: bool


def published_interval(problem: Problem, cell: Cell) -> tuple[int, int | None]:
    """What a printed N says: the counts that print like it, and are allowed to be printed if the rule is known."""
    policy = problem.policy
    if cell.n_rounding == "hidden":
        return (policy.min_n if problem.attacker.knows_rule else 0), None
    if cell.n_rounding == "exact":
        return cell.n, cell.n
    below = policy.n_round_below if cell.n_rounding == "rule" else None
    lo, hi = rounded_n_interval(cell.n_published, base=policy.n_round_base, below=below, ties=policy.ties)
    if not problem.attacker.knows_rule:
        return lo, hi
    if lo == 0 and not policy.zeros_are_primary:
        return 0, 0  # a printed 0 is nobody: 1 or 2 people would have been withheld
    # A pattern that prints a primary cell breaks the rule the reader believes in; then the number alone counts.
    return (max(lo, policy.min_n), hi) if hi >= policy.min_n else (lo, hi)


def release(problem: Problem, suppressed: frozenset[str]) -> Released:
    """The reader's view of one pattern."""
    attacker, policy = problem.attacker, problem.policy
    counts: list[Count] = []
    means: list[Mean] = []
    rows: list[tuple[int, ...]] = []
    sources: list[str] = []
    targets: dict[str, tuple[int, ...]] = {}
    half = Fraction(half_width(policy.mean_decimals))
    for cell in problem.cells.values():
        if cell.id in suppressed:
            targets[cell.id] = cell.atoms
            continue
        lo, hi = published_interval(problem, cell)
        counts.append(Count(cell.atoms, lo, hi, cell.id))
        if cell.n_rounding != "hidden" or cell.mean is not None:
            rows.append(cell.atoms)
            sources.append(cell.id)
        if cell.mean is not None:
            mean = exact(cell.mean)
            means.append(Mean(cell.atoms, mean - half, mean + half, cell.id))
    if attacker.flags_primary:
        primary = set(problem.primary)
        for name, atoms in targets.items():
            if name in primary:
                counts.append(Count(atoms, 0, policy.min_n - 1, f"mark of {name}"))
            elif attacker.knows_rule:
                counts.append(Count(atoms, policy.min_n, None, f"mark of {name}"))
    for name in sorted(problem.structural_zero):
        counts.append(Count(problem.cells[name].atoms, 0, 0, name))
        if name in suppressed:
            rows.append(problem.cells[name].atoms)
            sources.append(name)
    for i, (group, low, high) in enumerate(attacker.extra_n):
        counts.append(Count(group, low, high, f"extra_n[{i}]"))
    return Released(
        len(problem.atoms),
        tuple(counts),
        tuple(means),
        tuple(rows),
        tuple(sources),
        targets,
        attacker.value_bounds,
        attacker.integer,
    )
