"""One record of results.json, from what the evidence keeps of an output: every field, and nothing chosen elsewhere."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.findings import Effect, Finding
from ..base.names import plain_signs
from ..kinds.plots import PLOT
from ..outputs import OutputDocument, is_mark
from ..rules import RuleSet

CELL_CHECK = "sacro_deltab suppression"  # one key for primary and complementary cells alike
BROKEN = "the check could not be completed, so the output stays inside"
BROKEN_STEP = "Report this to the maintainers with the session's journal"
STAYS = "Kept inside: the file only says why."
_LABELS = frozenset({"none", "heuristic", "formal"})
_MAX_REASONS = 12
_TOLD = frozenset({Effect.BLOCK, Effect.WITHHOLD, Effect.REVIEW})
_FORMS = {
    "id": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"),
    "version": re.compile(r"\d{1,4}(\.\d{1,4}){1,2}((a|b|rc|\.dev|\.post)\d{1,2})?"),
    "name": re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}"),
    "digest": re.compile(r"[0-9a-f]{64}"),
    "state": re.compile("draft|approved|retired"),
    "loosened": re.compile(r"[a-z][a-z0-9-]*: [^<>&\"\n]{1,2000}"),
}


@dataclass(frozen=True)
class Header:
    """What all records of a folder say alike: ids and versions of fixed forms, one time, the rule set."""

    certificate_id: str
    rule_set: tuple[str, str, str]  # id, version, digest
    profile: tuple[str, str] | None  # id, digest
    package: str
    acro: str
    finished: str
    config_changed: bool
    state: str = ""  # of the rule set: draft, approved or retired; empty in evidence of 0.1
    loosened: Mapping[str, str] = field(default_factory=dict)  # kind → what signed layers let through for it
    simulated: bool = False  # what people said in it was made up, to try things

    @classmethod
    def of(cls, session: Mapping[str, Any]) -> Header:
        """From the `session` block of the evidence."""
        rules, profile, tool = session["rule_set"], session["profile"], session["tool"]
        return cls(
            str(session["id"]),
            (str(rules["id"]), str(rules["version"]), str(rules["sha256"])),
            None if profile is None else (str(profile["id"]), str(profile["sha256"])),
            str(tool.get("sacro_deltab")),
            str(tool.get("acro")),
            str(session["finished"]),
            bool(session.get("acro_config_changes")),
            str(rules.get("state", "")),
            dict(rules.get("loosened", {})),
            any(bool(session[who].get("simulated", False)) for who in ("declared", "attested")),
        )

    def faults(self) -> list[str]:
        """Names of the parts that have no form that the package writes: such a header makes no record."""
        parts = [
            ("id", self.certificate_id),
            ("name", self.rule_set[0]),
            ("version", self.rule_set[1]),
            ("digest", self.rule_set[2]),
            *((("name", self.profile[0]), ("digest", self.profile[1])) if self.profile else ()),
            ("version", self.package),
            ("version", self.acro),
            ("time", self.finished),
            *([("state", self.state)] if self.state else []),
            *(("loosened", text) for text in self.loosened.values()),
        ]
        return sorted({form for form, text in parts if not _FORMS[form].fullmatch(text)})

    @property
    def rules(self) -> str:
        """The rule set as a record names it, with its digest."""
        return f"{self.law} sha256:{self.rule_set[2]}"

    @property
    def law(self) -> str:
        """Id and version, and DRAFT (or RETIRED) where the committee has not approved it."""
        mark = f" {self.state.upper()}" if self.state not in ("", "approved") else ""
        return f"{self.rule_set[0]} {self.rule_set[1]}{mark}"


def loosened(ruleset: RuleSet) -> dict[str, dict[str, str]]:
    """What signed layers let through, by kind, for the evidence: records of those kinds say it."""
    kinds = {
        kind: "; ".join(f"{one.layer}: {one_line(one.what)}" for one in ruleset.loosened_for(kind))
        for kind in ruleset.outputs
    }
    touched = {kind: text for kind, text in sorted(kinds.items()) if text}
    return {"loosened": touched} if touched else {}


def _with_waiver(finding: Finding) -> str:
    """What may leave of a finding; a waiver is named, so that nobody takes a waived block for a plain review."""
    return finding.outside if finding.waived_by is None else f"Under waiver {finding.waived_by}: {finding.outside}"


@dataclass(frozen=True)
class Outside:
    """What may be told of one output: all that records, notes and file names are made of.

    It has no place for a fact, a count or an advice, so that what was seen in raw data cannot reach what leaves by way
    of these functions: sentences come from findings in their outside form, and rules on raw facts make none where the
    noise protects (`rules.noised`).
    """

    name: str
    type: str
    title: str
    status: str
    kept_inside: bool
    label: str  # none, heuristic or formal
    told: tuple[Mapping[str, Any], ...]  # of `told_of`

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Outside:
        """From an entry of the evidence, which holds facts besides."""
        label = "none" if entry["privacy"] is None else str(entry["privacy"]["label"])
        name, kind, title, status = (str(entry[key]) for key in ("name", "type", "title", "status"))
        label = label if label in _LABELS else "none"
        return cls(name, kind, title, status, bool(entry["kept_inside"]), label, tuple(map(_told, entry["told"])))

    @property
    def files(self) -> tuple[str, ...]:
        """Names of its files: a note where it stays inside, a picture, or the table for people and for machines."""
        endings = ("csv",) if self.kept_inside else ("png",) if self.type == PLOT else ("csv", "json")
        return tuple(f"{self.name}.{ending}" for ending in endings)


def _told(one: Mapping[str, Any]) -> dict[str, Any]:
    """The five entries that `told_of` writes, and no other."""
    return {key: one[key] for key in ("effect", "text", "asks", "clauses", "next_step")}


def told_of(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """What a record says of the findings that may leave (`rules.outside_findings`): the evidence keeps it as `told`."""
    return [
        {
            "effect": finding.effect.value,
            "text": one_line(_with_waiver(finding)),
            "asks": [one_line(ask) for ask in finding.asks],
            "clauses": list(finding.clauses),
            "next_step": None if finding.next_step is None else one_line(finding.next_step),
        }
        for finding in findings
        if finding.effect in _TOLD
    ]


def record(output: Outside, document: OutputDocument | None, header: Header) -> dict[str, Any]:
    """The record of one output.

    Parameters
    ----------
    output
        What may be told of it.
    document
        What leaves of it; None where it stays inside.
    header
        What it shares with the other records.
    """
    told = output.told
    properties = {
        "method": f"deltab_{output.type}",
        "sacro_deltab": header.rules,
        "certificate_id": header.certificate_id,
        "acro": f"sacro_deltab {header.package}, acro {header.acro}",
        "label": output.label,
    }
    if header.profile is not None:
        properties["rule_set"] = "with layer {} sha256:{}".format(*header.profile)
    if output.type in header.loosened:
        properties["loosened"] = f"by layers that the committee signed: {header.loosened[output.type]}"
    if header.simulated:
        properties["simulated"] = "nobody said what is declared or attested here: it was made up, to try things"
    if header.config_changed:
        properties["session"] = "acro.config was changed during the session"
    return _record(
        output.name,
        output.status,
        properties,
        output.files,
        header,
        command=f"sacro_deltab: {output.type}",
        summary=summary(
            output.status,
            told,
            rule_set=header.law,
            marked="" if document is None else document.mark,
        ),
        comments=[f"{output.title}. {STAYS}" if output.kept_inside else f"{output.title}.", *_remarks(told)],
        sdc=sdc(document),
        fair={"analysis_name": f"sacro_deltab {output.type}", "dependent": "brain-age delta", "independent": []},
    )


def broken_told() -> list[dict[str, Any]]:
    """What is told of an output whose check raised."""
    return [{"effect": "block", "text": BROKEN, "asks": [], "clauses": [], "next_step": BROKEN_STEP}]


def paper(name: str, file: str, what: str, header: Header) -> dict[str, Any]:
    """The record of a file that the package adds itself: the certificate."""
    return _record(
        name,
        "pass",
        {"method": "deltab_certificate", "sacro_deltab": header.rules, "certificate_id": header.certificate_id},
        [file],
        header,
        command="sacro_deltab: certificate",
        summary=f"pass; {what[0].lower()}{what[1:-1]}, checked by sacro-deltab check and certify",
        comments=[what],
        sdc={},
        fair={},
    )


def _record(
    uid: str,
    status: str,
    properties: Mapping[str, Any],
    files: Sequence[str],
    header: Header,
    *,
    command: str,
    summary: str,
    comments: Sequence[str],
    sdc: Mapping[str, Any],
    fair: Mapping[str, Any],
) -> dict[str, Any]:
    """All fields in the order in which ACRO 1.0.2 writes them; one time for all of a folder: no room in its digits."""
    return {
        "uid": uid,
        "status": status,
        "type": "custom",
        "properties": dict(properties),
        "files": [{"name": name, "sdc": dict(sdc)} for name in files],
        "outcome": {},
        "command": command,
        "summary": summary,
        "timestamp": header.finished,
        "comments": list(comments),
        "exception": "",
        "fair": dict(fair),
    }


def _remarks(told: Sequence[Mapping[str, Any]]) -> list[str]:
    """Questions, next steps and clauses, each once: the viewer shows them above the buttons."""
    asks = [f"Question: {ask}" for one in told for ask in one["asks"]]
    steps = [f"Next step: {one['next_step']}" for one in told if one["next_step"] and one["effect"] != "review"]
    clauses = list(dict.fromkeys(clause for one in told for clause in one["clauses"]))
    return [*dict.fromkeys([*asks, *steps]), *([f"Clauses: {', '.join(clauses)}"] if clauses else [])]


def summary(status: str, told: Sequence[Mapping[str, Any]], *, rule_set: str, marked: str) -> str:
    """`status; reason; reason`. The viewer's chip is the text before the first `; `."""
    reasons = [str(one["text"]) for one in told]
    if marked and status != "fail":
        reasons.append(f"cells marked {marked} are withheld")
    unique = list(dict.fromkeys(reason for reason in reasons if reason)) or [f"meets {rule_set}"]
    if len(unique) > _MAX_REASONS:
        unique = [*unique[:_MAX_REASONS], "more reasons are listed in the checker's evidence"]
    return "; ".join((status, *unique))


