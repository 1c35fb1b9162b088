"""From bytes to `Content`, by what the bytes are. Formats that never leave are named with what to send instead."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import PurePosixPath

from ..base.errors import UnreadableError
from ..base.findings import Effect, Finding, note
from .archives import gunzip, inflate, names_of_zip, read_members
from .arrays import read_npy, read_npz
from .content import ArrayInfo, Content, Item, TableData
from .everyday import KINDS as EVERYDAY
from .everyday import read_everyday
from .images import read_png
from .json_content import read_json
from .layouts import tables_in_text
from .limits import DEFAULT, Limits
from .logs import read_log, text_remarks
from .pickles import read_pickle
from .snapshot import Snapshot
from .sniff import sniff
from .tabular import collect, read_table

EXPORT = "Make the output with `sacro-deltab run` or `DeltabSession`: one flat CSV and its JSON document."
_EVERYDAY = "Send each table as one flat CSV, with nothing hidden; a person decides on it inside the TRE."
_PERSON = "It goes to a person, who opens it inside the TRE: its contents were not listed."
# Formats that never leave as they are: what a file is said to be, and what to do instead.
REFUSED: dict[str, tuple[str, str]] = {
    "xlsx": ("an Excel workbook: it can hide sheets, formulas and history, and the viewer cannot show it", _EVERYDAY),
    "docx": ("a Word document: it can hide text, changes and files", _EVERYDAY),
    "notebook": ("a Jupyter notebook: it keeps every output and more than it shows", _EVERYDAY),
    "html": ("an HTML page: it can hide text and run scripts", _EVERYDAY),
    "markdown": ("a Markdown text: it can hide comments and pages", _EVERYDAY),
    "parquet": ("a Parquet file: made for rows of people and not readable by eye", _EVERYDAY),
    "stata": ("a Stata data file: made for rows of people and not readable by eye", _EVERYDAY),
    "latex": ("a LaTeX text", _EVERYDAY),
    "pptx": ("a PowerPoint presentation", _PERSON),
    "opendocument": ("an OpenDocument file (text, sheet or slides)", _PERSON),
    "office": ("an Office document of before 2007 (doc, xls, ppt)", _PERSON),
    "spss": ("an SPSS data file", _PERSON),
    "rdata": ("an R data file", _PERSON),
    "matlab": ("a MATLAB file", _PERSON),
    "arrow": ("an Arrow file", _PERSON),
    "feather": ("a Feather file", _PERSON),
    "safetensors": ("a safetensors file: arrays of a model", _PERSON),
    "dicom": ("a DICOM image: a person's scan with their data", _PERSON),
    "nifti": ("a NIfTI image: a brain scan or map", _PERSON),
    "hdf5": ("an HDF5 file: its contents cannot be listed completely", EXPORT),
    "skops": ("a skops model file: it carries the training rows and N", EXPORT),
    "torch": ("a PyTorch file: it is a pickle inside a zip", EXPORT),
    "pdf": ("a PDF: it can hide text and attachments", "Send the plot as PNG and its numbers as CSV and JSON."),
    "svg": ("an SVG image: every plotted point stands in it as text", "Save the plot as PNG."),
    "zlib": ("a compressed stream, as joblib writes it: a pickle or an R file", EXPORT),
    "program": ("a program", EXPORT),
    "sqlite": ("a database", EXPORT),
    "utf16": ("text in UTF-16", "Write it as UTF-8."),
    "empty": ("empty", EXPORT),
    "binary": ("in a format that is not known", _PERSON),
}
_PACKED = ("skops", "torch")  # zip files by another name
IMAGES = ("png", "jpeg", "gif")
_RULES = re.compile(rb"^[ \t|:-]+\r?$", re.M)  # the line below the header of a Markdown table
_FOLDERS = (("word/", "docx"), ("ppt/", "pptx"), ("", "xlsx"))  # by the folder that the members stand in


def kind_of(data: bytes, name: str = "") -> str:
    """Kind from the bytes, with the formats that are zip files or text told apart."""
    kind = sniff(data)
    if kind == "zip":
        return _zipped(data)
    if kind == "json" and b'"nbformat"' in data and b'"cells"' in data:
        return "notebook"
    if kind == "text":
        lines = any(b"--" in m[0] and b"|" in m[0] for m in _RULES.finditer(data))
        if lines or PurePosixPath(name).suffix.lower() in (".md", ".markdown", ".qmd", ".rmd"):
            return "markdown"
        return "latex" if b"\\begin{tabular" in data or b"\\begin{longtable" in data else kind
    return kind


def _zipped(data: bytes) -> str:
    names = names_of_zip(data)
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    if "schema.json" in names:
        return "skops"
    if "[Content_Types].xml" in names:
        return next(kind for folder, kind in _FOLDERS if any(name.startswith(folder) for name in names))
    if "mimetype" in names and "META-INF/manifest.xml" in names:
        return "opendocument"
    return "torch" if any(name.endswith("data.pkl") for name in names) else "zip"


def read_content(snapshot: Snapshot, limits: Limits = DEFAULT) -> Content:
    """Read one file inertly.

    Returns
    -------
    Content
        Always; a file that cannot be read as what it is gives one blocking remark instead of an error.
    """
    kind = kind_of(snapshot.data, snapshot.name)
    try:
        content = _read(kind, snapshot, limits)
    except UnreadableError as error:
        where = f" ({error.place})" if error.place else ""
        content = Content(
            kind,
            remarks=(
                note(
                    "unreadable",
                    Effect.BLOCK,
                    f"Not read: {error.what}{where}.",
                    outside=f"Not read: {error.what}.",
                    next_step=error.next_step,
                ),
            ),
        )
    except (MemoryError, RecursionError):
        content = Content(
            kind,
            remarks=(
                note(
                    "unreadable",
                    Effect.BLOCK,
                    "Not read: it takes too much memory.",
                    outside="Not read: it takes too much memory.",
                    next_step=EXPORT,
                ),
            ),
        )
    return content


def _read(kind: str, snapshot: Snapshot, limits: Limits) -> Content:
    data, name = snapshot.data, snapshot.name
    if kind == "pickle":
        return _pickle(snapshot, limits)
    if kind == "npy":
        return read_npy(data, name)
    if kind == "npz":
        return read_npz(data, name, limits)
    if kind == "png":
        return read_png(data, name)
    if kind in IMAGES:
        return Content(kind, items=(Item("image", kind),))  # plots leave as PNG: what is in others does not matter
    if kind == "json":
        return read_json(data, name, limits)
    if kind == "text":
        return _text(data, name, limits)
    what, step = REFUSED.get(kind, (f"of a kind that never leaves ({kind})", EXPORT))
    refused = note("kind", Effect.BLOCK, f"It is {what}.", outside=f"It is {what}.", next_step=step)
    if kind in EVERYDAY:
        return read_everyday(kind, data, name, refused, limits)
    if kind == "latex":
        return _prose(kind, data, name, limits, refused)
    if kind in _PACKED:
        return _with_members(kind, snapshot, refused, limits)
    if kind == "zlib":
        return _joblib(snapshot, refused, limits)
    unlisted = note(
        "not-listed",
        Effect.BLOCK,
        "What it holds was not listed.",
        outside="What it holds was not listed.",
        next_step=step,
    )
    return Content(kind, (), (Item("file", kind, (len(data),)),), remarks=(refused, unlisted))


def _with_members(kind: str, snapshot: Snapshot, refused: Finding, limits: Limits) -> Content:
    """A format that is a zip inside: members with their sizes, arrays with their shapes, a pickle's inventory."""
    arrays: list[ArrayInfo] = []
    items: list[Item] = []
    scalars: dict[str, float] = {}
    remarks = [refused]
    try:
        for member in read_members(io.BytesIO(snapshot.data), snapshot.name, limits):
            items.append(Item(member.name, "bytes", (len(member.data),)))
            if not member.name.endswith((".npy", ".pkl")):
                continue
            inner = Snapshot.of_bytes(f"{snapshot.name}!{member.name}", member.data)
            content = read_npy(member.data, inner.name) if member.name.endswith(".npy") else _pickle(inner, limits)
            arrays += content.arrays
            items += content.items
            scalars |= content.scalars
            remarks += content.remarks
    except UnreadableError as error:
        remarks.append(
            note(
                "unreadable", Effect.BLOCK, f"Its list is incomplete: {error.what}.", outside="Its list is incomplete."
            )
        )
    return Content(kind, tuple(arrays), tuple(items), scalars, remarks=tuple(remarks))


