"""The evidence page itself: the view, put through one template."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from ..base.verdicts import VERDICTS
from ..judging.report import Report
from ..rules import load_ruleset
from .view import (
    Names,
    OutputView,
    budget_plot,
    delta_plots,
    load_evidence,
    noise_plot,
    output_views,
    worst_first,
)

MAX_IMAGE = 8 * 1024 * 1024
MAX_ROWS = 400  # longer tables are cut on the page, and the page says so


def render_page(report: Report, paths: Sequence[str | Path]) -> str:
    """One self-contained HTML page of a check's report. It carries true counts and stays inside the TRE.

    Parameters
    ----------
    report
        The report of `check`.
    paths
        What was checked; the evidence and files of each folder are read again from there, and stand under its name.

    Returns
    -------
    str
        HTML 5; no script, no style sheet and no picture from anywhere else.
    """
    rules = load_ruleset()
    names = Names(
        facts={name: spec.reads for name, spec in rules.facts.items()},
        rules={rule.id: rule.title for rule in rules.rules},
    )
    folders = [Path(path) for path in paths if Path(path).is_dir()]
    evidence = {str(folder): load_evidence(folder) for folder in folders}
    views: list[OutputView] = []
    for place in [*folders, None]:  # None: files named by themselves
        request = None if place is None else str(place)
        mine = [output for output in report.outputs if output.request == request]
        views += output_views(mine, evidence.get(request or "", {}), place, names)
    views = list(worst_first(views))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    tools = {name: version for e in evidence.values() for name, version in e.get("session", {}).get("tool", {}).items()}
    return environment.get_template("page.html").render(
        report=report,
        tools=tools,
        folder=", ".join(Path(path).name for path in paths[:3]) + (" …" if len(paths) > 3 else ""),
        several=len(paths) > 1,
        asked=[v for v in views if not v.kept_inside],
        inside=[v for v in views if v.kept_inside],
        counts={word: sum(v.verdict == word for v in views if not v.kept_inside) for word in VERDICTS},
        delta_plots=[Markup(p) for e in evidence.values() for p in delta_plots(e)],
        noise_plot=Markup("".join(noise_plot(e) for e in evidence.values())),
        budget_plot=Markup(budget_plot(report, float(rules.parameters["epsilon_total"]))),
        image=_image,
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
