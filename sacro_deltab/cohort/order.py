"""In which order the rows of a session stand: pandas objects are put together by their index, arrays by position."""

from __future__ import annotations

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
        for value in first:
            self.placed(value)

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
