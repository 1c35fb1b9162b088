"""Run the code of a page as a reader would, in an empty folder, and keep what each block showed.

A page is run where its first line is `<!-- executed -->`. Blocks of Python share one namespace and show what they print
and their last expression, as a notebook does; lines `$ sacro-deltab …` are typed into the command line; a block with a
title, as in yaml title="tre.yaml", is written to that file. A block that raises, or a command that ends with 2 (without
one, where the line says `# refused`), stops the run: a page that does not work is not built.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import csv
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

MARK = "<!-- executed -->"
REFUSED = "# refused"
ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r'^```(python|console|yaml|json)(?: title="([\w./-]+)")?\n(.*?)^```$', re.M | re.S)


@dataclass
class Shown:
    """One block with what it printed and the value of its last expression."""

    language: str
    code: str
    start: int
    end: int
    text: str = ""
    value: Any = None
    codes: list[int] = field(default_factory=list)


class Refusals(io.StringIO):
    """Standard error: progress is dropped, what a refused command says is kept."""

    def __init__(self, told: io.StringIO) -> None:
        super().__init__()
        self.told = told

    def write(self, text: str) -> int:
        return self.told.write(text) if "Next step:" in text or text.startswith("sacro-deltab: ") else len(text)


@contextlib.contextmanager
def _in(place: Path) -> Iterator[io.StringIO]:
    """Standard output caught, `place` the working directory, no colours and no wide terminals."""
    before, told = Path.cwd(), io.StringIO()
    os.chdir(place)
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(Refusals(told)):
            yield told
    finally:
        os.chdir(before)


def run_page(text: str, place: Path, names: dict[str, Any] | None = None) -> list[Shown]:
    """Run every block of a page in order."""
    names, blocks = {} if names is None else names, []
    for found in FENCE.finditer(text):
        language, title, code = found.groups()
        shown = Shown(language, code, *found.span())
        if title:
            (place / title).write_text(code, encoding="utf-8")
        elif language == "python":
            with _in(place) as told:
                shown.value = _run_python(code, names)
            shown.text = told.getvalue()
        elif language == "console":
            with _in(place) as told:
                shown.codes = [_typed(line) for line in _joined(code) if line.startswith("$ sacro-deltab ")]
            shown.text = told.getvalue()
        blocks.append(shown)
    return blocks


def _run_python(code: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(code, "<page>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<page>", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "<page>", "eval"), names)


def _joined(code: str) -> list[str]:
    return code.replace("\\\n", " ").splitlines()


def _typed(line: str) -> int:
    from sacro_deltab.cli import main  # late: pages without commands need none

    words = shlex.split(line.removeprefix("$ sacro-deltab "), comments=True)
    try:
        main(words)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
        if (code == 2) != line.endswith(REFUSED):
            raise RuntimeError(f"the page's command cannot be carried out: {line}") from stopped
        return code
    return 0


def as_html(shown: Shown, place: Path) -> str:
    """What a block showed, to stand under it."""
    parts = []
    text = shown.text.rstrip()
    for folder in (place, place.resolve(), ROOT):
        text = text.replace(f"{folder}/", "")
    if text.count("\n") > 30:
        first = escape("\n".join(text.split("\n")[:12]))
        parts.append(f"<pre>{first}</pre><details><summary>all of it</summary><pre>{escape(text)}</pre></details>")
    elif text:
        parts.append(f"<pre>{escape(text)}</pre>")
    if shown.codes and shown.codes[-1]:
        parts.append(f"<p>exit code {shown.codes[-1]}</p>")
    if shown.value is not None:
        parts.append(value_html(shown.value, place))
    return f'<div class="shown" markdown="0">{"".join(parts)}</div>' if parts else ""


def value_html(value: Any, place: Path) -> str:
    """A value as a notebook shows it; an output as the viewer does; a path to a picture as the picture."""
    from sacro_deltab.session.entries import Entry  # late: most pages show none

    if isinstance(value, Entry):
        return as_viewer_shows(value)
    if isinstance(value, list) and value and isinstance(value[0], Entry):
        return "".join(as_viewer_shows(entry) for entry in value)
    if isinstance(value, Path) and value.suffix == ".png":
        return picture(place / value)
    if hasattr(value, "_repr_html_"):
        return f'<div class="value">{value._repr_html_()}</div>'
    return f"<pre>{escape(str(value) if isinstance(value, Path) else repr(value))}</pre>"


def picture(path: Path) -> str:
    """A PNG inside the page itself."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{escape(path.stem)}" src="data:image/png;base64,{data}">'


def as_viewer_shows(entry: Any) -> str:
    """An output with what SACRO-Viewer shows of its record: name, type, status and reasons, and its table."""
    from sacro_deltab.session.entries import badge

    if entry.type == "plot":
        return f'<div class="viewer">{entry._repr_html_()}</div>'
    table = entry.table
    rows = [] if table is None else list(csv.reader(io.StringIO(table.head(12).to_csv())))
    body = "".join(f"<tr>{''.join(_cell(text) for text in row)}</tr>" for row in rows[1:])
    head = "".join(f"<th>{escape(text)}</th>" for text in rows[0]) if rows else ""
    kept = "" if table is None or len(table) <= 12 else f"<p>… and {len(table) - 12} rows more</p>"
    return (
        f'<div class="viewer"><p class="name">{escape(entry.name)} <span>deltab_{escape(entry.type)} custom</span></p>'
        f"<p>ACRO status: {badge(entry.status)} {escape(entry.summary.partition('; ')[2])}</p>"
        + (f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{kept}" if rows else "")
        + "</div>"
    )


def _cell(text: str) -> str:
    return f'<td class="marked">{escape(text)}</td>' if text == "*" else f"<td>{escape(text)}</td>"


def with_results(text: str, blocks: list[Shown], place: Path) -> str:
    """The page with what each block showed under it."""
    parts, at = [], 0
    for shown in blocks:
        parts += [text[at : shown.end], "\n\n", as_html(shown, place), "\n"]
        at = shown.end
    return "".join([*parts, text[at:]]).replace(MARK, "", 1).lstrip()


def as_notebook(text: str) -> dict[str, Any]:
    """The page as a notebook: its Python blocks are cells of code, commands are shell lines, the rest is text."""
    cells, at = [], 0
    for found in FENCE.finditer(text):
        language, title, code = found.groups()
        cells.append(_cell_of("markdown", text[at : found.start()].replace(MARK, "").strip()))
        if title:
            code = f"%%writefile {title}\n{code}"
        elif language == "console":
            code = "\n".join("!" + line.removeprefix("$ ") for line in _joined(code) if line.startswith("$ "))
        cells.append(_cell_of("code", code.rstrip()))
        at = found.end()
    cells.append(_cell_of("markdown", text[at:].strip()))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    told = [cell for cell in cells if cell["source"]]
    return {"cells": told, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}


def _cell_of(kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source}
    return {**cell, "execution_count": None, "outputs": []} if kind == "code" else cell
