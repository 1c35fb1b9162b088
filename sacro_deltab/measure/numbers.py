"""What an output says: rows over people × variables, for the attack. A table says its cells.

A number that leaves is a sum over a group of people of one variable (delta, a feature, an age) or of the product of
two; means, SDs, correlations and coefficients follow from such sums and tell of them. Which sums a kind of output
tells of stands in the file of that kind (`kinds/`, `tells`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .columns import Known, Mask, Matrix, copy_of, holds, rest_on, two_levels
from .people import Floats, Ints

_CLOSELY = 200  # columns of an output up to which each is compared with every table's values
_EQUAL = 5  # people with the very value of a table, from which a column of a wider output is
Rows = list[tuple[str, Mask, bool]]  # a column as known variables: which one, for whom it is, whether in other units


@dataclass(frozen=True)
class Trace:
    """The columns behind an output without cells. NaN where a person is not behind the statistic.

    kind: of the output. `sets`: columns that a number is of together; none where each column stands alone.
    `percents` of quantiles, in percent.
    """

    output: str
    kind: str
    labels: tuple[str, ...]
    matrix: Matrix
    sets: tuple[tuple[int, ...], ...] = ()
    percents: tuple[float, ...] = ()

    @property
    def sums(self) -> bool:
        """Whether each column's own sum is told."""
        return not self.sets and not self.percents

    def save(self, folder: Path) -> None:
        """Keep the columns in the session's working folder, for `resume`."""
        np.save(folder / f"{self.output}.kin.npy", self.matrix, allow_pickle=False)

    def to_json(self) -> dict[str, Any]:
        """Everything but the columns."""
        return {
            "output": self.output,
            "kind": self.kind,
            "labels": list(self.labels),
            "sets": [list(s) for s in self.sets],
            "percents": list(self.percents),
        }

    @classmethod
    def load(cls, data: Mapping[str, Any], folder: Path) -> Trace:
        """Back from the working folder."""
        matrix = np.load(folder / f"{data['output']}.kin.npy", allow_pickle=False)
        sets = tuple(tuple(s) for s in data["sets"])
        return cls(data["output"], data["kind"], tuple(data["labels"]), matrix, sets, tuple(data["percents"]))


@dataclass(frozen=True)
class Moment:
    """A sum over `members` of the product of `variables` (one or two names, sorted), told by row `label`.

    `shows_n`: the number of these people is told as well. `exact`: False for what only bounds values (quantiles).
    `digits`: printed with figures of its own, as features are, and not with the decimals of a delta; `shifted`: in
    other units than the variable's, which prints more digits of the same.
    """

    output: str
    label: str
    variables: tuple[str, ...]
    members: Ints
    shows_n: bool = False
    exact: bool = True
    digits: bool = False
    shifted: bool = False


@dataclass(frozen=True)
class PrintedCell:
    """One number over a group of people, as it is or would be printed.

    `members` are positions in the session's register: the people who contribute (with a value, where there is a
    statistic). statistic: "mean", "sd" or None (only N is printed). `variable` names the per-person values behind the
    statistic. `any_rounded`: the table rounds all its Ns. `printed`: the mean that an earlier session printed of these
    people; it counts for a variable whose mean over them prints the same.
    """

    output: str
    key: str
    members: Ints
    role: str = "interior"
    variable: str | None = None
    statistic: str | None = None
    shows_n: bool = True
    any_rounded: bool = False
    structural: bool = False
    printed: float | None = None

    @property
    def id(self) -> str:
        """Id of the cell in the problem."""
        return f"{self.output}|{self.key}"


def with_output(cells: Sequence[PrintedCell], output: str) -> tuple[PrintedCell, ...]:
    """The same cells under another output name."""
    return tuple(replace(cell, output=output) for cell in cells)


@dataclass(frozen=True)
class Earlier:
    """Numbers of an earlier session over `members`: its values are not known here, what it printed is.

    kind: sd (of whatever deltas) | features (means) | pair (correlations). They are about a variable of today unless
    the same number of today's values over these people would print otherwise.
    """

    output: str
    kind: str
    members: Ints
    printed: Mapping[str, float]

    def about(self, variables: tuple[str, ...], values: Mapping[str, Floats]) -> bool:
        """Whether these numbers tell of a sum of today."""
        if self.kind == "sd":
            return len(variables) == 2 and variables[0] == variables[1]
        if len(set(variables)) != (1 if self.kind == "features" else 2):
            return False
        columns = [values[name] for name in variables]
        mine = self.members[self.members < min(column.size for column in columns)]
        known = mine[np.isfinite([column[mine] for column in columns]).all(axis=0)]
        if known.size < 0.9 * self.members.size or known.size < 3:
            return True  # nothing to compare with
        gone = 4 * (1 - known.size / self.members.size)  # those without a value today may have moved it so far
        one, other = columns[0][known], columns[-1][known]
        if self.kind == "features":
            return self._prints(float(one.mean()), gone * float(one.std()))
        if not np.ptp(one) or not np.ptp(other):
            return False
        return self._prints(float(np.corrcoef(one, other)[0, 1]), gone)

    def _prints(self, number: float, slack: float) -> bool:
        """To three figures, or two decimal places of a correlation."""
        half = 0.00501 if self.kind == "pair" else 0.00501 * abs(number)
        return any(abs(number - shown) <= half + slack for shown in self.printed.values())


