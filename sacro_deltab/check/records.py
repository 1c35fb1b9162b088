"""ACRO's results.json as evidence of what is asked to leave. Its statuses are printed, never believed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base.findings import Effect, Finding, note
from ..base.names import fold
from ..base.verdicts import VERDICTS
from ..build.results import TOOL
from ..inert.limits import DEFAULT, Limits
from .folder import bad_file_name

RECORD_KEYS = frozenset(
    {
        "uid",
        "status",
        "type",
        "properties",
        "files",
        "outcome",
        "command",
        "summary",
        "timestamp",
        "comments",
        "exception",
        "fair",
    }
)
TOP_KEYS = frozenset({"version", "tool", "results", "config"})


@dataclass(frozen=True)
class FileRef:
    """One file of a record."""

    name: str
    sdc: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """One record."""

    uid: str
    status: str
    type: str
    method: str | None
    properties: Mapping[str, Any]
    files: tuple[FileRef, ...]
    summary: str
    command: str
    raw: Mapping[str, Any]

    @property
    def is_ours(self) -> bool:
        """Whether it says that this package made it (a claim, like everything here)."""
        return isinstance(self.properties.get("sacro_deltab"), str)


def parse_results(data: Any, limits: Limits = DEFAULT) -> tuple[list[Record], list[Finding]]:
    """Records of a parsed results.json, and every fault of its form."""
    if not isinstance(data, dict) or not isinstance(data.get("results"), dict):
        return [], [
            note(
                "results-form",
                Effect.BLOCK,
                "results.json is not an ACRO session (no `results` object).",
                next_step="Finalise the session again.",
            )
        ]
    if len(data["results"]) > limits.records:
        what = f"results.json lists more than {limits.records} records, more than any session writes."
        return [], [note("results-form", Effect.BLOCK, what, next_step="Finalise in several sessions.")]
    findings = []
    version = data.get("version")
    if not isinstance(version, str) or not re.fullmatch(r"\d{1,2}\.\d{1,2}(\.\d{1,2})?", version) or version < "0.4":
        findings.append(note("results-form", Effect.BLOCK, "results.json states no version the viewer can open."))
    strange = sorted(str(key) for key in set(data) - TOP_KEYS)
    if strange:
        findings.append(
            note("extra-keys", Effect.BLOCK, f"results.json has entries nobody judges: {', '.join(strange[:5])}.")
        )
    tool = data.get("tool")
    if tool is not None and tool != {**TOOL, "version": version}:
        findings.append(note("extra-keys", Effect.BLOCK, "`tool` in results.json holds more than ACRO writes."))
    records = []
    for uid, entry in data["results"].items():
        record, found = _record(str(uid), entry)
        findings += found
        if record is not None:
            records.append(record)
    findings += list(_across(records))
    return records, findings


def _record(uid: str, entry: Any) -> tuple[Record | None, list[Finding]]:
    where = f"record {uid!r}"
    if not isinstance(entry, dict):
        return None, [note("record-form", Effect.BLOCK, f"{where} is not an object.")]
    findings = []
    strange = sorted(str(key) for key in set(entry) - RECORD_KEYS)
    if strange:
        findings.append(
            note("extra-keys", Effect.BLOCK, f"{where} has entries nobody judges: {', '.join(strange[:5])}.")
        )
    missing = sorted(RECORD_KEYS - set(entry) - {"fair"})
    if missing:
        findings.append(
            note("record-form", Effect.BLOCK, f"{where} lacks {', '.join(missing)}; the viewer stops on it.")
        )
    if entry.get("uid") != uid:
        findings.append(note("record-form", Effect.BLOCK, f"{where} carries another uid."))
    files = entry.get("files")
    refs: list[FileRef] = []
    if not isinstance(files, list) or not files:
        findings.append(
            note(
                "no-files",
                Effect.BLOCK,
                f"{where} lists no file: the viewer then forgets every status of the session.",
                next_step="Remove the record or add its file.",
            )
        )
    else:
        for item in files:
            ref, found = _file(where, item)
            findings += found
            if ref is not None:
                refs.append(ref)
    properties = entry.get("properties")
    if not isinstance(properties, dict):
        findings.append(note("record-form", Effect.BLOCK, f"{where}: `properties` is not an object."))
        properties = {}
    if entry.get("status") not in VERDICTS:
        findings.append(note("status", Effect.BLOCK, f"{where} has a status the viewer does not know."))
    for name in ("comments", "exception", "summary", "command"):
        findings += list(_viewer_text(where, name, entry.get(name)))
    method = properties.get("method")
    return Record(
        uid=uid,
        status=str(entry.get("status")),
        type=str(entry.get("type")),
        method=method if isinstance(method, str) else None,
        properties=properties,
        files=tuple(refs),
        summary=str(entry.get("summary", "")),
        command=str(entry.get("command", "")),
        raw=entry,
    ), findings


def _file(where: str, item: Any) -> tuple[FileRef | None, list[Finding]]:
    if not isinstance(item, dict) or set(item) - {"name", "sdc", "url"}:
        return None, [note("record-form", Effect.BLOCK, f"{where} has a file entry of another form.")]
    name = item.get("name")
    reason = bad_file_name(name)
    if reason:
        return None, [
            note(
                "bad-name",
                Effect.BLOCK,
                f"{where} lists {name!r}: {reason}.",
                next_step="Outputs lie flat in the folder under names of their own.",
            )
        ]
    sdc = item.get("sdc")
    if not isinstance(sdc, dict):
        return FileRef(str(name)), [note("record-form", Effect.BLOCK, f"{where}: `sdc` of {name} stops the viewer.")]
    return FileRef(str(name), sdc), list(_cells(where, str(name), sdc))


def _cells(where: str, name: str, sdc: Mapping[str, Any]) -> Iterator[Finding]:
    cells = sdc.get("cells", {})
    if not isinstance(cells, dict):
        yield note("record-form", Effect.BLOCK, f"{where}: `sdc.cells` of {name} stops the viewer.")
        return
    for pairs in cells.values():
        ok = isinstance(pairs, list) and all(
            isinstance(p, list) and len(p) == 2 and all(type(v) is int and v >= 0 for v in p) for p in pairs
        )
        if not ok:
            yield note("record-form", Effect.BLOCK, f"{where}: a cell position of {name} is no row and column.")
            return


def _viewer_text(where: str, name: str, value: Any) -> Iterator[Finding]:
    texts = value if isinstance(value, list) else [value]
    if name == "comments" and not isinstance(value, list):
        yield note("record-form", Effect.BLOCK, f"{where}: `comments` is not a list; the viewer stops on it.")
    for text in texts:
        if text is None:
            continue
        if not isinstance(text, str):
            yield note("record-form", Effect.BLOCK, f"{where}: `{name}` is not text.")
        elif "<" in text and name != "command" and not _harmless(text):
            yield note("markup", Effect.BLOCK, f"{where}: `{name}` holds `<`; the viewer runs or hides what follows.")


def _harmless(text: str) -> bool:
    """ACRO's own summaries say `dof=5 < 10`: a `<` before a space or digit is no markup."""
    return re.search(r"<(?![ =\d])", text) is None


def _across(records: list[Record]) -> Iterator[Finding]:
    owners: dict[str, str] = {}
    for record in records:
        for ref in record.files:
            key = fold(ref.name)
            if key in owners:
                yield note(
                    "listed-twice",
                    Effect.BLOCK,
                    f"{ref.name} is listed in {owners[key]!r} and in {record.uid!r}.",
                    next_step="Each file belongs to exactly one record.",
                )
            owners[key] = record.uid
