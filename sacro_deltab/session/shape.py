"""A document looked at as `check` looks at it: what a checker would block never passes in the session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import InputError
from ..base.findings import Effect
from ..judging.documents import free_text
from ..outputs.document import OutputDocument

_ID = re.compile(r"(?=.*\d)(?=.*[A-Za-z]).{3,}|\d{6,}")  # an id that no group or feature is likely to be called


def refuse_hidden_text(document: OutputDocument, ids: Sequence[object] | None, numbers: Mapping[str, Any]) -> None:
    """Refuse titles, group names and feature names that hold numbers or coded text: nothing rounds or judges them.

    Raises
    ------
    InputError
        Naming the place, never the text.
    """

    people = {str(one) for one in ids or () if _ID.fullmatch(str(one))}
    texts = (document.title, *(column.name for column in document.columns), *(str(row[0]) for row in document.rows))
    if people and any(not people.isdisjoint({text, *re.split(r"[^\w.-]+", text)}) for text in texts):
        raise InputError("a name or title holds the id of a person", next_step="Name outputs and groups without ids.")
    for finding in free_text(document, numbers):
        if finding.effect is Effect.BLOCK:
            raise InputError(
                f"names and titles are not judged: {finding.inside}",
                next_step="Name outputs, groups and features in words and whole numbers.",
            )
