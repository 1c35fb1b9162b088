"""From candidate to ACRO record: judge, write files, validate, add, journal. Nothing half-done is left behind."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError, SacroDeltabError
from ..base.findings import Effect, Finding
from ..build.record import BROKEN, stub, summary, told_of
from ..build.record import record as built
from ..judging.judge import Judged, judge_output
from ..judging.shape import shaped
from ..measure.context import Context
from ..measure.mapped import mapped
from ..measure.numbers import with_output
from ..outputs.parameters import GIVE_DELTAS
from ..rules import decision_to_json, outside_findings
from ..rules.facts import Facts
from ..rules.types import Decision
from ..tables.solver import SolverError
from .acro_records import add_record, draft_of, validate_draft
from .entries import Candidate, Entry
from .header import header
from .history import history_facts, load_earlier
from .merging import merges
from .nearness import nearness
from .plugins import with_plugins
from .shape import refuse_hidden_text
from .state import config_changes, config_digest

if TYPE_CHECKING:
    from .core import SessionCore


def record(session: SessionCore, candidate: Candidate, *, preview: bool = False) -> tuple[Candidate, Entry]:
    """Judge a candidate and add it to the session; with `preview` nothing is added.

    A check that raises leaves a record with status fail, never none and never a pass.
    """
    notice_config(session)
    candidate = _unique_name(session, _plain_title(candidate))
    refuse_hidden_text(candidate.document, session.state.ids, session.ruleset.parameters)
    candidate = replace(candidate, facts=with_plugins(session.ruleset, candidate.document, candidate.facts))
    candidate = _with_moments(session, candidate)
    judged, notes = judge(session, candidate)
    entry = entry_of(session, candidate, judged, notes)
    candidate = _with_history(candidate, judged)
    if not preview:
        entry = _add(session, candidate, entry)
        if candidate.cells or candidate.moments:
            session.state.wanted[entry.name] = candidate
    return candidate, entry


def entry_of(session: SessionCore, candidate: Candidate, judged: Judged, notes: tuple[str, ...]) -> Entry:
    """The record of a judgement, without files."""
    document = judged.document
    told = told_of(outside_findings(judged.decision, session.ruleset))
    return Entry(
        name=candidate.document.name,
        type=candidate.document.type,
        title=candidate.document.title,
        status=judged.status,
        summary=summary(
            judged.status,
            told,
            rule_set=session.ruleset.name,
            marked="" if document is None else document.mark,
        ),
        kept_inside=document is None,
        facts=judged.facts,
        decision=decision_to_json(judged.decision, "inside"),
        told=tuple(told),
        document=document,
        raw=candidate.document,
        privacy=candidate.privacy,
        weights_sha256=candidate.weights_sha256,
        files=(),
        suppressed=tuple(sorted(judged.suppressed)),
        complementary=tuple(sorted(judged.complementary)),
        spends=() if candidate.receipt is None else (int(candidate.receipt.entry),),
        merges=_merges(session, candidate, judged),
        notes_inside=notes,
        n=candidate.n,
        made_of=candidate.made_of,
        would_sha256=judged.would_sha256,
    )


def _with_history(candidate: Candidate, judged: Judged) -> Candidate:
    """The candidate with what was found of earlier releases when it was asked for."""
    known = [fact for name, fact in judged.facts.facts.items() if name.startswith("linked_release.")]
    return replace(candidate, facts=candidate.facts.with_facts(*known))


def notice_config(session: SessionCore) -> None:
    """Compare `acro.config` with what it was when the session began; a change is recorded, never hidden."""
    from .core import OWN_KEY  # late: brings sqlalchemy

    now = config_digest(session.live.config, OWN_KEY)
    changes = config_changes(session.config, now)
    for change in changes:
        if change not in session.config_changes:
            session.config_changes.append(change)
            session.journal.write("config", {"change": change})


def judge(session: SessionCore, candidate: Candidate) -> tuple[Judged, tuple[str, ...]]:
    """The rules' judgement, the pairs with other outputs, and the shape of the document as a checker sees it."""

    try:
        load_earlier(session)
        near = nearness(session, candidate)
        history = history_facts(session, candidate, near)
        judged = judge_output(
            session.ruleset,
            candidate.facts.with_facts(*history.values()),
            candidate.document,
            table=Context(session.state.linked, candidate.cells, candidate.moments),
            waivers=session.waivers,
        )
        judged = shaped(session.ruleset, judged)
    except SacroDeltabError as error:
        if not isinstance(error, SolverError):
            raise
        return _broken(candidate, error), (f"the tables could not be judged: {error}",)
    except Exception as error:
        return _broken(candidate, error), (f"{type(error).__name__} while judging",)
    attacked = () if judged.audit is None else judged.audit.pairs
    advice = tuple(f"{', '.join(a.rules)}: {a.inside}" for a in judged.decision.advice)
    return judged, tuple(dict.fromkeys((*judged.problems, *attacked, *near.notes, *advice, *candidate.notes)))


