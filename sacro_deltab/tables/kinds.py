"""Facts about single numbers: dominance, percentages, medians, means with standard deviations.

Each function takes the body of a file of that kind (fixtures/cases/suppression) and gives its facts and whether the
numbers may stand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from ..base.errors import InputError
from .primary import dominance_share, exact
from .problem_json import CASE_POLICY, LARGEST_N
from .released import percent_counts
from .rounding import half_width, rounded_n_interval
from .table import LARGEST

WIDE = 20_000  # counts looked at one by one
_SEE = "see docs/tables.md"
Answer = tuple[dict[str, Any], bool]


def _numbers(values: object, what: str, least: int = 1) -> list[float]:
    if not isinstance(values, list) or len(values) < least:
        raise InputError(f"must be a list of at least {least} numbers", place=what, next_step=_SEE)
    out = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
            raise InputError("holds something that is not a number of a table", place=what, next_step=_SEE)
        out.append(float(value))
    return out


def _number(value: object, what: str) -> Fraction:
    return exact(_numbers([value], what)[0])


def _whole(value: object, what: str, least: int = 0, most: int = LARGEST_N) -> int:
    whole = not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
    if not whole or value != int(value) or not least <= value <= most:  # type: ignore[call-overload,operator]
        raise InputError(f"must be a whole number from {least} to {most}", place=what, next_step=_SEE)
    return int(value)  # type: ignore[call-overload,no-any-return]


def _block(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    block = data.get(key)
    if not isinstance(block, Mapping):
        raise InputError(f"the file has no {key!r}", place=key, next_step=_SEE)
    return block


def _policy(data: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of the policy that are asked for here, those of the case files where the file has none."""
    given = data.get("policy") or {}
    if not isinstance(given, Mapping):
        raise InputError("must be an object", place="policy", next_step=_SEE)
    least = {"min_n": 1, "n_round_base": 1, "n_round_below": 0, "interval_n": 0}
    return {key: _whole(given.get(key, CASE_POLICY[key]), f"policy.{key}", low) for key, low in least.items()}


def _rounded(value: Fraction | None, decimals: int = 4) -> float | None:
    return None if value is None else round(float(value), decimals) + 0.0


def dominance(data: Mapping[str, Any]) -> Answer:
    """max|x| ÷ Σ|x| against the limit, strictly, in exact arithmetic; the signed quotients beside it to compare."""
    values = _numbers(data.get("values"), "values")
    limit = _number(data.get("limit", 0.1), "limit")
    share = dominance_share(values)
    total = sum((exact(v) for v in values), Fraction(0))
    n = len(values)
    violated = share > limit
    facts = {
        "n": n,
        "sum": _rounded(total, 6),
        "naive_share_max_over_sum": _rounded(exact(max(values)) / total if total else None),
        "naive_share_absmax_over_sum": _rounded(max(abs(exact(v)) for v in values) / total if total else None),
        "abs_share": _rounded(share),
        "violates_abs_rule": violated,
        "min_n_ok": n >= _policy(data)["min_n"],
        "count_cell_share": _rounded(Fraction(1, n)),
        "count_cell_violates": Fraction(1, n) > limit,
    }
    return {**facts, "facts": facts}, not violated and bool(facts["min_n_ok"])


def percentages(data: Mapping[str, Any]) -> Answer:
    """A percentage of a rounded N, or the percentages of all groups but one."""
    published = _block(data, "published")
    decimals = _whole(published.get("decimals", 1), "published.decimals", most=12)
    if "percents" in published:
        return _percent_rest(data, published, decimals)
    policy = _policy(data)
    percent = _percent(published.get("percent"), "published.percent")
    shown = _whole(published.get("n_published"), "published.n_published")
    try:
        low, high = rounded_n_interval(shown, base=policy["n_round_base"], below=policy["n_round_below"], ties="up")
    except InputError as error:
        raise InputError(error.what, place="published.n_published", next_step=error.next_step) from error
    min_n = policy["min_n"]
    ranges = [(n, percent_counts(percent, decimals, n)) for n in range(low, high + 1) if n >= min_n]
    if sum(len(found) for _, found in ranges) > WIDE:
        raise InputError("too many counts print like this", place="published", next_step="give more decimals")
    candidates = [[k, n] for n, found in ranges for k in found]
    ks = {k for k, _ in candidates}
    facts = {
        "candidates": candidates,
        "k_unique": len(ks) == 1,
        "n_unique": len({n for _, n in candidates}) == 1,
    }
    small = {k for k in ks if 0 < k < min_n} | {n - k for k, n in candidates if 0 < n - k < min_n}
    return {"facts": facts}, bool(candidates) and not (len(ks) == 1 and small)


