"""What a reader sees: the only input of the attacker. Holds no true N of anything withheld."""

from __future__ import annotations

import math
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
    squares: tuple[Mean, ...]  # what a printed mean and SD say of the mean of the squared values
    rows: tuple[tuple[int, ...], ...]
    sources: tuple[str, ...]
    targets: Mapping[str, tuple[int, ...]]
    value_bounds: tuple[float, float] | None
    integer: bool


def published_interval(problem: Problem, cell: Cell, believes: bool = True) -> tuple[int, int | None]:
    """What a printed N says: the counts that print like it, and are allowed to be printed if the rule is known.

    `believes` False: the rule is not held against a cell that plainly breaks it.
    """
    if cell.id in problem.structural_zero:
        return 0, 0  # whatever the rule says of small groups
    policy = problem.policy
    knows_rule = problem.attacker.knows_rule and (believes or cell.n >= policy.min_n or cell.n == 0)
    if cell.n_rounding == "hidden":
        return (policy.min_n if knows_rule else 0), None
    if cell.n_rounding == "exact":
        return cell.n, cell.n
    below = policy.n_round_below if cell.n_rounding == "rule" else None
    lo, hi = rounded_n_interval(cell.n_published, base=policy.n_round_base, below=below, ties=policy.ties)
    if not knows_rule:
        return lo, hi
    nobody = lo == 0 and not policy.zeros_are_primary  # may be printed: 1 or 2 people would have been withheld
    if hi >= policy.min_n:
        return (0 if nobody else max(lo, policy.min_n)), hi
    # A pattern that prints a primary cell breaks the rule the reader believes in; then the number alone counts.
    return (0, 0) if nobody and cell.n == 0 else (lo, hi)


def breaks_rule(problem: Problem, suppressed: frozenset[str]) -> bool:
    """Whether a pattern prints or marks something that a reader who believes in the rule would misread."""
    attacker, policy = problem.attacker, problem.policy
    if not attacker.knows_rule:
        return False
    primary = set(problem.primary)
    return any(
        cell.n < policy.min_n and (cell.id not in primary if cell.id in suppressed else cell.n > 0)
        for cell in problem.cells.values()
    )


def release(problem: Problem, suppressed: frozenset[str], believes: bool = True) -> Released:
    """The reader's view of one pattern."""
    attacker, policy = problem.attacker, problem.policy
    counts: list[Count] = []
    means: list[Mean] = []
    squares: list[Mean] = []
    rows: list[tuple[int, ...]] = []
    sources: list[str] = []
    targets: dict[str, tuple[int, ...]] = {}
    half = Fraction(half_width(policy.mean_decimals))
    for cell in problem.cells.values():
        if cell.id in suppressed:
            targets[cell.id] = cell.atoms
            continue
        lo, hi = published_interval(problem, cell, believes)
        counts.append(Count(cell.atoms, lo, hi, cell.id))
        if cell.n_rounding != "hidden" or cell.mean is not None:
            rows.append(cell.atoms)
            sources.append(cell.id)
        if cell.mean is not None:
            mean = exact(cell.mean)
            means.append(Mean(cell.atoms, mean - half, mean + half, cell.id))
            if cell.sd is not None and lo >= 2:
                squares.append(_square(cell, mean, half, lo, hi))
    if attacker.flags_primary:
        primary = set(problem.primary)
        for name, atoms in targets.items():
            if name in primary:
                counts.append(Count(atoms, 0, policy.min_n - 1, f"mark of {name}"))
            elif name in problem.structural_zero:
                continue
            elif attacker.knows_rule and (believes or problem.cells[name].n >= policy.min_n):
                counts.append(Count(atoms, policy.min_n, None, f"mark of {name}"))
    for name in sorted(problem.structural_zero):
        counts.append(Count(problem.cells[name].atoms, 0, 0, name))
        if name in suppressed:
            rows.append(problem.cells[name].atoms)
            sources.append(name)
    counts += _percents(problem, suppressed, believes)
    for i, (group, low, high) in enumerate(attacker.extra_n):
        counts.append(Count(group, low, high, f"extra_n[{i}]"))
    return Released(
        len(problem.atoms),
        tuple(counts),
        tuple(means),
        tuple(squares),
        tuple(rows),
        tuple(sources),
        targets,
        attacker.value_bounds,
        attacker.integer,
    )


def _percents(problem: Problem, suppressed: frozenset[str], believes: bool) -> list[Count]:
    """What printed percentages say of N: every (k, N) that prints like it. They stay readable where N is withheld."""
    out = []
    for cell in problem.cells.values():
        if cell.percent is None or cell.percent[0] in suppressed:
            continue
        base = problem.cells[cell.percent[0]]
        lo, hi = published_interval(problem, base, believes)
        if hi is None or hi - lo > 10_000:
            continue
        pairs = [(k, n) for n in range(lo, hi + 1) for k in percent_counts(exact(cell.percent[1]), cell.percent[2], n)]
        if pairs:
            ks, ns = [k for k, _ in pairs], [n for _, n in pairs]
            out.append(Count(cell.atoms, min(ks), max(ks), f"percent of {cell.id}"))
            out.append(Count(base.atoms, min(ns), max(ns), f"percent of {cell.id}"))
    return out


def percent_counts(percent: Fraction, decimals: int, n: int) -> range:
    """Every k whose share of n prints as `percent` (half up, as tables print percentages): whole, in a row."""
    if n == 0:
        return range(1)
    half, scale = Fraction(1, 2), 10**decimals
    target = percent * scale
    low = max(0, math.ceil((target - half) * n / (100 * scale)))
    high = min(n, math.ceil((target + half) * n / (100 * scale)) - 1)
    return range(low, high + 1)


def _square(cell: Cell, mean: Fraction, half: Fraction, lo: int, hi: int | None) -> Mean:
    """Mean of squares = mean² + SD²·(N − 1)/N, at the ends of every interval."""
    assert cell.sd is not None
    sd = exact(cell.sd)
    share_low, share_high = Fraction(lo - 1, lo), Fraction(1) if hi is None else Fraction(hi - 1, hi)
    near = max(Fraction(0), abs(mean) - half)
    low = share_low * max(Fraction(0), sd - half) ** 2 + near**2
    return Mean(cell.atoms, low, share_high * (sd + half) ** 2 + (abs(mean) + half) ** 2, cell.id)
