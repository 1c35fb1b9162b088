"""What a reader sees: the only input of the attacker. Holds no true N of anything withheld."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress

import numpy as np

from .bounds import Count, GroupBounds, limits
from .layout import IntArray
from .policy import is_primary_n
from .primary import exact
from .reading import Mean, Reading
from .rounding import half_width, rounded_n_interval
from .table import Cell, Problem


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
    told: GroupBounds  # `counts` once more, as bounds of the problem's groups
    asked: IntArray  # positions of the targets among these groups
    value_bounds: tuple[float, float] | None
    integer: bool


def published_interval(problem: Problem, cell: Cell, believes: bool = True) -> tuple[int, int | None]:
    """What a printed N says: the counts that print like it, and are allowed to be printed if the rule is known.

    `believes` False: the rule is not held against a cell that plainly breaks it.
    """
    if cell.id in problem.structural_zero:
        return 0, 0  # whatever the rule says of small groups
    policy = problem.policy
    knows_rule = problem.attacker.knows_rule and (
        believes or not is_primary_n(cell.n, policy.min_n, policy.zeros_are_primary)
    )
    if cell.n_rounding == "hidden":  # nobody has no mean, but may stand in a table of counts
        somebody = cell.mean is not None or policy.zeros_are_primary
        return (policy.min_n if knows_rule and somebody else 0), None
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
        cell.n < policy.min_n and (cell.id in primary) != (cell.id in suppressed) for cell in problem.cells.values()
    )


def read_cells(problem: Problem, believes: bool) -> Reading:
    """What every cell says when it is published, to a reader who believes in the rule or not; worked out once."""
    if believes not in problem.readings:
        problem.readings[believes] = _read_cells(problem, believes)
    return problem.readings[believes]


def _read_cells(problem: Problem, believes: bool) -> Reading:
    half = Fraction(half_width(problem.policy.mean_decimals))
    counts, means, squares, spans = [], [], [], []
    for cell in problem.cells.values():
        lo, hi = published_interval(problem, cell, believes)
        counts.append(Count(cell.atoms, lo, hi, cell.id))
        mean = None if cell.mean is None else exact(cell.mean)
        means.append(None if mean is None else Mean(cell.atoms, mean - half, mean + half, cell.id))
        squares.append(None if mean is None or cell.sd is None or lo < 2 else _square(cell, mean, half, lo, hi))
        spans.append(cell.n_rounding != "hidden" or mean is not None or cell.sd is not None)
    index = problem.layout.index
    groups = np.asarray([index[cell.atoms] for cell in problem.cells.values()], dtype=np.int64)
    lows, tops = limits([count.lo for count in counts], [count.hi for count in counts])
    return Reading(tuple(problem.cells), tuple(counts), tuple(means), tuple(squares), tuple(spans), groups, lows, tops)


def read_bounds(problem: Problem, suppressed: frozenset[str], believes: bool = True) -> GroupBounds:
    """What the reader of one pattern is told of N, as bounds of the problem's groups."""
    printed = read_cells(problem, believes).printed(suppressed)
    return _bounds(problem, believes, printed, told_besides(problem, suppressed, believes))


def _bounds(problem: Problem, believes: bool, printed: list[bool], besides: list[Count]) -> GroupBounds:
    reading, here = read_cells(problem, believes), np.asarray(printed, dtype=bool)
    told = GroupBounds.nothing(problem.layout)
    told.tell_all(reading.groups[here], reading.lo[here], reading.hi[here])
    told.tell(besides)
    return told


def release(problem: Problem, suppressed: frozenset[str], believes: bool = True) -> Released:
    """The reader's view of one pattern."""
    attacker = problem.attacker
    reading = read_cells(problem, believes)
    printed = reading.printed(suppressed)
    shown = [i for i, here in enumerate(printed) if here and reading.spans[i]]
    hidden_zero = sorted(problem.structural_zero & suppressed)
    targets = withheld(problem, suppressed)
    besides = told_besides(problem, suppressed, believes)
    return Released(
        len(problem.atoms),
        (*compress(reading.counts, printed), *besides),
        tuple(mean for mean in compress(reading.means, printed) if mean is not None),
        tuple(square for square in compress(reading.squares, printed) if square is not None),
        (*(reading.counts[i].atoms for i in shown), *(problem.cells[name].atoms for name in hidden_zero)),
        (*(reading.ids[i] for i in shown), *hidden_zero),
        targets,
        _bounds(problem, believes, printed, besides),
        reading.groups[[reading.place[name] for name in targets]],
        attacker.value_bounds,
        attacker.integer,
    )


def withheld(problem: Problem, suppressed: frozenset[str]) -> dict[str, tuple[int, ...]]:
    """The withheld cells in the problem's order."""
    place = read_cells(problem, True).place
    return {name: problem.cells[name].atoms for name in sorted(suppressed, key=place.__getitem__)}


def told_besides(problem: Problem, suppressed: frozenset[str], believes: bool) -> list[Count]:
    """What a reader knows of N besides the printed numbers: marks, empty groups, percentages, facts of his own."""
    attacker, policy = problem.attacker, problem.policy
    counts = []
    if attacker.flags_primary:
        primary = set(problem.primary)
        for name, atoms in withheld(problem, suppressed).items():
            if name in primary:
                counts.append(Count(atoms, 0, policy.min_n - 1, f"mark of {name}"))
            elif name in problem.structural_zero:
                continue
            elif attacker.knows_rule and (believes or problem.cells[name].n >= policy.min_n):
                counts.append(Count(atoms, policy.min_n, None, f"mark of {name}"))
    counts += [Count(problem.cells[name].atoms, 0, 0, name) for name in sorted(problem.structural_zero)]
    counts += _percents(problem, suppressed, believes)
    counts += [Count(group, low, high, f"extra_n[{i}]") for i, (group, low, high) in enumerate(attacker.extra_n)]
    return counts


def _percents(problem: Problem, suppressed: frozenset[str], believes: bool) -> list[Count]:
    """What printed percentages say of N: every (k, N) that prints like it. They stay readable where N is withheld."""
    out = []
    for cell in problem.with_percent:
        assert cell.percent is not None
        if cell.percent[0] in suppressed:
            continue
        base = problem.cells[cell.percent[0]]
        lo, hi = published_interval(problem, base, believes)
        if hi is None or hi - lo > 10_000:
            continue
        pairs = [(k, n) for n in range(lo, hi + 1) for k in percent_counts(exact(cell.percent[1]), cell.percent[2], n)]
        if not pairs:  # a reader of a broken rule: no N that he believes in prints like this
            out.append(Count(base.atoms, 1, 0, f"percent of {cell.id}"))
            continue
        ks, ns = [k for k, _ in pairs], [n for _, n in pairs]
        out.append(Count(cell.atoms, min(ks), max(ks), f"percent of {cell.id}"))
        out.append(Count(base.atoms, min(ns), max(ns), f"percent of {cell.id}"))
    return out


def percent_counts(percent: Fraction, decimals: int, n: int) -> range:
    """Every k whose share of n prints as `percent` (half up, as tables print percentages): whole, in a row."""
    if n == 0:  # of nobody only 0 % is ever printed
        return range(1 if percent == 0 else 0)
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
