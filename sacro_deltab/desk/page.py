"""The evidence page itself: the view, put through one template."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from ..rules import load_ruleset
from .view import Names, budget_plot, delta_plots, load_evidence, noise_plot, output_views

MAX_IMAGE = 8 * 1024 * 1024
MAX_ROWS = 400  # longer tables are cut on the page, and the page says so


def render_page(report: Mapping[str, Any], path: str | Path) -> str:
    """One self-contained HTML page of a check's report. It carries true counts and stays inside the TRE.

    Parameters
    ----------
    report
        The report of `check`, as JSON (`schemas/report.schema.json`).
    path
        The folder or file that was checked; its evidence and CSV files are read again from there.

    Returns
    -------
    str
        HTML 5; no script, no style sheet and no picture from anywhere else.
    """
    folder = Path(path)
    evidence = load_evidence(folder) if folder.is_dir() else {}
    rules = load_ruleset()
    names = Names(
        facts={name: spec.reads for name, spec in rules.facts.items()},
        rules={rule.id: rule.title for rule in rules.rules},
    )
    views = output_views(report, evidence, folder, names)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        report=report,
        evidence=evidence,
        folder=folder.name,
        asked=[v for v in views if not v.kept_inside],
        inside=[v for v in views if v.kept_inside],
        counts={
            word: sum(v.verdict == word for v in views if not v.kept_inside) for word in ("pass", "review", "fail")
        },
        delta_plots=[Markup(p) for p in delta_plots(evidence)],
        noise_plot=Markup(noise_plot(evidence)),
        budget_plot=Markup(budget_plot(report, float(rules.parameters["epsilon_total"]))),
        image=lambda name: _image(folder / name),
        max_rows=MAX_ROWS,
    )


def _image(path: Path) -> str | None:
    """A PNG as a data URI; None where it is missing, a link, too large or not a PNG."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_IMAGE:
        return None
    body = path.read_bytes()
    if not body.startswith(b"\x89PNG\r\n\x1a\n"):
        return None
    return "data:image/png;base64," + base64.b64encode(body).decode("ascii")
