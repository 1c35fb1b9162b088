"""What `tables audit` and `tables protect` print: one JSON object per problem file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .complement import protect
from .judge import audit, audit_pattern
from .table import Problem


def _head(problem: Problem) -> dict[str, Any]:
    return {
        **{key: problem.about[key] for key in ("id", "title") if key in problem.about},
        "kind": problem.kind,
        "primary": list(problem.primary),
    }


def audit_answer(data: Mapping[str, Any], *, path: object | None = None) -> tuple[dict[str, Any], bool]:
    """The audit of a file and whether everything in it holds."""
    problem = Problem.from_json(data, path=path)
    report = audit(problem)
    out = _head(problem)
    out["published_sets"] = [s.to_json() for s in report.sets]
    safe = report.safe
    if not report.sets:  # no pattern asked about: the table as it stands
        whole = audit_pattern(problem, frozenset(), "everything published")
        out["everything_published"] = whole.to_json()
        safe = whole.safe_policy and not problem.primary
    return out, safe


def protect_answer(
    data: Mapping[str, Any], *, policy: str, objective: str, path: object | None = None
) -> tuple[dict[str, Any], bool]:
    """The file's audit, the pattern chosen, and whether it holds."""
    problem = Problem.from_json(data, path=path)
    out, _ = audit_answer(data, path=path)
    found = protect(problem, policy=policy, objective=objective)
    out["protection"] = {**found.to_json(), "audit": found.audit.to_json()}
    return out, found.possible and found.safe
