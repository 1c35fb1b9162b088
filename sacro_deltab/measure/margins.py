"""Margins of a session's deltas that nobody prints: what a model's own training people are known to add up to.

The numbers decide who was trained on (`tables.identities`): everybody with a value, the people of one printed group
(controls of a normative model) or table, everybody else, or people named as training people. Sums of other people's
deltas, and of deltas by private weights, do not vanish to the last digits.

Confounds of two values are groups and found as such. Continuous ones are left out: Σ confound·delta is the ages' share
of it (`tables.identities`), zero only for a confound uncorrelated with age, which no real one is to the last digit.
And a reader who knows confounds by printed bands, not by person, would get bounds on a group's mean of the size of
(half a band ÷ distance of the band from the mean) × 40 years × (all people ÷ people of the group): wider than what
anybody knows of a delta, for every group that is withheld.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..tables.identities import Identity, banded_identity, holding
from .numbers import PrintedCell
from .people import Floats, Ints

_RANGE = re.compile(r"(\d+(?:\.\d+)?)\s*(to under|to|up to|-|–|—|,|;|:)\s*(?:<\s*)?(\d+(?:\.\d+)?)")
Limits = tuple[float, float]


@dataclass(frozen=True)
class Margin:
    """Σ delta = 0 over `people` ("sum"), or Σ delta·age, Σ delta·age² for a reader who knows ages by `limits`.

    `limits` are the lowest and highest age of each of `people` as printed; `centre` is an age the powers are taken
    around (with Σ delta = 0 it does not matter which).
    """

    name: str
    people: Ints
    limits: tuple[Floats, Floats] | None = None
    centre: float = 0.0


def margins(
    values: Floats, ages: Floats | None, cells: Sequence[PrintedCell], training: Iterable[Ints] = ()
) -> list[Margin]:
    """Every identity that holds on one variable of a session.

    Parameters
    ----------
    values
        One per person of the register; NaN where a person has none.
    ages
        Years, of the same people; None: the session was not told them, and only sums are known.
    cells
        All printed cells of the session, withheld ones too: their labels are read.
    """

    out: list[Margin] = []
    limits = None if ages is None else _age_limits(ages, cells)
    for people in _trained(values, cells, training):
        out.append(Margin("sum", people))
        if ages is None or limits is None:
            continue
        mine = ages[people[people < ages.size]]
        if mine.size != people.size or not np.isfinite(mine).all():
            continue
        for name in holding(values[people], mine):
            if name in ("age", "age_squared"):
                out.append(Margin(name, people, (limits[0][people], limits[1][people]), float(mine.mean())))
    return out


def _trained(values: Floats, cells: Sequence[PrintedCell], training: Iterable[Ints]) -> list[Ints]:
    """Sets of people whose values add up to zero."""

    everybody = np.flatnonzero(np.isfinite(values))
    outputs: dict[str, list[Ints]] = {}
    sets = [everybody, *training]
    for cell in cells:
        outputs.setdefault(cell.output, []).append(cell.members)
    for members in [*([cell.members] for cell in cells), *outputs.values()]:
        together = members[0] if len(members) == 1 else np.unique(np.concatenate(members))
        sets += [together, np.setdiff1d(everybody, together, assume_unique=True)]
    out, seen = [], set()
    for people in sets:
        known = people[people < values.size]
        known = known[np.isfinite(values[known])]
        if known.size < 2 or (key := known.tobytes()) in seen:
            continue
        seen.add(key)
        mine = values[known]
        if mine.any() and "sum" in holding(mine, np.zeros_like(mine)):
            out.append(known)
    return out


def _age_limits(ages: Floats, cells: Sequence[PrintedCell]) -> tuple[Floats, Floats] | None:
    """Lowest and highest age of everybody as a reader knows them; None where no table is by age."""
    finite = ages[np.isfinite(ages)]
    if not finite.size:
        return None
    low = np.full(ages.size, float(np.floor(finite.min())))
    high = np.full(ages.size, float(np.ceil(finite.max())))
    found = False
    outputs: dict[str, list[PrintedCell]] = {}
    for cell in cells:
        if cell.members.size and int(cell.members.max()) < ages.size and np.isfinite(ages[cell.members]).all():
            outputs.setdefault(cell.output, []).append(cell)
    for mine in outputs.values():
        hidden = _disjoint(ages, mine)
        for cell in mine:
            band = _printed(cell.key, ages[cell.members]) or hidden.get(cell.id)
            if band is not None:
                found = True
                low[cell.members] = np.maximum(low[cell.members], band[0])
                high[cell.members] = np.minimum(high[cell.members], band[1])
    return (low, high) if found else None


def _printed(label: str, ages: Floats) -> Limits | None:
    """Limits that a label names and its people keep to: "45 to under 55", "45-54", "[45, 55)"."""
    for first, word, last in _RANGE.findall(label):
        low, high = float(first), float(last)
        if word != "to under" and "." not in last and float(ages.max()) >= high:
            high += 1.0  # 45-54 holds everybody who is 54
        if low < high and float(ages.min()) >= low and float(ages.max()) <= high:
            return low, high
    return None


def _disjoint(ages: Floats, cells: Sequence[PrintedCell]) -> Mapping[str, Limits]:
    """Bands under another name: at least three groups that follow one another in age."""
    spans = sorted((float(ages[c.members].min()), float(ages[c.members].max()), c.id) for c in cells)
    if len(spans) < 3 or any(a[1] >= b[0] for a, b in pairwise(spans)):
        return {}
    return {name: (low, high) for low, high, name in spans}


def identity_of(margin: Margin, atoms: Sequence[int], first: Sequence[int], largest: float | None) -> Identity:
    """The margin over the atoms of a problem; `first`: for each atom the place in `margin.people` of one person.

    `largest`: bound on |delta| of one person, which turns limits of ages into limits of sums.
    """

    if margin.limits is None or largest is None:
        return Identity(margin.name, tuple(atoms), (1.0,) * len(atoms), (0.0,) * len(atoms))
    bands = [(float(margin.limits[0][i]), float(margin.limits[1][i])) for i in first]
    return banded_identity(margin.name, atoms, bands, mean_age=margin.centre, largest_value=largest)
