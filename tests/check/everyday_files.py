"""Everyday files made with their formats' own libraries: one planted fault each, and harmless twins."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import docx
import nbformat
import openpyxl
import pandas as pd
import pyarrow as pa
from docx.oxml import OxmlElement
from openpyxl.comments import Comment
from openpyxl.styles import Font
from pyarrow import parquet

Rows = Sequence[Sequence[object]]
_r = random.Random(19)
SMALL: Rows = [("site", "n"), ("Nairn", 140), ("Oban", 3), ("Perth", 60)]
BIG: Rows = [("site", "n"), ("Nairn", 140), ("Oban", 73), ("Perth", 60)]
MASKED: Rows = [("site", "n"), ("Nairn", 140), ("Oban", "*"), ("Perth", 60), ("Total", 207)]
CROSS: Rows = [("site", "women", "men"), ("Nairn", 70, 70), ("Oban", 64, 4), ("Perth", 33, 27)]
SHARES: Rows = [("characteristic", "N = 207"), ("women", "203 (98.1%)"), ("men", "4 (1.9%)")]
RESULTS: Rows = [("model", "mae", "folds"), ("ridge", 5.1, 10), ("pls", 5.3, 10)]
PEOPLE: Rows = [
    ("participant_id", "age", "delta"),
    *((f"H{i:03d}", round(_r.gauss(61, 7), 1), round(_r.gauss(0, 4), 2)) for i in range(24)),
]
CODES: Rows = [("subject", "visit"), *((f"KX{i:04d}", "baseline") for i in range(8))]


def _bytes(write: Callable[[Any], Any]) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def xlsx(
    rows: Rows, change: Callable[[Any], Any] | None = None, extra: Rows | None = None, state: str = "visible"
) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Main"
    for row in rows:
        sheet.append(row)
    if extra is not None:
        other = book.create_sheet("Working")
        other.sheet_state = state
        for row in extra:
            other.append(row)
    if change is not None:
        change(book)
    return _bytes(book.save)


def added(data: bytes, members: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def word(rows: Rows | None = None, text: str = "", change: Callable[[Any], Any] | None = None) -> bytes:
    document = docx.Document()
    document.add_paragraph(text or "Results by site.")
    if rows is not None:
        table = document.add_table(len(rows), len(rows[0]))
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                table.cell(i, j).text = str(cell)
    if change is not None:
        change(document)
    return _bytes(document.save)


def _deleted(document: Any) -> None:
    mark = OxmlElement("w:del")
    run, gone = OxmlElement("w:r"), OxmlElement("w:delText")
    gone.text = "only 4 patients had a scan"
    run.append(gone)
    mark.append(run)
    document.add_paragraph("A sentence. ")._p.append(mark)


def _vanished(document: Any) -> None:
    document.add_paragraph().add_run("ids stand below").font.hidden = True


def _embedded(document: Any) -> None:
    from docx.opc.constants import RELATIONSHIP_TYPE as RT
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part

    part = Part(PackURI("/word/embeddings/book.xlsx"), "application/octet-stream", xlsx(PEOPLE), document.part.package)
    document.part.relate_to(part, RT.PACKAGE)


def _footnote(document: Any) -> None:
    document.sections[0].footer.paragraphs[0].text = "Excluded: 5 participants"


def notebook(*cells: Any, **metadata: Any) -> bytes:
    return nbformat.writes(nbformat.v4.new_notebook(cells=list(cells), metadata=metadata)).encode()


def ran(source: str, data: dict[str, object], **metadata: Any) -> Any:
    output = nbformat.v4.new_output("execute_result", data=data, execution_count=1)
    return nbformat.v4.new_code_cell(source, outputs=[output], metadata=metadata)


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(list(rows[1:]), columns=list(rows[0]))


def html(rows: Rows, before: str = "", style: str = "") -> bytes:
    table = frame(rows).to_html(index=False).replace("<table", f'<table style="{style}"', 1)
    return f"<!DOCTYPE html><html><body><h1>Results</h1>{before}{table}</body></html>".encode()


def markdown(rows: Rows, before: str = "") -> bytes:
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return ("# Results\n\n" + before + "\n\n" + "\n".join(lines) + "\n").encode()


def pq(rows: Rows, **metadata: str) -> bytes:
    table = pa.Table.from_pandas(frame(rows), preserve_index=False)
    if metadata:
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})
    return _bytes(lambda out: parquet.write_table(table, out))


def dta(rows: Rows, **options: Any) -> bytes:
    return _bytes(lambda out: frame(rows).to_stata(out, write_index=False, **options))


PIVOT = {
    "xl/pivotCache/pivotCacheDefinition1.xml": '<pivotCacheDefinition xmlns="http://schemas.openxmlformats.org/'
    'spreadsheetml/2006/main"><cacheFields><cacheField name="participant_id"><sharedItems/></cacheField>'
    '<cacheField name="age"><sharedItems/></cacheField></cacheFields></pivotCacheDefinition>',
    "xl/pivotCache/pivotCacheRecords1.xml": '<pivotCacheRecords xmlns="http://schemas.openxmlformats.org/'
    'spreadsheetml/2006/main">'
    + "".join(f'<r><s v="H{i:03d}"/><n v="{50 + i}"/></r>' for i in range(12))
    + "</pivotCacheRecords>",
}  # fmt: skip
LINK = {
    "xl/externalLinks/externalLink9.xml": '<externalLink xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/'
    'main"><externalBook><sheetDataSet><sheetData><row><cell r="A1"><v>3</v></cell></row></sheetData></sheetDataSet>'
    "</externalBook></externalLink>"
}


def _hide_rows(book: Any) -> None:
    book.active.row_dimensions[3].hidden = True


def _hide_column(book: Any) -> None:
    book.active.column_dimensions["B"].hidden = True


def _comment(book: Any) -> None:
    book.active["B2"].comment = Comment("was 4 people before merging", "x")


def _formula(book: Any) -> None:
    book.active["D1"] = "=SUM(B2:B4)"


def _white(book: Any) -> None:
    book.active["F9"] = "KX1234"
    book.active["F9"].font = Font(color="FFFFFF")


def _spread(book: Any) -> None:
    for i, row in enumerate(SMALL, start=9):
        for j, cell in enumerate(row, start=4):
            book.active.cell(i, j, cell)


text = frame(SMALL).to_string()
PLANTS: dict[str, tuple[bytes, str]] = {
    "small.xlsx": (xlsx(SMALL), r"sheet 'Main' A1:B4: 3 at 'Oban', column 'n'"),
    "cross.xlsx": (xlsx(CROSS), r"4 at 'Oban', column 'men'"),
    "shares.xlsx": (xlsx(SHARES), r"4 at 'men', column 'N = 207'"),
    "second.xlsx": (xlsx(BIG, _spread), r"sheet 'Main' D9:E12: 3 at 'Oban'"),
    "people.xlsx": (xlsx(PEOPLE), r"sheet 'Main' A1:C25: 24 rows .* participant_id, age, delta"),
    "codes.xlsx": (xlsx(CODES), r"8 rows read as one row a person"),
    "hidden.xlsx": (xlsx(BIG, extra=PEOPLE, state="hidden"), r"sheet 'Working' is hidden: 25 rows"),
    "very.xlsx": (xlsx(BIG, extra=SMALL, state="veryHidden"), r"sheet 'Working' is veryHidden"),
    "rows.xlsx": (xlsx(BIG, _hide_rows), r"sheet 'Main' hides row 3"),
    "column.xlsx": (xlsx(BIG, _hide_column), r"sheet 'Main' hides column B"),
    "comment.xlsx": (xlsx(BIG, _comment), r"sheet 'Main' cell B2, comment: the text says '4 people'"),
    "formula.xlsx": (xlsx(BIG, _formula), r"sheet 'Main' has 1 formulas, the first in D1"),
    "white.xlsx": (xlsx(BIG, _white), r"sheet 'Main' has 1 cells that show nothing .*: F9"),
    "pivot.xlsx": (added(xlsx(BIG), PIVOT), r"pivot cache: it keeps 12 source rows of participant_id, age"),
    "link.xlsx": (added(xlsx(BIG), LINK), r"externalLink9.xml is a link to another workbook that keeps 1"),
    "inside.xlsx": (
        added(xlsx(BIG), {"xl/embeddings/a.xlsx": xlsx(SMALL)}),
        r"xl/embeddings/a.xlsx, sheet 'Main' A1:B4: 3",
    ),
    "masked.xlsx": (xlsx(MASKED), r"sheet 'Main' A1:B5: marks can be undone from the totals: Oban = 7"),
    "small.docx": (word(SMALL), r"document, table 1: 3 at 'Oban', column 'n'"),
    "people.docx": (word(PEOPLE), r"document, table 1: 24 rows read as one row a person"),
    "prose.docx": (word(text="Two sites had 4 patients each."), r"document, paragraph 1: the text says '4 patients'"),
    "tracked.docx": (word(change=_deleted), r"document has tracked changes: 1 deleted"),
    "vanish.docx": (word(change=_vanished), r"document, paragraph 2 has hidden text"),
    "comment.docx": (
        word(change=lambda d: d.add_comment(d.paragraphs[0].runs, "n = 4 here", "x")),
        r"comments, paragraph 1: the text says 'n = 4'",
    ),
    "embedded.docx": (word(change=_embedded), r"/word/embeddings/book.xlsx, sheet 'Main' A1:C25: 24 rows"),
    "footer.docx": (word(change=_footnote), r"footer1, paragraph 1: the text says '5 participants'"),
    "masked.docx": (word(MASKED), r"document, table 1: marks can be undone from the totals: Oban = 7"),
    "plain.ipynb": (notebook(ran("t", {"text/plain": text})), r"cell 1, output lines 1-4: 3 at 'Oban'"),
    "people.ipynb": (notebook(ran("t", {"text/html": frame(PEOPLE).to_html()})), r"cell 1, output table 1: 24 rows"),
    "hidden.ipynb": (
        notebook(ran("t", {"text/plain": "done"}, tags=["hide-output"])),
        r"cell 1 or its output is hidden",
    ),
    "plot.ipynb": (
        notebook(ran("p", {"application/vnd.plotly.v1+json": {"data": [frame(PEOPLE).to_dict("list")]}})),
        r"cell 1, output data: 24 rows read as one row a person",
    ),
    "small.html": (html(SMALL), r"table 1: 3 at 'Oban', column 'n'"),
    "unseen.html": (html(PEOPLE, style="display:none"), r"table 1 \(not shown\): 24 rows read as one row a person"),
    "comment.html": (html(BIG, "<!-- left out: n = 4 -->"), r"comment 1: the text says 'n = 4'"),
    "script.html": (html(BIG, "<script>var ages = [61.2, 58.1, 70.3]</script>"), r"a script holds 3 numbers"),
    "small.md": (markdown(SMALL), r"table 1: 3 at 'Oban', column 'n'"),
    "masked.md": (markdown(MASKED), r"table 1: marks can be undone from the totals: Oban = 7"),
    "id.md": (markdown(BIG, "We left participant 10482 out."), r"text: 1 place name people by number or id"),
    "people.parquet": (pq(PEOPLE), r"table: 24 rows read as one row a person; columns participant_id, age, delta"),
    "small.parquet": (pq(SMALL), r"table: 3 at 'Oban', column 'n'"),
    "footer.parquet": (pq(BIG, origin="sub-0042 and others"), r"the footer says something under 'origin'"),
    "people.dta": (dta(PEOPLE), r"table: 24 rows read as one row a person; columns participant_id, age, delta"),
    "small.dta": (dta(SMALL), r"table: 3 at 'Oban', column 'n'"),
    "label.dta": (
        dta(BIG, variable_labels={"n": "without the 4 patients of Ayr"}),
        r"label of n: the text says '4 patients'",
    ),
}

TWINS: dict[str, bytes] = {
    "plain.xlsx": xlsx(BIG),
    "two.xlsx": xlsx(BIG, extra=RESULTS),
    "results.xlsx": xlsx(RESULTS),
    "plain.docx": word(BIG, "Three sites, 10 folds, 5 components, 207 people."),
    "results.docx": word(RESULTS),
    "plain.ipynb": notebook(
        nbformat.v4.new_markdown_cell("# Results\n\nn = 207"), ran("t", {"text/plain": frame(BIG).to_string()})
    ),
    "plain.html": html(BIG),
    "plain.md": markdown(RESULTS, "We used 10 folds and 3 models."),
    "plain.parquet": pq(BIG),
    "plain.dta": dta(BIG, variable_labels={"n": "people at the site"}),
    "masked.md": markdown([*MASKED[:3], ("Perth", "*"), ("Total", 240)]),
    "years.html": html([("year", "scanner"), *((2000 + i, "Prisma") for i in range(12))]),
}

__all__ = ["PLANTS", "TWINS"]
