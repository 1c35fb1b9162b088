"""The last line of a public method: arguments that nobody foresaw end in a refusal, never in a traceback."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..base.errors import InputError, SacroDeltabError

_Made = TypeVar("_Made")
_With = ParamSpec("_With")


def measured(method: Callable[_With, _Made]) -> Callable[_With, _Made]:
    """A method whose unforeseen errors become an `InputError`. Nothing has been recorded then: the steps that record
    have refusals of their own. Messages never hold an argument."""

    name = "SessionCore" if method.__name__ == "__init__" else method.__name__

    @functools.wraps(method)
    def guarded(*args: _With.args, **kwargs: _With.kwargs) -> _Made:
        try:
            inspect.signature(method).bind(*args, **kwargs)
        except TypeError as error:
            raise InputError(f"{name}: {error}", next_step="See help() of this method.") from None
        try:
            return method(*args, **kwargs)
        except (SacroDeltabError, MemoryError):
            raise
        except Exception as error:
            raise InputError(
                f"{name} can do nothing with these arguments ({type(error).__name__})",
                next_step="Give columns of plain numbers and labels, one value for each row of the cohort.",
            ) from error

    return guarded
