"""Forest plot: each node with its 95 % interval, the pooled line below it. Draws released numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .meta import Z95, Estimate, Pooled

MAX_PANELS = 16
_NODE, _POOLED = "#30506e", "#9c2f2f"


@dataclass(frozen=True)
class Panel:
    """One quantity: a title, its unit, nodes, and the pooled estimate."""

    title: str
    unit: str
    estimates: tuple[Estimate, ...]
    pooled: Pooled


def draw(panels: Sequence[Panel], paths: Sequence[Path]) -> bool:
    """Write the plot to every path (PNG or SVG by suffix); False where there is nothing to draw.

    At most 16 quantities are drawn, one below the other on one axis in years.
    """
    shown = [p for p in panels if p.estimates][:MAX_PANELS]
    if not shown:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # late: matplotlib is heavy
    from matplotlib.figure import Figure

    rows = sum(len(p.estimates) + 2 for p in shown)
    figure = Figure(figsize=(7.0, 0.24 * rows + 0.9))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.36, 0.5 / (0.24 * rows + 0.9), 0.61, 1 - 0.7 / (0.24 * rows + 0.9)))
    labels: list[tuple[float, str]] = []
    place = 0.0
    for panel in shown:
        labels.append((place, f"{panel.title} (I² {panel.pooled.i2:.0f} %)"))
        for estimate in panel.estimates:
            place -= 1
            labels.append((place, estimate.node))
            axes.errorbar(estimate.value, place, xerr=Z95 * estimate.se, fmt="s", color=_NODE, capsize=2, markersize=4)
        place -= 1
        labels.append((place, "pooled"))
        pooled = panel.pooled
        axes.errorbar(pooled.value, place, xerr=Z95 * pooled.se, fmt="D", color=_POOLED, capsize=2, markersize=5)
        place -= 1
    axes.axvline(0.0, color="#999999", linewidth=0.6)
    axes.set_yticks([p for p, _ in labels], [text for _, text in labels])
    axes.set_ylim(place + 0.4, 0.6)
    axes.set_xlabel("years, 95 % intervals", fontsize=8)
    axes.tick_params(labelsize=7, length=2)
    for path in paths:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else {})
    return True
