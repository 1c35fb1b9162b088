"""What one file of this room says about a kind of output, and what it is given to say it with.

A kind's file holds its document, how its facts are measured on people, which numbers it prints (for the attack), how a
bare CSV of it is recognised, and how a checker measures it again from a cohort by other code. Its name, class, label
and possible numbers stand in the vocabulary of the rule set, what may leave in its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..base.findings import Finding
from ..outputs import OutputDocument
from ..rules.facts import Fact, Part

if TYPE_CHECKING:
    from ..measure.numbers import Moment, PrintedCell, Rows, Trace
    from ..measure.people import Floats, Grouping, Roster


class Inside(Protocol):
    """What a kind may ask of whoever holds the people: a session."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The rule set's numbers."""

    @property
    def n_is_secret(self) -> bool:
        """Whether N itself is protected by a release on these people."""

    def roster(self, rows: int | None = None) -> Roster:
        """The people; `rows` is how many a column has."""

    def ages(self) -> Floats | None:
        """(people,) ages where they are known."""

    def deltas_of(self, values: Any) -> Floats:
        """(people,) brain-age deltas in years; anything else is refused."""

    def model_origin(self, values: Any) -> dict[str, Fact]:
        """Where the model that gave these deltas comes from."""

    def variable(self, people: Floats) -> str:
        """The name of a per-person variable; copies in other units are refused."""

    def noised_beside(self, kind: str) -> bool:
        """Whether a noised output of this kind was made of the same people."""

    def own(
        self,
        *,
        values: Floats | None = None,
        columns: tuple[Sequence[str], Floats] | None = None,
        terms: Sequence[tuple[str, Any, bool]] | None = None,
        groups: tuple[Any, Roster] | None = None,
    ) -> dict[str, Fact]:
        """Whether something behind an output is of the researcher's own making: `values` (people,) in years, named
        `columns` (people × names), `terms` of a formula, a grouping of the roster. Ages under another name are
        refused."""

    def about(self, of: Any | None = None, **more: Any) -> dict[str, Any]:
        """Public context printed with a document; `of`: the values it is about, which may know how they were made."""


@dataclass(frozen=True)
class Made:
    """An output as measured: unrounded document, facts, and what it prints for the attack. Nothing of it is judged."""

    document: OutputDocument
    facts: Mapping[str, Fact]
    n: int | None
    parts: tuple[Part, ...] = ()
    cells: tuple[PrintedCell, ...] = ()
    trace: Trace | None = None
    grouping: Grouping | None = None
    advice: tuple[str, ...] = ()  # what would let it out, where it stays inside


@dataclass
class Measured:
    """What a cohort says of an output: its facts, facts and raw numbers of each row, the people behind each cell."""

    facts: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, tuple[float | None, ...]] = field(default_factory=dict)  # as in the document, after the label
    members: dict[str, Any] = field(default_factory=dict)  # row → (people,) bool
    statistic: str | None = None
    proposed: bool = False  # the session need not have predicted so: where nothing agrees, a person is asked


class Reading(Protocol):
    """A document that arrived beside a cohort: what is measured again may look at this and at nothing else."""

    @property
    def raw(self) -> OutputDocument:
        """Its type and the names of its rows; its numbers are not looked at."""

    @property
    def keys(self) -> list[str]:
        """Names of its rows."""

    @property
    def deltas(self) -> Any:
        """(people,) one proposal of deltas."""

    @property
    def numbers(self) -> Mapping[str, Any]:
        """The rule set's numbers."""

    @property
    def noised(self) -> bool:
        """Whether noise was recorded."""

    @property
    def members(self) -> Any:
        """(people,) bool: everybody in the cohort, or those of a part."""

    @property
    def ages(self) -> Any:
        """(people,) ages or None."""

    def column(self, name: str) -> Any:
        """(people,) numbers of a column, or None."""

    def matrix(self, names: Sequence[str]) -> Any:
        """(people, names) numbers, or None where one is not there."""

    def labels(self, name: str) -> list[str] | None:
        """A column as group labels, or None."""

    def value(self, name: str) -> Any:
        """A recorded fact's value."""

    def people(self, name: str) -> int:
        """N as recorded under this fact's name, where it can be that: everybody, or everybody with an age."""

    def trained_on(self) -> list[str]:
        """Features of the recorded weights."""

    def prediction(self) -> Any:
        """(people,) ages predicted as the document says: out of fold, else by the recorded weights; or None."""


STEP = "Check with --cohort FILE, which measures everything again."
Make = Callable[..., Sequence[Made]]
Tells = Callable[["Trace", Sequence["Rows"]], Iterator["Moment"]]
Doubts = Callable[[OutputDocument, "int | None", int], Iterator[Finding]]
Reads = Callable[[tuple[str, ...], tuple[str, ...]], bool]


@dataclass(frozen=True)
class Kind:
    """One kind of output.

    Parameters
    ----------
    name
        Its key in the rule set's `vocabulary.outputs`.
    page
        What the manual says of it.
    shape
        Entry of `$defs` of the output schema that its document must fit; "" where it is no table.
    make
        (session, its own arguments, title=, name=) → what is measured; the outputs after the first are made of it.
    tells
        The numbers it prints, as sums over groups of people: for kinds that make a trace.
    again
        The same measured from a cohort by other code; None where a checker has nothing to compare with.
    reads
        (header, row names), lower case → whether a bare CSV is of this kind.
    statistic
        mean, sd or count of the values behind it.
    part
        What a row is to the rules: row, cell (a group of people) or quantile.
    of_deltas, of_columns
        Whether it is about deltas; whether each row names a column of the cohort.
    rounded
        False where rules do not round it: on a public grid already, or drawn from rounded numbers.
    says
        Keys of its public context (`about`) besides those that every document may have.
    doubts
        (document, N where known, the minimum) → what no statistic of this kind can be.
    earlier
        How numbers that left in an earlier session tell of today's values (`measure.numbers.Earlier`); "" where they do
        not by themselves.
    long_about
        True where that context may hold many numbers.
    """

    name: str
    page: str
    shape: str = ""
    make: Make | None = None
    tells: Tells | None = None
    again: Callable[[Reading], Measured | None] | None = None
    reads: Reads | None = None
    statistic: str = ""
    part: str = "row"
    of_deltas: bool = False
    of_columns: bool = False
    rounded: bool = True
    says: tuple[str, ...] = ()
    doubts: Doubts | None = None
    earlier: str = ""
    long_about: bool = False

    @property
    def in_years(self) -> bool:
        """Whether its numbers are deltas, or SDs of deltas, in years."""
        return self.of_deltas and (self.statistic != "" or self.part == "quantile")

    @property
    def of_groups(self) -> bool:
        """Whether its rows are groups of people."""
        return self.part == "cell"


def headed(*names: str) -> Reads:
    """CSVs with exactly this header."""
    return lambda head, _: head == names


def called(*names: str) -> Reads:
    """CSVs of one number with one of these names."""
    return lambda head, rows: head == ("statistic", "value") and len(rows) == 1 and rows[0] in names
