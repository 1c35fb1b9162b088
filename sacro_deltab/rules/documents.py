"""The governing documents, where they are at hand: digests checked, the clauses' own words read for print only."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from ..base.digests import sha256_hex
from ..base.errors import InputError
from .model import Document, RuleSet


@dataclass(frozen=True)
class DocumentReport:
    """What a folder of documents says of the rule set's clauses.

    words: clause id → the line as it stands. problems: clauses that are not where they should be.
    unclaimed: (document, line, words) of lines that no clause claims: headings, heads of tables, code.
    """

    words: dict[str, str]
    problems: tuple[str, ...]
    unclaimed: tuple[tuple[str, int, str], ...]
    checked: int


def normalise(text: str) -> str:
    """NFKC, every run of white space as one space: what a clause's digest is taken of."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).strip()


def clause_digest(text: str) -> str:
    """SHA-256 of the normalised words."""
    return sha256_hex(normalise(text))


def read_documents(ruleset: RuleSet, folder: str | Path) -> DocumentReport:
    """Compare every clause with the documents in `folder`. Raises InputError where none of them is there."""
    where = Path(folder)
    words: dict[str, str] = {}
    problems: list[str] = []
    unclaimed: list[tuple[str, int, str]] = []
    found = 0
    for document in ruleset.documents.values():
        path = where / document.file
        if not path.is_file():
            problems.append(f"{document.id}: {document.file} is not in this folder")
            continue
        found += 1
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError("the document cannot be read as UTF-8 text", path=path) from error
        _compare(ruleset, document, path, lines, words, problems)
        claimed = {c.line for c in ruleset.clauses.values() if c.document == document.id}
        unclaimed += [
            (document.id, number, normalise(line))
            for number, line in enumerate(lines, 1)
            if number not in claimed and normalise(line)
        ]
    if not found:
        names = ", ".join(d.file for d in ruleset.documents.values())
        raise InputError("none of the documents is in this folder", path=where, next_step=f"It should hold {names}.")
    return DocumentReport(words, tuple(problems), tuple(unclaimed), len(words))


def _compare(
    ruleset: RuleSet, document: Document, path: Path, lines: list[str], words: dict[str, str], problems: list[str]
) -> None:
    digests = {clause_digest(line): number for number, line in reversed(list(enumerate(lines, 1)))}
    if sha256_hex(path.read_bytes()) != document.sha256:
        problems.append(f"{path.name}: the file is not the version the rule set was written from")
    for clause in ruleset.clauses.values():
        if clause.document != document.id:
            continue
        line = lines[clause.line - 1] if clause.line <= len(lines) else ""
        if clause_digest(line) == clause.sha256:
            words[clause.id] = normalise(line)
        elif clause.sha256 in digests:
            problems.append(f"{clause.place}: {clause.id} now stands in line {digests[clause.sha256]}")
        else:
            problems.append(f"{clause.place}: {clause.id}: line {clause.line} of {path.name} says something else now")
