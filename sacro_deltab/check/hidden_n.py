"""Every N that a file gives away: in its name, its spectrum, its scalars, the fractions that its means are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction

from ..inert.content import Content, last_name
from ..outputs.parameters import COMPONENTS, N_SUBJECTS, X_MEAN, Y_MEAN
from .vectors import MIN_LENGTH


def denominators(value: float, *, largest: int = 5_000) -> int | None:
    """Smallest denominator up to `largest` that gives a full-precision value, as a mean of whole numbers has.

    Returns None for values with few digits (they fit many fractions) and for whole numbers.
    """
    if not math.isfinite(value) or value == 0 or abs(value) > 1e6:
        return None
    if len(repr(abs(value)).replace(".", "").lstrip("0").split("e")[0]) < 12:
        return None
    fraction = Fraction(value).limit_denominator(largest)
    q = fraction.denominator
    # by chance a value lies within 1/(q·largest) of such a fraction; a mean hits it to the last bits
    if q >= MIN_LENGTH and abs(float(fraction) - value) <= 8 * math.ulp(value):
        return q
    return None


_NAME_N = re.compile(
    r"(?:^|[^a-z0-9])n[ _=-]?(\d{2,7})(?!\d)|(\d{2,7})[ _-]?(?:subjects|people|participants|subj|scans)", re.I
)


def n_in_text(text: str) -> list[int]:
    """Numbers of people a file name or sentence states (`..._N217.pkl`, `217 subjects`)."""
    return [int(a or b) for a, b in _NAME_N.findall(text)]


def spectrum_ns(content: Content) -> Iterator[tuple[int, str]]:
    """N that a spectrum gives away: N = s²/ev + 1, and N = T/(T − F) on standardised features."""
    s = content.array_named("singular_values_", "singular_values")
    ev = content.array_named("explained_variance_", "explained_variance", "ev")
    ratio = content.array_named("explained_variance_ratio_", "explained_variance_ratio")
    if ev is None or ev.values is None or not len(ev.values) or ev.values[0] <= 0:
        return
    first = ev.values[0]
    if s is not None and s.values is not None and len(s.values) == len(ev.values):
        ns = [a * a / b + 1 for a, b in zip(s.values, ev.values, strict=True) if b > 0]
        if ns and max(ns) - min(ns) < 1e-3 * max(ns):
            yield round(ns[0]), "singular values and explained variances"
    if ratio is not None and ratio.values is not None and len(ratio.values) and ratio.values[0] > 0:
        total = first / ratio.values[0]
        f = _feature_count(content)
        if f is not None and total > f and abs(total / (total - f) - round(total / (total - f))) < 1e-3:
            yield round(total / (total - f)), "explained variances and their ratios"


def _feature_count(content: Content) -> int | None:
    components = content.array_named("components_", "components", COMPONENTS)
    if components is not None and len(components.shape) == 2:
        return components.shape[1]
    value = content.scalars.get("n_features_in_") or next(
        (v for k, v in content.scalars.items() if last_name(k) in ("n_features_in_", "n_features_")), None
    )
    return None if value is None else int(value)


def recovered_ns(content: Content, name: str) -> list[tuple[int, str]]:
    """Every N that this file gives away, with how."""
    found: list[tuple[int, str]] = []
    found += [(n, "the file name") for n in n_in_text(name)]
    found += list(spectrum_ns(content))
    for place, value in content.walk_scalars():
        last = last_name(place)
        if (
            last in ("n_samples_", "n_samples_seen_", N_SUBJECTS, "n_train", "n_samples", "nsubjects")
            and 5 <= value < 1e8
        ):
            found.append((int(value), last))
        q = denominators(value)
        if q is not None:
            found.append((q, f"the fraction that {last or 'a value'} is"))
    for info in content.arrays:
        if last_name(info.place) in (X_MEAN, Y_MEAN, "mean", "means") and info.values is not None:
            qs = [q for q in (denominators(v) for v in info.values[:500]) if q is not None]
            if qs:
                found.append((max(qs), f"the fractions in {last_name(info.place)}"))
    return found
