"""Does noise count? Only through a ledger that the TRE pinned, whole, and closed by the digest of these very bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.digests import sha256_hex
from ..base.errors import SacroDeltabError, UnreadableError
from ..base.findings import Effect, Finding, note
from ..base.strict import parse
from ..inert.snapshot import Snapshot
from ..judging.evidence import statement_digest, statement_name

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..rules.facts import Facts

_ASK = ("Was the noise drawn as the record says? Nothing here proves it.",)


@dataclass
class LedgerView:
    """What a pinned, verified ledger says about the files of one folder.

    `counts` is False whenever any condition fails; then no noise is formal and `ledger.pinned` is false.
    """

    counts: bool = False
    findings: list[Finding] = field(default_factory=list)
    ledger: Ledger | None = None
    # (file name, digest) → the spends it closes: two trainings on one basis write one public centre
    closed: dict[tuple[str | None, str], set[int]] = field(default_factory=dict)
    spends: dict[int, Mapping[str, Any]] = field(default_factory=dict)  # what each spend paid for
    partitions: dict[int, str | None] = field(default_factory=dict)  # whose budget each spend was
    protected: set[str | None] = field(default_factory=set)  # partitions with a spend under add_remove
    registered: set[str | None] = field(default_factory=set)  # partitions with a session of registered people
    people: dict[str | None, set[str]] = field(default_factory=dict)  # partition → digests of its sets of people

    def protects_n(self, cohort: str, unit: str) -> bool:
        """Whether a release under add_remove, which protects N, was paid for on this cohort (any, where unreadable)."""
        from ..ledger.canonical import partition_key  # late: brings sqlalchemy

        try:
            return partition_key(cohort, unit) in self.protected
        except SacroDeltabError:
            return bool(self.protected)

    def knows_people(self, cohort: str, unit: str) -> bool:
        """Whether a session of this cohort was held on people whom TRE staff had registered."""
        from ..ledger.canonical import partition_key  # late: brings sqlalchemy

        try:
            return partition_key(cohort, unit) in self.registered
        except SacroDeltabError:
            return False

    def knows_columns(self, cohort: str, unit: str) -> bool:
        """Whether the TRE registered columns of this cohort, with which those of an output were compared. True also
        where it registered nobody, which is asked about by itself (FB-19)."""
        from ..ledger.canonical import partition_key  # late: brings sqlalchemy
        from ..ledger.register import has_columns, latest

        if self.ledger is None:
            return True
        with self.ledger.store.read() as connection:
            row = latest(connection, partition_key(cohort, unit))
        return row is None or has_columns(row.columns)

    def to_json(self) -> dict[str, Any] | None:
        """For the report's `privacy`."""
        if self.ledger is None:
            return None
        return {"id": self.ledger.id, "head": self.ledger.head, "pinned": self.ledger.pinned, "counts": self.counts}


def pins(trust: Any, ruleset: Any) -> list[Mapping[str, str]]:
    """Ledgers that the trust file and the layers pin."""
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
                    Effect.LABEL,
                    "A ledger was given, but no trust file or layer pins one: it counts for nothing.",
                    next_step="Give --trust FILE or --layer FILE.",
                )
            )
        return view
    from ..ledger import open_ledger  # late: brings sqlalchemy

    try:
        view.ledger = open_ledger(url, create=False, pins=pinned, read_only=True)
        report = view.ledger.verify()
    except UnreadableError:
        raise  # no ledger but a pipe, a device or a folder: the command was given the wrong path
    except SacroDeltabError as error:
        view.findings.append(
            note(
                "ledger",
                Effect.BLOCK if named else Effect.LABEL,
                f"The ledger cannot be used: {error.what}.",
                next_step=error.next_step,
            )
        )
        view.ledger = None
        return view
    if not view.ledger.pinned:
        view.findings.append(
            note("ledger", Effect.LABEL, "This ledger is not the one that the TRE pinned; it counts for nothing.")
        )
        return view
    if not report.ok:
        view.findings.append(
            note(
                "ledger",
                Effect.BLOCK,
                f"The pinned ledger does not hold: {report.problems[0]}.",
                next_step="Run `sacro-deltab ledger verify`.",
            )
        )
        return view
    view.counts = True
    for entry in view.ledger.history():
        if entry.kind == "spend":
            view.spends[entry.seq] = parse(entry.body)
            view.partitions[entry.seq] = entry.partition
            if view.spends[entry.seq].get("adjacency") == "add_remove":
                view.protected.add(entry.partition)
        if entry.kind == "cohort":
            body = parse(entry.body)
            view.people.setdefault(entry.partition, set()).add(str(body["set"]))
            if body.get("registered"):
                view.registered.add(entry.partition)
        if entry.kind == "close" and entry.ref is not None:
            body = parse(entry.body)
            if "files" not in body:  # closed with one digest: one file, whatever its name
                view.closed.setdefault((None, str(body["sha256"])), set()).add(entry.ref)
            for name, digest in body.get("files", {}).items():
                view.closed.setdefault((str(name), str(digest)), set()).add(entry.ref)
    return view