def _percent(value: object, place: str) -> Fraction:
    percent = _number(value, place)
    if not 0 <= percent <= 100:
        raise InputError("a percentage lies between 0 and 100", place=place, next_step=_SEE)
    return percent


def _percent_rest(data: Mapping[str, Any], published: Mapping[str, Any], decimals: int) -> Answer:
    n = _whole(published.get("N"), "published.N", 1)
    percents = [_percent(p, f"published.percents.{name}") for name, p in _block(published, "percents").items()]
    slack = Fraction(half_width(decimals)) * len(percents)
    rest = 100 - sum(percents, Fraction(0))
    counts = [percent_counts(p, decimals, n) for p in percents]
    if any(len(c) == 0 for c in counts):
        raise InputError("no whole numbers of people print like this", place="published.percents", next_step=_SEE)
    low = max(0, n - sum(max(c) for c in counts))
    high = n - sum(min(c) for c in counts)
    if high < 0 or high - low > WIDE:
        what = "the percentages are more than 100 %" if high < 0 else "too many counts print like this"
        raise InputError(what, place="published.percents", next_step="check them, or give more decimals")
    facts: dict[str, Any] = {
        "percent_interval": [_rounded(rest - slack), _rounded(rest + slack)],
        "n_candidates": list(range(low, high + 1)),
    }
    given = data.get("facts")
    if isinstance(given, Mapping):
        facts.update({key: given[key] for key in ("suppressed", "true") if key in given})
    policy = _policy(data)
    known = low == high and 0 < low < policy["min_n"]
    return {"facts": facts}, not known and (high - low >= policy["interval_n"] or low >= policy["min_n"])


