"""The plan as a picture: share of the correlation without noise against N."""

from __future__ import annotations

from pathlib import Path

from .planning import Plan


def draw(plan: Plan, path: Path) -> None:
    """Write a PNG. One line a path, told apart by marker and dash as well as by colour."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # late: matplotlib is heavy
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    styles = {"gradient": ("o", "-", "#0b6e4f"), "moments": ("s", "--", "#1f4e9c"), "node": ("^", ":", "#b3541e")}
    for name, points in plan.curve.items():
        marker, line, colour = styles[name]
        own = next(p for p in plan.paths if p.path == name)
        if points:
            n, share = zip(*points, strict=True)
            axes.plot(n, share, marker=marker, linestyle=line, color=colour, label=name)
        axes.plot([plan.request["n"]], [own.own_share], marker=marker, color=colour, markersize=11, linestyle="none",
                  label=None if points else f"{name} (at your N)")  # fmt: skip
    axes.axvline(plan.request["n"], color="0.4", linewidth=1)
    axes.annotate("your N", (plan.request["n"], 0.02), xytext=(4, 0), textcoords="offset points", fontsize=9)
    for level in (0.5, 0.9):
        axes.axhline(level, color="0.8", linewidth=1, zorder=0)
    axes.set(
        xscale="log", ylim=(0, 1.05), xlabel="Number of people N",
        ylabel="Share of the correlation without noise",
        title=f"ε = {plan.request['epsilon']:g}, J = {plan.request['n_components']}, F = {plan.request['n_features']}",
    )  # fmt: skip
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120, format="png", metadata={"Software": None})