def _joblib(snapshot: Snapshot, refused: Finding, limits: Limits) -> Content:
    """A compressed stream: the inventory of the pickle inside, if it is one."""
    try:
        inner = inflate(snapshot.data, snapshot.name, limits)
    except UnreadableError as error:
        more = note("unreadable", Effect.BLOCK, f"It was not opened: {error.what}.", outside="It was not opened.")
        return Content("zlib", remarks=(refused, more))
    if sniff(inner) != "pickle":
        return Content("zlib", items=(Item("stream", "bytes", (len(inner),)),), remarks=(refused,))
    content = _pickle(Snapshot.of_bytes(snapshot.name, inner), limits)
    return replace(content, kind="zlib", remarks=(refused, *content.remarks))


def _pickle(snapshot: Snapshot, limits: Limits) -> Content:
    never = note(
        "pickle",
        Effect.BLOCK,
        "It is a pickle: it holds whatever the object held and runs code when opened.",
        outside="It is a pickle: it holds whatever the object held and runs code when opened.",
        next_step=EXPORT,
    )
    try:
        content = read_pickle(snapshot.data, snapshot.name, limits)
    except UnreadableError as error:
        more = note(
            "unreadable",
            Effect.BLOCK,
            f"Its inventory is incomplete: {error.what}.",
            outside="Its inventory is incomplete.",
        )
        return Content("pickle", remarks=(never, more))
    return Content(
        content.kind,
        content.arrays,
        content.items,
        content.scalars,
        content.strings,
        (never, *content.remarks),
        content.data,
    )


