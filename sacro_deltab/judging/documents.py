"""A file as the document it claims to be: strict, complete and written exactly as the package writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from ..base.findings import Effect, Finding, note
from ..base.strict import DATA, parse
from ..inert.content import Content, TableData
from ..inert.tabular import _INVISIBLE, MARKS, number
from ..kinds.registry import KINDS
from ..outputs import Cell, Column, OutputDocument, is_mark
from ..outputs.parameters import N_SUBJECTS
from .plausible import cells_of_text
from .schema import document_errors

_REWRITE = "Send the file as the package wrote it; nothing may be added by hand."
_COUNT_NAMES = frozenset({"n", "count", "people", N_SUBJECTS, "n subjects"})
_INTEGER = re.compile(r"-?\d{1,15}\Z")
_PLAIN = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?\Z")


def document_of_json(
    content: Content, raw: bytes, numbers: Mapping[str, Any]
) -> tuple[OutputDocument | None, list[Finding]]:
    """The document of a JSON file, with what stops it from being one.

    The bytes must be exactly what the package writes for this content: extra keys, spaces, other spellings of a
    number or another order of keys could carry data that no reader sees. `numbers` are the rule set's parameters.
    """
    data = content.data
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith("sacro_deltab/output/"):
        return None, []
    errors = document_errors(data)
    if errors:
        return None, [
            note(
                "schema",
                Effect.BLOCK,
                "It does not match the output schema: " + "; ".join(errors[:5]) + ".",
                next_step=_REWRITE,
            )
        ]
    try:
        document = OutputDocument.from_json(data)
        written = document.to_json().encode("utf-8")
    except (ValueError, TypeError, KeyError):
        return None, [note("schema", Effect.BLOCK, "It does not match the output schema.", next_step=_REWRITE)]
    findings = []
    if written != raw:
        findings.append(_not_canonical())
    findings += list(free_text(document, numbers))
    return document, findings


def _not_canonical() -> Finding:
    return note(
        "not-canonical",
        Effect.BLOCK,
        "Its bytes are not what the package writes for this content: spaces, digits or entries were added.",
        next_step=_REWRITE,
    )


def document_of_csv(
    table: TableData, raw: bytes, stem: str, output_type: str, title: str | None, numbers: Mapping[str, Any]
) -> tuple[OutputDocument | None, list[Finding]]:
    """The document of a CSV that stands alone; its type comes from the facts."""
    if table.header is None or table.delimiter != "," or (not table.rows and table.n_rows):
        return None, [
            note(
                "table-form",
                Effect.BLOCK,
                "It is not a flat table with one header row and commas.",
                next_step="Write one header row, the label column first.",
            )
        ]
    columns = tuple(
        Column(name, "label" if i == 0 else "n" if name.strip().lower() in _COUNT_NAMES else "value")
        for i, name in enumerate(table.header)
    )
    rows = []
    for row in table.rows:
        if len(row) != len(columns):
            return None, [note("table-form", Effect.BLOCK, "Its rows do not have one cell a column.")]
        rows.append((row[0], *(_cell(text) for text in row[1:])))
    name = re.sub(r"[^a-z0-9_-]+", "_", stem.lower()).strip("_-")[:80] or "output"
    document = OutputDocument(name, output_type, title or name, columns, tuple(rows))
    findings = []
    errors = document_errors(parse(document.to_json(), bounds=DATA))
    if errors:
        return None, [
            note("schema", Effect.BLOCK, "It does not match the output schema: " + "; ".join(errors[:5]) + ".")
        ]
    if document.to_csv().encode("utf-8") != raw:
        findings.append(_not_canonical())
    findings += list(free_text(document, numbers))
    return document, findings


def _cell(text: str) -> Cell:
    if _INTEGER.match(text):
        return int(text)
    if _PLAIN.match(text):
        return float(text)
    return None if text == "" else text


def free_text(document: OutputDocument, numbers: Mapping[str, Any]) -> Iterator[Finding]:
    """Places where a document could carry what no rule judges: names, titles, notes, numbers written as words."""
    texts: list[tuple[str, str]] = [("the title", document.title)]
    texts += [(f"the name of column {i + 1}", column.name) for i, column in enumerate(document.columns)]
    texts += [(f"the unit of column {i + 1}", column.unit) for i, column in enumerate(document.columns)]
    texts += [(f"the name of row {i + 1}", str(row[0])) for i, row in enumerate(document.rows)]
    for key, value in document.about.items():
        texts.append(("`about`", key))
        texts += [(f"`about.{key}`", text) for text in _texts(value)]
    for place, text in texts:
        yield from _judge_text(place, text)
        if not place.startswith("`about"):
            yield from _run_of_numbers(place, text, numbers)
    if "where" in document.about:  # labels of a part of the cohort
        yield from _run_of_numbers("`about.where`", " ".join(_texts(document.about["where"])), numbers)
    for i, row in enumerate(document.rows):
        for cell in row[1:]:
            if isinstance(cell, str) and cell not in MARKS and number(cell) is not None:
                yield note(
                    "number-as-text", Effect.BLOCK, f"Row {i + 1} has a number written as text, which no rule rounds."
                )
    yield from cells_of_text(document)
    yield from _about(document)
    labels = [str(row[0]) for row in document.rows]
    names = [
        document.title,
        *(column.name for column in document.columns),
        *(c.unit for c in document.columns),
        *labels,
    ]
    if _unordered_numbers(labels):
        yield note(
            "numbers-in-labels",
            Effect.REVIEW,
            "The names of rows hold numbers in no order; names are not judged or rounded.",
            asks=("Do the numbers in these names say anything of single people?",),
        )
    decimals = sum(len(re.findall(r"\d\.\d{2,}", name)) for name in names)
    if decimals >= 3:
        yield note(
            "numbers-in-names", Effect.BLOCK, f"{decimals} names hold decimal numbers; names are not judged or rounded."
        )


def free_text_of(texts: Iterable[str], numbers: Mapping[str, Any]) -> Iterator[Finding]:
    """Names and titles on their own."""
    for text in texts:
        yield from _judge_text("a name or title", text)
        yield from _run_of_numbers("a name or title", text, numbers)


def _run_of_numbers(place: str, text: str, numbers: Mapping[str, Any]) -> Iterator[Finding]:
    """More numbers than bounds, bands and regions need: a person looks, since nothing rounds a name (D-101)."""
    most = int(numbers["name_numbers"])
    if len(_NUMBER.findall(_NAMES.sub("", text))) > most:
        yield note(
            "numbers-in-labels",
            Effect.REVIEW,
            f"{place} holds more than {most} numbers; names are not judged or rounded.",
            asks=("Do the numbers in these names say anything of single people?",),
        )


def _unordered_numbers(labels: list[str]) -> bool:
    """Whether names of one pattern carry a number each that jumps up and down, as ages do and row numbers do not.

    Numbers that count (regions, pairs of regions) rise within each turn of the number before them.
    """
    found: dict[str, list[list[int]]] = {}
    for label in labels:
        numbers = re.findall(r"\d{1,9}", label)
        found.setdefault(re.sub(r"\d{1,9}", "#", label), []).append([int(n) for n in numbers])
    for rows in found.values():
        if len(rows) < 20:
            continue
        for place in range(min(len(row) for row in rows)):
            column = [row[place] for row in rows]
            falls = sum(b < a for a, b in pairwise(column))
            if falls > len(column) / 4 and len(set(column)) >= 5:
                return True
    return False


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)


# of every document; what else a kind says of itself stands in its file
_ABOUT = frozenset(
    {
        *(
            "rule_set",
            "privacy",
            "unit",
            "mechanism",
            "basis",
            "bounds",
            "n_components",
            "labels",
            "suppression",
            "model",
            "where",
            "visits",
        ),
        *("validated", "variable", "method", "adjacency", "epsilon", "delta_dp"),
        *("age_slope", "y_mean_error", "predicted_age_error", "b1_error"),  # intervals of a private model
        "noised_error",  # of a noised statistic
    }
)


def _about(document: OutputDocument) -> Iterator[Finding]:
    """`about` says in words how the table was made; a list of numbers in it would be data that no rule judges."""
    kind = KINDS.get(document.type)
    known = _ABOUT if kind is None else _ABOUT.union(kind.says)
    strange = sorted(str(key) for key in set(document.about) - known)
    if strange:
        yield note(
            "about",
            Effect.REVIEW,
            f"`about` has entries the package does not write: {', '.join(strange[:5])}.",
            asks=("Do these entries say anything of single people?",),
        )
    if kind is not None and kind.long_about:
        return  # its public layout is long; the ledger is closed by the digest of these very bytes or it is no pass
    count = 0
    for value in document.about.values():
        items = list(value.values()) if isinstance(value, dict) else value
        items = items if isinstance(items, list | tuple) else [items]
        numbers = [item for item in items if isinstance(item, int | float) and not isinstance(item, bool)]
        count += len(numbers) + sum(len(re.findall(r"\d+\.\d+", item)) for item in items if isinstance(item, str))
        if len(numbers) > 4:
            yield note("numbers-in-about", Effect.BLOCK, "`about` holds a list of numbers; only the table is judged.")
    if count > 16:
        yield note("numbers-in-about", Effect.BLOCK, f"`about` holds {count} numbers; only the table is judged.")


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=-]{64,}")
# digests, UUIDs and times are what records name things by; a digest never stands in a text more than a few times
_NAMES = re.compile(
    r"(?:sha256:)?\b[0-9a-f]{64}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?"
)
_IDENTIFIER = re.compile(r"\b(?:sub|subj|subject|participant|patient|person|id)[-_ ]?0*\d{2,}\b", re.I)


def _judge_text(place: str, text: str) -> Iterator[Finding]:
    if _INVISIBLE.search(text) or any(ord(c) < 32 for c in text):
        yield note("invisible", Effect.BLOCK, f"{place} holds invisible characters.")
    if any(c.isdigit() and not c.isascii() for c in text):
        yield note("digits", Effect.BLOCK, f"{place} holds digits outside 0-9.")
    bare, n_names = _NAMES.subn("", text)
    if _OPAQUE.search(bare) or n_names > 4:
        yield note("opaque", Effect.BLOCK, f"{place} holds a long coded string.")
    if len(_NUMBER.findall(bare)) >= 12:
        yield note("numbers-in-text", Effect.BLOCK, f"{place} holds a list of numbers; text is not judged or rounded.")
    if _IDENTIFIER.search(text):
        yield note("identifiers", Effect.BLOCK, f"{place} reads as the identifier of a person.")


def stem_of(name: str) -> str:
    """File stem of a member or path as named."""
    return PurePosixPath(name.replace("\\", "/").rsplit("!", 1)[-1]).stem


def marked_rows(document: OutputDocument) -> frozenset[str]:
    """Names of rows whose numbers are all the mark."""
    return frozenset(str(row[0]) for row in document.rows if len(row) > 1 and all(map(is_mark, row[1:])))