@dataclass
class Book:
    """The variables that numbers of a session are about, by name; columns that are copies have one name."""

    values: dict[str, Floats] = field(default_factory=dict)

    def new(self, column: Floats) -> str:
        """A name for a column that is none of the known ones."""
        number = 1 + max((int(name[1:]) for name in self.values), default=0)
        self.values[f"v{number}"] = np.array(column, dtype=np.float64)
        return f"v{number}"

    def rows(self, matrix: Matrix, live: set[str], tables: Collection[str]) -> list[Rows]:
        """Every column as the known variables that it is a copy of, for whom it is one, and as one of its own where
        it is none of anybody's or of some people only. `live` names the variables that something printed is about;
        new ones are added to it. `tables` are those of tables: a copy of few people is looked for among these.
        """
        out = []
        names = [name for name in self.values if name in live]
        known = Known([self.values[name] for name in names])
        deltas = {j for j, name in enumerate(names) if name in tables}
        few = matrix.shape[1] <= _CLOSELY
        for column in matrix.T:
            told = rest_on(column)
            mine = np.isfinite(column)
            # zeros for everybody else hide nothing; where nobody stands apart, that is the column itself
            forms = [column] if np.array_equal(told, mine) else [column, np.where(told, column, np.nan)]
            like = {j for form in forms for j in known.like(form)}
            like |= {j for j in deltas if few or int((column == known.columns[j]).sum()) >= _EQUAL}
            rows = self._copies(forms, names, known, sorted(like))
            if not any(np.array_equal(people, mine) for _, people, _ in rows):
                rows.append((self.new(column), mine, False))
                names.append(rows[-1][0])
                known.add(self.values[names[-1]])
                live.add(names[-1])
            out.append([(name, people & told, shifted) for name, people, shifted in rows])
        return out

    def _copies(self, forms: Sequence[Floats], names: Sequence[str], known: Known, like: Sequence[int]) -> Rows:
        rows: Rows = []
        column, mine = forms[0], np.isfinite(forms[0])
        for j in like:
            other = self.values[names[j]]
            copy = next((copy for form in forms if (copy := copy_of(other, form)) is not None), None)
            if copy is None:
                continue
            people = holds(copy, other, column)
            if np.array_equal(people, copy.both) and (mine & ~copy.both).any():  # the same, of more people
                with np.errstate(invalid="ignore", divide="ignore"):
                    more = (column - copy.offset) / copy.slope
                self.values[names[j]] = np.where(np.isfinite(other), other, more)
                known.replace(j, self.values[names[j]])
                people = mine
            rows.append((names[j], people, not copy.identical))
        return rows


Tells = Callable[[Trace, Sequence[Rows]], Iterator[Moment]]


def moments(trace: Trace, tells: Tells, book: Book, live: set[str], tables: Collection[str] = ()) -> tuple[Moment, ...]:
    """The rows of an output, as its kind `tells` them. `live`, `tables`: see `Book.rows`."""
    rows = book.rows(trace.matrix, set(live), tables)
    told: dict[object, Moment] = {}
    for moment in tells(trace, rows):
        told.setdefault((moment.variables, moment.members.tobytes(), moment.shows_n), moment)
    return tuple(told.values())


def products(trace: Trace, label: str, one: Rows, other: Rows, whole: Mask | None = None) -> Iterator[Moment]:
    """Sums of products of two columns, over the people who have both."""
    for first, people, _ in one:
        for second, others, _ in other:
            both = people & others if whole is None else people & others & whole
            name = (first, second) if first <= second else (second, first)
            yield Moment(trace.output, label, name, np.flatnonzero(both))


def sides(column: Floats, people: Mask) -> Iterator[Ints]:
    """The people with the higher and with the lower value of a column that has two: sums of products are their own."""
    both = people & np.isfinite(column)
    if two_levels(column[both]):
        middle = (float(column[both].min()) + float(column[both].max())) / 2
        yield np.flatnonzero(both & (column > middle))
        yield np.flatnonzero(both & (column <= middle))


def labels_of(trace: Trace, members: Ints) -> list[str]:
    """Rows of an output that are about exactly these people, for the ledger."""
    mine = np.zeros(trace.matrix.shape[0], dtype=np.bool_)
    mine[members] = True
    pairs = bool(trace.sets) and all(len(s) == 2 for s in trace.sets)
    columns = [s[-1] for s in trace.sets] if pairs else range(trace.matrix.shape[1])
    return [trace.labels[j] for j in columns if np.array_equal(np.isfinite(trace.matrix[:, j]), mine)]


def member_sets(trace: Trace) -> Iterator[tuple[str, Ints]]:
    """(key, positions of the people) for each distinct set of people behind an output, for the ledger."""
    finite = np.isfinite(trace.matrix)
    seen: dict[bytes, None] = {}
    for j in range(finite.shape[1]):
        packed = np.packbits(finite[:, j]).tobytes()
        if packed not in seen:
            seen[packed] = None
            yield ("all" if len(seen) == 1 else f"all {len(seen)}"), np.flatnonzero(finite[:, j])
