"""Outputs about nearly the same people: what the table engine does not model, pair by pair.

Tables and means of delta are attacked together by the table engine. Feature summaries, SDs, quantiles, correlations
and regressions are compared here with one another: the same columns (in any unit) on nearly the same people. The pair
is named to the researcher and the checker; how many people it is about stays inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..measure.kin import near_copies
from ..measure.linked import LinkedTables, PrintedCell
from ..measure.people import Floats, Ints
from ..measure.table_audit import TableAudit
from .traces import Trace

if TYPE_CHECKING:
    from .core import SessionCore
    from .entries import Candidate

_MOST_PAIRS = 100_000  # cells of huge tables are compared for the largest groups only
SDS = frozenset({"delta_sd", "delta_sd_by_group"})
_FIGURES = 3  # significant figures of a feature summary (RD-09)


@dataclass
class Kinship:
    """What a candidate has to do with earlier outputs (inside view).

    gap: fewest people that a pair is about (0: the same people again, with more digits); None where there is no pair.
    disclosed: pairs whose difference tells of those people whatever the rounding.
    """

    gap: int | None = None
    disclosed: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, gap: int, text: str, *, disclosed: bool = False) -> None:
        """One pair."""
        self.gap = gap if self.gap is None else min(self.gap, gap)
        self.disclosed += disclosed
        if text not in self.notes and len(self.notes) < 12:
            self.notes.append(text)


@dataclass(frozen=True)
class WithKin:
    """The table engine's view with the pairs of this module added to its audit."""

    inner: Any
    kinship: Kinship

    def protect(self, primary: frozenset[str]) -> frozenset[str]:
        """The engine's choice."""
        return frozenset(self.inner.protect(primary))

    def audit(self, suppressed: frozenset[str]) -> TableAudit:
        """The engine's findings and the disclosing pairs."""
        found: TableAudit = self.inner.audit(suppressed)
        notes = tuple(dict.fromkeys((*found.pairs, *self.kinship.notes)))
        return TableAudit(found.recoverable, found.package + self.kinship.disclosed, notes)


def kinship(session: SessionCore, candidate: Candidate) -> Kinship:
    """Compare a candidate with everything the session has recorded to leave, and with itself."""
    out = Kinship()
    linked, least = session.state.linked, int(session.ruleset.parameters["min_n"])
    name, trace = candidate.document.name, candidate.trace
    if trace is not None and trace.kind == "p_value":
        return _of_association(session, candidate)
    if trace is not None:
        for old in session.state.traces:
            _traces(out, trace, old, least)
        _traces(out, trace, trace, least)
        _with_cells(out, trace, linked, list(linked.cells.values()), least)
    for old in session.state.traces:
        _with_cells(out, old, linked, candidate.cells, least)
    _sds(out, name, candidate.cells, linked, least)
    _earlier_sds(out, session, name, candidate.cells, least)
    _other_variables(out, name, candidate.cells, linked, least)
    session.state.last_kin = (name, out)
    return out


def _of_association(session: SessionCore, candidate: Candidate) -> Kinship:
    """A p-value is about the people of the correlation recorded just before it."""
    name, found = session.state.last_kin
    own = candidate.document.name
    return Kinship(found.gap, found.disclosed, [note.replace(name, own) for note in found.notes])


def recheck_pairs(session: SessionCore) -> list[tuple[str, str]]:
    """Pairs of recorded outputs whose difference tells of a few people: each was compared when it was added, and is
    again before anything is written."""
    linked, least = session.state.linked, int(session.ruleset.parameters["min_n"])
    bad: list[tuple[str, str]] = []
    traces = session.state.traces
    for i, new in enumerate(traces):
        for old in traces[:i]:
            found = Kinship()
            _traces(found, new, old, least)
            if found.disclosed:
                bad.append((old.output, new.output))
    by_output: dict[str, list[PrintedCell]] = {}
    for cell in linked.cells.values():
        if cell.variable is not None:
            by_output.setdefault(cell.output, []).append(cell)
    for output, cells in by_output.items():
        for trace in traces:
            found = Kinship()
            _with_cells(found, trace, linked, cells, least)
            if found.disclosed:
                bad.append((trace.output, output))
    return bad


