"""The last step of `finalise`: the unsigned statement, the placeholder envelope, and what belongs to them.

Order, and why (each step needs the one before; nothing is circular):

1. `new_certificate_id()`; every record's `properties` carry this id and the policy digest, never a digest of the
   certificate.
2. ACRO copies the outputs and writes config.json and checksums/; the session writes results.json and inside/
   (evidence, attack report, ACRO's own summary). Nothing in these is touched again.
3. `seal_folder(folder, …)`: salt, second statement under inside/, then `certificate.json` over everything else, the
   empty envelope with the text form of it that the viewer shows, then the checksum files of the three.

`certificate.json` is never rewritten after that. `certify` puts a statement of its own, made from its own check, into
the envelope, and `certificate.json` is one of the files that statement is about.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.canonical import canonical_json
from ..base.digests import sha256_hex
from ..base.opening import read_member
from ..judging.report import Report
from .inside import ensure_salt
from .layout import CHECKSUMS, ENVELOPE, INSIDE, SHOWN, STATEMENT
from .shown import shown_envelope
from .statement import PAYLOAD_TYPE, Context, build, make_context, statement_bytes

INSIDE_STATEMENT = "statement-inside.json"


def new_certificate_id() -> str:
    """A random id (UUID 4) for one release."""
    return str(uuid.uuid4())


def placeholder_envelope() -> bytes:
    """Bytes of an envelope that nobody has signed."""
    return canonical_json({"payload": "", "payloadType": PAYLOAD_TYPE, "signatures": []})


def seal_folder(
    folder: Path,
    *,
    evidence: Mapping[str, Any] | None = None,
    ruleset: Any = None,
    certificate_id: str | None = None,
    node: str = "local",
    waivers: Sequence[Any] = (),
) -> Path:
    """Write the unsigned statement of a finished folder; the last thing `finalise` does.

    Parameters
    ----------
    folder
        The folder as ACRO and the session wrote it, `inside/` included; usually a temporary one that is renamed after.
    evidence
        The decisions it records count: `check` can make the same statement again from the folder alone
        (`statement.departures`).
    ruleset
        The session's rule set (or a `Policy`).
    certificate_id
        The id the records carry.

    Returns
    -------
    Path
        `folder/certificate.json`.
    """
    context = make_context(ruleset, certificate_id, node, waivers, evidence)
    (folder / INSIDE).mkdir(exist_ok=True)
    ensure_salt(folder / INSIDE)
    write_inside_statement(folder, folder / INSIDE / INSIDE_STATEMENT, None, evidence, context)
    outer = build(folder, None, evidence, context)
    path = folder / STATEMENT
    path.write_bytes(statement_bytes(outer))
    if not (folder / ENVELOPE).exists():
        (folder / ENVELOPE).write_bytes(placeholder_envelope())
    (folder / SHOWN).write_bytes(shown_envelope((folder / ENVELOPE).read_bytes()))
    (folder / CHECKSUMS).mkdir(exist_ok=True)
    for name in (STATEMENT, ENVELOPE, SHOWN):
        write_checksum(folder, name)
    return path


def write_inside_statement(
    folder: Path,
    path: Path,
    report: Report | None,
    evidence: Mapping[str, Any] | None,
    context: Context,
) -> dict[str, Any]:
    """Write the statement that stays inside. It has no digest of inside/ in it; the outer one covers it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    inner = build(folder, report, evidence, context, inside=True)
    path.write_bytes(canonical_json(inner))
    return inner


def write_checksum(folder: Path, name: str) -> None:
    """Write `checksums/NAME.txt` the way ACRO does: SHA-256 in hex and nothing else."""
    digest = sha256_hex(read_member(folder / name))
    (folder / CHECKSUMS / f"{name}.txt").write_text(digest, encoding="utf-8", newline="")
