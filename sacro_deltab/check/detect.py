"""Find per-subject data by what it is, whatever its name: vectors of N, ages, deltas, raw rows, N itself.

Every detector answers with `Finding`s. An array without a type of its own is blocked on suspicion; inside a
document that matches its schema the same sight asks for a person, because J or F can equal N by chance.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

import numpy as np

from ..base.findings import Effect, Finding, note
from ..inert.content import ArrayInfo, Content, last_name
from ..kinds.per_subject import BY_NAME
from .hidden_n import recovered_ns
from .identities import identities
from .known import Known
from .vectors import MIN_LENGTH, as_array, guess_matrix, guess_vector

ID_NAMES = re.compile(
    r"(participant|subject|patient|person|record|scan)[ _-]?(id|no|number|code)?$|^(id|sub|subj|eid|alf\w*|nhs\w*)$",
    re.I,
)


def released_matches(values: array[float], known: Known) -> Iterator[str]:
    """Released values that a column averages or sums to, within their last digit."""
    v = as_array(values)
    if len(v) < MIN_LENGTH:
        return
    mean, total, spread = float(v.mean()), float(v.sum()), float(v.std())
    for item in known.released:
        if abs(item.value) < 20 * item.resolution:
            continue  # too few digits: nearly anything matches
        for what, value in (("average", mean), ("sum", total), ("spread", spread)):
            if abs(value - item.value) <= item.resolution * 1.001:
                yield f"the {what} of the column is the released {item.name}"


def cohort_matches(values: array[float], known: Known) -> Iterator[str]:
    """Cohort columns that this vector is, up to order, shift and scale, whole or in part."""

    v = np.sort(as_array(values))
    if len(v) < 5 or float(v.std()) == 0:
        return
    for name, column in known.columns.items():
        c = as_array(column)
        if len(c) == len(v) and float(c.std()) > 0:
            r = float(np.corrcoef(v, c)[0, 1])
            flipped = float(np.corrcoef(v, np.sort(-c))[0, 1])
            if max(r, flipped) > 0.9999 and len(v) >= MIN_LENGTH:
                yield f"the values are the cohort's {name}, up to order, shift and scale"
                continue
        digits = v[np.abs(v * 1e3 - np.round(v * 1e3)) > 1e-9]
        if len(digits) >= 5:
            place = np.clip(np.searchsorted(c, digits), 1, len(c) - 1)
            gap = np.minimum(np.abs(c[place] - digits), np.abs(c[place - 1] - digits))
            if float((gap <= 1e-6 * np.maximum(np.abs(digits), 1e-9)).mean()) > 0.5:
                yield f"more than half of the values stand in the cohort's {name}"


def screen(content: Content, known: Known, name: str, *, typed: bool = False) -> list[Finding]:
    """All remarks about per-subject data in one file.

    Parameters
    ----------
    typed
        The file is a document that matches its schema: suspicion asks for review, proof still blocks.
    """
    remarks = list(content.remarks)
    local = Known(set(known.ns), known.columns, known.released, known.noise_word)
    for n, how in recovered_ns(content, name):
        local.add_ns([n])
        if not typed or how == "the file name":
            remarks.append(
                note(
                    "n-given-away",
                    Effect.REVIEW if how == "the file name" and typed else Effect.BLOCK,
                    f"N = {n} can be read from {how}.",
                    outside=f"N can be read from {how}.",
                    next_step="Round N by the rules and leave it out of names and spectra.",
                )
            )
    suspicion = Effect.REVIEW if typed else Effect.BLOCK
    split = {info.place.removesuffix("[column 0]") for info in content.arrays if info.place.endswith("[column 0]")}
    for info in content.arrays:
        apart = info.place in split or (content.kind == "table" and len(info.shape) == 2)
        remarks += list(_array_remarks(info, local, suspicion, columns_apart=apart))
    for item in content.items:
        if item.shape and len(item.shape) == 1 and ID_NAMES.search(last_name(item.place)) and item.shape[0] >= 5:
            remarks.append(
                note(
                    "identifiers",
                    Effect.BLOCK,
                    f"{item.place} reads as identifiers of people.",
                    outside="It has a column of identifiers.",
                )
            )
    remarks += identities(content) if known.noise_word != "one_release" else []
    return _once(remarks)


def _array_remarks(
    info: ArrayInfo, known: Known, suspicion: Effect, *, columns_apart: bool = False
) -> Iterator[Finding]:
    # columns_apart: the columns of this matrix are arrays of their own and are looked at there
    place = info.place
    lengths = [side for side in info.shape if side in known.ns]
    if lengths:
        yield note(
            "dimension-n",
            suspicion,
            f"{place} has a side of {lengths[0]}, the number of people: one value per subject.",
            outside="An array has as many entries as there are people.",
            next_step="Only statistics over people may leave.",
        )
    named = BY_NAME.get(last_name(place))
    if named and info.size >= 5 and suspicion is Effect.BLOCK:
        yield note(
            f"type-{named}",
            Effect.BLOCK,
            f"{place} is {named} by name, {_sides(info)} values.",
            outside=f"It holds {named}.",
            next_step="Per-subject values never leave.",
        )
    if info.values is None:
        return
    flat = len(info.shape) < 2
    columns = (
        [] if columns_apart else [info.values] if flat else [info.column(i) for i in range(min(info.shape[-1], 200))]
    )
    rows = len(info.shape) == 2 and info.shape[0] >= MIN_LENGTH and info.shape[1] >= 2
    if rows and suspicion is Effect.BLOCK and len(info.values) == info.size:
        guess = guess_matrix(info.values, info.shape)
        yield note(
            f"type-{guess.type}",
            Effect.BLOCK,
            f"{place} ({_sides(info)}) reads as {guess.type}: {guess.inside}.",
            outside=f"It reads as {guess.outside}.",
            next_step="Per-subject values never leave.",
        )
    for column in columns:
        if column is None or len(column) < 5:
            continue
        yield from _vector_remarks(place, column, known, suspicion)


def _vector_remarks(place: str, column: array[float], known: Known, suspicion: Effect) -> Iterator[Finding]:
    guess = guess_vector(column) if suspicion is Effect.BLOCK or len(column) in known.ns else None
    if guess is not None:
        effect = Effect.BLOCK if suspicion is Effect.BLOCK or guess.strong else suspicion
        yield note(
            f"type-{guess.type}",
            effect,
            f"{place} reads as {guess.type}: {guess.inside}.",
            outside=f"It holds {guess.outside}.",
            next_step="Per-subject values never leave.",
        )
    if known.released:
        for what in released_matches(column, known):
            yield note("adds-up", suspicion, f"{place}: {what}.", outside="A column adds up to a released value.")
    if known.columns:
        for what in cohort_matches(column, known):
            yield note("cohort-values", Effect.BLOCK, f"{place}: {what}.", outside="It holds values of people.")


def _sides(info: ArrayInfo) -> str:
    return "×".join(str(side) for side in info.shape)


def _once(remarks: Iterable[Finding]) -> list[Finding]:
    seen: set[tuple[str, str]] = set()
    out = []
    for remark in remarks:
        if (remark.code, remark.inside) not in seen:
            seen.add((remark.code, remark.inside))
            out.append(remark)
    return out[:200]
