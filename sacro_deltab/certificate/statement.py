"""The statement: an in-toto Statement v1 over every file of a folder, with our predicate.

What leaves says which rules were met, never a number of the cohort: no count, no path, no text of a finding that is
meant for the inside, no digest of input data. Answers of rules on raw-data facts go into a second statement that
stays in `inside/`; the one that leaves says "checked inside".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.canonical import canonical_json
from ..base.digests import Digests, digest_file
from ..base.errors import CertificateError, UnreadableError
from ..base.findings import Finding
from ..base.opening import read_member
from ..base.strict import DATA, parse
from ..base.verdicts import NOTHING, verdict_on
from ..judging.report import Report
from ..rules import load_ruleset
from .findings import PreparedOutput, prepare_outputs
from .inside import ALGORITHM, inside_digest, salted_sha256
from .layout import ATTACK, CERTIFIED, ENVELOPES, RESULTS, STATEMENT, STRUCTURE, Inventory, scan
from .packed import full, pack
from .policy import Policy, policy_of, waiver_json
from .privacy import privacy_block
from .recoverable import recoverability_block
from .rounding import rounding_block
from .said import TIME, UUID, closed_sentences, like, mapping, said, session_versions, versions
from .types import INSIDE_TYPE, PREDICATE_TYPE, STATEMENT_TYPE, TYPE_ROOT, check_type, schema_problems
from .viewer import record_digests

PAYLOAD_TYPE = "application/vnd.in-toto+json"
INSIDE_SUBJECT = "inside/"


@dataclass(frozen=True)
class Context:
    """Everything a statement is made of besides the files. `known` keeps digests of files that were read already.

    stage: "session" (unsigned, by `finalise`) or "certified" (by `certify`). cap: reasons why neither `pass` nor
    `formal` may be stated.
    """

    policy: Policy
    stage: str = "session"
    certificate_id: str = ""
    node: str = "local"
    now: datetime | None = None
    waivers: Sequence[Any] = ()
    cap: tuple[str, ...] = ()
    ledger: Mapping[str, Any] | None = None
    answers: Sequence[Mapping[str, Any]] = ()
    extra_findings: Sequence[Finding] = ()
    notes: tuple[str, ...] = field(default=())
    known: dict[str, Digests] = field(default_factory=dict, repr=False, compare=False)


def utc_now(now: datetime | None = None) -> str:
    """Time as a statement writes it: UTC, whole seconds, with its offset."""
    moment = datetime.now(UTC) if now is None else now.astimezone(UTC)
    return moment.replace(microsecond=0).isoformat()


def statement_bytes(outer: Mapping[str, Any]) -> bytes:
    """A statement as it is written and signed: in its short form."""
    return canonical_json(pack(outer))


def in_full(statement: Mapping[str, Any]) -> Mapping[str, Any]:
    """A statement that follows its schema, of any version and in either form, in the form that programs use.

    Raises
    ------
    CertificateError
        Its short form does not hold.
    """
    short = statement["predicateType"] == PREDICATE_TYPE and isinstance(statement["predicate"]["files"], dict)
    return full(statement) if short else statement


def make_context(
    ruleset: Any,
    certificate_id: str | None,
    node: str,
    waivers: Sequence[Any],
    evidence: Mapping[str, Any] | None,
) -> Context:
    """The context of an unsigned session statement, as of the end of the session that its evidence names."""
    if ruleset is None:
        ruleset = load_ruleset()
    policy = ruleset if isinstance(ruleset, Policy) else policy_of(ruleset)
    return Context(
        policy=policy,
        certificate_id=certificate_id or str(uuid.uuid4()),
        node=node,
        waivers=tuple(waivers),
        now=_finished(evidence),
    )


def build(
    folder: Path, report: Report | None, evidence: Mapping[str, Any] | None, context: Context, *, inside: bool = False
) -> dict[str, Any]:
    """The statement that leaves, in full; or the one that stays inside (without its inside digest: a circle)."""
    inventory = scan(folder)
    if inventory.problems:
        raise CertificateError(
            f"this folder cannot be certified: {inventory.problems[0]}.",
            path=folder,
            next_step="remove what does not belong there and finalise again.",
        )
    results = _results(inventory)
    outputs = prepare_outputs(results, report, evidence, context.policy, tuple(inventory.root))
    digests = _subjects(inventory, context)
    subjects = [{"name": name, "digest": d.to_json()} for name, d in digests.items()]
    if inside:
        predicate = {
            "certificate_id": context.certificate_id,
            "policy_sha256": context.policy.sha256,
            "outputs": [o.inside_json() for o in outputs],
        }
    else:
        predicate = _predicate(inventory, results, outputs, report, evidence, context)
        subjects += _inside_subject(inventory, context)
    kind = INSIDE_TYPE if inside else PREDICATE_TYPE
    return {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": kind, "predicate": predicate}


def _finished(evidence: Mapping[str, Any] | None) -> datetime | None:
    """When the session ended, as its evidence says: the time of the session's own statement."""
    told = like(mapping((evidence or {}).get("session")).get("finished"), TIME)
    return None if told is None else datetime.fromisoformat(told)


