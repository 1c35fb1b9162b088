"""What the tables and texts of any file say of people: small counts, rows of people, ids, masks that can be undone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..base.errors import SacroDeltabError
from ..base.findings import Effect, Finding, note
from ..inert.content import ArrayInfo, Content, Item, TableData, floats
from ..inert.tabular import number
from ..kinds.per_subject import BY_NAME
from .detect import ID_NAMES

_OF_PEOPLE = "people persons patients participants subjects individuals cases respondents women men females males"
_COUNTS = frozenset(f"n no num number count counts freq frequency total obs size {_OF_PEOPLE}".split())
_BESIDE = frozenset(
    ["of", "the", "in", "per", "with", "at", "all", "female", "male", "yes", "cell", "group", "sample", "by"]
)
_AXES = re.compile(
    r"age|year|month|week|day|date|seed|fold|rank|component|pc|order|epoch|iteration|version|score|mean|median|min|max"
    r"|dim|layer|level|step|param|value|lag|time|width|depth|percent|%|sd|se|id|code|df|dof|index",
    re.I,
)
_PERSONAL = re.compile(
    r"^(sur|first|last|full)[ _-]?name$|^name$|^(dob|date[ _-]?of[ _-]?birth)$|^post ?code$|^mrn$", re.I
)
_GROUPS = re.compile(
    r"site|scanner|region|area|feature|variable|term|component|idp|roi|model|group|centre|center|code|band|label", re.I
)
_ID = re.compile(r"[A-Za-z]{0,8}[-_ ]?\d{2,}[A-Za-z]?")
_WITH_SHARE = re.compile(r"\(\s*[<\d.]+\s*%\s*\)\s*$")
_TOTAL = re.compile(r"(grand )?totals?|all|sum|overall|everybody", re.I)
_MARKED = re.compile(r"\*+|[xsX]|<\s*\d+|[\[(]?(redacted|suppressed|withheld|masked)[\])]?", re.I)
_IN_TEXT = re.compile(
    rf"\bn\s*=\s*(\d+)(?![\d.,]*\d)|(?<![\d.,])(\d+)\s+(?:{'|'.join(_OF_PEOPLE.split())}|rows|person|patient|woman|man)\b",
    re.I,
)
_ID_IN_TEXT = re.compile(
    r"\b(?:sub|subj|subject|participant|patient|person)(?:[-_ ](?:id|no|nr)\b\.?:?)?[-_ #:]{0,2}[A-Za-z]{0,3}\d{2,}\b"
    r"|\bNHS[ -]?(?:number|no)\b\W{0,3}\d{3} ?\d{3} ?\d{4}\b",
    re.I,
)
_RUN = re.compile(r"(?:-?\d+(?:\.\d+)?[\s,;\[\]]+){19,}-?\d+(?:\.\d+)?")
_MERGE = "Merge small groups, or mark them together with others so that no total gives them back."
_NOT_PEOPLE = "Per-subject values never leave."


def with_people(content: Content) -> Content:
    """The content with the columns of tables that count nobody as arrays, for the detectors of people's values."""
    arrays, items = list(content.arrays), list(content.items)
    for table in content.tables:
        if _count_columns(table) or table.n_rows < 5:
            continue
        for column in table.columns:
            items.append(Item(f"{table.place}.{column.name}"[:200], "column", (table.n_rows,)))
            if len(column.numbers) * 2 > table.n_rows:
                arrays.append(ArrayInfo(items[-1].place, (len(column.numbers),), "text", column.numbers))
    for place, text in content.strings if content.kind != "table" else ():
        for run in _RUN.findall(text[:20_000])[:20]:
            values = floats(map(float, re.findall(r"-?\d+(?:\.\d+)?", run)))
            arrays.append(ArrayInfo(f"{place}, numbers", (len(values),), "text", values))
    return replace(content, arrays=tuple(arrays), items=tuple(items))


