"""What `tables audit` and `tables protect` print: one JSON object per problem file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from .complement import protect
from .judge import audit, audit_pattern, group_intervals
from .kinds import KINDS
from .minimum import minimum_answers
from .problem_json import COUNT_KINDS
from .table import Problem


def _head(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: data[key] for key in ("id", "title", "kind") if isinstance(data.get(key), str)}


def _kind(data: Mapping[str, Any]) -> str:
    kind = data.get("kind", "counts")
    if kind not in COUNT_KINDS and kind not in KINDS:
        raise InputError(
            "the file is of an unknown kind", next_step=f"use one of {', '.join([*COUNT_KINDS, *sorted(KINDS)])}"
        )
    return str(kind)


def _other(data: Mapping[str, Any], kind: str, path: object | None) -> tuple[dict[str, Any], bool]:
    try:
        facts, safe = KINDS[kind](data)
    except InputError as error:
        raise InputError(error.what, path=path, place=error.place, next_step=error.next_step) from error
    return {**_head(data), **facts, "safe": safe}, safe


def _audit(problem: Problem) -> tuple[dict[str, Any], bool]:
    report = audit(problem)
    out: dict[str, Any] = {"primary": list(problem.primary), "published_sets": [s.to_json() for s in report.sets]}
    safe = report.safe
    if not report.sets:  # no pattern asked about: the table as it stands
        whole = audit_pattern(problem, frozenset(), "everything published")
        out["everything_published"] = whole.to_json()
        safe = whole.safe_policy and not problem.primary
    if problem.derived_group is not None:
        n, mean = group_intervals(problem, frozenset(), problem.derived_group)
        group: dict[str, Any] = {"atoms": [problem.atom_names[a] for a in problem.derived_group], "n_interval": list(n)}
        if mean is not None:
            group["mean_interval"] = [None if v is None else round(v, 4) + 0.0 for v in mean]
        out["derived_group"] = group
    return out, safe


def audit_answer(data: Mapping[str, Any], *, path: object | None = None) -> tuple[dict[str, Any], bool]:
    """The audit of a file and whether everything in it holds."""
    kind = _kind(data)
    if kind in KINDS:
        return _other(data, kind, path)
    out, safe = _audit(Problem.from_json(data, path=path))
    return {**_head(data), "kind": kind, **out}, safe


def protect_answer(
    data: Mapping[str, Any], *, policy: str, objective: str, path: object | None = None, list_sets: bool = False
) -> tuple[dict[str, Any], bool]:
    """The file's audit, the pattern chosen, the smallest sets of a small problem, and whether the pattern holds."""
    kind = _kind(data)
    if kind in KINDS:
        return _other(data, kind, path)
    problem = Problem.from_json(data, path=path)
    out, _ = _audit(problem)
    found = protect(problem, policy=policy, objective=objective)
    out["protection"] = {**found.to_json(), "audit": found.audit.to_json()}
    out.update(minimum_answers(problem, **({"budget": 20_000, "largest": 40} if list_sets else {})))
    return {**_head(data), "kind": kind, **out}, found.possible and found.safe