def departures(
    folder: Path,
    statement: Mapping[str, Any],
    evidence: Mapping[str, Any] | None,
    ruleset: Any,
    waivers: Sequence[Any],
    known: Mapping[str, Digests],
) -> list[str]:
    """Parts of a session's statement that do not follow from its folder, evidence, rule set and waivers.

    The statement is made again; nothing of it is believed. Where it does not follow its schema, or its short form does
    not hold, that is all that is said. known: digests of files in the form that the session wrote.
    """
    check_type(statement)
    if schema_problems(statement):
        return ["schema"]
    certificate_id = str((evidence or {}).get("session", {}).get("id"))
    context = replace(make_context(ruleset, certificate_id, "local", waivers, evidence), known=dict(known))
    again = build(folder, None, evidence, context)
    if pack(again) == statement:
        return []
    try:
        statement = in_full(statement)
    except CertificateError:
        return ["short form"]
    predicate = statement["predicate"]
    keys = set(again["predicate"]) | set(predicate)
    different = sorted(k for k in keys if again["predicate"].get(k) != predicate.get(k))
    if again["subject"] != statement["subject"]:
        different.append("subject")
    return different


def _results(inventory: Inventory) -> dict[str, Any]:
    path = inventory.root.get(RESULTS)
    if path is None:
        raise UnreadableError("the folder has no results.json.", path=inventory.folder)
    value = parse(read_member(path), path=RESULTS, bounds=DATA)
    if not isinstance(value, dict) or not isinstance(value.get("results"), dict):
        raise UnreadableError("results.json is not the record of a session.", path=RESULTS)
    return value


def _subjects(inventory: Inventory, context: Context) -> dict[str, Digests]:
    leave_out = ENVELOPES | ({STATEMENT} if context.stage == "session" else set())
    for name in inventory.root.keys() - context.known.keys() - leave_out:
        context.known[name] = digest_file(inventory.root[name])
    return {name: context.known[name] for name in sorted(inventory.root) if name not in leave_out}


def _inside_subject(inventory: Inventory, context: Context) -> list[dict[str, Any]]:
    if inventory.inside is None:
        return []
    leave_out = (CERTIFIED,) if context.stage == "session" else ()
    value = inside_digest(inventory.inside, leave_out=leave_out)
    return [{"name": INSIDE_SUBJECT, "digest": {"sacro_deltab_salted": value}}]


