"""Everyday files: read in a child process with limits of memory and time, told as tables, texts and hidden parts."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

from ..base.errors import UnreadableError
from ..base.findings import FORM, Effect, Finding, note
from ..base.strict import Bounds, parse
from .content import Content, Item
from .limits import Limits
from .tabular import collect

KINDS = ("xlsx", "docx", "html", "markdown", "notebook", "parquet", "stata")
_ANSWER = Bounds(size=64 * 1024**2, depth=8)
_SAID = {
    "check/comment": "It holds comments.",
    "check/formula": "It holds formulas.",
    "check/hidden": "It has hidden parts.",
    "check/attached": "It carries more than what it shows.",
    "check/tracked": "It keeps tracked changes.",
}
_ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}


def read_everyday(kind: str, data: bytes, name: str, refused: Finding, limits: Limits) -> Content:
    """What an everyday file holds; it never leaves as it is, whatever that is.

    Raises
    ------
    UnreadableError
        Damaged, or it takes more memory or time than one file may; or the extra `[office]` is not installed.
    """
    answer = _child(kind, data, name, limits)
    tables = tuple(
        replace(table, place=t["place"], n_rows=max(table.n_rows, t["n_rows"] - (table.header is not None)))
        for t in answer["tables"]
        if (table := collect(iter(t["rows"]), "", name, limits)).columns
    )
    remarks = [refused]
    for part in answer["parts"]:
        said = _SAID[FORM + part["code"]]
        remarks.append(note(part["code"], Effect.BLOCK, part["text"], outside=said, next_step="Take it out."))
    if answer["cut"]:
        remarks.append(note("not-listed", Effect.BLOCK, "It holds more cells than were read; the rest was not listed."))
    items = [Item(text, "read") for text in answer["items"]]
    texts = tuple((place, text) for place, text in answer["texts"])
    return Content(kind, items=tuple(items), strings=texts, remarks=tuple(remarks), tables=tables)


def _child(kind: str, data: bytes, name: str, limits: Limits) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "sacro_deltab.inert.office", kind]
    paths = os.pathsep.join(path for path in sys.path if path)  # where this package was found, never where files lie
    try:
        done = subprocess.run(
            command,
            input=data,
            capture_output=True,
            timeout=limits.seconds * 2,
            check=False,
            env={**os.environ, **_ALONE, "PYTHONPATH": paths},
        )
    except subprocess.TimeoutExpired:
        raise UnreadableError("reading it took too long", path=name, next_step="Send a smaller file.") from None
    if done.returncode == 0:
        answer: dict[str, Any] = parse(done.stdout, path=name, bounds=_ANSWER)
        return answer
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    if last.startswith("ModuleNotFoundError"):
        step = "Install it: pip install 'sacro-deltab[office]'."
        raise UnreadableError("the reader of this format is not installed", path=name, next_step=step)
    stopped = done.returncode < 0 or last.startswith("MemoryError")
    what = "it takes more memory or time than one file may" if stopped else f"it is damaged ({last.split(':')[0][:60]})"
    raise UnreadableError(what, path=name, next_step="A person opens it inside the TRE.")
