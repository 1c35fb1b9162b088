"""`check_paths`: judge folders, files and archives; the one way in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from ..base.errors import InputError, SacroDeltabError, UnreadableError
from ..base.findings import Effect, note
from ..base.opening import MIB, read_once
from ..build.results import config_faults
from ..inert.content import Content
from ..inert.everyday import KINDS as EVERYDAY
from ..inert.limits import DEFAULT, Limits
from ..inert.reading import kind_of, read_content
from ..inert.snapshot import Snapshot, take
from ..judging.report import FileReport, Report, attempted, broke_off
from ..judging.said import read_said
from ..rules import RuleSet, load_waivers
from ..rules.judging import judging_ruleset
from .acro_folder import check_acro
from .context import Context
from .facts_file import read_facts
from .folder import CERTIFICATES, STRUCTURE_FOLDERS, Entry, list_folder, listing_findings
from .hidden_n import recovered_ns
from .known import Known
from .ledger_check import LedgerView, open_view, pins
from .recompute.cohort_check import read_cohort_facts
from .records import Record, parse_results
from .reviewed import before_the_viewer, viewer_findings
from .session_evidence import read_evidence_part
from .session_folder import check_session, is_special
from .session_state import Session
from .single import check_file
from .structure import checksum_findings, inside_findings, read_json_part, threshold_findings, unlisted_findings


def check_paths(
    paths: Iterable[str | Path],
    *,
    ruleset: RuleSet | str | Path | None = None,
    profile: str | Path | None = None,
    facts_file: str | Path | None = None,
    declare: str | Path | None = None,
    cohort: str | Path | None = None,
    trust: Any = None,
    ledger: str | Path | None = None,
    waivers: Sequence[Any] | str | Path | None = (),
    today: date | None = None,
    limits: Limits = DEFAULT,
) -> Report:
    """Judge everything named in `paths`.

    Parameters
    ----------
    paths
        Session folders, plain ACRO folders, other folders, archives, single files.
    ruleset, profile
        A loaded rule set, or what `rules.load_ruleset` takes. Never read from what is checked.
    facts_file
        What the TRE attests, now, about files without evidence or about outputs of a session.
    declare
        What the researcher declares now (role `researcher`): it fills in what a session was not told, and is held
        against what it was told.
    cohort
        A CSV, one row a person: facts are measured again from it.
    trust
        A trust file or a loaded `Trust`: pins ledgers.
    ledger
        URL or file of the ledger. Without it, `budget.db` beside the folder is tried when one is pinned.
    waivers
        Loaded waivers, or a file or folder of them; none by default.

    Raises
    ------
    InputError
        When a path does not exist or an option file cannot be used (exit 2).
    """
    context = _context(ruleset, profile, facts_file, cohort, trust, waivers, today, limits)
    if declare is not None:
        context.declared = read_said(declare, "researcher", context.ruleset)
    report = Report(context.rule_set_json())
    profile_info = context.ruleset.profile
    if profile_info is not None:
        report.declared += [
            {"name": k, "value": v, "by": f"attested by layer {profile_info.id}", "in": "profile", "simulated": False}
            for k, v in sorted(profile_info.attest.items())
        ]
    if facts_file is not None and trust is not None:
        report.declared += _signed(Path(facts_file), context, trust)
    listed = [Path(path) for path in paths]
    if not listed:
        raise InputError("nothing to check was named", next_step="Give a folder or files.")
    for path in listed:
        if not path.exists() and not path.is_symlink():
            raise InputError("there is no such file or folder", path=path)
        if not path.is_symlink() and not os.access(path, os.R_OK):
            raise UnreadableError("you may not read it", path=path, next_step="Ask for the right to read it.")
    singles = [path for path in listed if path.is_symlink() or not path.is_dir()]
    for path in listed:
        if path not in singles:
            report.extend(_check_folder(path, context, ledger), str(path))
    if context.facts is not None and context.facts.is_for_one and len({_stem(path) for path in listed}) > 1:
        raise InputError(
            "the facts speak of one output, but several were named",
            path=facts_file,
            next_step='Name the file each belongs to: {"files": {"delta_mean.csv": {...}}}.',
        )
    if singles:
        report.extend(_check_singles([(path, str(path)) for path in singles], context))
    if context.cohort is not None:
        report.cohort = {
            "n": context.cohort.n,
            "measured": context.cohort.measured,
            "not_measured": context.cohort.unmeasured,
        }
    return report


def _signed(facts_file: Path, context: Context, trust: Any) -> list[dict[str, Any]]:
    """What TRE staff say now and have signed, as reports show it first."""
    from ..certificate.law import attested_by  # late: brings sqlalchemy

    who = attested_by(facts_file, trust)
    default = None if context.facts is None else context.facts.default
    if who is None or default is None:
        return []
    about = {"by": f"attested and signed by {who}", "in": "attestation", "simulated": False}
    return [{"name": name, "value": value, **about} for name, value in sorted(default.facts.items())]


def _stem(path: Path) -> str:
    return path.name.rsplit(".", 1)[0]


def _context(
    ruleset: Any,
    profile: Any,
    facts_file: Any,
    cohort: Any,
    trust: Any,
    waivers: Any,
    today: date | None,
    limits: Limits,
) -> Context:
    from ..certificate.law import committee  # late: brings sqlalchemy

    if isinstance(trust, str | Path):
        from ..ledger.trust import load_trust  # late: brings sqlalchemy

        trust = load_trust(trust)
    seals = committee(trust)
    if ruleset is None or isinstance(ruleset, str | Path):
        ruleset = judging_ruleset(ruleset, profile=profile, seals=seals)
    elif profile is not None:
        raise InputError("layers are laid when the rule set is loaded, not after")
    if isinstance(waivers, str | Path):
        waivers = load_waivers(waivers, seals=seals)
    context = Context(
        ruleset=ruleset,
        waivers=tuple(waivers or ()),
        today=today,
        facts=read_facts(facts_file) if facts_file is not None else None,
        trust=trust,
        limits=limits,
    )
    if cohort is not None:
        context.cohort = read_cohort_facts(cohort, context.ruleset.parameters)
        context.known.add_ns([context.cohort.n])
        context.known.columns = context.cohort.file.sorted_columns()
    return context


# --- single files -----------------------------------------------------------------------------------------------------


_LEARNT_BYTES = 64 * MIB  # of all files together: what is learnt from is kept until it is judged


def _check_singles(files: list[tuple[Path, str]], context: Context) -> Report:
    report = Report(context.rule_set_json())
    taken, known = _learn(files, context)
    local = replace(context, known=known)
    for path, name in files:
        report.outputs += attempted(name, partial(_single, path, name, taken, local))
    return report


def _single(path: Path, name: str, taken: dict[str, Snapshot], context: Context) -> list[FileReport]:
    try:
        snapshot = taken.pop(name, None) or take(path, name, context.limits)
    except UnreadableError as error:
        refused = note("unreadable", Effect.BLOCK, f"Not read: {error.what}.", next_step=error.next_step)
        return [FileReport(name, findings=[refused])]
    return check_file(snapshot, context)


def _learn(files: list[tuple[Path, str]], context: Context) -> tuple[dict[str, Snapshot], Known]:
    """Numbers of people that the files together give away: one file's N unmasks another's vector.

    What was read here is what is judged later: each file is read once.
    """
    known = replace(context.known, ns=set(context.known.ns))
    taken: dict[str, Snapshot] = {}
    lengths: dict[int, set[str]] = {}
    left = _LEARNT_BYTES
    for path, name in files[:200]:
        try:
            if path.lstat().st_size > min(left, 8_000_000):
                continue
            taken[name] = snapshot = take(path, name, context.limits)
        except (UnreadableError, OSError):
            continue  # said where it is judged
        left -= len(snapshot.data)
        kind = kind_of(snapshot.data, name)
        content = Content(kind) if kind in EVERYDAY else read_content(snapshot, context.limits)
        known.add_ns(n for n, _ in recovered_ns(content, name.replace("\\", "/").rsplit("/", 1)[-1]))
        for info in content.arrays:
            if info.shape and info.shape[0] >= 20:
                lengths.setdefault(info.shape[0], set()).add(name)
    known.add_ns(length for length, names in lengths.items() if len(names) >= 2)
    return taken, known


# --- folders ----------------------------------------------------------------------------------------------------------


def _check_folder(root: Path, context: Context, ledger: str | Path | None) -> Report:
    report = Report(context.rule_set_json())
    try:
        entries = list_folder(root, context.limits)
    except UnreadableError as error:
        report.folder_findings.append(note("folder", Effect.BLOCK, f"{root.name}: {error.what}."))
        return report
    if not any(entry.kind == "file" for entry in entries) and not any(entry.kind == "link" for entry in entries):
        raise InputError("the folder holds no files", path=root)
    report.folder_findings += listing_findings(entries)
    names = {entry.name for entry in entries}
    if "evidence.json" in names:
        report.folder_findings.append(
            note(
                "federated",
                Effect.BLOCK,
                "This is a federated evidence folder: it holds exact counts, sums and maxima of each "
                "cell, without suppression.",
                next_step="Use `sacro-deltab aggregate` on certified node files instead.",
            )
        )
    if "results.json" not in names:
        if any(entry.top == "inside" for entry in entries):
            report.folder_findings.append(
                note("no-results", Effect.BLOCK, "There is an inside/ but no results.json: not a finished session.")
            )
        requests = [
            e.top for e in entries if e.kind == "file" and e.name.endswith("/results.json") and e.name.count("/") == 1
        ]
        for request in requests:  # a queue: each folder of it is a request of its own
            report.extend(_check_folder(root / request, context, ledger), f"{root}/{request}")
        loose = [e.name for e in entries if e.kind == "file" and ("/" not in e.name or e.top not in requests)]
        if loose:
            report.extend(
                _check_singles([(root / name, name) for name in loose], context), str(root) if requests else None
            )
        return report
    try:
        with read_once():
            _check_results_folder(root, entries, context, ledger, report)
    except SacroDeltabError:
        raise  # an option that cannot be used
    except Exception as error:  # another folder may still be judged
        report.folder_findings.append(broke_off(error))
    return report


def _check_results_folder(
    root: Path, entries: list[Entry], context: Context, ledger: str | Path | None, report: Report
) -> None:
    limits = context.limits
    found, as_found, faults = read_json_part(root, "results.json", limits)
    report.folder_findings += faults
    if faults:
        return
    value, data = before_the_viewer(found, as_found)
    records, faults = parse_results(value, limits)
    report.folder_findings += faults
    report.folder_findings += unlisted_findings(entries, records)
    files = _read_listed(root, records, entries, report, limits)
    if data != as_found and not faults:
        report.folder_findings += viewer_findings(value, as_found, files)
    listed = {**files, "results.json": Snapshot.of_bytes("results.json", data)}
    report.folder_findings += checksum_findings(root, entries, listed, limits)
    report.folder_findings += _foreign_json(entries, records)
    strict = context.min_n()
    config: Any = None
    config_data = b""
    if any(entry.name == "config.json" for entry in entries):
        config, config_data, faults = read_json_part(root, "config.json", limits)
        report.folder_findings += faults
    else:
        report.folder_findings.append(
            note("config", Effect.REVIEW, "There is no config.json: ACRO's thresholds are unknown.")
        )
    if value.get("config", config) != config:
        report.folder_findings.append(note("extra-keys", Effect.BLOCK, "`config` in results.json is not config.json."))
    if config is not None:
        report.thresholds, faults = threshold_findings(config, context.ruleset.parameters)
        report.folder_findings += faults
        strict = max([strict, *(int(row["decides"]) for row in report.thresholds if row["name"] == "safe_threshold")])
    ours = [record for record in records if record.is_ours]
    has_inside = any(entry.top == "inside" for entry in entries)
    session = Session(root, context, records, files, None, LedgerView(), strict, report, data)
    if ours or has_inside:
        report.folder_findings += inside_findings(entries)
        session.evidence, faults = read_evidence_part(root, entries, limits)
        report.folder_findings += faults
        session.view = _ledger_view(root, ledger, context)
        report.folder_findings += session.view.findings
        report.privacy = {"ledger": session.view.to_json(), "recorded": (session.evidence or {}).get("privacy")}
        check_session(session, config, config_data)
    elif config is not None:
        faults = [note("config", Effect.BLOCK, f"config.json: {f}.") for f in config_faults(config, config_data, None)]
        report.folder_findings += faults
    plain = [r for r in records if not r.is_ours and session.entry_of(r) is None and not _paper(r, has_inside, ours)]
    check_acro(report, plain, files, context, strict, n_protected=session.n_protected)


def _paper(record: Record, has_inside: bool, ours: list[Record]) -> bool:

    return bool(ours or has_inside) and is_special(record)


def _read_listed(
    root: Path, records: list[Record], entries: list[Entry], report: Report, limits: Limits
) -> dict[str, Snapshot]:
    present = {entry.name for entry in entries if entry.kind == "file"}
    files: dict[str, Snapshot] = {}
    listed = [ref.name for record in records for ref in record.files]
    for name in dict.fromkeys([*listed, *sorted(CERTIFICATES)]):
        if name in present:
            try:
                files[name] = take(root / name, name, limits)
            except UnreadableError as error:
                report.folder_findings.append(note("unreadable", Effect.BLOCK, f"{name}: {error.what}."))
    return files


def _foreign_json(entries: list[Entry], records: list[Record]) -> Iterable[Any]:
    """Other JSON at the top that the viewer opens while it looks for the session."""
    listed = CERTIFICATES | {ref.name for record in records for ref in record.files}
    for entry in entries:
        if entry.kind == "file" and "/" not in entry.name and entry.name.lower().endswith(".json"):
            if entry.name in listed or entry.top in STRUCTURE_FOLDERS or entry.name in ("results.json", "config.json"):
                continue
            yield note("foreign-json", Effect.BLOCK, f"{entry.name}: the viewer may take it for the session itself.")


def _ledger_view(root: Path, ledger: str | Path | None, context: Context) -> LedgerView:
    pinned = pins(context.trust, context.ruleset)
    if ledger is not None:
        return open_view(ledger, pinned, named=True)
    for candidate in (root.resolve().parent / "budget.db", Path("budget.db")):
        if pinned and candidate.is_file():
            return open_view(candidate, pinned, named=False)
    return LedgerView()
