"""Find per-subject data by what it is, whatever its name: vectors of N, ages, deltas, raw rows, N itself.

Every detector answers with `Remark`s. An array without a type of its own is blocked on suspicion; inside a
document that matches its schema the same sight asks for a person, because J or F can equal N by chance.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .content import ArrayInfo, Content, Remark, last_name
from .known import Known

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

MIN_LENGTH = 20  # shorter vectors are judged by the rules on contributors, not by their looks
SUBJECT_NAMES = {
    "ytrain": "ytrain",
    "y_train": "ytrain",
    "age": "ytrain",
    "ages": "ytrain",
    "true_ages": "ytrain",
    "y": "ytrain",
    "xtrain": "xtrain",
    "x_train": "xtrain",
    "xnorm": "x_norm",
    "x_norm": "x_norm",
    "xreduce": "x_reduced",
    "x_reduced": "x_reduced",
    "ynorm": "y_demean",
    "y_demean": "y_demean",
    "delta": "delta_vector",
    "deltas": "delta_vector",
    "brain_age_delta": "delta_vector",
    "ysq": "other_per_subject",
    "ysqnorm": "other_per_subject",
    "ysqorth": "other_per_subject",
    "ysq_demean": "other_per_subject",
    "ysq_orth": "other_per_subject",
    "y2": "other_per_subject",
    "y2sq": "other_per_subject",
    "conf": "other_per_subject",
    "brain_age": "other_per_subject",
    "predicted_age": "other_per_subject",
}
ID_NAMES = re.compile(
    r"(participant|subject|patient|person|record|scan)[ _-]?(id|no|number|code)?$|^(id|sub|subj|eid|alf\w*|nhs\w*)$",
    re.I,
)


@dataclass(frozen=True)
class Guess:
    """What an array most likely is: a type of the rule set and the reason."""

    type: str
    inside: str
    outside: str
    strong: bool


def _np(values: Sequence[float] | array[float]) -> Floats:
    import numpy as np

    return np.frombuffer(values, dtype="<f8") if isinstance(values, array) else np.asarray(values, dtype="<f8")


def is_lattice(values: Floats) -> float | None:
    """Step of the grid that all differences stand on (whole years, tenths, months in years), if there is one.

    A scaled or shifted vector of whole-year ages stays on a grid; a per-subject statistic does not.
    """
    import numpy as np

    distinct = np.unique(values)
    if len(distinct) < 2:
        return None
    gaps = np.diff(distinct)
    step = float(gaps.min())
    if step <= 0 or not math.isfinite(step):
        return None
    ratio = gaps / step
    span = (float(distinct[-1]) - float(distinct[0])) / step
    off = float(np.abs(ratio - np.round(ratio)).max())
    return step if off < 1e-4 and span < 1e5 else None


def looks_like_ages(values: Floats) -> str | None:
    """How a vector reads as human ages: in years, months or days; None when it does not."""
    low, high, mean, spread = float(values.min()), float(values.max()), float(values.mean()), float(values.std())
    for unit, scale in (("years", 1.0), ("months", 12.0), ("days", 365.25)):
        if low / scale >= 3.0 and high / scale <= 110 and 15 <= mean / scale <= 95 and spread / scale >= 1.0:
            return unit
    return None


def guess_vector(values: array[float] | Sequence[float]) -> Guess | None:
    """Recognise one column of 20 or more numbers as one value per subject, from its numbers alone."""
    v = _np(values)
    if len(v) < MIN_LENGTH or not bool((v == v).all()):
        return None
    spread = float(v.std())
    if spread == 0:
        return None
    mean = float(v.mean())
    step = is_lattice(v)
    unit = looks_like_ages(v)
    if unit is not None:
        strong = step is not None and abs(step * {"years": 1, "months": 1, "days": 1}[unit] - 1) < 1e-6
        return Guess("ytrain", f"{len(v)} values that read as ages in {unit}", "values that read as ages", strong)
    distinct = len(set(v.tolist()))
    span = 0 if step is None else round((float(v.max()) - float(v.min())) / step)
    # whole years span at most 110 steps, whole months 1,300; a feature rounded to a thousandth often spans more
    years = span <= 150 or abs(step or 0) in (1.0, 1 / 12) or abs(mean) < 1e-6 * spread
    if step is not None and 5 <= span <= 1_300 and years and distinct < len(v) and distinct >= 5:
        what = "demeaned" if abs(mean) < 1e-6 * spread + 1e-9 else "shifted or scaled"
        return Guess(
            "y_demean",
            f"{len(v)} values on a grid of {span + 1} steps, as {what} whole-year ages are",
            "values that read as shifted ages",
            strong=abs(step - 1) < 1e-6 or abs(mean) < 1e-6 * spread,
        )
    if abs(mean) < 1e-6 * spread and spread > 1e-9:
        return Guess("y_demean", f"{len(v)} values centred exactly on zero", "values centred on zero", strong=True)
    if (
        float(v.min()) < 0 < float(v.max())
        and 1.0 <= spread <= 30
        and float(abs(v).max()) <= 120
        and abs(mean) < spread
    ):
        return Guess(
            "delta_vector", f"{len(v)} signed values spread like brain-age deltas", "values spread like deltas", False
        )
    return None


def guess_matrix(values: array[float], shape: tuple[int, ...]) -> Guess:
    """Recognise a table of rows by columns as per-subject features: raw, normalised or reduced."""
    import numpy as np

    m = _np(values).reshape(shape)
    mean, spread = m.mean(axis=0), m.std(axis=0)
    centred = bool(np.all(np.abs(mean) < 1e-6 * (spread + 1e-12) + 1e-9))
    if centred and bool(np.all(np.abs(spread - 1) < 0.05)):
        return Guess("x_norm", "centred and scaled columns, one row a person", "normalised rows", True)
    if centred:
        return Guess("x_reduced", "centred columns, one row a person", "reduced rows", True)
    return Guess("xtrain", "one row a person and one column a feature", "rows of features", False)


# --- N ----------------------------------------------------------------------------------------------------------------


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
    components = content.array_named("components_", "components", "pca_components")
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
            last in ("n_samples_", "n_samples_seen_", "n_subjects", "n_train", "n_samples", "nsubjects")
            and 5 <= value < 1e8
        ):
            found.append((int(value), last))
        q = denominators(value)
        if q is not None:
            found.append((q, f"the fraction that {last or 'a value'} is"))
    for info in content.arrays:
        if last_name(info.place) in ("x_mean", "y_mean", "mean", "means") and info.values is not None:
            qs = [q for q in (denominators(v) for v in info.values[:500]) if q is not None]
            if qs:
                found.append((max(qs), f"the fractions in {last_name(info.place)}"))
    return found


# --- identities -------------------------------------------------------------------------------------------------------


def identities(content: Content) -> list[Remark]:
    """Relations between weights that hold exactly before separate noise and not after.

    b2 = −(1 − b1·γ); b1/γ·ev is one number (the variance of age). Weights worked out together from one noisy
    matrix obey them too, so the finding speaks only of noise added to each parameter.
    """
    b1, gamma = content.array_named("b1", "beta1"), content.array_named("gamma")
    ev = content.array_named("explained_variance_", "explained_variance", "ev")
    b2 = _scalar(content, "b2", "beta2")
    out: list[Remark] = []
    if b1 is None or gamma is None or b1.values is None or gamma.values is None or len(b1.values) != len(gamma.values):
        return out
    if b2 is not None:
        fitted = -(1 - sum(x * y for x, y in zip(b1.values, gamma.values, strict=True)))
        if abs(fitted - b2) <= 1e-6 * max(1.0, abs(b2)):
            out.append(_no_noise("b2 is exactly what b1 and γ give"))
    if ev is not None and ev.values is not None and len(ev.values) == len(b1.values) > 1:
        ages = [x * e / g for x, e, g in zip(b1.values, ev.values, gamma.values, strict=True) if g]
        if len(ages) > 1 and max(ages) - min(ages) <= 1e-6 * abs(max(ages, key=abs)):
            out.append(_no_noise("b1, γ and the explained variances give one age variance exactly"))
    return out


def _scalar(content: Content, *names: str) -> float | None:
    for place, value in content.walk_scalars():
        if last_name(place) in names:
            return value
    info = content.array_named(*names)
    return info.values[0] if info is not None and info.values is not None and len(info.values) == 1 else None


def _no_noise(what: str) -> Remark:
    return Remark(
        "no-noise",
        f"{what}: no noise was added to each of them.",
        "The parameters are related exactly: no noise was added to each of them.",
        next_step="Make the weights with `sacro-deltab run`, which draws the noise before anything is worked out.",
    )


def released_matches(values: array[float], known: Known) -> Iterator[str]:
    """Released values that a column averages or sums to, within their last digit."""
    v = _np(values)
    if len(v) < MIN_LENGTH:
        return
    mean, total, spread = float(v.mean()), float(v.sum()), float(v.std())
    for item in known.released:
        if abs(item.value) < 20 * item.resolution:
            continue  # too few digits: nearly anything matches
        for what, value in (("average", mean), ("sum", total), ("spread", spread)):
            if abs(value - item.value) <= item.resolution * 1.001:
                yield f"the {what} of the column is the released {item.name}"


def cohort_matches(values: array[float], known: Known) -> Iterator[str]:
    """Cohort columns that this vector is, up to order, shift and scale, whole or in part."""
    import numpy as np

    v = np.sort(_np(values))
    if len(v) < 5 or float(v.std()) == 0:
        return
    for name, column in known.columns.items():
        c = _np(column)
        if len(c) == len(v) and float(c.std()) > 0:
            r = float(np.corrcoef(v, c)[0, 1])
            flipped = float(np.corrcoef(v, np.sort(-c))[0, 1])
            if max(r, flipped) > 0.9999 and len(v) >= MIN_LENGTH:
                yield f"the values are the cohort's {name}, up to order, shift and scale"
                continue
        digits = v[np.abs(v * 1e3 - np.round(v * 1e3)) > 1e-9]
        if len(digits) >= 5:
            place = np.clip(np.searchsorted(c, digits), 1, len(c) - 1)
            gap = np.minimum(np.abs(c[place] - digits), np.abs(c[place - 1] - digits))
            if float((gap <= 1e-6 * np.maximum(np.abs(digits), 1e-9)).mean()) > 0.5:
                yield f"more than half of the values stand in the cohort's {name}"


# --- the whole file ---------------------------------------------------------------------------------------------------


def screen(content: Content, known: Known, name: str, *, typed: bool = False) -> list[Remark]:
    """All remarks about per-subject data in one file.

    Parameters
    ----------
    typed
        The file is a document that matches its schema: suspicion asks for review, proof still blocks.
    """
    remarks = list(content.remarks)
    local = Known(set(known.ns), known.columns, known.released, known.noise_word)
    for n, how in recovered_ns(content, name):
        local.add_ns([n])
        if not typed or how == "the file name":
            remarks.append(
                Remark(
                    "n-given-away",
                    f"N = {n} can be read from {how}.",
                    f"N can be read from {how}.",
                    "review" if how == "the file name" and typed else "block",
                    "Round N by the rules and leave it out of names and spectra.",
                )
            )
    suspicion = "review" if typed else "block"
    split = {info.place.removesuffix("[column 0]") for info in content.arrays if info.place.endswith("[column 0]")}
    for info in content.arrays:
        apart = info.place in split or (content.kind == "table" and len(info.shape) == 2)
        remarks += list(_array_remarks(info, local, suspicion, columns_apart=apart))
    for item in content.items:
        if item.shape and len(item.shape) == 1 and ID_NAMES.search(last_name(item.place)) and item.shape[0] >= 5:
            remarks.append(
                Remark(
                    "identifiers",
                    f"{item.place} reads as identifiers of people.",
                    "It has a column of identifiers.",
                    "block",
                )
            )
    remarks += identities(content) if known.noise_word != "one_release" else []
    return _once(remarks)


def _array_remarks(info: ArrayInfo, known: Known, suspicion: str, *, columns_apart: bool = False) -> Iterator[Remark]:
    # columns_apart: the columns of this matrix are arrays of their own and are looked at there
    place = info.place
    lengths = [side for side in info.shape if side in known.ns]
    if lengths:
        yield Remark(
            "dimension-n",
            f"{place} has a side of {lengths[0]}, the number of people: one value per subject.",
            "An array has as many entries as there are people.",
            suspicion,
            "Only statistics over people may leave.",
        )
    named = SUBJECT_NAMES.get(last_name(place))
    if named and info.size >= 5 and suspicion == "block":
        yield Remark(
            f"type-{named}",
            f"{place} is {named} by name, {_sides(info)} values.",
            f"It holds {named}.",
            "block",
            "Per-subject values never leave.",
        )
    if info.values is None:
        return
    flat = len(info.shape) == 1
    columns = (
        [] if columns_apart else [info.values] if flat else [info.column(i) for i in range(min(info.shape[-1], 200))]
    )
    rows = len(info.shape) == 2 and info.shape[0] >= MIN_LENGTH and info.shape[1] >= 2
    if rows and suspicion == "block" and len(info.values) == info.size:
        guess = guess_matrix(info.values, info.shape)
        yield Remark(
            f"type-{guess.type}",
            f"{place} ({_sides(info)}) reads as {guess.type}: {guess.inside}.",
            f"It reads as {guess.outside}.",
            "block",
            "Per-subject values never leave.",
        )
    for column in columns:
        if column is None or len(column) < 5:
            continue
        yield from _vector_remarks(place, column, known, suspicion)


def _vector_remarks(place: str, column: array[float], known: Known, suspicion: str) -> Iterator[Remark]:
    guess = guess_vector(column) if suspicion == "block" or len(column) in known.ns else None
    if guess is not None:
        effect = "block" if suspicion == "block" or guess.strong else suspicion
        yield Remark(
            f"type-{guess.type}",
            f"{place} reads as {guess.type}: {guess.inside}.",
            f"It holds {guess.outside}.",
            effect,
            "Per-subject values never leave.",
        )
    if known.released:
        for what in released_matches(column, known):
            yield Remark("adds-up", f"{place}: {what}.", "A column adds up to a released value.", suspicion)
    if known.columns:
        for what in cohort_matches(column, known):
            yield Remark("cohort-values", f"{place}: {what}.", "It holds values of people.", "block")


def _sides(info: ArrayInfo) -> str:
    return "×".join(str(side) for side in info.shape)


def _once(remarks: Iterable[Remark]) -> list[Remark]:
    seen: set[tuple[str, str]] = set()
    out = []
    for remark in remarks:
        if (remark.code, remark.inside) not in seen:
            seen.add((remark.code, remark.inside))
            out.append(remark)
    return out[:200]
