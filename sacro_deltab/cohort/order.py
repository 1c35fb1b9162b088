"""In which order the rows of a session stand: pandas objects are put together by their index, arrays by position."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_NEXT = "Give the rows the index of people=, or take .to_numpy() of what already stands in the session's order."


class RowOrder:
    """The index of a session's rows: that of the first pandas object it was given.

    A Series in another order is not another Series: whoever shuffles, sorts or joins a table expects the index to hold
    it together. Lists, arrays and Polars columns carry no index and are taken by position.
    """

    def __init__(self, *first: Any, ids: Any | None = None) -> None:
        self._index: pd.Index[Any] | None = None
        self._ids = None if ids is None else ids
        self._table: pd.DataFrame | None = None
        for value in first:
            self.placed(value)

    def know(self, table: Any) -> None:
        """Columns that are called by their names from now on."""
        if hasattr(table, "to_pandas"):  # polars, arrow
            table = table.to_pandas()
        if not hasattr(table, "columns"):
            raise InputError("this is no table", next_step="Give a data frame with one row for each of people=.")
        self._table = self.placed(table)

    @property
    def table(self) -> pd.DataFrame | None:
        """The table of named columns, where one was given."""
        return self._table

    def call(self, name: str, values: Any) -> None:
        """One column more that has a name."""
        if self._table is not None:
            self._table = self._table.assign(**{name: values})

    def framed(self, values: Any) -> Any:
        """Values in the session's order as a Series with its index; as they are where nobody gave an index."""
        if self._index is None:
            return values
        import pandas as pd  # late: pandas is heavy

        return pd.Series(values, index=self._index, name="delta")

    def named(self, value: Any) -> Any:
        """The column that a name stands for, or the table for a list of names; anything else as it is."""
        if self._table is None:
            return value
        if isinstance(value, str):
            if value not in self._table:
                raise InputError(f"the table has no column {value!r}", next_step="See its header.")
            return self._table[value]
        names = isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)
        return self._table[value] if names and set(value) <= set(self._table.columns) else value

    def where(self, text: str) -> tuple[Any, Any]:
        """`"dx == 'HC'"`, or `"site in ['Oban', 'Leith']"`, as the column and its labels.

        Raises
        ------
        InputError
            For any other form, or a column that the table does not have.
        """
        try:
            asked = ast.parse(text.strip(), mode="eval").body
            if isinstance(asked, ast.Compare) and isinstance(asked.left, ast.Name) and len(asked.ops) == 1:
                column, labels = self.named(asked.left.id), ast.literal_eval(asked.comparators[0])
                if isinstance(asked.ops[0], ast.Eq | ast.In) and not isinstance(column, str):
                    return column, labels
        except (SyntaxError, ValueError):
            pass
        raise InputError(
            "where= is not understood",
            next_step="After session.use_table(table) for example where=\"dx == 'HC'\"; else where=(column, 'HC').",
        )

    def of(self, rows: Any) -> RowOrder:
        """This order, or one of its own for rows of other people."""
        return self if self._index is None or len(rows) == len(self._index) else RowOrder(rows)

    def placed(self, value: Any) -> Any:
        """The same values in the session's order.

        Raises
        ------
        InputError
            When the index holds other rows than the session's, or one row twice in another order.
        """
        value = self.named(value)
        if is_dataclass(value) and hasattr(value, "ages") and not isinstance(value, type):
            return replace(value, ages=self.placed(value.ages))  # age bands
        if isinstance(value, Mapping):
            return {key: self.placed(column) for key, column in value.items()}
        if isinstance(value, list | tuple) and any(_index_of(part) is not None or is_dataclass(part) for part in value):
            return type(value)(self.placed(part) for part in value)
        index = _index_of(value)
        if index is None:
            return value
        if self._index is None:
            self._index = self._first(index)
        if index.equals(self._index):
            return value
        return self._reordered(value, index, self._index)

    def _first(self, index: pd.Index[Any]) -> pd.Index[Any]:
        """An index that names people by their ids says the order by them; any other is taken as it stands."""
        ids = _flat(self._ids)
        if len(ids) == len(index) and set(index) == set(ids):
            named: pd.Index[Any] = type(index)(ids)
            return named
        if not index.is_unique:
            raise InputError("the index of these rows holds an entry twice, so it orders nothing", next_step=_NEXT)
        return index

    def _reordered(self, value: Any, index: pd.Index[Any], wanted: pd.Index[Any]) -> Any:
        ids = _flat(self._ids)
        if len(ids) == len(index) and set(index) == set(ids):
            wanted = type(index)(ids)
        if not index.is_unique or not wanted.is_unique:
            raise InputError("the index of these rows holds an entry twice, in another order", next_step=_NEXT)
        if len(index) != len(wanted):
            raise InputError(
                f"there are {len(index)} rows, but the session's cohort has {len(wanted)}",
                next_step="Give one value for each row of the cohort; where=(column, label) takes a part of it.",
            )
        if not wanted.isin(index).all():
            raise InputError("the index of these rows is not that of the session's people", next_step=_NEXT)
        return value.reindex(wanted)


def _index_of(value: Any) -> pd.Index[Any] | None:
    """The index of a pandas Series or DataFrame; None for anything else (a Cohort's own columns stand in its order)."""
    if hasattr(value, "reindex") and hasattr(value, "iloc"):
        found: pd.Index[Any] = value.index
        return found
    return None


def _flat(ids: Any | None) -> Sequence[Any]:
    if ids is None:
        return ()
    return list(ids.tolist() if hasattr(ids, "tolist") else ids)
