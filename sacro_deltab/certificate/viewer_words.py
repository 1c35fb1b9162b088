"""What a person writes in SACRO-Viewer: read back from its summary, and held to the length and the digits of a remark.

Nobody signs these words, so they cannot be vouched for; a table of people cannot be a remark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_LETTERS, MOST_DIGITS = 500, 20  # of one remark
ALL_LETTERS, ALL_DIGITS = 6_000, 120  # of a release
_TITLE = "\n# Review summary\n"
_ENTRY = re.compile(r"\n## ([^\n]+)\nACRO status: ([^\n]+)\nReviewer status: (approved|rejected)\n\n")
_ENDS = ("\n\n\n", "")  # the viewer's template, and texts without its last lines
_REVIEWER = re.compile(r"[^\W\d_][\w.@ -]{0,39}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?")
_REVIEWER_DIGITS = 8


@dataclass(frozen=True)
class Told:
    """One output in the summary."""

    status: str
    approved: bool
    comment: str


@dataclass(frozen=True)
class Summary:
    """The viewer's summary: a remark on the whole, and one entry a record."""

    remark: str
    decisions: Mapping[str, Told]

    @property
    def words(self) -> list[str]:
        """Everything that a person wrote."""
        return [self.remark, *(told.comment for told in self.decisions.values())]


def summary_text(summary: Summary) -> str:
    """The summary as the viewer writes it, without its last empty lines."""
    parts = [f"{_TITLE}{summary.remark}\n\n"]
    for uid, told in summary.decisions.items():
        state = "approved" if told.approved else "rejected"
        parts.append(f"\n## {uid}\nACRO status: {told.status}\nReviewer status: {state}\n\n{told.comment}\n\n")
    return "".join(parts)


def read_summary(text: str) -> Summary | None:
    """The summary back from its text; None where the viewer would have written another text."""
    for end in _ENDS:
        if not text.endswith(end) or not text.startswith(_TITLE):
            continue
        remark, *rest = _ENTRY.split(text[len(_TITLE) : len(text) - len(end)])
        entries = {
            uid: Told(status, state == "approved", comment[:-2])
            for uid, status, state, comment in zip(rest[::4], rest[1::4], rest[2::4], rest[3::4], strict=True)
        }
        found = Summary(remark[:-2], entries)
        if summary_text(found) + end == text:
            return found
    return None


def word_faults(words: Sequence[str]) -> list[str]:
    """Why these words are more than remarks."""
    faults = []
    if any(c.isprintable() is False and c not in "\r\n\t" for word in words for c in word):
        faults.append("a remark written in the viewer holds characters that nobody types")
    letters, digits = [len(word) for word in words], [sum(map(str.isnumeric, word)) for word in words]
    for found, most, every, what in (
        (letters, MOST_LETTERS, ALL_LETTERS, "characters"),
        (digits, MOST_DIGITS, ALL_DIGITS, "digits"),
    ):
        if max(found, default=0) > most or sum(found) > every:
            faults.append(
                f"what was written in the viewer is more than remarks are ({most} {what} each, {every} in all)"
            )
    return faults


def reviewer_faults(reviewer: object, timestamp: object) -> list[str]:
    """Whether reviewer and time have the forms that the viewer writes."""
    faults = []
    if not isinstance(reviewer, str) or not _REVIEWER.fullmatch(reviewer) or _digits(reviewer) > _REVIEWER_DIGITS:
        faults.append("the reviewer entry is not an account's name")
    if not isinstance(timestamp, str) or not _TIME.fullmatch(timestamp):
        faults.append("the review's time is not one that the viewer writes")
    return faults


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))