def _median(values: list[Fraction]) -> Fraction:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def median(data: Mapping[str, Any]) -> Answer:
    """What the median says of persons, now and after one person leaves (first, middle and last rank)."""
    values = sorted(exact(v) for v in _numbers(data.get("values"), "values", 2))
    n = len(values)
    before = _median(values)
    facts: dict[str, Any] = {}
    for rank in dict.fromkeys((1, (n + 1) // 2, n)):
        left = values[: rank - 1] + values[rank:]
        after = _median(left)
        recovered, which = _recovered(values, rank, before, after)
        facts[f"drop_rank_{rank}"] = {
            "median_before": _rounded(before, 10),
            "median_after": _rounded(after, 10),
            "recovered_order_statistic": _rounded(recovered, 10),
            "recovered_is": which,
        }
    return {"facts": facts, "is_a_person": n % 2 == 1}, n % 2 == 0


def _recovered(values: list[Fraction], rank: int, before: Fraction, after: Fraction) -> tuple[Fraction | None, str]:
    """Which person's value two medians give away."""
    n, half = len(values), len(values) // 2
    if n % 2:  # before is a person; after is the mean of two neighbours
        middle = half + 1
        if rank == middle:
            return None, f"x{middle - 1}+x{middle + 1} only (mean of the two)"
        return 2 * after - before, f"x{middle + 1}" if rank < middle else f"x{middle - 1}"
    return 2 * before - after, f"x{half}" if rank <= half else f"x{half + 1}"


def mean_sd(data: Mapping[str, Any]) -> Answer:
    """N, mean and SD of two nested groups: their difference, by subtraction of sums and of sums of squares."""
    published = _block(data, "published")
    names = [name for name in published if name != "decimals"]
    if len(names) != 2:
        raise InputError("must hold two nested groups", place="published", next_step=_SEE)
    groups = sorted(
        (
            (
                _whole(_block(published, name).get("n"), f"published.{name}.n", 2),
                _number(published[name].get("mean"), f"published.{name}.mean"),
                _sd(published[name].get("sd"), f"published.{name}.sd"),
            )
            for name in names
        ),
        reverse=True,
    )
    (n, mean, sd), (m, mean_rest, sd_rest) = groups
    decimals = published_decimals(data, [mean, sd, mean_rest, sd_rest])
    k = n - m
    if k < 1:
        what = "the two groups are of one size: nothing is between them"
        raise InputError(what, place="published", next_step="give a group and a part of it")
    rest_sum = n * mean - m * mean_rest
    rest_squares = (n - 1) * sd**2 + n * mean**2 - (m - 1) * sd_rest**2 - m * mean_rest**2
    if _with_sd(groups, Fraction(half_width(decimals or 0))) is None:
        _no_people()
    facts: dict[str, Any] = {"n_difference": k, "recovered": _solved(k, rest_sum, rest_squares)}
    facts["method"] = "m=(N*M-n*m)/2; ss=Q-q; x=m+-sqrt(ss/2-m^2)" if k == 2 else "m=(N*M-n*m)/k; ss=Q-q"
    facts["mean_of_difference"] = _rounded(rest_sum / k)
    if decimals is not None:
        facts.update(_sd_intervals(groups, decimals))
    return {"facts": facts}, k >= _policy(data)["min_n"]


def _no_people() -> NoReturn:
    raise InputError(
        "the numbers contradict each other: no people have these means and SDs", place="published", next_step=_SEE
    )


def _sd(value: object, place: str) -> Fraction:
    sd = _number(value, place)
    if sd < 0:
        raise InputError("an SD is not negative", place=place, next_step=_SEE)
    return sd


def published_decimals(data: Mapping[str, Any], numbers: Sequence[Fraction]) -> int | None:
    """Decimals the numbers were rounded to, by the file or by their looks; None: unrounded."""
    value = data.get("decimals", _block(data, "published").get("decimals"))
    if value is not None:
        return _whole(value, "decimals", most=12)
    return next((d for d in (1, 2, 3) if all((number * 10**d).denominator == 1 for number in numbers)), None)


def _solved(k: int, total: Fraction, squares: Fraction) -> list[float] | None:
    """One person's value, or two persons' values."""
    if k == 1:
        return [round(float(total), 6) + 0.0]
    if k == 2:
        middle = total / 2
        spread = math.sqrt(max(0.0, float(squares / 2 - middle**2)))
        return [round(float(middle) - spread, 6) + 0.0, round(float(middle) + spread, 6) + 0.0]
    return None


def _sd_intervals(groups: list[tuple[int, Fraction, Fraction]], decimals: int) -> dict[str, Any]:
    """Intervals of the difference's mean under rounding: from the means alone, and with the SDs."""
    half = Fraction(half_width(decimals))
    (n, mean, _), (m, mean_rest, _) = groups
    k = n - m
    low = (n * (mean - half) - m * (mean_rest + half)) / k
    high = (n * (mean + half) - m * (mean_rest - half)) / k
    out: dict[str, Any] = {"mean_interval": [_rounded(low), _rounded(high)]}
    both = _with_sd(groups, half)
    if both is not None:
        out["mean_interval_with_sd"] = [round(both[0], 4) + 0.0, round(both[1], 4) + 0.0]
    return out


def _with_sd(groups: list[tuple[int, Fraction, Fraction]], half: Fraction) -> tuple[float, float] | None:
    """Least and largest mean t of the difference that means and SDs allow together.

    With μ the rest's mean and d = t − μ: the whole's mean is μ + k·d/n, and of the squared deviations the SDs leave,
    (k·m/n)·d² lies between the groups (all of it when the difference is one person). For each sign of d that is a
    polygon in (μ, d); the extremes of μ + d are at its corners.
    """
    (n, mean, sd), (m, mean_rest, sd_rest) = groups
    k = n - m
    scale = Fraction(n, k * m)
    most = ((n - 1) * (sd + half) ** 2 - (m - 1) * max(Fraction(0), sd_rest - half) ** 2) * scale
    least = ((n - 1) * max(Fraction(0), sd - half) ** 2 - (m - 1) * (sd_rest + half) ** 2) * scale if k == 1 else 0
    if most < 0:
        return None
    far, near = math.sqrt(float(most)), math.sqrt(max(0.0, float(least)))
    corners: list[float] = []
    for low, high in ((near, far), (-far, -near)):
        corners += _corners(
            float(mean_rest - half), float(mean_rest + half), low, high, float(mean - half), float(mean + half), k / n
        )
    return (min(corners), max(corners)) if corners else None


def _corners(u0: float, u1: float, d0: float, d1: float, m0: float, m1: float, slope: float) -> list[float]:
    """u + d at the corners of u0 ≤ u ≤ u1, d0 ≤ d ≤ d1, m0 ≤ u + slope·d ≤ m1."""
    points = [(u, d) for u in (u0, u1) for d in (d0, d1)]
    points += [(u, (v - u) / slope) for u in (u0, u1) for v in (m0, m1)]
    points += [(v - slope * d, d) for d in (d0, d1) for v in (m0, m1)]
    tiny = 1e-9
    return [
        u + d
        for u, d in points
        if u0 - tiny <= u <= u1 + tiny and d0 - tiny <= d <= d1 + tiny and m0 - tiny <= u + slope * d <= m1 + tiny
    ]


KINDS = {"dominance": dominance, "percentages": percentages, "median": median, "mean_sd": mean_sd}
