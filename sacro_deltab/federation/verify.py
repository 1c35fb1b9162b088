"""Is a pooled folder as it was signed, and are these the node certificates it was made of?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.canonical import MAX_BYTES, read_canonical
from ..base.digests import digest_file
from ..base.errors import CertificateError, InputError, SacroDeltabError, UnreadableError
from ..base.names import shown
from ..base.opening import read_member
from ..base.verdicts import NOTHING
from ..certificate.envelope import check_signatures, read_envelope
from ..certificate.layout import ENVELOPE, STATEMENT
from ..certificate.sources import open_source
from ..certificate.statement import STATEMENT_TYPE, TYPE_ROOT
from ..certificate.verify import CLOCK_SKEW
from ..ledger.trust import Trust, load_trust

POOLED_TYPE = TYPE_ROOT + "pooled/v1"


def verify_pooled(
    folder: Path, trust: Trust | Path, *, materials: Sequence[Path] = (), at: datetime | None = None
) -> tuple[dict[str, Any] | None, list[str]]:
    """Statement and problems; no problem means authentic and complete.

    Parameters
    ----------
    folder
        A pooled folder that `aggregate --key` signed.
    trust
        Trust file that names the aggregator's key.
    materials
        Node folders, to compare their certificates with those the statement names.

    Raises
    ------
    InputError, UnreadableError
        There is no signed statement.
    """

    if isinstance(trust, Path):
        if trust.resolve().is_relative_to(folder.resolve()):
            raise InputError("the trust file lies in the folder it is to judge", path=trust)
        trust = load_trust(trust)
    if not (folder / ENVELOPE).is_file():
        raise UnreadableError("this pooled folder is not signed", path=folder / ENVELOPE,
                              next_step="aggregate with --key.")  # fmt: skip
    envelope = read_envelope(folder / ENVELOPE)
    statement = read_canonical(envelope.payload, path=ENVELOPE, what="statement")
    if not isinstance(statement, dict) or statement.get("_type") != STATEMENT_TYPE:
        raise CertificateError("the payload is not an in-toto Statement v1.", path=ENVELOPE)
    if statement.get("predicateType") != POOLED_TYPE:
        raise CertificateError(
            "this is not the certificate of a pooled folder; use `sacro-deltab verify`.", path=ENVELOPE
        )
    now = (at or datetime.now(UTC)).astimezone(UTC)
    try:
        made = statement["predicate"]["made"]
        signed_at = datetime.fromisoformat(made["time"])
        problems = check_signatures(envelope, trust, str(made["node"]), (signed_at, now))[1]
        if signed_at > now + CLOCK_SKEW:
            problems = [*problems, f"it says it was signed on {signed_at:%Y-%m-%d %H:%M} UTC, which is later than now"]
        if (folder / STATEMENT).is_file() and read_member(folder / STATEMENT, limit=MAX_BYTES) != envelope.payload:
            problems = [*problems, f"{STATEMENT} is not what was signed"]
        problems = [*problems, *_files(folder, statement), *_materials(materials, statement["predicate"])]
        problems = [*problems, *_decisions(statement["predicate"])]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CertificateError("the pooled statement is incomplete.", path=ENVELOPE) from error
    return statement, problems


def is_pooled(folder: Path) -> bool:
    """Whether a folder holds the signed statement of a pooling (authentic or not)."""
    try:
        statement = read_canonical(read_envelope(folder / ENVELOPE).payload, path=ENVELOPE, what="statement")
    except SacroDeltabError:
        return False
    return isinstance(statement, dict) and statement.get("predicateType") == POOLED_TYPE


def _decisions(predicate: dict[str, Any]) -> list[str]:
    """Outputs that no person let out of their node, or that are not to be released here; and a folder without any."""
    waiting = [(m["node"], m["undecided"]) for m in predicate["materials"] if m["undecided"]]
    problems = [f"undecided at {shown(str(node))}: {', '.join(map(shown, names))}" for node, names in waiting]
    failed = [shown(str(o["name"])) for o in predicate["outputs"] if o["verdict"] == "fail" and o["written"]]
    problems += [f"the certificate says fail of {', '.join(failed)}"] if failed else []
    return problems if any(o["written"] for o in predicate["outputs"]) else [*problems, NOTHING]


def _files(folder: Path, statement: dict[str, Any]) -> list[str]:
    subjects = {s["name"]: s["digest"] for s in statement["subject"]}
    here = {p.name: p for p in folder.iterdir() if p.name not in (STATEMENT, ENVELOPE)}
    problems = [f"{shown(name)} is missing" for name in sorted(subjects.keys() - here.keys())]
    problems += [f"{shown(name)} is not in the record" for name in sorted(here.keys() - subjects.keys())]
    for name in sorted(subjects.keys() & here.keys()):
        path = here[name]
        if path.is_symlink() or not path.is_file() or digest_file(path).to_json() != subjects[name]:
            problems.append(f"{shown(name)} was changed")
    return problems


def _materials(paths: Sequence[Path], predicate: dict[str, Any]) -> list[str]:

    known = {m["digest"]["sha256"]: m["node"] for m in predicate["materials"]}
    problems = []
    for path in paths:
        source = open_source(path)
        found = source.digests(ENVELOPE).sha256 if ENVELOPE in source.names else None
        if found not in known:
            problems.append(f"the certificate in {path.name} is none of those that were pooled")
    return problems
