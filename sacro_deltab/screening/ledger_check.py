"""Does noise count? Only through a ledger that the TRE pinned, whole, and closed by the digest of these very bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SacroDeltabError
from .report import Noted, note
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..privacy.ledger import Ledger

_ASK = ("Was the noise drawn as the record says? Nothing here proves it.",)


@dataclass
class LedgerView:
    """What a pinned, verified ledger says about the files of one folder.

    `counts` is False whenever any condition fails; then no noise is formal and `ledger.pinned` is false.
    """

    counts: bool = False
    findings: list[Noted] = field(default_factory=list)
    ledger: Ledger | None = None
    closed: dict[str, int] = field(default_factory=dict)  # digest of a release or of one file → the spend it closes

    def to_json(self) -> dict[str, Any] | None:
        """For the report's `privacy`."""
        if self.ledger is None:
            return None
        return {"id": self.ledger.id, "head": self.ledger.head, "pinned": self.ledger.pinned, "counts": self.counts}


def pins(trust: Any, ruleset: Any) -> list[Mapping[str, str]]:
    """Ledgers that the trust file and the site profile pin."""
    found: list[Mapping[str, str]] = []
    if trust is not None:
        found += [{"id": pin.id, "head_key": pin.head_key} for pin in trust.ledgers]
    profile = ruleset.profile
    if profile is not None:
        found += [{"id": str(pin["id"]), "head_key": str(pin["head_key"])} for pin in profile.ledgers]
    return found


def open_view(url: str | Path | None, pinned: list[Mapping[str, str]], *, named: bool) -> LedgerView:
    """Open and verify a ledger. `named` says whether the user asked for it (then trouble is an error of the folder)."""
    view = LedgerView()
    if url is None or not pinned:
        if named and not pinned:
            view.findings.append(
                note(
                    "ledger",
                    "label",
                    "A ledger was given, but no trust file or profile pins one: it counts for nothing.",
                    next_step="Give --trust FILE or --profile FILE.",
                )
            )
        return view
    from ..privacy.ledger import open_ledger

    try:
        view.ledger = open_ledger(url, create=False, pins=pinned, read_only=True)
        report = view.ledger.verify()
    except SacroDeltabError as error:
        view.findings.append(
            note(
                "ledger",
                "block" if named else "label",
                f"The ledger cannot be used: {error.what}.",
                next_step=error.next_step,
            )
        )
        view.ledger = None
        return view
    if not view.ledger.pinned:
        view.findings.append(
            note("ledger", "label", "This ledger is not the one that the TRE pinned; it counts for nothing.")
        )
        return view
    if not report.ok:
        view.findings.append(
            note(
                "ledger",
                "block",
                f"The pinned ledger does not hold: {report.problems[0]}.",
                next_step="Run `sacro-deltab ledger verify`.",
            )
        )
        return view
    view.counts = True
    for entry in view.ledger.history():
        if entry.kind == "close" and entry.ref is not None:
            body = json.loads(entry.body)
            for digest in (body["sha256"], *body.get("files", {}).values()):
                view.closed.setdefault(str(digest), entry.ref)
    return view


def spend_of(view: LedgerView, files: Iterable[Snapshot]) -> int | None:
    """Number of the spend that a closing entry ties to exactly these released bytes, or None."""
    if not view.counts:
        return None
    from ..evidence import release_digest

    listed = list(files)
    whole = release_digest((snapshot.name, snapshot.data) for snapshot in listed)
    if whole in view.closed:
        return view.closed[whole]
    each = {view.closed.get(snapshot.sha256) for snapshot in listed}
    return each.pop() if len(each) == 1 else None


def unproved(what: str) -> Noted:
    """Noise that rests on the folder's own word."""
    return note(
        "noise-unproved",
        "review",
        what,
        asks=_ASK,
        next_step="Check with --ledger URL and a trust file or profile that pins it.",
    )
