"""Is a session's evidence plausible? Outputs that are no statistics, however consistently the evidence speaks of them.

Evidence is written by the researcher's own session and can be forged as a whole; only `--cohort` settles that. What
these checks find is the kind of forgery that carries one value per person through honest-looking types: too many
groups or quantiles for the people there are, text in value cells, tables the linked attack was never told about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base.findings import Effect, Finding, note
from ..kinds.kind import STEP
from ..kinds.registry import KINDS
from ..outputs import OutputDocument, is_mark
from ..rules.facts import Facts
from ..rules.model import OutputSpec, RuleSet

_LABELS = re.compile(r"(?:below|above|at most|at least) \d+(?:\.\d+)?\Z")


def cells_of_text(document: OutputDocument) -> Iterator[Finding]:
    """Value cells that are neither a number, the mark, nor one of the labels that rules put there."""
    for number, row in enumerate(document.rows, start=1):
        for column, cell in zip(document.columns[1:], row[1:], strict=False):
            if isinstance(cell, str) and not is_mark(cell) and not _LABELS.match(cell):
                yield note(
                    "text-in-values",
                    Effect.BLOCK,
                    f"Row {number}, column {column.name!r} holds text where a number stands.",
                )
                return


def shape_findings(document: OutputDocument, n: int | None, ruleset: RuleSet) -> Iterator[Finding]:
    """More values than people can stand behind, and numbers that no statistic of this kind can be."""
    spec = ruleset.outputs.get(document.type)
    kind, most, least = ("", None, 0) if spec is None else (spec.cls, spec.columns, int(ruleset.parameters["min_n"]))
    if most is not None and len(document.columns) - 1 > most:
        yield note(
            "too-many-columns",
            Effect.BLOCK,
            f"A document of type {document.type} has at most {most} columns of values.",
        )
    if spec is not None:
        yield from impossible_values(document, spec)
        doubts = KINDS[spec.name].doubts
        yield from () if doubts is None else doubts(document, n, least)
    if n is None:
        return
    rows = len(document.rows)
    shown = rows - sum(_marked(row) for row in document.rows)
    if spec is not None and KINDS[spec.name].of_groups and shown * least > n:
        yield note(
            "too-many-groups",
            Effect.BLOCK,
            f"{shown} groups of at least {least} people are more than {n} people can form.",
            next_step=STEP,
        )
    if kind == "coefficient" and rows > float(ruleset.parameters["values_per_person"]) * n:
        yield note(
            "many-values",
            Effect.REVIEW,
            f"{rows} values of one kind from {n} people.",
            next_step=STEP,
            asks=("Is each of these a statistic over all people, and none a person's own value?",),
        )
    if kind == "coefficient":  # `n` is the fewest people that any of its numbers rests on
        return
    for position in (i for i, column in enumerate(document.columns) if column.role == "n"):
        counts = [row[position] for row in document.rows]
        if any(isinstance(count, int | float) and count > n + least for count in counts):
            yield note("count-beyond-n", Effect.BLOCK, "A count is larger than the number of people.", next_step=STEP)


def impossible_values(document: OutputDocument, spec: OutputSpec) -> Iterator[Finding]:
    """Numbers that no statistic of this type can be: correlations beyond 1, negative SDs, quantiles that fall."""
    low = -math.inf if spec.range[0] is None else spec.range[0]
    high = math.inf if spec.range[1] is None else spec.range[1]
    places = [i for i, column in enumerate(document.columns) if column.role == "value"]
    for number, row in enumerate(document.rows, start=1):
        if any(isinstance(cell, int | float) and not low <= cell <= high for cell in (row[i] for i in places)):
            yield note(
                "impossible-value",
                Effect.BLOCK,
                f"Row {number} holds a number that no output of type {document.type} can have.",
                target=str(row[0]),
                next_step="Release the statistic itself, under its own type.",
            )
            return


def _marked(row: Sequence[Any]) -> bool:
    return all(map(is_mark, row[1:]))


def linked(
    name: str, document: OutputDocument, facts: Facts, problems: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Every row of a table must be in the problem that the attack is run on, with the count the rules judged.

    Noised numbers are in none: what noise covers is not worked out by sums, and such a table goes to a person (DP-27).
    """
    applied = facts.get("dp.applied")
    if applied is not None and applied.value is True:
        return
    counts: dict[str, int] = {}
    for data in problems:
        for cell_name, cell in data.get("cells", {}).items():
            if isinstance(cell, Mapping) and cell_name.startswith(f"{name}|"):
                atoms = data.get("atoms", {})
                try:
                    n = sum(int(atoms[atom]["n"]) for atom in cell["atoms"])
                except (KeyError, TypeError, ValueError):
                    continue
                key = cell_name.partition("|")[2]
                counts[key] = max(n, counts.get(key, 0))
    for part in facts.parts:
        if part.kind != "cell":
            continue
        recorded = part.facts.get("cell.n")
        if part.key not in counts:
            yield note(
                "tables",
                Effect.BLOCK,
                f"Row {part.key!r} is in no table problem: the attack was never run on it.",
                target=part.key,
                next_step=STEP,
            )
        elif recorded is not None and recorded.value != counts[part.key]:
            yield note(
                "tables",
                Effect.BLOCK,
                f"The evidence gives two counts for row {part.key!r}.",
                target=part.key,
                next_step=STEP,
            )
    del document


def repeated_types(documents: Mapping[str, OutputDocument], ns: set[int], min_n: int) -> Iterator[Finding]:
    """One value per person spread over many outputs: as many single numbers, or rows of one kind, as people."""
    rows: dict[str, list[int]] = {}
    for document in documents.values():
        rows.setdefault(document.type, []).append(len(document.rows))
    for kind, lengths in sorted(rows.items()):
        total = sum(lengths)
        single = all(length == 1 for length in lengths)
        if len(lengths) > 1 and any(abs(total - n) <= 1 for n in ns):
            yield note(
                "spread-out",
                Effect.BLOCK if single else Effect.REVIEW,
                f"{len(lengths)} outputs of type {kind} together have one row for each person.",
                next_step=STEP,
                asks=("Do these outputs together hold one value per person?",),
            )
        elif single and len(lengths) > min_n:
            yield note(
                "spread-out",
                Effect.REVIEW,
                f"{len(lengths)} outputs of type {kind} hold one number each.",
                next_step=STEP,
                asks=("Why are there so many single numbers of one kind?",),
            )