def _pair(new: str, old: str, what: str) -> str:
    if new == old:
        return f"{new}: {what} about nearly the same people"
    return f"{old} and {new}: {what} about nearly the same people; release one of the two"


def _traces(out: Kinship, new: Trace, old: Trace, least: int) -> None:
    if "p_value" in (new.kind, old.kind):
        return
    if "association" in (new.kind, old.kind):
        if new.kind == old.kind:
            _associations(out, new, old, least)
        return
    if new is old and new.kind == "quantiles":
        return
    for match in near_copies(new.matrix, old.matrix, least - 1):
        both_features = new.kind == old.kind == "features"
        labels = new.labels[match.new], old.labels[match.old]
        what = f"{labels[0]} and {labels[1]}" if labels[0] != labels[1] else labels[0]
        if match.gap == 0 and new.kind == old.kind == "quantiles" and not match.shifted:
            _more_quantiles(out, new, old, least)
        elif match.gap == 0 and not match.shifted:
            continue
        elif both_features:
            tells = match.gap > 0 and _tells(new.matrix[:, match.new], old.matrix[:, match.old], match.gap)
            out.add(match.gap, _pair(new.output, old.output, f"statistics of {what}"), disclosed=tells)
        else:
            out.add(match.gap, _pair(new.output, old.output, f"statistics of {what}"))


def _more_quantiles(out: Kinship, new: Trace, old: Trace, least: int) -> None:
    """Quantiles of the same people spread over outputs: together they may enclose a few people."""
    n = int(np.isfinite(new.matrix[:, 0]).sum())
    percents = sorted({*new.percents, *old.percents})
    together = min(((b - a) * n / 100 for a, b in pairwise(percents)), default=math.inf)
    if together < least or len(percents) * least > n + least:
        text = f"{old.output} and {new.output}: together these quantiles enclose few people; release one of the two"
        out.add(int(together) if together < least else 0, text)


def _associations(out: Kinship, new: Trace, old: Trace, least: int) -> None:
    """Correlations and regressions that share two columns, with people changed or left out in one of them."""
    tally: dict[tuple[int, int], dict[int, int]] = {}
    inside_new, inside_old = _whose(new.sets), _whose(old.sets)
    for match in near_copies(new.matrix, old.matrix, least - 1):
        for i in inside_new.get(match.new, ()):
            for j in inside_old.get(match.old, ()):
                if new is not old or i > j:
                    gaps = tally.setdefault((i, j), {})
                    gaps[match.new] = min(match.gap, gaps.get(match.new, match.gap))
    for (i, j), gaps in tally.items():
        shared = len(set(new.sets[i]) & set(old.sets[j])) if new is old else 0
        if len(gaps) + shared > 1 and 0 < max(gaps.values()) < least:
            out.add(max(gaps.values()), _pair(new.output, old.output, "correlations or coefficients"))


