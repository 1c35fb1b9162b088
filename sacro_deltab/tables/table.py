"""The one model of every table: atoms (finest groups of people) and published cells as sets of atoms.

One-, two- and n-way tables, margins, hierarchies, linked tables, whole-cohort numbers and earlier releases are all
the same problem; a person dropped between two releases is an atom with n = 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base.errors import InputError
from ..base.strict import Bounds, read_object
from .identities import Identity
from .layout import Layout
from .policy import TablePolicy, is_primary_n
from .reading import Reading

ROLES = ("interior", "margin", "grand")
LARGEST = 1e15  # |value| of a number in a table
DIGITS = 12  # of a whole number in a file: sums over any table stay far below 2⁶³


@dataclass(frozen=True)
class Atom:
    """A finest group: `n` people, the sum and the sum of squares of their values where there are values."""

    n: int
    sum: float | None = None
    sumsq: float | None = None


@dataclass(frozen=True)
class Cell:
    """One number (or N and mean of one group) that may be published.

    `atoms` are positions in the problem's atom order, ascending. `n_rounding`: "exact", "rule" (to the base below
    the limit), "all" (to the base whatever its size) or "hidden" (N is not printed).
    """

    id: str
    table: str
    role: str
    atoms: tuple[int, ...]
    n: int
    n_published: int
    n_rounding: str
    sum: float | None = None
    mean: float | None = None
    sumsq: float | None = None
    sd: float | None = None
    percent: tuple[str, float, int] | None = None  # printed share of another cell: (its id, percent, decimals)


@dataclass(frozen=True)
class Attacker:
    """What a reader knows besides the cells (fixtures README, `attacker`)."""

    n_published: str = "exact"
    knows_rule: bool = False
    flags_primary: bool = False
    integer: bool = True
    value_bounds: tuple[float, float] | None = None
    extra_n: tuple[tuple[tuple[int, ...], int, int | None], ...] = ()


@dataclass(frozen=True)
class PublishedSet:
    """A candidate pattern: the cells in `suppressed` are withheld, every other cell is published."""

    name: str
    suppressed: frozenset[str]


@dataclass(frozen=True)
class Problem:
    """Atoms, cells, policy and attacker; frozen and checked."""

    kind: str
    policy: TablePolicy
    attacker: Attacker
    atom_names: tuple[str, ...]
    atoms: tuple[Atom, ...]
    cells: Mapping[str, Cell]
    structural_zero: frozenset[str] = frozenset()
    must_publish: frozenset[str] = frozenset()
    declared_primary: frozenset[str] = frozenset()
    published_sets: tuple[PublishedSet, ...] = ()
    derived_group: tuple[int, ...] | None = None
    identities: tuple[Identity, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    readings: dict[bool, Reading] = field(default_factory=dict, init=False, repr=False, compare=False)  # released.py's

    @cached_property
    def primary(self) -> tuple[str, ...]:
        """Sorted ids: every cell below the minimum, zeros if the policy says so, and those declared (dominance)."""
        policy, cells = self.policy, self.cells.values()
        found = {cell.id for cell in cells if is_primary_n(cell.n, policy.min_n, policy.zeros_are_primary)}
        return tuple(sorted((found | self.declared_primary) - self.structural_zero))

    @cached_property
    def with_percent(self) -> tuple[Cell, ...]:
        """Cells whose share of another cell is printed."""
        return tuple(cell for cell in self.cells.values() if cell.percent is not None)

    @cached_property
    def layout(self) -> Layout:
        """Every group that a pattern may tell something of, over classes of atoms."""
        facts = [group for group, _, _ in self.attacker.extra_n]
        return Layout.of(len(self.atoms), [*(cell.atoms for cell in self.cells.values()), *facts])

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables in order of appearance."""
        return tuple(dict.fromkeys(cell.table for cell in self.cells.values()))

    def names(self, atoms: Iterable[int]) -> tuple[str, ...]:
        """Names of atoms, sorted."""
        return tuple(sorted(self.atom_names[a] for a in atoms))

    def size(self, atoms: Iterable[int]) -> int:
        """Number of people in a group of atoms."""
        return sum(self.atoms[a].n for a in atoms)

    def pattern(self, suppressed: Iterable[str]) -> frozenset[str]:
        """Check that the ids exist.

        Raises
        ------
        InputError
            For an id that is no cell.
        """
        wanted = frozenset(suppressed)
        unknown = sorted(wanted - self.cells.keys())
        if unknown:
            raise InputError(f"no cell is called {unknown[0]!r}", place="published_sets")
        return wanted


def load_case(path: Path, *, limit_bytes: int = 256 * 2**20) -> dict[str, Any]:
    """Parse a problem or case file: JSON object, no duplicate keys, no NaN. A byte order mark in front is passed over.

    Raises
    ------
    UnreadableError
        Missing, no file, too large, not UTF-8, not JSON, nested too deep.
    """
    return read_object(path, bounds=Bounds(size=limit_bytes, items=50_000_000, digits=DIGITS))
