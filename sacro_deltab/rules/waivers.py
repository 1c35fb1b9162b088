"""Waivers: a file, one rule, one output, one end. `valid_waiver` is the only place that decides whether one holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from ..base.digests import sha256_hex
from ..base.errors import RuleSetError
from ..base.findings import Effect
from ..base.opening import read_file
from .digests import rule_digest, semantic_digest
from .loader import first_at_each_place, raise_problems
from .marked_yaml import MarkedFile, Problem, read_marked
from .model import Place, Rule, RuleSet
from .schema_check import check
from .seals import NOBODY, Seals, beside
from .types import Decision

LONGEST_DAYS = 366


@dataclass(frozen=True)
class Waiver:
    """One exception, granted by a named decision. Dates are UTC days; it holds through the end of `expires_on`."""

    id: str
    rule: str
    output_sha256: str
    ruleset_sha256: str  # of the whole set, of its meaning, or of the meaning of the one rule
    granted_by: str
    reference: str
    reason: str
    granted_on: date
    expires_on: date
    individual: bool = False
    place: Place | None = None
    unsigned: bool = False  # the trust file knows the committee's keys, and none of them signed this file


@dataclass(frozen=True)
class WaiverState:
    """A waiver as governance sees it: `in force`, `ends soon`, `lapsed`, `not yet` or `void`, with the reason."""

    waiver: Waiver
    state: str
    reason: str


def refusal(ruleset: RuleSet, rule: Rule, waiver: Waiver, today: date, output_sha256: str | None) -> str | None:
    """Why a waiver does not hold for this rule and output today; None if it holds. Nothing else decides this."""
    if waiver.rule != rule.id:
        return "it names another rule"
    if rule.waivable == "never":
        return f"{rule.id} can never be waived"
    if rule.waivable == "by_dac_individual" and not waiver.individual:
        return f"{rule.id} needs a decision on this one output (individual: true)"
    under = waiver.ruleset_sha256
    if under != ruleset.sha256 and under != rule_digest(ruleset, rule) and under != semantic_digest(ruleset):
        return f"it was granted under another rule set, or {rule.id} asks something else now"
    if output_sha256 is None or waiver.output_sha256 != output_sha256:
        return "it names another output"
    if waiver.unsigned:
        return "nobody of the committee has signed it (`rules waiver sign`)"
    if today < waiver.granted_on:
        return f"it starts on {waiver.granted_on.isoformat()}"
    if today > waiver.expires_on:
        return f"it ended on {waiver.expires_on.isoformat()}"
    return None


def valid_waiver(
    ruleset: RuleSet, rule: Rule, waivers: Sequence[Waiver], today: date, output_sha256: str | None
) -> Waiver | None:
    """The first waiver that holds for this rule and this output on this UTC day."""
    return next((w for w in waivers if refusal(ruleset, rule, w, today, output_sha256) is None), None)


def states(ruleset: RuleSet, waivers: Iterable[Waiver], today: date, soon_days: int = 30) -> list[WaiverState]:
    """Every waiver with its state today, for `rules check`."""
    out = []
    for waiver in waivers:
        try:
            rule = ruleset.rule(waiver.rule)
        except KeyError:
            out.append(WaiverState(waiver, "void", f"there is no rule {waiver.rule}"))
            continue
        why = refusal(ruleset, rule, waiver, today, waiver.output_sha256)
        if why is None:
            left = (waiver.expires_on - today).days
            state = ("ends soon", f"ends in {left} days") if left <= soon_days else ("in force", f"ends in {left} days")
        elif today > waiver.expires_on:
            state = ("lapsed", why)
        elif today < waiver.granted_on:
            state = ("not yet", why)
        else:
            state = ("void", why)
        out.append(WaiverState(waiver, *state))
    return out


def load_waivers(path: str | Path, *, seals: Seals = NOBODY) -> tuple[Waiver, ...]:
    """Read one waiver file, or every `*.yaml` of a folder. Raises RuleSetError with all problems of all files.

    Where `seals` knows a committee, a waiver that it has not signed holds for nothing.
    """
    where = Path(path)
    if not where.exists():
        raise RuleSetError("there is no such waiver file or folder", path=where)
    files = sorted(where.glob("*.yaml")) if where.is_dir() else [where]
    problems: list[Problem] = []
    waivers: dict[str, Waiver] = {}
    for file in files:
        marked = read_marked(file, str(file))
        if "TO BE WRITTEN" in marked.text:
            what = "is a request still: the committee fills in who grants it, where that is minuted and why"
            marked.problems.append(Problem(marked.place("waiver"), what))
        if marked.data is not None and check(marked, "waiver") and not marked.problems:
            waiver = _waiver(marked)
            if waiver is not None and waiver.id in waivers:
                marked.problems.append(Problem(marked.place("waiver", "id"), f"the id {waiver.id} is taken"))
            elif waiver is not None:
                signed = seals.find(beside(file), "waiver", waiver.id, sha256_hex(read_file(file)))
                waivers[waiver.id] = replace(waiver, unsigned=seals.committee and signed is None)
        problems += _named(marked)
    raise_problems(problems, f"the waivers in {where}")
    return tuple(waivers.values())


def _named(marked: MarkedFile) -> list[Problem]:
    """The problems of a waiver file, each with the rule that it is about."""
    body = marked.data.get("waiver") if isinstance(marked.data, dict) else None
    rule = body.get("rule") if isinstance(body, dict) else None
    named = rule if isinstance(rule, str) else None
    return [replace(p, rule=p.rule or named) for p in first_at_each_place(marked.problems)]


def _waiver(marked: MarkedFile) -> Waiver | None:
    data: dict[str, Any] = dict(marked.data["waiver"])
    for key in ("granted_on", "expires_on"):
        try:
            data[key] = date.fromisoformat(data[key])
        except ValueError:
            marked.problems.append(Problem(marked.place("waiver", key), f"{key} is no day of the calendar"))
    if marked.problems:
        return None
    if data["expires_on"] < data["granted_on"]:
        marked.problems.append(Problem(marked.place("waiver", "expires_on"), "ends before it is granted"))
        return None
    if data["expires_on"] > data["granted_on"] + timedelta(days=LONGEST_DAYS):
        what = f"lasts longer than {LONGEST_DAYS} days: a waiver ends within a year, and can be granted again"
        marked.problems.append(Problem(marked.place("waiver", "expires_on"), what))
        return None
    return Waiver(**data, place=marked.place("waiver"))


def request(ruleset: RuleSet, decision: Decision, output_sha256: str, today: date) -> list[dict[str, dict[str, str]]]:
    """Waivers to fill in, one for each rule that blocks this output and can be waived: who grants, where, why, until.

    Nothing is granted by it: `granted_by`, `reference` and `reason` are for the committee to write.
    """
    out = []
    blocking = {r for f in decision.findings if f.effect is Effect.BLOCK for r in f.rules}
    for number, rule in enumerate((r for r in ruleset.rules if r.id in blocking and r.waivable != "never"), 1):
        body = {
            "id": f"W-{today.year}-{number:03d}",
            "rule": rule.id,
            "output_sha256": output_sha256,
            "ruleset_sha256": rule_digest(ruleset, rule),
            "granted_by": "TO BE WRITTEN: name and role",
            "reference": "TO BE WRITTEN: minute of the data access committee",
            "reason": "TO BE WRITTEN",
            "granted_on": today.isoformat(),
            "expires_on": (today + timedelta(days=90)).isoformat(),
        }
        out.append({"waiver": body})
    return out


def to_yaml(waiver: dict[str, dict[str, str]], title: str) -> str:
    """A waiver as a file, with the rule's title above."""
    lines = [f"# {title}", "waiver:"]
    lines += [f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in waiver["waiver"].items()]
    return "\n".join(lines) + "\n"
