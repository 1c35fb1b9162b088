"""The zip that leaves: results.json, the files of accepted outputs and the certificate's text, and nothing else.

It is made here in one form, from a folder that is as certified, and verified before it is handed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.errors import CertificateError, InputError, RefusedError
from ..base.names import shown
from ..base.opening import read_member
from ..base.strict import DATA, parse
from ..base.verdicts import NOTHING
from ..base.writing import write_file
from ..build.picture import picture, plotted, source_of
from ..build.results import dumped
from ..kinds.plots import PLOT
from ..ledger.trust import Trust
from ..outputs.document import OutputDocument
from .decisions import ACCEPTED, WORDS, Decisions, asked, decisions_in, decisions_of
from .layout import ENVELOPE, RESULTS, SHOWN, Inventory, scan
from .verify import verify_path
from .viewer import as_packed
from .zips import release_bytes


@dataclass(frozen=True)
class Release:
    """What was packed. outputs: names of those that leave; left: name of each other output → why it stays."""

    path: Path
    outputs: tuple[str, ...]
    left: Mapping[str, str]
    verdict: str


def write_release(folder: Path, trust: Trust, target: Path, *, now: datetime | None = None) -> Release:
    """Pack what was accepted.

    Where checkers have decided, their decisions count, and they must be in the certificate so that they travel along.
    Where nobody has, outputs of verdict `pass` are packed. An output of which the certificate says fail never is.

    Raises
    ------
    RefusedError
        Nothing may leave, a decision is still awaited, or the certificate does not carry the decisions.
    CertificateError
        The folder is not as certified.
    InputError
        `target` exists, or lies in the folder.
    """
    if target.exists() or target.is_symlink() or target.resolve().is_relative_to(folder.resolve()):
        raise InputError("the release's file exists, or lies in the folder it is made of.", path=target)
    moment = now or datetime.now(UTC)
    result = verify_path(folder, trust, at=moment)
    if not result.authentic or result.statement is None:
        raise CertificateError(f"the folder is not packed: {result.conclusion()}.", path=folder)
    predicate, inventory = result.statement["predicate"], scan(folder)
    left = _left(predicate, _decisions(inventory, predicate, trust, moment))
    outputs = [o for o in asked(predicate) if str(o["name"]) not in left]
    if not outputs:
        raise RefusedError(f"{NOTHING}: no output was accepted.", path=folder, next_step=_why(left))
    write_file(target, release_bytes(_files(inventory, predicate, outputs)), mode=0o644, new=True)
    again = verify_path(target, trust, at=moment)
    if not again.ok:
        target.unlink()
        raise CertificateError(f"the zip that was made does not verify: {again.conclusion()}.", path=target)
    return Release(target, tuple(str(o["name"]) for o in outputs), left, str(predicate["verdict"]))


def _decisions(inventory: Inventory, predicate: Mapping[str, Any], trust: Trust, at: datetime) -> Decisions:
    """The decisions, which the certificate must carry where there are any."""
    decisions, carried = decisions_in(inventory, predicate, trust, at), decisions_of(predicate)
    if not decisions.begun:
        return decisions
    open_ones = [decisions.told(o) for o in asked(predicate) if decisions.of(o) == "awaited"]
    if open_ones:
        raise RefusedError(f"undecided: {', '.join(open_ones)}.", next_step="let the checkers decide on every output.")
    if any(carried.of(o) != decisions.of(o) for o in asked(predicate)):
        raise RefusedError(
            "the certificate was made before the checkers decided.",
            path=inventory.folder,
            next_step="certify the folder again, so that the decisions travel with the release.",
        )
    return decisions


def _left(predicate: Mapping[str, Any], decisions: Decisions) -> dict[str, str]:
    """Outputs that stay, each with the reason."""
    left = {str(o["name"]): "kept inside" for o in predicate["outputs"] if o["kept_inside"]}
    for output in asked(predicate):
        outcome = decisions.of(output)
        if output["verdict"] == "fail":
            left[str(output["name"])] = "the certificate says fail"
        elif decisions.begun and outcome != ACCEPTED:
            left[str(output["name"])] = WORDS.get(outcome, outcome)
        elif not decisions.begun and output["verdict"] != "pass":
            left[str(output["name"])] = "nobody has signed a decision on it"
    return left


def _files(inventory: Inventory, predicate: Mapping[str, Any], outputs: list[Mapping[str, Any]]) -> dict[str, bytes]:
    """Names and bytes in their order: results.json with the records of these outputs, their files, the certificate."""
    value = packed_results(inventory, predicate)
    papers = {SHOWN, ENVELOPE}
    leaving = {str(name) for o in outputs for name in o["files"]} | papers
    records = {
        uid: record
        for uid, record in value["results"].items()
        if record["files"] and {str(f["name"]) for f in record["files"]} <= leaving
    }
    names = [str(f["name"]) for record in records.values() for f in record["files"]]
    if not papers & set(names):
        raise CertificateError("no record lists the certificate, so it would stay behind.", path=RESULTS)
    bodies = {name: read_member(inventory.root[name]) for name in names} | _drawn(inventory, outputs)
    return {RESULTS: dumped({**value, "results": records}), **bodies}


def _drawn(inventory: Inventory, outputs: list[Mapping[str, Any]]) -> dict[str, bytes]:
    """The pictures that leave, drawn now of the judged numbers in the folder: a picture there is a preview of them."""
    plots = {str(o["name"]) for o in outputs if o["type"] == PLOT}
    inside = inventory.inside or {}
    if plots and "evidence.json" not in inside:
        step = "release the folder where its inside/ is."
        raise CertificateError("pictures are drawn, and what they draw stands in inside/.", next_step=step)
    told = parse(read_member(inside["evidence.json"]), path="evidence.json", bounds=DATA)["outputs"] if plots else ()
    drawn: dict[str, bytes] = {}
    for entry in told:
        if entry["name"] in plots:
            (name,), source = entry["files"], f"{source_of(entry)}.json"
            numbers = OutputDocument.from_json(parse(read_member(inventory.root[source]), path=source, bounds=DATA))
            drawn[name] = picture(plotted(entry, numbers))
            if drawn[name] != read_member(inventory.root[name]):
                step = "release it where matplotlib has the version that the session had."
                raise CertificateError(f"{shown(name)} is not what is drawn of its numbers here.", next_step=step)
    return drawn


def packed_results(inventory: Inventory, predicate: Mapping[str, Any]) -> dict[str, Any]:
    """results.json as it leaves, with every record: nothing of the viewer's, nothing where somebody chose a text."""
    found = parse(read_member(inventory.root[RESULTS]), path=RESULTS, bounds=DATA)
    return as_packed(found, predicate["results"].get("blanked", {}))


def _why(left: Mapping[str, str]) -> str | None:
    reasons: dict[str, list[str]] = {}
    for name, why in left.items():
        reasons.setdefault(why, []).append(shown(name))
    return "; ".join(f"{why}: {', '.join(names)}" for why, names in reasons.items()) or None
