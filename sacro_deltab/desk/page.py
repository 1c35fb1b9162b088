"""The page of a request: one template for the file that `check` writes and for the desk."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from ..base.verdicts import VERDICTS
from ..certificate.votes import Question
from ..judging.report import Report
from ..rules import RuleSet, load_ruleset
from ..rules.explain import finding_lines
from .items import Item, Voting, items_of
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
_HERE = Path(__file__).parent
_Said = TypeVar("_Said")


@dataclass(frozen=True)
class ItemView:
    """A decision with the outputs it is about, and the rule's own sentences."""

    item: Item
    views: tuple[OutputView, ...]
    sentences: str


@cache
def templates() -> Environment:
    """The templates; what they are given is escaped."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"served": True, "css": ""}  # of every page of the desk
    return made


def render_page(report: Report, paths: Sequence[str | Path], *, voting: Voting | None = None) -> str:
    """One HTML page of a check's report. It carries true counts and stays inside the TRE.

    Parameters
    ----------
    report
        The report of `check`.
    paths
        What was checked; the evidence and files of each folder are read again from there, and stand under its name.
    voting
        What a checker decides at the desk; None: one plain file that loads nothing, with room to write.

    Returns
    -------
    str
        HTML 5.
    """
    rules = load_ruleset()
    folders = [Path(path) for path in paths if Path(path).is_dir()]
    evidence = {str(folder): load_evidence(folder) for folder in folders}
    views = _views(report, folders, evidence, rules)
    asked = [view for view in views if not view.kept_inside]
    tools = {name: version for e in evidence.values() for name, version in e.get("session", {}).get("tool", {}).items()}
    return templates().get_template("page.html").render(
        report=report,
        tools=tools,
        folder=", ".join(Path(path).name for path in paths[:3]) + (" …" if len(paths) > 3 else ""),
        several=len(paths) > 1,
        asked=asked,
        inside=[v for v in views if v.kept_inside],
        items=_items(rules, asked, voting),
        common=_alike([view.facts for view in views]),
        always=_alike([view.met for view in views]),
        statements=_distinct(view.privacy for view in views if view.privacy),
        met=sorted({rule for view in views for rule in view.met}),
        voting=voting if voting is not None and voting.items else None,
        to_open=voting if voting is not None and voting.role and not voting.items else None,
        served=voting is not None,
        done=() if voting is None else voting.done,
        problem="" if voting is None else voting.problem,
        css=Markup((_HERE / "static" / "desk.css").read_text(encoding="utf-8")),
        counts={word: sum(v.verdict == word for v in views if not v.kept_inside) for word in VERDICTS},
        delta_plots=[Markup(p) for e in evidence.values() for p in delta_plots(e)],
        noise_plot=Markup("".join(noise_plot(e) for e in evidence.values())),
        budget_plot=Markup(budget_plot(report, float(rules.parameters["epsilon_total"]))),
        image=_image,
        max_rows=MAX_ROWS,
    )  # fmt: skip


def _views(
    report: Report, folders: Sequence[Path], evidence: Mapping[str, Mapping[str, Any]], rules: RuleSet
) -> list[OutputView]:
    names = Names(
        facts={name: spec.reads for name, spec in rules.facts.items()},
        rules={rule.id: rule.title for rule in rules.rules},
    )
    views: list[OutputView] = []
    for place in [*folders, None]:  # None: files named by themselves
        request = None if place is None else str(place)
        mine = [output for output in report.outputs if output.request == request]
        views += output_views(mine, evidence.get(request or "", {}), place, names)
    return list(worst_first(views))


def _alike(of_all: Sequence[tuple[_Said, ...]]) -> list[_Said]:
    """What every output has that has anything: said once."""
    some = [each for each in of_all if each]
    return [one for one in some[0] if all(one in each for each in some[1:])] if len(some) > 1 else []


def _distinct(statements: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    out: list[Mapping[str, Any]] = []
    for statement in statements:
        if statement not in out:
            out.append(statement)
    return out


def _items(rules: RuleSet, asked: Sequence[OutputView], voting: Voting | None) -> list[ItemView]:
    """The decisions: those of the record that is voted on, else those that the report asks for."""
    if voting is not None:
        items = voting.items
    else:
        files = [(file, view) for view in asked for file in view.files]
        items = items_of([Question(f.file, f.sha256 or "", view.verdict, view.questions) for f, view in files])
    return [_item_view(rules, item, asked) for item in items]


def _item_view(rules: RuleSet, item: Item, asked: Sequence[OutputView]) -> ItemView:
    mine = tuple(view for view in asked if any(file.file in item.files for file in view.files))
    said: dict[tuple[str, ...], str] = {}
    of_rules = {rule.id for rule in rules.rules}
    for finding in (finding for view in mine for finding in view.findings if item.question in finding.asks):
        if finding.rules not in said:
            known = set(finding.rules) <= of_rules and set(finding.clauses) <= set(rules.clauses)
            lines = finding_lines(rules, len(said) + 1, finding, "inside", {}) if known else [finding.inside]
            said[finding.rules] = "\n".join(lines)
    return ItemView(item, mine, "\n".join(said.values()))


def _image(path: Path) -> str | None:
    """A PNG as a data URI; None where it is missing, a link, too large or not a PNG."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_IMAGE:
        return None
    body = path.read_bytes()
    if not body.startswith(b"\x89PNG\r\n\x1a\n"):
        return None
    return "data:image/png;base64," + base64.b64encode(body).decode("ascii")
