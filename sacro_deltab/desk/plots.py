"""Small SVG pictures, drawn as text: no script, no font file, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 640
LEFT = 190
ROW = 26


@dataclass(frozen=True)
class Interval:
    """One line of an interval plot: a label, a point, and its half-width (0 for none)."""

    label: str
    value: float
    half: float = 0.0


def intervals(items: Sequence[Interval], *, title: str, unit: str) -> str:
    """Points with intervals around a zero line."""
    if not items:
        return ""
    low = min(0.0, *(i.value - i.half for i in items))
    high = max(0.0, *(i.value + i.half for i in items))
    scale = _scale(low, high)
    body = [_zero(scale(0.0), len(items))]
    for row, item in enumerate(items):
        y = 34 + row * ROW
        body.append(_label(item.label, y))
        x = scale(item.value)
        if item.half > 0:
            body.append(
                f'<line x1="{scale(item.value - item.half):.1f}" x2="{scale(item.value + item.half):.1f}" '
                f'y1="{y}" y2="{y}" stroke="#1f4e79" stroke-width="2"/>'
            )
        body.append(f'<circle cx="{x:.1f}" cy="{y}" r="4.5" fill="#1f4e79"/>')
        body.append(f'<text x="{WIDTH - 4}" y="{y + 4}" text-anchor="end" class="v">{item.value:+.1f} {unit}</text>')
    return _svg(title, len(items), body)


def bars(items: Sequence[tuple[str, float]], *, title: str, limit: tuple[str, float] | None = None) -> str:
    """Horizontal bars from zero, with an optional limit line."""
    if not items:
        return ""
    top = max([v for _, v in items] + ([limit[1]] if limit else []) + [1e-12])
    scale = _scale(0.0, top)
    body: list[str] = []
    for row, (label, value) in enumerate(items):
        y = 34 + row * ROW
        body.append(_label(label, y))
        body.append(
            f'<rect x="{LEFT}" y="{y - 8}" width="{max(1.0, scale(value) - LEFT):.1f}" height="16" fill="#1f4e79"/>'
        )
        body.append(f'<text x="{WIDTH - 4}" y="{y + 4}" text-anchor="end" class="v">{value:.3g}</text>')
    if limit:
        x, foot = scale(limit[1]), 24 + len(items) * ROW
        body.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{foot}" stroke="#a3271b" stroke-width="2" '
            f'stroke-dasharray="4 3"/><text x="{x - 4:.1f}" y="{foot + 12}" text-anchor="end" class="v">'
            f"{escape(limit[0])}</text>"
        )
    return _svg(title, len(items) + (1 if limit else 0), body)


def _scale(low: float, high: float) -> _Scale:
    span = (high - low) or 1.0
    return _Scale(low, span)


@dataclass(frozen=True)
class _Scale:
    low: float
    span: float

    def __call__(self, value: float) -> float:
        return LEFT + (value - self.low) / self.span * (WIDTH - LEFT - 110)


def _zero(x: float, rows: int) -> str:
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{24 + rows * ROW}" stroke="#767676"/>'


def _label(text: str, y: int) -> str:
    short = text if len(text) <= 28 else text[:27] + "…"
    return f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end" class="l">{escape(short)}</text>'


def _svg(title: str, rows: int, body: list[str]) -> str:
    height = 34 + rows * ROW
    return (
        f'<svg role="img" aria-label="{escape(title, quote=True)}" viewBox="0 0 {WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
        f'<text x="0" y="12" class="t">{escape(title)}</text>{"".join(body)}</svg>'
    )
