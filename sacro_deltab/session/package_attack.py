"""The attack on all that leaves of a session: its numbers as influences of people, earlier releases among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.canonical import shown_json
from ..base.errors import InputError
from ..base.writing import write_file
from ..measure.people import Floats
from ..privacy.attack.package import Told, package_attack

if TYPE_CHECKING:
    from .core import SessionCore

NAME = "attack-package.json"
_DELTA_STEP = 0.1  # years


def attack_package(session: SessionCore, seed: int = 0) -> dict[str, Any]:
    """See `DeltabSession.attack_package`."""
    told = list(_numbers(session))
    if not told:
        raise InputError("nothing without noise leaves that an attack could add up", next_step="Release something.")
    spent = session.budget.by_relation()["zero_out_N_public"]
    report = package_attack(told, math.sqrt(spent.mu_squared + spent.pure_squared), seed=seed)
    path = session.journal.folder / NAME
    write_file(path, shown_json(report))
    session.package_report = path
    return report


def _numbers(session: SessionCore) -> Iterator[Told]:
    """Every printed number that is a sum over people; quantiles, and p-values and intervals, are left out."""
    linked, roster = session.state.linked, session.roster()
    for cell in linked.cells.values():
        if cell.id in linked.suppressed:
            continue
        member = np.zeros(roster.n_people)
        member[cell.members] = 1.0
        if cell.shows_n and 0 < cell.members.size < roster.n_people:
            yield Told(cell.output, member - member.mean(), _share_step(cell.members.size) / roster.n_people)
        if cell.variable is not None and cell.statistic in ("mean", "sd"):
            yield from _of_values(cell.output, linked.values[cell.variable], cell.members, cell.statistic, digits=False)
    for told in linked.moments.values():
        for moment in told:
            values = np.prod([linked.values[name] for name in moment.variables], axis=0)
            if moment.exact:
                yield from _of_values(moment.output, values, moment.members, "mean", digits=True)


def _of_values(output: str, values: Floats, members: Any, statistic: str, *, digits: bool) -> Iterator[Told]:
    """Mean or SD of some people's values: what each person adds to it."""
    mine = values[members]
    if mine.size < 2 or not np.isfinite(mine).all() or np.ptp(mine) == 0:
        return
    centre, column = float(mine.mean()), np.full(values.size, np.nan)
    column[members] = mine - centre
    if statistic == "sd":
        spread = float(mine.std())
        column[members] = ((mine - centre) ** 2 - spread**2) / (2 * spread)
        centre = spread
    share = members.size / values.size
    step = 10.0 ** (math.floor(math.log10(abs(centre))) - 2) if digits and centre != 0 else _DELTA_STEP
    influence = np.where(np.isfinite(column), column, 0.0) / share
    yield Told(output, influence, step / math.sqrt(12), column if statistic == "mean" else None)


def _share_step(n: int) -> float:
    """SD of the rounding of a printed N."""
    return (5.0 if n < 100 else 0.0) / math.sqrt(12)
