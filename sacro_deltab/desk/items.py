"""What a checker decides: one item a question, however many files it frees, and one for all that meet every rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..base.canonical import canonical_json
from ..base.digests import sha256_hex
from ..base.errors import InputError
from ..certificate.votes import DECISIONS, FileDecision, Question

_BY = {
    "pass": "These outputs meet every rule and ask nothing.",
    "review": "A rule sends these outputs to a person and asks nothing in particular.",
    "fail": "These outputs do not meet the rules.",
}


@dataclass(frozen=True)
class Item:
    """One decision. `question` is what must be answered, None for outputs that are decided as a list."""

    key: str
    heading: str
    question: str | None
    files: tuple[str, ...]


@dataclass(frozen=True)
class Said:
    """What a checker has said of one item, or of one output alone."""

    decision: str
    reason: str


@dataclass(frozen=True)
class Voting:
    """What the page of a request needs for its forms. `said`: the draft; `shown`: what a seal will be bound to."""

    request: str
    items: tuple[Item, ...]
    said: Mapping[str, Said]
    shown: str
    role: str
    problem: str = ""
    done: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)  # name → SHA-256 of what is decided
    decisions: tuple[str, ...] = DECISIONS

    @property
    def open(self) -> int:
        """Items without a decision."""
        return sum(item.key not in self.said or not self.said[item.key].decision for item in self.items)


def items_of(questions: Sequence[Question]) -> tuple[Item, ...]:
    """Questions first, those that free most files first; then outputs that fail, and those that ask nothing."""
    asked: dict[str, list[str]] = {}
    listed: dict[str, list[str]] = {}
    for file in questions:
        for text in file.questions:
            asked.setdefault(text, []).append(file.file)
        if not file.questions:
            listed.setdefault(file.verdict, []).append(file.file)
    found = [Item(_key(text), text, text, tuple(files)) for text, files in asked.items()]
    found.sort(key=lambda item: -len(item.files))
    order = [word for word in ("fail", "review", "pass") if word in listed]
    return (*found, *(Item(_key(word), _BY[word], None, tuple(listed[word])) for word in order))


def _key(text: str) -> str:
    return sha256_hex(text)[:16]


def shown_digest(questions: Iterable[Question]) -> str:
    """SHA-256 of the files and questions that a page showed: a review is sealed for those and no others."""
    return sha256_hex(canonical_json(sorted([list(question.target) for question in questions])))


def decided(question: Question, items: Sequence[Item], said: Mapping[str, Said]) -> FileDecision:
    """What the items' decisions come to for one file: the strictest of them, or what was said of the file alone.

    Raises
    ------
    InputError
        An item that the file belongs to is not decided, or has no words.
    """
    answers: dict[str, str] = {}
    votes: list[Said] = []
    for item in items:
        if question.file not in item.files:
            continue
        vote = said.get(item.key)
        if vote is None or vote.decision not in DECISIONS:
            raise InputError(f"not decided yet: {item.heading}", next_step="Decide every item, then seal.")
        if not vote.reason.strip():
            raise InputError(f"a decision needs a reason: {item.heading}", next_step="Say in words why.")
        votes.append(vote)
        if item.question is not None:
            answers[item.question] = vote.reason
    alone = said.get(question.file)
    if alone is not None and alone.decision:
        votes = [alone]
    strictest = max(votes, key=lambda vote: DECISIONS.index(vote.decision))
    return FileDecision(strictest.decision, strictest.reason, answers)
