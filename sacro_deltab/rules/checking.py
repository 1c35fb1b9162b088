"""`rules check`: the rule set, its profiles, its waivers and, where they are at hand, the documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.resources import rules_dir
from .comparators import compare
from .documents import DocumentReport, read_documents
from .model import RuleSet
from .profiles import apply_profile, find_profile, load_ruleset
from .ruleset_diff import diff
from .waivers import WaiverState, load_waivers, states


@dataclass(frozen=True)
class CheckReport:
    """What `rules check` found; everything in it did load."""

    ruleset: RuleSet
    profiles: tuple[RuleSet, ...]
    waivers: tuple[WaiverState, ...]
    documents: DocumentReport | None
    uncomputed: tuple[str, ...] = ()  # facts that only this set knows
    differs: tuple[str, ...] = ()  # from the packaged set of the same id and version

    @property
    def ok(self) -> bool:
        """False where a clause is not where the rule set says it is."""
        return self.documents is None or not self.documents.problems

    def lines(self) -> list[str]:
        """For people."""
        r = self.ruleset
        signed = sum(d.signed is not None for d in r.decisions.values())
        out = [
            f"ok: {r.id} {r.version} ({r.status}) sha256:{r.sha256}",
            f"{len(r.rules)} rules, {len(r.clauses)} clauses, {len(r.decisions)} decisions ({signed} signed), "
            f"{len(r.facts)} facts, {len(r.outputs)} output types",
        ]
        for tightened in self.profiles:
            assert tightened.profile is not None
            out.append(f"profile {tightened.profile.id}: only tightens ({len(tightened.profile.changes)} changes)")
            out += [f"  {change}" for change in tightened.profile.changes]
            out += [f"  {line}" for line in silenced(tightened)]
        if self.uncomputed:
            waiting = ", ".join(self.uncomputed)
            out.append(f"no part of the package supplies: {waiting}; rules that need one block until a plug-in does")
        if self.differs:
            out.append(
                f"not the packaged {r.id} {r.version}: {len(self.differs)} differences (`rules diff` tells more)"
            )
            out += [f"  {line}" for line in self.differs]
        if not self.waivers:
            out.append("waivers: none")
        for state in self.waivers:
            w = state.waiver
            out.append(f"waiver {w.id} on {w.rule}: {state.state}: {state.reason} ({w.place})")
        return out + self._document_lines()

    def _document_lines(self) -> list[str]:
        if self.documents is None:
            return ["documents: not given (--documents DIR checks the clauses' digests and prints their words)"]
        report = self.documents
        out = [f"documents: {report.checked} of {len(self.ruleset.clauses)} clauses say what they said"]
        out += [f"  {problem}" for problem in report.problems]
        out.append(f"  {len(report.unclaimed)} lines belong to no clause (headings, heads of tables, code):")
        out += [f"    {doc} line {line}: {text}" for doc, line, text in report.unclaimed]
        out.append("")
        for rule in self.ruleset.rules:
            out.append(f"{rule.id}  {rule.title}")
            out += [f"    {c}: “{report.words[c]}”" for c in rule.source if c in report.words]
        return out

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        r = self.ruleset
        data: dict[str, Any] = {
            "ok": self.ok,
            "problems": [] if self.documents is None else list(self.documents.problems),
            "rule_set": r.statement(),
            "rules": len(r.rules),
            "clauses": len(r.clauses),
            "decisions": len(r.decisions),
            "differs": list(self.differs),
            "profiles": [
                {"id": p.profile.id, "sha256": p.profile.sha256, "changes": list(p.profile.changes)}
                for p in self.profiles
                if p.profile is not None
            ],
            "waivers": [
                {"id": s.waiver.id, "rule": s.waiver.rule, "state": s.state, "reason": s.reason} for s in self.waivers
            ],
        }
        if self.documents is not None:
            data["documents"] = {
                "checked": self.documents.checked,
                "words": self.documents.words,
                "unclaimed": [{"document": d, "line": n, "words": t} for d, n, t in self.documents.unclaimed],
            }
        return data


def check_all(
    source: str | Path | None,
    *,
    profiles: Sequence[str] | None = None,
    waivers: Path | None = None,
    documents: Path | None = None,
) -> CheckReport:
    """Load and check everything. Raises RuleSetError for whatever does not load."""
    base = load_ruleset(source)
    folder = Path(base.folder)
    files = [find_profile(base, p) for p in profiles] if profiles else sorted((folder / "profiles").glob("*.yaml"))
    tightened = tuple(apply_profile(base, path) for path in files)
    where = waivers if waivers is not None else folder / "waivers"
    granted = load_waivers(where) if waivers is not None or where.is_dir() else ()
    return CheckReport(
        ruleset=base,
        profiles=tightened,
        waivers=tuple(states(base, granted, datetime.now(UTC).date())),
        documents=None if documents is None else read_documents(base, documents),
        uncomputed=tuple(sorted(set(base.facts) - set(load_ruleset().facts))),
        differs=_differs(base),
    )


def silenced(tightened: RuleSet) -> list[str]:
    """Pins of facts that a researcher would declare: each answers for everybody, and these rules then never speak."""
    assert tightened.profile is not None
    out = []
    for fact, value in tightened.profile.attest.items():
        if tightened.facts[fact].by != "declared":
            continue
        quiet = [
            r.id
            for r in tightened.rules
            if r.in_force
            and (
                any(c.fact == fact and not compare(c.comparator, value, c.limit) for c in r.when)
                or (r.require and all(c.fact == fact and compare(c.comparator, value, c.limit) for c in r.require))
            )
        ]
        out.append(f"pins {fact}, which is declared otherwise: silences {', '.join(quiet) or 'no rule'}")
    return out


def _differs(base: RuleSet) -> tuple[str, ...]:
    """What a copy has changed without saying so: the packaged set has the same id and version, and other content."""
    packaged = rules_dir(base.id)
    if not packaged.is_dir() or packaged.resolve() == Path(base.folder).resolve():
        return ()
    ours = load_ruleset(packaged)
    if ours.sha256 == base.sha256 or ours.version != base.version:
        return ()
    found = diff(ours, base)
    return tuple(
        f"{d.direction.value:<9} {d.what} {d.id}: {'; '.join(c.what for c in d.changes) or d.kind}" for d in found
    )
