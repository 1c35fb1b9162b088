"""Sums over groups of people, variable by variable: which small group's own follow by adding and subtracting.

No rounding is held against the reader: a group of fewer people than the minimum that is a combination of groups whose
sums are told counts as known, however few digits were printed (D-36).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ..tables.span import Span
from .atoms import grouped
from .people import Ints

Variables = tuple[str, ...]


@dataclass(frozen=True)
class Derived:
    """A small group whose sum follows (inside view): how many people, and from which outputs."""

    n: int
    outputs: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The outputs by name, without a count."""
        if len(self.outputs) == 1:
            return f"{self.outputs[0]}: statistics about nearly the same people"
        *first, last = self.outputs
        return f"{', '.join(first)} and {last}: statistics about nearly the same people; release one of them less"


@dataclass
class Sums:
    """The groups that sums are told of, by variables and output."""

    told: dict[Variables, dict[str, dict[bytes, Ints]]] = field(default_factory=dict)

    def add(self, variables: Variables, output: str, members: Ints) -> None:
        """One sum."""
        if members.size:
            self.told.setdefault(variables, {}).setdefault(output, {})[members.tobytes()] = members

    def small(self, below: int, only: Collection[Variables] | None = None) -> list[Derived]:
        """Small groups that follow, the smallest of each set of variables, each once."""
        out: dict[Derived, None] = {}
        for variables, outputs in self.told.items():
            if only is not None and variables not in only:
                continue
            found = smallest(outputs, below)
            if found is not None:
                out[found] = None
        return list(out)


def smallest(outputs: dict[str, dict[bytes, Ints]], below: int) -> Derived | None:
    """The smallest group of fewer than `below` people that follows from the groups of some outputs, and from which."""
    n = _smallest(_groups(outputs), below)
    if n is None:
        return None
    needed = dict(outputs)
    for name in outputs:  # drop what it does not need, the oldest first
        rest = {key: groups for key, groups in needed.items() if key != name}
        if _smallest(_groups(rest), below) is not None:
            needed = rest
    return Derived(n, tuple(needed))


def _groups(outputs: dict[str, dict[bytes, Ints]]) -> tuple[bytes, ...]:
    return tuple(sorted({key for groups in outputs.values() for key in groups}))


@lru_cache(maxsize=512)
def _smallest(groups: tuple[bytes, ...], below: int) -> int | None:
    """Many columns are told of the same groups: each set of groups is looked at once."""

    if not groups:
        return None
    people: Sequence[Ints] = [np.frombuffer(key, dtype=np.int64) for key in groups]
    atoms, members, _ = grouped(people, None)
    found = Span(len(atoms), [m.tolist() for m in members], [a.n for a in atoms]).smallest(below)
    return found.n if found is not None and 0 < found.n < below else None
