"""Verification: is this record authentic and complete? Offline, one line a check, whatever verdict it carries.

Nothing of what is verified is believed before its bytes are signed: policy, keys, thresholds and ledgers come from the
trust file and from what the caller names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..base.canonical import MAX_BYTES, read_canonical
from ..base.errors import CertificateError, InputError, SacroDeltabError, UnreadableError
from ..base.names import shown
from ..base.verdicts import NOTHING
from ..ledger import open_ledger
from ..ledger.trust import Trust, load_trust
from ..rules import load_ruleset
from . import verify_files as files
from .decisions import asked, decisions_in, decisions_of, not_accepted
from .envelope import ParsedEnvelope, check_signatures, parse_envelope
from .law import committee
from .layout import ENVELOPE
from .policy import draft_mark
from .review import review_lines
from .sources import Source, open_source
from .statement import in_full
from .types import (
    check_type,
    schema_problems,
)

DECISIONS = "decisions"
_COMPLETE = frozenset({DECISIONS, files.FREE_TEXTS})  # what fails here leaves a record authentic
CLOCK_SKEW = timedelta(hours=24)


@dataclass(frozen=True)
class Check:
    """One line. state: "ok", "fail", "not checked" or "note"."""

    name: str
    state: str
    text: str

    def line(self) -> str:
        """As printed."""
        mark = {"ok": "ok  ", "fail": "FAIL", "not checked": "--  ", "note": "    "}[self.state]
        return f"{mark} {self.name}: {self.text}"


@dataclass(frozen=True)
class VerifyResult:
    """Everything `verify` found."""

    checks: tuple[Check, ...]
    statement: Mapping[str, Any] | None = None
    signers: tuple[tuple[str, str], ...] = ()  # (key id, role)
    files: tuple[str, ...] = ()  # names whose digests hold

    @property
    def first_failure(self) -> Check | None:
        """What failed first."""
        return next((c for c in self.checks if c.state == "fail"), None)

    @property
    def authentic(self) -> bool:
        """Signed and unchanged, whatever the checkers decided."""
        return self.statement is not None and all(c.state != "fail" or c.name in _COMPLETE for c in self.checks)

    @property
    def ok(self) -> bool:
        """Authentic and complete."""
        return self.first_failure is None and self.statement is not None

    @property
    def exit_code(self) -> int:
        """0 authentic and complete, 1 a check fails."""
        return 0 if self.ok else 1

    @property
    def verdict(self) -> str | None:
        """The verdict the record carries; None when it is not authentic."""
        return str(self.statement["predicate"]["verdict"]) if self.ok and self.statement else None

    def conclusion(self) -> str:
        """The last line."""
        failed = self.first_failure
        if failed and self.authentic:
            return f"authentic and NOT complete: {failed.text}"
        if failed:
            return f"NOT authentic and complete. First to fail: {failed.name}: {failed.text}"
        return f"authentic and complete; the verdict it carries is {self.verdict}"

    def to_json(self) -> dict[str, Any]:
        """For `verify --json`."""
        predicate = (self.statement or {}).get("predicate", {})
        failed = self.first_failure
        return {
            "schema": "sacro_deltab/verify/1",
            "ok": self.ok,
            "verdict": self.verdict,
            "first_failure": None if failed is None else failed.name,
            "certificate_id": predicate.get("certificate_id") if self.ok else None,
            "signers": [{"keyid": k, "role": r} for k, r in self.signers],
            "checks": [{"name": c.name, "state": c.state, "text": c.text} for c in self.checks],
        }


@dataclass
class _Run:
    """State of one verification, passed from check to check."""

    source: Source
    trust: Trust
    at: datetime
    rules: str | None
    profile: str | None
    ledger: str | None
    checks: list[Check] = field(default_factory=list)

    def add(self, name: str, problems: list[str] | tuple[str, ...], fine: str) -> bool:
        """One line for a check: its problems, or `fine`."""
        self.checks.append(Check(name, "fail", _join(problems)) if problems else Check(name, "ok", fine))
        return not problems

    def skip(self, name: str, text: str) -> None:
        """One line for what was not checked."""
        self.checks.append(Check(name, "not checked", text))


def verify_path(
    path: Path | str,
    trust: Trust | Path | str,
    *,
    rules: Path | str | None = None,
    profile: Path | str | None = None,
    ledger: str | Path | None = None,
    at: datetime | None = None,
    released: bool = False,
) -> VerifyResult:
    """Verify a certified folder, or the zip the viewer made of it.

    Parameters
    ----------
    path
        Session folder, what is left of it without `inside/`, or a release zip.
    trust
        Trust file: keys per node and role, thresholds, pinned ledgers.
    rules, profile
        Rule set (a name or a folder) and top layer that the record must name; without a rule set its digest is
        reported, not compared.
    ledger
        Ledger in which the record's head must be found.
    at
        Moment at which keys and waivers must be valid, besides the moment of signing; default now. For a record from
        an archive give the day it was received.
    released
        The folder is what the viewer let out: flat, a part of the files.

    Raises
    ------
    InputError, UnreadableError
        The record, the trust file or the rule set cannot be read, or the record is of a version this program does not
        know (exit 2). Everything else is a failed check in the result.
    """
    if isinstance(trust, (str, Path)):
        _refuse_inside(Path(trust), Path(path))
        trust = load_trust(trust)
    source = open_source(Path(path), released=released)
    moment = (at or datetime.now(UTC)).astimezone(UTC)
    run = _Run(source, trust, moment, _name(rules), _name(profile), _name(ledger))
    if ENVELOPE not in source.names:
        raise UnreadableError(
            "there is no certificate here.",
            path=Path(path) / ENVELOPE,
            next_step="certify the folder, or approve the certificate's record in the viewer too.",
        )
    try:
        envelope = parse_envelope(source.read(ENVELOPE, limit=2 * MAX_BYTES))
    except CertificateError as error:
        run.checks.append(Check("envelope", "fail", error.what))
        return VerifyResult(tuple(run.checks))
    if not envelope.signed:
        run.checks.append(Check("envelope", "fail", "nobody has signed: this is the placeholder `finalise` leaves"))
        return VerifyResult(tuple(run.checks))
    return _verify_signed(run, envelope)


def _verify_signed(run: _Run, envelope: ParsedEnvelope) -> VerifyResult:
    try:
        statement = read_canonical(envelope.payload, path=ENVELOPE, what="statement")
        check_type(statement)
        problems = schema_problems(statement)
        statement = statement if problems else in_full(statement)
    except CertificateError as error:
        problems, statement = [error.what], None
    run.add("envelope", [] if statement is not None else problems, "canonical JSON and base64, one in-toto statement")
    if statement is None:
        return VerifyResult(tuple(run.checks))
    if not run.add("schema", problems, f"{statement['predicateType']}"):
        return VerifyResult(tuple(run.checks))
    predicate = statement["predicate"]
    signed_at = datetime.fromisoformat(predicate["made"]["time"])
    node = predicate["made"]["node"]
    good, wrong = check_signatures(envelope, run.trust, node, (signed_at, run.at))
    signers = tuple((key.keyid, key.role) for key in good)
    run.add("signatures", wrong, f"{', '.join(f'{r} {k[:16]}' for k, r in signers)} at node {node}")
    run.add("time", _time_problems(signed_at, run.at), f"signed {predicate['made']['time']}")
    checks: list[Callable[[], None]] = [
        lambda: _policy(run, predicate),
        lambda: _waivers(run, predicate, signed_at),
        lambda: _files(run, statement),
        lambda: _ledger(run, predicate, node),
        lambda: _review(run, predicate),
        lambda: _decisions(run, predicate),
    ]
    for check in checks:
        check()
    return VerifyResult(tuple(run.checks), statement, signers, files.held(run.source, statement))


def _time_problems(signed_at: datetime, at: datetime) -> list[str]:
    if signed_at > at + CLOCK_SKEW:
        return [f"it says it was signed on {signed_at:%Y-%m-%d %H:%M} UTC, which is later than the day of this check"]
    return []


def _policy(run: _Run, predicate: Mapping[str, Any]) -> None:
    policy = predicate["policy"]
    profile = f", layer {policy['profile']['id']}" if policy["profile"] else ""
    name = f"{policy['id']} {policy['version']}{draft_mark(policy)}{profile}"
    if run.rules is None and run.profile is None:
        run.skip("policy", f"{name}, sha256 {policy['sha256'][:16]}…: give --rules to compare it with a rule set")
        return

    given = load_ruleset(run.rules, profile=run.profile, seals=committee(run.trust, run.at))
    same = (given.id, given.version, given.sha256) == (policy["id"], policy["version"], policy["sha256"])
    problems = [] if same else [f"the record names {name}, not the rule set given ({given.id} {given.version})"]
    site = None if given.profile is None else {"id": given.profile.id, "sha256": given.profile.sha256}
    if run.profile is not None and site != policy["profile"]:
        problems.append("the record does not name the layer given")
    run.add("policy", problems, f"{name} is the rule set given")


def _waivers(run: _Run, predicate: Mapping[str, Any], signed_at: datetime) -> None:
    waivers = predicate["policy"]["waivers"]
    days = (signed_at.date(), run.at.date())
    problems = [
        f"waiver {w['id']} of {w['rule']} ended on {w['ends']}"
        for w in waivers
        if any(datetime.fromisoformat(w["ends"]).date() < day for day in days)
    ]
    text = "; ".join(f"{w['id']} of {w['rule']} until {w['ends']}" for w in waivers)
    run.add("waivers", problems, text or "none")


def _files(run: _Run, statement: Mapping[str, Any]) -> None:
    for name, state, problems, text in files.check_files(run.source, statement):
        if state == "ok":
            run.add(name, problems, text)
        else:
            run.checks.append(Check(name, state, text))


def _ledger(run: _Run, predicate: Mapping[str, Any], node: str) -> None:
    block = predicate["privacy"]["ledger"]
    pinned = block is not None and run.trust.pins_ledger(str(block["id"]), str(block["head_key"]), node)
    claims = predicate["privacy"]["label"] == "formal" or predicate["verdict"] == "pass"
    if claims and not pinned:
        run.add("ledger pin", ["the record says formal or pass, and this trust file does not pin its ledger"], "")
    elif pinned:
        run.add("ledger pin", [], f"ledger {block['id'][:16]} is pinned in the trust file")
    else:
        run.skip("ledger pin", "no pinned ledger stands behind this record, and it claims neither formal nor pass")
    if run.ledger is None:
        run.skip("ledger", "no --ledger given, so the head it names was not looked up")
        return
    run.add(
        "ledger", ledger_problems(run.ledger, block), "the head it names is in the ledger given, and its chain holds"
    )


def ledger_problems(url: str, block: Mapping[str, Any] | None) -> list[str]:
    """Why a ledger does not stand behind the `privacy.ledger` block of a record."""
    if block is None:
        return ["the record names no ledger, and one was given"]

    try:
        ledger = open_ledger(url, create=False, read_only=True)
        if (ledger.id, ledger.head_key) != (block["id"], block["head_key"]):
            return ["the record names another ledger"]
        report = ledger.verify([str(block["head"])] if block["head"] else [])
    except SacroDeltabError as error:
        return [f"the ledger given cannot be used: {error.what}"]
    return [str(problem) for problem in report.problems[:3]]


def _review(run: _Run, predicate: Mapping[str, Any]) -> None:
    inventory = run.source.inventory
    if inventory is None or inventory.inside is None:
        answers = predicate["people"]["answers"]
        if answers:
            who = ", ".join(sorted({str(a["role"]) for a in answers}))
            run.checks.append(Check("review", "note", f"the record carries {len(answers)} decision(s) by {who}"))
        else:
            run.skip("review", "reviews are kept in inside/, which is not here")
        return
    if any(c.name == "inside" and c.state == "fail" for c in run.checks):
        run.skip("review", "inside/ is not as certified, so its reviews were not read")
        return
    problems, notes = review_lines(
        inventory, predicate, lambda name: run.source.digests(name).sha256, run.trust, run.at
    )
    run.add("review", problems, "; ".join(notes))


def _decisions(run: _Run, predicate: Mapping[str, Any]) -> None:
    """Every output that is here, or was asked for, must have been accepted with all its files, once anybody decided."""
    inventory = run.source.inventory
    decisions = decisions_of(predicate)
    if inventory is not None and all(c.state != "fail" for c in run.checks):
        decisions = decisions_in(inventory, predicate, run.trust, run.at)
    outputs = files.let_out(run.source, predicate) if run.source.released else asked(predicate)
    problems = not_accepted(outputs, decisions) if decisions.begun else []
    if run.source.released:
        failed = [shown(str(o["name"])) for o in outputs if o["verdict"] == "fail"]
        problems += [f"the certificate says fail of {', '.join(failed)}"] if failed else []
    if not outputs:
        problems.append(NOTHING)
    if problems or decisions.begun:
        run.add(DECISIONS, problems, f"all {len(outputs)} outputs accepted, each with all its files")
    else:
        run.skip(DECISIONS, "nobody has signed a decision: what the viewer approves is approved there alone")


def _refuse_inside(trust: Path, path: Path) -> None:
    if trust.resolve().is_relative_to(path.resolve()):
        raise InputError(
            "the trust file lies in the folder it is to judge.",
            path=trust,
            next_step="use the TRE's own trust file; one that came with the release proves nothing.",
        )


def _name(value: Path | str | None) -> str | None:
    return None if value is None else str(value)


def _join(problems: list[str] | tuple[str, ...]) -> str:
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more