def sdc(document: OutputDocument | None) -> dict[str, Any]:
    """ACRO's `sdc` block: marked cells only, under one key."""
    cells = {} if document is None else suppressed_cells(document)
    # The viewer paints cells of tables only; a picture leaves withheld cells empty by itself.
    painted = {} if document is None or document.type == PLOT else cells
    return {"summary": {"suppressed": bool(cells)}, "cells": painted}


def suppressed_cells(document: OutputDocument) -> dict[str, list[list[int]]]:
    """`sdc.cells`: 0-based [row, column] in the value block of every marked cell, under one check key."""
    places = [[r, c - 1] for r, row in enumerate(document.rows) for c, cell in enumerate(row) if c and is_mark(cell)]
    return {CELL_CHECK: places} if places else {}


def stub(output: Outside) -> bytes:
    """The file of an output that stays inside: what was asked for and why it does not leave, nothing else."""
    told = output.told
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["output", "kept inside because"])
    writer.writerow([output.title, told[0]["text"] if told else BROKEN])
    return buffer.getvalue().encode("utf-8")


def one_line(text: str) -> str:
    """A sentence in one line, without signs that the viewer takes for markup or for the end of a reason."""
    text = "".join(unicodedata.normalize("NFKC", c) if c.isdigit() else c for c in plain_signs(text))
    return text.replace("; ", ", ").rstrip(";. ")