def everyday_findings(content: Content, min_n: int) -> Iterator[Finding]:
    """Every small count, row of people, id and mask that can be undone, each with its place."""
    own = content.data if isinstance(content.data, TableData) and content.data.rows else None
    for table in [*([own] if own else []), *content.tables]:
        people = _people(table)
        if people is not None:
            yield people
            continue
        if small := list(_small(table, min_n)):
            more = f" and {len(small) - 12} more" if len(small) > 12 else ""
            yield note(
                "small-cells",
                Effect.BLOCK,
                f"{_at(table)}{'; '.join(small[:12])}{more}: fewer than {min_n} people.",
                outside="Cells are below the threshold.",
                next_step=_MERGE,
            )
        yield from _undone(table, min_n)
    if content.kind != "table":
        for place, text in content.strings:
            yield from _prose(place, text, min_n)


def _at(table: TableData) -> str:
    return f"{table.place}: " if table.place else ""


def _counts_people(name: str) -> bool:
    words = re.findall(r"[a-z]+", name.lower())
    return any(w in _COUNTS for w in words) and all(w in _COUNTS or w in _BESIDE for w in words)


def _count(cell: str) -> int | None:
    """The count of `3`, `1,204` or `3 (1.5%)`."""
    value = number(_WITH_SHARE.sub("", cell).strip())
    return int(value) if value is not None and value >= 0 and value == int(value) else None


def _names(table: TableData) -> tuple[str, ...]:
    return tuple(column.name.strip() for column in table.columns)


def _filled(table: TableData, j: int) -> list[str]:
    return [row[j] for row in table.rows if j < len(row) and row[j].strip()]


def _count_columns(table: TableData) -> list[int]:
    """Columns of counts: by their name, by cells with shares, or as a crosstab of whole numbers."""
    names, out, whole = _names(table), [], []
    for j, name in enumerate(names):
        cells = _filled(table, j)
        counts = [c for c in cells if _count(c) is not None]
        if not counts or len(counts) < len([c for c in cells if not _MARKED.fullmatch(c.strip())]):
            continue
        if _counts_people(name) or any(_WITH_SHARE.search(c) for c in counts) or re.search(r"\bn\s*=\s*\d", name, re.I):
            out.append(j)
        elif j and not _AXES.search(name):
            whole.append(j)
    labelled = bool(names) and all(number(cell) is None for cell in _filled(table, 0)) and not _AXES.search(names[0])
    totals = any(_TOTAL.fullmatch(text.strip()) for text in (*names, *_filled(table, 0)))
    numeric = [j for j in range(1, len(names)) if any(number(c) is not None for c in _filled(table, j))]
    if labelled and whole and (totals or (len(whole) >= 2 and whole == numeric)):
        out += [j for j in whole if j not in out]
    return sorted(out)


def _small(table: TableData, min_n: int) -> Iterator[str]:
    names = _names(table)
    counted = _count_columns(table)
    for i, row in enumerate(table.rows):
        label = next((c.strip() for c in row if c.strip() and number(c) is None), f"row {i + 1}")
        line = bool(row) and (_counts_people(row[0]) or None)
        for j, cell in enumerate(row):
            value = _count(cell) if (j in counted or (line and j)) else None
            if value is not None and 0 < value < min_n and not _looks_like_mark(cell):
                yield f"{value} at {label!r}, column {names[j] if j < len(names) else j + 1!r}"
        for said in _IN_TEXT.finditer(" ".join(c for c in row if _count(c) is None)):
            if 0 < int(said[1] or said[2]) < min_n:
                yield f"{said[0]!r} in row {label!r}"
    for name in names:
        yield from (f"{m[0]!r} in a header" for m in _IN_TEXT.finditer(name) if 0 < int(m[1] or m[2]) < min_n)


def _looks_like_mark(cell: str) -> bool:
    return bool(_MARKED.fullmatch(cell.strip()))


def _people(table: TableData) -> Finding | None:
    """One row a person: by an id, by names of columns, by labels that read as ids."""
    if table.n_rows < 3:
        return None
    names = _names(table)
    said = [name for name in names if ID_NAMES.search(name) or _PERSONAL.search(name)]
    like = [name for j, name in enumerate(names) if not _GROUPS.search(name) and _reads_as_ids(_filled(table, j))]
    own = [name for name in names[1:] if name.lower() in BY_NAME]
    if not said and not like and (not own or table.n_rows < 5 or _count_columns(table)):
        return None
    if not said and _count_columns(table):
        return None
    columns = ", ".join(name or "(unnamed)" for name in names[:12])
    return note(
        "people-rows",
        Effect.BLOCK,
        f"{_at(table)}{table.n_rows} rows read as one row a person; columns {columns}.",
        outside="It has one row a person.",
        next_step=_NOT_PEOPLE,
    )


