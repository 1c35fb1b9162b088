"""What the page shows, as frozen values: built from the report of `check` and the evidence under `inside/`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..base.errors import UnreadableError
from ..base.findings import Finding
from ..base.strict import DATA, read_object
from ..base.verdicts import badness, worst
from ..judging.evidence import EVIDENCE_PATH
from ..judging.report import FileReport, Report
from ..kinds.registry import KINDS
from ..kinds.whole import DELTA_SD
from ..rules import load_base
from . import plots
from .columns import ColumnSummary, Table, read_table, summarise

JSON = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """One of the three things checkers reject for."""

    heading: str
    good: bool
    text: str


@dataclass(frozen=True)
class TrueCell:
    """One cell as it really is, and as it would leave. Inside only."""

    key: str
    n: str
    share: str
    state: str


@dataclass(frozen=True)
class OutputView:
    """One output with all its files; `request` is the folder they lie in."""

    anchor: str
    request: str
    title: str
    type: str
    verdict: str
    kept_inside: bool
    files: tuple[FileReport, ...]
    answers: tuple[Answer, ...]
    findings: tuple[Finding, ...]
    questions: tuple[str, ...]
    cells: tuple[TrueCell, ...]
    facts: tuple[tuple[str, str, str, str], ...]  # reading, value, said by, name
    met: tuple[tuple[str, str], ...]
    controls: tuple[str, ...]
    merges: tuple[str, ...]
    privacy: JSON | None
    tables: tuple[tuple[str, Table, tuple[ColumnSummary, ...]], ...]
    images: tuple[Path, ...]


@dataclass(frozen=True)
class Names:
    """Reading forms of facts and rules."""

    facts: Mapping[str, str]
    rules: Mapping[str, str]


def load_evidence(path: Path) -> JSON:
    """The evidence as recorded; empty where there is none or it cannot be read (`check` says so itself)."""
    try:
        return read_object(path / EVIDENCE_PATH, bounds=DATA)
    except UnreadableError:
        return {}


def output_views(
    entries: Iterable[FileReport], evidence: JSON, folder: Path | None, names: Names
) -> tuple[OutputView, ...]:
    """Outputs asked to leave first, worst first; then what stays inside."""
    recorded = {str(o.get("name")): o for o in evidence.get("outputs", ()) if isinstance(o, dict)}
    of_file = {str(file): name for name, o in recorded.items() for file in o.get("files", ())}
    grouped: dict[str, list[FileReport]] = {}
    for entry in entries:
        grouped.setdefault(entry.output or of_file.get(Path(entry.file).name, entry.file), []).append(entry)
    views = [_view(key, mine, recorded.get(key, {}), folder, names) for key, mine in grouped.items()]
    return worst_first(views)


def worst_first(views: Iterable[OutputView]) -> tuple[OutputView, ...]:
    """What is asked to leave before what stays inside, the worst verdict first."""
    return tuple(sorted(views, key=lambda v: (v.kept_inside, -badness(v.verdict))))


def _view(key: str, entries: Sequence[FileReport], evidence: JSON, folder: Path | None, names: Names) -> OutputView:
    first = entries[0]
    findings = _distinct(f for e in entries for f in sorted(e.findings, key=lambda f: f.effect.rank))
    tables, images = _files(entries, folder)
    return OutputView(
        anchor="output-" + "".join(c if c.isalnum() else "-" for c in f"{first.request or ''}-{key}"),
        request=first.request or "",
        title=first.title or key,
        type=first.type or "not a known output type",
        verdict=worst(e.verdict for e in entries),
        kept_inside=all(e.kept_inside for e in entries),
        files=tuple(entries),
        answers=_answers(first, findings, evidence),
        findings=findings,
        questions=tuple(dict.fromkeys(q for f in findings for q in f.asks)),
        cells=_cells(evidence),
        facts=_facts(evidence, first, names),
        met=tuple((r, names.rules.get(r, "")) for r in first.met),
        controls=_controls(evidence),
        merges=tuple(_merge_text(m) for m in evidence.get("merges", ())),
        privacy=evidence.get("privacy"),
        tables=tables,
        images=images,
    )


def _distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    seen: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.rules, finding.target, finding.inside), finding)
    return tuple(seen.values())


def _fact(evidence: JSON, name: str) -> Any:
    return evidence.get("facts", {}).get("facts", {}).get(name, {}).get("value")


def _answers(entry: FileReport, findings: Sequence[Finding], evidence: JSON) -> tuple[Answer, ...]:
    """Low counts, masking that can be undone, too little explanation, in that order."""
    if not evidence:
        text = "Nothing was recorded under inside/ about this file: the counts behind it are not known."
        unknown = Answer("Low counts", False, text)
        return (unknown, Answer("Masking", False, "Without evidence it cannot be attacked."), _explanation(entry))
    n, small = _fact(evidence, "n"), [f for f in findings if _about_counts() & set(f.rules)]
    hidden = _fact(evidence, "table.suppressed_cells")
    count = f"{n} people stand behind it." if n is not None else "N is not used under this neighbouring relation."
    cells = [int(c.n) for c in _cells(evidence) if c.n.isdigit()]
    if cells:
        count = f"The smallest of {len(cells)} cells has {min(cells)} people. {count}"
    if hidden:
        count += f" {hidden} of {_fact(evidence, 'table.interior_cells')} cells are marked *."
    low = Answer("Low counts", not any(f.verdict == "fail" for f in small), count)
    own, package = _fact(evidence, "table.recoverable_cells"), _fact(evidence, "package.recoverable_cells")
    worked_out = int(own or 0) + int(package or 0)
    if own is None and package is None:
        mask = Answer("Masking", True, "It has no masked cell.")
    else:
        mask = Answer(
            "Masking",
            worked_out == 0,
            f"Attacked with everything published in this session and before: {worked_out or 'no'} masked cell"
            f"{'s' if worked_out != 1 else ''} can be worked out.",
        )
    return (low, mask, _explanation(entry))


_COUNTS = (  # facts by which a rule is one about few people
    *("n", "n_node", "cell.n", "largest_share", "cell.largest_share", "quantile.percent"),
    *("table.suppressed_share", "table.recoverable_cells", "package.recoverable_cells"),
)


@cache
def _about_counts() -> frozenset[str]:
    return load_base().ids_about(*_COUNTS)


def _explanation(entry: FileReport) -> Answer:
    if entry.title and entry.type:
        return Answer("Explanation", True, f"{entry.title} ({entry.type}).")
    return Answer("Explanation", False, "The file does not say what it is.")


def _cells(evidence: JSON) -> tuple[TrueCell, ...]:
    out: list[TrueCell] = []
    for part in evidence.get("facts", {}).get("parts", ()):
        facts = part.get("facts", {})
        if part.get("kind") != "cell":
            continue
        share = facts.get("cell.largest_share", {}).get("value")
        state = "published"
        if part["key"] in evidence.get("suppressed", ()):
            state = "complementary *" if part["key"] in evidence.get("complementary", ()) else "primary *"
        out.append(
            TrueCell(
                str(part["key"]),
                str(facts.get("cell.n", {}).get("value", "")),
                "" if share is None else f"{share:.1%}",
                state,
            )
        )
    return tuple(sorted(out, key=lambda c: int(c.n) if c.n.isdigit() else -1))


def _facts(evidence: JSON, entry: FileReport, names: Names) -> tuple[tuple[str, str, str, str], ...]:
    said_by = dict(entry.facts)
    order = {"declared": 0, "attested": 1, "ledger": 2, "recorded": 3, "computed": 4}
    rows = [
        (names.facts.get(name, name), _plain(f.get("value")), str(said_by.get(name, f.get("by"))), name)
        for name, f in evidence.get("facts", {}).get("facts", {}).items()
    ]
    return tuple(sorted(rows, key=lambda r: (order.get(r[2], 9), r[3])))


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _controls(evidence: JSON) -> tuple[str, ...]:
    """Changes made, in order: which cells, which rounding (C3, item 3)."""
    steps: list[str] = []
    for action in evidence.get("decision", {}).get("actions", ()):
        args = {k: v for k, v in action.get("args", {}).items() if k not in ("fact", "part")}
        detail = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in args.items() if not isinstance(v, dict))
        where = f" {action['part']}" if action.get("part") else ""
        step = (
            f"{action['verb'].replace('_', ' ')}{where}{': ' + detail if detail else ''} ({', '.join(action['rules'])})"
        )
        if step not in steps:
            steps.append(step)
    return tuple(steps)


def _merge_text(merge: Any) -> str:
    return merge if isinstance(merge, str) else json.dumps(merge, ensure_ascii=False)


def _files(
    entries: Sequence[FileReport], folder: Path | None
) -> tuple[tuple[tuple[str, Table, tuple[ColumnSummary, ...]], ...], tuple[Path, ...]]:
    tables: list[tuple[str, Table, tuple[ColumnSummary, ...]]] = []
    images: list[Path] = []
    for entry in entries:
        name = entry.file
        path = Path(name) if folder is None else folder / name
        if path.is_symlink() or not path.is_file() or (folder is not None and path.parent != folder):
            continue
        if name.lower().endswith(".csv"):
            table = read_table(path)
            if table is not None:
                tables.append((name, table, summarise(table)))
        elif name.lower().endswith(".png"):
            images.append(path)
    return tuple(tables), tuple(images)


def delta_plots(evidence: JSON) -> tuple[str, ...]:
    """Mean delta by group with 95 % intervals from the whole-cohort SD; published cells only."""
    outputs = [o for o in evidence.get("outputs", ()) if not o.get("kept_inside")]
    sd = next((_first_value(o) for o in outputs if o.get("type") == DELTA_SD), None)
    drawn: list[str] = []
    for output in outputs:
        kind = KINDS.get(str(output.get("type")))
        if kind is None or not kind.of_groups or kind.statistic != "mean":
            continue
        items = [
            plots.Interval(str(p["key"]), float(p["value"]), _half(sd, p["facts"].get("cell.n", {}).get("value")))
            for p in output["facts"]["parts"]
            if p.get("value") is not None and p["key"] not in output.get("suppressed", ())
        ]
        title = f"{output['title']}, years" + (" (95 % interval from the whole-cohort SD)" if sd else "")
        drawn.append(plots.intervals(items, title=title, unit="y"))
    return tuple(d for d in drawn if d)


def _first_value(output: JSON) -> float | None:
    return next((float(p["value"]) for p in output["facts"]["parts"] if p.get("value") is not None), None)


def _half(sd: float | None, n: Any) -> float:
    return 1.96 * sd / math.sqrt(n) if sd and isinstance(n, int) and n > 0 else 0.0


def noise_plot(evidence: JSON) -> str:
    """Released spectrum against its noise where the release has one, else the noise of each block."""
    statement = next((o["privacy"] for o in evidence.get("outputs", ()) if o.get("privacy")), None)
    if not statement:
        return ""
    spectrum, edge = statement.get("spectrum"), statement.get("noise_edge")
    if spectrum and edge:
        items = [(f"component {i + 1}", float(v)) for i, v in enumerate(spectrum[:30])]
        return plots.bars(items, title="Noisy spectrum against the noise edge", limit=("noise edge", float(edge)))
    blocks = statement.get("blocks") or {}
    return plots.bars(
        [(str(k), float(v)) for k, v in blocks.items() if isinstance(v, int | float)],
        title="Standard deviation of the noise in each block of moments (clipped units)",
    )


def budget_plot(report: Report, limit: float) -> str:
    """ε spent on this partition against its limit."""
    privacy = report.privacy or {}
    recorded = privacy.get("recorded") or privacy
    spent = recorded.get("epsilon_sum")
    if not isinstance(spent, int | float):
        return ""
    items = [("plain sum (decides)", float(spent))]
    if isinstance(recorded.get("epsilon_exact"), int | float):
        items.append(("exact composition", float(recorded["epsilon_exact"])))
    return plots.bars(items, title="Privacy budget: ε spent on this partition", limit=(f"limit {limit:g}", limit))