def _text(data: bytes, name: str, limits: Limits) -> Content:
    """A table where lines split into cells, prose otherwise; prose in a table's cells is looked at too."""
    content = read_table(data, name, limits)
    table: TableData = content.data
    suffix = PurePosixPath(name).suffix.lower()
    numeric = sum(len(c.numbers) for c in table.columns)
    total = max(1, table.n_rows * max(1, len(table.columns)))
    prose = suffix in (".txt", ".log", ".md", "") and numeric * 2 < total
    if table.delimiter == " " and numeric == 0:
        prose = True
    if prose or not table.columns:
        return _prose("text", data, name, limits)
    extra = text_remarks("\n".join(text for _, text in content.strings[:5_000]))
    return Content(
        content.kind,
        content.arrays,
        content.items,
        content.scalars,
        content.strings,
        (*content.remarks, *extra),
        content.data,
    )


def _prose(kind: str, data: bytes, name: str, limits: Limits, *refused: Finding) -> Content:
    """A text that is no table, with the tables that stand in it."""
    log = read_log(data, name, limits)
    text = data[: limits.text_bytes].decode("utf-8", "replace")
    tables = (replace(collect(iter(r), " ", name, limits), place=at) for at, r in tables_in_text(text))
    return replace(log, kind=kind, tables=tuple(tables), remarks=(*refused, *log.remarks))


def unpack(data: bytes, name: str, limits: Limits = DEFAULT) -> tuple[str, bytes] | None:
    """Kind and bytes of an archive that can be listed (zip, tar, tar inside gzip); None for anything else."""
    kind = kind_of(data)
    if kind in ("zip", "tar"):
        return kind, data
    if kind == "gzip":
        inner = gunzip(data, name, limits)
        return (sniff(inner), inner)
    return None


__all__ = ["EXPORT", "IMAGES", "REFUSED", "kind_of", "read_content", "unpack"]