def _with_moments(session: SessionCore, candidate: Candidate) -> Candidate:
    """What an output without cells says, in the session's variables."""
    if candidate.trace is not None:
        candidate = replace(candidate, moments=session.state.told(candidate.trace))
    return with_weights(session, candidate)


def with_weights(session: SessionCore, candidate: Candidate) -> Candidate:
    """What an output says besides once the weights are out: mean features of a group are its mean delta."""
    state = session.state
    weights = state.weights_out or any(e.type in GIVE_DELTAS and not e.kept_inside for e in session.entries)
    traces = [t for t in state.traces if t.sums and t.output != candidate.document.name]
    mine = {c.variable for c in candidate.cells if c.variable is not None and c.statistic is not None}
    if candidate.trace is not None and candidate.trace.sums:
        mine |= set(state.linked.variables())
        traces.append(candidate.trace)
    if not weights or not traces or not mine:
        return candidate
    known = {(m.variables, m.members.tobytes()) for m in candidate.moments}
    more = [
        moment
        for variable in sorted(mine)
        for moment in mapped(candidate.document.name, state.book.values[variable], variable, traces)
        if (moment.variables, moment.members.tobytes()) not in known
    ]
    return replace(candidate, moments=(*candidate.moments, *more))


def _broken(candidate: Candidate, error: Exception) -> Judged:
    finding = Finding(
        rules=("check/broken",),
        target="output",
        effect=Effect.BLOCK,
        inside=f"A check raised {type(error).__name__}.",
        outside=BROKEN,
        next_step="Report this to the maintainers with the session's journal.",
    )
    decision = Decision(candidate.document.name, candidate.document.type, Effect.BLOCK, (finding,), (), (), (), ())
    return Judged(decision, None, candidate.facts)


def _add(session: SessionCore, candidate: Candidate, entry: Entry) -> Entry:
    done = _written(session, candidate, entry)
    session.entries.append(done)
    session.went_along.discard(done.name)
    if not done.kept_inside:
        session.state.linked.publish(candidate.cells, done.suppressed, done.complementary, candidate.moments)
    if candidate.trace is not None:
        session.state.traces.append(candidate.trace)
    return done


def revise(session: SessionCore, old: Entry, candidate: Candidate, judged: Judged, notes: tuple[str, ...]) -> Entry:
    """Put another judgement of an output in the place of the one that stands, in the records too."""
    results = session.live.results
    kept = results.results.pop(old.name)
    place = session.entries.index(old)
    session.entries.remove(old)
    session.remembered.discard(old.name)
    for name in old.files:
        (session.journal.files / name).unlink(missing_ok=True)
    try:
        done = _written(session, candidate, entry_of(session, candidate, judged, notes))
    except BaseException:
        results.results[old.name] = kept
        raise
    session.entries.insert(place, done)
    return done