def _whose(sets: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """The sets that each column is in."""
    out: dict[int, list[int]] = {}
    for i, columns in enumerate(sets):
        for column in columns:
            out.setdefault(column, []).append(i)
    return out


def _with_cells(out: Kinship, trace: Trace, linked: LinkedTables, cells: Sequence[PrintedCell], least: int) -> None:
    """Columns of an output without cells against the means and SDs of groups."""
    if trace.kind in ("association", "p_value"):
        return
    wanted = [c for c in cells if c.variable is not None and c.statistic is not None and c.output != trace.output]
    if not wanted:
        return
    size = trace.matrix.shape[0]
    columns = np.full((size, len(wanted)), np.nan)
    for j, cell in enumerate(wanted):
        members = cell.members[cell.members < size]
        columns[members, j] = linked.values[str(cell.variable)][members]
    for match in near_copies(trace.matrix, columns, least - 1):
        cell = wanted[match.old]
        if trace.kind == "quantiles" and not (match.gap > 0 or match.shifted):
            continue
        if match.gap == 0 and not match.shifted and trace.kind == "features":
            # The same mean or SD, with more digits than a delta may have.
            out.add(0, _pair(trace.output, cell.output, "the same deltas, once as a feature"))
            continue
        tells = trace.kind == "features" and match.gap > 0
        tells = tells and _tells(trace.matrix[:, match.new], columns[:, match.old], match.gap, decimals=True)
        out.add(match.gap, _pair(trace.output, cell.output, "statistics of delta"), disclosed=tells)


def _sds(out: Kinship, name: str, cells: Sequence[PrintedCell], linked: LinkedTables, least: int) -> None:
    """SDs of nearly the same people give the squares of the others away; the table engine knows means alone."""
    mine = [c for c in cells if c.statistic == "sd" and c.members.size >= least]
    theirs = [c for c in linked.cells.values() if c.statistic == "sd" and c.id not in linked.suppressed]
    for new in mine:
        for old in theirs:
            if new.variable == old.variable and 0 < np.setxor1d(new.members, old.members).size < least:
                gap = int(np.setxor1d(new.members, old.members).size)
                out.add(gap, _pair(name, old.output, "SDs of delta"), disclosed=True)


def _earlier_sds(out: Kinship, session: SessionCore, name: str, cells: Sequence[PrintedCell], least: int) -> None:
    """The same with SDs that left in an earlier session, of whatever variable: its values are not known here."""
    mine = [c for c in cells if c.statistic == "sd" and c.members.size >= least]
    for release, old, members in session.state.earlier if mine else ():
        if old.kind not in SDS:
            continue
        for new in mine:
            gap = int(np.setxor1d(new.members, members, assume_unique=True).size)
            if 0 < gap < least:
                out.add(gap, _pair(name, release, "SDs of delta"), disclosed=True)


def _other_variables(out: Kinship, name: str, cells: Sequence[PrintedCell], linked: LinkedTables, least: int) -> None:
    """Means and SDs of other values of nearly the same people: the values may be functions of one another."""
    mine = [c for c in cells if c.variable is not None and c.members.size >= least]
    if not mine:
        return
    theirs = [c for c in linked.cells.values() if c.variable is not None and c.id not in linked.suppressed]
    if len(mine) * len(theirs) > _MOST_PAIRS:
        mine, theirs = _largest(mine), _largest(theirs)
    for old in theirs:
        for new in mine:
            if new.variable == old.variable or abs(new.members.size - old.members.size) >= least:
                continue
            gap = int(np.setxor1d(new.members, old.members, assume_unique=True).size)
            if 0 < gap < least:
                out.add(gap, _pair(name, old.output, "statistics of other values"))


def _largest(cells: Sequence[PrintedCell]) -> list[PrintedCell]:
    return sorted(cells, key=lambda cell: -cell.members.size)[: math.isqrt(_MOST_PAIRS)]


def _tells(new: Floats, old: Floats, gap: int, *, decimals: bool = False) -> bool:
    """Whether the sums of two rounded means or SDs give the few people's own to within their spread."""
    a, b = new[np.isfinite(new)], old[np.isfinite(old)]
    spread = float(np.std(b)) or float(np.std(a))
    if spread == 0 or min(a.size, b.size) < 2:
        return True
    off_sum, off_square = 0.0, 0.0
    for values in (a, b):
        mean, sd = float(values.mean()), float(values.std(ddof=1))
        off_sum += values.size * _half(mean, decimals)
        off_square += 2 * values.size * sd * _half(sd, decimals)
    return off_sum < gap * spread or off_square < gap * spread**2


def _half(value: float, decimals: bool) -> float:
    """Half a unit of the last digit printed. A delta has one decimal place, and a feature three figures; of a pair of
    both the finer one counts."""
    figures = 0.0 if value == 0 else 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - _FIGURES + 1)
    return min(figures, 0.05) if decimals else figures


def member_sets(trace: Trace) -> Iterator[tuple[str, Ints]]:
    """(key, positions of the people) for each distinct set of people behind an output, for the ledger."""
    finite = np.isfinite(trace.matrix)
    seen: dict[bytes, None] = {}
    for j in range(finite.shape[1]):
        packed = np.packbits(finite[:, j]).tobytes()
        if packed not in seen:
            seen[packed] = None
            yield ("all" if len(seen) == 1 else f"all {len(seen)}"), np.flatnonzero(finite[:, j])
