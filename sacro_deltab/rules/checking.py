"""`rules check`: the rule set, its profiles, its waivers and, where they are at hand, the documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ..base.resources import rules_dir
from .comparators import compare
from .documents import DocumentReport, read_documents
from .facts import FactValue
from .layers import find_layer, lay, load_ruleset
from .model import Condition, RuleSet
from .ruleset_diff import diff
from .seals import NOBODY, Seals
from .waivers import WaiverState, load_waivers, states


@dataclass(frozen=True)
class CheckReport:
    """What `rules check` found; everything in it did load."""

    ruleset: RuleSet
    stacks: tuple[RuleSet, ...]
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
            f"ok: {r.id} {r.version} ({r.state}) sha256:{r.sha256}",
            f"{len(r.rules)} rules, {len(r.clauses)} clauses, {len(r.decisions)} decisions ({signed} signed), "
            f"{len(r.facts)} facts, {len(r.outputs)} output types",
        ]
        for laid in self.stacks:
            out += stack_lines(laid)
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
            "layers": [
                {"id": p.profile.id, "sha256": p.profile.sha256, "changes": list(p.profile.changes)}
                for p in self.stacks
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


PLUGINS = "sacro_deltab.facts"  # entry points that supply facts, each called as its fact


def unsupplied(ruleset: RuleSet) -> tuple[str, ...]:
    """Facts of the rules that neither the package nor an installed plug-in supplies: rules that need one block."""
    known = set(load_ruleset().facts) | {point.name for point in entry_points(group=PLUGINS)}
    return tuple(sorted(set(ruleset.facts) - known))


def check_all(
    source: str | Path | None,
    *,
    layers: Sequence[str] | None = None,
    waivers: Path | None = None,
    documents: Path | None = None,
    seals: Seals = NOBODY,
) -> CheckReport:
    """Load and check everything. Raises RuleSetError for whatever does not load."""
    base = load_ruleset(source, seals=seals)
    folder = Path(base.folder)
    files = [find_layer(base, p) for p in layers] if layers else sorted((folder / "layers").glob("*.yaml"))
    laid = tuple(lay(base, path, seals) for path in files)
    where = waivers if waivers is not None else folder / "waivers"
    granted = load_waivers(where, seals=seals) if waivers is not None or where.is_dir() else ()
    return CheckReport(
        ruleset=base,
        stacks=laid,
        waivers=tuple(states(base, granted, datetime.now(UTC).date())),
        documents=None if documents is None else read_documents(base, documents),
        uncomputed=tuple(sorted({f for r in (base, *laid) for f in unsupplied(r)})),
        differs=_differs(base),
    )


def stack_lines(laid: RuleSet) -> list[str]:
    """Layer by layer what a stack changes, what it lets through, and which rules its pins silence."""
    assert laid.profile is not None
    out = []
    for layer in laid.profile.layers:
        does = f"LOOSENS ({len(layer.loosened)}), signed" if layer.loosened else "only tightens"
        pin = "" if layer.pinned else ", pins nothing: a DRAFT on whatever stands below"
        out.append(f"layer {layer.id} ({layer.level}): {does}, {len(layer.changes)} changes{pin}")
        loose = {one.what for one in layer.loosened}
        out += [f"  {'LOOSER ' if change in loose else ''}{change}" for change in layer.changes]
    return out + [f"  {line}" for line in silenced(laid)]


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
                any(c.fact == fact and not c.named and not compare(c.comparator, value, c.limit) for c in r.when)
                or (r.require and all(c.fact == fact and _meets(c, value) for c in r.require))
            )
        ]
        out.append(f"pins {fact}, which is declared otherwise: silences {', '.join(quiet) or 'no rule'}")
    return out


def _meets(condition: Condition, value: FactValue) -> bool:
    return not condition.named and compare(condition.comparator, value, condition.limit)


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