def _reads_as_ids(cells: list[str]) -> bool:
    cells = [cell.strip() for cell in cells]
    fits = [
        c for c in cells if _ID.fullmatch(c) and re.search(r"[A-Za-z]|\d{4}", c) and not re.fullmatch(r"\d\.\d+", c)
    ]
    years = all(re.fullmatch(r"(19|20)\d\d|\d+0", c) for c in fits)
    return len(fits) >= 5 and len(fits) >= 0.8 * len(cells) and len(set(fits)) == len(fits) and not years


def _undone(table: TableData, min_n: int) -> Iterator[Finding]:
    """What the totals of a table of counts give back of its marks, by the attacker of tables."""
    from ..tables import audit_pattern, problem_from_json  # late: brings jsonschema_rs, numpy
    from ..tables.from_csv import printed_problem

    counted = _count_columns(table)
    labels = _filled(table, 0)
    if not counted or 0 in counted or len(labels) != len(table.rows) or len(table.rows) * len(counted) > 400:
        return
    marked = any(_MARKED.fullmatch(row[j].strip()) for row in table.rows for j in counted if j < len(row))
    if not marked:
        yield from _remainder(table, counted, min_n)
        return
    rows = [[_names(table)[j] or "label" for j in (0, *counted)]]
    for row in table.rows:
        cells = [str(n) if (n := _count(row[j])) is not None else row[j].strip() for j in counted]
        rows.append([row[0].strip(), *cells])
    try:
        problem = problem_from_json(printed_problem(rows, Path(table.place or "table")))
        audit = audit_pattern(problem, problem.published_sets[0].suppressed)
    except SacroDeltabError:
        return  # not a table of counts with totals after all: its cells were looked at one by one
    known = [f"{cell} = {audit.n_interval[cell][0]}" for cell in audit.exactly_disclosed]
    known += [f"{c} is {a} to {b}" for c in audit.narrow if c not in audit.exactly_disclosed
              for a, b in [audit.n_interval[c]]]  # fmt: skip
    if known:
        yield note(
            "margins",
            Effect.BLOCK,
            f"{_at(table)}marks can be undone from the totals: {', '.join(known[:12])} exactly.",
            outside="Suppressed numbers can be worked out from the published ones.",
            next_step=_MERGE,
        )


def _remainder(table: TableData, counted: list[int], min_n: int) -> Iterator[Finding]:
    """A total that is a few more than its parts: somebody was left out, and the few can be counted."""
    ends = [i for i, row in enumerate(table.rows) if _TOTAL.fullmatch(row[0].strip())]
    if len(ends) != 1 or len(table.rows) < 2:
        return
    for j in counted:
        values = [_count(row[j]) for row in table.rows]
        total, parts = values[ends[0]], [v for i, v in enumerate(values) if i != ends[0] and v is not None]
        if total is not None and len(parts) == len(values) - 1 and 0 < total - sum(parts) < min_n:
            what = f"{_at(table)}total of column {_names(table)[j]!r} less its rows leaves {total - sum(parts)} people."
            yield note("margins", Effect.BLOCK, what, outside="A total gives a small group back.", next_step=_MERGE)


def _prose(place: str, text: str, min_n: int) -> Iterator[Finding]:
    small = [said[0] for said in _IN_TEXT.finditer(text) if 0 < int(said[1] or said[2]) < min_n]
    if small:
        what = f"{place}: the text says {', '.join(repr(s) for s in dict.fromkeys(small[:12]))}: fewer than {min_n}."
        yield note("small-cells", Effect.BLOCK, what, outside="It states small counts.", next_step=_MERGE)
    if ids := list(_ID_IN_TEXT.finditer(text)):
        what = f"{place}: {len(ids)} place{'s' * (len(ids) > 1)} name people by number or id."
        yield note("identifiers", Effect.BLOCK, what, outside="It names people by id.", next_step=_NOT_PEOPLE)