def spend_of(view: LedgerView, files: Iterable[Snapshot], statement: Mapping[str, Any] | None) -> int | None:
    """Number of the spend whose closing entry names exactly these bytes under these names, or None.

    Every file of an output must be closed, all by the same spend: bytes of a noisy release under another name, or a
    changed file beside an honest one, prove nothing. Where several spends closed the same bytes, it is the one that
    the output's own statement names.
    """
    if not view.counts:
        return None
    found = [
        view.closed.get((snapshot.name, snapshot.sha256)) or view.closed.get((None, snapshot.sha256), set())
        for snapshot in files
    ]
    common = set.intersection(*found) if found else set()
    named = ((statement or {}).get("ledger") or {}).get("entry")
    return named if named in common else min(common, default=None)


def statement_findings(view: LedgerView, spend: int | None, entry: Mapping[str, Any]) -> Iterable[Finding]:
    """The statement about the noise, which a certificate repeats: word for word the one that was closed with it."""
    if entry["privacy"] is None:
        return
    closed = view.closed.get((statement_name(str(entry["name"])), statement_digest(entry["privacy"])), set())
    if spend is not None and spend not in closed:
        yield _differs("The statement about the noise is not the one that the ledger was closed with.")
    applied = entry["facts"]["facts"].get("dp.applied", {}).get("value")
    if applied is not True:
        yield _differs("A statement about noise stands beside an output that was not noised.")


def cohort_findings(view: LedgerView, spend: int, made: Mapping[str, Any]) -> Iterable[Finding]:
    """The cohort that the evidence names is the one whose budget paid: it chooses which releases protect its N."""
    from ..ledger.canonical import partition_key  # late: brings sqlalchemy

    try:
        own: str | None = partition_key(str(made["cohort"]), made["unit"])
    except SacroDeltabError:
        own = None
    if own is None or view.partitions.get(spend) != own:
        yield _differs("The evidence names another cohort than the one whose budget paid for this output.")


def spend_findings(
    view: LedgerView, spend: int, facts: Facts, statement: Mapping[str, Any] | None, name: str
) -> Iterable[Finding]:
    """What the evidence says of the noise, held against the entry that paid for it."""
    paid = view.spends.get(spend)
    if paid is None:
        yield _differs(f"Entry {spend}, which these bytes close, is no spend.")
        return
    if name not in paid["outputs"] and paid["outputs"]:
        yield _differs(f"Entry {spend} of the ledger paid for other outputs than this one.")
    said = {key: None if (fact := facts.get(fact_name)) is None else fact.value for key, fact_name in _SAID.items()}
    rows: list[tuple[str, Any, Any]] = [(k, value, paid.get(k)) for k, value in said.items() if value is not None]
    rows += [(key, statement.get(key), paid.get(key)) for key in _STATED if statement is not None]
    for key, recorded, booked in rows:
        if not _equal(recorded, booked):
            yield _differs(f"{key} is recorded as {recorded}; entry {spend} of the ledger says {booked}.")
    totals = (("ledger.epsilon_total", "after", "epsilon"), ("ledger.earlier_model_exports", "before", "exports"))
    for fact_name, when, key in totals:
        fact = facts.get(fact_name)
        booked = float(paid[when][key])
        if fact is not None and isinstance(fact.value, int | float) and fact.value < booked - 1e-9:
            yield _differs(f"{fact_name} is recorded as {fact.value}; the ledger says at least {booked:g}.")


NOT_COMPARED = "whether the cohort's ids are those of the session: only the ledger's key can compare them"


def other_people(view: LedgerView, cohort: str, unit: str, ids: Sequence[str]) -> bool | None:
    """Whether the people of `--cohort` are others than those under whose ids the ledger paid; None where nothing here
    can compare them."""
    from ..ledger.canonical import partition_key  # late: brings sqlalchemy
    from ..ledger.people import packed

    if view.ledger is None or not view.counts:
        return None
    try:
        name = partition_key(cohort, unit)
        mine = sha256_hex(packed(view.ledger.fingerprints(ids)))
    except SacroDeltabError:
        return None
    return mine not in view.people.get(name, set())


_SAID = {"epsilon": "dp.epsilon", "delta_dp": "dp.delta", "adjacency": "dp.adjacency", "label": "dp.label"}
_STATED = ("epsilon", "delta_dp", "mu", "adjacency", "label", "mechanism")


def _equal(recorded: Any, booked: Any) -> bool:
    if isinstance(recorded, int | float) and isinstance(booked, int | float):
        return abs(recorded - booked) <= 1e-9 * max(1.0, abs(booked))
    return bool(recorded == booked)


def _differs(what: str) -> Finding:
    return note(
        "ledger-differs",
        Effect.BLOCK,
        what,
        outside="What is said of the noise is not what the ledger holds.",
        next_step="Run the session again; the ledger decides.",
    )


def unproved(what: str) -> Finding:
    """Noise that rests on the folder's own word."""
    return note(
        "noise-unproved",
        Effect.REVIEW,
        what,
        asks=_ASK,
        next_step="Check with --ledger URL and a trust file or layer that pins it.",
    )
