"""What `tables audit` and `tables protect` print: one JSON object per problem file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..base.errors import InputError, SacroDeltabError
from .attack import audit_pattern, group_intervals
from .audits import SetAudit
from .complement import protect
from .kinds import KINDS
from .minimum import minimum_answers
from .problem_json import COUNT_KINDS, problem_from_json
from .table import Problem


def _head(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: data[key] for key in ("id", "title", "kind") if isinstance(data.get(key), str)}


def _kind(data: Mapping[str, Any]) -> str:
    kind = data.get("kind", "counts")
    if kind not in COUNT_KINDS and kind not in KINDS:
        raise InputError(
            "the file is of an unknown kind",
            place="kind",
            next_step=f"use one of {', '.join([*COUNT_KINDS, *sorted(KINDS)])}",
        )
    return str(kind)


@contextmanager
def _about(path: object | None, place: str | None = None) -> Iterator[None]:
    """Errors from inside name the file, and where in it, like those of its reader."""
    try:
        yield
    except SacroDeltabError as error:
        if error.path is None:
            error.path = None if path is None else str(path)
            error.place = error.place or place
        raise


def _other(data: Mapping[str, Any], kind: str) -> tuple[dict[str, Any], bool]:
    facts, safe = KINDS[kind](data)
    return {**_head(data), **facts, "safe": safe}, safe


def _sets(problem: Problem, path: object | None) -> Iterator[SetAudit]:
    for i, asked in enumerate(problem.published_sets):
        with _about(path, f"published_sets[{i}]"):
            yield audit_pattern(problem, asked.suppressed, asked.name)


def _audit(problem: Problem, path: object | None) -> tuple[dict[str, Any], bool]:
    sets = list(_sets(problem, path))
    out: dict[str, Any] = {"primary": list(problem.primary), "published_sets": [s.to_json() for s in sets]}
    safe = all(s.safe_policy for s in sets)
    if not sets:  # no pattern asked about: the table as it stands
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
    with _about(path):
        kind = _kind(data)
        if kind in KINDS:
            return _other(data, kind)
        out, safe = _audit(problem_from_json(data, path=path), path)
    return {**_head(data), "kind": kind, **out}, safe


def protect_answer(
    data: Mapping[str, Any], *, policy: str, objective: str, path: object | None = None, list_sets: bool = False
) -> tuple[dict[str, Any], bool]:
    """The file's audit, the pattern chosen, the smallest sets of a small problem, and whether the pattern holds."""
    with _about(path):
        kind = _kind(data)
        if kind in KINDS:
            return _other(data, kind)
        problem = problem_from_json(data, path=path)
        out, _ = _audit(problem, path)
        found = protect(problem, policy=policy, objective=objective)
        out["protection"] = {**found.to_json(), "audit": found.audit.to_json()}
        out.update(minimum_answers(problem, known=found, **({"budget": 20_000, "largest": 40} if list_sets else {})))
    return {**_head(data), "kind": kind, **out}, found.possible and found.safe
