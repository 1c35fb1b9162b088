"""The parts of a session folder that are never outputs: checksums, ACRO's thresholds, the listing itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base.digests import sha256_hex
from ..base.errors import UnreadableError
from ..base.findings import Effect, Finding, note
from ..base.strict import parse
from ..inert.limits import Limits
from ..inert.snapshot import Snapshot, take
from .folder import CERTIFICATES, STRUCTURE, STRUCTURE_FOLDERS, Entry
from .records import Record

# ACRO's word, the rule set's parameter, which of two numbers is stricter
_THRESHOLDS = (
    ("safe_threshold", "min_n", max),
    ("safe_dof_threshold", "min_residual_dof", max),
    ("safe_nk_n", "nk_n", max),
    ("safe_nk_k", "nk_k", min),
    ("safe_pratio_p", "dominance_share", min),
    ("safe_round_base", "round_n_base", max),
)


def read_part(root: Path, name: str, limits: Limits) -> Snapshot:
    """One file of the folder, taken once."""
    return take(root / name, name, limits)


def checksum_findings(
    root: Path, entries: list[Entry], listed: Mapping[str, Snapshot], limits: Limits
) -> Iterator[Finding]:
    """ACRO's checksums: missing, wrong, or of files that are not there. A right one proves nothing."""
    have = {
        entry.name.removeprefix("checksums/") for entry in entries if entry.top == "checksums" and entry.kind == "file"
    }
    for name, snapshot in listed.items():
        file = f"{name}.txt"
        if name in CERTIFICATES | STRUCTURE and file not in have:
            continue
        if file not in have:
            yield note("checksum", Effect.BLOCK, f"{name} has no checksum; the viewer says it was modified.")
            continue
        try:
            written = read_part(root, f"checksums/{file}", limits).data
        except UnreadableError as error:
            yield note("checksum", Effect.BLOCK, f"the checksum of {name} cannot be read: {error.what}.")
            continue
        if written != snapshot.sha256.encode():
            yield note("checksum", Effect.BLOCK, f"{name} was changed after the session wrote its checksum.")
    below = {(entry.kind, entry.name.count("/")) for entry in entries if entry.name.startswith("checksums/")}
    if below - {("file", 1)}:
        yield note("checksum", Effect.BLOCK, "checksums/ holds what is no checksum.")
    for file in sorted(have):
        name = file.removesuffix(".txt")
        if name not in listed and name not in STRUCTURE:
            yield note("checksum", Effect.REVIEW, f"checksums/{file} belongs to no listed file.")


def threshold_findings(config: Any, parameters: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Finding]]:
    """ACRO's thresholds beside the rule set's: the stricter decides, both are printed."""
    if not isinstance(config, dict):
        return [], [
            note("config", Effect.REVIEW, "config.json holds no ACRO settings; only the rule set's numbers were used.")
        ]
    rows, findings = [], []
    for theirs, ours, stricter in _THRESHOLDS:
        if theirs not in config or ours not in parameters:
            continue
        acro, rule = config[theirs], parameters[ours]
        if not isinstance(acro, int | float) or isinstance(acro, bool):
            findings.append(note("config", Effect.REVIEW, f"config.json: {theirs} is not a number."))
            continue
        decides = stricter(acro, rule)
        rows.append(
            {
                "name": theirs,
                "acro": acro,
                "rule_set": rule,
                "decides": decides,
                "from": "rule set" if decides == rule else "ACRO",
            }
        )
    if config.get("zeros_are_disclosive") is False:
        findings.append(note("config", Effect.LABEL, "ACRO took zeros as harmless; the rule set does not."))
    if config.get("federated") is True:
        findings.append(
            note(
                "federated",
                Effect.BLOCK,
                "config.json says this was a federated ACRO session: its folder holds "
                "exact counts, sums and maxima without suppression.",
                next_step="Use `sacro-deltab aggregate` on certified node files instead.",
            )
        )
    return rows, findings


def read_json_part(root: Path, name: str, limits: Limits) -> tuple[Any, bytes, list[Finding]]:
    """A structural JSON file with its bytes, or what is wrong with it."""
    try:
        data = read_part(root, name, limits).data
        return parse(data, path=name, bounds=limits.json), data, []
    except UnreadableError as error:
        return (
            None,
            b"",
            [note("unreadable", Effect.BLOCK, f"{name}: {error.what}.", next_step="Finalise the session again.")],
        )


def unlisted_findings(entries: list[Entry], records: list[Record]) -> Iterator[Finding]:
    """Files nobody asked to release, files that are not there, `inside/` in a record."""
    listed = {ref.name for record in records for ref in record.files}
    present = {entry.name for entry in entries if entry.kind == "file"}
    known = STRUCTURE | CERTIFICATES | listed
    for entry in entries:
        if entry.kind == "folder":
            if "/" not in entry.name and entry.name not in STRUCTURE_FOLDERS:
                yield note(
                    "unlisted",
                    Effect.BLOCK,
                    f"{entry.name}/ is a folder no session writes.",
                    next_step="Take it out of the folder.",
                )
            continue
        if entry.top in STRUCTURE_FOLDERS or entry.name in known or entry.kind != "file":
            continue
        yield note(
            "unlisted",
            Effect.BLOCK,
            f"{entry.name} is listed in no record.",
            next_step="Take it out of the folder or release it through the session.",
        )
    for name in sorted(listed - present):
        yield note("missing-file", Effect.BLOCK, f"{name} is listed but is not in the folder.")


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return sha256_hex(data)


_INSIDE = re.compile(
    r"inside(/(evidence\.json|attack(-package)?\.json|salt|statement-inside\.json|session_summary\.(json|csv)"
    r"|certified(/(statement-inside\.json|certificate\.html))?"
    r"|review(/[a-z0-9]{1,12}-\d{4}\.(sealed|opened)\.dsse\.json)?))?"
)


def inside_findings(entries: list[Entry]) -> Iterator[Finding]:
    """Files of inside/ that no session, certificate or review writes: a name can carry what nobody judges."""
    strange = [entry.name for entry in entries if entry.top == "inside" and not _INSIDE.fullmatch(entry.name)]
    if strange:
        yield note(
            "inside",
            Effect.BLOCK,
            f"inside/ holds what no session writes ({len(strange)} entries).",
            next_step="Take it out of the folder.",
        )