def _predicate(
    inventory: Inventory,
    results: Mapping[str, Any],
    outputs: Sequence[PreparedOutput],
    report: Report | None,
    evidence: Mapping[str, Any] | None,
    context: Context,
) -> dict[str, Any]:
    session = mapping((evidence or {}).get("session"))
    recorded, own = (
        session_versions(session),
        {name for o in (evidence or {}).get("outputs", ()) for name in o["files"]},
    )
    folder_findings = _folder_findings(report, context)
    verdict = _verdict(outputs, report, folder_findings, context)
    privacy = privacy_block(outputs, evidence, context.ledger, capped=bool(context.cap))
    return {
        "certificate_id": context.certificate_id,
        "stage": context.stage,
        "verdict": verdict,
        "capped": list(context.cap),
        "made": {
            "node": context.node,
            "time": utc_now(context.now),
            "session": like(session.get("id"), UUID),
            "session_started": like(session.get("started"), TIME),
            "session_finished": like(session.get("finished"), TIME),
            "unit": session.get("unit") if session.get("unit") in ("person", "row") else None,
        },
        "versions": {**(recorded if context.stage == "session" else versions()), "session": recorded},
        "policy": {**context.policy.to_json(), "waivers": _waivers(outputs, context)},
        "files": [
            {"file": name, "verdict": o.verdict_under(context.cap), "output": o.name, "kept_inside": o.kept_inside}
            for o in outputs
            for name in o.files
        ],
        "outputs": [o.outside_json(context.cap) for o in outputs],
        "kept_inside": _kept_inside(inventory, outputs, report),
        "folder_findings": _told(folder_findings),
        "privacy": privacy,
        "attack_reports": _attack_reports(inventory),
        "recoverability": recoverability_block(outputs, report, evidence, context.policy),
        "rounding": rounding_block(inventory, outputs, context.policy),
        "recorded_not_recomputed": sorted({n for o in outputs for n in o.facts["recorded"]}),
        "not_checked": _not_checked(report, evidence, context),
        "people": {
            "declared": said(session.get("declared")),
            "attested": said(session.get("attested")),
            "answers": [dict(a) for a in context.answers],
        },
        "results": record_digests(results, own | ENVELOPES),
        "checksums": _checksums(inventory, context.stage),
        "inside": {"algorithm": ALGORITHM, "key": "kept in inside/"} if inventory.inside is not None else None,
    }


def _verdict(
    outputs: Sequence[PreparedOutput],
    report: Report | None,
    folder_findings: Sequence[Finding],
    context: Context,
) -> str:
    papers = {STATEMENT, *ENVELOPES}
    asked = [o.verdict_under(context.cap) for o in outputs if not o.kept_inside and not papers & set(o.files)]
    about = [finding.verdict for finding in folder_findings] + ["review"] * bool(context.cap)
    stated = "pass" if report is None else report.verdict
    return verdict_on(asked, about if stated == NOTHING and not asked else [*about, stated])


def _waivers(outputs: Sequence[PreparedOutput], context: Context) -> list[dict[str, str]]:
    """Waivers that lowered something, each with its end."""
    used = {f.waived_by for o in outputs for f in o.findings if f.waived_by}
    return [w for w in map(waiver_json, context.waivers) if w["id"] in used]


def _folder_findings(report: Report | None, context: Context) -> list[Finding]:
    return [*(() if report is None else report.folder_findings), *context.extra_findings]


def _told(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """What may leave of findings about the folder: rules and effects."""
    out: list[dict[str, Any]] = []
    for finding in findings:
        entry = {"rules": list(finding.rules), "effect": finding.effect.value}
        if entry not in out:
            out.append(entry)
    return out


def _kept_inside(inventory: Inventory, outputs: Sequence[PreparedOutput], report: Report | None) -> list[str]:
    named = set(() if report is None else report.kept_inside)
    named |= {name for o in outputs if o.kept_inside for name in o.files}
    named |= {name for name in inventory.root if name.startswith("session_summary")}
    return sorted(name for name in named if name in inventory.root and name not in STRUCTURE)


def _attack_reports(inventory: Inventory) -> list[dict[str, str]]:
    inside = inventory.inside or {}
    return [{"name": name, "salted_sha256": salted_sha256(inside, name)} for name in inside if name == ATTACK]


def _checksums(inventory: Inventory, stage: str) -> dict[str, str]:
    """Digest of each checksum file. Those of files that are written later are derived by whoever verifies."""
    later = ENVELOPES | ({STATEMENT} if stage == "session" else set())
    return {name: digest_file(path).sha256 for name, path in sorted(inventory.checksums.items()) if name not in later}


def _not_checked(report: Report | None, evidence: Mapping[str, Any] | None, context: Context) -> list[str]:
    own = ["whether the people behind the declared and attested facts said the truth"]
    if context.stage == "session":
        own.append("anything, by anyone but the session that made this folder: this statement is unsigned")
    # what a session writes does not get into a signed statement
    source = _sequence((evidence or {}).get("not_checked")) if report is None else report.not_checked
    told = closed_sentences(str(s) for s in source)
    return list(dict.fromkeys([*told, *context.notes, *own]))


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


__all__ = [
    "INSIDE_SUBJECT",
    "INSIDE_TYPE",
    "PAYLOAD_TYPE",
    "PREDICATE_TYPE",
    "STATEMENT_TYPE",
    "TYPE_ROOT",
    "Context",
    "build",
    "departures",
    "make_context",
    "utc_now",
    "versions",
]
