"""What a reader found in a file: arrays with shapes, text, objects. Nothing in here was ever executed.

`Content` lives inside the TRE only; findings made from it carry their own outside wording.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..base.findings import Finding


@dataclass(frozen=True)
class ArrayInfo:
    """One array: where it stands, its shape, its kind of numbers and, where cheap, its values in C order.

    `values` is None where the numbers were not read (other types, too large).
    """

    place: str
    shape: tuple[int, ...]
    dtype: str = "float64"
    values: array[float] | None = None
    as_text: bool = False  # numbers written as strings
    has_missing: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        total = 1
        for side in self.shape:
            total *= side
        return total

    def column(self, index: int) -> array[float] | None:
        """Column `index` of a two-dimensional array."""
        if self.values is None or len(self.shape) != 2:
            return None
        return self.values[index :: self.shape[1]]


@dataclass(frozen=True)
class Item:
    """One attribute, key or member of a file, as an inventory lists it."""

    place: str
    type: str
    shape: tuple[int, ...] | None = None

    def line(self) -> str:
        """`place: type (shape)`."""
        shape = "" if self.shape is None else " " + "×".join(str(side) for side in self.shape)
        return f"{self.place}: {self.type}{shape}"


@dataclass
class Column:
    """One column: its name, its numbers if all cells with content are numbers, its texts otherwise."""

    name: str
    numbers: array[float] = field(default_factory=lambda: array("d"))
    texts: list[str] = field(default_factory=list)
    n_missing: int = 0
    is_text: bool = False


@dataclass(frozen=True)
class TableData:
    """A delimited text file as a table."""

    delimiter: str
    header: tuple[str, ...] | None
    columns: tuple[Column, ...]
    n_rows: int
    rows: tuple[tuple[str, ...], ...]  # kept up to `KEEP_CELLS` cells, else empty
    place: str = ""  # where in its file it stands


@dataclass(frozen=True)
class Content:
    """Everything a reader took from one file."""

    kind: str
    arrays: tuple[ArrayInfo, ...] = ()
    items: tuple[Item, ...] = ()
    scalars: dict[str, float] = field(default_factory=dict)
    strings: tuple[tuple[str, str], ...] = ()  # (place, text), bounded
    remarks: tuple[Finding, ...] = ()
    data: Any = None  # the parsed JSON, or the parsed table
    tables: tuple[TableData, ...] = ()  # those of a file that is more than one table

    def array_named(self, *names: str) -> ArrayInfo | None:
        """The first array whose last place component is one of `names`."""
        for info in self.arrays:
            if last_name(info.place) in names:
                return info
        return None

    def walk_scalars(self) -> Iterator[tuple[str, float]]:
        """Scalars with their places."""
        yield from self.scalars.items()


def last_name(place: str) -> str:
    """Last component of a place such as `model.pca.components_` or `table[3].b1`."""
    return place.rsplit(".", 1)[-1].split("[", 1)[0].strip().lower()


def floats(values: Any) -> array[float]:
    """Values as a compact array of C doubles."""
    return array("d", values)
