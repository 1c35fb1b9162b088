"""The budget over time: one step line per partition, its limit above it."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..base.strict import parse
from .book import Ledger
from .canonical import utc_moment
from .values import Entry

if TYPE_CHECKING:
    from datetime import datetime


_MOST = 12  # partitions drawn; more would be unreadable


def curves(entries: Iterable[Entry]) -> dict[str, list[tuple[datetime, float, float]]]:
    """Per partition: (when, plain sum of ε after the spend, limit in force then). Sums are over shared people."""
    found: dict[str, list[tuple[datetime, float, float]]] = {}
    for entry in entries:
        if entry.kind == "spend" and entry.partition:
            body = parse(entry.body)
            point = (utc_moment(entry.at), float(body["after"]["epsilon"]), float(body["limits"]["epsilon_total"]))
            found.setdefault(entry.partition, []).append(point)
    return found


def budget_png(ledger: Ledger, *, width: float = 8.0, height: float = 4.0) -> bytes:
    """PNG of the budget over time (inches at 150 dpi). Text says what is shown, so that it can stand alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # late: matplotlib is heavy
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    lines = sorted(curves(ledger.history()).items(), key=lambda item: -item[1][-1][1])
    last = max((points[-1][0] for _, points in lines), default=None)
    limits = sorted({points[-1][2] for _, points in lines})
    for name, points in lines[:_MOST]:
        start = points[0][0] - timedelta(seconds=1)
        when: Any = [start, *(p[0] for p in points), last]  # dates, which matplotlib takes and its types do not
        spent = [0.0, *(p[1] for p in points), points[-1][1]]
        axes.step(when, spent, where="post", marker="o", markersize=3, markevery=slice(1, -1), label=name)
    for limit in limits:
        axes.axhline(limit, linestyle="--", color="0.3", linewidth=1)
        axes.annotate(
            f"limit {limit:g}", (1, limit), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8
        )
    axes.set_ylim(0, 1.15 * max([*limits, *(p[-1][1] for _, p in lines), 1.0]))
    axes.set_xlabel("time (UTC)")
    axes.set_ylabel("ε spent (plain sum)")
    more = f", {_MOST} of {len(lines)} partitions" if len(lines) > _MOST else ""
    axes.set_title(f"Privacy budget of ledger {ledger.id[:8]}{more}", fontsize=10)
    if lines:
        figure.legend(fontsize=7, loc="outside right upper")
    else:
        axes.text(0.5, 0.5, "nothing spent yet", transform=axes.transAxes, ha="center")
    figure.autofmt_xdate()
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()
