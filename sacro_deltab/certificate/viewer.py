"""What SACRO-Viewer itself changes in results.json, told apart from every other change.

The viewer adds to each listed file a url, its checksum and a cell index; a review adds `reviewer`,
`review_timestamp` and `reviewer_summary`, comments, and in its release zip the status "approved". It writes with
two-space indent. Anything else, a status raised to "pass" included, is no work of the viewer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..base.canonical import canonical_json
from ..base.digests import sha256_hex
from ..base.names import shown
from ..base.strict import DATA, parse

_CELL = re.compile(r"\d{1,7},\d{1,7}")
_FILE_KEYS: dict[str, Callable[[Any], bool]] = {  # what the viewer adds to a listed file, and only in this form
    "url": lambda v: isinstance(v, str) and v.startswith("/contents/?") and len(v) < 4096,
    "checksum": lambda v: v is None or (isinstance(v, str) and re.fullmatch(r"[0-9a-f]{64}", v) is not None),
    "checksum_valid": lambda v: isinstance(v, bool),
    "cell_index": lambda v: isinstance(v, dict) and all(_CELL.fullmatch(k) for k in v),
}
_TOP_KEYS = frozenset({"reviewer", "review_timestamp", "reviewer_summary"})
_FREE = frozenset({"status", "comments"})
STATUSES = ("pass", "review", "fail")
_REVIEWED = frozenset({*STATUSES, "approved", "rejected"})


@dataclass(frozen=True)
class ResultsReading:
    """How results.json compares with the one that was certified.

    changed: what no viewer does; reviewed: what a viewer did; absent: records that are not here (a release zip).
    """

    changed: tuple[str, ...]
    reviewed: tuple[str, ...]
    absent: tuple[str, ...]
    files: tuple[str, ...]


def normalise(value: Any) -> Any:
    """Same value, integral floats as integers: a browser writes 1.0 as 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: normalise(item) for key, item in value.items()}
    if isinstance(value, list):
        return [normalise(item) for item in value]
    return value


def _hash(value: Any) -> str:
    return sha256_hex(canonical_json(normalise(value)))


def _fixed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without what the viewer may change."""
    fixed = {key: value for key, value in record.items() if key not in _FREE}
    files = fixed.get("files")
    if isinstance(files, list):
        fixed["files"] = [
            {k: v for k, v in f.items() if k not in _FILE_KEYS or not _FILE_KEYS[k](v)} if isinstance(f, dict) else f
            for f in files
        ]
    return fixed


def record_digests(results: Mapping[str, Any]) -> dict[str, Any]:
    """What a statement keeps of results.json, so that a rewritten one can still be checked record by record."""
    records = results.get("results")
    out: dict[str, Any] = {}
    for uid, record in records.items() if isinstance(records, dict) else ():
        if isinstance(record, dict):
            comments = record.get("comments")
            out[str(uid)] = {
                "sha256": _hash(_fixed(record)),
                "status": str(record.get("status")),
                "comments": [_hash(c) for c in comments] if isinstance(comments, list) else [],
            }
    return {
        "head_sha256": _hash({key: results.get(key) for key in ("version", "tool")}),
        "records": out,
    }


def listed_files(results: Mapping[str, Any]) -> list[str]:
    """Names of the files that records list."""
    return list(file_statuses(results))


def file_statuses(results: Mapping[str, Any]) -> dict[str, str]:
    """File → status of the record that lists it."""
    out: dict[str, str] = {}
    records = results.get("results")
    for record in records.values() if isinstance(records, dict) else ():
        files = record.get("files") if isinstance(record, dict) else None
        for item in files if isinstance(files, list) else ():
            if isinstance(item, dict):
                out[str(item.get("name"))] = str(record.get("status"))
    return out


def read_results(data: bytes, certified: Mapping[str, Any], config: Any = None) -> ResultsReading:
    """Compare a rewritten results.json with the digests of the certified one.

    Parameters
    ----------
    data
        Bytes of results.json as found.
    certified
        `record_digests` of the certified one.
    config
        Parsed config.json, which the viewer's draft copies into results.json.
    """
    value = parse(data, path="results.json", bounds=DATA)
    if not isinstance(value, dict) or not isinstance(value.get("results"), dict):
        return ResultsReading(("results.json is no longer a record of a session",), (), (), ())
    changed: list[str] = []
    reviewed: list[str] = []
    if data.replace(b"\r\n", b"\n") != json.dumps(value, indent=2).encode():
        changed.append("results.json was rewritten, and not by the viewer")
    _head(value, certified, config, changed, reviewed)
    known: Mapping[str, Any] = certified["records"]
    for uid, record in value["results"].items():
        if uid not in known:
            changed.append(f"record {shown(uid)} was added")
        elif not isinstance(record, dict) or _hash(_fixed(record)) != known[uid]["sha256"]:
            changed.append(f"record {shown(uid)} was changed")
        else:
            _record(uid, record, known[uid], changed, reviewed)
    absent = tuple(uid for uid in known if uid not in value["results"])
    return ResultsReading(tuple(changed), tuple(reviewed), absent, tuple(listed_files(value)))


def _head(
    value: Mapping[str, Any], certified: Mapping[str, Any], config: Any, changed: list[str], reviewed: list[str]
) -> None:
    extra = set(value) - {"version", "tool", "results"} - _TOP_KEYS
    if "config" in extra and config is not None and normalise(value["config"]) == normalise(config):
        extra.discard("config")
        reviewed.append("a draft was saved in the viewer")
    changed.extend(f"results.json has a new entry {shown(str(key))}" for key in sorted(extra))
    draft = "tool" not in value and "config" in value  # the viewer's draft drops what it does not know
    if not draft and _hash({key: value.get(key) for key in ("version", "tool")}) != certified["head_sha256"]:
        changed.append("the version or tool entry of results.json was changed")
    if any(key in value and not isinstance(value[key], str) for key in _TOP_KEYS):
        changed.append("a reviewer entry is not text")
    elif "reviewer" in value:
        when = value.get("review_timestamp", "an unstated time")
        reviewed.append(f"reviewed in the viewer by {shown(value['reviewer'])} at {shown(when)}")


def _record(
    uid: str, record: Mapping[str, Any], known: Mapping[str, Any], changed: list[str], reviewed: list[str]
) -> None:
    status, before = record.get("status"), known["status"]
    if status != before:
        if status not in _REVIEWED or (status in STATUSES and _milder(str(status), before)):
            changed.append(f"the status of {shown(uid)} was changed from {before} to {shown(str(status))}")
        else:
            reviewed.append(f"{shown(uid)}: status {before} became {status}")
    comments = record.get("comments")
    if not isinstance(comments, list) or not all(isinstance(c, str) for c in comments):
        changed.append(f"the comments of {shown(uid)} are not a list of texts")
    elif [_hash(c) for c in comments[: len(known["comments"])]] != known["comments"]:
        changed.append(f"a comment of {shown(uid)} was changed or removed")
    elif len(comments) > len(known["comments"]):
        added = comments[len(known["comments"]) :]
        markup = ", with markup in it" if any("<" in c or "&" in c for c in added) else ""
        reviewed.append(f"{shown(uid)}: {len(added)} comment(s) added{markup}")


def _milder(now: str, before: str) -> bool:
    return before not in STATUSES or STATUSES.index(now) < STATUSES.index(before)