def _written(session: SessionCore, candidate: Candidate, entry: Entry) -> Entry:
    """Files, journal and ACRO record of one output."""
    staged: list[Any] = []
    journalled = False
    try:
        for name, body in _bodies(entry, candidate):
            staged.append(session.journal.stage(name, body))
        done = replace(entry, files=tuple(path.name for path in staged))
        draft = draft_of(built(done.outside, done.document, header(session)), session.journal.files)
        taken = [name for other in session.entries for name in other.files]
        validate_draft(draft, taken=taken)
        _keep_values(session, candidate)
        trace = None if candidate.trace is None else candidate.trace.to_json()
        session.journal.write("output", {"entry": done.to_journal(), "cells": _cells_json(candidate), "trace": trace})
        journalled = True
        add_record(session.live, draft)
        return done
    except BaseException:
        for path in staged:
            path.unlink(missing_ok=True)
        if journalled:
            session.journal.write("drop", {"name": entry.name})
        raise


def _bodies(entry: Entry, candidate: Candidate) -> list[tuple[str, bytes]]:
    if entry.document is None:
        return [(f"{entry.name}.csv", stub(entry.outside))]
    if candidate.picture is not None:
        return [(f"{entry.name}.png", candidate.picture)]
    return [
        (f"{entry.name}.csv", entry.document.to_csv().encode("utf-8")),
        (f"{entry.name}.json", entry.document.to_json().encode("utf-8")),
    ]


def _merges(session: SessionCore, candidate: Candidate, judged: Judged) -> tuple[str, ...]:
    if not judged.withheld:
        return candidate.advice if judged.document is None else ()

    return merges(session, candidate)


def _plain_title(candidate: Candidate) -> Candidate:
    """A title in plain digits and one line (β₁ becomes β1): text that hides digits is never let through."""

    title = candidate.document.title
    if not isinstance(title, str):
        raise InputError("a title must be text", next_step="Give another title=.")
    text = "".join(unicodedata.normalize("NFKC", c) if c.isdigit() else c for c in title)
    text = " ".join(unicodedata.normalize("NFC", text).split())
    strange = any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text)
    if not text or "<" in text or len(text) > 300 or strange:
        raise InputError("a title must be one line of plain text without '<'", next_step="Give another title=.")
    return replace(candidate, document=replace(candidate.document, title=text))


def free_name(session: SessionCore, wanted: str) -> str:
    """The name, with a number where another output has it: no file ever replaces another."""
    taken = {entry.name for entry in session.entries}
    name, number = wanted, 2
    while name in taken:
        name = f"{wanted[:76]}_{number}"
        number += 1
    if number > 1000:
        raise InputError("too many outputs of one name", next_step="Give name=.")
    return name


def _unique_name(session: SessionCore, candidate: Candidate) -> Candidate:
    name = free_name(session, candidate.document.name)
    if name == candidate.document.name:
        return candidate
    facts = candidate.facts
    return replace(
        candidate,
        document=replace(candidate.document, name=name),
        facts=Facts(name, facts.output_type, facts.facts, facts.parts),
        cells=with_output(candidate.cells, name),
        trace=None if candidate.trace is None else replace(candidate.trace, output=name),
    )


def _keep_values(session: SessionCore, candidate: Candidate) -> None:
    """Per-person values behind printed cells, for a resumed session (working folder only)."""

    try:
        for name in {cell.variable for cell in candidate.cells if cell.variable is not None}:
            np.save(session.journal.folder / f"{name}.npy", session.state.linked.values[name], allow_pickle=False)
        if candidate.trace is not None:
            candidate.trace.save(session.journal.folder)
    except OSError as error:
        raise InputError(
            f"the session's working folder cannot be written ({error.strerror})",
            path=session.journal.folder,
            next_step="Free some space, then repeat the last step.",
        ) from error


def _cells_json(candidate: Candidate) -> list[dict[str, Any]]:
    """The cells with their members, so that a resumed session can attack them (working folder only)."""
    return [
        {
            "output": c.output,
            "key": c.key,
            "members": [int(m) for m in c.members],
            "role": c.role,
            "variable": c.variable,
            "statistic": c.statistic,
            "shows_n": c.shows_n,
            "any_rounded": c.any_rounded,
            "structural": c.structural,
        }
        for c in candidate.cells
    ]
