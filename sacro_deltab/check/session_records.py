"""The fields of our own records: they leave with an approved output, seen or unseen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..judging.documents import _judge_text
from ..judging.record import suppressed_cells
from ..judging.report import FileReport, Noted, note
from ..outputs import OutputDocument
from .records import Record, chip
from .session_state import Session

_STUB_HEAD = "output,kept inside because\n"
_OWN_PROPERTIES = frozenset(
    {
        "method",
        "sacro_deltab",
        "certificate_id",
        "output_type",
        "rule_set",
        "session",
        "acro",
        "type",
        "label",
        "mitigation",
    }
)


def stub_faults(session: Session, record: Record) -> list[Noted] | None:
    """Faults of a stub (none when it is an honest one); None when the record holds something else."""
    if len(record.files) != 1:
        return None
    snapshot = session.files.get(record.files[0].name)
    if snapshot is None:
        return None
    text = snapshot.data[:4_000].decode("utf-8", "replace")
    if not text.startswith(_STUB_HEAD):
        return None
    rows = text.removeprefix(_STUB_HEAD)
    faults = list(_judge_text("the reason", rows.removesuffix("\n")))
    numbers = re.findall(r"\d+(?:\.\d+)?", rows)
    if rows.count("\n") != 1 or len(snapshot.data) > 2_500 or len(numbers) > 8 or any("." in n for n in numbers):
        faults.append(note("stub", "block", "The note of a withheld output holds more than one reason."))
    return faults


def record_texts(record: Record) -> Iterator[Noted]:
    """Fields that leave with an approved record and that nobody sees in the viewer."""
    for name, value in (("summary", record.summary), ("command", record.command)):
        yield from _judge_text(f"`{name}` of record {record.uid!r}", value)
    for text in record.raw.get("comments") or []:
        if isinstance(text, str):
            yield from _judge_text(f"a comment of record {record.uid!r}", text)
    if isinstance(record.raw.get("exception"), str):
        yield from _judge_text(f"`exception` of record {record.uid!r}", record.raw["exception"])
    strange = sorted(str(key) for key in set(record.properties) - _OWN_PROPERTIES)
    if strange:
        yield note("extra-keys", "block", f"record {record.uid!r}: properties nobody judges: {', '.join(strange[:5])}.")
    for key, held in record.properties.items():
        if isinstance(held, str):
            yield from _judge_text(f"property {key!r} of record {record.uid!r}", held)
        elif isinstance(held, dict | list):
            yield note("extra-keys", "block", f"record {record.uid!r}: property {key!r} holds more than a word.")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{5,15}(?:Z|[+-]\d\d:\d\d)?", str(record.raw.get("timestamp"))):
        yield note("record-form", "block", f"record {record.uid!r}: `timestamp` is no time.")
    if record.type != "custom" or len(record.uid) > 80:
        yield note("record-form", "block", f"record {record.uid!r} is not of the form the package writes.")
    yield from _judge_text("a record's uid", record.uid)
    fair = record.raw.get("fair")
    for value in fair.values() if isinstance(fair, dict) else ():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                yield from _judge_text(f"`fair` of record {record.uid!r}", text)
    for ref in record.files:
        summary = ref.sdc.get("summary", {})
        if set(ref.sdc) - {"summary", "cells"} or (summary not in ({}, {"suppressed": True}, {"suppressed": False})):
            yield note(
                "extra-keys",
                "block",
                f"record {record.uid!r}: `sdc` of {ref.name} says more than which cells are marked.",
            )
    for key in ("outcome", "fair"):
        inner = record.raw.get(key)
        if isinstance(inner, dict | list) and inner and _holds_numbers(inner):
            yield note(
                "extra-keys", "block", f"record {record.uid!r}: `{key}` holds numbers; it leaves with the record."
            )


def _holds_numbers(value: Any) -> bool:
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, int | float) and not isinstance(node, bool):
            return True
    return False


def record_faults(
    record: Record, entry: Mapping[str, Any], document: OutputDocument | None, shared: FileReport
) -> Iterator[Noted]:
    """Status, chip, red cells and texts of a record against evidence, document and verdict."""
    yield from record_texts(record)
    order = {"pass": 0, "review": 1, "fail": 2}
    if order.get(record.status, 0) < order[entry["status"]]:
        yield note(
            "status-edited",
            "block",
            f"results.json says {record.status}; the session's own evidence says {entry['status']}.",
            next_step="Finalise the session again; do not edit results.json.",
        )
    elif order.get(record.status, 0) < order[shared.verdict] and shared.verdict == "fail":
        yield note("status-believed", "block", f"results.json says {record.status}; the rules say {shared.verdict}.")
    if chip(record) != record.status:
        yield note(
            "summary", "block", "The viewer's chip does not show the record's status: `summary` must start with it."
        )
    if not record.is_ours:
        yield note("record-form", "review", "The record does not name the rule set it was made under.")
    cells: dict[str, Any] = {}
    for ref in record.files:
        cells = dict(ref.sdc.get("cells", {})) or cells
    expected = suppressed_cells(document) if document is not None else {}
    have = sorted(tuple(pair) for pairs in cells.values() for pair in pairs)
    want = sorted(tuple(pair) for pairs in expected.values() for pair in pairs)
    if have != want or len(cells) > 1:
        yield note(
            "red-cells",
            "block",
            "The cells the viewer paints red are not the marked ones, or tell why a cell is marked.",
            next_step="Finalise the session again.",
        )
