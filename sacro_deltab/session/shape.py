"""A document looked at as `check` looks at it: what a checker would block never passes in the session."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.errors import InputError
from ..judging.documents import free_text
from ..judging.judge import Judged
from ..judging.plausible import shape_findings
from ..outputs.document import OutputDocument
from ..rules.types import Effect, Finding

if TYPE_CHECKING:
    from .core import SessionCore


_ID = re.compile(r"(?=.*\d)(?=.*[A-Za-z]).{3,}|\d{6,}")  # an id that no group or feature is likely to be called


def refuse_hidden_text(document: OutputDocument, ids: Sequence[object] | None) -> None:
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
    for finding in free_text(document):
        if finding.effect == "block":
            raise InputError(
                f"names and titles are not judged: {finding.text}",
                next_step="Name outputs, groups and features in words and whole numbers.",
            )


def shaped(session: SessionCore, judged: Judged) -> Judged:
    """The judgement with the findings of `screening.plausible.shape_findings` on what would leave."""

    document = judged.document
    if document is None or document.type not in session.ruleset.output_types:
        return judged
    n = judged.facts.get("n")
    people = n.value if n is not None and type(n.value) is int else None
    least = int(session.ruleset.parameters["min_n"])
    found = [
        Finding(
            rules=finding.rules,
            target="output",
            effect=Effect.BLOCK if finding.effect == "block" else Effect.REVIEW,
            inside=finding.text,
            outside=finding.outside or "The output has more values than so many people can stand behind.",
            asks=finding.asks,
            next_step="Ask for fewer values.",
        )
        for finding in shape_findings(document, people, least, session.ruleset.cls(document.type))
    ]
    if not found:
        return judged
    findings = (*found, *judged.decision.findings)
    worst = min((judged.decision.effect, *(f.effect for f in found)), key=lambda effect: effect.rank)
    decision = replace(judged.decision, effect=worst, findings=findings)
    return replace(judged, decision=decision, document=None if worst is Effect.BLOCK else document)
