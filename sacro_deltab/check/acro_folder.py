"""Plain ACRO records: judged from their own cells, at best review. ACRO's statuses can only make it worse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from ..base.findings import Effect, Finding, note
from ..build.others import form_faults, free_texts, marked_cells, was_checked
from ..inert.content import Content, TableData
from ..inert.reading import IMAGES, read_content
from ..inert.snapshot import Snapshot
from ..inert.tabular import MARKS, MISSING, number
from ..judging.documents import _judge_text
from ..judging.report import FileReport, Report, attempted
from ..kinds.group_tables import COUNT_TABLE
from .context import Context
from .detect import screen
from .folder import SUMMARIES
from .records import FileRef, Record
from .session_folder import keeps_inside

_COUNT_METHODS = frozenset({"crosstab", "pivot_table"})
_ASK = ("Do the groups, exclusions and earlier releases of this table leave no small group to be worked out?",)
_OWN = "Release it through DeltabSession, which measures what this record leaves out."
_N = "Leave it out; only noised outputs go on beside an add_remove model. Or use zero_out_N_public from the start."


@dataclass(frozen=True)
class Grid:
    """The value block of an ACRO table: row names, column names, cells as written."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    header_rows: int

    @property
    def key(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What makes two tables speak of the same groups."""
        return self.rows, self.columns


def check_acro(
    report: Report,
    records: list[Record],
    files: Mapping[str, Snapshot],
    context: Context,
    min_n: int,
    *,
    n_protected: bool = False,
) -> None:
    """Judge plain ACRO records into `report`; where an add_remove release protects N none may leave: all rest on N."""
    mine = {ref.name for record in records for ref in record.files}
    contents = {name: read_content(files[name], context.limits) for name in sorted(mine & set(files))}
    counts: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, Grid]] = {}
    grids: list[tuple[str, Grid]] = []
    for record in records:
        for ref in record.files:
            grid = _grid(contents.get(ref.name))
            if grid is not None and _is_count(record, grid):
                counts.setdefault(grid.key, (ref.name, grid))
                grids.append((ref.name, grid))
    pairs: dict[str, list[Finding]] = {}
    for names, finding in _differencing(grids, min_n):
        for name in names:
            pairs.setdefault(name, []).append(finding)
    for record in records:
        for ref in record.files:
            (file,) = attempted(ref.name, partial(_judged, record, ref, files, contents, counts, context, min_n))
            file.add(*pairs.get(ref.name, ()))
            if n_protected and not file.kept_inside:
                file.add(
                    note("exact-n", Effect.BLOCK, "It rests on an exact N beside an add_remove model.", next_step=_N)
                )
            report.outputs.append(file)
            if file.kept_inside:
                report.kept_inside.append(file.file)


def _judged(*about: Any) -> list[FileReport]:
    return [_file(*about)]


def _file(
    record: Record,
    ref: FileRef,
    files: Mapping[str, Snapshot],
    contents: Mapping[str, Content],
    counts: Mapping[Any, tuple[str, Grid]],
    context: Context,
    min_n: int,
) -> FileReport:
    report = FileReport(ref.name, title=f"ACRO {record.method or record.type}", type=None)
    snapshot, content = files.get(ref.name), contents.get(ref.name)
    if snapshot is None or content is None:
        report.add(
            note("missing-file", Effect.BLOCK, f"{ref.name} cannot be judged: it is not in the folder or unreadable.")
        )
        return report
    report.sha256, report.n_bytes, report.kind = snapshot.sha256, len(snapshot.data), content.kind
    report.inventory = [item.line() for item in content.items[:60]]
    if ref.name in SUMMARIES:
        report.kept_inside = keeps_inside(record)
        report.add(note("kept-inside", Effect.BLOCK, "ACRO's own summary says: do not release."))
        return report
    report.add(*_texts(record), *_form(record))
    if record.status == "fail":
        report.add(note("acro-status", Effect.BLOCK, "ACRO's own checks failed it."))
    report.add(*(remark for remark in content.remarks))
    grid = _grid(content)
    if record.type == "table" and grid is not None:
        report.add(*_table(record, ref, grid, counts, min_n, context.ruleset.parameters))
        report.type = COUNT_TABLE if _is_count(record, grid) else None
    elif record.type == "table":
        report.add(note("empty", Effect.BLOCK, "The table has no rows of numbers; an empty table never passes."))
    elif content.kind in IMAGES:
        report.add(note("not-judged", Effect.BLOCK, "not judged: missing the numbers that are drawn", next_step=_OWN))
    elif record.type == "regression" and content.kind == "table":
        report.add(*_regression(record, content, context))
    else:
        report.add(*(remark for remark in screen(content, context.known, ref.name)))
        report.add(note("not-judged", Effect.BLOCK, "not judged: missing what kind of output it is", next_step=_OWN))
    if report.verdict == "pass":
        report.add(
            note(
                "acro-record",
                Effect.REVIEW,
                "A plain ACRO record was judged from its cells alone.",
                asks=_ASK,
                next_step=None if record.type == "regression" else _OWN,
            )
        )
    return report


def _texts(record: Record) -> Iterator[Finding]:
    for text in [*(record.raw.get("comments") or []), record.raw.get("exception")]:
        if isinstance(text, str):
            yield from _judge_text(f"a comment of record {record.uid!r}", text)
    match = re.search(r"dof\s*=\s*(\d+)", record.summary)
    if match is not None and int(match.group(1)) < 10:
        yield note(
            "small-count-in-text", Effect.BLOCK, "`summary` states small degrees of freedom, which gives N away."
        )


def _form(record: Record) -> Iterator[Finding]:
    """Only what ACRO writes, in its forms; what it takes from a person goes to a person."""
    if faults := list(form_faults(record.raw)):
        what = f"record {record.uid!r} is not as ACRO writes it: {', '.join(faults)}."
        yield note("record-form", Effect.BLOCK, what, next_step="Finalise the ACRO session again.")
    if free := free_texts(record.raw):
        yield note(
            "acro-record",
            Effect.REVIEW,
            f"record {record.uid!r} has texts that somebody chose: {', '.join(free)}.",
            asks=("Do these texts say anything of single people, and need they leave?",),
            next_step="Read them: `sacro-deltab release` leaves them out, and a zip that holds them is not complete.",
        )


def _marked(ref: FileRef, grid: Grid) -> Iterator[Finding]:
    """Cells that ACRO's own checks mark and that are printed all the same, by the names of their row and column."""
    named: dict[str, list[str]] = {}
    for check, row, column in marked_cells(ref.sdc):
        if row >= len(grid.cells) or column >= len(grid.columns):
            yield note("record-form", Effect.BLOCK, f"{ref.name}: a marked cell lies outside the table.")
            return
        if column < len(grid.cells[row]) and number(grid.cells[row][column]) is not None:
            named.setdefault(check, []).append(f"row {grid.rows[row]!r}, column {grid.columns[column]!r}")
    for check, cells in named.items():
        more = f" and {len(cells) - 10} more" if len(cells) > 10 else ""
        yield note(
            "acro-status",
            Effect.BLOCK,
            f"ACRO's check {check} marks {len(cells)} cells that are printed: {'; '.join(cells[:10])}{more}.",
            outside="ACRO's own checks marked cells that are printed.",
            next_step="Suppress these cells or merge their groups.",
        )


def _grid(content: Content | None) -> Grid | None:
    if content is None or content.kind != "table":
        return None
    table: TableData = content.data
    rows = [*([table.header] if table.header else []), *table.rows]  # labels may be numbers: ACRO always has a header
    if len(rows) < 2 or len(rows[0]) < 2:
        return None
    header = 1
    for row in rows[1:4]:
        if row and (not row[0].strip() or _blank_tail(row)) and not any(number(cell) is not None for cell in row[1:]):
            header += 1
        else:
            break
    head = (
        rows[0]
        if header == 1
        else tuple("/".join(r[i] for r in rows[:header] if i < len(r)) for i in range(len(rows[0])))
    )
    body = rows[header:]
    return Grid(tuple(r[0] for r in body), tuple(head[1:]), tuple(tuple(r[1:]) for r in body), header)


def _blank_tail(row: tuple[str, ...]) -> bool:
    return len(row) > 1 and all(not cell.strip() for cell in row[1:])


def _numbers(grid: Grid) -> Iterator[tuple[int, int, float]]:
    for i, row in enumerate(grid.cells):
        for j, cell in enumerate(row):
            value = number(cell)
            if value is not None:
                yield i, j, value


def _is_count(record: Record, grid: Grid) -> bool:
    """Whole non-negative numbers, and ACRO calls the table a table of frequencies."""
    fair = record.raw.get("fair")
    statbarn = fair.get("statbarn") if isinstance(fair, dict) else None
    values = [value for _, _, value in _numbers(grid)]
    whole = bool(values) and all(value >= 0 and value == int(value) for value in values)
    return whole and record.method in _COUNT_METHODS and statbarn == "Frequencies"


def _table(
    record: Record,
    ref: FileRef,
    grid: Grid,
    counts: Mapping[Any, tuple[str, Grid]],
    min_n: int,
    numbers: Mapping[str, Any],
) -> Iterator[Finding]:
    if not grid.cells or not any(True for _ in _numbers(grid)):
        yield note("empty", Effect.BLOCK, "The table has no numbers; an empty table never passes.")
        return
    yield from _marked(ref, grid)
    if not was_checked(record.raw, ref.sdc):
        yield note(
            "unchecked",
            Effect.BLOCK,
            "ACRO ran no check on this table (a callable or unknown statistic).",
            next_step=_OWN,
        )
    if grid.header_rows > 1 or any("('" in str(key) for key in record.raw.get("outcome") or ()):
        yield note(
            "multi-index",
            Effect.BLOCK,
            "It has several header rows: the viewer paints its red cells on wrong cells.",
            next_step="Release one flat table for each statistic.",
        )
    for name in (*grid.rows, *grid.columns):
        if name[:1] in ("=", "+", "-", "@", "\t", "\r") and number(name) is None:
            yield note("formula", Effect.BLOCK, "A name starts like a spreadsheet formula.")
            break
    if len(set(grid.rows)) != len(grid.rows) or len(set(grid.columns)) != len(grid.columns):
        yield note("duplicate-names", Effect.BLOCK, "Two rows or two columns have the same name.")
    if _is_count(record, grid):
        yield from _counts(grid, min_n, int(numbers["round_n_base"]), int(numbers["round_n_below"]))
        yield from _margins(grid)
        return
    yield from _means(grid, counts, min_n, int(numbers["mean_decimals"]))


def _counts(grid: Grid, min_n: int, base: int, below: int) -> Iterator[Finding]:
    small = [(i, j) for i, j, value in _numbers(grid) if value < min_n]
    if small:
        i, j = small[0]
        yield note(
            "small-cells",
            Effect.BLOCK,
            f"{len(small)} cells count fewer than {min_n} people (zeros included), the first at "
            f"row {grid.rows[i]!r}, column {grid.columns[j] if j < len(grid.columns) else j + 1!r}.",
            outside="Cells are below the threshold.",
            next_step="Merge small groups.",
        )
    values = [value for _, _, value in _numbers(grid)]
    if any(value < below for value in values) and any(value % base for value in values):
        what = f"Counts are not rounded to the nearest {base} although one is below {below}."
        yield note("not-rounded", Effect.BLOCK, what)


def _margins(grid: Grid) -> Iterator[Finding]:
    """A blank cell in a line whose total and other cells are printed."""
    total_column = next((j for j, name in enumerate(grid.columns) if name.strip().lower() in ("all", "total")), None)
    total_row = next((i for i, name in enumerate(grid.rows) if name.strip().lower() in ("all", "total")), None)
    width = len(grid.columns)
    lines: list[list[str]] = []
    if total_column is not None:
        lines += [list(row) for row in grid.cells]
    if total_row is not None:
        lines += [[row[j] if j < len(row) else "" for row in grid.cells] for j in range(width)]
    for line in lines:
        hidden = [cell for cell in line if cell.strip() in MARKS or cell.strip().lower() in MISSING]
        if len(hidden) == 1 and len(line) > 2:
            yield note(
                "margins",
                Effect.BLOCK,
                "A hidden cell follows from the total and the other cells of its line.",
                next_step="Hide a second cell of the line or drop the totals.",
            )
            return


def _means(grid: Grid, counts: Mapping[Any, tuple[str, Grid]], min_n: int, decimals: int) -> Iterator[Finding]:
    beside = counts.get(grid.key)
    if beside is None:
        yield note(
            "not-judged", Effect.BLOCK, "not judged: missing the number of people behind each cell", next_step=_OWN
        )
    else:
        n_of = {(i, j): value for i, j, value in _numbers(beside[1])}
        shown = [(i, j) for i, j, _ in _numbers(grid)]
        small = [place for place in shown if n_of.get(place, 0) < min_n]
        if small:
            yield note(
                "small-cells",
                Effect.BLOCK,
                f"{len(small)} cells rest on fewer than {min_n} people (by {beside[0]}).",
                outside="Cells are below the threshold.",
                next_step="Merge small groups.",
            )
        yield note(
            "acro-record",
            Effect.REVIEW,
            f"Counts were read from {beside[0]}, which counts rows, not people with a value.",
            asks=("Does every person counted there have a value here?",),
        )
    unrounded = sum(1 for _, _, value in _numbers(grid) if abs(value - round(value, decimals)) > 1e-9)
    if unrounded:
        yield note(
            "not-rounded", Effect.BLOCK, f"{unrounded} values have more decimal places than {decimals}.", next_step=_OWN
        )


def _regression(record: Record, content: Content, context: Context) -> Iterator[Finding]:
    dof = record.properties.get("dof")
    least = int(context.ruleset.parameters.get("min_residual_dof", 10))
    if not isinstance(dof, int | float) or dof < least:
        yield note("dof", Effect.BLOCK, "not judged: missing the residual degrees of freedom, or they are too few")
    table: TableData = content.data
    rough = 0
    for row in table.rows:
        for cell in row[1:]:
            digits = cell.strip().lstrip("-+0.").replace(".", "").split("e")[0]
            if number(cell) is not None and len(digits.rstrip("0")) > 3:
                rough += 1
    if rough:
        yield note(
            "not-rounded",
            Effect.BLOCK,
            f"{rough} values have more than three significant figures.",
            next_step="Round its numbers to three significant figures; a person decides on it.",
        )
    yield note(
        "acro-record",
        Effect.REVIEW,
        "A regression table cannot show whether one person decides a coefficient.",
        asks=("Does any coefficient rest on a dummy that is 1 for fewer than the minimum number of people?",),
    )


def _differencing(grids: list[tuple[str, Grid]], min_n: int) -> Iterator[tuple[frozenset[str], Finding]]:
    """Two count tables of the same groups whose cells differ by a few people: of each table, with the nearest other."""
    cells: dict[tuple[object, int, int], dict[float, list[str]]] = {}
    for name, grid in grids:
        for i, j, value in _numbers(grid):
            cells.setdefault((grid.key, i, j), {}).setdefault(value, []).append(name)
    close: dict[frozenset[str], None] = {}
    for names_of in cells.values():
        for below, above in pairwise(sorted(names_of)):
            if above - below < min_n:
                first, second = names_of[below], names_of[above]
                close |= dict.fromkeys(frozenset({name, second[0]}) for name in first)
                close |= dict.fromkeys(frozenset({first[0], name}) for name in second)
    for pair in close:
        if len(pair) == 2:
            name, other = sorted(pair)
            yield (
                pair,
                note(
                    "differencing",
                    Effect.BLOCK,
                    f"{name} and {other} count the same groups and differ by fewer than {min_n} people: "
                    "their difference describes those few.",
                    outside="Two tables of the same groups differ by a few people.",
                    next_step="Release one of the two.",
                ),
            )
